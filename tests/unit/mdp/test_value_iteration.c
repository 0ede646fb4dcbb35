// Value iteration against closed forms and against policy evaluation.
#include "models.h"

static void test_column_world_values(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_mdp *mdp = column_world(ctx);
    psi_plan *plan;
    psi_plan_options options = psi_plan_defaults();
    options.gamma = 0.9;
    assert_ok(ctx, psi_value_iteration(ctx, mdp, &options, &plan));
    assert_true(plan->converged);
    for (size_t s = 0; s < 16; s++) { // reward 1 forever once in the right column
        const double expected = pow(0.9, (double)(3 - s % 4)) / (1.0 - 0.9);
        assert_true(fabs(plan->value[s] - expected) < 1e-8);
        if (s % 4 < 3) assert_int_equal(plan->policy[s], 3);
    }
    psi_plan_free(ctx, plan);
    psi_mdp_free(ctx, mdp);
    psi_ctx_free(ctx);
}

static void test_lock_takes_18_steps(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_mdp *mdp = combination_lock(ctx);
    psi_plan *plan;
    assert_ok(ctx, psi_value_iteration(ctx, mdp, NULL, &plan));
    assert_true(fabs(plan->value[0] - pow(0.95, 17)) < 1e-8);
    for (size_t s = 0; s < 1000; s++) {
        if (s / 10 == 99) {
            assert_true(plan->value[s] == 0.0);
            assert_int_equal(plan->policy[s], -1);
        } else {
            const double steps = (double)((9 - s / 100) + (9 - s / 10 % 10));
            assert_true(fabs(plan->value[s] - pow(0.95, steps - 1)) < 1e-8);
        }
    }
    psi_plan_free(ctx, plan);
    // without discount: the probability of getting there, 1
    psi_plan_options options = psi_plan_defaults();
    options.gamma = 1.0;
    assert_ok(ctx, psi_value_iteration(ctx, mdp, &options, &plan));
    assert_true(plan->converged && plan->value[0] == 1.0);
    psi_plan_free(ctx, plan);
    psi_mdp_free(ctx, mdp);
    psi_ctx_free(ctx);
}

// 0 –a0→ 1 –a0→ 0 …, action 1 unseen everywhere, state 2 knows nothing.
static void test_unseen_pairs(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_mdp *mdp;
    assert_ok(ctx,
              psi_mdp_from_entries(ctx, 3, 2, 2, (uint64_t[]){0, 2}, (int32_t[]){1, 0},
                                   (double[]){1, 1}, (double[]){1, 9, 0, 9, 9, 9}, NULL, &mdp));
    psi_plan *plan;
    psi_plan_options options = psi_plan_defaults();
    options.gamma = 0.5;
    assert_ok(ctx, psi_value_iteration(ctx, mdp, &options, &plan));
    assert_true(fabs(plan->value[0] - 4.0 / 3.0) < 1e-9);
    assert_true(fabs(plan->value[1] - 2.0 / 3.0) < 1e-9);
    assert_true(isinf(plan->q[1]) && plan->q[1] < 0.0);
    assert_int_equal(plan->policy[0], 0);
    assert_int_equal(plan->policy[2], -1);
    assert_true(plan->value[2] == 0.0);
    psi_plan_free(ctx, plan);
    options.unseen = PSI_UNSEEN_OPTIMISTIC;
    options.optimistic_value = 10.0;
    assert_ok(ctx, psi_value_iteration(ctx, mdp, &options, &plan));
    for (size_t s = 0; s < 2; s++) {
        assert_true(plan->value[s] == 10.0);
        assert_int_equal(plan->policy[s], 1);
    }
    assert_int_equal(plan->policy[2], 0);
    psi_plan_free(ctx, plan);
    options.gamma = 1.5;
    assert_status(ctx, psi_value_iteration(ctx, mdp, &options, &plan), PSI_EUSAGE);
    options.gamma = 1.0;
    options.unseen = PSI_UNSEEN_EXCLUDED;
    options.max_sweeps = 50; // an endless sum: it stops and says so
    assert_ok(ctx, psi_value_iteration(ctx, mdp, &options, &plan));
    assert_false(plan->converged);
    assert_int_equal(plan->sweeps, 50);
    psi_plan_free(ctx, plan);
    psi_mdp_free(ctx, mdp);
    psi_ctx_free(ctx);
}

// Optimal values satisfy Bellman's equation, and the quotient has the same ones.
static void test_quotient_keeps_values(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    for (uint64_t seed = 0; seed < 100; seed++) {
        planted_model model = random_planted(ctx, seed);
        psi_plan *large, *small;
        assert_ok(ctx, psi_value_iteration(ctx, model.large, NULL, &large));
        assert_ok(ctx, psi_value_iteration(ctx, model.small, NULL, &small));
        const size_t n_actions = model.large->n_actions;
        for (size_t s = 0; s < model.large->n_states; s++) {
            const size_t k = (size_t)model.planted->label[s];
            double best = model.large->terminal[s] ? 0.0 : -HUGE_VAL;
            for (size_t a = 0; a < n_actions; a++) best = fmax(best, large->q[s * n_actions + a]);
            assert_true(fabs(best - large->value[s]) < 1e-9);
            assert_true(fabs(large->value[s] - small->value[k]) < 1e-7);
        }
        psi_plan_free(ctx, large);
        psi_plan_free(ctx, small);
        planted_free(ctx, &model);
    }
    psi_ctx_free(ctx);
}

static psi_status sweep_plan(psi_ctx *ctx, void *argument)
{
    psi_plan *plan;
    const psi_status status = psi_value_iteration(ctx, argument, NULL, &plan);
    psi_plan_free(ctx, plan);
    return status;
}

static void test_faults_in_value_iteration(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_mdp *mdp = column_world(ctx);
    assert_true(test_fault_sweep(sweep_plan, mdp) >= 4);
    psi_mdp_free(ctx, mdp);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_column_world_values),
        cmocka_unit_test(test_lock_takes_18_steps),
        cmocka_unit_test(test_unseen_pairs),
        cmocka_unit_test(test_quotient_keeps_values),
        cmocka_unit_test(test_faults_in_value_iteration),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
