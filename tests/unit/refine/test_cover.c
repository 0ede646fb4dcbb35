// The cover finds planted clusters, whatever their sizes, and says which points are in none.
#include "support/support.h"

#include "base/context.h"
#include "base/random.h"
#include <psifold/cluster.h>

#include <math.h>
#include <string.h>

// Points around planted centres: centre k of group g is the unit vector (k + g) % width, times 1.
typedef struct blobs {
    size_t n, groups, width, k;
    double noise;
    const double *share; // (k) of each cluster; NULL: even
    double stray;        // share of points that lie anywhere
    uint64_t seed;
} blobs;

static int32_t truth_of(const blobs *planted, uint64_t row)
{
    base_random random = base_random_stream(planted->seed, 1, row);
    double u = base_random_uniform(&random);
    if (u < planted->stray) return -1;
    u = (u - planted->stray) / (1.0 - planted->stray);
    for (size_t k = 0; k + 1 < planted->k; k++) {
        const double share = planted->share ? planted->share[k] : 1.0 / (double)planted->k;
        if (u < share) return (int32_t)k;
        u -= share;
    }
    return (int32_t)planted->k - 1;
}

static psi_status fill(void *user, psi_ctx *ctx, const uint64_t *rows, size_t count, float *out)
{
    (void)ctx;
    const blobs *planted = user;
    for (size_t i = 0; i < count; i++) {
        base_random random = base_random_stream(planted->seed, 2, rows[i]);
        const int32_t k = truth_of(planted, rows[i]);
        for (size_t g = 0; g < planted->groups; g++) {
            for (size_t w = 0; w < planted->width; w++) {
                const bool one = k >= 0 && (g + (size_t)k) % planted->width == w;
                const double value = k < 0 ? 10.0 * base_random_normal(&random)
                                           : one + planted->noise * base_random_normal(&random);
                *out++ = (float)value;
            }
        }
    }
    return PSI_OK;
}

static psi_cover_points points_of(blobs *planted)
{
    return (psi_cover_points){planted->n, planted->groups, planted->width, fill, planted};
}

// Every label belongs to one planted cluster and the other way round; strays are ignored.
static void assert_recovered(const blobs *planted, const psi_cover_result *result)
{
    assert_int_equal(result->n_clusters, planted->k);
    int32_t label_of[64];
    for (size_t k = 0; k < 64; k++) label_of[k] = -2;
    for (size_t i = 0; i < planted->n; i++) {
        const int32_t truth = truth_of(planted, i);
        if (truth < 0) {
            assert_int_equal(result->labels[i], -1);
        } else {
            if (label_of[truth] == -2) label_of[truth] = result->labels[i];
            assert_int_equal(result->labels[i], label_of[truth]);
        }
    }
}

static void planted_clusters_are_found(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(2);
    for (uint64_t seed = 0; seed < 40; seed++) {
        blobs planted = {.n = 200 + 997 * (seed % 5),
                         .groups = 1 + seed % 3,
                         .width = 2 + seed % 11,
                         .k = 2 + seed % 7,
                         .noise = 0.02,
                         .stray = seed % 4 == 0 ? 0.02 : 0.0,
                         .seed = seed};
        if (planted.k > planted.width) planted.k = planted.width;
        const psi_cover_points points = points_of(&planted);
        const psi_cover_options options = {.size = sizeof options,
                                           .epsilon = 0.75 * (double)planted.groups,
                                           .norm = seed % 2 ? PSI_L1 : PSI_L2,
                                           .filter = 0.01,
                                           .max_clusters = 1000,
                                           .seed = seed};
        psi_cover_result result;
        assert_ok(ctx, psi_cover(ctx, &points, &options, &result));
        assert_recovered(&planted, &result);
        for (size_t c = 1; c < result.n_clusters; c++) {
            assert_true(result.sizes[c - 1] >= result.sizes[c]);
        }
        psi_cover_free(ctx, &result);
    }
    psi_ctx_free(ctx);
}

// A cluster of half a percent is seen in 200,000 points although the sample holds 8,192 of them.
static void rare_clusters_are_found_in_many_points(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(2);
    const double share[4] = {0.9, 0.09, 0.005, 0.005};
    blobs planted = {
        .n = 200000, .groups = 3, .width = 8, .k = 4, .noise = 0.02, .share = share, .seed = 5};
    const psi_cover_points points = points_of(&planted);
    const psi_cover_options options = {
        .size = sizeof options, .epsilon = 1.0, .filter = 0.0025, .max_clusters = 100};
    psi_cover_result result;
    assert_ok(ctx, psi_cover(ctx, &points, &options, &result));
    assert_recovered(&planted, &result);
    assert_int_equal(result.ignored, 0);
    psi_cover_free(ctx, &result);
    psi_ctx_free(ctx);
}

static void the_number_of_threads_does_not_matter(void **state)
{
    (void)state;
    blobs planted = {
        .n = 30000, .groups = 2, .width = 6, .k = 6, .noise = 0.2, .stray = 0.05, .seed = 9};
    const psi_cover_points points = points_of(&planted);
    const psi_cover_options options = {
        .size = sizeof options, .epsilon = 1.2, .filter = 0.0025, .max_clusters = 1000};
    psi_cover_result result[3];
    for (int threads = 1; threads <= 3; threads++) {
        psi_ctx *ctx = test_ctx(threads);
        assert_ok(ctx, psi_cover(ctx, &points, &options, &result[threads - 1]));
        assert_int_equal(result[threads - 1].n_clusters, result[0].n_clusters);
        assert_memory_equal(result[threads - 1].labels, result[0].labels,
                            planted.n * sizeof(int32_t));
        if (threads > 1) psi_cover_free(ctx, &result[threads - 1]);
        if (threads == 3) psi_cover_free(ctx, &result[0]);
        psi_ctx_free(ctx);
    }
}

static void identical_points_are_one_cluster(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    blobs planted = {.n = 500, .groups = 2, .width = 3, .k = 1, .seed = 1};
    const psi_cover_points points = points_of(&planted);
    const psi_cover_options options = {
        .size = sizeof options, .epsilon = 1e-6, .filter = 0.0025, .max_clusters = 10};
    psi_cover_result result;
    assert_ok(ctx, psi_cover(ctx, &points, &options, &result));
    assert_int_equal(result.n_clusters, 1);
    assert_int_equal(result.ignored, 0);
    psi_cover_free(ctx, &result);
    psi_ctx_free(ctx);
}

static void too_many_clusters_are_an_error_with_advice(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    blobs planted = {.n = 500, .groups = 1, .width = 3, .k = 1, .noise = 1.0, .seed = 1};
    const psi_cover_points points = points_of(&planted);
    const psi_cover_options options = {.size = sizeof options, .epsilon = 1e-3, .max_clusters = 50};
    psi_cover_result result;
    assert_status(ctx, psi_cover(ctx, &points, &options, &result), PSI_ELIMIT);
    test_assert_error_says(ctx, "more than 50 clusters");
    assert_null(result.labels);
    psi_ctx_free(ctx);
}

static psi_status cover_once(psi_ctx *ctx, void *argument)
{
    const psi_cover_points points = points_of(argument);
    const psi_cover_options options = {
        .size = sizeof options, .epsilon = 0.75, .filter = 0.01, .max_clusters = 100};
    psi_cover_result result;
    const psi_status status = psi_cover(ctx, &points, &options, &result);
    psi_cover_free(ctx, &result);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    blobs planted = {.n = 300, .groups = 1, .width = 4, .k = 4, .noise = 0.05, .seed = 3};
    assert_in_range(test_fault_sweep(cover_once, &planted), 10, 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planted_clusters_are_found),
        cmocka_unit_test(rare_clusters_are_found_in_many_points),
        cmocka_unit_test(the_number_of_threads_does_not_matter),
        cmocka_unit_test(identical_points_are_one_cluster),
        cmocka_unit_test(too_many_clusters_are_an_error_with_advice),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
