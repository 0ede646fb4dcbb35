// Questions about a labelling: what does it lose against a finer one, and gain over one in which
// two of its clusters are one; would a network that sees the observations predict better than it
// does; and do states that were in no cluster fit where they were put?
#ifndef PSI_CLUSTER_JUDGE_H
#define PSI_CLUSTER_JUDGE_H

#include "cluster/approximator.h"

// For every cluster k of `finer` (n_finer): the mean, over the transitions that start in it, of
//     log P(c(s'), r | k, a) − log P(c(s'), r | c(s), a)
// where c is the coarser labelling: nats per step that are lost by no longer telling k apart, less
// what k's own frequencies may gain by chance on the transitions they are counted from.
// lost (n_finer) is 0 for clusters without a transition.
psi_status cluster_judge_loss(psi_ctx *ctx, const cluster_problem *problem, const int32_t *finer,
                              size_t n_finer, const int32_t *coarser, size_t n_coarser,
                              double *lost);

// What it gains, in nats, to tell clusters i and j apart: on held-out transitions out of either,
// each predicted from the others with its own cluster's frequencies instead of those of both
// together. said (n_rows) is what a classifier that has not seen these calls every state: what
// happened to a state had no part in its label, as it has where labels follow from learnt or
// smoothed outcomes. gain (K, K), symmetric; +∞ where too few are held out to tell.
psi_status cluster_judge_apart(psi_ctx *ctx, const cluster_problem *problem, const int32_t *said,
                               size_t n_latent, double *gain);

static const double JUDGE_HOT_MEAN = 0.01; // nats per step: gaining more on average is hot

typedef struct split_test {
    double mean;     // gain over all judged transitions, in nats per step
    double largest;  // gain of the cluster that gains most, less two standard errors …
    int32_t cluster; // … and which one it is
    double hidden;   // how much is: the larger of these two gains, in units of what is allowed
    bool hot;        // hidden > 1: the labelling hides something that predicts what happens
} split_test;

// Gain of predictions that see the observation over the labelling's, on held-out transitions (on
// all, if none are held out): log f(c(s')|s,a) − log M_a(c(s), c(s')), and the same for rewards; f
// alone, and with the label as P ∝ M_a(c(s), ·) · f(·|s,a) / P(·|a). A third prediction knows the
// label and the (label, action) before it, and is judged on all transitions. Whichever gains most
// counts. Fits a head for next states and one for rewards.
psi_status cluster_judge_split(psi_ctx *ctx, const cluster_problem *problem,
                               const cluster_approximator *approximator, const int32_t *labels,
                               size_t n_latent, uint64_t seed, split_test *out);

// How much more surprising than others are the transitions out of and into states that `before`
// had in no cluster (−1) and `after` has in one, to the model of all other transitions: nats per
// step, less a standard error. A state too rare to be a cluster does not fit anywhere. 0 if there
// are hardly any.
psi_status cluster_judge_homes(psi_ctx *ctx, const cluster_problem *problem, const int32_t *before,
                               const int32_t *after, size_t n_latent, double *misfit);

#endif
