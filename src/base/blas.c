#include "base/blas.h"

#include "base/checked.h"
#include "base/memory.h"

// How OpenBLAS takes and gives back a buffer itself; exported, though in no header. Without them
// (another BLAS) there is nothing to be done.
extern void *blas_memory_alloc(int where) __attribute__((weak));
extern void blas_memory_free(void *buffer) __attribute__((weak));

enum {
    BUFFER = 32 << 22,   // its BUFFER_SIZE on x86-64, the largest of all: 128 MiB of addresses
    GUARD = 1 << 20,     // what it and the allocator take beside, generously
    MOST_AT_A_TIME = 64, // buffers; it has room for twice as many at least
};

bool base_blas_take(int threads)
{
    void *buffer[MOST_AT_A_TIME];
    const int wanted = (int)base_min((size_t)threads, MOST_AT_A_TIME);
    int n = 0;
    if (!blas_memory_alloc || !blas_memory_free) return true;
    // held all at once, so that it needs as many; it keeps those that are given back
    while (n < wanted && base_memory_fits(BUFFER + GUARD)) buffer[n++] = blas_memory_alloc(0);
    for (int i = 0; i < n; i++) blas_memory_free(buffer[i]);
    return n == wanted;
}
