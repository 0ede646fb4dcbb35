// A time limit that is recorded as an end: no observation shows the clock, so that the task is not
// Markov. Ends that may come at any time are Markov.
#include "support/support.h"

#include "base/random.h"

enum { STATES = 3, EPISODES = 40, LIMIT = 100, LONGEST = 2000 };

// Action 1 goes on in a ring of three states, action 0 sometimes. The last one pays. Episodes end
// after LIMIT steps, or each step with a probability of 1 in LIMIT.
static psi_run *cluster_ring(psi_ctx *ctx, bool limited, uint64_t seed)
{
    const psi_episode_spec spec = {
        .observation_dtype = PSI_INT64, .n_actions = 2, .observation_high = STATES - 1};
    psi_cluster_options options = psi_cluster_defaults();
    base_random random = base_random_stream(seed, 0x636c6f63, 0);
    psi_collector *collector;
    psi_trajectories *data;
    psi_run *run;
    assert_ok(ctx, psi_collector_new(ctx, &spec, &collector));
    for (size_t e = 0; e < EPISODES; e++) {
        static int64_t at[LONGEST + 1];
        static int32_t actions[LONGEST];
        static double rewards[LONGEST];
        size_t length = 0;
        at[0] = base_random_below(&random, STATES);
        for (bool over = false; !over && length < LONGEST; length++) {
            actions[length] = (int32_t)base_random_below(&random, 2);
            rewards[length] = at[length] == STATES - 1;
            const bool goes = actions[length] == 1 || base_random_uniform(&random) < 0.2;
            at[length + 1] = (at[length] + goes) % STATES;
            over = limited ? length + 1 == LIMIT : base_random_below(&random, LIMIT) == 0;
        }
        const psi_episode episode = {.length = length,
                                     .observations = at,
                                     .actions = actions,
                                     .rewards = rewards,
                                     .terminated = true};
        assert_ok(ctx, psi_collector_add(collector, &episode));
    }
    assert_ok(ctx, psi_collector_finish(collector, &data));
    assert_ok(ctx, psi_cluster(ctx, data, &options, &run));
    psi_trajectories_free(ctx, data);
    return run;
}

static bool is_doubted(const psi_run *run, uint64_t *visits)
{
    for (size_t i = 0; i < run->n_doubts; i++) {
        *visits = run->doubts[i].visits;
        if (run->doubts[i].kind == PSI_DOUBT_CLOCK) return true;
    }
    return false;
}

static void a_time_limit_is_no_end(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    for (uint64_t seed = 0; seed < 2; seed++) {
        uint64_t after;
        psi_run *run = cluster_ring(ctx, true, seed);
        assert_int_equal(run->verdict, PSI_VERDICT_NOT_MARKOV);
        assert_true(is_doubted(run, &after));
        assert_int_equal(after, LIMIT);
        psi_run_free(ctx, run);
    }
    psi_ctx_free(ctx);
}

static void an_end_may_come_at_any_time(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    for (uint64_t seed = 0; seed < test_repetitions(8); seed++) {
        uint64_t after;
        psi_run *run = cluster_ring(ctx, false, seed);
        assert_int_equal(run->n_latent, STATES + 1);
        assert_false(is_doubted(run, &after));
        psi_run_free(ctx, run);
    }
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_time_limit_is_no_end),
        cmocka_unit_test(an_end_may_come_at_any_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
