// That nothing in a latent state matters, and that nothing before it does, takes data to show.
#include "support/support.h"

#include "base/random.h"

#include <string.h>

static psi_run *cluster_collected(psi_ctx *ctx, psi_collector *collector)
{
    psi_cluster_options options = psi_cluster_defaults();
    psi_trajectories *data;
    psi_run *run;
    options.representation_steps = 1;
    assert_ok(ctx, psi_collector_finish(collector, &data));
    assert_ok(ctx, psi_cluster(ctx, data, &options, &run));
    psi_trajectories_free(ctx, data);
    return run;
}

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
    base_random random = base_random_stream(seed, 0x6f6e65, 0);
    psi_collector *collector;
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
    return cluster_collected(ctx, collector);
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

// A hall leads to either of two rooms, which pay with odds of 0.38 and 0.62 and lead back: where
// one is, with a little noise, beside four numbers of noise alone.
static psi_run *cluster_rooms(psi_ctx *ctx, size_t episodes, uint64_t seed)
{
    enum { LENGTH = 25, WIDTH = 5 };
    const psi_episode_spec spec = {.observation_dtype = PSI_FLOAT32,
                                   .observation_shape = {.rank = 1, .dim = {WIDTH}},
                                   .observation_high = 1e3,
                                   .observation_low = -1e3,
                                   .n_actions = 2};
    base_random random = base_random_stream(seed, 0x726f6f6d, 0);
    psi_collector *collector;
    assert_ok(ctx, psi_collector_new(ctx, &spec, &collector));
    for (size_t e = 0; e < episodes; e++) {
        float looks[(LENGTH + 1) * WIDTH];
        int32_t actions[LENGTH];
        double rewards[LENGTH];
        uint32_t room = 0; // 0: the hall
        for (size_t t = 0; t <= LENGTH; t++) {
            looks[t * WIDTH] = (float)(1.6 * room + 0.15 * base_random_normal(&random));
            for (size_t i = 1; i < WIDTH; i++) {
                looks[t * WIDTH + i] = (float)base_random_normal(&random);
            }
            if (t == LENGTH) break;
            actions[t] = (int32_t)base_random_below(&random, 2);
            rewards[t] = room > 0 && base_random_uniform(&random) < (room == 1 ? 0.38 : 0.62);
            room = room > 0 ? 0 : 1 + base_random_below(&random, 2);
        }
        const psi_episode episode = {.length = LENGTH,
                                     .observations = looks,
                                     .actions = actions,
                                     .rewards = rewards,
                                     .truncated = true};
        assert_ok(ctx, psi_collector_add(collector, &episode));
    }
    return cluster_collected(ctx, collector);
}

static void little_data_do_not_say_that_rooms_are_alike(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    for (uint64_t seed = 0; seed < test_repetitions(8); seed++) {
        psi_run *run = cluster_rooms(ctx, 4, seed);
        assert_int_not_equal(run->verdict, PSI_VERDICT_CERTAIN);
        psi_run_free(ctx, run);
    }
    psi_ctx_free(ctx);
}

// One observation, which pays by the toss of a coin.
static psi_run *cluster_coin(psi_ctx *ctx, size_t episodes)
{
    enum { LENGTH = 50 };
    const psi_episode_spec spec = {
        .observation_dtype = PSI_INT64, .n_actions = 2, .observation_high = 2};
    base_random random = base_random_stream(0, 0x636f696e, 0);
    psi_collector *collector;
    assert_ok(ctx, psi_collector_new(ctx, &spec, &collector));
    for (size_t e = 0; e < episodes; e++) {
        int64_t at[LENGTH + 1] = {0};
        int32_t actions[LENGTH];
        double rewards[LENGTH];
        for (size_t t = 0; t < LENGTH; t++) {
            actions[t] = (int32_t)base_random_below(&random, 2);
            rewards[t] = at[t] == 0 && base_random_below(&random, 2) > 0;
            at[t + 1] = 1 - at[t];
        }
        const psi_episode episode = {.length = LENGTH,
                                     .observations = at,
                                     .actions = actions,
                                     .rewards = rewards,
                                     .truncated = true};
        assert_ok(ctx, psi_collector_add(collector, &episode));
    }
    return cluster_collected(ctx, collector);
}

// Whatever hides in some episodes could have told a thousand tosses.
static void a_thousand_tosses_may_be_told_by_something(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_run *run = cluster_coin(ctx, 40);
    char sentence[256];
    assert_int_equal(run->n_latent, 2);
    assert_int_equal(run->verdict, PSI_VERDICT_UNDETERMINED);
    assert_int_equal(run->n_doubts, 1);
    assert_int_equal(run->doubts[0].kind, PSI_DOUBT_CHANCE);
    psi_doubt_sentence(&run->doubts[0], sentence, sizeof sentence);
    assert_non_null(strstr(sentence, "left to chance"));
    const size_t enough = (size_t)run->doubts[0].enough / 50 + 1;
    psi_run_free(ctx, run);
    run = cluster_coin(ctx, enough); // as advised
    assert_int_equal(run->verdict, PSI_VERDICT_CERTAIN);
    psi_run_free(ctx, run);
    psi_ctx_free(ctx);
}

// Noise, and what is paid is whether action 1 was taken before.
static psi_run *cluster_noise(psi_ctx *ctx, size_t episodes, uint64_t seed)
{
    enum { LENGTH = 50, WIDTH = 30 };
    const psi_episode_spec spec = {.observation_dtype = PSI_FLOAT32,
                                   .observation_shape = {.rank = 1, .dim = {WIDTH}},
                                   .observation_high = 1e3,
                                   .observation_low = -1e3,
                                   .n_actions = 2};
    base_random random = base_random_stream(seed, 0x6e6f6973, 0);
    psi_collector *collector;
    assert_ok(ctx, psi_collector_new(ctx, &spec, &collector));
    for (size_t e = 0; e < episodes; e++) {
        float looks[(LENGTH + 1) * WIDTH];
        int32_t actions[LENGTH];
        double rewards[LENGTH];
        for (size_t i = 0; i < (LENGTH + 1) * WIDTH; i++) {
            looks[i] = (float)base_random_normal(&random);
        }
        for (size_t t = 0; t < LENGTH; t++) {
            actions[t] = (int32_t)base_random_below(&random, 2);
            rewards[t] = t > 0 && actions[t - 1] == 1;
        }
        const psi_episode episode = {.length = LENGTH,
                                     .observations = looks,
                                     .actions = actions,
                                     .rewards = rewards,
                                     .truncated = true};
        assert_ok(ctx, psi_collector_add(collector, &episode));
    }
    return cluster_collected(ctx, collector);
}

// A network has memorised what came before each observation of a few hundred; with few episodes
// none is held out to show it.
static void noise_is_no_latent_state(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    for (uint64_t seed = 0; seed < test_repetitions(4); seed++) {
        psi_run *run = cluster_noise(ctx, seed % 2 == 0 ? 12 : 3, seed);
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
        cmocka_unit_test(little_data_do_not_say_that_rooms_are_alike),
        cmocka_unit_test(a_thousand_tosses_may_be_told_by_something),
        cmocka_unit_test(noise_is_no_latent_state),
        cmocka_unit_test(what_leaves_nothing_to_chance_is_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
