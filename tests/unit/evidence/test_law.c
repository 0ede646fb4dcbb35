// The formulas of evidence, held against what they are short for.
#include "support/support.h"

#include "evidence/law.h"

#include <math.h>

static void assert_near(double a, double b, double tolerance)
{
    if (!(fabs(a - b) <= tolerance * (1.0 + fabs(b)))) fail_msg("%.12g is not %.12g", a, b);
}

static void rising_factorials_are_quotients_of_gammas(void **state)
{
    (void)state;
    static const double x[] = {0.01, 0.5, 1.0, 3.25, 9.9, 10.0, 250.0};
    static const double n[] = {0.0, 1.0, 2.0, 15.0, 16.0, 17.0, 40.0, 1000.0, 1e6};
    for (size_t i = 0; i < sizeof x / sizeof *x; i++) {
        for (size_t j = 0; j < sizeof n / sizeof *n; j++) {
            assert_near(psi_log_rising(x[i], n[j]), lgamma(x[i] + n[j]) - lgamma(x[i]), 1e-9);
        }
    }
}

// log ∫ N(x | μ, 1/p) N(μ | 0, v) dμ − log N(x | 0, 1/p) for a mean x = q/p.
static void a_mean_is_weighed_by_its_precision(void **state)
{
    (void)state;
    const double p = 7.0, v = 0.3, x = -1.4;
    double integral = 0.0;
    const double step = 1e-3;
    for (double mu = -8.0; mu < 8.0; mu += step) {
        integral += step * exp(-0.5 * p * (x - mu) * (x - mu) - 0.5 * mu * mu / v);
    }
    integral *= sqrt(p / (2.0 * M_PI)) / sqrt(2.0 * M_PI * v);
    const double alone = sqrt(p / (2.0 * M_PI)) * exp(-0.5 * p * x * x);
    assert_near(evidence_of_mean(p, p * x, v), log(integral / alone), 1e-6);
    assert_true(evidence_of_mean(0.0, 0.0, v) == 0.0); // nothing was drawn
}

static void agreement_counts_little_and_a_conflict_for_all_it_is_worth(void **state)
{
    (void)state;
    assert_near(evidence_same(0.0), 0.0, 1e-15);
    assert_near(evidence_same(1e6), M_LN2, 1e-15);
    assert_near(evidence_same(-500.0), M_LN2 - 500.0, 1e-12);
    assert_near(evidence_same(-30.0 - 1e-9), evidence_same(-30.0 + 1e-9), 1e-9);
    for (double f = -20.0; f < 20.0; f += 0.7) { // 1 / (½ + ½ e^−f)
        assert_near(evidence_same(f), -log(0.5 + 0.5 * exp(-f)), 1e-12);
    }
}

static void either_law_may_be_the_one(void **state)
{
    (void)state;
    static const double all[] = {-80.0, -3.0, 0.0, 0.5, 12.0};
    for (size_t i = 0; i < 5; i++) {
        for (size_t j = 0; j < 5; j++) {
            const double a = all[i], b = all[j];
            assert_near(evidence_either(a, b), log(0.5 * exp(a) + 0.5 * exp(b)), 1e-12);
        }
    }
    assert_near(evidence_either(-5000.0, 0.0), -M_LN2, 1e-12); // which exp alone could not say
}

static double log_factorial(double n)
{
    return lgamma(n + 1.0);
}

static void a_partition_prefers_large_groups(void **state)
{
    (void)state;
    for (double n = 1.0; n < 50.0; n += 7.0) {
        for (double m = 1.0; m < 50.0; m += 5.0) {
            assert_near(
                evidence_one_group(n, m),
                log_factorial(n + m - 1.0) - log_factorial(n - 1.0) - log_factorial(m - 1.0), 1e-9);
        }
    }
}

// log P(counts) of draws whose shares are from Dirichlet(½, …, ½), given earlier counts.
static double dirichlet(const double *before, const double *counts, size_t k)
{
    double n = 0.0, total = 0.0, sum = 0.0;
    for (size_t i = 0; i < k; i++) {
        total += before[i] + 0.5;
        n += counts[i];
        sum += psi_log_rising(before[i] + 0.5, counts[i]);
    }
    return sum - psi_log_rising(total, n);
}

static void the_same_outcomes_may_have_other_shares(void **state)
{
    (void)state;
    const double first[] = {20.0, 3.0, 1.0}, second[] = {2.0, 0.0, 9.0}, none[] = {0.0, 0.0, 0.0};
    evidence_support support = {.kinds = 3.0};
    for (size_t i = 0; i < 3; i++) evidence_support_add(&support, first[i], second[i]);
    const double factor = evidence_support_factor(&support, 24.0, 11.0);
    assert_near(factor, dirichlet(first, second, 3) - dirichlet(none, second, 3), 1e-12);
    assert_true(factor < -5.0); // clearly two laws
    // two laws, with shares of their own or of outcomes of their own
    assert_near(evidence_two(-10.0, -12.0, factor), evidence_either(-12.0, -10.0 - factor), 1e-12);
    evidence_support single = {.kinds = 1.0};
    evidence_support_add(&single, 4.0, 5.0);
    assert_true(evidence_support_factor(&single, 4.0, 5.0) == HUGE_VAL);
    assert_true(evidence_two(-1.0, -2.0, HUGE_VAL) == -2.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rising_factorials_are_quotients_of_gammas),
        cmocka_unit_test(a_mean_is_weighed_by_its_precision),
        cmocka_unit_test(agreement_counts_little_and_a_conflict_for_all_it_is_worth),
        cmocka_unit_test(either_law_may_be_the_one),
        cmocka_unit_test(a_partition_prefers_large_groups),
        cmocka_unit_test(the_same_outcomes_may_have_other_shares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
