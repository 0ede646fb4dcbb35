// What a perfect clustering run would leave behind: a network trained on the true latent states.
// Agents can be tested with it without waiting for, or depending on, a clustering.
#ifndef PSI_TESTS_TRUTH_H
#define PSI_TESTS_TRUTH_H

#include <psifold/psifold.h>

// Trains a network of this kind for so many steps of 256 observations. *out belongs to the caller.
psi_status test_truth_net(psi_ctx *ctx, const psi_trajectories *data, psi_net_kind kind,
                          size_t steps, uint64_t seed, psi_net **out);

// The share of observations that it puts into their true latent state, the ends of episodes left
// out.
psi_status test_truth_accuracy(psi_ctx *ctx, const psi_trajectories *data, const psi_net *net,
                               double *accuracy);

// A whole run folder with this network (which it takes over) and the true labels.
psi_status test_truth_run(psi_ctx *ctx, const psi_trajectories *data, psi_net *net,
                          const char *folder);

#endif
