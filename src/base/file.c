#include "base/file.h"

#include "base/context.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

struct base_output {
    psi_ctx *ctx;
    base_output_kind kind;
    bool replace;
    int fd;   // of a file; −1 for a folder
    int lock; // on the folder that holds the temporary file or folder
    char *target, *folder, *temporary;
};

static psi_status fail_on(psi_ctx *ctx, const char *what, const char *path)
{
    return FAIL(ctx, errno == ENOMEM ? PSI_ENOMEM : PSI_EIO, "%s: cannot %s: %s", path, what,
                strerror(errno));
}

psi_status base_join(psi_ctx *ctx, const char *folder, const char *name, char **out)
{
    *out = NULL;
    if (!folder || !name) return FAIL(ctx, PSI_EUSAGE, "the path of a file or folder is NULL");
    const size_t size = strlen(folder) + strlen(name) + 2;
    const psi_status status = base_alloc(ctx, size, 1, out);
    if (status == PSI_OK) snprintf(*out, size, "%s/%s", folder, name);
    return status;
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

// ---- names of temporary folders ---------------------------------------------------------------

enum { RANDOM_BYTES = 8, RANDOM_DIGITS = 2 * RANDOM_BYTES };

static const char MARK[] = ".tmp-"; // between the target's name and the random digits

static const char *last_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool is_temporary_of(const char *name, const char *target)
{
    const size_t length = strlen(target);
    if (strncmp(name, target, length) != 0) return false;
    name += length;
    if (strncmp(name, MARK, sizeof MARK - 1) != 0) return false;
    name += sizeof MARK - 1;
    return strspn(name, "0123456789abcdef") == RANDOM_DIGITS && name[RANDOM_DIGITS] == '\0';
}

// The folder, locked; or −1, if there is none or a living process has the lock.
static int lock_folder(const char *path)
{
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return -1;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
    close(fd);
    return -1;
}

// Removes what processes that died while they wrote this target have left. Where the file system
// knows no locks, nobody can be known to be dead, and nothing is removed.
psi_status base_remove_abandoned(psi_ctx *ctx, const char *target)
{
    psi_status status = PSI_OK;
    char *folder = NULL, *path = NULL;
    const char *name = last_name(target);
    const size_t above = (size_t)(name - target);
    DIR *entries = NULL;
    TRY(base_copy_text(ctx, above ? target : ".", &folder));
    if (above) folder[above] = '\0';
    entries = opendir(folder);
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        if (!is_temporary_of(entry->d_name, name)) continue;
        TRY(base_join(ctx, folder, entry->d_name, &path));
        const int lock = lock_folder(path);
        if (lock >= 0) {
            base_remove(path);
            close(lock);
        }
        base_free(ctx, path);
        path = NULL;
    }
done:
    if (entries) closedir(entries);
    base_free(ctx, path);
    base_free(ctx, folder);
    return status;
}

static psi_status choose_name(psi_ctx *ctx, const char *target, char *digits)
{
    unsigned char bytes[RANDOM_BYTES];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes) {
        return fail_on(ctx, "choose a temporary name for", target);
    }
    for (size_t b = 0; b < RANDOM_BYTES; b++) snprintf(digits + 2 * b, 3, "%02x", bytes[b]);
    return PSI_OK;
}

// TARGET.tmp-, with room for the digits; *digits is where they go.
static psi_status start_name(psi_ctx *ctx, const char *target, char **out, char **digits)
{
    const size_t start = strlen(target) + sizeof MARK - 1;
    const psi_status status = base_alloc(ctx, start + RANDOM_DIGITS + 1, 1, out);
    if (status != PSI_OK) return status;
    snprintf(*out, start + 1, "%s%s", target, MARK);
    *digits = *out + start;
    return PSI_OK;
}

psi_status base_remove_whole(psi_ctx *ctx, const char *path)
{
    psi_status status = PSI_OK;
    char *aside = NULL, *digits;
    TRY(base_remove_abandoned(ctx, path));
    TRY(start_name(ctx, path, &aside, &digits));
    TRY(choose_name(ctx, path, digits));
    if (rename(path, aside) == 0) {
        // otherwise a power failure might find the old name with half of what was there
        if (sync_parent(aside) != 0) status = fail_on(ctx, "bring to disk the folder of", path);
        base_remove(aside);
    } else if (errno != ENOENT) {
        status = fail_on(ctx, "remove", path);
    }
done:
    base_free(ctx, aside);
    return status;
}

// Between making and locking the folder it looks abandoned, and another process may remove it: then
// the next name is tried.
static psi_status make_temporary(base_output *output)
{
    enum { TRIES = 100 };
    psi_ctx *ctx = output->ctx;
    char *digits;
    psi_status status = start_name(ctx, output->target, &output->folder, &digits);
    if (status != PSI_OK) return status;
    for (int i = 0; i < TRIES; i++) {
        status = choose_name(ctx, output->target, digits);
        if (status != PSI_OK) return status;
        if (mkdir(output->folder, 0700) != 0) {
            if (errno == EEXIST) continue;
            return fail_on(ctx, "make the folder", output->folder);
        }
        output->lock = open(output->folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (output->lock < 0 && errno != ENOENT) {
            return fail_on(ctx, "open", output->folder);
        }
        struct stat info;
        if (output->lock >= 0) {
            const bool taken = flock(output->lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
            if (!taken && lstat(output->folder, &info) == 0) return PSI_OK;
            close(output->lock);
            output->lock = -1;
        }
    }
    return FAIL(ctx, PSI_EIO, "%s: no temporary name is free", output->target);
}

// ---- writing ----------------------------------------------------------------------------------

static psi_status check_target(psi_ctx *ctx, const char *path, base_output_kind kind, bool replace)
{
    struct stat info;
    const char *name = last_name(path);
    if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
        return FAIL(ctx, PSI_EUSAGE, "'%s' is not a name under which something can be written",
                    path);
    }
    if (lstat(path, &info) != 0) return PSI_OK;
    if (!replace) {
        return FAIL(ctx, PSI_EUSAGE, "%s exists already: choose another name, or remove it", path);
    }
    if (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode) && !S_ISLNK(info.st_mode)) {
        return FAIL(ctx, PSI_EUSAGE, "%s is a device, a pipe or a socket, and is not replaced",
                    path);
    }
    if (kind == BASE_FILE && S_ISDIR(info.st_mode)) {
        return FAIL(ctx, PSI_EUSAGE, "%s is a folder, and is not replaced by a file", path);
    }
    return PSI_OK;
}

psi_status base_output_open(psi_ctx *ctx, const char *path, base_output_kind kind, bool replace,
                            base_output **out)
{
    psi_status status = PSI_OK;
    base_output *output = NULL;
    *out = NULL;
    TRY(base_alloc_zero(ctx, 1, sizeof *output, &output));
    *output = (base_output){.ctx = ctx, .kind = kind, .replace = replace, .fd = -1, .lock = -1};
    TRY(base_copy_text(ctx, path, &output->target));
    for (size_t n = strlen(output->target); n > 1 && output->target[n - 1] == '/'; n--) {
        output->target[n - 1] = '\0';
    }
    TRY(check_target(ctx, output->target, kind, replace));
    TRY(base_remove_abandoned(ctx, output->target));
    TRY(make_temporary(output));
    TRY(base_join(ctx, output->folder, last_name(output->target), &output->temporary));
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

psi_status base_output_beside(const base_output *output, const char *name, char **out)
{
    return base_join(output->ctx, output->folder, name, out);
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

// ---- taking the place -------------------------------------------------------------------------

psi_status base_sync(psi_ctx *ctx, const char *path)
{
    return sync_path(path) == 0 ? PSI_OK : fail_on(ctx, "bring to disk", path);
}

psi_status base_sync_above(psi_ctx *ctx, const char *path)
{
    char *copy;
    psi_status status = base_copy_text(ctx, path, &copy);
    if (status != PSI_OK) return status;
    if (sync_parent(copy) != 0) status = fail_on(ctx, "bring to disk the folder of", path);
    base_free(ctx, copy);
    return status;
}

static bool cannot_rename_so(int reason)
{
    return reason == EINVAL || reason == ENOSYS || reason == EOPNOTSUPP;
}

int base_rename_new(const char *from, const char *to)
{
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return 0;
    if (!cannot_rename_so(errno)) return -1;
    if (link(from, to) == 0) return unlink(from);
    if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS) return -1;
    // no links either: whoever creates the name may replace it
    const int fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) return -1;
    close(fd);
    if (rename(from, to) == 0) return 0;
    const int reason = errno;
    (void)unlink(to);
    errno = reason;
    return -1;
}

// A folder can be renamed onto an empty one, but not onto one in which there is something.
static int rename_new_folder(const char *from, const char *to)
{
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return 0;
    if (!cannot_rename_so(errno) || mkdir(to, 0777) != 0) return -1;
    if (rename(from, to) == 0) return 0;
    const int reason = errno;
    (void)rmdir(to);
    errno = reason;
    return -1;
}

// A folder cannot be renamed onto one that has something in it: the two change places, and the old
// one is removed with the temporary folder. Where the file system cannot do that in one step, the
// old one steps aside first.
static int rename_folder(const base_output *output)
{
    if (rename(output->temporary, output->target) == 0) return 0;
    if (errno != ENOTEMPTY && errno != EEXIST && errno != ENOTDIR) return -1;
    if (renameat2(AT_FDCWD, output->temporary, AT_FDCWD, output->target, RENAME_EXCHANGE) == 0) {
        return 0;
    }
    if (!cannot_rename_so(errno)) return -1;
    char aside[4096];
    const int length = snprintf(aside, sizeof aside, "%s.old", output->temporary);
    if (length < 0 || (size_t)length >= sizeof aside) {
        errno = ENAMETOOLONG;
        return -1;
    }
    if (rename(output->target, aside) != 0) return -1;
    if (rename(output->temporary, output->target) == 0) return 0;
    const int reason = errno;
    (void)rename(aside, output->target);
    errno = reason;
    return -1;
}

static int put_in_place(const base_output *output)
{
    const bool folder = output->kind == BASE_FOLDER;
    if (output->replace) {
        return folder ? rename_folder(output) : rename(output->temporary, output->target);
    }
    return folder ? rename_new_folder(output->temporary, output->target)
                  : base_rename_new(output->temporary, output->target);
}

psi_status base_output_commit(base_output *output)
{
    psi_status status = PSI_OK;
    psi_ctx *ctx = output->ctx;
    // by name: another library may have replaced the file that we opened
    if (base_sync_tree(output->temporary) != 0) {
        status = fail_on(ctx, "bring to disk", output->target);
    } else if (put_in_place(output) != 0) {
        const bool appeared = !output->replace && (errno == EEXIST || errno == ENOTEMPTY);
        status = appeared ? FAIL(ctx, PSI_EUSAGE,
                                 "%s appeared while it was being written; it is left as it is",
                                 output->target)
                          : fail_on(ctx, "put in place", output->target);
    } else if (sync_parent(output->target) != 0) {
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
    if (output->lock >= 0) {
        base_remove(output->folder);
        close(output->lock); // after the folder: without the lock it would be anybody's to remove
    }
    base_free(ctx, output->temporary);
    base_free(ctx, output->folder);
    base_free(ctx, output->target);
    base_free(ctx, output);
}

// ---- reading ----------------------------------------------------------------------------------

psi_status base_open_file(psi_ctx *ctx, const char *path, int *fd, uint64_t *size)
{
    psi_status status = PSI_OK;
    struct stat info;
    *size = 0;
    *fd = -1;
    if (!path) return FAIL(ctx, PSI_EUSAGE, "the path of a file is NULL");
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); // a pipe would block
    if (*fd < 0) {
        // a socket, or a device without a driver
        if (errno == ENXIO) return FAIL(ctx, PSI_EIO, "%s is not a file", path);
        return fail_on(ctx, "open", path);
    }
    if (fstat(*fd, &info) != 0) {
        status = fail_on(ctx, "look at", path);
    } else if (!S_ISREG(info.st_mode)) {
        status = FAIL(ctx, PSI_EIO, "%s is not a file", path);
    } else {
        *size = (uint64_t)info.st_size;
    }
    if (status != PSI_OK) {
        close(*fd);
        *fd = -1;
    }
    return status;
}

bool base_is_there(const char *path)
{
    struct stat info;
    return path && lstat(path, &info) == 0;
}

psi_status base_read_file(psi_ctx *ctx, const char *path, size_t limit, char **bytes, size_t *size)
{
    psi_status status = PSI_OK;
    *bytes = NULL;
    *size = 0;
    char *block = NULL;
    int fd;
    uint64_t total;
    TRY(base_open_file(ctx, path, &fd, &total));
    if (total > limit) {
        status = FAIL(ctx, PSI_ELIMIT, "%s has %llu bytes, more than the %zu expected here", path,
                      (unsigned long long)total, limit);
        goto done;
    }
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
    if (fd >= 0) close(fd);
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
