// Disjoint sets of numbers: to[i] leads to the number that stands for i's set, and to itself there.
#ifndef PSI_BASE_DISJOINT_H
#define PSI_BASE_DISJOINT_H

#include <stdint.h>

static inline int32_t base_root(int32_t *to, int32_t i)
{
    while (to[i] != i) i = to[i] = to[to[i]];
    return i;
}

// The smaller number stands for both.
static inline void base_unite(int32_t *to, int32_t a, int32_t b)
{
    a = base_root(to, a);
    b = base_root(to, b);
    to[a > b ? a : b] = a > b ? b : a;
}

#endif
