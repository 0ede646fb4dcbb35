// Latent states without observations are not counted, and a run that counts one is found out.
#include "support/collect.h"
#include "support/support.h"

#include "base/context.h"
#include "base/json.h"
#include "cluster/seen.h"

#include <string.h>

static void states_without_observations_go(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    int32_t labels[] = {0, 2, -1, 4, 2, 4, 5};
    psi_doubt doubts[] = {
        {.kind = PSI_DOUBT_PAIR, .state = 2, .other = 4},
        {.kind = PSI_DOUBT_PAIR, .state = 3, .other = 4},    // of one that is gone
        {.kind = PSI_DOUBT_UNTRIED, .state = 5, .other = 1}, // an action, not a state
        {.kind = PSI_DOUBT_PAST, .state = 1, .other = -1},   // gone
        {.kind = PSI_DOUBT_PAST, .state = 4, .other = -1},
    };
    psi_run found = {.n_observations = 7,
                     .n_latent = 7,
                     .has_terminal = true,
                     .labels = labels,
                     .n_doubts = 5,
                     .doubts = doubts};
    assert_ok(ctx, cluster_keep_seen(ctx, &found));
    assert_int_equal(found.n_latent, 4);
    const int32_t expected[] = {0, 1, -1, 2, 1, 2, 3};
    assert_memory_equal(labels, expected, sizeof expected);
    assert_int_equal(found.n_doubts, 3);
    assert_int_equal(doubts[0].state, 1);
    assert_int_equal(doubts[0].other, 2);
    assert_int_equal(doubts[1].kind, PSI_DOUBT_UNTRIED);
    assert_int_equal(doubts[1].state, 3);
    assert_int_equal(doubts[1].other, 1);
    assert_int_equal(doubts[2].state, 2);
    assert_int_equal(doubts[2].other, -1);
    assert_ok(ctx, cluster_keep_seen(ctx, &found)); // and nothing else happens
    assert_int_equal(found.n_latent, 4);
    assert_memory_equal(labels, expected, sizeof expected);
    psi_ctx_free(ctx);
}

static void forget_checksums(psi_ctx *ctx, const char *path)
{
    json_t *manifest;
    assert_ok(ctx, base_json_load(ctx, path, 1 << 20, &manifest));
    (void)json_object_del(manifest, "checksums");
    assert_ok(ctx, base_json_save(ctx, path, manifest));
    json_decref(manifest);
}

// A run as it was found, or with labels that were tampered with.
static psi_status write_and_check(psi_ctx *ctx, const psi_trajectories *data, int32_t from,
                                  int32_t to)
{
    char *folder = test_folder();
    const char *path = test_path(folder, "run");
    const psi_cluster_options options = psi_cluster_defaults();
    psi_run *run;
    assert_ok(ctx, test_cluster_into(ctx, path, PSI_FOLDER_NEW, data, &options, &run));
    for (size_t i = 0; i < run->n_observations; i++) {
        if (run->labels[i] == from) run->labels[i] = to;
    }
    const psi_array labels = {"labels", PSI_INT32, {1, {run->n_observations}}, run->labels};
    assert_ok(ctx, psi_arrays_save(ctx, test_path(path, "clusters.npy"), &labels, 1));
    forget_checksums(ctx, test_path(path, "manifest.json"));
    psi_run_free(ctx, run);
    const psi_status status = psi_run_check(ctx, path);
    test_folder_free(folder);
    return status;
}

static void a_run_that_counts_too_many_is_found_out(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_trajectories *data = test_collect(ctx, "column-world", 40, 1, NULL);
    assert_ok(ctx, write_and_check(ctx, data, 1, 1));
    assert_status(ctx, write_and_check(ctx, data, 2, 1), PSI_EDATA);
    test_assert_error_says(ctx, "no observation is in latent state 2 of 4");
    assert_status(ctx, write_and_check(ctx, data, 2, 4), PSI_EDATA);
    psi_trajectories_free(ctx, data);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_without_observations_go),
        cmocka_unit_test(a_run_that_counts_too_many_is_found_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
