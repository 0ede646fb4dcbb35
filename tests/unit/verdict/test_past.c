// Does the past tell more than the latent state? Rings of states that are stepped through, with and
// without a secret.
#include "support/support.h"

#include "base/context.h"
#include "base/random.h"
#include "verdict/past.h"

enum { STATES = 40, LENGTH = 60, EPISODES = 400 };

typedef enum secret { NOTHING, LAST_ACTION, ONCE, FIRST, DRIFT, HANDFUL, NEVER } secret;

// Two actions go on in a ring, and slip back with probability .1. LAST_ACTION: the slip is four
// times as probable after action 1, in every state. ONCE: an episode slips at most once. FIRST: the
// first step slips with probability .9. DRIFT: slips become more frequent, from .075 to .125.
// HANDFUL: the fourth step of four episodes slips, and no other. NEVER: none does.
static psi_trajectories *walk(psi_ctx *ctx, secret kind, uint64_t seed)
{
    const psi_episode_spec spec = {
        .observation_dtype = PSI_INT64, .n_actions = 2, .observation_high = STATES};
    psi_collector *collector;
    psi_trajectories *data;
    base_random random = base_random_stream(seed, 0x70617374, 0);
    assert_ok(ctx, psi_collector_new(ctx, &spec, &collector));
    for (size_t e = 0; e < EPISODES; e++) {
        int64_t at[LENGTH + 1] = {base_random_below(&random, STATES)};
        int32_t actions[LENGTH];
        double rewards[LENGTH];
        bool slipped = false;
        for (size_t t = 0; t < LENGTH; t++) {
            double slip = 0.1;
            if (kind == LAST_ACTION && t > 0) slip = actions[t - 1] == 1 ? 0.16 : 0.04;
            if (kind == ONCE && slipped) slip = 0.0;
            if (kind == FIRST && t == 0) slip = 0.9;
            if (kind == HANDFUL) slip = e < 4 && t == 3 ? 1.0 : 0.0;
            if (kind == NEVER) slip = 0.0;
            if (kind == DRIFT) slip = 0.075 + 0.05 * (double)e / EPISODES;
            const bool slips = base_random_uniform(&random) < slip;
            slipped |= slips;
            actions[t] = (int32_t)base_random_below(&random, 2);
            rewards[t] = at[t] == 0;
            at[t + 1] = (at[t] + (slips ? STATES - 1 : 1)) % STATES;
        }
        const psi_episode episode = {.length = LENGTH,
                                     .observations = at,
                                     .actions = actions,
                                     .rewards = rewards,
                                     .truncated = true};
        assert_ok(ctx, psi_collector_add(collector, &episode));
    }
    assert_ok(ctx, psi_collector_finish(collector, &data));
    return data;
}

static verdict_past ask(psi_ctx *ctx, secret kind, uint64_t seed)
{
    psi_trajectories *data = walk(ctx, kind, seed);
    cluster_problem problem;
    verdict_past past;
    assert_ok(ctx, problem_new(ctx, data, 0, &problem));
    const outcome_rewards rewards = {.n = problem.rewards.n, .of = problem.rewards.of};
    int32_t *labels;
    assert_ok(ctx, base_alloc(ctx, problem.n_rows, sizeof *labels, &labels));
    size_t row = 0;
    for (; row < problem.n_rows; row++) {
        int64_t x;
        const uint64_t which = row;
        assert_ok(ctx, psi_observations_gather(ctx, data->observations, &which, 1, &x));
        labels[row] = (int32_t)x;
    }
    assert_ok(ctx, verdict_ask_the_past(ctx, &problem, &rewards, labels, STATES, NULL, 0, 0.01, 0.0,
                                        &past));
    base_free(ctx, labels);
    problem_free(ctx, &problem);
    psi_trajectories_free(ctx, data);
    return past;
}

static void a_secret_in_many_places_is_found(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    for (uint64_t seed = 0; seed < test_repetitions(5); seed++) {
        assert_true(ask(ctx, LAST_ACTION, seed).share > 0.0);
        assert_true(ask(ctx, ONCE, seed).share > 0.0);
        assert_true(ask(ctx, FIRST, seed).share > 0.0);
        assert_true(ask(ctx, DRIFT, seed).suspect);
    }
    psi_ctx_free(ctx);
}

// Four slips of 24,000 steps may be owed to anything.
static void a_handful_of_exceptions_is_told(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    assert_int_equal(ask(ctx, HANDFUL, 1).exceptions, 4);
    assert_int_equal(ask(ctx, NEVER, 1).exceptions, 0);
    assert_int_equal(ask(ctx, NOTHING, 1).exceptions, 0); // thousands
    psi_ctx_free(ctx);
}

static void where_there_is_none_none_is_found(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    size_t suspected = 0;
    for (uint64_t seed = 0; seed < test_repetitions(40); seed++) {
        const verdict_past past = ask(ctx, NOTHING, seed);
        assert_true(past.share == 0.0);
        suspected += past.suspect;
    }
    assert_true(suspected <= 4); // .05 of 40, and two standard errors
    psi_ctx_free(ctx);
}

// A corridor of vectors: one of two cues at its entrance; action 0 goes on, action 1 waits; at its
// end, 1 is paid with a probability that the cue has told, and it begins again.
static psi_trajectories *walk_corridor(psi_ctx *ctx, double told, uint64_t seed)
{
    enum { CELLS = 9, DIMENSIONS = 4, STEPS = 50, WALKS = 200 };
    const psi_episode_spec spec = {.observation_dtype = PSI_FLOAT32,
                                   .observation_shape = {.rank = 1, .dim = {DIMENSIONS}},
                                   .n_actions = 2};
    psi_collector *collector;
    psi_trajectories *data;
    base_random random = base_random_stream(seed, 0x70617374, 1);
    float centre[CELLS + 2][DIMENSIONS];
    for (size_t i = 0; i < CELLS + 2; i++) {
        for (size_t d = 0; d < DIMENSIONS; d++) {
            centre[i][d] = 10.0f * (float)base_random_normal(&random);
        }
    }
    assert_ok(ctx, psi_collector_new(ctx, &spec, &collector));
    for (size_t e = 0; e < WALKS; e++) {
        float seen[STEPS + 1][DIMENSIONS];
        int32_t actions[STEPS];
        double rewards[STEPS];
        uint32_t at = 0, cue = base_random_below(&random, 2); // at 0: a cue; else a cell
        for (size_t t = 0; t <= STEPS; t++) {
            const size_t look = at == 0 ? cue : at + 1;
            for (size_t d = 0; d < DIMENSIONS; d++) {
                seen[t][d] = centre[look][d] + (float)base_random_normal(&random);
            }
            if (t == STEPS) break;
            const bool ends = at == CELLS, goes_on = base_random_below(&random, 2) == 0;
            const double pays = cue == 0 ? told : 1.0 - told;
            actions[t] = goes_on ? 0 : 1;
            rewards[t] = ends && goes_on && base_random_uniform(&random) < pays;
            if (ends && goes_on) cue = base_random_below(&random, 2);
            at = ends && goes_on ? 0 : at == 0 || goes_on ? at + 1 : at;
        }
        const psi_episode episode = {.length = STEPS,
                                     .observations = seen,
                                     .actions = actions,
                                     .rewards = rewards,
                                     .truncated = true};
        assert_ok(ctx, psi_collector_add(collector, &episode));
    }
    assert_ok(ctx, psi_collector_finish(collector, &data));
    return data;
}

// Features make cues alike, since both lead to the same place; what was seen is remembered.
static void a_cue_is_remembered_though_features_forget_it(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_cluster_options how = psi_cluster_defaults();
    how.representation_steps = 1;
    for (uint64_t seed = 6; seed <= 9; seed += 3) { // 9: the cues are seven deviations apart
        psi_trajectories *data = walk_corridor(ctx, 0.8, seed);
        psi_run *found;
        assert_ok(ctx, psi_cluster(ctx, data, &how, &found));
        assert_true(found->verdict != PSI_VERDICT_CERTAIN);
        assert_true(found->past > 0.0);
        psi_run_free(ctx, found);
        psi_trajectories_free(ctx, data);
    }
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_secret_in_many_places_is_found),
        cmocka_unit_test(a_handful_of_exceptions_is_told),
        cmocka_unit_test(where_there_is_none_none_is_found),
        cmocka_unit_test(a_cue_is_remembered_though_features_forget_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
