// A finished run takes its place: the files of its result are moved, or copied where the run is to
// be gone on from, and what an older run has left there goes.
#include "run/folder.h"

#include "base/context.h"
#include "base/file.h"
#include "run/checksums.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_listed(const json_t *files, const char *name)
{
    for (size_t i = 0; i < json_array_size(files); i++) {
        if (strcmp(json_string_value(json_array_get(files, i)), name) == 0) return true;
    }
    return false;
}

// The manifest of an older run goes into the checkpoint, where it still says which files were that
// run's, should we be interrupted. *files is its list; NULL if there was no older run.
static psi_status set_aside(const psi_run_folder *folder, json_t **older, const json_t **files)
{
    psi_status status = PSI_OK;
    char *place = NULL, *aside = NULL;
    *older = NULL;
    TRY(base_join(folder->ctx, folder->path, "manifest.json", &place));
    TRY(run_folder_path(folder, "replaced.json", &aside));
    if (run_folder_has(folder->path, "manifest.json")) {
        TRY(run_folder_manifest(folder->ctx, folder->path, "manifest.json", older));
        if (!*older) {
            status = FAIL(folder->ctx, PSI_EUSAGE,
                          "%s was not written by psifold, and is not replaced", place);
            goto done;
        }
        if (rename(place, aside) != 0) {
            status = FAIL(folder->ctx, PSI_EIO, "%s: cannot set aside: %s", place, strerror(errno));
            goto done;
        }
        // no file may be gone from the disk before the manifest that lists it
        TRY(base_sync(folder->ctx, folder->checkpoint));
        TRY(base_sync(folder->ctx, folder->path));
    } else {
        TRY(run_folder_manifest(folder->ctx, folder->checkpoint, "replaced.json", older));
    }
    *files = json_object_get(*older, "files");
done:
    base_free(folder->ctx, aside);
    base_free(folder->ctx, place);
    return status;
}

static psi_status remove_file(const psi_run_folder *folder, const char *name)
{
    char *path;
    const psi_status status = base_join(folder->ctx, folder->path, name, &path);
    if (status != PSI_OK) return status;
    (void)unlink(path); // a file or a link; a folder of that name is nothing a run has made
    base_free(folder->ctx, path);
    return PSI_OK;
}

// Two names of one file: a move that was interrupted where moving means linking and removing.
static bool are_one(const char *a, const char *b)
{
    struct stat first, second;
    return lstat(a, &first) == 0 && lstat(b, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

static psi_status copy_bytes(psi_ctx *ctx, int from, base_output *to)
{
    enum { AT_ONCE = 1 << 18 };
    psi_status status = PSI_OK;
    char *bytes = NULL;
    ssize_t n;
    TRY(base_alloc(ctx, AT_ONCE, 1, &bytes));
    while ((n = read(from, bytes, AT_ONCE)) > 0) TRY(base_output_write(to, bytes, (size_t)n));
    if (n < 0) status = FAIL(ctx, PSI_EIO, "cannot read a file of the run: %s", strerror(errno));
done:
    base_free(ctx, bytes);
    return status;
}

// Whether a file has the checksum that a manifest knows it by.
static psi_status is_known(psi_ctx *ctx, const json_t *manifest, const char *name, const char *path,
                           bool *out)
{
    json_t *sums = json_object();
    psi_status status = PSI_OK;
    TRY(base_json_made(ctx, sums));
    TRY(run_checksums_add(ctx, sums, name, path));
    *out = json_equal(json_object_get(sums, name),
                      json_object_get(json_object_get(manifest, "checksums"), name));
done:
    json_decref(sums);
    return status;
}

// Moves a file to its place. Only one that the older run listed may be in the way.
static psi_status put_in_place(const psi_run_folder *folder, const char *from, const char *name,
                               bool replace)
{
    psi_status status = PSI_OK;
    char *to = NULL;
    TRY(base_join(folder->ctx, folder->path, name, &to));
    if ((replace ? rename(from, to) : base_rename_new(from, to)) == 0) goto done;
    const int reason = errno;
    if (reason == ENOENT && run_folder_has(folder->path, name))
        goto done; // moved before we were interrupted
    if (reason == EEXIST && are_one(from, to)) {
        (void)unlink(from);
    } else if (reason == EEXIST) {
        status = FAIL(folder->ctx, PSI_EUSAGE,
                      "%s is in the way and belongs to no run: move it away, and --resume puts the "
                      "result in place",
                      to);
    } else {
        status = FAIL(folder->ctx, PSI_EIO, "%s: cannot put in place: %s", to, strerror(reason));
    }
done:
    base_free(folder->ctx, to);
    return status;
}

static psi_status move_out(const psi_run_folder *folder, const char *name, bool replace)
{
    psi_status status = PSI_OK;
    char *from = NULL;
    TRY(run_folder_result(folder, name, &from));
    TRY(put_in_place(folder, from, name, replace));
done:
    base_free(folder->ctx, from);
    return status;
}

// A run that is gone on from keeps what it has. A copy may be there since we were interrupted.
static psi_status copy_out(const psi_run_folder *folder, const json_t *manifest, const char *name,
                           bool replace)
{
    psi_status status = PSI_OK;
    char *from = NULL, *to = NULL, *copy = NULL;
    base_output *output = NULL;
    int fd = -1;
    uint64_t size;
    bool there = false;
    TRY(run_folder_result(folder, name, &from));
    TRY(run_folder_path(folder, "copy", &copy));
    TRY(base_join(folder->ctx, folder->path, name, &to));
    if (run_folder_has(folder->path, name)) TRY(is_known(folder->ctx, manifest, name, to, &there));
    if (there) goto done;
    TRY(base_open_file(folder->ctx, from, &fd, &size));
    TRY(base_output_open(folder->ctx, copy, BASE_FILE, true, &output));
    TRY(copy_bytes(folder->ctx, fd, output));
    status = base_output_commit(output);
    output = NULL;
    TRY(status);
    TRY(put_in_place(folder, copy, name, replace));
done:
    base_output_discard(output);
    if (fd >= 0) close(fd);
    base_free(folder->ctx, to);
    base_free(folder->ctx, copy);
    base_free(folder->ctx, from);
    return status;
}

// Where a file of the result is: moved already, or not.
static psi_status add_checksum(const psi_run_folder *folder, json_t *sums, const char *name)
{
    psi_status status = PSI_OK;
    char *path = NULL;
    TRY(base_join(folder->ctx, run_folder_has(folder->result, name) ? folder->result : folder->path,
                  name, &path));
    TRY(run_checksums_add(folder->ctx, sums, name, path));
done:
    base_free(folder->ctx, path);
    return status;
}

static psi_status add_checksums(const psi_run_folder *folder, json_t *manifest)
{
    const json_t *files = json_object_get(manifest, "files");
    json_t *sums = json_object();
    psi_status status = PSI_OK;
    TRY(base_json_made(folder->ctx, sums));
    for (size_t i = 0; i < json_array_size(files); i++) {
        TRY(add_checksum(folder, sums, json_string_value(json_array_get(files, i))));
    }
    TRY(base_json_made(folder->ctx,
                       json_object_set(manifest, "checksums", sums) == 0 ? sums : NULL));
done:
    json_decref(sums);
    return status;
}

// Nothing is left of a run that is whole, or the checkpoint of one that goes on.
static psi_status leave_checkpoint(const psi_run_folder *folder, bool stopped)
{
    psi_status status = PSI_OK;
    char *ready = NULL, *older = NULL;
    if (!stopped) return base_remove_whole(folder->ctx, folder->checkpoint);
    TRY(run_folder_result(folder, "manifest.json", &ready));
    TRY(run_folder_path(folder, "replaced.json", &older));
    base_remove(ready);
    base_remove(older);
    TRY(base_sync(folder->ctx, folder->result));
done:
    base_free(folder->ctx, older);
    base_free(folder->ctx, ready);
    return status;
}

psi_status run_folder_publish(psi_run_folder *folder)
{
    psi_status status = PSI_OK;
    char *place = NULL;
    json_t *manifest = NULL, *older = NULL;
    const json_t *older_files = NULL;
    TRY(run_folder_manifest(folder->ctx, folder->result, "manifest.json", &manifest));
    if (!manifest) {
        status = FAIL(folder->ctx, PSI_EFORMAT, "%s/manifest.json is not the manifest of a run",
                      folder->result);
        goto done;
    }
    const json_t *files = json_object_get(manifest, "files");
    const bool stopped = run_folder_stopped(manifest);
    TRY(add_checksums(folder, manifest));
    TRY(set_aside(folder, &older, &older_files));
    for (size_t i = 0; i < json_array_size(older_files); i++) {
        const char *name = json_string_value(json_array_get(older_files, i));
        if (!is_listed(files, name)) TRY(remove_file(folder, name));
    }
    for (size_t i = 0; i < json_array_size(files); i++) {
        const char *name = json_string_value(json_array_get(files, i));
        const bool replace = is_listed(older_files, name);
        TRY(stopped ? copy_out(folder, manifest, name, replace) : move_out(folder, name, replace));
    }
    TRY(base_sync(folder->ctx, folder->path));
    TRY(base_join(folder->ctx, folder->path, "manifest.json", &place));
    TRY(base_json_save(folder->ctx, place, manifest)); // a copy: until it is there we are not done
    TRY(leave_checkpoint(folder, stopped));
done:
    json_decref(older);
    json_decref(manifest);
    base_free(folder->ctx, place);
    return status;
}
