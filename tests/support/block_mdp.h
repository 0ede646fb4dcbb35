// Random block MDPs with known latent states: every latent state shows itself as one of several
// noisy vectors, and no two of them can be told apart by fewer latent states.
#ifndef PSI_TESTS_BLOCK_MDP_H
#define PSI_TESTS_BLOCK_MDP_H

#include <psifold/psifold.h>

typedef struct block_options {
    size_t latent_states, actions;
    size_t looks;       // differently looking ground states of each latent state
    size_t dimensions;  // of an observation
    bool stochastic;    // an action leads to a second state with probability .1 … .4
    bool noisy_rewards; // standard deviation .1 around 0, 1 and 2
    bool rare;          // one latent state is entered by a single edge only
    bool uneven;        // the first action is taken 70 % of the time
    size_t episodes, length;
    uint64_t seed;
} block_options;

// Trajectories with latent_states as the truth; no episode terminates.
psi_status block_mdp_collect(psi_ctx *ctx, const block_options *options, psi_trajectories **out);

#endif
