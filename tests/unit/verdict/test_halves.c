// One latent state: nothing that is seen matters. That takes as much data as any other answer.
#include "support/support.h"

#include "base/random.h"

// Two contexts that are seen with a little noise, beside two numbers of noise alone. An action pays
// its number, and noise of this deviation; contexts differ by `differ`. Every episode is one step.
static psi_run *cluster_contexts(psi_ctx *ctx, size_t episodes, double differ, double noise,
                                 uint64_t seed)
{
    const psi_episode_spec spec = {.observation_dtype = PSI_FLOAT32,
                                   .observation_shape = {.rank = 1, .dim = {3}},
                                   .observation_high = 1e3,
                                   .observation_low = -1e3,
                                   .n_actions = 2};
    psi_cluster_options options = psi_cluster_defaults();
    base_random random = base_random_stream(seed, 0x6f6e65, 0);
    psi_collector *collector;
    psi_trajectories *data;
    psi_run *run;
    options.representation_steps = 1;
    assert_ok(ctx, psi_collector_new(ctx, &spec, &collector));
    for (size_t e = 0; e < episodes; e++) {
        const double context = base_random_uniform(&random) < 0.5;
        const float looks[6] = {(float)(context + 0.1 * base_random_normal(&random)),
                                (float)(2.0 * base_random_normal(&random)),
                                (float)(2.0 * base_random_normal(&random))};
        const int32_t action = (int32_t)base_random_below(&random, 2);
        const double reward = action + differ * context + noise * base_random_normal(&random);
        const psi_episode episode = {.length = 1,
                                     .observations = looks,
                                     .actions = &action,
                                     .rewards = &reward,
                                     .terminated = true};
        assert_ok(ctx, psi_collector_add(collector, &episode));
    }
    assert_ok(ctx, psi_collector_finish(collector, &data));
    assert_ok(ctx, psi_cluster(ctx, data, &options, &run));
    psi_trajectories_free(ctx, data);
    return run;
}

static void little_data_do_not_say_that_nothing_matters(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    for (uint64_t seed = 0; seed < test_repetitions(8); seed++) {
        psi_run *run = cluster_contexts(ctx, 100, 0.8, 1.0, seed);
        assert_int_not_equal(run->verdict, PSI_VERDICT_CERTAIN);
        psi_run_free(ctx, run);
    }
    psi_ctx_free(ctx);
}

static void what_leaves_nothing_to_chance_is_one(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_run *run = cluster_contexts(ctx, 400, 0.0, 0.0, 0);
    assert_int_equal(run->n_latent, 2);
    assert_int_equal(run->verdict, PSI_VERDICT_CERTAIN);
    psi_run_free(ctx, run);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(little_data_do_not_say_that_nothing_matters),
        cmocka_unit_test(what_leaves_nothing_to_chance_is_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
