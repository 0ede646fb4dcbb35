// Processes that are one: alone nothing is lost, and with a table of calls in the place of MPI's
// what is asked of it arrives.
#include "support/support.h"

#include "base/comm.h"
#include "base/comm_part.h"

#include <stdlib.h>
#include <string.h>

// A made-up job of three ranks that all have what rank 1 has.
enum { RANKS = 3 };
static bool broken, asks_to_stop;

static bool start(int *rank, int *ranks)
{
    *rank = 1;
    *ranks = RANKS;
    return !broken;
}
static bool reduce(int64_t *values, size_t n, base_comm_kind kind, base_comm_stop *stop, void *user)
{
    if (asks_to_stop && stop(user)) return false;
    for (size_t i = 0; kind == COMM_SUM && i < n; i++) values[i] *= RANKS;
    return !broken;
}
static bool gather(const void *mine, const size_t *bytes, void *all, base_comm_stop *stop,
                   void *user)
{
    (void)stop, (void)user;
    for (size_t r = 0; r < RANKS; r++) memcpy((char *)all + r * bytes[1], mine, bytes[1]);
    return !broken;
}
static bool broadcast(void *data, size_t bytes, int from, base_comm_stop *stop, void *user)
{
    (void)stop, (void)user;
    memset(data, from, bytes);
    return !broken;
}
static bool hand_over(void *data, size_t bytes, int from, int to, base_comm_stop *stop, void *user)
{
    (void)stop, (void)user;
    memset(data, 10 * from + to, bytes);
    return !broken;
}
static int finished, abandoned;
static void finish(void)
{
    finished++;
}
static void abandon(int code)
{
    abandoned = code;
}
static const base_comm_table TABLE = {COMM_VERSION, start,     reduce, gather,
                                      broadcast,    hand_over, finish, abandon};

static psi_ctx *one_of_three(void)
{
    psi_ctx *ctx = test_ctx(1);
    base_comm *comm = base_ctx_comm(ctx);
    comm->table = &TABLE;
    assert_true(start(&comm->rank, &comm->ranks));
    return ctx;
}

static void ask_everything(psi_ctx *ctx, psi_status expected)
{
    int64_t number = 5;
    char byte = 1, all[RANKS], *parts = NULL;
    size_t total;
    assert_status(ctx, base_sum(ctx, &number, 1), expected);
    assert_status(ctx, base_maximum(ctx, &number, 1), expected);
    assert_status(ctx, base_gather(ctx, &byte, 1, all), expected);
    assert_status(ctx, base_gather_parts(ctx, &byte, 1, &parts, &total), expected);
    assert_status(ctx, base_broadcast(ctx, &byte, 1, 2), expected);
    assert_status(ctx, base_hand_over(ctx, &byte, 1, 1, 0), expected);
    psi_array_free(ctx, parts);
}

static void test_alone_nothing_changes(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    int64_t numbers[] = {3, 4};
    char *all = NULL, same[3];
    size_t total;
    assert_ok(ctx, psi_ranks_join(ctx, false));
    assert_int_equal(psi_rank(ctx), 0);
    assert_int_equal(psi_ranks(ctx), 1);
    assert_ok(ctx, base_sum(ctx, numbers, 2));
    assert_ok(ctx, base_maximum(ctx, numbers, 2));
    assert_int_equal(numbers[1], 4);
    assert_ok(ctx, base_gather(ctx, "ab", 3, same));
    assert_string_equal(same, "ab");
    assert_ok(ctx, base_gather_parts(ctx, "xyz", 4, &all, &total));
    assert_int_equal(total, 4);
    assert_string_equal(all, "xyz");
    psi_array_free(ctx, all);
    assert_ok(ctx, base_alone(ctx, "this"));
    assert_int_equal(psi_ranks_spent(ctx).calls, 0);
    psi_ranks_abandon(ctx, 3); // there is nobody to end
    psi_ctx_free(ctx);
}

static void test_what_is_asked_arrives(void **state)
{
    (void)state;
    psi_ctx *ctx = one_of_three();
    int64_t number = 5;
    char byte = 1, all[3 * RANKS], *parts;
    size_t total;
    assert_ok(ctx, base_sum(ctx, &number, 1));
    assert_int_equal(number, 15);
    assert_ok(ctx, base_gather(ctx, "abc", 3, all));
    assert_memory_equal(all, "abcabcabc", 9);
    assert_ok(ctx, base_gather_parts(ctx, "de", 2, &parts, &total));
    assert_int_equal(total, 6);
    assert_memory_equal(parts, "dedede", 6);
    psi_array_free(ctx, parts);
    assert_ok(ctx, base_broadcast(ctx, &byte, 1, 2));
    assert_int_equal(byte, 2);
    assert_ok(ctx, base_hand_over(ctx, &byte, 1, 1, 0));
    assert_int_equal(byte, 10);
    // sent: 8 of a sum; 3; 8 of sizes and 2 of parts; nothing of another's; 1 handed over
    assert_int_equal(psi_ranks_spent(ctx).bytes, 22);
    // received: 8 of a sum; 6; 16 of sizes and 4 of parts; 1 of another's; nothing handed over
    assert_int_equal(psi_ranks_spent(ctx).received, 35);
    assert_int_equal(psi_ranks_spent(ctx).calls, 6);
    assert_status(ctx, base_alone(ctx, "knitting"), PSI_EUNSUPPORTED);
    test_assert_error_says(ctx, "knitting is not shared");
    base_go_alone(ctx);
    assert_int_equal(base_ranks(ctx), 1);
    assert_int_equal(base_rank(ctx), 0);
    assert_int_equal(psi_ranks(ctx), RANKS);
    assert_ok(ctx, base_sum(ctx, &number, 1));
    assert_int_equal(number, 15);
    psi_ranks_abandon(ctx, 4);
    assert_int_equal(abandoned, 4);
    psi_ctx_free(ctx);
    assert_int_equal(finished, 1);
}

static void test_others_that_cannot_be_reached(void **state)
{
    (void)state;
    psi_ctx *ctx = one_of_three();
    broken = true;
    ask_everything(ctx, PSI_EIO);
    test_assert_error_says(ctx, "other processes");
    broken = false;
    ask_everything(ctx, PSI_OK);
    asks_to_stop = true;
    psi_cancel(ctx);
    int64_t number = 1;
    assert_status(ctx, base_sum(ctx, &number, 1), PSI_ECANCELLED);
    asks_to_stop = false;
    psi_ctx_free(ctx);
}

static void test_a_component_that_is_not_there(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    setenv("PSIFOLD_MPI", "/nowhere/libpsifold-mpi.so", 1);
    assert_status(ctx, psi_ranks_join(ctx, true), PSI_EUNSUPPORTED);
    test_assert_error_says(ctx, "libpsifold-mpi.so");
    setenv("PSIFOLD_MPI", "libm.so.6", 1); // somebody else's
    assert_status(ctx, psi_ranks_join(ctx, true), PSI_EUNSUPPORTED);
    unsetenv("PSIFOLD_MPI");
    assert_int_equal(base_started_as(), -1);
    setenv("PMI_RANK", "7", 1);
    assert_int_equal(base_started_as(), 7);
    unsetenv("PMI_RANK");
    psi_ctx_free(ctx);
}

static psi_status talk(psi_ctx *ctx, void *argument)
{
    (void)argument;
    base_comm *comm = base_ctx_comm(ctx);
    comm->table = &TABLE;
    start(&comm->rank, &comm->ranks);
    char *all;
    size_t total;
    psi_status status = base_gather_parts(ctx, "abc", 3, &all, &total);
    if (status == PSI_OK) psi_array_free(ctx, all);
    return status;
}

static void test_no_memory(void **state)
{
    (void)state;
    assert_true(test_fault_sweep(talk, NULL) >= 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone_nothing_changes),
        cmocka_unit_test(test_what_is_asked_arrives),
        cmocka_unit_test(test_others_that_cannot_be_reached),
        cmocka_unit_test(test_a_component_that_is_not_there),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests_name("base/comm", tests, NULL, NULL);
}
