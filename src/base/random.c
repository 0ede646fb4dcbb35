#include "base/random.h"

#include <math.h>

// Random123's headers convert signs freely.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#include <Random123/philox.h>
#pragma GCC diagnostic pop

void base_random_block(uint64_t seed, uint32_t purpose, uint64_t index, uint32_t block,
                       uint32_t number[4])
{
    const philox4x32_key_t key = {{(uint32_t)seed, (uint32_t)(seed >> 32)}};
    const philox4x32_ctr_t counter = {{block, purpose, (uint32_t)index, (uint32_t)(index >> 32)}};
    const philox4x32_ctr_t result = philox4x32(counter, key);
    for (int i = 0; i < 4; i++) number[i] = result.v[i];
}

base_random base_random_stream(uint64_t seed, uint32_t purpose, uint64_t index)
{
    return (base_random){.seed = seed, .purpose = purpose, .index = index};
}

uint32_t base_random_u32(base_random *random)
{
    if (random->left == 0) {
        base_random_block(random->seed, random->purpose, random->index, random->block++,
                          random->number);
        random->left = 4;
    }
    return random->number[4 - random->left--];
}

uint64_t base_random_u64(base_random *random)
{
    const uint64_t low = base_random_u32(random);
    return low | (uint64_t)base_random_u32(random) << 32;
}

// Lemire, "Fast random integer generation in an interval" (2019): one multiplication, and a
// division only in the rare case that may be biased.
uint32_t base_random_below(base_random *random, uint32_t n)
{
    uint64_t product = (uint64_t)base_random_u32(random) * n;
    if ((uint32_t)product < n) {
        const uint32_t threshold = -n % n;
        while ((uint32_t)product < threshold) product = (uint64_t)base_random_u32(random) * n;
    }
    return (uint32_t)(product >> 32);
}

double base_random_uniform(base_random *random)
{
    return (double)(base_random_u64(random) >> 11) * 0x1p-53;
}

// Box–Muller; the second number of the pair is dropped so that a draw has no hidden state.
double base_random_normal(base_random *random)
{
    const double u = 1.0 - base_random_uniform(random); // (0, 1]
    const double v = base_random_uniform(random);
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

void base_random_shuffle(base_random *random, uint32_t *order, size_t n)
{
    for (size_t i = 0; i < n; i++) order[i] = (uint32_t)i;
    for (size_t i = n; i > 1; i--) {
        const size_t j = base_random_below(random, (uint32_t)i);
        const uint32_t swap = order[i - 1];
        order[i - 1] = order[j];
        order[j] = swap;
    }
}
