// Latent states that were seen, and labels where they are kept. Labels that are smoothed along
// trajectories can leave a latent state without any observation: it is none, and must not be
// counted.
#ifndef PSI_CLUSTER_SEEN_H
#define PSI_CLUSTER_SEEN_H

#include <psifold/cluster.h>

// Renumbers labels and doubts so that every latent state has an observation; the order stays, and
// with it the terminal state's 0. Before the model is made. found->labels (n_rows) are those of
// this process, doubts those of all. O(observations).
psi_status cluster_keep_seen(psi_ctx *ctx, size_t n_rows, psi_run *found);

// The labels of all processes, −1 … n_latent − 1, where rank 0 is; elsewhere *out is NULL. It
// belongs to the caller.
psi_status cluster_collect_labels(psi_ctx *ctx, size_t n_rows, const int32_t *labels,
                                  size_t n_latent, int32_t **out);

#endif
