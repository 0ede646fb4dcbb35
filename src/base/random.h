// Counter-based random numbers (Philox4x32-10 of Random123). A stream is named by a seed, a purpose
// and an index, and the numbers in it depend on nothing else: episode 17 gets the same dice whether
// one thread rolls them or eight do.
#ifndef PSI_BASE_RANDOM_H
#define PSI_BASE_RANDOM_H

#include <psifold/base.h>

typedef struct base_random {
    uint64_t seed;
    uint32_t purpose;
    uint64_t index; // together with seed and purpose: the name of the stream
    uint32_t block; // how many blocks of four numbers were taken
    uint32_t number[4];
    uint32_t left; // numbers still unused in the block
} base_random;

base_random base_random_stream(uint64_t seed, uint32_t purpose, uint64_t index);

uint32_t base_random_u32(base_random *random);
uint64_t base_random_u64(base_random *random);
uint32_t base_random_below(base_random *random, uint32_t n); // uniform on 0 … n−1, without bias
double base_random_uniform(base_random *random);             // [0, 1), 53 bits
double base_random_normal(base_random *random);              // mean 0, variance 1

// Four numbers at once for a (stream, position): for kernels that want no state at all.
void base_random_block(uint64_t seed, uint32_t purpose, uint64_t index, uint32_t block,
                       uint32_t number[4]);

// A random order of 0 … n−1 (Fisher–Yates), n < 2^32.
void base_random_shuffle(base_random *random, uint32_t *order, size_t n);

#endif
