// The approximator behind which networks stand: the trunk is trained once, the features of all
// observations are kept, and every fit is a linear head on them.
#ifndef PSI_LEARN_NETWORK_H
#define PSI_LEARN_NETWORK_H

#include "learn/approximator.h"
#include "learn/features.h"
#include "learn/trunk.h"
#include "problem/observe.h"

typedef struct network_options {
    psi_net_kind kind;
    size_t n_hidden, hidden[PSI_MAX_HIDDEN]; // mlp only; n_hidden 0: psi_net_defaults
    trunk_options trunk;
    psi_cache cache; // of the features
    size_t head_steps, head_batch;
    bool dropout; // heads learn from a random half of the features at a time
    double head_learning_rate;
    uint64_t seed;
} network_options;

// Trains the network whose trunk the heads will stand on. Where the time is up before that is done,
// the status says so and *out is the network as it is by then. *out belongs to the caller.
psi_status learn_network_fit_trunk(psi_ctx *ctx, const cluster_problem *problem,
                                   problem_inputs *inputs, const network_options *options,
                                   psi_net **out);

// The same network as rank 0 has kept it from an earlier process; NULL if it has not.
psi_status learn_network_share_trunk(psi_ctx *ctx, const cluster_problem *problem,
                                     const problem_inputs *inputs, const network_options *options,
                                     psi_net **trunk);

// The same network, untrained, to be trained with other heads.
psi_status learn_network_new_trunk(psi_ctx *ctx, const cluster_problem *problem,
                                   const problem_inputs *inputs, const network_options *options,
                                   psi_net **out);

// Computes the features of all observations. inputs, options and trunk must outlive it; PSI_EDATA
// if the trunk is not one for these inputs.
psi_status learn_network_new(psi_ctx *ctx, const cluster_problem *problem, problem_inputs *inputs,
                             const network_options *options, const psi_net *trunk,
                             learn_approximator *out);

// The trunk with the heads of a fit on its features on top, as one network. *out belongs to the
// caller.
psi_status learn_network_join(psi_ctx *ctx, const feature_cache *features, const psi_net *trunk,
                              const learn_fit *fit, psi_net **out);

#endif
