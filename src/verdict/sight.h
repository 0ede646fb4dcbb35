// Whether what is seen tells more than the latent state does.
#ifndef PSI_VERDICT_SIGHT_H
#define PSI_VERDICT_SIGHT_H

#include "problem/looks.h"

// Every number of the vectors that looks are compared by, its square, and a direction that is
// learnt on the way, are asked whether they foretell what follows, beyond action and latent state,
// or part of one (`of`, n_rows, below n_of), by foretell.h. *told: one does, of more than a share
// of the transitions, found by chance with a probability of `allowed`. O(transitions · width).
psi_status verdict_ask_sight(psi_ctx *ctx, const cluster_problem *problem,
                             const problem_looks *looks, const int32_t *of, size_t n_of,
                             const int32_t *labels, double allowed, double share, bool *told);

#endif
