// The team: everybody runs, nobody passes a barrier early, nothing is torn.
#include "support/support.h"

#include "base/context.h"
#include "base/threads.h"

#include <stdatomic.h>
#include <unistd.h>

enum { ROUNDS = 300, MAX_THREADS = 8 };

typedef struct race {
    base_team *team;
    atomic_int at[MAX_THREADS]; // the round each thread has reached
    atomic_int early;           // how often somebody was seen behind after a barrier
    int pause;                  // µs by which thread 0 is late, so that the others fall asleep
} race;

static void run_relay(void *argument, int thread, int threads)
{
    race *relay = argument;
    for (int round = 1; round <= ROUNDS; round++) {
        if (thread == 0 && relay->pause && round % 50 == 0) usleep((useconds_t)relay->pause);
        atomic_store(&relay->at[thread], round);
        base_team_barrier(relay->team);
        for (int t = 0; t < threads; t++) {
            if (atomic_load(&relay->at[t]) < round) atomic_fetch_add(&relay->early, 1);
        }
        base_team_barrier(relay->team);
    }
}

static void nobody_passes_a_barrier_early(void **state)
{
    (void)state;
    for (int threads = 1; threads <= MAX_THREADS; threads++) {
        psi_ctx *ctx = test_ctx(threads);
        for (int pause = 0; pause <= 500; pause += 500) {
            race relay = {.team = base_ctx_team(ctx), .pause = pause};
            base_team_run(relay.team, run_relay, &relay);
            assert_int_equal(relay.early, 0);
            for (int t = 0; t < threads; t++) assert_int_equal(relay.at[t], ROUNDS);
        }
        psi_ctx_free(ctx);
    }
}

static void count_in(void *argument, int thread, int threads)
{
    (void)threads;
    atomic_fetch_add((atomic_int *)argument + thread, 1);
}

static void every_run_reaches_every_thread_once(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(4);
    atomic_int count[4] = {0};
    for (int i = 0; i < 2000; i++) {
        base_team_run(base_ctx_team(ctx), count_in, count);
        if (i % 500 == 0) usleep(2000); // long enough for the helpers to fall asleep
    }
    for (int t = 0; t < 4; t++) assert_int_equal(count[t], 2000);
    psi_ctx_free(ctx);
}

static void slices_cover_everything_once(void **state)
{
    (void)state;
    for (size_t n = 0; n < 50; n++) {
        for (int threads = 1; threads < 9; threads++) {
            size_t expected = 0, shortest = n, longest = 0;
            for (int t = 0; t < threads; t++) {
                size_t begin, end;
                base_slice(n, t, threads, &begin, &end);
                assert_int_equal(begin, expected);
                expected = end;
                if (end - begin < shortest) shortest = end - begin;
                if (end - begin > longest) longest = end - begin;
            }
            assert_int_equal(expected, n);
            assert_true(longest - shortest <= 1);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_passes_a_barrier_early),
        cmocka_unit_test(every_run_reaches_every_thread_once),
        cmocka_unit_test(slices_cover_everything_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
