// The representation network: trunk and head, trained to tell the final latent states apart.
#ifndef PSI_CLUSTER_REPRESENTATION_H
#define PSI_CLUSTER_REPRESENTATION_H

#include "cluster/observe.h"
#include "cluster/problem.h"

// Starts from the trunk of `from`. accuracy is over the kept states of held-out episodes (over the
// training ones, if none are held out). *out belongs to the caller.
psi_status cluster_representation(psi_ctx *ctx, const cluster_problem *problem,
                                  cluster_inputs *inputs, const psi_net *from,
                                  const int32_t *labels, size_t n_latent, size_t steps,
                                  double learning_rate, size_t shift, uint64_t seed, psi_net **out,
                                  double *accuracy);

#endif
