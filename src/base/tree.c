// A folder with all that is in it: brought to disk, or removed. Every step goes through the open
// folder above it and follows no link, so that whoever exchanges a folder for a link meanwhile
// cannot lead us out of the tree.
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEEPEST = 64 }; // folders inside each other; each keeps a descriptor open

typedef int visitor(int above, const char *name, bool folder);

static int visit_tree(int above, const char *name, int depth, visitor *visit);

// Everything inside; every entry is tried, the first failure is told.
static int visit_inside(int inside, int depth, visitor *visit)
{
    DIR *entries = fdopendir(inside);
    if (!entries) {
        close(inside);
        return -1;
    }
    int reason = 0;
    for (struct dirent *entry; (entry = readdir(entries));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (visit_tree(dirfd(entries), entry->d_name, depth, visit) != 0 && !reason) {
            reason = errno;
        }
    }
    closedir(entries);
    errno = reason;
    return reason ? -1 : 0;
}

// Calls visit for what the name stands for, deepest first. What is not there is fine.
static int visit_tree(int above, const char *name, int depth, visitor *visit)
{
    struct stat info;
    if (fstatat(above, name, &info, AT_SYMLINK_NOFOLLOW) != 0) return errno == ENOENT ? 0 : -1;
    if (!S_ISDIR(info.st_mode)) return visit(above, name, false);
    if (depth == DEEPEST) {
        errno = ELOOP;
        return -1;
    }
    const int inside = openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (inside < 0) return -1;
    const int failed = visit_inside(inside, depth + 1, visit), reason = errno;
    const int own = visit(above, name, true);
    if (failed) errno = reason;
    return failed ? failed : own;
}

static int sync_entry(int above, const char *name, bool folder)
{
    const int fd = openat(
        above, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | (folder ? O_DIRECTORY : 0));
    if (fd < 0) return -1;
    const int failed = fsync(fd), reason = errno;
    close(fd);
    errno = reason;
    return failed;
}

static int remove_entry(int above, const char *name, bool folder)
{
    return unlinkat(above, name, folder ? AT_REMOVEDIR : 0);
}

int base_sync_tree(const char *path)
{
    return visit_tree(AT_FDCWD, path, 0, sync_entry);
}

void base_remove(const char *path)
{
    (void)visit_tree(AT_FDCWD, path, 0, remove_entry);
}
