// Algorithm 1: reward refinement, then successor-feature refinement until nothing changes.
#ifndef PSI_REFINE_REFINE_H
#define PSI_REFINE_REFINE_H

#include "learn/approximator.h"

#include <psifold/cluster.h>

typedef struct refine_options {
    double gamma;
    double epsilon_reward; // radius, in units of the smallest difference of two rewards
    double epsilon_sf;     // radius; 0: chosen from the gap at every refinement
    double gap_share;      // … as this share of it
    double filter;         // share of the states below which a cluster is spurious
    psi_norm norm;
    bool split;    // refine strictly inside the old clusters instead of anew
    bool sf_alone; // no reward beside the successor features
    size_t max_refinements, max_latent_states;
    uint64_t seed;
    psi_status (*watch)(void *user, const psi_cluster_step *step, size_t refinement,
                        size_t n_observations, const int32_t *labels);
    void *user;
} refine_options;

// A labelling of all observations and what was fitted on the way to it.
typedef struct refinement {
    int32_t *labels; // (n_rows) 0: terminal if there is one; −1: ignored
    size_t n_latent; // K
    float *rewards;  // (n_states, A) predicted reward / spacing
    learn_fit *next; // f_i: the next latent state
    int32_t *parent; // (max_latent_states + 2) the class of f_i that each cluster comes from
    uint64_t fits;   // so that every fit has its own seed
    bool converged;
    size_t n_steps;          // refinements so far
    psi_cluster_step *steps; // (n_steps)
} refinement;

// Runs from the rewards, or goes on from the labels in *refinement if it has some, as if it had
// never been interrupted.
psi_status refine_by_successor_features(psi_ctx *ctx, const cluster_problem *problem,
                                        const learn_approximator *approximator,
                                        const refine_options *options, refinement *result);
void refine_free(psi_ctx *ctx, refinement *result);

#endif
