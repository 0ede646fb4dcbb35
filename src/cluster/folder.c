#include "cluster/folder.h"

#include "base/context.h"
#include "base/file.h"
#include "base/progress.h"
#include "cluster/checksums.h"

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
    bool exists;     // there is something in the folder
    bool manifest;   // a finished run
    bool checkpoint; // one that was interrupted, or is under way
    bool ready;      // … with nothing left but to put it in place …
    bool stopped;    // … and then to go on: a budget had ended
    bool begun;      // a folder checkpoint in which nothing can be lost yet
    bool foreign;    // things that no run has put there
} contents;

bool cluster_folder_has(const char *folder, const char *name)
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

psi_status cluster_folder_manifest(psi_ctx *ctx, const char *folder, const char *name, json_t **out)
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

bool cluster_folder_stopped(const json_t *manifest)
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

static psi_status look_into(const psi_run *run, contents *found)
{
    psi_ctx *ctx = run->ctx;
    psi_status status = PSI_OK;
    json_t *manifest = NULL, *result = NULL;
    *found = (contents){0};
    TRY(cluster_folder_manifest(ctx, run->folder, "manifest.json", &manifest));
    TRY(find_start(ctx, run->checkpoint, &found->checkpoint));
    if (found->checkpoint) TRY(cluster_folder_manifest(ctx, run->result, "manifest.json", &result));
    found->manifest = manifest != NULL;
    found->ready = result != NULL;
    found->stopped = cluster_folder_stopped(result);
    if (found->checkpoint) goto done;
    found->begun =
        every_entry(run->checkpoint, comes_before_start) && every_entry(run->result, never);
    found->foreign = !found->begun;
    if (!found->manifest) found->foreign |= !every_entry(run->folder, comes_before_checkpoint);
done:
    json_decref(result);
    json_decref(manifest);
    return status;
}

psi_status cluster_folder_check_finished(psi_ctx *ctx, const char *folder)
{
    if (cluster_folder_has(folder, "manifest.json") ||
        !cluster_folder_has(folder, "checkpoint/start.json"))
        return PSI_OK;
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
    TRY(cluster_folder_check_finished(ctx, folder));
    TRY(cluster_folder_manifest(ctx, folder, "manifest.json", &manifest));
    if (!manifest) TRY(FAIL(ctx, PSI_EFORMAT, "%s holds no manifest of a run", folder));
    if (!json_is_object(json_object_get(manifest, "checksums"))) {
        TRY(FAIL(ctx, PSI_EMISSING, "%s was written by a version that kept no checksums", folder));
    }
    TRY(cluster_checksums_check(ctx, folder, manifest, n));
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
static psi_status lock(psi_run *run)
{
    enum { TRIES = 100 };
    for (int i = 0; i < TRIES; i++) {
        run->made = mkdir(run->folder, 0777) == 0;
        if (!run->made && errno != EEXIST) {
            return FAIL(run->ctx, PSI_EIO, "%s: cannot make the folder: %s", run->folder,
                        strerror(errno));
        }
        const int fd = open(run->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 && errno == ENOENT) continue;
        if (fd < 0 && errno == ENOTDIR) break;
        if (fd < 0) {
            return FAIL(run->ctx, PSI_EIO, "%s: cannot open: %s", run->folder, strerror(errno));
        }
        if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
            close(fd);
            run->made = false;
            return FAIL(run->ctx, PSI_EUSAGE, "another process is working on %s", run->folder);
        }
        if (is_same(fd, run->folder)) {
            run->lock = fd;
            return PSI_OK;
        }
        close(fd);
    }
    run->made = false;
    return FAIL(run->ctx, PSI_EUSAGE, "%s exists already and is no run: choose another name",
                run->folder);
}

static psi_status run_open(psi_ctx *ctx, const char *folder, psi_run **out)
{
    psi_status status = PSI_OK;
    psi_run *run = NULL;
    *out = NULL;
    TRY(base_alloc_zero(ctx, 1, sizeof *run, &run));
    *run = (psi_run){.ctx = ctx, .lock = -1, .started = base_seconds()};
    TRY(base_copy_text(ctx, folder, &run->folder));
    for (size_t n = strlen(run->folder); n > 1 && run->folder[n - 1] == '/'; n--) {
        run->folder[n - 1] = '\0';
    }
    TRY(base_join(ctx, run->folder, "checkpoint", &run->checkpoint));
    TRY(base_join(ctx, run->checkpoint, "result", &run->result));
    TRY(lock(run));
    *out = run;
    run = NULL;
done:
    psi_run_suspend(run);
    return status;
}

psi_status cluster_folder_begin(psi_run *run)
{
    psi_status status = PSI_OK;
    if (run->begun || run->resumed) return PSI_OK;
    TRY(base_remove_whole(run->ctx, run->checkpoint));
    TRY(make_folder(run->ctx, run->checkpoint));
    run->begun = true;
    TRY(make_folder(run->ctx, run->result));
    // from now on files can be moved here and found again after a power failure
    TRY(base_sync(run->ctx, run->checkpoint));
    TRY(base_sync(run->ctx, run->folder));
    if (run->made) TRY(base_sync_above(run->ctx, run->folder));
done:
    return status;
}

static psi_status refuse_foreign(const psi_run *run)
{
    return FAIL(run->ctx, PSI_EUSAGE, "%s exists already and is no run: choose another name",
                run->folder);
}

psi_status psi_run_new(psi_ctx *ctx, const char *folder, bool replace, psi_run **out)
{
    psi_status status = PSI_OK;
    psi_run *run = NULL;
    contents found;
    *out = NULL;
    TRY(run_open(ctx, folder, &run));
    TRY(look_into(run, &found));
    if (found.foreign) {
        status = refuse_foreign(run);
    } else if (found.checkpoint && !replace) {
        status = FAIL(ctx, PSI_EUSAGE,
                      "%s holds a run that was interrupted: --resume goes on with it, --replace "
                      "starts anew",
                      run->folder);
    } else if (found.manifest && !replace) {
        status = FAIL(ctx, PSI_EUSAGE, "%s exists already: choose another name, or add --replace",
                      run->folder);
    }
    if (status != PSI_OK) goto done;
    *out = run;
    run = NULL;
done:
    psi_run_discard(run);
    return status;
}

// What an interruption at the very end has left beside a run that is whole.
static psi_status tidy_up(const psi_run *run)
{
    psi_status status = PSI_OK;
    char *place = NULL;
    TRY(base_join(run->ctx, run->folder, "manifest.json", &place));
    TRY(base_remove_abandoned(run->ctx, place));
    TRY(base_remove_abandoned(run->ctx, run->checkpoint));
done:
    base_free(run->ctx, place);
    return status;
}

psi_status psi_run_resume(psi_ctx *ctx, const char *folder, psi_run **out)
{
    psi_status status = PSI_OK;
    psi_run *run = NULL;
    contents found;
    *out = NULL;
    TRY(run_open(ctx, folder, &run));
    TRY(look_into(run, &found));
    if (found.checkpoint || found.manifest) {
        run->resumed = true;
        run->finished = (found.ready && !found.stopped) || !found.checkpoint;
        if (found.ready) TRY(cluster_folder_publish(run));
        if (run->finished) TRY(tidy_up(run));
    } else if (found.foreign) {
        TRY(refuse_foreign(run));
    }
    *out = run;
    run = NULL;
done:
    psi_run_discard(run);
    return status;
}

void psi_run_suspend(psi_run *run)
{
    if (!run) return;
    if (run->lock >= 0) close(run->lock);
    base_free(run->ctx, run->result);
    base_free(run->ctx, run->checkpoint);
    base_free(run->ctx, run->folder);
    base_free(run->ctx, run);
}

void psi_run_discard(psi_run *run)
{
    if (!run) return;
    if (run->begun && !run->resumed) (void)base_remove_whole(run->ctx, run->checkpoint);
    if (run->made && !run->resumed) (void)rmdir(run->folder);
    psi_run_suspend(run);
}

bool psi_run_finished(const psi_run *run)
{
    return run->finished;
}

double psi_run_seconds(const psi_run *run)
{
    return run->spent + base_seconds() - run->started;
}

psi_status cluster_folder_path(const psi_run *run, const char *name, char **out)
{
    return base_join(run->ctx, run->checkpoint, name, out);
}

psi_status cluster_folder_result(const psi_run *run, const char *name, char **out)
{
    return base_join(run->ctx, run->result, name, out);
}

// ---- the same start ---------------------------------------------------------------------------

static const char *as_text(const json_t *value, char *buffer, size_t size)
{
    const size_t length = json_dumpb(value, buffer, size - 1,
                                     JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(6));
    buffer[length < size ? length : 0] = '\0';
    return buffer;
}

static psi_status compare(const psi_run *run, const json_t *wanted, const json_t *found)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)wanted, key, value)
    {
        const json_t *other = json_object_get(found, key);
        char ours[64], theirs[64];
        if (json_is_object(value)) {
            const psi_status status = compare(run, value, other);
            if (status != PSI_OK) return status;
        } else if (!other || !json_equal(value, other)) {
            return FAIL(run->ctx, PSI_EUSAGE,
                        "%s was started with %s %s, not %s: a run is resumed as it was started",
                        run->folder, key, other ? as_text(other, theirs, sizeof theirs) : "unknown",
                        as_text(value, ours, sizeof ours));
        }
    }
    return PSI_OK;
}

psi_status cluster_folder_start(psi_run *run, const json_t *start)
{
    psi_status status = PSI_OK;
    char *path = NULL;
    json_t *found = NULL;
    TRY(base_json_made(run->ctx, start));
    TRY(cluster_folder_begin(run));
    TRY(cluster_folder_path(run, "start.json", &path));
    if (run->resumed) {
        TRY(base_json_load(run->ctx, path, START_LIMIT, &found));
        TRY(compare(run, start, found));
    } else {
        TRY(base_json_save(run->ctx, path, start));
    }
done:
    json_decref(found);
    base_free(run->ctx, path);
    return status;
}
