// What followed observations, as evidence has it (psi_draws): lists of draws that become counts
// where several processes have seen some of them each.
#ifndef PSI_PROBLEM_DRAWS_H
#define PSI_PROBLEM_DRAWS_H

#include <psifold/evidence.h>

typedef struct problem_draws {
    size_t n;
    uint32_t *node, *outcome; // (n)
    uint32_t *times;          // (n) NULL: every draw is listed
} problem_draws;

psi_status problem_draws_new(psi_ctx *ctx, size_t room, problem_draws *out);
void problem_draws_free(psi_ctx *ctx, problem_draws *draws);

static inline void problem_draws_add(problem_draws *draws, size_t node, size_t outcome)
{
    draws->node[draws->n] = (uint32_t)node;
    draws->outcome[draws->n++] = (uint32_t)outcome;
}

// Of several processes, each of which has listed its own: all have what all of them have seen, with
// how often it was. Alone, nothing changes.
psi_status problem_draws_together(psi_ctx *ctx, problem_draws *draws);

// Only outcomes that occur get numbers, family by family, each of which has `wide` of them: first
// (n_families + 1), as psi_draws has it. number (n_families · wide) is scratch.
void problem_draws_number(problem_draws *draws, size_t n_families, size_t wide, uint32_t *number,
                          uint32_t *first);

#endif
