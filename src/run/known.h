// What a run knows, so that it can say later what it has never seen: seen.npz in the run folder.
//
// With a table: every distinct observation, observations (n, numbers), with its latent state,
// labels (n), and confidence (n); shape and dtype of one observation. With a network: where the
// features of some observations of each latent state are, centre (K, D), in which units, scale (D),
// and reach, how far from its centre the furthest of them is. A latent state of which none was
// looked at has no centre: NaN.
#ifndef PSI_RUN_KNOWN_H
#define PSI_RUN_KNOWN_H

#include "problem/distinct.h"
#include "problem/observe.h"

#include <psifold/cluster.h>

typedef struct psi_known {
    // with a table
    psi_dtype dtype;
    psi_shape shape;
    problem_distinct observations;
    int32_t *labels;
    float *confidence;
    // with a network
    size_t width; // D
    float *centre, *scale, reach;
} run_known;

// *out belongs to the caller.
psi_status run_known_find(psi_ctx *ctx, const psi_trajectories *data, const psi_run *found,
                          run_known **out);
psi_status run_known_save(psi_ctx *ctx, const run_known *seen, size_t n_latent, const char *path);

// Checked as hostile. A run of an older version has no such file: *out is then NULL.
psi_status run_known_load(psi_ctx *ctx, const psi_run *run, run_known **out);
void run_known_free(psi_ctx *ctx, run_known *seen);

// How far features (D) are from the centre of their latent state, in units of how far those that
// were seen are from theirs: at most `reach` for all of them. 0 where there is no centre.
float run_known_distance(const run_known *seen, int32_t label, const float *features);

#endif
