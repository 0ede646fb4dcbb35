// The approximator behind which networks stand: the trunk is trained once, the features of all
// observations are kept, and every fit is a linear head on them.
#ifndef PSI_CLUSTER_NETWORK_H
#define PSI_CLUSTER_NETWORK_H

#include "cluster/approximator.h"
#include "cluster/observe.h"
#include "cluster/trunk.h"

typedef struct network_options {
    psi_net_kind kind;
    size_t n_hidden, hidden[PSI_MAX_HIDDEN]; // mlp only; n_hidden 0: psi_net_defaults
    trunk_options trunk;
    size_t head_steps, head_batch;
    double head_learning_rate;
    uint64_t seed;
} network_options;

// inputs must outlive it.
psi_status cluster_network_new(psi_ctx *ctx, const cluster_problem *problem, cluster_inputs *inputs,
                               const network_options *options, trunk_losses *losses,
                               cluster_approximator *out);

// The network whose trunk the heads stand on; NULL if the approximator is none of these.
const psi_net *cluster_network_trunk(const cluster_approximator *approximator);

#endif
