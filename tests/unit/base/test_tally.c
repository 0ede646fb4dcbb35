// Keys are sorted and counted, alone and by several ranks; what is added up in turns is what one
// process would come to.
#include "support/ranks.h"
#include "support/support.h"

#include "base/comm.h"
#include "base/context.h"
#include "base/tally.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int ascending(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static uint64_t made_up(size_t i)
{
    const uint64_t x = (i + 1) * 0x9e3779b97f4a7c15u;
    return i % 3 == 0 ? x : i % 3 == 1 ? x >> 40 : 7; // wide, narrow, the same
}

static void test_keys_are_sorted(void **state)
{
    (void)state;
    enum { N = 1000 };
    psi_ctx *ctx = test_ctx(1);
    uint64_t keys[N], expected[N];
    for (size_t n = 0; n <= N; n += 250) {
        for (size_t i = 0; i < n; i++) keys[i] = expected[i] = made_up(i);
        qsort(expected, n, sizeof *expected, ascending);
        assert_ok(ctx, base_sort_keys(ctx, keys, n));
        assert_memory_equal(keys, expected, n * sizeof *keys);
    }
    psi_ctx_free(ctx);
}

static void test_numbers_keep_their_order_as_keys(void **state)
{
    (void)state;
    const double x[] = {-HUGE_VAL, -1e300, -1.5, -1e-320, 0.0, 1e-320, 0.1, 2.0, 1e300, HUGE_VAL};
    for (size_t i = 0; i < sizeof x / sizeof *x; i++) {
        assert_true(base_real_of_key(base_key_of_real(x[i])) == x[i]);
        if (i > 0) assert_true(base_key_of_real(x[i - 1]) < base_key_of_real(x[i]));
    }
    assert_true(base_key_of_real(-0.0) == base_key_of_real(0.0));
}

static psi_status count(psi_ctx *ctx, int rank, void *argument)
{
    psi_status status = PSI_OK;
    uint64_t keys[40];
    const size_t n = rank == 1 ? 0 : 40; // one that has nothing
    base_times *times = NULL, *expected = argument;
    size_t kinds;
    for (size_t i = 0; i < n; i++) keys[i] = made_up(i % 10 + 5 * (size_t)rank);
    TRY(base_tally(ctx, keys, n, &times, &kinds));
    if (rank == 2) memcpy(expected, times, kinds * sizeof *times);
    for (size_t i = 1; i < kinds; i++) {
        if (times[i].key <= times[i - 1].key) TRY(PSI_EINTERNAL);
    }
done:
    base_free(ctx, times);
    return status;
}

static void test_ranks_count_together(void **state)
{
    (void)state;
    base_times times[64] = {{0}};
    uint64_t n = 0, sevens = 0;
    test_as_ranks(3, count, times);
    for (size_t i = 0; i < 64; i++) {
        n += times[i].n;
        if (times[i].key == 7) sevens = times[i].n;
    }
    assert_int_equal(n, 80);                 // of ranks 0 and 2
    assert_int_equal(sevens, 4 * 3 + 4 * 3); // i = 2, 5, 8; 11, 14, 17
}

typedef struct sums {
    double sum;
    size_t n;
} sums;

static psi_status add_up(psi_ctx *ctx, int rank, void *argument)
{
    psi_status status = PSI_OK;
    sums own = {0};
    double *all = NULL;
    size_t bytes;
    const base_block turn[] = {{&own.sum, sizeof own.sum}, {&own.n, sizeof own.n}};
    TRY(base_take_turn_with(ctx, turn, 2));
    for (size_t i = 0; i < 100; i++) own.sum += 1.0 / (double)++own.n;
    TRY(base_end_turn_with(ctx, turn, 2));
    TRY(base_take_turn(ctx, &own.n, sizeof own.n));
    TRY(base_end_turn(ctx, &own.n, sizeof own.n));
    const double mine[2] = {own.sum, rank};
    TRY(base_collect(ctx, mine, (size_t)(rank % 2 + 1) * sizeof *mine, &all, &bytes));
    if (bytes != 6 * sizeof *all || (rank > 0) != (all == NULL)) TRY(PSI_EINTERNAL);
    if (rank == 0 && (all[2] != 1.0 || all[5] != 3.0 || all[4] != own.sum)) TRY(PSI_EINTERNAL);
    const size_t sizes[] = {0, 8, 8, 8};
    double got[3] = {0};
    TRY(base_gather_at(ctx, &mine[1], sizes, 2, got));
    if (rank == 2 && (got[0] != 1.0 || got[1] != 2.0 || got[2] != 3.0)) TRY(PSI_EINTERNAL);
    if (rank == 3) *(sums *)argument = own;
done:
    base_free(ctx, all);
    return status;
}

static void test_turns_come_to_what_one_would(void **state)
{
    (void)state;
    sums together, alone = {0};
    test_as_ranks(4, add_up, &together);
    for (size_t i = 0; i < 400; i++) alone.sum += 1.0 / (double)++alone.n;
    assert_true(together.sum == alone.sum);
    assert_int_equal(together.n, 400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_keys_are_sorted),
                                       cmocka_unit_test(test_numbers_keep_their_order_as_keys),
                                       cmocka_unit_test(test_ranks_count_together),
                                       cmocka_unit_test(test_turns_come_to_what_one_would)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
