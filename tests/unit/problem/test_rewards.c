// Reward classes: distinct values, values behind noise, rare values, and no values at all.
#include "support/support.h"

#include "base/random.h"
#include "problem/rewards.h"

#include <math.h>

enum { N = 20000 };

// Draws rewards from given values with given shares, plus noise; truth[i] is the value's index.
static void draw(uint64_t seed, const double *value, const double *share, size_t k, double noise,
                 double *rewards, int32_t *truth)
{
    base_random random = base_random_stream(seed, 0, 0);
    for (size_t i = 0; i < N; i++) {
        double u = base_random_uniform(&random);
        size_t c = 0;
        while (c + 1 < k && u >= share[c]) u -= share[c++];
        truth[i] = (int32_t)c;
        rewards[i] = value[c] + noise * base_random_normal(&random);
    }
}

static double agreement(const reward_classes *classes, const int32_t *truth)
{
    size_t same = 0;
    for (size_t i = 0; i < N; i++) same += classes->of[i] == truth[i];
    return (double)same / N;
}

static void values_are_found_behind_noise(void **state)
{
    (void)state;
    static double rewards[N];
    static int32_t truth[N];
    const double value[4] = {-1.0, 0.0, 0.5, 2.0};
    const double share[4][4] = {{0.25, 0.25, 0.25, 0.25},
                                {0.005, 0.985, 0.005, 0.005},
                                {0.1, 0.8, 0.05, 0.05},
                                {0.5, 0.3, 0.15, 0.05}};
    psi_ctx *ctx = test_ctx(1);
    for (uint64_t seed = 0; seed < 12; seed++) {
        const double noise = seed % 3 == 0 ? 0.0 : seed % 3 == 1 ? 0.01 : 0.08;
        draw(seed, value, share[seed % 4], 4, noise, rewards, truth);
        reward_classes classes;
        assert_ok(ctx, problem_reward_classes(ctx, rewards, N, &classes));
        assert_int_equal(classes.kind, noise > 0.0 ? REWARD_MIXTURE : REWARD_DISTINCT);
        assert_int_equal(classes.n, 4);
        assert_true(agreement(&classes, truth) > 0.995);
        for (size_t c = 0; c < 4; c++) assert_true(fabs(classes.value[c] - value[c]) < 0.05);
        assert_true(fabs(classes.spacing - 0.5) < 0.06);
        problem_reward_classes_free(ctx, &classes);
    }
    psi_ctx_free(ctx);
}

static void spread_out_rewards_become_quantiles(void **state)
{
    (void)state;
    static double rewards[N];
    base_random random = base_random_stream(1, 0, 0);
    for (size_t i = 0; i < N; i++) rewards[i] = base_random_uniform(&random);
    psi_ctx *ctx = test_ctx(1);
    reward_classes classes;
    assert_ok(ctx, problem_reward_classes(ctx, rewards, N, &classes));
    assert_int_equal(classes.kind, REWARD_QUANTILES);
    assert_int_equal(classes.n, 8);
    size_t count[8] = {0};
    for (size_t i = 0; i < N; i++) count[classes.of[i]]++;
    for (size_t c = 0; c < 8; c++) assert_in_range(count[c], N / 8 - 5, N / 8 + 5);
    problem_reward_classes_free(ctx, &classes);
    psi_ctx_free(ctx);
}

static void pure_noise_and_constants_are_one_class(void **state)
{
    (void)state;
    static double rewards[N];
    psi_ctx *ctx = test_ctx(1);
    for (int noisy = 0; noisy < 2; noisy++) {
        base_random random = base_random_stream(7, 0, 0);
        for (size_t i = 0; i < N; i++) rewards[i] = 3.0 + noisy * 0.1 * base_random_normal(&random);
        reward_classes classes;
        assert_ok(ctx, problem_reward_classes(ctx, rewards, N, &classes));
        assert_int_equal(classes.n, 1);
        assert_true(classes.spacing == 0.0);
        assert_true(fabs(classes.value[0] - 3.0) < 0.01);
        problem_reward_classes_free(ctx, &classes);
    }
    psi_ctx_free(ctx);
}

static void rewards_that_are_no_numbers_are_refused(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    reward_classes classes;
    const double rewards[3] = {0.0, (double)NAN, 1.0};
    assert_status(ctx, problem_reward_classes(ctx, rewards, 3, &classes), PSI_EDATA);
    test_assert_error_says(ctx, "transition 1");
    assert_status(ctx, problem_reward_classes(ctx, rewards, 0, &classes), PSI_EDATA);
    psi_ctx_free(ctx);
}

static psi_status classify(psi_ctx *ctx, void *argument)
{
    reward_classes classes;
    const psi_status status = problem_reward_classes(ctx, argument, 3, &classes);
    problem_reward_classes_free(ctx, &classes);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    double rewards[3] = {0.0, 1.0, 0.0};
    assert_in_range(test_fault_sweep(classify, rewards), 4, 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_found_behind_noise),
        cmocka_unit_test(spread_out_rewards_become_quantiles),
        cmocka_unit_test(pure_noise_and_constants_are_one_class),
        cmocka_unit_test(rewards_that_are_no_numbers_are_refused),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
