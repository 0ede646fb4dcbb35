// Telling the next observation from others (InfoNCE): a projection of (s, a) should point at the
// projection of s' and away from the other next observations of the batch.
#ifndef PSI_LEARN_CONTRAST_H
#define PSI_LEARN_CONTRAST_H

#include <psifold/base.h>

enum { CONTRAST_WIDTH = 64 };

// For n pairs of projections query, key (n, CONTRAST_WIDTH), the loss
//     mean_i −log softmax_j(q̂_i · k̂_j / temperature)_i,   q̂ = q/‖q‖, k̂ = k/‖k‖,
// and its gradients by query and key. scratch holds (n + 2·CONTRAST_WIDTH + 2) · n floats.
size_t learn_contrast_scratch(size_t n);
double learn_contrast(const float *query, const float *key, size_t n, double temperature,
                      float *scratch, float *d_query, float *d_key);

#endif
