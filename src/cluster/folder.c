#include "cluster/folder.h"

#include "base/context.h"
#include "base/file.h"
#include "base/progress.h"

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
    bool exists, is_folder;
    bool manifest;   // a finished run
    bool checkpoint; // one that was interrupted, or is under way
    bool ready;      // … with nothing left but to put it in place
    bool foreign;    // things that no run has put there
} contents;

static bool has(const char *folder, const char *name)
{
    char path[4096];
    struct stat info;
    const int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    return length > 0 && (size_t)length < sizeof path && lstat(path, &info) == 0;
}

static contents look_into(const char *folder)
{
    contents found = {0};
    struct stat info;
    if (stat(folder, &info) != 0) return found;
    found.exists = true;
    found.is_folder = S_ISDIR(info.st_mode);
    if (!found.is_folder) return found;
    found.manifest = has(folder, "manifest.json");
    found.checkpoint = has(folder, "checkpoint/start.json");
    found.ready = found.checkpoint && has(folder, "checkpoint/result/manifest.json");
    DIR *entries = opendir(folder);
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        const char *name = entry->d_name;
        const bool ours = strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
                          strcmp(name, "checkpoint") == 0 || found.manifest;
        found.foreign |= !ours;
    }
    if (entries) closedir(entries);
    // without a manifest for a moment: a result is being put in place
    if (found.ready) found.foreign = false;
    return found;
}

psi_status cluster_folder_check_finished(psi_ctx *ctx, const char *folder)
{
    const contents found = look_into(folder);
    if (!found.checkpoint || found.manifest) return PSI_OK;
    return FAIL(ctx, PSI_EMISSING,
                "%s is a run that was interrupted, or is still under way: 'psifold cluster FILE -o "
                "%s --resume' finishes it",
                folder, folder);
}

// ---- opening ----------------------------------------------------------------------------------

static psi_status make_folder(psi_ctx *ctx, const char *path)
{
    if (mkdir(path, 0777) == 0) return PSI_OK;
    return FAIL(ctx, PSI_EIO, "%s: cannot make the folder: %s", path, strerror(errno));
}

// One process at a time. Where the file system knows no locks, there is nothing to be asked.
static psi_status lock(psi_run *run)
{
    run->lock = open(run->checkpoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (run->lock < 0) {
        return FAIL(run->ctx, PSI_EIO, "%s: cannot open: %s", run->checkpoint, strerror(errno));
    }
    if (flock(run->lock, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return PSI_OK;
    close(run->lock);
    run->lock = -1;
    return FAIL(run->ctx, PSI_EUSAGE, "another process is working on %s", run->folder);
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
    *out = run;
    run = NULL;
done:
    psi_run_suspend(run);
    return status;
}

// An empty checkpoint in a folder in which nothing else works.
static psi_status begin(psi_run *run, const contents *found)
{
    psi_status status = PSI_OK;
    if (!found->exists) {
        TRY(make_folder(run->ctx, run->folder));
        run->made = true;
    }
    if (found->checkpoint) TRY(lock(run));
    base_remove(run->checkpoint);
    if (run->lock >= 0) close(run->lock);
    run->lock = -1;
    TRY(make_folder(run->ctx, run->checkpoint));
    TRY(lock(run));
    TRY(make_folder(run->ctx, run->result));
done:
    return status;
}

psi_status psi_run_new(psi_ctx *ctx, const char *folder, bool replace, psi_run **out)
{
    psi_status status = PSI_OK;
    psi_run *run = NULL;
    *out = NULL;
    TRY(run_open(ctx, folder, &run));
    const contents found = look_into(run->folder);
    if (found.checkpoint && !replace) {
        status = FAIL(ctx, PSI_EUSAGE,
                      "%s holds a run that was interrupted: --resume goes on with it, --replace "
                      "starts anew",
                      run->folder);
    } else if (found.manifest && !replace) {
        status = FAIL(ctx, PSI_EUSAGE, "%s exists already: choose another name, or add --replace",
                      run->folder);
    } else if (found.exists && (!found.is_folder || found.foreign)) {
        status = FAIL(ctx, PSI_EUSAGE, "%s exists already and is no run: choose another name",
                      run->folder);
    }
    if (status != PSI_OK) goto done;
    TRY(begin(run, &found));
    *out = run;
    run = NULL;
done:
    psi_run_discard(run);
    return status;
}

psi_status psi_run_resume(psi_ctx *ctx, const char *folder, psi_run **out)
{
    psi_status status = PSI_OK;
    psi_run *run = NULL;
    *out = NULL;
    TRY(run_open(ctx, folder, &run));
    const contents found = look_into(run->folder);
    if (!found.checkpoint && !found.manifest) {
        psi_run_suspend(run);
        return psi_run_new(ctx, folder, false, out);
    }
    if (has(run->folder, "checkpoint")) TRY(lock(run));
    run->resumed = true;
    run->finished = found.ready || !found.checkpoint;
    if (found.ready) TRY(cluster_folder_publish(run));
    if (run->finished) base_remove(run->checkpoint); // interrupted while it was removed
    *out = run;
    run = NULL;
done:
    psi_run_suspend(run);
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

// start.json goes first: without it the rest is no checkpoint, should we be interrupted here.
static void remove_checkpoint(const psi_run *run)
{
    char start[4096];
    const int length = snprintf(start, sizeof start, "%s/start.json", run->checkpoint);
    if (length > 0 && (size_t)length < sizeof start) base_remove(start);
    base_remove(run->checkpoint);
}

void psi_run_discard(psi_run *run)
{
    if (!run) return;
    if (run->lock >= 0 && !run->resumed) {
        remove_checkpoint(run);
        if (run->made) (void)rmdir(run->folder);
    }
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

// ---- taking the place -------------------------------------------------------------------------

// Names in a manifest are hostile: only plain ones, as ours are.
static bool is_plain(const char *name)
{
    if (!name || !*name || *name == '.' || strcmp(name, "checkpoint") == 0) return false;
    const size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-._");
    return name[length] == '\0' && length < 128;
}

static bool is_listed(const json_t *files, const char *name)
{
    for (size_t i = 0; i < json_array_size(files); i++) {
        if (strcmp(json_string_value(json_array_get(files, i)), name) == 0) return true;
    }
    return false;
}

// Removes what an older run has left and the new one does not replace.
static void remove_others(const psi_run *run, const json_t *files)
{
    DIR *entries = opendir(run->folder);
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        const char *name = entry->d_name;
        char path[4096];
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, "checkpoint") == 0 ||
            is_listed(files, name)) {
            continue;
        }
        const int length = snprintf(path, sizeof path, "%s/%s", run->folder, name);
        if (length > 0 && (size_t)length < sizeof path) base_remove(path);
    }
    if (entries) closedir(entries);
}

static psi_status move_out(const psi_run *run, const char *name)
{
    psi_status status = PSI_OK;
    char *from = NULL, *to = NULL;
    TRY(cluster_folder_result(run, name, &from));
    TRY(base_join(run->ctx, run->folder, name, &to));
    // a file that is no longer there was moved before we were interrupted
    if (rename(from, to) != 0 && !(errno == ENOENT && has(run->folder, name))) {
        status = FAIL(run->ctx, PSI_EIO, "%s: cannot put in place: %s", to, strerror(errno));
    }
done:
    base_free(run->ctx, to);
    base_free(run->ctx, from);
    return status;
}

psi_status cluster_folder_publish(psi_run *run)
{
    psi_status status = PSI_OK;
    char *path = NULL, *place = NULL;
    json_t *manifest = NULL;
    TRY(cluster_folder_result(run, "manifest.json", &path));
    TRY(base_json_load(run->ctx, path, MANIFEST_LIMIT, &manifest));
    const json_t *files = json_object_get(manifest, "files");
    for (size_t i = 0; i < json_array_size(files); i++) {
        if (is_plain(json_string_value(json_array_get(files, i)))) continue;
        status =
            FAIL(run->ctx, PSI_EFORMAT, "%s: 'files' are not the names of a run's files", path);
        goto done;
    }
    TRY(base_join(run->ctx, run->folder, "manifest.json", &place));
    base_remove(place);
    remove_others(run, files);
    for (size_t i = 0; i < json_array_size(files); i++) {
        TRY(move_out(run, json_string_value(json_array_get(files, i))));
    }
    TRY(base_sync(run->ctx, run->folder));
    TRY(base_json_save(run->ctx, place, manifest)); // a copy: until it is there we are not done
    remove_checkpoint(run);
done:
    json_decref(manifest);
    base_free(run->ctx, place);
    base_free(run->ctx, path);
    return status;
}
