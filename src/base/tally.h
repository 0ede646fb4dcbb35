// How often each of many numbers occurs, in the data of all processes: what travels between them in
// the place of what was counted.
#ifndef PSI_BASE_TALLY_H
#define PSI_BASE_TALLY_H

#include <psifold/base.h>

typedef struct base_times {
    uint64_t key, n; // n times
} base_times;

// Everywhere the same list, ascending, of the keys that any process has. keys (n) are sorted in
// place; *out belongs to the caller. O(n · digits), and O(log ranks) for each of the list.
psi_status base_tally(psi_ctx *ctx, uint64_t *keys, size_t n, base_times **out, size_t *n_out);

// Sorts by 11 bits after the other, but for those that are all the same. O(n · digits).
psi_status base_sort_keys(psi_ctx *ctx, uint64_t *keys, size_t n);

// Finite numbers as keys, in the same order: −0 is 0.
uint64_t base_key_of_real(double x);
double base_real_of_key(uint64_t key);

#endif
