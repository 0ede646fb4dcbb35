// Latent states that were seen. Labels that are smoothed along trajectories can leave a latent
// state without any observation: it is none, and must not be counted.
#ifndef PSI_CLUSTER_SEEN_H
#define PSI_CLUSTER_SEEN_H

#include <psifold/cluster.h>

// Renumbers labels and doubts so that every latent state has an observation; the order stays, and
// with it the terminal state's 0. Before the model is made. O(observations).
psi_status cluster_keep_seen(psi_ctx *ctx, psi_run *found);

#endif
