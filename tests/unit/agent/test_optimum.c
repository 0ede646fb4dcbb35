// The optimum of the tasks: numbers that are known by hand.
#include "support/support.h"

#include <psifold/agent.h>

#include <math.h>

static psi_optimum optimum_of(psi_ctx *ctx, const char *name, const char *preset,
                              const char *option, const char *value)
{
    psi_task task;
    psi_optimum found;
    assert_ok(ctx, psi_task_defaults(ctx, name, preset, &task));
    if (option) assert_ok(ctx, psi_task_set(ctx, &task, option, value));
    assert_ok(ctx, psi_task_check(ctx, &task));
    assert_ok(ctx, psi_task_optimum(ctx, &task, 0.95, &found));
    return found;
}

static void assert_near(double got, double expected)
{
    if (fabs(got - expected) < 1e-9) return;
    fail_msg("%.12g, expected %.12g", got, expected);
}

static void test_locks(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    static const struct {
        const char *preset;
        double steps;
    } CASES[] = {
        {"train", 18}, {"swap-digits", 12}, {"reversed-dial", 13}, {"left-dial-broken", 18}};
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        const psi_optimum best =
            optimum_of(ctx, "combination-lock", CASES[i].preset, "digits", "none");
        assert_near(best.steps, CASES[i].steps);
        assert_near(best.reward, 1);
        assert_near(best.reward_per_step, 1 / CASES[i].steps);
        assert_near(best.value, pow(0.95, CASES[i].steps - 1));
    }
    psi_ctx_free(ctx);
}

static void test_columns(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    assert_near(optimum_of(ctx, "column-world", NULL, NULL, NULL).steps, 3);
    assert_near(optimum_of(ctx, "point-column-world", NULL, NULL, NULL).reward_per_step, 1.0 / 3);
    // cut after two steps, nobody gets anywhere
    const psi_optimum cut = optimum_of(ctx, "column-world", NULL, "max-steps", "2");
    assert_near(cut.steps, 2);
    assert_near(cut.reward, 0);
    // rewards that go on until the episode is cut
    const psi_optimum on = optimum_of(ctx, "column-world", "continuing", NULL, NULL);
    assert_near(on.steps, 100);
    assert_true(on.reward > 95 && on.reward < 100);
    psi_ctx_free(ctx);
}

static psi_status solve(psi_ctx *ctx, void *argument)
{
    psi_optimum found;
    return psi_task_optimum(ctx, argument, 0.95, &found);
}

static void test_no_allocation_may_fail_badly(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_task task;
    assert_ok(ctx, psi_task_defaults(ctx, "column-world", NULL, &task));
    assert_ok(ctx, psi_task_check(ctx, &task));
    assert_true(test_fault_sweep(solve, &task) >= 10);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_locks),
        cmocka_unit_test(test_columns),
        cmocka_unit_test(test_no_allocation_may_fail_badly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
