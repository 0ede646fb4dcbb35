#include "base/file.h"

#include "base/context.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct base_output {
    psi_ctx *ctx;
    base_output_kind kind;
    bool replace;
    int fd; // of a file; −1 for a folder
    char *target, *temporary;
};

static psi_status fail_on(psi_ctx *ctx, const char *what, const char *path)
{
    return FAIL(ctx, errno == ENOMEM ? PSI_ENOMEM : PSI_EIO, "%s: cannot %s: %s", path, what,
                strerror(errno));
}

psi_status base_join(psi_ctx *ctx, const char *folder, const char *name, char **out)
{
    const size_t size = strlen(folder) + strlen(name) + 2;
    const psi_status status = base_alloc(ctx, size, 1, out);
    if (status == PSI_OK) snprintf(*out, size, "%s/%s", folder, name);
    return status;
}

psi_status base_output_open(psi_ctx *ctx, const char *path, base_output_kind kind, bool replace,
                            base_output **out)
{
    psi_status status = PSI_OK;
    base_output *output = NULL;
    *out = NULL;
    struct stat info;
    if (!replace && lstat(path, &info) == 0) {
        return FAIL(ctx, PSI_EUSAGE, "%s exists already: choose another name, or remove it", path);
    }
    TRY(base_alloc_zero(ctx, 1, sizeof *output, &output));
    *output = (base_output){.ctx = ctx, .kind = kind, .replace = replace, .fd = -1};
    TRY(base_copy_text(ctx, path, &output->target));
    for (size_t n = strlen(output->target); n > 1 && output->target[n - 1] == '/'; n--) {
        output->target[n - 1] = '\0';
    }
    const size_t size = strlen(output->target) + 32;
    TRY(base_alloc(ctx, size, 1, &output->temporary));
    snprintf(output->temporary, size, "%s.tmp-%ld", output->target, (long)getpid());
    base_remove(output->temporary); // left by a process of the same number that was killed
    if (kind == BASE_FOLDER) {
        if (mkdir(output->temporary, 0777) != 0) {
            status = fail_on(ctx, "make the folder", output->temporary);
        }
    } else {
        output->fd = open(output->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (output->fd < 0) status = fail_on(ctx, "create", output->temporary);
    }
    if (status != PSI_OK) goto done;
    *out = output;
    output = NULL;
done:
    base_output_discard(output);
    return status;
}

const char *base_output_path(const base_output *output)
{
    return output->temporary;
}

psi_status base_output_write(base_output *output, const void *bytes, size_t size)
{
    const char *next = bytes;
    while (size > 0) {
        const ssize_t written = write(output->fd, next, size);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return fail_on(output->ctx, "write", output->target);
        next += written;
        size -= (size_t)written;
    }
    return PSI_OK;
}

static int sync_path(const char *path)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    const int failed = fsync(fd);
    const int reason = errno;
    close(fd);
    errno = reason;
    return failed;
}

psi_status base_sync(psi_ctx *ctx, const char *path)
{
    return sync_path(path) == 0 ? PSI_OK : fail_on(ctx, "bring to disk", path);
}

// Calls visit for every entry of a folder, deepest first, and for the folder itself.
static int walk(const char *path, int (*visit)(const char *path, bool folder))
{
    struct stat info;
    if (lstat(path, &info) != 0) return errno == ENOENT ? 0 : -1;
    if (!S_ISDIR(info.st_mode)) return visit(path, false);
    DIR *folder = opendir(path);
    if (!folder) return -1;
    int failed = 0;
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        char inner[4096];
        const int length = snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
        if (length < 0 || (size_t)length >= sizeof inner) {
            errno = ENAMETOOLONG;
            failed = -1;
        } else if (walk(inner, visit) != 0) {
            failed = -1;
        }
    }
    const int reason = errno;
    closedir(folder);
    errno = reason;
    return visit(path, true) != 0 ? -1 : failed;
}

static int sync_visit(const char *path, bool folder)
{
    (void)folder;
    return sync_path(path);
}

static int remove_visit(const char *path, bool folder)
{
    return folder ? rmdir(path) : unlink(path);
}

void base_remove(const char *path)
{
    (void)walk(path, remove_visit);
}

static int sync_parent(char *path)
{
    char *slash = strrchr(path, '/');
    if (!slash) return sync_path(".");
    if (slash == path) return sync_path("/");
    *slash = '\0';
    const int failed = sync_path(path);
    *slash = '/';
    return failed;
}

// A folder cannot be renamed onto one that has something in it: the two change places, and the old
// one is removed under the temporary name. Where the file system cannot do that in one step, the
// old one steps aside first.
static int rename_folder(base_output *output)
{
    if (rename(output->temporary, output->target) == 0) return 0;
    if (!output->replace || (errno != ENOTEMPTY && errno != EEXIST && errno != ENOTDIR)) return -1;
    if (renameat2(AT_FDCWD, output->temporary, AT_FDCWD, output->target, RENAME_EXCHANGE) == 0) {
        return 0;
    }
    if (errno != EINVAL && errno != ENOSYS) return -1;
    char aside[4096];
    const int length = snprintf(aside, sizeof aside, "%s.old", output->temporary);
    if (length < 0 || (size_t)length >= sizeof aside) return -1;
    if (rename(output->target, aside) != 0) return -1;
    if (rename(output->temporary, output->target) != 0) {
        (void)rename(aside, output->target);
        return -1;
    }
    base_remove(aside);
    return 0;
}

psi_status base_output_commit(base_output *output)
{
    psi_status status = PSI_OK;
    psi_ctx *ctx = output->ctx;
    if (output->kind == BASE_FOLDER) {
        if (walk(output->temporary, sync_visit) != 0) {
            status = fail_on(ctx, "bring to disk", output->target);
        } else if (rename_folder(output) != 0) {
            status = fail_on(ctx, "put in place", output->target);
        }
    } else if (sync_path(output->temporary) != 0) { // another library may have replaced the file
        status = fail_on(ctx, "bring to disk", output->target);
    } else if (rename(output->temporary, output->target) != 0) {
        status = fail_on(ctx, "put in place", output->target);
    }
    if (status == PSI_OK && sync_parent(output->target) != 0) {
        status = fail_on(ctx, "bring to disk the folder of", output->target);
    }
    base_output_discard(output);
    return status;
}

void base_output_discard(base_output *output)
{
    if (!output) return;
    psi_ctx *ctx = output->ctx;
    if (output->fd >= 0) close(output->fd);
    if (output->temporary) base_remove(output->temporary);
    base_free(ctx, output->temporary);
    base_free(ctx, output->target);
    base_free(ctx, output);
}

psi_status base_read_file(psi_ctx *ctx, const char *path, size_t limit, char **bytes, size_t *size)
{
    psi_status status = PSI_OK;
    *bytes = NULL;
    *size = 0;
    char *block = NULL;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return fail_on(ctx, "open", path);
    struct stat info;
    if (fstat(fd, &info) != 0) {
        status = fail_on(ctx, "look at", path);
        goto done;
    }
    if (!S_ISREG(info.st_mode)) {
        status = FAIL(ctx, PSI_EIO, "%s is not a file", path);
        goto done;
    }
    if ((uint64_t)info.st_size > limit) {
        status = FAIL(ctx, PSI_ELIMIT, "%s has %lld bytes, more than the %zu expected here", path,
                      (long long)info.st_size, limit);
        goto done;
    }
    const size_t total = (size_t)info.st_size;
    TRY(base_alloc(ctx, total + 1, 1, &block));
    size_t done = 0;
    while (done < total) {
        const ssize_t got = read(fd, block + done, total - done);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            status = fail_on(ctx, "read", path);
            goto done;
        }
        if (got == 0) break; // shortened while we read it
        done += (size_t)got;
    }
    block[done] = '\0';
    *bytes = block;
    *size = done;
    block = NULL;
done:
    base_free(ctx, block);
    close(fd);
    return status;
}

psi_status base_make_folders(psi_ctx *ctx, const char *path)
{
    char *part;
    psi_status status = base_copy_text(ctx, path, &part);
    if (status != PSI_OK) return status;
    for (char *slash = part; status == PSI_OK && slash;) {
        slash = strchr(slash + 1, '/');
        if (slash) *slash = '\0';
        if (*part && mkdir(part, 0777) != 0 && errno != EEXIST) {
            status = fail_on(ctx, "make the folder", part);
        }
        if (slash) *slash = '/';
    }
    base_free(ctx, part);
    return status;
}
