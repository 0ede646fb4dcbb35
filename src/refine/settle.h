// Labels that looks, trajectories and evidence agree on. A classifier says what each observation
// looks like, forward–backward what it must have been, given what came before and after; latent
// states that are then more probable as one are joined. In turn, until the labels stay.
#ifndef PSI_REFINE_SETTLE_H
#define PSI_REFINE_SETTLE_H

#include "learn/approximator.h"
#include "refine/by_evidence.h"

typedef struct settle_options {
    const outcome_rewards *rewards;
    size_t max_turns, max_latent_states;
    uint64_t seed;
} settle_options;

typedef struct settle_summary {
    size_t turns;
    size_t joined;  // latent states that others took in
    size_t changed; // states whose label is not the one they came with
    bool settled;   // the last turn changed nothing to speak of
    double untold;  // share of held-out states whose label is not the one that their looks and what
                    // came before tell: what followed them decided
    double mistaken; // share of held-out states that the classifier calls by another name; 1: none
                     // are held out
} settle_summary;

// labels (n_rows), confidence (n_rows) and *n_latent are changed in place.
psi_status refine_settle(psi_ctx *ctx, const cluster_problem *problem,
                         const learn_approximator *approximator, const settle_options *options,
                         int32_t *labels, float *confidence, size_t *n_latent,
                         settle_summary *summary);

#endif
