// What a run has seen, so that it can say later what it has not: seen.npz in the run folder.
//
// With a table: every distinct observation, observations (n, numbers), with its latent state,
// labels (n), and confidence (n); shape and dtype of one observation. With a network: where the
// features of some observations of each latent state are, centre (K, D), in which units, scale (D),
// and reach, how far from its centre the furthest of them is. A latent state of which none was
// looked at has no centre: NaN.
#ifndef PSI_CLUSTER_SEEN_H
#define PSI_CLUSTER_SEEN_H

#include "cluster/distinct.h"
#include "cluster/observe.h"

#include <psifold/cluster.h>

typedef struct cluster_seen {
    // with a table
    psi_dtype dtype;
    psi_shape shape;
    cluster_distinct observations;
    int32_t *labels;
    float *confidence;
    // with a network
    size_t width; // D
    float *centre, *scale, reach;
} cluster_seen;

psi_status cluster_seen_find(psi_ctx *ctx, const psi_trajectories *data,
                             const psi_clustering *found, cluster_seen *out);
psi_status cluster_seen_save(psi_ctx *ctx, const cluster_seen *seen, size_t n_latent,
                             const char *path);

// Checked as hostile. A run of an older version has no such file: *out is then empty.
psi_status cluster_seen_load(psi_ctx *ctx, const char *folder, const psi_run_result *run,
                             cluster_seen *out);
void cluster_seen_free(psi_ctx *ctx, cluster_seen *seen);

// How far features (D) are from the centre of their latent state, in units of how far those that
// were seen are from theirs: at most `reach` for all of them. 0 where there is no centre.
float cluster_seen_distance(const cluster_seen *seen, int32_t label, const float *features);

#endif
