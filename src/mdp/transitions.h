// The transition matrices that beliefs move through: M_a plus, for smoothing, a small uniform
// floor, so that no latent state is ever impossible. The floor is a rank-one term and is never
// written out.
#ifndef PSI_MDP_TRANSITIONS_H
#define PSI_MDP_TRANSITIONS_H

#include <psifold/mdp.h>

// T_a(k, j) = share · M_a(k, j) + even(k), with share = 1/(1 + floor), even = floor/K/(1 + floor)
// for seen pairs, M_a = 0 and even = 1/K for unseen ones, and nothing for terminal states. With a
// floor of 0 unseen rows stay empty: M_a as it is.
typedef struct mdp_transitions {
    size_t n_latent, n_actions;
    uint64_t *offsets;  // (A, K + 1)
    int32_t *next;      // (nnz)
    double *value;      // (nnz) share · M_a(k, j)
    double *even;       // (A, K)
    double *dense;      // (A, K, K) T_a in rows, or NULL: made only for small crowded matrices, …
    double *transposed; // (A, K, K) … for which straight loops are faster
} mdp_transitions;

psi_status mdp_transitions_new(psi_ctx *ctx, const psi_mdp *latent, double floor,
                               mdp_transitions *out);
void mdp_transitions_free(psi_ctx *ctx, mdp_transitions *transitions);

// out(j) = Σ_k alpha(k) T_a(k, j)
void mdp_forward(const mdp_transitions *transitions, size_t action, const double *alpha,
                 double *out);

// out(k) = Σ_j T_a(k, j) x(j)
void mdp_backward(const mdp_transitions *transitions, size_t action, const double *x, double *out);

#endif
