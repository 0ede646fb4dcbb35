// The whole method on tables, and on data that cannot be clustered. tests/learn has the same with
// networks that are trained to the end.
#include "support/collect.h"
#include "support/support.h"

#include "base/context.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void column_world_as_a_table_is_exact(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_trajectories *data = test_collect(ctx, "column-world", 500, 1, NULL);
    const psi_cluster_options options = psi_cluster_defaults();
    psi_run *found;
    assert_ok(ctx, psi_cluster(ctx, data, &options, &found));
    assert_int_equal(found->approximator, PSI_APPROXIMATOR_TABLE);
    test_assert_exact(ctx, data, found);
    static const size_t counts[] = {3, 4, 4}; // c_0 is {terminal, rest}: 2, 3, 4, 4
    assert_int_equal(found->n_steps, 3);
    for (size_t i = 0; i < 3; i++) assert_int_equal(found->steps[i].clusters, counts[i]);
    psi_run_free(ctx, found);
    psi_trajectories_free(ctx, data);
    psi_ctx_free(ctx);
}

// The figures of the exact lock, from sampled trajectories: with new clusters each time, and with
// clusters that are only ever split.
static void a_lock_as_a_table_refines_as_it_should(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    static const char *const five[] = {"digits", "none", "digits-per-dial", "5", NULL};
    psi_trajectories *data = test_collect(ctx, "combination-lock", 600, 1, five);
    for (int split = 0; split < 2; split++) {
        psi_cluster_options options = psi_cluster_defaults();
        options.split = split;
        psi_run *found;
        assert_ok(ctx, psi_cluster(ctx, data, &options, &found));
        test_assert_exact(ctx, data, found);
        assert_int_equal(found->n_latent, 25);
        for (size_t i = 1; i < found->n_steps; i++) {
            assert_true(found->steps[i].clusters >= found->steps[i - 1].clusters);
        }
        psi_run_free(ctx, found);
    }
    psi_trajectories_free(ctx, data);
    psi_ctx_free(ctx);
}

// Stopped after the reward refinement, epsilon of successor features is not that of rewards.
static void one_refinement_says_what_successor_features_may_differ_by(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(2);
    psi_trajectories *data = test_collect(ctx, "column-world", 200, 1, NULL);
    psi_cluster_options options = psi_cluster_defaults();
    options.method = PSI_METHOD_SUCCESSOR_FEATURES;
    options.approximator = PSI_APPROXIMATOR_TABLE;
    options.max_refinements = 1;
    options.epsilon_reward = 0.4;
    for (int given = 0; given < 2; given++) {
        psi_run *found;
        options.epsilon_sf = given ? 0.125 : 0.0;
        assert_ok(ctx, psi_cluster(ctx, data, &options, &found));
        assert_int_equal(found->n_steps, 1);
        assert_true(found->epsilon_reward == 0.4);
        assert_true(found->gap > 0.0 && found->gap != 1.0);
        if (given) {
            assert_true(found->epsilon_sf == 0.125);
        } else {
            assert_true(found->epsilon_sf == fmin(0.75 * found->gap, 0.5));
            assert_true(found->epsilon_sf != 0.4);
        }
        psi_run_free(ctx, found);
    }
    psi_trajectories_free(ctx, data);
    psi_ctx_free(ctx);
}

static void the_same_seed_gives_the_same_labels(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(2);
    psi_trajectories *data = test_collect(ctx, "point-column-world", 120, 5, NULL);
    psi_cluster_options options = psi_cluster_defaults();
    options.hidden = 64;
    options.trunk_steps = 40;
    options.head_steps = 20;
    options.representation_steps = 50;
    psi_run *found[2];
    for (int i = 0; i < 2; i++) assert_ok(ctx, psi_cluster(ctx, data, &options, &found[i]));
    assert_int_equal(found[0]->n_latent, found[1]->n_latent);
    assert_memory_equal(found[0]->labels, found[1]->labels, data->n_observations * sizeof(int32_t));
    assert_true(found[0]->accuracy == found[1]->accuracy);
    for (int i = 0; i < 2; i++) psi_run_free(ctx, found[i]);
    psi_trajectories_free(ctx, data);
    psi_ctx_free(ctx);
}

// A tiny data set of one number per observation.
static psi_trajectories *tiny(psi_ctx *ctx, const int64_t *observations, const double *rewards,
                              size_t length, size_t episodes, bool terminated)
{
    const psi_episode_spec spec = {
        .observation_dtype = PSI_INT64, .n_actions = 1, .observation_high = 1000.0};
    psi_collector *collector;
    psi_trajectories *data;
    int32_t actions[64] = {0};
    assert_ok(ctx, psi_collector_new(ctx, &spec, &collector));
    for (size_t e = 0; e < episodes; e++) {
        const psi_episode episode = {.length = length,
                                     .observations = observations,
                                     .actions = actions,
                                     .rewards = rewards,
                                     .terminated = terminated,
                                     .truncated = !terminated};
        assert_ok(ctx, psi_collector_add(collector, &episode));
    }
    assert_ok(ctx, psi_collector_finish(collector, &data));
    return data;
}

static void a_chain_with_one_action_counts_down(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    const int64_t observations[] = {10, 11, 12, 13, 14};
    const double rewards[] = {0.0, 0.0, 0.0, 1.0};
    psi_trajectories *data = tiny(ctx, observations, rewards, 4, 50, true);
    const psi_cluster_options options = psi_cluster_defaults();
    psi_run *found;
    assert_ok(ctx, psi_cluster(ctx, data, &options, &found));
    assert_int_equal(found->n_latent, 5); // every distance to the reward, and the end
    psi_run_free(ctx, found);
    psi_trajectories_free(ctx, data);
    psi_ctx_free(ctx);
}

static void data_that_cannot_be_clustered_say_why(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    const int64_t observations[] = {1, 2, 3, 4, 5};
    const double constant[] = {2.0, 2.0, 2.0, 2.0};
    psi_trajectories *data = tiny(ctx, observations, constant, 4, 20, false);
    psi_cluster_options options = psi_cluster_defaults();
    psi_run *found;
    assert_ok(ctx, psi_cluster(ctx, data, &options, &found));
    assert_int_equal(found->n_latent, 1);
    assert_int_equal(found->verdict, PSI_VERDICT_NOTHING_TO_PREDICT);
    psi_run_free(ctx, found);
    options.method = PSI_METHOD_SUCCESSOR_FEATURES;
    assert_status(ctx, psi_cluster(ctx, data, &options, &found), PSI_EDATA);
    test_assert_error_says(ctx, "all 80 rewards are 2");
    assert_null(found);
    options.method = PSI_METHOD_EVIDENCE;
    psi_trajectories_free(ctx, data);

    const double rising[] = {0.0, 1.0, 2.0, 3.0};
    data = tiny(ctx, observations, rising, 4, 20, false);
    options.max_latent_states = 2;
    assert_status(ctx, psi_cluster(ctx, data, &options, &found), PSI_ELIMIT);
    test_assert_error_says(ctx, "--max-latent-states");
    psi_trajectories_free(ctx, data);

    // one look for everything: nothing can be told apart, but that is an answer
    const int64_t same[] = {7, 7, 7, 7, 7};
    data = tiny(ctx, same, rising, 4, 20, false);
    options = psi_cluster_defaults();
    assert_ok(ctx, psi_cluster(ctx, data, &options, &found));
    assert_int_equal(found->n_latent, 1);
    psi_run_free(ctx, found);
    psi_trajectories_free(ctx, data);
    psi_ctx_free(ctx);
}

static psi_status cluster_a_table(psi_ctx *ctx, void *argument)
{
    const psi_cluster_options options = psi_cluster_defaults();
    psi_run *found;
    psi_status status = psi_cluster(ctx, argument, &options, &found);
    if (found && found->failure) status = PSI_ENOMEM; // the answer goes without what it was for
    psi_run_free(ctx, found);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    const int64_t observations[] = {1, 2, 3};
    const double rewards[] = {0.0, 1.0};
    psi_trajectories *data = tiny(ctx, observations, rewards, 2, 60, true);
    assert_in_range(test_fault_sweep(cluster_a_table, data), 50, 1000);
    psi_trajectories_free(ctx, data);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(column_world_as_a_table_is_exact),
        cmocka_unit_test(a_lock_as_a_table_refines_as_it_should),
        cmocka_unit_test(a_chain_with_one_action_counts_down),
        cmocka_unit_test(data_that_cannot_be_clustered_say_why),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(one_refinement_says_what_successor_features_may_differ_by),
        cmocka_unit_test(the_same_seed_gives_the_same_labels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
