#include "support/collect.h"

#include "support/support.h"

#include <string.h>

static psi_status keep(void *user, const psi_episode *episode)
{
    return psi_collector_add(user, episode);
}

psi_trajectories *test_collect(psi_ctx *ctx, const char *name, uint64_t episodes, uint64_t seed,
                               const char *const *options)
{
    psi_task task;
    psi_collector *collector;
    psi_trajectories *data;
    const bool preset = options && *options && strcmp(options[0], "preset") == 0;
    assert_ok(ctx, psi_task_defaults(ctx, name, preset ? options[1] : NULL, &task));
    if (preset) options += 2;
    for (; options && *options; options += 2) {
        assert_ok(ctx, psi_task_set(ctx, &task, options[0], options[1]));
    }
    assert_ok(ctx, psi_task_check(ctx, &task));
    const psi_episode_spec spec = psi_collect_spec(&task);
    assert_ok(ctx, psi_collector_new(ctx, &spec, &collector));
    assert_ok(ctx, psi_collect(ctx, &task, episodes, seed, keep, collector, NULL));
    assert_ok(ctx, psi_collector_finish(collector, &data));
    return data;
}

psi_status test_cluster_into(psi_ctx *ctx, const char *folder, psi_folder_mode mode,
                             const psi_trajectories *data, const psi_cluster_options *options,
                             psi_run **out)
{
    psi_run_folder *to;
    *out = NULL;
    psi_status status = psi_run_folder_open(ctx, folder, mode, &to);
    if (status == PSI_OK)
        status = psi_cluster_into(to, &(const char *){"data"}, 1, data, options, out);
    if (status == PSI_OK) test_check_run(folder);
    return status;
}

void test_check_run(const char *folder)
{
    psi_ctx *ctx = test_ctx(1); // the caller's may refuse memory
    assert_ok(ctx, psi_run_check(ctx, folder));
    psi_ctx_free(ctx);
}

void test_assert_partition(psi_ctx *ctx, const psi_trajectories *data, const psi_run *found)
{
    psi_purity purity;
    assert_ok(ctx, psi_purity_of(ctx, data, found->labels, found->n_latent, &purity));
    assert_int_equal(found->n_latent, purity.true_latent_states);
    assert_true(purity.off_diagonal == 0.0);
    assert_true(purity.accuracy > 0.9995);
}

void test_assert_exact(psi_ctx *ctx, const psi_trajectories *data, const psi_run *found)
{
    test_assert_partition(ctx, data, found);
    assert_int_equal(found->verdict, PSI_VERDICT_CERTAIN);
}
