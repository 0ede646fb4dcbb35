// A set of rows of equal length, told apart by their bytes and numbered in the order in which they
// came.
#ifndef PSI_PROBLEM_DISTINCT_H
#define PSI_PROBLEM_DISTINCT_H

#include <psifold/data.h>

enum { PROBLEM_DISTINCT_NONE = UINT32_MAX };

typedef struct problem_distinct {
    size_t row_bytes;
    size_t n;             // rows
    unsigned char *known; // (n, row_bytes)
    size_t room, slots;
    uint32_t *slot; // (slots) number + 1; 0 is free
} problem_distinct;

psi_status problem_distinct_new(psi_ctx *ctx, size_t row_bytes, problem_distinct *out);
void problem_distinct_free(psi_ctx *ctx, problem_distinct *set);

// The number of a row, which is added if it is not there. PSI_ELIMIT beyond 2^31 rows.
psi_status problem_distinct_add(psi_ctx *ctx, problem_distinct *set, const void *row,
                                uint32_t *number);
// The same of n observations: of these rows, or (NULL) of the first n; numbers (n). PSI_ELIMIT if
// there are more than `most` different ones. Of several processes each asks for its own
// observations, with an empty set; afterwards all have the names that one process would have given.
psi_status problem_distinct_observations(psi_ctx *ctx, problem_distinct *set,
                                         const psi_observations *observations, const uint64_t *rows,
                                         size_t n, size_t most, uint32_t *numbers);
// PROBLEM_DISTINCT_NONE if it is not there.
uint32_t problem_distinct_find(const problem_distinct *set, const void *row);

#endif
