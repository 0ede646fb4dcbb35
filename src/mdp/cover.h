// Groups of vectors that lie within epsilon of a common centre: how exact tables are clustered.
#ifndef PSI_MDP_COVER_H
#define PSI_MDP_COVER_H

#include <psifold/mdp.h>

// Clusters n states by features (n, A, width): a state joins the nearest leader within epsilon,
// where the distance is the sum over actions of the norm of the difference (equations 5 and 9), or
// becomes a leader itself. Only states of one group (n) may come together. Leaders are compared
// only where a common projection of the features allows it, so that well separated features cost
// O(n·A·width + n·log n). Blocks are numbered in order of first appearance.
psi_status mdp_cover(psi_ctx *ctx, size_t n, size_t n_actions, size_t width, const double *features,
                     const int32_t *group, psi_norm norm, double epsilon, psi_partition **out);

// The same where features are not written down: a projection (n) that never enlarges a distance,
// and the distance of two states as a function.
typedef double mdp_distance(void *user, size_t s, size_t t);
psi_status mdp_cover_by(psi_ctx *ctx, size_t n, const double *projection, const int32_t *group,
                        double epsilon, mdp_distance *distance, void *user, psi_partition **out);

// A direction of length 1, the same on every call.
void mdp_cover_direction(double *direction, size_t size);

#endif
