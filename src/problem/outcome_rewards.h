// Rewards as outcomes of a transition: what is counted beside the next latent state.
#ifndef PSI_PROBLEM_OUTCOME_REWARDS_H
#define PSI_PROBLEM_OUTCOME_REWARDS_H

#include "problem/looks.h"

// Rewards as outcomes: classes where values repeat, else numbers whose means are compared.
typedef struct outcome_rewards {
    size_t n;        // classes; 0: numbers
    int32_t *of;     // (transitions) the class of each
    double variance; // of all of them; numbers only
    double mean;
    double *precision, *weighted; // (n_nodes, A) of the leaves, as psi_draws has them; numbers only
} outcome_rewards;

psi_status problem_outcome_rewards(psi_ctx *ctx, const cluster_problem *problem,
                                   const problem_looks *looks, outcome_rewards *out);
// The same as numbers, whatever they are; looks of which leaf, left, parent and forest.n_nodes are
// asked for. led_to (n_rows): latent states, −1: unknown; rewards are compared among transitions
// that led to the same one, since latent states that lead elsewhere are told apart by that. NULL:
// among all.
psi_status problem_mean_rewards(psi_ctx *ctx, const cluster_problem *problem,
                                const problem_looks *looks, const int32_t *led_to,
                                outcome_rewards *out);
void problem_outcome_rewards_free(psi_ctx *ctx, outcome_rewards *rewards);

#endif
