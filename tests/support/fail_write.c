// Loaded with LD_PRELOAD: the FAIL_WRITE_ATth call of write, pwrite, fsync or rename fails as on a
// full disk. With FAIL_WRITE_ON set all later ones fail, too. With FAIL_WRITE_KILL set the process
// is killed there instead, with FAIL_WRITE_STOP it is stopped (SIGSTOP) until somebody lets it go
// on; removing, making folders, linking and locking count as well then. FAIL_WRITE_COUNT names a
// file into which the number of calls is written at the end. FAIL_WRITE_PLAIN is a file system that
// knows no renameat2 with flags; with the value "links" it knows no links either. The
// FAIL_MEMORY_ATth block that realloc is asked for, which is how psifold asks, is refused;
// FAIL_MEMORY_COUNT is the file for their number.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEEN __attribute__((visibility("default")))

static atomic_long calls, blocks;

static bool refuse(void)
{
    const char *at = getenv("FAIL_WRITE_AT");
    const long number = atomic_fetch_add(&calls, 1) + 1;
    if (!at) return false;
    const long fail_at = atol(at);
    if (number != fail_at && !(number > fail_at && getenv("FAIL_WRITE_ON"))) return false;
    if (getenv("FAIL_WRITE_KILL")) kill(getpid(), SIGKILL);
    if (getenv("FAIL_WRITE_STOP")) {
        kill(getpid(), SIGSTOP);
        return false;
    }
    errno = ENOSPC;
    return true;
}

// What can only be interrupted.
static void pass(void)
{
    if (getenv("FAIL_WRITE_KILL") || getenv("FAIL_WRITE_STOP")) (void)refuse();
}

// The next function of that name, which is libc's.
static void find(const char *name, void *function)
{
    *(void **)function = dlsym(RTLD_NEXT, name);
}

SEEN void *realloc(void *block, size_t size)
{
    void *(*real)(void *, size_t);
    const char *at = getenv("FAIL_MEMORY_AT");
    find("realloc", &real);
    if (!block && atomic_fetch_add(&blocks, 1) + 1 == (at ? atol(at) : 0)) {
        errno = ENOMEM;
        return NULL;
    }
    return real(block, size);
}

SEEN ssize_t write(int fd, const void *bytes, size_t size)
{
    ssize_t (*real)(int, const void *, size_t);
    find("write", &real);
    if (fd > 2 && refuse()) return -1;
    return real(fd, bytes, size);
}

SEEN ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
    ssize_t (*real)(int, const void *, size_t, off_t);
    find("pwrite", &real);
    return refuse() ? -1 : real(fd, bytes, size, offset);
}

SEEN ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t offset)
{
    ssize_t (*real)(int, const void *, size_t, off64_t);
    find("pwrite64", &real);
    return refuse() ? -1 : real(fd, bytes, size, offset);
}

// stdio writes around the symbol write. A stream in memory is no file.
SEEN size_t fwrite(const void *bytes, size_t size, size_t n, FILE *file)
{
    size_t (*real)(const void *, size_t, size_t, FILE *);
    find("fwrite", &real);
    if (fileno(file) > 2 && refuse()) return 0;
    return real(bytes, size, n, file);
}

SEEN int fsync(int fd)
{
    int (*real)(int);
    find("fsync", &real);
    return refuse() ? -1 : real(fd);
}

SEEN int rename(const char *from, const char *to)
{
    int (*real)(const char *, const char *);
    find("rename", &real);
    return refuse() ? -1 : real(from, to);
}

SEEN int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags)
{
    int (*real)(int, const char *, int, const char *, unsigned);
    find("renameat2", &real);
    if (refuse()) return -1;
    if (flags && getenv("FAIL_WRITE_PLAIN")) {
        errno = EINVAL;
        return -1;
    }
    return real(from_folder, from, to_folder, to, flags);
}

SEEN int link(const char *from, const char *to)
{
    int (*real)(const char *, const char *);
    const char *plain = getenv("FAIL_WRITE_PLAIN");
    find("link", &real);
    pass();
    if (plain && strcmp(plain, "links") == 0) {
        errno = EPERM;
        return -1;
    }
    return real(from, to);
}

SEEN int flock(int fd, int operation)
{
    int (*real)(int, int);
    find("flock", &real);
    pass();
    return real(fd, operation);
}

SEEN int unlink(const char *path)
{
    int (*real)(const char *);
    find("unlink", &real);
    pass();
    return real(path);
}

SEEN int unlinkat(int folder, const char *path, int flags)
{
    int (*real)(int, const char *, int);
    find("unlinkat", &real);
    pass();
    return real(folder, path, flags);
}

SEEN int rmdir(const char *path)
{
    int (*real)(const char *);
    find("rmdir", &real);
    pass();
    return real(path);
}

SEEN int mkdir(const char *path, mode_t mode)
{
    int (*real)(const char *, mode_t);
    find("mkdir", &real);
    pass();
    return real(path, mode);
}

static void tell_one(const char *path, long number)
{
    ssize_t (*real)(int, const void *, size_t);
    find("write", &real);
    if (!path) return;
    char text[32];
    const int length = snprintf(text, sizeof text, "%ld\n", number);
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd >= 0 && real(fd, text, (size_t)length) < 0) errno = EIO;
    if (fd >= 0) close(fd);
}

__attribute__((destructor)) static void tell(void)
{
    tell_one(getenv("FAIL_WRITE_COUNT"), atomic_load(&calls));
    tell_one(getenv("FAIL_MEMORY_COUNT"), atomic_load(&blocks));
}
