// What `psifold bench` can measure: one function per job, each adding its figures to an object.
#ifndef PSI_CLI_BENCH_H
#define PSI_CLI_BENCH_H

#include <psifold/psifold.h>

#include <jansson.h>

// `psifold bench train|predict --net resnet18 --shape 3x28x28 --batch 256 …`; on the context's
// threads. The net "heads" is linear heads on cached features.
typedef struct bench_nn_options {
    const char *net;
    psi_shape shape;
    size_t batch, n_actions, n_classes;
    double seconds;      // to measure for
    bool exact_conv;     // direct convolutions only
    const char *kernels; // NULL: the best there are
} bench_nn_options;

psi_status bench_train(psi_ctx *ctx, const bench_nn_options *options, json_t *results);
psi_status bench_predict(psi_ctx *ctx, const bench_nn_options *options, json_t *results);

#endif
