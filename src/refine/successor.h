// Successor features of all states as points for the cover, and what is asked about clusterings
// between two refinements.
#ifndef PSI_REFINE_SUCCESSOR_H
#define PSI_REFINE_SUCCESSOR_H

#include "refine/refine.h"

// ψ(s,a) without its first term, and the reward beside it: [f_r(s,a)/spacing, γ Fᵀ f_i(s,a)].
typedef struct successor_features {
    const cluster_problem *problem;
    const learn_approximator *approximator;
    const refinement *of;
    size_t n_actions, n_latent;
    double gap; // γ · min ‖F_i − F_j‖: the smallest distance of two different next states
    psi_mdp *model; // {w_a, M_a} of the labels
    float *gamma_f; // (K, K) γF
    uint64_t *rows; // (block)
    float *p;       // (block, A, K)
} successor_features;

psi_status refine_successor_new(psi_ctx *ctx, const cluster_problem *problem,
                                const learn_approximator *approximator, const refinement *of,
                                double gamma, successor_features *out);
void refine_successor_free(psi_ctx *ctx, successor_features *psi);

// A psi_cover_points fill: points are numbered like problem->states.
psi_status refine_successor_fill(void *psi, psi_ctx *ctx, const uint64_t *states, size_t n,
                                 float *out);

// Over held-out transitions (all, if none are): the mean distance γ‖Fᵀ f(s,a) − Fᵀ M_a(c(s))‖, and
// the share of them within epsilon / 2. phase is the name of its progress.
psi_status refine_successor_error(psi_ctx *ctx, successor_features *psi, double epsilon,
                                  const char *phase, double *mean, double *perfect);

// Points that already lie in a matrix (n, width).
typedef struct refine_matrix {
    const float *values;
    size_t width;
} refine_matrix;
psi_status refine_matrix_fill(void *matrix, psi_ctx *ctx, const uint64_t *rows, size_t n,
                              float *out);

// Agreement of two labellings over rows that both keep, under the best matching; and for every
// cluster of b the cluster of a that most of it comes from (−1: none of it was kept). Of the rows
// of all processes together.
psi_status refine_compare(psi_ctx *ctx, size_t n_rows, const int32_t *a, size_t n_a,
                          const int32_t *b, size_t n_b, double *agreement, int32_t *parent);

// Covers every old cluster by itself. Ignored states stay ignored.
psi_status refine_split(psi_ctx *ctx, const psi_cover_points *points,
                        const psi_cover_options *options, const cluster_problem *problem,
                        const int32_t *labels, size_t n_labels, int32_t *of_state,
                        size_t *n_latent);

psi_status refine_step_add(psi_ctx *ctx, refinement *result, const psi_cluster_step *step);

#endif
