// Run folders to report on: a real one, clustered from a task, and ones made up, of any size.
#ifndef PSI_TESTS_RUNS_H
#define PSI_TESTS_RUNS_H

#include <psifold/psifold.h>

// Collects episodes of a task into folder/data.npz and clusters them into folder/run.
void test_cluster_run(psi_ctx *ctx, const char *folder, const char *task, uint64_t episodes,
                      const char *const *options, const psi_cluster_options *how);

// The page of a run folder, as the command makes it: data are read from data_path (NULL: where the
// run says, if they are there).
psi_status test_report(psi_ctx *ctx, const char *folder, const char *data_path, const char *page,
                       psi_report_options how, psi_report_result *result);

typedef struct test_run_spec {
    size_t n_latent, n_actions, episodes, length;
    psi_dtype dtype;
    psi_shape shape; // of an observation: noise that depends on the latent state
    size_t refinements;
    const char *data_path; // in the manifest; NULL: folder/data.npz
    const char *approximator;
} test_run_spec;

// A made-up task without an end: action a leads from k to (k + 1 + a) mod K and earns 1 in K − 1.
// Leaves folder/data.npz and folder/run, as psifold cluster does with a table.
void test_made_up_run(psi_ctx *ctx, const char *folder, const test_run_spec *spec);

#endif
