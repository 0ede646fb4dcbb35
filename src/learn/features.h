// The features of all observations, computed once and kept: what every head is trained on.
#ifndef PSI_LEARN_FEATURES_H
#define PSI_LEARN_FEATURES_H

#include <psifold/cluster.h>

#include "problem/observe.h"
#include "problem/problem.h"

typedef struct feature_cache {
    size_t n, d;    // observations, features of each
    float *full;    // (n, D) …
    uint16_t *half; // (n, D) … or these: the upper halves of floats (bfloat16), rounded
    float *scale;   // (D) 1/rms of all features: heads see numbers of size one
} feature_cache;

// PSI_CACHE_AUTO keeps halves where floats would take more than a gibibyte.
psi_status learn_features_new(psi_ctx *ctx, const cluster_problem *problem, problem_inputs *inputs,
                              const psi_net *net, psi_cache precision, feature_cache *out);
void learn_features_free(psi_ctx *ctx, feature_cache *cache);

// out (count, D): the features of these observations, gathered by all threads.
void learn_features_gather(psi_ctx *ctx, const feature_cache *cache, const uint64_t *rows,
                           size_t count, float *out);

#endif
