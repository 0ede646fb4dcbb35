// Size arithmetic that notices overflow. Anything that comes from a file goes through here before
// it becomes a length.
#ifndef PSI_BASE_CHECKED_H
#define PSI_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>

// *out = a · b; false if that does not fit.
static inline bool base_mul(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

// *out = a + b; false if that does not fit.
static inline bool base_add(size_t a, size_t b, size_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

static inline size_t base_min(size_t a, size_t b)
{
    return a < b ? a : b;
}
static inline size_t base_max(size_t a, size_t b)
{
    return a > b ? a : b;
}

// The smallest multiple of unit that is not below n.
static inline size_t base_round_up(size_t n, size_t unit)
{
    return (n + unit - 1) / unit * unit;
}

#endif
