// The benchmarks behind `psifold bench`: each measures on this machine and fills in a JSON object.
#ifndef PSI_CLI_BENCH_H
#define PSI_CLI_BENCH_H

#include <psifold/psifold.h>

#include "base/json.h"

// Makes its own data in folder (about 2 GB), which must exist, and removes them again. Sets
//   read_minari_gb_per_s         a uint8 Minari file of 2 GB read in order, into batches
//   random_batches_images_per_s  random batches of 256 images of 3 × 28 × 28, from memory
//   open_minari_s                opening that file, 5,800 episodes
//   streaming_rss_mb             how far resident memory grew while the file was read
psi_status bench_data(psi_ctx *ctx, const char *folder, json_t *results);

psi_status bench_env(psi_ctx *ctx, json_t *results);
psi_status bench_mdp(psi_ctx *ctx, json_t *results);
psi_status bench_cluster(psi_ctx *ctx, json_t *results);
psi_status bench_agent(psi_ctx *ctx, json_t *results);

// Exact quotients of models of 10^5, 10^6, … transitions up to the largest, and of a chain.
psi_status bench_quotient(psi_ctx *ctx, size_t largest, json_t *results);

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

// An update of deep Q-learning on the lock, target evaluation included; net and batch count.
psi_status bench_dqn(psi_ctx *ctx, const bench_nn_options *options, json_t *results);

#endif
