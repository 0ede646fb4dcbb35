// Trajectories of the built-in tasks in memory, and the question whether a clustering of them is
// exactly right.
#ifndef PSI_TESTS_COLLECT_H
#define PSI_TESTS_COLLECT_H

#include <psifold/psifold.h>

// options are name, value, …, NULL, of which "preset" may be the first; or NULL.
psi_trajectories *test_collect(psi_ctx *ctx, const char *task, uint64_t episodes, uint64_t seed,
                               const char *const *options);

// Opens the folder and clusters into it: psi_cluster_into. A run that was left is checked.
psi_status test_cluster_into(psi_ctx *ctx, const char *folder, psi_folder_mode mode,
                             const psi_trajectories *data, const psi_cluster_options *options,
                             psi_run **out);

// Whatever a test leaves as a run must be one: psi_run_check.
void test_check_run(const char *folder);

// As many latent states as there are in truth, and each observation in its own; exact: and certain.
void test_assert_partition(psi_ctx *ctx, const psi_trajectories *data, const psi_run *found);
void test_assert_exact(psi_ctx *ctx, const psi_trajectories *data, const psi_run *found);

#endif
