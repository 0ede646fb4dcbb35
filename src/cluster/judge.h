// Two questions about a labelling: what does it lose against a finer one, and would a network that
// sees the observations predict better than it does?
#ifndef PSI_CLUSTER_JUDGE_H
#define PSI_CLUSTER_JUDGE_H

#include "cluster/approximator.h"

// For every cluster k of `finer` (n_finer): the mean, over the transitions that start in it, of
//     log P(c(s'), r | k, a) − log P(c(s'), r | c(s), a)
// where c is the coarser labelling: nats per step that are lost by no longer telling k apart, less
// what k's own frequencies gain by chance on the transitions they are counted from.
// lost (n_finer) is 0 for clusters without a transition.
psi_status cluster_judge_loss(psi_ctx *ctx, const cluster_problem *problem, const int32_t *finer,
                              size_t n_finer, const int32_t *coarser, size_t n_coarser,
                              double *lost);

typedef struct split_test {
    double mean;     // gain over all judged transitions, in nats per step
    double largest;  // gain of the cluster that gains most, less its standard error …
    int32_t cluster; // … and which one it is
    bool hot;        // the labelling hides something that predicts what happens
} split_test;

// Gain of predictions that see the observation over the labelling's, on held-out transitions (on
// all, if none are held out): log f(c(s')|s,a) − log M_a(c(s), c(s')), and the same for rewards; f
// alone, and with the label as P ∝ M_a(c(s), ·) · f(·|s,a) / P(·|a). A third prediction knows the
// label and the (label, action) before it, and is judged on all transitions. Whichever gains most
// counts. Fits a head for next states and one for rewards.
psi_status cluster_judge_split(psi_ctx *ctx, const cluster_problem *problem,
                               const cluster_approximator *approximator, const int32_t *labels,
                               size_t n_latent, uint64_t seed, split_test *out);

#endif
