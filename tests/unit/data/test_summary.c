#include "files.h"
#include "fixture.h"

#include "data/trajectories.h"

#include <float.h>
#include <math.h>

typedef struct plan {
    size_t length;
    const double *rewards;
    const int32_t *actions;
    const float *observations; // (length + 1, 2)
    bool terminated, truncated;
} plan;

static psi_trajectories *collect(const plan *plans, size_t n, size_t n_actions)
{
    const psi_episode_spec spec = {.observation_dtype = PSI_FLOAT32,
                                   .observation_shape = {.rank = 1, .dim = {2}},
                                   .observation_high = 1,
                                   .n_actions = n_actions};
    psi_collector *collector;
    psi_trajectories *data;
    assert_ok(ctx, psi_collector_new(ctx, &spec, &collector));
    for (size_t e = 0; e < n; e++) {
        const psi_episode episode = {.length = plans[e].length,
                                     .observations = plans[e].observations,
                                     .actions = plans[e].actions,
                                     .rewards = plans[e].rewards,
                                     .terminated = plans[e].terminated,
                                     .truncated = plans[e].truncated};
        assert_ok(ctx, psi_collector_add(collector, &episode));
    }
    assert_ok(ctx, psi_collector_finish(collector, &data));
    return data;
}

static const float ZEROS[512];

static void test_everything_is_counted(void **state)
{
    (void)state;
    const plan plans[] = {
        {3, (double[]){1, 0, 1}, (int32_t[]){0, 0, 3}, ZEROS, true, false},
        {1, (double[]){-2}, (int32_t[]){1}, ZEROS, false, true},
        {2, (double[]){0, 0}, (int32_t[]){1, 1}, ZEROS, true, true},
    };
    psi_trajectories *data = collect(plans, 3, 4);
    psi_summary *all;
    assert_ok(ctx, psi_trajectories_summary(ctx, data, &all));
    assert_int_equal(all->n_rewards, 3);
    static const psi_reward_count rewards[] = {{-2, 1}, {0, 3}, {1, 2}};
    for (int i = 0; i < 3; i++) {
        assert_true(all->rewards[i].value == rewards[i].value);
        assert_int_equal(all->rewards[i].count, rewards[i].count);
    }
    assert_true(all->reward_min == -2 && all->reward_max == 1 && all->reward_mean == 0);
    static const uint64_t actions[] = {2, 3, 0, 1};
    assert_memory_equal(all->action_counts, actions, sizeof actions);
    assert_int_equal(all->n_actions_never_taken, 1);
    assert_int_equal(all->length_min, 1);
    assert_int_equal(all->length_max, 3);
    assert_true(all->length_mean == 2);
    assert_int_equal(all->n_terminated, 2);
    assert_int_equal(all->n_truncated, 2);
    assert_int_equal(all->observation_bytes, 9 * 8);
    assert_true(all->in_memory && all->memory_bytes > all->observation_bytes);
    assert_int_equal(all->n_problems, 2);
    assert_non_null(strstr(all->problems[0], "the first of them is 2"));
    assert_non_null(strstr(all->problems[1], "1 episodes are both"));
    psi_summary_free(ctx, all);
    psi_summary_free(ctx, NULL);
    psi_trajectories_free(ctx, data);
}

static void test_many_rewards_are_not_listed(void **state)
{
    (void)state;
    for (size_t distinct = PSI_SUMMARY_REWARDS; distinct <= PSI_SUMMARY_REWARDS + 1; distinct++) {
        double rewards[200];
        int32_t actions[200] = {0};
        for (size_t t = 0; t < 200; t++) rewards[t] = (double)(t * 37 % distinct);
        const plan one = {200, rewards, actions, ZEROS, true, false};
        psi_trajectories *data = collect(&one, 1, 1);
        psi_summary *all;
        assert_ok(ctx, psi_trajectories_summary(ctx, data, &all));
        assert_int_equal(all->n_rewards, distinct == PSI_SUMMARY_REWARDS ? distinct : 0);
        uint64_t sum = 0;
        for (size_t i = 0; i < all->n_rewards; i++) {
            assert_true(all->rewards[i].value == (double)i);
            sum += all->rewards[i].count;
        }
        assert_int_equal(sum, all->n_rewards ? 200 : 0);
        assert_true(all->reward_max == (double)(distinct - 1));
        psi_summary_free(ctx, all);
        psi_trajectories_free(ctx, data);
    }
}

static void test_the_largest_rewards_have_a_mean(void **state)
{
    (void)state;
    const struct {
        double rewards[4], mean;
    } cases[] = {
        {{1e308, 1e308, 1e308, 1e308}, 1e308},
        {{-1e308, -1e308, -1e308, -1e308}, -1e308},
        {{DBL_MAX, DBL_MAX, DBL_MAX, DBL_MAX}, DBL_MAX},
        {{DBL_MAX, DBL_MAX, -DBL_MAX, -DBL_MAX}, 0},
        {{5e-324, 5e-324, 5e-324, 5e-324}, 5e-324},
        {{1, 2, 3, 4}, 2.5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const plan one = {4, cases[i].rewards, (int32_t[]){0, 0, 0, 0}, ZEROS, true, false};
        psi_trajectories *data = collect(&one, 1, 1);
        psi_summary *all;
        assert_ok(ctx, psi_trajectories_summary(ctx, data, &all));
        assert_true(fabs(all->reward_mean - cases[i].mean) <= 1e-15 * fabs(cases[i].mean));
        assert_true(all->reward_mean >= all->reward_min && all->reward_mean <= all->reward_max);
        psi_summary_free(ctx, all);
        psi_trajectories_free(ctx, data);
    }
}

// Few bytes may not ask for much memory: the number of actions is held against what there is.
static void test_actions_are_held_against_the_data(void **state)
{
    (void)state;
    const plan one = {3, (double[]){1, 0, 1}, (int32_t[]){0, 0, 1}, ZEROS, true, false};
    psi_trajectories *data = collect(&one, 1, 2);
    psi_trajectories claim = *data;
    claim.n_actions = 1024;
    assert_ok(ctx, data_check_appetite(ctx, &claim, "claim"));
    claim.n_actions = PSI_MAX_ACTIONS;
    assert_status(ctx, data_check_appetite(ctx, &claim, "claim"), PSI_ELIMIT);
    test_assert_error_says(ctx, "too many for 3 transitions");
    psi_trajectories_free(ctx, data);
}

static void test_observations_that_are_not_numbers(void **state)
{
    (void)state;
    float values[4][2] = {{0, 1}, {2, 3}, {4, 5}, {6, 7}};
    const plan plans[] = {
        {3, (double[]){1, 0, 1}, (int32_t[]){0, 0, 0}, ZEROS, true, false},
        {3, (double[]){1, 0, 1}, (int32_t[]){0, 0, 0}, &values[0][0], true, false},
    };
    for (int row = -1; row < 4; row++) {
        if (row >= 0) values[row][1] = row % 2 ? (float)NAN : -(float)INFINITY;
        psi_trajectories *data = collect(plans, 2, 1);
        psi_summary *all;
        assert_ok(ctx, psi_trajectories_summary(ctx, data, &all));
        assert_int_equal(all->n_problems, row >= 0);
        if (row >= 0) {
            char text[64];
            snprintf(text, sizeof text, "Episode 1, observations: a value at step %d", row);
            assert_non_null(strstr(all->problems[0], text));
            values[row][1] = 0;
        }
        psi_summary_free(ctx, all);
        psi_trajectories_free(ctx, data);
    }
}

// What the public check finds in trajectories that somebody has put together by hand.
static void test_check_by_hand(void **state)
{
    (void)state;
    const plan plans[] = {
        {3, (double[]){1, 0, 1}, (int32_t[]){0, 0, 1}, ZEROS, true, false},
        {1, (double[]){-2}, (int32_t[]){1}, ZEROS, false, true},
    };
    psi_trajectories *data = collect(plans, 2, 2);
    const psi_trajectories good = *data;
    psi_trajectories bad[9];
    for (int i = 0; i < 9; i++) bad[i] = good;
    static const char *const says[] = {
        "no episodes",      "none or too many", "do not belong", "do not belong", "has no steps",
        "runs from 0 to 5", "neither is set",   "rewards: inf",  "latent states",
    };
    bad[0].n_episodes = 0;
    bad[1].n_actions = 0;
    bad[2].n_transitions = 5;
    bad[3].n_observations = 5;
    bad[4].episode_offsets = (uint64_t[]){0, 4, 4};
    bad[5].episode_offsets = (uint64_t[]){0, 5, 4};
    bad[6].terminated = (uint8_t[]){0, 0};
    bad[7].rewards = (double[]){0, 0, 0, (double)INFINITY};
    bad[8].latent_states = (int32_t[]){0, 0, 0, 0, 0, -1};
    for (int i = 0; i < 9; i++) {
        assert_status(ctx, psi_trajectories_check(ctx, &bad[i], "hand.npz"), PSI_EDATA);
        test_assert_error_says(ctx, says[i]);
        test_assert_error_says(ctx, "hand.npz");
    }
    assert_ok(ctx, psi_trajectories_check(ctx, &good, "hand.npz"));
    psi_trajectories_free(ctx, data);
}

// Columns that the caller has put together are no part of anything larger.
static void test_columns_of_the_caller_s_own(void **state)
{
    (void)state;
    const plan plans[] = {{1, (double[]){1}, (int32_t[]){0}, ZEROS, true, false}};
    psi_trajectories *data = collect(plans, 1, 1);
    struct {
        psi_trajectories columns;
        uint8_t beyond[8192];
    } own = {.columns = *data};
    memset(own.beyond, 0x5a, sizeof own.beyond);
    psi_summary *all, *same;
    assert_ok(ctx, psi_trajectories_summary(ctx, data, &all));
    assert_ok(ctx, psi_trajectories_summary(ctx, &own.columns, &same));
    assert_int_equal(same->n_problems, all->n_problems);
    psi_summary_free(ctx, same);
    psi_summary_free(ctx, all);
    psi_trajectories_free(ctx, data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(everything_is_counted),
        TEST(many_rewards_are_not_listed),
        TEST(the_largest_rewards_have_a_mean),
        TEST(actions_are_held_against_the_data),
        TEST(observations_that_are_not_numbers),
        TEST(check_by_hand),
        TEST(columns_of_the_caller_s_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
