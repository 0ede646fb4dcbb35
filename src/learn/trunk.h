// The trunk's one fit: features from which one-step rewards, the action between two observations
// and the next observation can be told. Nothing but the trajectories is looked at.
#ifndef PSI_LEARN_TRUNK_H
#define PSI_LEARN_TRUNK_H

#include "problem/observe.h"
#include "problem/problem.h"

typedef struct trunk_options {
    size_t steps;
    size_t windows, length; // a batch: this many stretches of consecutive observations
    double learning_rate;
    double inverse_weight;  // of inverse dynamics, beside the reward's cross-entropy
    double contrast_weight; // of telling the next observation from others
    double next_weight;     // of seeing the next image in coarse outline
    size_t shift;           // images are moved by up to so many pixels
    uint64_t seed;
} trunk_options;

typedef struct trunk_losses {
    double reward, inverse, contrast, next; // means over the last tenth of the steps
} trunk_losses;

// Trains a network whose heads (A × reward classes) predict the one-step reward. Transitions that
// are held out are not touched.
psi_status learn_trunk_train(psi_ctx *ctx, const cluster_problem *problem, problem_inputs *inputs,
                             const trunk_options *options, psi_net *net, trunk_losses *losses);

#endif
