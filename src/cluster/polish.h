// Polishing a labelling, beyond the paper: trajectories say what an observation must have been even
// where the network is unsure, and clusters that explain nothing of their own are given up.
#ifndef PSI_CLUSTER_POLISH_H
#define PSI_CLUSTER_POLISH_H

#include "cluster/approximator.h"

typedef struct polish_options {
    double filter;   // share of the states below which a cluster is given up
    double may_lose; // nats per step that a merge or a drop may cost its members
    size_t max_rounds;
    uint64_t seed;
} polish_options;

typedef struct polish_summary {
    size_t rounds;
    size_t dropped, merged; // clusters
    size_t changed;         // states whose label differs from the one before, both kept
    double ignored_before, ignored_after; // shares of the states
    double smallest_row_maximum;          // 1: the latent dynamics are deterministic
} polish_summary;

// labels (n_rows) and *n_latent are changed in place.
psi_status cluster_polish(psi_ctx *ctx, const cluster_problem *problem,
                          const cluster_approximator *approximator, const polish_options *options,
                          int32_t *labels, size_t *n_latent, polish_summary *summary);

#endif
