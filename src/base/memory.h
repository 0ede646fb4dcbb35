// How much memory there is for this process: the machine's, what its control groups allow it (as
// containers are limited), and what the limit on its address space leaves.
#ifndef PSI_BASE_MEMORY_H
#define PSI_BASE_MEMORY_H

#include <psifold/base.h>

typedef struct base_memory {
    uint64_t total;     // bytes that the process could ever have
    uint64_t available; // bytes that it could take now without swapping
} base_memory;

base_memory base_memory_here(void);

// Whether that many bytes could be had now. For libraries that do not stand being refused: asked
// before they are called, it makes a status of what they would make a crash or an endless loop of.
bool base_memory_fits(size_t bytes);

// As base_memory_here, from other places than /proc and /sys/fs/cgroup, and without the address
// space's limit: for tests.
base_memory base_memory_in(const char *proc, const char *cgroups);

#endif
