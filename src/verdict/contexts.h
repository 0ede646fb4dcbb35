// Does what followed a latent state depend on anything else: on the past, or on the looks of what
// was observed? Transitions are sorted by that, and what followed in one context is compared with
// what followed in the others of the same latent state.
#ifndef PSI_VERDICT_CONTEXTS_H
#define PSI_VERDICT_CONTEXTS_H

#include "refine/by_evidence.h"

#define CONTEXT_NONE UINT64_MAX

// context (N): of every transition, below 2⁴⁰; CONTEXT_NONE: it is left out. Transitions that start
// or end in an unknown latent state are left out, too. *share gets the share of the transitions
// whose context follows a law of its own, found by chance with a probability of `allowed`; *worst
// the latent state that most of them start in, −1 if there are none.
psi_status verdict_compare_contexts(psi_ctx *ctx, const cluster_problem *problem,
                                    const outcome_rewards *rewards, const int32_t *labels,
                                    size_t n_latent, const uint64_t *context, double allowed,
                                    double *share, int32_t *worst, float *same);

// Contexts are branches of the tree of looks, large and small ones: a latent state whose
// observations follow different laws by what they look like is several. The same may be asked of
// parts of latent states: of (n_rows) says which, below n_of.
psi_status verdict_ask_looks(psi_ctx *ctx, const cluster_problem *problem,
                             const outcome_rewards *rewards, const problem_looks *looks,
                             const int32_t *of, size_t n_of, const int32_t *labels, size_t n_latent,
                             double allowed, double *share, int32_t *worst);

// The two latent states that are most alike in what followed them, and the nats that they are apart
// by; below 0 if some are one.
psi_status verdict_ask_pairs(psi_ctx *ctx, const cluster_problem *problem,
                             const outcome_rewards *rewards, const int32_t *labels, size_t n_latent,
                             double *margin, int32_t pair[2]);

// The same with the means of rewards in the place of their values.
psi_status verdict_ask_pairs_by_means(psi_ctx *ctx, const cluster_problem *problem,
                                      const int32_t *labels, size_t n_latent, double *margin,
                                      int32_t pair[2]);

#endif
