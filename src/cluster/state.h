// Where a clustering by successor features stands between two refinements: all else follows from
// it, so that a run that was interrupted goes on from what checkpoint.h kept of it.
#ifndef PSI_CLUSTER_STATE_H
#define PSI_CLUSTER_STATE_H

#include "cluster/judge.h"
#include "cluster/phases.h"
#include "cluster/refine.h"

// What a round has found.
typedef struct round_result {
    int32_t *labels; // (n_rows)
    size_t n_latent;
    split_test test;
    bool misfit;     // states that were in no cluster fit nowhere: one is too rare for the filter
    double smoothed; // share of the states whose label was changed
    bool converged;
} round_result;

typedef struct run_state {
    size_t round;          // the one under way, from 0
    size_t hidden_rounds;  // those before it that hid something, twice if it was rare: each halves
                           // the filter
    bool stable;           // a second round found the same latent states
    refinement refinement; // as refined, not polished
    round_result best;     // of the rounds that have ended; labels are NULL before
    cluster_phases phases; // up to date whenever the state is kept
} run_state;

#endif
