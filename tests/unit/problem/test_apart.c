// Looks that stand apart: clumps with empty space around them are found, whatever their size, and
// none are found where there are none.
#include "support/ranks.h"
#include "support/support.h"

#include "base/comm.h"
#include "base/context.h"
#include "base/random.h"
#include "problem/looks.h"

#include <math.h>
#include <stdlib.h>

enum { VISITS = 4 };

// n vectors, of which nothing else is known.
typedef struct cloud {
    cluster_problem problem;
    size_t width;
    float *vectors;
} cloud;

static cloud cloud_new(size_t n, size_t width)
{
    cloud c = {.problem = {.n_rows = n, .n_states = n, .whole = {.n_rows = n, .n_states = n}},
               .width = width};
    c.problem.states = malloc(n * sizeof *c.problem.states);
    c.vectors = malloc(n * width * sizeof *c.vectors);
    for (size_t i = 0; i < n; i++) c.problem.states[i] = i;
    return c;
}

static void cloud_free(cloud *c)
{
    free(c->problem.states);
    free(c->vectors);
}

// Clumps with deviation 1 around corners of a cube of that side, row i in clump i % clumps; the
// last clump has `few` rows, and its other rows are in the first.
static cloud clumps_new(size_t n, size_t width, size_t clumps, double side, size_t few,
                        int32_t *clump)
{
    cloud c = cloud_new(n, width);
    base_random random = base_random_stream(2, 0x6170, 0);
    for (size_t i = 0; i < n; i++) {
        clump[i] = (int32_t)(i % clumps);
        if (clump[i] == (int32_t)clumps - 1 && i / clumps >= few) clump[i] = 0;
        for (size_t w = 0; w < width; w++) {
            const double corner = w < 8 && clump[i] >> w & 1 ? side : 0.0;
            c.vectors[i * width + w] = (float)(corner + base_random_normal(&random));
        }
    }
    return c;
}

static void assert_found(size_t n, size_t width, size_t clumps, double side, size_t few,
                         bool by_means)
{
    psi_ctx *ctx = test_ctx(1);
    int32_t *clump = malloc(n * sizeof *clump), *name = malloc(clumps * sizeof *name);
    cloud c = clumps_new(n, width, clumps, side, few, clump);
    problem_looks looks;
    assert_ok(ctx, problem_looks_apart(ctx, &c.problem, width, c.vectors, NULL, by_means, VISITS,
                                       &looks));
    assert_int_equal(looks.n_leaves, clumps);
    for (size_t k = 0; k < clumps; k++) name[k] = -1;
    for (size_t i = 0; i < n; i++) {
        if (name[clump[i]] < 0) name[clump[i]] = looks.leaf[i];
        assert_int_equal(looks.leaf[i], name[clump[i]]);
    }
    problem_looks_free(ctx, &looks);
    cloud_free(&c);
    free(name);
    free(clump);
    psi_ctx_free(ctx);
}

static void clumps_are_found(void **state)
{
    (void)state;
    for (int by_means = 0; by_means < 2; by_means++) {
        assert_found(400, 1, 2, 20.0, 200, by_means);
        assert_found(2000, 3, 8, 14.0, 250, by_means);
        assert_found(20000, 8, 100, 14.0, 200, by_means); // more rows than are linked
        assert_found(6000, 30, 60, 14.0, 100, by_means);  // in which all distances are alike
        assert_found(20000, 3, 8, 20.0, 1, by_means);     // one that was seen once
    }
    assert_found(30000, 64, 60, 14.0, 500,
                 true); // nearest rows of two clumps are as near as others
}

static void nothing_stands_apart_in_one_cloud(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    for (size_t width = 1; width <= 16; width *= 4) {
        for (size_t turn = 0; turn < 4; turn++) {
            const size_t even = turn / 2;
            const bool by_means = turn % 2 == 1;
            cloud c = cloud_new(5000, width);
            base_random random = base_random_stream(3, (uint32_t)width, even);
            problem_looks looks;
            for (size_t i = 0; i < 5000 * width; i++) {
                c.vectors[i] =
                    (float)(even ? base_random_uniform(&random) : base_random_normal(&random));
            }
            assert_ok(ctx, problem_looks_apart(ctx, &c.problem, width, c.vectors, NULL, by_means,
                                               VISITS, &looks));
            assert_int_equal(looks.n_leaves, 0);
            problem_looks_free(ctx, &looks);
            cloud_free(&c);
        }
    }
    psi_ctx_free(ctx);
}

// Values that repeat are looks, unless there are too many.
static void values_that_repeat_stand_apart(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    for (size_t turn = 0; turn < 4; turn++) {
        const size_t values = turn / 2 ? 1000 : 10;
        const bool by_means = turn % 2 == 1;
        cloud c = cloud_new(2000, 1);
        problem_looks looks;
        for (size_t i = 0; i < 2000; i++) c.vectors[i] = (float)(i * 7 % values);
        assert_ok(ctx, problem_looks_apart(ctx, &c.problem, 1, c.vectors, NULL, by_means, VISITS,
                                           &looks));
        assert_int_equal(looks.n_leaves, values == 10 ? 10 : 0);
        problem_looks_free(ctx, &looks);
        cloud_free(&c);
    }
    psi_ctx_free(ctx);
}

static psi_status find(psi_ctx *ctx, void *user)
{
    const cloud *c = user;
    psi_status status = PSI_OK;
    for (int by_means = 0; by_means < 2 && status == PSI_OK; by_means++) {
        problem_looks looks;
        status = problem_looks_apart(ctx, &c->problem, c->width, c->vectors, NULL, by_means, VISITS,
                                     &looks);
        if (status == PSI_OK) problem_looks_free(ctx, &looks);
    }
    return status;
}

static void memory_that_is_refused_is_told(void **state)
{
    (void)state;
    int32_t clump[600];
    cloud c = clumps_new(600, 2, 4, 14.0, 150, clump);
    assert_true(test_fault_sweep(find, &c) > 5);
    cloud_free(&c);
}

// What a process finds in its part of the rows, beside what one finds in all of them.
typedef struct shared {
    cloud all;
    bool by_means;
    problem_looks looks;
} shared;

static psi_status compare_part(psi_ctx *ctx, int rank, void *argument)
{
    psi_status status = PSI_OK;
    const shared *of = argument;
    const size_t n = of->all.problem.n_rows, ranks = (size_t)base_ranks(ctx);
    const size_t first = n * (size_t)rank / ranks, end = n * ((size_t)rank + 1) / ranks;
    cluster_problem part = of->all.problem;
    problem_looks looks = {0};
    part.n_rows = part.n_states = end - first;
    part.whole.first_state = first;
    TRY(problem_looks_apart(ctx, &part, of->all.width, of->all.vectors + first * of->all.width,
                            NULL, of->by_means, VISITS, &looks));
    bool same = looks.n_leaves == of->looks.n_leaves;
    for (size_t i = 0; same && i < end - first; i++) {
        same = looks.leaf[i] == of->looks.leaf[first + i];
    }
    if (!same) TRY(PSI_EINTERNAL);
done:
    problem_looks_free(ctx, &looks);
    return status;
}

static void several_processes_find_the_same(void **state)
{
    (void)state;
    enum { N = 20000, CLUMPS = 8, FEW = 3 };
    psi_ctx *ctx = test_ctx(1);
    int32_t *clump = malloc(N * sizeof *clump);
    for (int means = 0; means < 2; means++) {
        shared of = {.all = clumps_new(N, 3, CLUMPS, 20.0, FEW, clump), .by_means = means == 1};
        assert_ok(ctx, problem_looks_apart(ctx, &of.all.problem, 3, of.all.vectors, NULL,
                                           of.by_means, VISITS, &of.looks));
        assert_int_equal(of.looks.n_leaves, CLUMPS); // the last of strangers, who are few
        for (int n = 2; n <= 4; n++) test_as_ranks(n, compare_part, &of);
        problem_looks_free(ctx, &of.looks);
        cloud_free(&of.all);
    }
    free(clump);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clumps_are_found),
        cmocka_unit_test(nothing_stands_apart_in_one_cloud),
        cmocka_unit_test(values_that_repeat_stand_apart),
        cmocka_unit_test(memory_that_is_refused_is_told),
        cmocka_unit_test(several_processes_find_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
