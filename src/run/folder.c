#include "run/folder.h"

#include "base/context.h"
#include "base/file.h"
#include "base/progress.h"
#include "run/checksums.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { START_LIMIT = 1 << 20, MANIFEST_LIMIT = 1 << 24 };

// ---- what a folder holds ----------------------------------------------------------------------

typedef struct contents {
    bool manifest;   // a finished run
    bool checkpoint; // one that was interrupted, or is under way
    bool ready;      // … with nothing left but to put it in place …
    bool stopped;    // … and then to go on: a budget had ended
    bool begun;      // a folder checkpoint in which nothing can be lost yet
    bool foreign;    // things that no run has put there
} contents;

bool run_folder_has(const char *folder, const char *name)
{
    char path[4096];
    struct stat info;
    const int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    return length > 0 && (size_t)length < sizeof path && lstat(path, &info) == 0;
}

// Names in a manifest are hostile: only plain ones, as ours are.
static bool is_plain(const char *name)
{
    if (!name || !*name || *name == '.' || strcmp(name, "checkpoint") == 0) return false;
    const size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-._");
    return length < 128 && name[length] == '\0';
}

static bool is_fingerprint(const json_t *value)
{
    const char *text = json_string_value(value);
    return text && strspn(text, "0123456789abcdef") == 32 && text[32] == '\0';
}

psi_status run_folder_manifest(psi_ctx *ctx, const char *folder, const char *name, json_t **out)
{
    psi_status status = PSI_OK;
    char *path = NULL;
    json_t *manifest = NULL;
    *out = NULL;
    TRY(base_join(ctx, folder, name, &path));
    status = base_json_load(ctx, path, MANIFEST_LIMIT, &manifest);
    if (status == PSI_ENOMEM) goto done;
    status = PSI_OK;
    const json_t *files = json_object_get(manifest, "files");
    bool ours = json_is_string(json_object_get(manifest, "psifold")) &&
                is_fingerprint(json_object_get(json_object_get(manifest, "data"), "fingerprint")) &&
                json_is_object(json_object_get(manifest, "result")) && json_is_array(files);
    for (size_t i = 0; ours && i < json_array_size(files); i++) {
        ours = is_plain(json_string_value(json_array_get(files, i)));
    }
    if (!ours) goto done;
    *out = manifest;
    manifest = NULL;
done:
    json_decref(manifest);
    base_free(ctx, path);
    return status;
}

bool run_folder_stopped(const json_t *manifest)
{
    return json_is_true(json_object_get(json_object_get(manifest, "result"), "stopped"));
}

static psi_status find_start(psi_ctx *ctx, const char *checkpoint, bool *out)
{
    psi_status status = PSI_OK;
    char *path = NULL;
    json_t *start = NULL;
    *out = false;
    TRY(base_join(ctx, checkpoint, "start.json", &path));
    status = base_json_load(ctx, path, START_LIMIT, &start);
    if (status == PSI_ENOMEM) goto done;
    status = PSI_OK;
    *out = json_is_string(json_object_get(start, "psifold")) &&
           is_fingerprint(json_object_get(start, "data")) &&
           json_is_object(json_object_get(start, "options"));
done:
    json_decref(start);
    base_free(ctx, path);
    return status;
}

// Whether every entry of a folder, itself no link, passes. A folder that is not there does.
static bool every_entry(const char *folder, bool (*passes)(const char *name))
{
    struct stat info;
    if (lstat(folder, &info) != 0) return errno == ENOENT;
    if (!S_ISDIR(info.st_mode)) return false;
    DIR *entries = opendir(folder);
    bool all = entries != NULL;
    for (struct dirent *entry; all && (entry = readdir(entries));) {
        const char *name = entry->d_name;
        all = strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || passes(name);
    }
    if (entries) closedir(entries);
    return all;
}

static bool never(const char *name)
{
    (void)name;
    return false;
}

// What is there before start.json: the folder result, and the file on its way.
static bool comes_before_start(const char *name)
{
    return strcmp(name, "result") == 0 || strncmp(name, "start.json.tmp-", 15) == 0;
}

// All that a folder may hold before there is a checkpoint or a manifest; a checkpoint is removed
// under a temporary name.
static bool comes_before_checkpoint(const char *name)
{
    return strcmp(name, "checkpoint") == 0 || strncmp(name, "checkpoint.tmp-", 15) == 0;
}

static psi_status look_into(const psi_run_folder *folder, contents *found)
{
    psi_ctx *ctx = folder->ctx;
    psi_status status = PSI_OK;
    json_t *manifest = NULL, *result = NULL;
    *found = (contents){0};
    TRY(run_folder_manifest(ctx, folder->path, "manifest.json", &manifest));
    TRY(find_start(ctx, folder->checkpoint, &found->checkpoint));
    if (found->checkpoint) TRY(run_folder_manifest(ctx, folder->result, "manifest.json", &result));
    found->manifest = manifest != NULL;
    found->ready = result != NULL;
    found->stopped = run_folder_stopped(result);
    if (found->checkpoint) goto done;
    found->begun =
        every_entry(folder->checkpoint, comes_before_start) && every_entry(folder->result, never);
    found->foreign = !found->begun;
    if (!found->manifest) found->foreign |= !every_entry(folder->path, comes_before_checkpoint);
done:
    json_decref(result);
    json_decref(manifest);
    return status;
}

psi_status run_folder_check_finished(psi_ctx *ctx, const char *folder)
{
    if (run_folder_has(folder, "manifest.json") || !base_is_there(folder)) return PSI_OK;
    if (run_folder_has(folder, "data/main_data.hdf5")) {
        return FAIL(ctx, PSI_EFORMAT,
                    "%s is a data set as Minari writes them, and no run: psifold cluster makes a "
                    "run of it",
                    folder);
    }
    if (!run_folder_has(folder, "checkpoint/start.json")) {
        return FAIL(ctx, PSI_EFORMAT,
                    "%s is no run, as psifold cluster leaves one: it has no manifest.json", folder);
    }
    return FAIL(ctx, PSI_EMISSING,
                "%s is a run that was interrupted, or is still under way: 'psifold cluster FILE -o "
                "%s --resume' finishes it",
                folder, folder);
}

psi_status psi_run_check_files(psi_ctx *ctx, const char *folder, size_t *n)
{
    psi_status status = PSI_OK;
    json_t *manifest = NULL;
    *n = 0;
    TRY(run_folder_check_finished(ctx, folder));
    TRY(run_folder_manifest(ctx, folder, "manifest.json", &manifest));
    if (!manifest) TRY(FAIL(ctx, PSI_EFORMAT, "%s holds no manifest of a run", folder));
    if (!json_is_object(json_object_get(manifest, "checksums"))) {
        TRY(FAIL(ctx, PSI_EMISSING, "%s was written by a version that kept no checksums", folder));
    }
    TRY(run_checksums_check(ctx, folder, manifest, n));
done:
    json_decref(manifest);
    return status;
}

// ---- opening ----------------------------------------------------------------------------------

static psi_status make_folder(psi_ctx *ctx, const char *path)
{
    if (mkdir(path, 0777) == 0) return PSI_OK;
    return FAIL(ctx, PSI_EIO, "%s: cannot make the folder: %s", path, strerror(errno));
}

static bool is_same(int fd, const char *path)
{
    struct stat here, there;
    return fstat(fd, &here) == 0 && stat(path, &there) == 0 && here.st_dev == there.st_dev &&
           here.st_ino == there.st_ino;
}

// One process at a time, from before it looks into the folder until it is done with it. A folder
// that another process removes between being opened and being locked is made again. Where the file
// system knows no locks, there is nothing to be asked.
static psi_status lock(psi_run_folder *folder)
{
    enum { TRIES = 100 };
    for (int i = 0; i < TRIES; i++) {
        folder->made = mkdir(folder->path, 0777) == 0;
        if (!folder->made && errno != EEXIST) {
            return FAIL(folder->ctx, PSI_EIO, "%s: cannot make the folder: %s", folder->path,
                        strerror(errno));
        }
        const int fd = open(folder->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 && errno == ENOENT) continue;
        if (fd < 0 && errno == ENOTDIR) break;
        if (fd < 0) {
            return FAIL(folder->ctx, PSI_EIO, "%s: cannot open: %s", folder->path, strerror(errno));
        }
        if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
            close(fd);
            folder->made = false;
            return FAIL(folder->ctx, PSI_EUSAGE, "another process is working on %s", folder->path);
        }
        if (is_same(fd, folder->path)) {
            folder->lock = fd;
            return PSI_OK;
        }
        close(fd);
    }
    folder->made = false;
    return FAIL(folder->ctx, PSI_EUSAGE, "%s exists already and is no run: choose another name",
                folder->path);
}

static psi_status start_work(psi_ctx *ctx, const char *path, psi_run_folder **out)
{
    psi_status status = PSI_OK;
    psi_run_folder *folder = NULL;
    *out = NULL;
    TRY(base_alloc_zero(ctx, 1, sizeof *folder, &folder));
    *folder = (psi_run_folder){.ctx = ctx, .lock = -1, .started = base_seconds()};
    TRY(base_copy_text(ctx, path, &folder->path));
    for (size_t n = strlen(folder->path); n > 1 && folder->path[n - 1] == '/'; n--) {
        folder->path[n - 1] = '\0';
    }
    TRY(base_join(ctx, folder->path, "checkpoint", &folder->checkpoint));
    TRY(base_join(ctx, folder->checkpoint, "result", &folder->result));
    TRY(lock(folder));
    *out = folder;
    folder = NULL;
done:
    run_folder_suspend(folder);
    return status;
}

psi_status run_folder_begin(psi_run_folder *folder)
{
    psi_status status = PSI_OK;
    if (folder->begun || folder->resumed) return PSI_OK;
    TRY(base_remove_whole(folder->ctx, folder->checkpoint));
    TRY(make_folder(folder->ctx, folder->checkpoint));
    folder->begun = true;
    TRY(make_folder(folder->ctx, folder->result));
    // from now on files can be moved here and found again after a power failure
    TRY(base_sync(folder->ctx, folder->checkpoint));
    TRY(base_sync(folder->ctx, folder->path));
    if (folder->made) TRY(base_sync_above(folder->ctx, folder->path));
done:
    return status;
}

// A run that is there already is in the way, unless it may be replaced.
static psi_status check_new(const psi_run_folder *folder, const contents *found, bool replace)
{
    if (found->checkpoint && !replace) {
        return FAIL(folder->ctx, PSI_EUSAGE,
                    "%s holds a run that was interrupted: --resume goes on with it, --replace "
                    "starts anew",
                    folder->path);
    }
    if (found->manifest && !replace) {
        return FAIL(folder->ctx, PSI_EUSAGE,
                    "%s exists already: choose another name, or add --replace", folder->path);
    }
    return PSI_OK;
}

// What an interruption at the very end has left beside a run that is whole.
static psi_status tidy_up(const psi_run_folder *folder)
{
    psi_status status = PSI_OK;
    char *place = NULL;
    TRY(base_join(folder->ctx, folder->path, "manifest.json", &place));
    TRY(base_remove_abandoned(folder->ctx, place));
    TRY(base_remove_abandoned(folder->ctx, folder->checkpoint));
done:
    base_free(folder->ctx, place);
    return status;
}

// One that is ready to take its place does so now.
static psi_status go_on(psi_run_folder *folder, const contents *found)
{
    psi_status status = PSI_OK;
    folder->resumed = found->checkpoint || found->manifest;
    folder->finished = (found->ready && !found->stopped) || (found->manifest && !found->checkpoint);
    if (found->ready) TRY(run_folder_publish(folder));
    if (folder->finished) TRY(tidy_up(folder));
done:
    return status;
}

psi_status psi_run_folder_open(psi_ctx *ctx, const char *path, psi_folder_mode mode,
                               psi_run_folder **out)
{
    psi_status status = PSI_OK;
    psi_run_folder *folder = NULL;
    contents found;
    *out = NULL;
    TRY(start_work(ctx, path, &folder));
    TRY(look_into(folder, &found));
    const bool resume = mode == PSI_FOLDER_RESUME;
    if (found.foreign && !(resume && found.manifest)) {
        TRY(FAIL(ctx, PSI_EUSAGE, "%s exists already and is no run: choose another name",
                 folder->path));
    }
    TRY(resume ? go_on(folder, &found) : check_new(folder, &found, mode == PSI_FOLDER_REPLACE));
    *out = folder;
    folder = NULL;
done:
    psi_run_folder_close(folder);
    return status;
}

void run_folder_suspend(psi_run_folder *folder)
{
    if (!folder) return;
    if (folder->lock >= 0) close(folder->lock);
    base_free(folder->ctx, folder->result);
    base_free(folder->ctx, folder->checkpoint);
    base_free(folder->ctx, folder->path);
    base_retire(folder->ctx, folder);
}

void psi_run_folder_close(psi_run_folder *folder)
{
    if (!folder || FREED(NULL, folder)) return;
    if (folder->begun && !folder->resumed) (void)base_remove_whole(folder->ctx, folder->checkpoint);
    if (folder->made && !folder->resumed) (void)rmdir(folder->path);
    run_folder_suspend(folder);
}

bool psi_run_folder_finished(const psi_run_folder *folder)
{
    if (FREED(NULL, folder)) return false;
    return folder->finished;
}

double run_folder_seconds(const psi_run_folder *folder)
{
    return folder->spent + base_seconds() - folder->started;
}

psi_status run_folder_path(const psi_run_folder *folder, const char *name, char **out)
{
    return base_join(folder->ctx, folder->checkpoint, name, out);
}

psi_status run_folder_result(const psi_run_folder *folder, const char *name, char **out)
{
    return base_join(folder->ctx, folder->result, name, out);
}

// ---- the same start ---------------------------------------------------------------------------

static const char *as_text(const json_t *value, char *buffer, size_t size)
{
    const size_t length = json_dumpb(value, buffer, size - 1,
                                     JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(6));
    buffer[length < size ? length : 0] = '\0';
    return buffer;
}

psi_status run_folder_compare(const psi_run_folder *folder, const json_t *wanted,
                              const json_t *found)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)wanted, key, value)
    {
        const json_t *other = json_object_get(found, key);
        char ours[64], theirs[64];
        if (json_is_object(value)) {
            const psi_status status = run_folder_compare(folder, value, other);
            if (status != PSI_OK) return status;
        } else if (!other || !json_equal(value, other)) {
            return FAIL(folder->ctx, PSI_EUSAGE,
                        "%s was started with %s %s, not %s: a run is resumed as it was started",
                        folder->path, key,
                        other ? as_text(other, theirs, sizeof theirs) : "unknown",
                        as_text(value, ours, sizeof ours));
        }
    }
    return PSI_OK;
}

psi_status run_folder_start(psi_run_folder *folder, const json_t *start)
{
    psi_status status = PSI_OK;
    char *path = NULL;
    json_t *found = NULL;
    TRY(base_json_made(folder->ctx, start));
    TRY(run_folder_begin(folder));
    TRY(run_folder_path(folder, "start.json", &path));
    if (folder->resumed) {
        TRY(base_json_load(folder->ctx, path, START_LIMIT, &found));
        TRY(run_folder_compare(folder, start, found));
    } else {
        TRY(base_json_save(folder->ctx, path, start));
    }
done:
    json_decref(found);
    base_free(folder->ctx, path);
    return status;
}
