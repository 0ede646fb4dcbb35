// Algorithm 1: reward refinement, then successor-feature refinement until nothing changes.
#ifndef PSI_CLUSTER_REFINE_H
#define PSI_CLUSTER_REFINE_H

#include "cluster/approximator.h"
#include "cluster/cover.h"

typedef struct refine_options {
    double gamma;
    double epsilon_reward; // radius, in units of the smallest difference of two rewards
    double epsilon_sf;     // radius; 0: chosen from the gap at every refinement
    double gap_share;      // … as this share of it
    double kick;           // instead of gap_share in the first refinement; 0: none
    double filter;         // share of the states below which a cluster is spurious
    cover_norm norm;
    bool split; // refine strictly inside the old clusters instead of anew
    size_t max_refinements, max_latent_states;
    uint64_t seed;
} refine_options;

// What one refinement found.
typedef struct refine_step {
    size_t clusters;       // latent states, the terminal one included
    double ignored;        // share of the states
    double agreement;      // with the refinement before, over states that both keep
    double gap, epsilon;   // smallest distance that must split, and the radius that was used
    double held_out_error; // mean distance of held-out predictions from their cluster's
    double perfect;        // share of them within epsilon / 2
    double seconds;
} refine_step;

// A labelling of all observations and what was fitted on the way to it.
typedef struct refinement {
    int32_t *labels;   // (n_rows) 0: terminal if there is one; −1: ignored
    size_t n_latent;   // K
    float *rewards;    // (n_states, A) predicted reward / spacing
    cluster_fit *next; // f_i: the next latent state
    bool converged;
    size_t n_steps;
    refine_step *steps; // (n_steps)
} refinement;

// Called after every refinement with the labels so far; a status other than PSI_OK ends it.
typedef psi_status refine_watch(void *user, const refinement *result);

// Runs from the rewards, or goes on from the labels in *refinement if it has some.
psi_status cluster_refine(psi_ctx *ctx, const cluster_problem *problem,
                          const cluster_approximator *approximator, const refine_options *options,
                          refine_watch *watch, void *user, refinement *result);
void cluster_refinement_free(psi_ctx *ctx, const cluster_approximator *approximator,
                             refinement *result);

#endif
