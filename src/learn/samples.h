// Training samples from transitions and from labelled states; held-out episodes are left out. phase
// is the name under which the fit tells its progress, or NULL.
#ifndef PSI_LEARN_SAMPLES_H
#define PSI_LEARN_SAMPLES_H

#include "learn/approximator.h"

// Fits f(s, a) → target[t] on all transitions that are not held out and whose target is not −1.
psi_status learn_fit_transitions(psi_ctx *ctx, const cluster_problem *problem,
                                 const learn_approximator *approximator, const int32_t *target,
                                 size_t n_classes, const learn_fit *start, const int32_t *parent,
                                 uint64_t seed, const char *phase, learn_fit **out);

// Fits f(s) → labels[row of s] on the states that are kept and not held out.
psi_status learn_fit_states(psi_ctx *ctx, const cluster_problem *problem,
                            const learn_approximator *approximator, const int32_t *labels,
                            size_t n_classes, uint64_t seed, const char *phase, learn_fit **out);

#endif
