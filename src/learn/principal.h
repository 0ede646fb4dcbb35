// The directions in which features, or pixels, vary most: a few dozen numbers that say what a few
// hundred do.
#ifndef PSI_LEARN_PRINCIPAL_H
#define PSI_LEARN_PRINCIPAL_H

#include "learn/features.h"

// Principal components of the features of all observations: *out (n_rows, *width), each with its
// own variance, the caller's. *width becomes smaller if there are fewer features.
psi_status learn_principal_components(psi_ctx *ctx, const cluster_problem *problem,
                                      const feature_cache *features, size_t *width, float **out);

// The same of images as they are. PSI_ELIMIT for images of more than LEARN_MOST_PIXELS numbers,
// whose covariances would fill the memory.
enum { LEARN_MOST_PIXELS = 4096 };
psi_status learn_principal_pixels(psi_ctx *ctx, const cluster_problem *problem,
                                  problem_inputs *inputs, size_t *width, float **out);

#endif
