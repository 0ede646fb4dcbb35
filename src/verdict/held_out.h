// Does what was learnt of observations tell latent states, or was each memorised?
#ifndef PSI_VERDICT_HELD_OUT_H
#define PSI_VERDICT_HELD_OUT_H

#include "problem/looks.h"

// The share of held-out observations that look like those of another latent state that features
// were learnt from; 1 if none can be asked. looks: a tree over the features.
psi_status verdict_ask_held_out(psi_ctx *ctx, const cluster_problem *problem,
                                const problem_looks *looks, const int32_t *labels,
                                double *mistaken);

#endif
