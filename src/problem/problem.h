// What is to be clustered: the trajectories, seen as a list of states and a list of transitions.
#ifndef PSI_PROBLEM_PROBLEM_H
#define PSI_PROBLEM_PROBLEM_H

#include "problem/rewards.h"

#include <psifold/data.h>
#include <psifold/mdp.h>

// How much there is of everything in the data of all processes together, of which each has its own
// episodes; alone, that is all there is.
typedef struct problem_whole {
    size_t n_episodes, n_transitions, n_rows, n_states;
    size_t first_episode, first_transition, first_state; // of this process
} problem_whole;

typedef struct cluster_problem {
    const psi_trajectories *data;
    problem_whole whole;
    bool has_terminal; // some episode terminates: latent state 0 is the terminal one
    size_t n_rows;     // observations, N + E
    size_t n_states;   // those that are not terminal: what is clustered
    uint64_t *states;  // (n_states) their rows
    uint64_t *row;     // (N) the observation in which transition t starts; the next one follows
    uint8_t *held_out; // (N) transitions of the episodes that are kept for judging
    size_t n_held_out; // how many these are, in the whole
    reward_classes rewards;
} cluster_problem;

// Every tenth episode, chosen by the seed, is held out (none if there are fewer than ten).
// Several processes make it together.
// PSI_EDATA if there is nothing to learn: no transition, rewards that never vary, or observations
// that are not numbers.
psi_status problem_new(psi_ctx *ctx, const psi_trajectories *data, uint64_t seed,
                       cluster_problem *out);
void problem_free(psi_ctx *ctx, cluster_problem *problem);

// The trajectories with these labels (n_rows) in the place of observations.
psi_paths problem_paths(const cluster_problem *problem, const int32_t *labels, size_t n_latent);

#endif
