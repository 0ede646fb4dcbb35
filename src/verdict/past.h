// Does the past tell more than the latent state does? Then the latent states are not Markov.
#ifndef PSI_VERDICT_PAST_H
#define PSI_VERDICT_PAST_H

#include "refine/by_evidence.h"

typedef struct verdict_past {
    double share;  // of the transitions, whose past tells what follows; 0: of none
    bool suspect;  // it may tell something, less clearly than that
    int32_t worst; // the latent state that most of them start in; −1: spread over many
    // Exceptions, in all, to what usually follows: so few that the past could not be asked about
    // them. 0: enough, or none; else the latent state and action that one of them followed.
    size_t exceptions;
    int32_t state, action;
} verdict_past;

// look (n_rows) below n_looks, −1: none: what was seen, which is finer than labels; NULL: as
// labels. allowed: the probability of finding something where there is nothing. misplaced: the
// share of the labels that may be wrong, and seem to have a past that tells something.
psi_status verdict_ask_the_past(psi_ctx *ctx, const cluster_problem *problem,
                                const outcome_rewards *rewards, const int32_t *labels,
                                size_t n_latent, const int32_t *look, size_t n_looks,
                                double allowed, double misplaced, verdict_past *out);

#endif
