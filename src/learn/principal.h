// The directions in which features vary most: a few dozen numbers that say what a few hundred do.
#ifndef PSI_LEARN_PRINCIPAL_H
#define PSI_LEARN_PRINCIPAL_H

#include "learn/features.h"

// Principal components of the features of all observations: *out (n_rows, *width), each with its
// own variance, the caller's. *width becomes smaller if there are fewer features.
psi_status learn_principal_components(psi_ctx *ctx, const cluster_problem *problem,
                                      const feature_cache *features, size_t *width, float **out);

#endif
