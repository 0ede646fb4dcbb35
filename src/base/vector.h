// Small things that are done to rows of numbers, always in the same way.
#ifndef PSI_BASE_VECTOR_H
#define PSI_BASE_VECTOR_H

#include <math.h>
#include <stddef.h>

// The first of the largest numbers x[begin … n); begin if there is none.
static inline size_t base_largest(const float *x, size_t begin, size_t n)
{
    size_t best = begin;
    for (size_t i = begin + 1; i < n; i++) best = x[i] > x[best] ? i : best;
    return best;
}

// p_i = exp(x_i) / sum_j exp(x_j), summed in double; p may be x.
static inline void base_softmax(const float *x, size_t n, float *p)
{
    if (n == 0) return;
    const double top = (double)x[base_largest(x, 0, n)];
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) sum += exp((double)x[i] - top);
    for (size_t i = 0; i < n; i++) p[i] = (float)(exp((double)x[i] - top) / sum);
}

#endif
