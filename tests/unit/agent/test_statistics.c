// Statistics by hand and by their properties; tests/interop asks rliable itself.
#include "support/support.h"

#include "base/random.h"

#include <psifold/agent.h>

#include <math.h>

static void test_interquartile_means(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    static const struct {
        size_t n;
        double numbers[9], mean;
    } CASES[] = {{1, {7}, 7},
                 {3, {1, 2, 9}, 4},
                 {4, {100, 1, 2, -50}, 1.5},
                 {5, {5, 4, 3, 2, 1000}, 4},
                 {8, {8, 7, 6, 5, 4, 3, 2, 1}, 4.5},
                 {9, {9, 8, 7, 6, 5, 4, 3, 2, 1}, 5}};
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        double mean;
        assert_ok(ctx, psi_iqm(ctx, CASES[i].numbers, CASES[i].n, &mean));
        assert_true(fabs(mean - CASES[i].mean) < 1e-12);
    }
    double mean;
    assert_status(ctx, psi_iqm(ctx, CASES[0].numbers, 0, &mean), PSI_EUSAGE);
    psi_ctx_free(ctx);
}

static void test_improvement(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    const psi_bootstrap_options how = psi_bootstrap_defaults();
    const double x[] = {1, 2, 3, 5, 5, 5}, y[] = {1, 1, 4, 4, 5, 5, 6, 6};
    psi_interval found;
    // first task: 1 beats none and ties 2, 2 and 3 beat 2 each: 5 of 12; second: 3 tie 2 and lose 2
    assert_ok(ctx, psi_scores_improvement(ctx, &(psi_scores){2, 3, x}, &(psi_scores){2, 4, y}, &how,
                                          &found));
    assert_true(fabs(found.estimate - (5.0 / 12 + 3.0 / 12) / 2) < 1e-12);
    assert_true(found.low <= found.estimate && found.estimate <= found.high);
    assert_ok(ctx, psi_scores_improvement(ctx, &(psi_scores){1, 3, x + 3}, &(psi_scores){1, 2, y},
                                          &how, &found));
    assert_true(found.estimate == 1 && found.low == 1 && found.high == 1);
    assert_status(
        ctx,
        psi_scores_improvement(ctx, &(psi_scores){2, 3, x}, &(psi_scores){1, 4, y}, &how, &found),
        PSI_ESHAPE);
    psi_ctx_free(ctx);
}

static void test_profiles(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    const psi_bootstrap_options how = psi_bootstrap_defaults();
    const double x[] = {0.1, 0.2, 0.3, 0.4}, at[] = {0, 0.2, 0.35, 1};
    const double share[] = {1, 0.5, 0.25, 0}; // strictly above
    psi_interval found[4];
    assert_ok(ctx, psi_scores_profile(ctx, &(psi_scores){2, 2, x}, at, 4, &how, found));
    for (size_t i = 0; i < 4; i++) {
        assert_true(found[i].estimate == share[i]);
        assert_true(found[i].low <= share[i] && share[i] <= found[i].high);
    }
    psi_ctx_free(ctx);
}

// Of 200 experiments with a known mean, the interval must hold it about 19 times in 20; with few
// runs a bootstrap is known to be a little narrow.
static void test_intervals_cover(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    enum { EXPERIMENTS = 200, TASKS = 3, RUNS = 10 };
    psi_bootstrap_options how = psi_bootstrap_defaults();
    how.repetitions = 400;
    size_t covered = 0;
    for (uint64_t e = 0; e < EXPERIMENTS; e++) {
        base_random random = base_random_stream(e, 7, 0);
        double scores[TASKS * RUNS];
        psi_interval found;
        for (size_t i = 0; i < TASKS * RUNS; i++) scores[i] = 3 + base_random_normal(&random);
        how.seed = e;
        assert_ok(ctx, psi_scores_iqm(ctx, &(psi_scores){TASKS, RUNS, scores}, &how, &found));
        covered += found.low <= 3 && 3 <= found.high;
    }
    print_message("%zu of %d intervals hold the mean\n", covered, EXPERIMENTS);
    assert_in_range(covered, 174, 199);
    psi_ctx_free(ctx);
}

static void test_same_seed_same_interval(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_bootstrap_options how = psi_bootstrap_defaults();
    const double x[] = {1, 2, 3, 4, 5, 7, 11, 13};
    psi_interval a, b, c;
    assert_ok(ctx, psi_scores_iqm(ctx, &(psi_scores){1, 8, x}, &how, &a));
    assert_ok(ctx, psi_scores_iqm(ctx, &(psi_scores){1, 8, x}, &how, &b));
    how.seed = 1;
    assert_ok(ctx, psi_scores_iqm(ctx, &(psi_scores){1, 8, x}, &how, &c));
    assert_true(a.low == b.low && a.high == b.high && a.estimate == c.estimate);
    assert_true(a.low != c.low || a.high != c.high);
    const double bad[] = {1, (double)NAN};
    assert_status(ctx, psi_scores_iqm(ctx, &(psi_scores){1, 2, bad}, &how, &a), PSI_EDATA);
    assert_status(ctx, psi_scores_iqm(ctx, &(psi_scores){0, 2, x}, &how, &a), PSI_EUSAGE);
    how.confidence = 1;
    assert_status(ctx, psi_scores_iqm(ctx, &(psi_scores){1, 2, x}, &how, &a), PSI_EUSAGE);
    psi_ctx_free(ctx);
}

static psi_status estimate(psi_ctx *ctx, void *argument)
{
    (void)argument;
    const double x[] = {1, 2, 3, 4};
    const psi_bootstrap_options how = psi_bootstrap_defaults();
    psi_interval found;
    return psi_scores_improvement(ctx, &(psi_scores){2, 2, x}, &(psi_scores){2, 2, x}, &how,
                                  &found);
}

static void test_no_allocation_may_fail_badly(void **state)
{
    (void)state;
    assert_true(test_fault_sweep(estimate, NULL) >= 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_interquartile_means),
        cmocka_unit_test(test_improvement),
        cmocka_unit_test(test_profiles),
        cmocka_unit_test(test_intervals_cover),
        cmocka_unit_test(test_same_seed_same_interval),
        cmocka_unit_test(test_no_allocation_may_fail_badly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
