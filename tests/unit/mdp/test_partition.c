// Partitions: what check refuses, what the other functions keep true, over random labellings.
#include "models.h"

static psi_partition *partition(psi_ctx *ctx, size_t n, const int32_t *labels)
{
    psi_partition *out;
    assert_ok(ctx, psi_partition_new(ctx, n, labels, &out));
    return out;
}

// n labels below k, some −1, every block inhabited.
static void random_labels(base_random *r, size_t n, uint32_t k, bool ignore, int32_t *labels)
{
    for (size_t s = 0; s < n; s++) labels[s] = (int32_t)base_random_below(r, k);
    for (size_t s = 0; ignore && s < n; s++)
        if (base_random_below(r, 6) == 0) labels[s] = -1;
    for (uint32_t j = 0; j < k; j++) labels[j] = (int32_t)j;
}

static void test_check(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_partition *p;
    assert_status(ctx, psi_partition_new(ctx, 3, (int32_t[]){0, -2, 0}, &p), PSI_EDATA);
    assert_null(p);
    assert_status(ctx, psi_partition_new(ctx, 3, (int32_t[]){0, 2, 0}, &p), PSI_EDATA);
    test_assert_error_says(ctx, "block 1 has no state");
    assert_status(ctx, psi_partition_new(ctx, 2, (int32_t[]){INT32_MAX, 0}, &p), PSI_EDATA);
    p = partition(ctx, 3, (int32_t[]){1, 0, -1});
    assert_int_equal(p->n_blocks, 2);
    p->label[0] = 2;
    assert_status(ctx, psi_partition_check(ctx, p), PSI_EDATA);
    p->label[0] = 0;
    assert_status(ctx, psi_partition_check(ctx, p), PSI_EDATA);
    psi_partition_free(ctx, p);
    p = partition(ctx, 4, NULL);
    assert_int_equal(p->n_blocks, 1);
    psi_partition_free(ctx, p);
    p = partition(ctx, 0, NULL);
    assert_int_equal(p->n_blocks, 0);
    psi_partition_free(ctx, p);
    psi_partition_free(ctx, NULL);
    psi_ctx_free(ctx);
}

static void test_canonical(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_partition *p = partition(ctx, 6, (int32_t[]){2, -1, 0, 2, 1, 0});
    assert_ok(ctx, psi_partition_canonical(ctx, p, NULL));
    assert_memory_equal(p->label, ((int32_t[]){0, -1, 1, 0, 2, 1}), 6 * sizeof(int32_t));
    assert_ok(ctx, psi_partition_canonical(ctx, p, (uint8_t[]){0, 0, 0, 0, 1, 0}));
    assert_memory_equal(p->label, ((int32_t[]){1, -1, 2, 1, 0, 2}), 6 * sizeof(int32_t));
    assert_status(ctx, psi_partition_canonical(ctx, p, (uint8_t[]){1, 0, 0, 0, 1, 0}), PSI_EDATA);
    assert_status(ctx, psi_partition_canonical(ctx, p, (uint8_t[]){0, 0, 0, 1, 0, 0}), PSI_EDATA);
    assert_memory_equal(p->label, ((int32_t[]){1, -1, 2, 1, 0, 2}), 6 * sizeof(int32_t));
    psi_partition_free(ctx, p);
    psi_ctx_free(ctx);
}

static void test_split_and_join(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    for (uint64_t seed = 0; seed < 200; seed++) {
        base_random r = base_random_stream(seed, 1, 0);
        const size_t n = 10 + base_random_below(&r, 40);
        int32_t labels[64], key[64];
        random_labels(&r, n, 1 + base_random_below(&r, 8), true, labels);
        for (size_t s = 0; s < n; s++) key[s] = (int32_t)base_random_below(&r, 4) - 2;
        psi_partition *before = partition(ctx, n, labels), *after = partition(ctx, n, labels);
        assert_ok(ctx, psi_partition_split(ctx, after, key));
        assert_ok(ctx, psi_partition_check(ctx, after));
        for (size_t s = 0; s < n; s++) {
            assert_int_equal(after->label[s] < 0, labels[s] < 0);
            for (size_t t = 0; t < s; t++) {
                if (labels[s] < 0 || labels[t] < 0) continue;
                assert_int_equal(after->label[s] == after->label[t],
                                 labels[s] == labels[t] && key[s] == key[t]);
            }
        }
        bool holds, equal;
        assert_ok(ctx, psi_partition_is_subclustering(ctx, before, after, &holds));
        assert_true(holds);
        assert_ok(ctx, psi_partition_is_subclustering(ctx, after, before, &holds));
        assert_int_equal(holds, after->n_blocks == before->n_blocks);

        // joining every piece back to where it came from undoes the split
        int32_t target[64] = {0};
        for (size_t s = 0; s < n; s++)
            if (labels[s] >= 0) target[after->label[s]] = labels[s];
        assert_ok(ctx, psi_partition_join(ctx, after, target));
        assert_ok(ctx, psi_partition_equal(ctx, before, after, &equal));
        assert_true(equal);
        psi_partition_free(ctx, before);
        psi_partition_free(ctx, after);
    }
    psi_partition *p = partition(ctx, 3, (int32_t[]){0, 1, 2});
    assert_status(ctx, psi_partition_join(ctx, p, (int32_t[]){0, 0, 2}), PSI_EDATA);
    assert_int_equal(p->n_blocks, 3);
    assert_ok(ctx, psi_partition_join(ctx, p, (int32_t[]){0, -1, 1}));
    assert_memory_equal(p->label, ((int32_t[]){0, -1, 1}), 3 * sizeof(int32_t));
    psi_partition_free(ctx, p);
    psi_ctx_free(ctx);
}

static void test_equal(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    for (uint64_t seed = 0; seed < 200; seed++) {
        base_random r = base_random_stream(seed, 2, 0);
        const uint32_t k = 1 + base_random_below(&r, 9);
        int32_t labels[40], renamed[40];
        uint32_t name[16];
        random_labels(&r, 40, k, true, labels);
        base_random_shuffle(&r, name, k);
        for (size_t s = 0; s < 40; s++) renamed[s] = labels[s] < 0 ? -1 : (int32_t)name[labels[s]];
        psi_partition *a = partition(ctx, 40, labels), *b = partition(ctx, 40, renamed);
        bool equal;
        double share;
        assert_ok(ctx, psi_partition_equal(ctx, a, b, &equal));
        assert_true(equal);
        assert_ok(ctx, psi_partition_agreement(ctx, a, b, &share));
        assert_true(share == 1.0);
        // one state elsewhere
        const size_t s = 16 + base_random_below(&r, 24);
        b->label[s] = b->label[s] < 0 ? 0 : b->label[s] - 1;
        assert_ok(ctx, psi_partition_equal(ctx, a, b, &equal));
        assert_false(equal);
        assert_ok(ctx, psi_partition_agreement(ctx, a, b, &share));
        assert_true(share < 1.0);
        psi_partition_free(ctx, a);
        psi_partition_free(ctx, b);
    }
    psi_partition *a = partition(ctx, 2, NULL), *b = partition(ctx, 3, NULL);
    bool equal;
    double share;
    assert_status(ctx, psi_partition_equal(ctx, a, b, &equal), PSI_ESHAPE);
    assert_status(ctx, psi_partition_is_subclustering(ctx, a, b, &equal), PSI_ESHAPE);
    assert_status(ctx, psi_partition_agreement(ctx, a, b, &share), PSI_ESHAPE);
    psi_partition_free(ctx, a);
    psi_partition_free(ctx, b);
    psi_ctx_free(ctx);
}

// All one-to-one matchings, tried one by one.
static double best_by_trial(const double *table, size_t rows, size_t columns, unsigned used)
{
    if (rows == 0) return 0.0;
    double best = best_by_trial(table + columns, rows - 1, columns, used);
    for (size_t j = 0; j < columns; j++) {
        if (used >> j & 1) continue;
        const double with =
            table[j] + best_by_trial(table + columns, rows - 1, columns, used | 1u << j);
        if (with > best) best = with;
    }
    return best;
}

static void test_agreement_is_exact(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    for (uint64_t seed = 0; seed < 500; seed++) {
        base_random r = base_random_stream(seed, 3, 0);
        const uint32_t ka = 1 + base_random_below(&r, 6), kb = 1 + base_random_below(&r, 6);
        const size_t n = 8 + base_random_below(&r, 50);
        int32_t a[64], b[64];
        random_labels(&r, n, ka, seed % 2, a);
        random_labels(&r, n, kb, seed % 3 == 0, b);
        double table[64] = {0}, judged = 0.0, share;
        for (size_t s = 0; s < n; s++) {
            judged += a[s] >= 0 || b[s] >= 0;
            if (a[s] >= 0 && b[s] >= 0) table[(size_t)a[s] * kb + (size_t)b[s]] += 1.0;
        }
        psi_partition *pa = partition(ctx, n, a), *pb = partition(ctx, n, b);
        assert_ok(ctx, psi_partition_agreement(ctx, pa, pb, &share));
        const double expected = best_by_trial(table, ka, kb, 0) / judged;
        if (share != expected)
            fail_msg("seed %llu: %g, not %g", (unsigned long long)seed, share, expected);
        double back;
        assert_ok(ctx, psi_partition_agreement(ctx, pb, pa, &back));
        assert_true(back == share);
        psi_partition_free(ctx, pa);
        psi_partition_free(ctx, pb);
    }
    // everything ignored: nothing disagrees
    psi_partition *none = partition(ctx, 2, (int32_t[]){-1, -1});
    double share;
    assert_ok(ctx, psi_partition_agreement(ctx, none, none, &share));
    assert_true(share == 1.0);
    psi_partition_free(ctx, none);
    psi_ctx_free(ctx);
}

static psi_status sweep(psi_ctx *ctx, void *argument)
{
    (void)argument;
    psi_partition *a = NULL, *b = NULL;
    bool equal;
    double share;
    psi_status status = psi_partition_new(ctx, 6, (int32_t[]){0, 1, 2, 0, 1, -1}, &a);
    if (!status) status = psi_partition_new(ctx, 6, (int32_t[]){0, 0, 1, 1, 2, 2}, &b);
    if (!status) status = psi_partition_split(ctx, a, (int32_t[]){0, 0, 0, 1, 1, 1});
    if (!status) status = psi_partition_canonical(ctx, a, (uint8_t[]){0, 0, 0, 0, 1, 0});
    if (!status) status = psi_partition_equal(ctx, a, b, &equal);
    if (!status) status = psi_partition_agreement(ctx, a, b, &share);
    if (!status) status = psi_partition_join(ctx, b, (int32_t[]){0, 0, 1});
    psi_partition_free(ctx, a);
    psi_partition_free(ctx, b);
    return status;
}

static void test_faults_in_partition(void **state)
{
    (void)state;
    assert_true(test_fault_sweep(sweep, NULL) > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_check),
        cmocka_unit_test(test_canonical),
        cmocka_unit_test(test_split_and_join),
        cmocka_unit_test(test_equal),
        cmocka_unit_test(test_agreement_is_exact),
        cmocka_unit_test(test_faults_in_partition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
