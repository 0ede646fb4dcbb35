// What every refinement knew, kept so that it can be asked about other data: heads that tell its
// clusters apart, on the features of the trunk, and its latent model.
#ifndef PSI_RUN_STAGES_H
#define PSI_RUN_STAGES_H

#include "learn/approximator.h"
#include "run/folder.h"

// Fits and writes result/heads-<n>.safetensors and result/latent-<n>.npz for every refinement, from
// result/clusters-<n>.npy. What is there already is left alone. The seed of refinement n is seed +
// n. Several processes do it together; the folder is rank 0's, and NULL elsewhere.
psi_status run_stages_save(psi_ctx *ctx, psi_run_folder *to, const cluster_problem *problem,
                           const learn_approximator *approximator, const psi_cluster_step *steps,
                           size_t n_steps, uint64_t seed);

#endif
