// Latent states without observations are not counted, and a run that counts one is found out.
#include "support/collect.h"
#include "support/support.h"

#include "base/context.h"
#include "base/json.h"
#include "cluster/seen.h"

#include <stdio.h>
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
    assert_ok(ctx, cluster_keep_seen(ctx, 7, &found));
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
    assert_ok(ctx, cluster_keep_seen(ctx, 7, &found)); // and nothing else happens
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

// Stops when so many refinements were told of.
static psi_status stop_at(void *user, const psi_cluster_step *step, size_t refinement, size_t n,
                          const int32_t *labels)
{
    size_t *left = user;
    (void)step, (void)refinement, (void)n, (void)labels;
    return --*left == 0 ? PSI_ECANCELLED : PSI_OK;
}

// After the last refinement nothing is in a latent state any more (smoothing may do that): told by
// hand in what a run that was stopped there goes on from.
static void what_a_later_step_empties_is_not_counted(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder();
    char path[512], last[640];
    snprintf(path, sizeof path, "%s/run", folder);
    snprintf(last, sizeof last, "%s/checkpoint/result/clusters-02.npy", path);
    psi_trajectories *data = test_collect(ctx, "column-world", 40, 1, NULL);
    psi_cluster_options how = psi_cluster_defaults();
    psi_run *run;
    size_t left = 2;
    how.method = PSI_METHOD_SUCCESSOR_FEATURES;
    how.approximator = PSI_APPROXIMATOR_TABLE;
    how.max_refinements = 2;
    how.watch = stop_at;
    how.user = &left;
    assert_status(ctx, test_cluster_into(ctx, path, PSI_FOLDER_NEW, data, &how, &run),
                  PSI_ECANCELLED);
    psi_shape shape;
    void *loaded;
    assert_ok(ctx, psi_array_load(ctx, last, NULL, PSI_INT32, &shape, &loaded));
    int32_t *labels = loaded, most = 0;
    for (size_t i = 0; i < shape.dim[0]; i++) most = labels[i] > most ? labels[i] : most;
    assert_true(most >= 2);
    for (size_t i = 0; i < shape.dim[0]; i++)
        labels[i] -= labels[i] == 2; // none in 2 of 0, 1, 2, …
    const psi_array array = {"labels", PSI_INT32, shape, labels};
    assert_ok(ctx, psi_arrays_save(ctx, last, &array, 1));
    psi_array_free(ctx, loaded);
    how.watch = NULL;
    assert_ok(ctx, test_cluster_into(ctx, path, PSI_FOLDER_RESUME, data, &how, &run));
    assert_int_equal(run->steps[run->n_steps - 1].clusters, most + 1);
    assert_int_equal(run->n_latent, most); // and test_cluster_into has checked the rest
    assert_int_equal(run->model->n_states, most);
    psi_run_free(ctx, run);
    psi_trajectories_free(ctx, data);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_without_observations_go),
        cmocka_unit_test(a_run_that_counts_too_many_is_found_out),
        cmocka_unit_test(what_a_later_step_empties_is_not_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
