// Does a labelling hide something? Asked where observations say nothing: what is hidden shows only
// in what labels remember.
#include "support/support.h"

#include "base/random.h"
#include "cluster/judge.h"

#include <math.h>

enum { EPISODES = 120, LENGTH = 60 };

// A ring 0 … 3 with a side state: action 0 goes on, action 1 stays, except that it leads from 3 to
// 4. From there action 0 leads to 2, as from 1, but action 1 leads to 0. With slips, one action in
// ten does what the other one does. No two observations are the same.
static psi_trajectories *ring(psi_ctx *ctx, bool slips, int32_t *states)
{
    const psi_episode_spec spec = {
        .observation_dtype = PSI_INT64, .n_actions = 2, .observation_high = 1e9};
    psi_collector *collector;
    psi_trajectories *data;
    base_random random = base_random_stream(3, 0, 0);
    int64_t observations[LENGTH + 1], next = 0;
    int32_t actions[LENGTH];
    double rewards[LENGTH];
    assert_ok(ctx, psi_collector_new(ctx, &spec, &collector));
    for (size_t e = 0; e < EPISODES; e++) {
        int32_t at = 0;
        for (size_t t = 0; t <= LENGTH; t++) {
            observations[t] = next++;
            *states++ = at;
            if (t == LENGTH) break;
            actions[t] = (int32_t)base_random_below(&random, 2);
            rewards[t] = at == 0 && actions[t] == 0;
            const bool on = (actions[t] == 0) != (slips && base_random_below(&random, 10) == 0);
            at = at == 4 ? (on ? 2 : 0) : on ? (at + 1) % 4 : (at == 3 ? 4 : at);
        }
        const psi_episode episode = {.length = LENGTH,
                                     .observations = observations,
                                     .actions = actions,
                                     .rewards = rewards,
                                     .truncated = true};
        assert_ok(ctx, psi_collector_add(collector, &episode));
    }
    assert_ok(ctx, psi_collector_finish(collector, &data));
    return data;
}

static void what_is_hidden_is_remembered(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    int32_t states[EPISODES * (LENGTH + 1)], merged[EPISODES * (LENGTH + 1)];
    psi_trajectories *data = ring(ctx, false, states);
    cluster_problem problem;
    cluster_approximator table;
    split_test test;
    assert_ok(ctx, cluster_problem_new(ctx, data, 0, &problem));
    assert_ok(ctx, cluster_table_new(ctx, &problem, problem.n_rows, &table));
    assert_ok(ctx, cluster_judge_split(ctx, &problem, &table, states, 5, 0, &test));
    assert_false(test.hot);
    for (size_t i = 0; i < problem.n_rows; i++) merged[i] = states[i] == 4 ? 1 : states[i];
    assert_ok(ctx, cluster_judge_split(ctx, &problem, &table, merged, 4, 0, &test));
    assert_true(test.hot);
    assert_int_equal(test.cluster, 1);
    table.free(table.self, ctx);
    cluster_problem_free(ctx, &problem);
    psi_trajectories_free(ctx, data);
    psi_ctx_free(ctx);
}

// Halves of a state, chosen at random, differ by chance: that is no loss. State 4 in state 1 is.
static void chance_is_no_loss(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    int32_t states[EPISODES * (LENGTH + 1)], halves[EPISODES * (LENGTH + 1)];
    int32_t merged[EPISODES * (LENGTH + 1)];
    psi_trajectories *data = ring(ctx, false, states);
    cluster_problem problem;
    double lost[10];
    base_random random = base_random_stream(4, 0, 0);
    assert_ok(ctx, cluster_problem_new(ctx, data, 0, &problem));
    for (size_t i = 0; i < problem.n_rows; i++) {
        halves[i] = states[i] + (base_random_below(&random, 20) == 0 ? 5 : 0);
        merged[i] = states[i] == 4 ? 1 : states[i];
    }
    assert_ok(ctx, cluster_judge_loss(ctx, &problem, halves, 10, states, 5, lost));
    for (size_t k = 0; k < 10; k++) assert_true(lost[k] < 0.02);
    assert_ok(ctx, cluster_judge_loss(ctx, &problem, states, 5, merged, 4, lost));
    assert_true(lost[4] > 0.3);
    assert_true(lost[0] < 0.02 && lost[2] < 0.02);
    cluster_problem_free(ctx, &problem);
    psi_trajectories_free(ctx, data);
    psi_ctx_free(ctx);
}

// However small they are and however often they are drawn: 1,000 parts of some 60 observations.
static void chance_is_hardly_ever_a_loss(void **state)
{
    (void)state;
    enum { DRAWS = 200 };
    psi_ctx *ctx = test_ctx(1);
    int32_t states[EPISODES * (LENGTH + 1)], parts[EPISODES * (LENGTH + 1)];
    psi_trajectories *data = ring(ctx, true, states);
    cluster_problem problem;
    double lost[10];
    size_t lossy = 0;
    assert_ok(ctx, cluster_problem_new(ctx, data, 0, &problem));
    for (uint64_t draw = 0; draw < DRAWS; draw++) {
        base_random random = base_random_stream(8, 0, draw);
        for (size_t i = 0; i < problem.n_rows; i++) {
            parts[i] = states[i] + (base_random_below(&random, 25) == 0 ? 5 : 0);
        }
        assert_ok(ctx, cluster_judge_loss(ctx, &problem, parts, 10, states, 5, lost));
        for (size_t k = 5; k < 10; k++) lossy += lost[k] > 0.05; // as much as polishing lets go
    }
    print_message("%zu of %d parts would stay apart\n", lossy, 5 * DRAWS);
    assert_true(lossy <= 2);
    cluster_problem_free(ctx, &problem);
    psi_trajectories_free(ctx, data);
    psi_ctx_free(ctx);
}

// Halves of a state gain nothing from being told apart, where what happened had no part in the
// choice; different states do, and a handful decides nothing.
static void halves_are_one_and_states_are_not(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    int32_t states[EPISODES * (LENGTH + 1)], halves[EPISODES * (LENGTH + 1)];
    psi_trajectories *data = ring(ctx, false, states);
    cluster_problem problem;
    double gain[11][11];
    base_random random = base_random_stream(5, 0, 0);
    assert_ok(ctx, cluster_problem_new(ctx, data, 0, &problem));
    assert_true(problem.n_held_out > 500);
    for (size_t i = 0; i < problem.n_rows; i++) {
        halves[i] = states[i] + (base_random_below(&random, 2) == 0 ? 5 : 0);
        if (i % 1000 == 0) halves[i] = 10;
    }
    assert_ok(ctx, cluster_judge_apart(ctx, &problem, halves, 11, &gain[0][0]));
    for (size_t i = 0; i < 10; i++) {
        for (size_t j = 0; j < 10; j++) {
            assert_true(gain[i][j] == gain[j][i]);
            if (i == j) continue;
            if (i % 5 == j % 5) {
                assert_true(gain[i][j] <= 0.0);
            } else {
                assert_true(gain[i][j] > 5.0);
            }
        }
        assert_true(gain[i][i] == HUGE_VAL && gain[i][10] == HUGE_VAL);
    }
    cluster_problem_free(ctx, &problem);
    psi_trajectories_free(ctx, data);
    psi_ctx_free(ctx);
}

// Some states in no cluster: put where they belong they surprise nobody, state 4 put into state 1
// does.
static void a_state_too_rare_fits_nowhere(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    int32_t states[EPISODES * (LENGTH + 1)], before[EPISODES * (LENGTH + 1)];
    int32_t after[EPISODES * (LENGTH + 1)];
    psi_trajectories *data = ring(ctx, false, states);
    cluster_problem problem;
    double misfit;
    assert_ok(ctx, cluster_problem_new(ctx, data, 0, &problem));
    for (size_t i = 0; i < problem.n_rows; i++) before[i] = i % 7 == 0 ? -1 : states[i];
    assert_ok(ctx, cluster_judge_homes(ctx, &problem, before, states, 5, &misfit));
    assert_true(misfit < 0.05);
    for (size_t i = 0; i < problem.n_rows; i++) {
        before[i] = states[i] == 4 ? -1 : states[i];
        after[i] = states[i] == 4 ? 1 : states[i];
    }
    assert_ok(ctx, cluster_judge_homes(ctx, &problem, before, after, 4, &misfit));
    assert_true(misfit > 1.0);
    assert_ok(ctx, cluster_judge_homes(ctx, &problem, states, states, 5, &misfit));
    assert_true(misfit == 0.0);
    cluster_problem_free(ctx, &problem);
    psi_trajectories_free(ctx, data);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_hidden_is_remembered),
        cmocka_unit_test(chance_is_no_loss),
        cmocka_unit_test(chance_is_hardly_ever_a_loss),
        cmocka_unit_test(halves_are_one_and_states_are_not),
        cmocka_unit_test(a_state_too_rare_fits_nowhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
