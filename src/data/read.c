// psi_trajectories_read: what is this file? Its content decides, never its name.
#include "base/context.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/options.h"
#include "data/formats.h"
#include "data/hdf5.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_folder(const char *path)
{
    struct stat info;
    return path && stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

// The file of a Minari folder: <folder>/data/main_data.hdf5 or <folder>/main_data.hdf5.
static psi_status find_in_folder(psi_ctx *ctx, const char *folder, char **out)
{
    static const char *const places[] = {"data/main_data.hdf5", "main_data.hdf5"};
    static const char *const metadata[] = {"data/metadata.json", "metadata.json"};
    psi_status status = PSI_OK;
    json_t *root = NULL;
    char *path = NULL;
    *out = NULL;
    for (int i = 0; i < 2; i++) {
        TRY(base_join(ctx, folder, places[i], &path));
        if (base_is_there(path)) {
            *out = path;
            return PSI_OK;
        }
        base_free(ctx, path);
        path = NULL;
    }
    for (int i = 0; i < 2; i++) {
        TRY(base_join(ctx, folder, metadata[i], &path));
        if (base_is_there(path)) {
            TRY(base_json_load(ctx, path, (size_t)1 << 28, &root));
            const char *format = json_string_value(json_object_get(root, "data_format"));
            status = FAIL(ctx, PSI_EUNSUPPORTED,
                          "%s: a Minari data set in the format %.40s; psifold "
                          "reads hdf5",
                          folder, format ? format : "?");
            goto done;
        }
        base_free(ctx, path);
        path = NULL;
    }
    status = FAIL(ctx, PSI_EFORMAT,
                  "%s: a folder without data/main_data.hdf5 is not a Minari data "
                  "set",
                  folder);
done:
    json_decref(root);
    base_free(ctx, path);
    return status;
}

psi_status data_find_file(psi_ctx *ctx, const char *path, char **out)
{
    *out = NULL;
    return is_folder(path) ? find_in_folder(ctx, path, out) : PSI_OK;
}

size_t data_memory_limit(const psi_read_options *options)
{
    const size_t given = options ? options->memory_limit : 0;
    return given ? given : (size_t)(base_memory_here().available / 2);
}

typedef enum container { NO_CONTAINER, HDF5_FILE, ZIP_FILE } container;

// HDF5's signature may also come after a user block of 512, 1024, 2048, … bytes.
static psi_status recognise(psi_ctx *ctx, const char *path, container *out)
{
    static const unsigned char hdf5[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
    unsigned char start[8] = {0};
    uint64_t size;
    int fd;
    *out = NO_CONTAINER;
    const psi_status status = base_open_file(ctx, path, &fd, &size);
    if (status != PSI_OK) return status;
    const ssize_t got = pread(fd, start, sizeof start, 0);
    if (got >= 4 && memcmp(start, "PK", 2) == 0 && (start[2] == 3 || start[2] == 5)) {
        *out = ZIP_FILE;
    } else if (got == sizeof start && memcmp(start, hdf5, sizeof hdf5) == 0) {
        *out = HDF5_FILE;
    }
    for (off_t at = 512; *out == NO_CONTAINER && at <= 1 << 20; at *= 2) {
        if (pread(fd, start, sizeof start, at) != sizeof start) break;
        if (memcmp(start, hdf5, sizeof hdf5) == 0) *out = HDF5_FILE;
    }
    close(fd);
    return PSI_OK;
}

static bool append_name(void *user, const char *name)
{
    char *list = user;
    const size_t used = strlen(list);
    if (used > 200) return false;
    snprintf(list + used, 256 - used, "%s%.48s", used ? ", " : "", name);
    return true;
}

static psi_status refuse_key(psi_ctx *ctx, data_archive *archive, const char *key)
{
    const psi_status status =
        FAIL(ctx, PSI_EUSAGE, "%s: the observations are one array, there is no \"%s\" to choose",
             archive->path, key);
    data_archive_close(archive);
    return status;
}

static psi_status read_hdf5(psi_ctx *ctx, const char *path, const char *key, size_t memory_limit,
                            psi_trajectories **out)
{
    data_archive *archive;
    psi_status status = data_hdf5_open(ctx, path, memory_limit, &archive);
    if (status != PSI_OK) return status;
    if (data_hdf5_node(archive, "episode_0") == DATA_GROUP) {
        const char *slash = strrchr(path, '/');
        const size_t length = slash ? (size_t)(slash - path) + 1 : 0;
        char *metadata;
        status = base_alloc(ctx, length + sizeof "metadata.json", 1, &metadata);
        if (status != PSI_OK) {
            data_archive_close(archive);
            return status;
        }
        memcpy(metadata, path, length);
        memcpy(metadata + length, "metadata.json", sizeof "metadata.json");
        status = data_read_minari(ctx, archive, metadata, key, out);
        base_free(ctx, metadata);
        return status;
    }
    if (key) return refuse_key(ctx, archive, key);
    if (data_archive_has(archive, "num_episodes") && data_archive_has(archive, "observations_0")) {
        return data_read_d3rlpy(ctx, archive, out);
    }
    if (data_archive_has(archive, "observations") && data_archive_has(archive, "terminals")) {
        return data_read_flat(ctx, archive, out);
    }
    char names[256] = "";
    (void)data_hdf5_list(archive, "/", append_name, names);
    data_archive_close(archive);
    return FAIL(ctx, PSI_EFORMAT,
                "%s: an HDF5 file, but not in the layout of Minari, D4RL or d3rlpy"
                " (it holds %s)",
                path, *names ? names : "nothing");
}

static psi_status read_npz(psi_ctx *ctx, const char *path, const char *key, size_t memory_limit,
                           psi_trajectories **out)
{
    data_archive *archive;
    const psi_status status = data_npz_open(ctx, path, memory_limit, &archive);
    if (status != PSI_OK) return status;
    if (key) return refuse_key(ctx, archive, key);
    if (data_archive_has(archive, "episode_lengths")) return data_read_columns(ctx, archive, out);
    if (data_archive_has(archive, "observations") && data_archive_has(archive, "terminals")) {
        return data_read_flat(ctx, archive, out);
    }
    data_archive_close(archive);
    return FAIL(ctx, PSI_EFORMAT,
                "%s: a zip file with neither episode_lengths.npy (psifold's "
                "layout) nor observations.npy and terminals.npy (D4RL's)",
                path);
}

psi_status psi_trajectories_read(psi_ctx *ctx, const char *path, const psi_read_options *options,
                                 psi_trajectories **out)
{
    *out = NULL;
    if (options &&
        !base_options_fit(ctx, options, sizeof *options, "{.size = sizeof(psi_read_options)}"))
        return PSI_EUSAGE;
    psi_status status = PSI_OK;
    char *found = NULL;
    container kind;
    const char *key = options ? options->observation_key : NULL;
    const size_t memory_limit = data_memory_limit(options);
    TRY(data_find_file(ctx, path, &found));
    if (found) path = found;
    TRY(recognise(ctx, path, &kind));
    if (kind == HDF5_FILE) {
        status = read_hdf5(ctx, path, key, memory_limit, out);
    } else if (kind == ZIP_FILE) {
        status = read_npz(ctx, path, key, memory_limit, out);
    } else {
        status = FAIL(ctx, PSI_EFORMAT, "%s: neither an HDF5 file nor an .npz", path);
    }
    if (status == PSI_OK) status = data_check_appetite(ctx, *out, path);
done:
    if (status != PSI_OK) {
        psi_trajectories_free(ctx, *out);
        *out = NULL;
    }
    base_free(ctx, found);
    return status;
}
