// Two latent states that touch: nobody can say of the observations at their border on which side
// they are, unless what followed them does.
#include "support/support.h"

#include "base/random.h"

enum { EPISODES = 2000 };

// A number from [0, 2), whose two halves win with these odds, and then it is over.
static psi_run *cluster_line(psi_ctx *ctx, uint64_t seed, double low, double high, size_t *wrong)
{
    const psi_episode_spec spec = {.observation_dtype = PSI_FLOAT32,
                                   .observation_shape = {.rank = 1, .dim = {1}},
                                   .observation_high = 3.0,
                                   .observation_low = -1.0,
                                   .n_actions = 2};
    psi_cluster_options options = psi_cluster_defaults();
    base_random random = base_random_stream(seed, 0x626f, 0);
    psi_collector *collector;
    psi_trajectories *data;
    psi_run *run;
    static float place[EPISODES];
    size_t count[2][8] = {{0}}, right = 0;
    assert_ok(ctx, psi_collector_new(ctx, &spec, &collector));
    for (size_t e = 0; e < EPISODES; e++) {
        const float looks[2] = {(float)(2.0 * base_random_uniform(&random)), -1.0f};
        const int32_t action = (int32_t)base_random_below(&random, 2);
        const double odds = action == 0 ? 0.5 : looks[0] < 1.0f ? low : high;
        const double reward = base_random_uniform(&random) < odds;
        const psi_episode episode = {.length = 1,
                                     .observations = looks,
                                     .actions = &action,
                                     .rewards = &reward,
                                     .terminated = true};
        assert_ok(ctx, psi_collector_add(collector, &episode));
        place[e] = looks[0];
    }
    assert_ok(ctx, psi_collector_finish(collector, &data));
    options.representation_steps = 1;
    assert_ok(ctx, psi_cluster(ctx, data, &options, &run));
    assert_true(run->n_latent <= 8);
    for (size_t e = 0; e < EPISODES; e++) {
        if (run->labels[2 * e] >= 0) count[place[e] >= 1.0f][run->labels[2 * e]]++;
    }
    for (size_t half = 0; half < 2; half++) {
        size_t most = 0;
        for (size_t k = 0; k < 8; k++) most = count[half][k] > most ? count[half][k] : most;
        right += most;
    }
    *wrong = EPISODES - right;
    psi_trajectories_free(ctx, data);
    return run;
}

static void nobody_knows_on_which_side(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    for (uint64_t seed = 0; seed < test_repetitions(4); seed++) {
        size_t wrong;
        psi_run *run = cluster_line(ctx, seed, 0.9, 0.1, &wrong);
        if (wrong > 0) assert_int_not_equal(run->verdict, PSI_VERDICT_CERTAIN);
        assert_true(run->doubtful > 1e-4);
        psi_run_free(ctx, run);
    }
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_knows_on_which_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
