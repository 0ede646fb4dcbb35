// Algorithm 1 by evidence: c_0 is {terminal, rest}; c_1 groups observations by rewards and endings,
// c_2 by where they lead, and so on until nothing changes. F is invertible, so equal successor
// features and equal laws of the next latent state are one condition; counts, whose noise is known,
// are compared in the place of ψ within ε.
#ifndef PSI_REFINE_BY_EVIDENCE_H
#define PSI_REFINE_BY_EVIDENCE_H

#include "problem/outcome_rewards.h"

#include <psifold/cluster.h>

// The probability of being wrong anywhere that `certain` allows, shared by all questions of a kind.
#define REFINE_ALLOWED 0.01

// Nats that make each of n questions safe enough.
double refine_safe_nats(double n);

typedef struct by_evidence_options {
    size_t max_refinements, max_latent_states;
    const int32_t *start; // (n_rows) labels of n_start latent states to begin with; NULL: c_0
    size_t n_start;
    bool smooth; // label observations of mixed cells by their trajectories
    bool strict; // give up at fewer latent states than before: c_{i+1} does not refine c_i
    psi_status (*watch)(void *user, const psi_cluster_step *step, size_t refinement,
                        size_t n_observations, const int32_t *labels);
    void *user;
} by_evidence_options;

typedef struct by_evidence {
    int32_t *labels;   // (n_rows) 0: terminal, if there is one; −1: nothing is known
    float *confidence; // (n_rows) in its label
    size_t n_latent;
    bool converged; // the last two refinements are equal
    size_t n_steps;
    psi_cluster_step *steps; // (n_steps)
    psi_grouping *grouping;  // of the last one
    double smoothed;         // share of the observations that trajectories labelled
    size_t turns;            // of smoothing and grouping
    double untold;           // share of labels that only what followed told (settle.h)
    double mistaken; // share of held-out observations that look like another latent state's, by
                     // what was learnt from the others; 0: nothing was learnt
    bool unclear; // some latent states were not clearly apart when they were first told apart, …
    int32_t unclear_pair[2]; // … as these two were not
} by_evidence;

// On failure out is what the last refinement that was finished has left; labels are NULL if none
// was.
psi_status refine_by_evidence(psi_ctx *ctx, const cluster_problem *problem,
                              const problem_looks *looks, const outcome_rewards *rewards,
                              const by_evidence_options *options, by_evidence *out);
void refine_by_evidence_free(psi_ctx *ctx, by_evidence *found);

#endif
