// Two clusterings side by side: what is the same, what was split, what was joined.
#include "report/compare.h"

#include "support/runs.h"
#include "support/support.h"

#include "base/context.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static void splits_and_joins_are_told_apart(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    enum { N = 600 };
    int32_t here[N], there[N];
    for (size_t i = 0; i < N; i++) {
        here[i] = (int32_t)(i / 150); // 0, 1, 2, 3
        // 0 is the same, 1 is split into 1 and 2, 2 and 3 are joined into 3
        there[i] = here[i] == 0 ? 0 : here[i] == 1 ? (i % 3 == 0 ? 1 : 2) : 3;
    }
    there[7] = 3; // a stray observation splits nothing
    here[8] = -1; // and who is ignored has no say
    there[9] = -1;
    char a[] = "a", b[] = "b";
    const psi_run first = {.folder = a, .n_observations = N, .n_latent = 4, .labels = here},
                  second = {.folder = b, .n_observations = N, .n_latent = 4, .labels = there};
    report_comparison *found;
    assert_ok(ctx, report_compare(ctx, &first, &second, &found));
    assert_int_equal(found->same, 1);
    assert_int_equal(found->split, 1);
    assert_int_equal(found->joined, 2);
    const int8_t fate[] = {0, 1, -1, -1}, other[] = {0, -1, -1, 1};
    assert_memory_equal(found->fate, fate, sizeof fate);
    assert_memory_equal(found->fate_other, other, sizeof other);
    assert_int_equal(found->n_overlaps, 6);
    assert_int_equal(found->overlaps[0].n, 147);
    assert_false(found->overlaps[1].counts);       // the stray one
    assert_int_equal(found->overlaps[2].other, 2); // the larger part first
    assert_int_equal(found->overlaps[2].n, 100);
    // 147 + 100 + 150 of the 600 that either keeps match one to one
    assert_true(fabs(found->agreement - 397.0 / 600.0) < 1e-12);
    report_comparison_free(found);
    // the other way round, splits are joins
    assert_ok(ctx, report_compare(ctx, &second, &first, &found));
    assert_memory_equal(found->fate, other, sizeof other);
    report_comparison_free(found);
    psi_ctx_free(ctx);
}

static void only_runs_of_the_same_data_are_compared(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder();
    psi_report_options how = psi_report_defaults();
    char runs[2][1024], page[1024];
    test_run_spec spec = {.n_latent = 3,
                          .n_actions = 2,
                          .episodes = 6,
                          .length = 4,
                          .dtype = PSI_FLOAT32,
                          .shape = {1, {2}},
                          .refinements = 2};
    for (size_t i = 0; i < 2; i++) {
        char inner[1000];
        snprintf(inner, sizeof inner, "%s/%zu", folder, i);
        snprintf(runs[i], sizeof runs[i], "%s/run", inner);
        assert_int_equal(mkdir(inner, 0777), 0);
        test_made_up_run(ctx, inner, &spec);
        spec.n_latent = 4; // the same number of observations, but others
    }
    snprintf(page, sizeof page, "%s/page.html", folder);
    psi_run *other;
    assert_ok(ctx, psi_run_load(ctx, runs[1], &other));
    how.other = other;
    assert_status(ctx, test_report(ctx, runs[0], NULL, page, how, NULL), PSI_EDATA);
    test_assert_error_says(ctx, "were not made from the same data");
    psi_run_free(ctx, other);
    assert_ok(ctx, psi_run_load(ctx, runs[0], &other));
    how.other = other;
    assert_ok(ctx, test_report(ctx, runs[0], NULL, page, how, NULL));
    psi_run_free(ctx, other);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

typedef struct job {
    const char *run, *page;
} job;

static psi_status compare_with_itself(psi_ctx *ctx, void *user)
{
    const job *what = user;
    psi_report_options how = psi_report_defaults();
    how.replace = true;
    psi_run *other = NULL;
    psi_status status = psi_run_load(ctx, what->run, &other);
    how.other = other;
    if (status == PSI_OK) status = test_report(ctx, what->run, NULL, what->page, how, NULL);
    psi_run_free(ctx, other);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder(), run[1024], page[1024];
    const test_run_spec spec = {.n_latent = 3,
                                .n_actions = 2,
                                .episodes = 3,
                                .length = 4,
                                .dtype = PSI_INT64,
                                .shape = {0, {0}},
                                .refinements = 1};
    assert_int_equal(setenv("PATH", "/nonexistent", 1), 0); // figures have sweeps of their own
    test_made_up_run(ctx, folder, &spec);
    snprintf(run, sizeof run, "%s/run", folder);
    snprintf(page, sizeof page, "%s/page.html", folder);
    job what = {run, page};
    assert_in_range(test_fault_sweep(compare_with_itself, &what), 80, 4000);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(splits_and_joins_are_told_apart),
        cmocka_unit_test(only_runs_of_the_same_data_are_compared),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
