// Loaded with LD_PRELOAD: tells a file (RECORD_WRITES/log) in which order names were made, moved
// and removed, files changed, and files and folders brought to disk, one line each. What a file
// held when it was brought to disk is kept beside, as RECORD_WRITES/<number of the line>.
// tests/faults/ power plays this back up to any line, and loses what the disk was free to lose.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEEN __attribute__((visibility("default")))

enum { PATH = 4096 };

static long lines;

// The next function of that name, which is libc's.
static void find(const char *name, void *function)
{
    *(void **)function = dlsym(RTLD_NEXT, name);
}

static int real_open(const char *path, int flags)
{
    int (*real)(const char *, int, ...);
    find("open", &real);
    return real(path, flags | O_CLOEXEC, 0666);
}

static void put(int fd, const char *bytes, size_t size)
{
    ssize_t (*real)(int, const void *, size_t);
    find("write", &real);
    if (fd < 0 || real(fd, bytes, size) != (ssize_t)size) abort();
}

static void tell(const char *what, const char *path, const char *other)
{
    char name[PATH], line[3 * PATH];
    const char *folder = getenv("RECORD_WRITES");
    if (!folder) return;
    const int reason = errno;
    snprintf(name, sizeof name, "%s/log", folder);
    const int fd = real_open(name, O_WRONLY | O_CREAT | O_APPEND);
    const int length = snprintf(line, sizeof line, "%s\t%s\t%s\n", what, path, other);
    put(fd, line, (size_t)length);
    close(fd);
    lines++;
    errno = reason;
}

static void path_of(int fd, char path[PATH])
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(link, path, PATH - 1);
    path[length > 0 ? length : 0] = '\0';
}

// "folder of the descriptor/name", or the name where it stands for itself.
static void resolve(int folder, const char *name, char path[PATH])
{
    char above[PATH] = "";
    if (name[0] == '/') {
        snprintf(path, PATH, "%s", name);
        return;
    }
    if (folder == AT_FDCWD) {
        if (!getcwd(above, sizeof above)) abort();
    } else {
        path_of(folder, above);
    }
    if (snprintf(path, PATH, "%s/%s", above, name) >= PATH) abort();
}

static void keep_content(const char *path)
{
    char name[PATH], bytes[65536];
    ssize_t got;
    snprintf(name, sizeof name, "%s/%ld", getenv("RECORD_WRITES"), lines);
    const int from = real_open(path, O_RDONLY), to = real_open(name, O_WRONLY | O_CREAT);
    while ((got = read(from, bytes, sizeof bytes)) > 0) put(to, bytes, (size_t)got);
    close(from);
    close(to);
}

static void changed(int fd)
{
    char path[PATH];
    struct stat info;
    if (fd <= 2 || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return;
    path_of(fd, path);
    tell("change", path, "");
}

SEEN ssize_t write(int fd, const void *bytes, size_t size)
{
    ssize_t (*real)(int, const void *, size_t);
    find("write", &real);
    const ssize_t written = real(fd, bytes, size);
    changed(fd);
    return written;
}

SEEN ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
    ssize_t (*real)(int, const void *, size_t, off_t);
    find("pwrite", &real);
    const ssize_t written = real(fd, bytes, size, offset);
    changed(fd);
    return written;
}

SEEN ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t offset)
{
    return pwrite(fd, bytes, size, offset);
}

SEEN int ftruncate(int fd, off_t size)
{
    int (*real)(int, off_t);
    find("ftruncate", &real);
    const int failed = real(fd, size);
    changed(fd);
    return failed;
}

static int opened(int folder, const char *name, int flags, mode_t mode)
{
    int (*real)(int, const char *, int, ...);
    char path[PATH];
    struct stat info;
    find("openat", &real);
    resolve(folder, name, path);
    const int is_new = (flags & O_CREAT) && lstat(path, &info) != 0;
    const int fd = real(folder, name, flags, mode);
    if (fd >= 0 && is_new) tell("create", path, "");
    if (fd >= 0 && !is_new && (flags & O_TRUNC)) tell("change", path, "");
    return fd;
}

#define MODE(flags)                                                                                \
    mode_t mode = 0;                                                                               \
    if ((flags) & (O_CREAT | O_TMPFILE)) {                                                         \
        va_list more;                                                                              \
        va_start(more, flags);                                                                     \
        mode = va_arg(more, mode_t);                                                               \
        va_end(more);                                                                              \
    }

SEEN int open(const char *path, int flags, ...)
{
    MODE(flags)
    return opened(AT_FDCWD, path, flags, mode);
}

SEEN int open64(const char *path, int flags, ...)
{
    MODE(flags)
    return opened(AT_FDCWD, path, flags, mode);
}

SEEN int openat(int folder, const char *path, int flags, ...)
{
    MODE(flags)
    return opened(folder, path, flags, mode);
}

SEEN int fsync(int fd)
{
    int (*real)(int);
    char path[PATH];
    struct stat info;
    find("fsync", &real);
    if (fstat(fd, &info) != 0) return -1;
    path_of(fd, path);
    if (S_ISREG(info.st_mode)) keep_content(path);
    tell(S_ISDIR(info.st_mode) ? "sync-folder" : "sync", path, "");
    return real(fd);
}

static void moved(const char *what, const char *from, const char *to)
{
    char source[PATH], target[PATH];
    resolve(AT_FDCWD, from, source);
    resolve(AT_FDCWD, to, target);
    tell(what, source, target);
}

SEEN int rename(const char *from, const char *to)
{
    int (*real)(const char *, const char *);
    find("rename", &real);
    const int failed = real(from, to);
    if (!failed) moved("rename", from, to);
    return failed;
}

SEEN int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags)
{
    int (*real)(int, const char *, int, const char *, unsigned);
    find("renameat2", &real);
    const int failed = real(from_folder, from, to_folder, to, flags);
    if (!failed) moved(flags & RENAME_EXCHANGE ? "exchange" : "rename", from, to);
    return failed;
}

SEEN int unlink(const char *path)
{
    return unlinkat(AT_FDCWD, path, 0);
}

SEEN int rmdir(const char *path)
{
    return unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

SEEN int unlinkat(int folder, const char *name, int flags)
{
    int (*real)(int, const char *, int);
    char path[PATH];
    find("unlinkat", &real);
    resolve(folder, name, path);
    const int failed = real(folder, name, flags);
    if (!failed) tell("remove", path, "");
    return failed;
}

SEEN int mkdir(const char *name, mode_t mode)
{
    int (*real)(const char *, mode_t);
    char path[PATH];
    find("mkdir", &real);
    resolve(AT_FDCWD, name, path);
    const int failed = real(name, mode);
    if (!failed) tell("folder", path, "");
    return failed;
}
