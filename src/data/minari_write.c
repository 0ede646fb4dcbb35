// A Minari folder: data/main_data.hdf5 with a group per episode, and data/metadata.json. Arrays are
// contiguous, since their length is known, and carry no times: the same data give the same bytes.
#include "base/context.h"
#include "base/file.h"
#include "base/json.h"
#include "data/hdf5.h"
#include "data/hdf5_driver.h"
#include "data/writer.h"

#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct minari_writer {
    data_hdf5_driver driver;
    hid_t file, dataset_creation, group_creation, truth; // truth: h5py's bool
    uint8_t *flags;                                      // (room) zeros
    int64_t *actions;
    size_t room; // of flags and actions
} minari_writer;

enum { MINARI_TEXT = 256 };

static void release(psi_writer *writer)
{
    minari_writer *self = writer->state;
    const data_hdf5_quiet quiet = data_hdf5_enter();
    if (self->truth > 0) H5Tclose(self->truth);
    if (self->group_creation > 0) H5Pclose(self->group_creation);
    if (self->dataset_creation > 0) H5Pclose(self->dataset_creation);
    if (self->file > 0) H5Fclose(self->file);
    data_hdf5_driver_end(&self->driver);
    data_hdf5_leave(quiet);
    base_free(writer->ctx, self->flags);
    base_free(writer->ctx, self->actions);
}

static hid_t file_type(psi_dtype dtype)
{
    switch (dtype) {
    case PSI_UINT8: return H5T_STD_U8LE;
    case PSI_INT32: return H5T_STD_I32LE;
    case PSI_INT64: return H5T_STD_I64LE;
    case PSI_FLOAT32: return H5T_IEEE_F32LE;
    case PSI_FLOAT64: return H5T_IEEE_F64LE;
    }
    return -1;
}

static hid_t make_truth_type(void)
{
    const hid_t type = H5Tenum_create(H5T_NATIVE_INT8);
    if (type > 0) {
        H5Tenum_insert(type, "FALSE", &(int8_t){0});
        H5Tenum_insert(type, "TRUE", &(int8_t){1});
    }
    return type;
}

static bool write_array(minari_writer *self, hid_t group, const char *name, hid_t type, int rank,
                        const hsize_t *dims, const void *values)
{
    const hid_t space = H5Screate_simple(rank, dims, NULL);
    const hid_t dataset = space > 0 ? H5Dcreate2(group, name, type, space, H5P_DEFAULT,
                                                 self->dataset_creation, H5P_DEFAULT)
                                    : -1;
    bool good = dataset > 0 && H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0;
    if (dataset > 0) good &= H5Dclose(dataset) >= 0;
    if (space > 0) H5Sclose(space);
    return good;
}

static bool write_attribute(hid_t group, const char *name, int64_t value)
{
    const hid_t space = H5Screate(H5S_SCALAR);
    const hid_t attribute = H5Acreate2(group, name, H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT);
    bool good = attribute > 0 && H5Awrite(attribute, H5T_NATIVE_INT64, &value) >= 0;
    if (attribute > 0) good &= H5Aclose(attribute) >= 0;
    if (space > 0) H5Sclose(space);
    return good;
}

static bool write_episode(psi_writer *writer, hid_t group, hid_t infos, const psi_episode *episode)
{
    minari_writer *self = writer->state;
    const psi_shape *shape = &writer->spec.observation_shape;
    const hsize_t steps[1] = {episode->length}, states[1] = {episode->length + 1};
    hsize_t dims[PSI_MAX_RANK + 1] = {states[0]};
    for (size_t d = 0; d < shape->rank; d++) dims[d + 1] = shape->dim[d];
    bool good = write_array(self, group, "observations", file_type(writer->spec.observation_dtype),
                            (int)shape->rank + 1, dims, episode->observations);
    for (size_t t = 0; t < episode->length; t++) self->actions[t] = episode->actions[t];
    good = good && write_array(self, group, "actions", H5T_STD_I64LE, 1, steps, self->actions);
    good = good && write_array(self, group, "rewards", H5T_IEEE_F64LE, 1, steps, episode->rewards);
    uint8_t *last = &self->flags[episode->length - 1];
    *last = episode->terminated;
    good = good && write_array(self, group, "terminations", self->truth, 1, steps, self->flags);
    *last = episode->truncated;
    good = good && write_array(self, group, "truncations", self->truth, 1, steps, self->flags);
    *last = 0;
    if (episode->latent_states) {
        good = good && write_array(self, infos, "latent_state", H5T_STD_I32LE, 1, states,
                                   episode->latent_states);
    }
    return good && write_attribute(group, "id", (int64_t)writer->n_episodes) &&
           write_attribute(group, "total_steps", (int64_t)episode->length);
}

static psi_status fail_writing(psi_writer *writer)
{
    const minari_writer *self = writer->state;
    return FAIL(writer->ctx, PSI_EIO, "%s: cannot write: %s", writer->path,
                self->driver.error ? strerror(self->driver.error) : "libhdf5 refuses");
}

static psi_status add(psi_writer *writer, const psi_episode *episode)
{
    psi_ctx *ctx = writer->ctx;
    minari_writer *self = writer->state;
    psi_status status = PSI_OK;
    if (episode->length > self->room) {
        const size_t room = episode->length * 2;
        base_free(ctx, self->flags);
        self->flags = NULL;
        self->room = 0;
        TRY(base_alloc_zero(ctx, room, 1, &self->flags));
        TRY(base_resize(ctx, room, sizeof *self->actions, &self->actions));
        self->room = room;
    }
    TRY(data_hdf5_room(ctx, writer->path));
    char name[64];
    snprintf(name, sizeof name, "episode_%zu", writer->n_episodes);
    const data_hdf5_quiet quiet = data_hdf5_enter();
    const hid_t group =
        H5Gcreate2(self->file, name, H5P_DEFAULT, self->group_creation, H5P_DEFAULT);
    const hid_t infos =
        group > 0 ? H5Gcreate2(group, "infos", H5P_DEFAULT, self->group_creation, H5P_DEFAULT) : -1;
    bool good = infos > 0 && write_episode(writer, group, infos, episode);
    if (infos > 0) good &= H5Gclose(infos) >= 0;
    if (group > 0) good &= H5Gclose(group) >= 0;
    data_hdf5_leave(quiet);
    if (!good || self->driver.error) status = fail_writing(writer);
done:
    return status;
}

// A number as Python's json reads it, which also knows Infinity; integers have none, but those that
// their type ends with.
static void print_bound(FILE *out, psi_dtype dtype, double bound)
{
    if (isinf(bound) && dtype == PSI_INT32) {
        fprintf(out, "%" PRId32, bound > 0 ? INT32_MAX : INT32_MIN);
    } else if (isinf(bound) && dtype == PSI_INT64) {
        fprintf(out, "%" PRId64, bound > 0 ? INT64_MAX : INT64_MIN);
    } else if (isinf(bound)) {
        fputs(bound > 0 ? "Infinity" : "-Infinity", out);
    } else if (dtype == PSI_FLOAT32 || dtype == PSI_FLOAT64) {
        fprintf(out, bound == floor(bound) && fabs(bound) < 1e15 ? "%.1f" : "%.17g", bound);
    } else {
        fprintf(out, "%.0f", bound);
    }
}

static void print_bounds(FILE *out, const psi_episode_spec *spec, size_t d, double bound)
{
    if (d == spec->observation_shape.rank || d == PSI_MAX_RANK) {
        print_bound(out, spec->observation_dtype, bound);
        return;
    }
    for (size_t i = 0; i < spec->observation_shape.dim[d]; i++) {
        fputs(i ? ", " : "[", out);
        print_bounds(out, spec, d + 1, bound);
    }
    fputc(']', out);
}

// Spaces are JSON text inside JSON. A single integer is Discrete; everything else is a Box with
// all its bounds written out.
static char *observation_space(const psi_episode_spec *spec)
{
    const psi_shape *shape = &spec->observation_shape;
    const bool whole = spec->observation_dtype == PSI_INT32 || spec->observation_dtype == PSI_INT64;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out) return NULL;
    if (whole && shape->rank == 0 && isfinite(spec->observation_low) &&
        isfinite(spec->observation_high)) {
        fprintf(out, "{\"type\": \"Discrete\", \"dtype\": \"int64\", \"start\": %.0f, \"n\": %.0f}",
                spec->observation_low, spec->observation_high - spec->observation_low + 1);
    } else {
        fprintf(out, "{\"type\": \"Box\", \"dtype\": \"%s\", \"shape\": [",
                psi_dtype_name(spec->observation_dtype));
        for (size_t d = 0; d < shape->rank; d++) fprintf(out, d ? ", %zu" : "%zu", shape->dim[d]);
        fputs("], \"low\": ", out);
        print_bounds(out, spec, 0, spec->observation_low);
        fputs(", \"high\": ", out);
        print_bounds(out, spec, 0, spec->observation_high);
        fputc('}', out);
    }
    const bool failed = ferror(out) != 0;
    if (fclose(out) == 0 && !failed) return text;
    free(text);
    return NULL;
}

// Minari's ids may begin with folders, and end in a version. Without a name the folder gives one.
static void dataset_id(const psi_writer *writer, char out[MINARI_TEXT])
{
    const char *from = writer->name;
    char folder[MINARI_TEXT];
    if (!from) {
        snprintf(folder, sizeof folder, "%.200s", writer->path);
        size_t n = strlen(folder);
        while (n > 1 && folder[n - 1] == '/') folder[--n] = '\0';
        const char *slash = strrchr(folder, '/');
        from = slash && slash[1] ? slash + 1 : folder;
    }
    size_t n = 0;
    for (; *from && n < MINARI_TEXT - 8; from++) {
        const bool plain = (*from >= 'a' && *from <= 'z') || (*from >= 'A' && *from <= 'Z') ||
                           (*from >= '0' && *from <= '9') || *from == '_' || *from == '-' ||
                           *from == '/';
        out[n++] = plain ? *from : '_';
    }
    out[n] = '\0';
    size_t digits = n;
    while (digits > 0 && out[digits - 1] >= '0' && out[digits - 1] <= '9') digits--;
    const bool versioned = digits < n && digits >= 3 && memcmp(out + digits - 2, "-v", 2) == 0;
    if (!versioned) memcpy(out + n, "-v0", sizeof "-v0");
}

static psi_status write_metadata(psi_writer *writer, uint64_t bytes)
{
    psi_ctx *ctx = writer->ctx;
    psi_status status = PSI_OK;
    char *path = NULL, *space = observation_space(&writer->spec);
    json_t *options = NULL, *root = NULL;
    char actions[128], id[MINARI_TEXT];
    dataset_id(writer, id);
    snprintf(actions, sizeof actions,
             "{\"type\": \"Discrete\", \"dtype\": \"int64\", \"start\": 0, \"n\": %zu}",
             writer->spec.n_actions);
    if (writer->task_options) {
        TRY(base_json_parse(ctx, "task_options", writer->task_options, strlen(writer->task_options),
                            &options));
    } else {
        options = json_object();
    }
    // jpeg_encoding is what tells Minari not to take large images for JPEG files.
    root = json_pack("{s:I, s:I, s:s, s:b, s:s, s:s, s:s, s:s, s:f, s:s, s:{s:s, s:O}}",
                     "total_episodes", (json_int_t)writer->n_episodes, "total_steps",
                     (json_int_t)writer->n_transitions, "data_format", "hdf5", "jpeg_encoding", 0,
                     "observation_space", space ? space : "", "action_space", actions, "dataset_id",
                     id, "minari_version", "0.5.3", "dataset_size",
                     round((double)bytes / 1e5) / 10.0, "algorithm_name", "psifold", "psifold",
                     "version", psi_version(), "task_options", options);
    TRY(base_json_made(ctx, space ? root : NULL));
    TRY(base_join(ctx, writer->folder, "metadata.json", &path));
    TRY(base_json_save(ctx, path, root));
done:
    base_free(ctx, path);
    json_decref(root);
    json_decref(options);
    free(space);
    return status;
}

static psi_status finish(psi_writer *writer)
{
    minari_writer *self = writer->state;
    hsize_t bytes = 0;
    const data_hdf5_quiet quiet = data_hdf5_enter();
    bool good = H5Fflush(self->file, H5F_SCOPE_LOCAL) >= 0;
    good = H5Fget_filesize(self->file, &bytes) >= 0 && good;
    good = H5Fclose(self->file) >= 0 && good;
    self->file = 0;
    data_hdf5_leave(quiet);
    if (!good || self->driver.error) return fail_writing(writer);
    return write_metadata(writer, bytes);
}

// The first entry of a folder that is none of the names; "" if there is none, or no folder.
static void first_other(const char *folder, const char *const *names, size_t n,
                        char found[MINARI_TEXT])
{
    DIR *entries = opendir(folder);
    found[0] = '\0';
    for (struct dirent *entry; entries && !found[0] && (entry = readdir(entries));) {
        bool known = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
        for (size_t i = 0; i < n; i++) known |= strcmp(entry->d_name, names[i]) == 0;
        if (!known) snprintf(found, MINARI_TEXT, "%s", entry->d_name);
    }
    if (entries) closedir(entries);
}

// A folder may be replaced if it is a data set and nothing else: all that is in it will be gone.
static psi_status check_replaced(psi_ctx *ctx, const char *folder)
{
    static const char *const outer[] = {"data"}, *const inner[] = {"main_data.hdf5",
                                                                   "metadata.json"};
    psi_status status = PSI_OK;
    char *data = NULL, other[MINARI_TEXT];
    struct stat info;
    if (lstat(folder, &info) != 0 || !S_ISDIR(info.st_mode)) return PSI_OK;
    TRY(base_join(ctx, folder, "data", &data));
    first_other(folder, outer, 1, other);
    if (!other[0]) first_other(data, inner, 2, other);
    if (other[0]) {
        status =
            FAIL(ctx, PSI_EUSAGE, "%s holds %s, which is no part of a data set: it is not replaced",
                 folder, other);
    }
done:
    base_free(ctx, data);
    return status;
}

static psi_status open_file(psi_writer *writer)
{
    psi_ctx *ctx = writer->ctx;
    minari_writer *self = writer->state;
    psi_status status = PSI_OK;
    char *path = NULL;
    TRY(base_join(ctx, base_output_path(writer->output), "data", &writer->folder));
    TRY(base_make_folders(ctx, writer->folder));
    TRY(base_join(ctx, writer->folder, "main_data.hdf5", &path));
    TRY(data_hdf5_room(ctx, writer->path));
    const data_hdf5_quiet quiet = data_hdf5_enter();
    const hid_t how = H5Pcreate(H5P_FILE_CREATE);
    H5Pset_link_creation_order(how, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
    H5Pset_obj_track_times(how, 0);
    self->file = data_hdf5_driver_create(&self->driver, path, how);
    H5Pclose(how);
    self->group_creation = H5Pcreate(H5P_GROUP_CREATE);
    H5Pset_obj_track_times(self->group_creation, 0);
    self->dataset_creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_obj_track_times(self->dataset_creation, 0);
    H5Pset_fill_time(self->dataset_creation, H5D_FILL_TIME_NEVER);
    self->truth = make_truth_type();
    data_hdf5_leave(quiet);
    if (self->file <= 0 || self->group_creation <= 0 || self->dataset_creation <= 0 ||
        self->truth <= 0 || self->driver.error) {
        status = fail_writing(writer);
    }
done:
    base_free(ctx, path);
    return status;
}

const data_writer_kind DATA_MINARI_WRITER = {.output = BASE_FOLDER,
                                             .state_bytes = sizeof(minari_writer),
                                             .check_replaced = check_replaced,
                                             .open = open_file,
                                             .add = add,
                                             .finish = finish,
                                             .release = release};
