// The exact model: against simulation, against what the paper and arithmetic say about it, and
// against a brute-force partition for the latent states.
#include "tasks.h"

#include <math.h>
#include <stdlib.h>

static const char *const PRESETS[] = {"train", "swap-digits", "reversed-dial", "left-dial-broken"};

static psi_task_exact *model_of(psi_ctx *ctx, const psi_task *task)
{
    psi_task_exact *model;
    assert_ok(ctx, psi_task_model(ctx, task, &model));
    return model;
}

// Rows are distributions over states that exist; terminal rows are empty; the start is one, too.
static void check_model(const psi_task_exact *model)
{
    double start = 0.0;
    for (size_t s = 0; s < model->n_states; s++) {
        start += model->start[s];
        if (model->terminal[s]) assert_int_equal(model->latent_states[s], 0);
        if (!model->terminal[s]) assert_true(model->latent_states[s] > 0);
        for (size_t a = 0; a < model->n_actions; a++) {
            const size_t row = s * model->n_actions + a;
            double sum = 0.0;
            for (size_t e = model->offsets[row]; e < model->offsets[row + 1]; e++) {
                assert_true(model->next[e] >= 0 && (size_t)model->next[e] < model->n_states);
                sum += model->probability[e];
            }
            if (model->terminal[s]) assert_true(model->offsets[row] == model->offsets[row + 1]);
            if (!model->terminal[s]) assert_true(fabs(sum - 1.0) < 1e-12);
        }
    }
    assert_true(fabs(start - 1.0) < 1e-12);
}

// Expected steps to the end: of random actions, or (best) of the best ones. Value iteration.
static double expected_steps(const psi_task_exact *model, bool best)
{
    double *steps = calloc(model->n_states, sizeof *steps), change = 1.0, answer = 0.0;
    assert_non_null(steps);
    while (change > 1e-10) {
        change = 0.0;
        for (size_t s = 0; s < model->n_states; s++) {
            if (model->terminal[s]) continue;
            double mean = 0.0, least = HUGE_VAL;
            for (size_t a = 0; a < model->n_actions; a++) {
                const size_t row = s * model->n_actions + a;
                double value = 1.0;
                for (size_t e = model->offsets[row]; e < model->offsets[row + 1]; e++) {
                    value += model->probability[e] * steps[model->next[e]];
                }
                mean += value / (double)model->n_actions;
                least = fmin(least, value);
            }
            const double fresh = best ? least : mean;
            change = fmax(change, fabs(fresh - steps[s]));
            steps[s] = fresh;
        }
    }
    for (size_t s = 0; s < model->n_states; s++) answer += model->start[s] * steps[s];
    free(steps);
    return answer;
}

// Which states can be reached from the start, by search.
static bool goal_is_reachable(const psi_task_exact *model)
{
    bool *reached = calloc(model->n_states, sizeof *reached), goal = false, changed = true;
    assert_non_null(reached);
    for (size_t s = 0; s < model->n_states; s++) reached[s] = model->start[s] > 0.0;
    while (changed) {
        changed = false;
        for (size_t s = 0; s < model->n_states; s++) {
            if (!reached[s]) continue;
            goal |= model->terminal[s];
            const size_t from = model->offsets[s * model->n_actions];
            const size_t to = model->offsets[(s + 1) * model->n_actions];
            for (size_t e = from; e < to; e++) {
                changed |= !reached[model->next[e]];
                reached[model->next[e]] = true;
            }
        }
    }
    free(reached);
    return goal;
}

static void test_presets(void **state)
{
    (void)state;
    static const double OPTIMAL[] = {18.0, 12.0, 13.0, 18.0};
    static const int LATENT[] = {100, 100, 100, 100};
    psi_ctx *ctx = test_ctx(1);
    for (size_t i = 0; i < 4; i++) {
        const psi_task task = test_task(ctx, "combination-lock", PRESETS[i], "");
        psi_task_exact *model = model_of(ctx, &task);
        check_model(model);
        assert_int_equal(model->n_states, 1000);
        assert_int_equal(model->n_actions, 3);
        assert_true(goal_is_reachable(model));
        assert_true(fabs(expected_steps(model, true) - OPTIMAL[i]) < 1e-6);
        bool seen[102] = {false};
        int latent = 0;
        for (size_t s = 0; s < model->n_states; s++) {
            latent += !seen[model->latent_states[s]];
            seen[model->latent_states[s]] = true;
        }
        assert_int_equal(latent, LATENT[i]);
        psi_task_model_free(ctx, model);
    }
    psi_ctx_free(ctx);
}

// Figures of the paper's settings, and of first-step analysis for the columns: h3 = 0, h2 = 2 +
// h1/2, h1 = 2 + (h0 + h2)/2, h0 = 4 + h1, so that h0 = 24.
static void test_mean_lengths_under_random_actions(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    const psi_task train = test_task(ctx, "combination-lock", "train", "");
    psi_task_exact *model = model_of(ctx, &train);
    print_message("lock: %.3f steps\n", expected_steps(model, false));
    assert_true(fabs(expected_steps(model, false) - 146.3) < 0.05);
    psi_task_model_free(ctx, model);
    const psi_task column = test_task(ctx, "point-column-world", NULL, "");
    model = model_of(ctx, &column);
    check_model(model);
    assert_true(fabs(expected_steps(model, false) - 24.0) < 1e-6);
    psi_task_model_free(ctx, model);
    psi_ctx_free(ctx);
}

// Plays random actions and compares how often each transition occurs with its probability.
static void compare_with_simulation(psi_ctx *ctx, const psi_task *task, size_t steps)
{
    psi_task_exact *model = model_of(ctx, task);
    const size_t S = model->n_states, A = model->n_actions;
    psi_env *env;
    assert_ok(ctx, psi_env_new(ctx, task, 1, 7, &env));
    double *seen = calloc(model->offsets[S * A], sizeof *seen), *starts = calloc(S, sizeof *starts);
    assert_non_null(seen);
    assert_non_null(starts);
    base_random choice = base_random_stream(7, 1, 0);
    double observation[PSI_MAX_BITS], reward;
    bool terminated = true, truncated = false;
    uint64_t episode = 0;
    for (size_t t = 0; t < steps; t++) {
        if (terminated || truncated) {
            psi_env_begin_one(env, 0, episode++, observation);
            starts[psi_env_ground_state(env, 0)] += 1.0;
        }
        const size_t s = psi_env_ground_state(env, 0);
        assert_int_equal(psi_env_latent_state(env, 0), model->latent_states[s]);
        const uint32_t a = base_random_below(&choice, (uint32_t)A);
        psi_env_step_one(env, 0, (int32_t)a, observation, &reward, &terminated, &truncated);
        const size_t next = psi_env_ground_state(env, 0), row = s * A + a;
        size_t e = model->offsets[row];
        while (e < model->offsets[row + 1] &&
               ((size_t)model->next[e] != next || reward != model->reward[e])) {
            e++;
        }
        assert_true(e < model->offsets[row + 1]); // the model knows this transition
        assert_int_equal(terminated, model->terminal[next]);
        seen[e] += 1.0;
    }
    for (size_t row = 0; row < S * A; row++) {
        double n = 0.0;
        for (size_t e = model->offsets[row]; e < model->offsets[row + 1]; e++) n += seen[e];
        for (size_t e = model->offsets[row]; e < model->offsets[row + 1]; e++) {
            const double p = model->probability[e];
            // five standard deviations of a binomial count, and one for small counts
            assert_true(fabs(seen[e] - n * p) <= 5.0 * sqrt(n * p * (1.0 - p)) + 1.0);
        }
    }
    for (size_t s = 0; s < S; s++) {
        const double n = (double)episode, p = model->start[s];
        assert_true(fabs(starts[s] - n * p) <= 5.0 * sqrt(n * p * (1.0 - p)) + 1e-9);
    }
    free(seen);
    free(starts);
    psi_env_free(ctx, env);
    psi_task_model_free(ctx, model);
}

// Bit locks and rich locks of a few sizes.
static psi_task small_lock(psi_ctx *ctx, int i)
{
    char options[64];
    snprintf(options, sizeof options, "%s %d instance %d", i % 2 ? "states" : "horizon", 2 + i / 2,
             i);
    return test_task(ctx, i % 2 ? "bit-lock" : "rich-lock", NULL, options);
}

static void test_simulation_agrees_with_the_model(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    static const char *const COLUMNS[] = {"", "no-terminate max-steps 30",
                                          "start-column any height 2 width 5 max-steps 9",
                                          "start-column any no-terminate max-steps 5",
                                          "start-column right no-terminate reward being"};
    for (size_t i = 0; i < 5; i++) {
        const psi_task task = test_task(ctx, "column-world", NULL, COLUMNS[i]);
        compare_with_simulation(ctx, &task, 20000);
    }
    base_random random = base_random_stream(11, 1, 0);
    for (int i = 0; i < 30; i++) {
        const psi_task task = test_random_lock(ctx, &random);
        compare_with_simulation(ctx, &task, 20000);
    }
    for (int i = 0; i < 6; i++) {
        const psi_task task = small_lock(ctx, i);
        compare_with_simulation(ctx, &task, 5000);
    }
    psi_ctx_free(ctx);
}

// The coarsest partition by plain refinement over the whole table: states stay together if they
// have the same expected reward and the same distribution over blocks for every action.
static size_t refine_fully(const psi_task_exact *model, int32_t *block)
{
    const size_t S = model->n_states, A = model->n_actions;
    double *signature = calloc(S * A * (S + 1), sizeof *signature);
    int32_t *fresh = calloc(S, sizeof *fresh);
    size_t *first = calloc(S, sizeof *first), blocks = 0, before;
    assert_non_null(signature);
    assert_non_null(fresh);
    assert_non_null(first);
    for (size_t s = 0; s < S; s++) block[s] = model->terminal[s] ? 0 : 1;
    do {
        before = blocks;
        memset(signature, 0, S * A * (S + 1) * sizeof *signature);
        for (size_t row = 0; row < S * A; row++) {
            for (size_t e = model->offsets[row]; e < model->offsets[row + 1]; e++) {
                signature[row * (S + 1) + (size_t)block[model->next[e]]] += model->probability[e];
                signature[row * (S + 1) + S] += model->probability[e] * model->reward[e];
            }
        }
        blocks = 0;
        for (size_t s = 0; s < S; s++) {
            size_t b = 0;
            for (; b < blocks; b++) {
                bool same = block[s] == block[first[b]];
                for (size_t k = 0; same && k < A * (S + 1); k++) {
                    same = fabs(signature[s * A * (S + 1) + k] -
                                signature[first[b] * A * (S + 1) + k]) < 1e-9;
                }
                if (same) break;
            }
            if (b == blocks) first[blocks++] = s;
            fresh[s] = (int32_t)b;
        }
        memcpy(block, fresh, S * sizeof *block);
    } while (blocks != before);
    free(signature);
    free(fresh);
    free(first);
    return blocks;
}

static void compare_latent_states(psi_ctx *ctx, const psi_task *task)
{
    psi_task_exact *model = model_of(ctx, task);
    int32_t *block = calloc(model->n_states, sizeof *block);
    assert_non_null(block);
    refine_fully(model, block);
    for (size_t s = 0; s < model->n_states; s++) {
        for (size_t t = 0; t < s; t++) {
            const bool together = model->latent_states[s] == model->latent_states[t];
            assert_int_equal(together, block[s] == block[t]);
        }
    }
    free(block);
    psi_task_model_free(ctx, model);
}

static void test_latent_states_are_the_coarsest_partition(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    static const char *const COLUMNS[] = {"", "no-terminate", "width 2 no-terminate",
                                          "width 6 height 2", "no-terminate reward being"};
    for (size_t i = 0; i < 5; i++) {
        const psi_task task = test_task(ctx, "column-world", NULL, COLUMNS[i]);
        compare_latent_states(ctx, &task);
    }
    base_random random = base_random_stream(13, 1, 0);
    int swaps = 0, broken_goals = 0;
    for (int i = 0; i < 150; i++) {
        const psi_task task = test_random_lock(ctx, &random);
        swaps += task.swap[0] != PSI_NO_DIAL;
        broken_goals += task.broken[0] && task.goal[0] != PSI_ANY;
        compare_latent_states(ctx, &task);
        psi_task_exact *model = model_of(ctx, &task);
        assert_true(goal_is_reachable(model));
        psi_task_model_free(ctx, model);
    }
    assert_true(swaps > 10 && broken_goals > 10);
    for (int i = 0; i < 30; i++) {
        const psi_task task = small_lock(ctx, i);
        compare_latent_states(ctx, &task);
    }
    psi_ctx_free(ctx);
}

static psi_status make_model(psi_ctx *ctx, void *argument)
{
    psi_task_exact *model;
    const psi_status status = psi_task_model(ctx, argument, &model);
    if (status != PSI_OK) assert_null(model);
    psi_task_model_free(ctx, model);
    return status;
}

static void test_no_allocation_may_fail_badly(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_task lock = test_task(ctx, "combination-lock", NULL, "digits-per-dial 3");
    assert_true(test_fault_sweep(make_model, &lock) >= 8);
    psi_task rich = test_task(ctx, "rich-lock", NULL, "horizon 3");
    assert_true(test_fault_sweep(make_model, &rich) >= 8);
    psi_task_model_free(ctx, NULL);
    psi_ctx_free(ctx);
}

static void test_too_large_a_table_is_refused(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    const psi_task task = test_task(ctx, "combination-lock", NULL, "dials 9");
    psi_task_exact *model;
    assert_status(ctx, psi_task_model(ctx, &task, &model), PSI_ELIMIT);
    assert_null(model);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_presets),
        cmocka_unit_test(test_mean_lengths_under_random_actions),
        cmocka_unit_test(test_simulation_agrees_with_the_model),
        cmocka_unit_test(test_latent_states_are_the_coarsest_partition),
        cmocka_unit_test(test_no_allocation_may_fail_badly),
        cmocka_unit_test(test_too_large_a_table_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
