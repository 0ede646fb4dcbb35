// The approximator of `--paper`: the whole network is trained at every refinement, for so many
// epochs at a constant learning rate, with cross-entropy and nothing else. The lower layers are
// those of the refinement before, the top-most one is new.
#ifndef PSI_LEARN_PAPER_H
#define PSI_LEARN_PAPER_H

#include "learn/approximator.h"
#include "problem/observe.h"

typedef struct paper_options {
    psi_net_kind kind;
    size_t hidden; // units of each of the perceptron's two layers
    size_t batch, reward_epochs, sf_epochs;
    double learning_rate;
    uint64_t seed;
    const char *checkpoint; // a folder that keeps the training under way; or NULL
} paper_options;

// Begins from the network of the reward refinement if that was made before (else NULL). inputs and
// options must outlive it.
psi_status learn_paper_new(psi_ctx *ctx, const cluster_problem *problem, problem_inputs *inputs,
                           const paper_options *options, const psi_net *rewards,
                           learn_approximator *out);

#endif
