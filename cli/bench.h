// The benchmarks behind `psifold bench`: each measures on this machine and fills in a JSON object.
#ifndef PSI_CLI_BENCH_H
#define PSI_CLI_BENCH_H

#include <psifold/psifold.h>

#include "base/json.h"

// Makes its own data in folder (about 2 GB), which must exist, and removes them again. Sets
//   read_minari_gb_per_s         a uint8 Minari file of 2 GB read in order, into batches
//   random_batches_images_per_s  random batches of 256 images of 3 × 28 × 28, from memory
//   streaming_rss_mb             how far resident memory grew while the file was read
psi_status bench_data(psi_ctx *ctx, const char *folder, json_t *results);

psi_status bench_env(psi_ctx *ctx, json_t *results);
psi_status bench_mdp(psi_ctx *ctx, json_t *results);

#endif
