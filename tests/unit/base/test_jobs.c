// Jobs side by side: all are run, the first failure is told, a cancel reaches them.
#include "support/support.h"

#include "base/context.h"
#include "base/jobs.h"

#include <stdatomic.h>

enum { N = 100 };

typedef struct record {
    psi_ctx *parent;
    atomic_int runs[N];
    size_t finished, fail_at, cancel_at;
} record;

static psi_status work(void *user, psi_ctx *own, size_t job)
{
    record *all = user;
    atomic_fetch_add(&all->runs[job], 1);
    assert_int_equal(psi_threads(own), 1);
    if (job == all->fail_at) return FAIL(own, PSI_EDATA, "job %zu does not like this", job);
    if (job == all->cancel_at) psi_cancel(all->parent);
    return base_cancelled(own);
}

static void count(void *user, size_t job, size_t done)
{
    record *all = user;
    (void)job;
    assert_int_equal(done, ++all->finished);
}

static void test_all_are_run_once(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 4; threads++) {
        psi_ctx *ctx = test_ctx(threads);
        record all = {.parent = ctx, .fail_at = N, .cancel_at = N};
        assert_ok(ctx, base_jobs_run(ctx, N, work, &all, count));
        for (size_t i = 0; i < N; i++) assert_int_equal(all.runs[i], 1);
        assert_int_equal(all.finished, N);
        assert_ok(ctx, base_jobs_run(ctx, 0, work, &all, NULL));
        psi_ctx_free(ctx);
    }
}

static void test_a_failure_is_told(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 4; threads++) {
        psi_ctx *ctx = test_ctx(threads);
        record all = {.parent = ctx, .fail_at = 7, .cancel_at = N};
        assert_status(ctx, base_jobs_run(ctx, N, work, &all, count), PSI_EDATA);
        test_assert_error_says(ctx, "job 7 does not like this");
        assert_true(all.finished < N);
        if (threads == 1) assert_int_equal(all.finished, 7);
        psi_ctx_free(ctx);
    }
}

static void test_a_cancel_arrives(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 3; threads++) {
        psi_ctx *ctx = test_ctx(threads);
        record all = {.parent = ctx, .fail_at = N, .cancel_at = 3};
        assert_status(ctx, base_jobs_run(ctx, N, work, &all, NULL), PSI_ECANCELLED);
        assert_int_equal(all.runs[N - 1], 0);
        psi_ctx_free(ctx);
    }
}

static psi_status allocate(void *user, psi_ctx *own, size_t job)
{
    (void)user;
    (void)job;
    void *block;
    const psi_status status = base_alloc(own, 10, 10, &block);
    base_free(own, block);
    return status;
}

static psi_status run_few(psi_ctx *ctx, void *argument)
{
    (void)argument;
    return base_jobs_run(ctx, 3, allocate, NULL, NULL);
}

static void test_no_allocation_may_fail_badly(void **state)
{
    (void)state;
    assert_true(test_fault_sweep(run_few, NULL) >= 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_are_run_once),
        cmocka_unit_test(test_a_failure_is_told),
        cmocka_unit_test(test_a_cancel_arrives),
        cmocka_unit_test(test_no_allocation_may_fail_badly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
