#include "base/memory.h"

#include "base/file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { TEXT = 8192, PATH = 4096 };

// A small file of the kernel's as text; false if it is not there.
static bool read_text(const char *folder, const char *name, char text[TEXT])
{
    char path[PATH];
    const int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (length < 0 || (size_t)length >= sizeof path) return false;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const ssize_t got = read(fd, text, TEXT - 1);
    close(fd);
    text[got > 0 ? got : 0] = '\0';
    return got > 0;
}

// The number behind a key at the beginning of a line; false if there is none.
static bool number_of(const char *text, const char *key, uint64_t *out)
{
    const size_t length = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, length) != 0) continue;
        char *end;
        const uint64_t number = strtoull(line + length, &end, 10);
        if (end == line + length) return false;
        *out = number;
        return true;
    }
    return false;
}

// The whole file is one number; "max" is none.
static bool limit_in(const char *folder, const char *name, uint64_t *out)
{
    char text[TEXT];
    return read_text(folder, name, text) && number_of(text, "", out);
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

// One group: its limit, and what is left of it. Pages of files that nobody uses are given back
// before a process is refused memory, so they count as free.
static void respect_group(const char *folder, base_memory *memory)
{
    char text[TEXT];
    uint64_t limit = UINT64_MAX, high, used = 0, reclaimable = 0;
    (void)limit_in(folder, "memory.max", &limit);
    if (limit_in(folder, "memory.high", &high)) limit = least(limit, high);
    if (limit == UINT64_MAX) return;
    (void)limit_in(folder, "memory.current", &used);
    if (read_text(folder, "memory.stat", text)) {
        (void)number_of(text, "inactive_file ", &reclaimable);
    }
    used -= least(used, reclaimable);
    memory->total = least(memory->total, limit);
    memory->available = least(memory->available, limit - least(limit, used));
}

// Every group above a process's own limits it, too.
static void respect_groups(const char *proc, const char *cgroups, base_memory *memory)
{
    char text[TEXT], folder[PATH];
    if (!read_text(proc, "self/cgroup", text)) return;
    const char *line = text;
    while (line && strncmp(line, "0::/", 4) != 0) { // version 2; the others are version 1's
        line = strchr(line, '\n');
        line += line != NULL;
    }
    if (!line) return;
    const int path = (int)strcspn(line + 3, "\n");
    const size_t root = strlen(cgroups);
    const int length = snprintf(folder, sizeof folder, "%s%.*s", cgroups, path, line + 3);
    if (length < 0 || (size_t)length >= sizeof folder) return;
    for (;;) {
        respect_group(folder, memory);
        char *slash = strrchr(folder, '/');
        if (!slash || (size_t)(slash - folder) < root) return;
        *slash = '\0';
    }
}

bool base_memory_fits(size_t bytes)
{
    // addresses that are not touched cost nothing
    void *probe = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (probe == MAP_FAILED) return false;
    munmap(probe, bytes);
    return true;
}

base_memory base_memory_in(const char *proc, const char *cgroups)
{
    char text[TEXT];
    uint64_t total = 0, available = 0;
    if (read_text(proc, "meminfo", text)) {
        (void)number_of(text, "MemTotal:", &total);
        (void)number_of(text, "MemAvailable:", &available);
    }
    const long page = sysconf(_SC_PAGESIZE), pages = sysconf(_SC_PHYS_PAGES),
               unused = sysconf(_SC_AVPHYS_PAGES);
    base_memory memory = {total * 1024, available * 1024};
    if (total == 0) memory.total = pages > 0 ? (uint64_t)pages * (uint64_t)page : 1 << 30;
    if (available == 0) memory.available = unused > 0 ? (uint64_t)unused * (uint64_t)page : 1 << 30;
    respect_groups(proc, cgroups, &memory);
    return memory;
}

base_memory base_memory_here(void)
{
    base_memory memory = base_memory_in("/proc", "/sys/fs/cgroup");
    struct rlimit limit;
    char text[TEXT];
    uint64_t pages = 0;
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
        if (read_text("/proc", "self/statm", text)) (void)number_of(text, "", &pages);
        const uint64_t used = pages * (uint64_t)sysconf(_SC_PAGESIZE);
        memory.total = least(memory.total, limit.rlim_cur);
        memory.available = least(memory.available, limit.rlim_cur - least(limit.rlim_cur, used));
    }
    return memory;
}
