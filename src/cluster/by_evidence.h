// Algorithm 1 by evidence: c_0 is {terminal, rest}; c_1 groups observations by rewards and endings,
// c_2 by where they lead, and so on until nothing changes. F is invertible, so equal successor
// features and equal laws of the next latent state are one condition; counts, whose noise is known,
// are compared in the place of ψ within ε.
#ifndef PSI_CLUSTER_BY_EVIDENCE_H
#define PSI_CLUSTER_BY_EVIDENCE_H

#include "cluster/looks.h"

#include <psifold/cluster.h>

// Rewards as outcomes: classes where values repeat, else numbers whose means are compared.
typedef struct outcome_rewards {
    size_t n;        // classes; 0: numbers
    int32_t *of;     // (transitions) the class of each
    double variance; // of all of them; numbers only
    double mean;
    double *precision, *weighted; // (n_nodes, A) of the leaves, as psi_draws has them; numbers only
} outcome_rewards;

psi_status cluster_outcome_rewards(psi_ctx *ctx, const cluster_problem *problem,
                                   const cluster_looks *looks, outcome_rewards *out);
// The same as numbers, whatever they are; looks of which leaf, left, parent and forest.n_nodes are
// asked for.
psi_status cluster_mean_rewards(psi_ctx *ctx, const cluster_problem *problem,
                                const cluster_looks *looks, outcome_rewards *out);
void cluster_outcome_rewards_free(psi_ctx *ctx, outcome_rewards *rewards);

typedef struct by_evidence_options {
    size_t max_refinements, max_latent_states;
    const int32_t *start; // (n_rows) labels of n_start latent states to begin with; NULL: c_0
    size_t n_start;
    bool smooth; // label observations of mixed cells by their trajectories
    psi_status (*watch)(void *user, const psi_cluster_step *step, size_t refinement,
                        size_t n_observations, const int32_t *labels);
    void *user;
} by_evidence_options;

typedef struct by_evidence {
    int32_t *labels;   // (n_rows) 0: terminal, if there is one; −1: nothing is known
    float *confidence; // (n_rows) in its label
    size_t n_latent;
    bool converged; // the last two refinements are equal
    bool stopped;   // the time was up before
    size_t n_steps;
    psi_cluster_step *steps; // (n_steps)
    psi_grouping *grouping;  // of the last one
    double smoothed;         // share of the observations that trajectories labelled
    size_t turns;            // of smoothing and grouping
    bool unclear; // some latent states were not clearly apart when they were first told apart, …
    int32_t unclear_pair[2]; // … as these two were not
} by_evidence;

psi_status cluster_refine_by_evidence(psi_ctx *ctx, const cluster_problem *problem,
                                      const cluster_looks *looks, const outcome_rewards *rewards,
                                      const by_evidence_options *options, by_evidence *out);
void cluster_by_evidence_free(psi_ctx *ctx, by_evidence *found);

#endif
