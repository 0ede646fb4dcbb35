// The replay memory against one that stores every transition whole and forgets nothing too early.
#include "support/support.h"

#include "agent/replay.h"
#include "base/context.h"

#include <stdio.h>
#include <string.h>

enum { MOST = 4000 };

// Observations are numbers that say where they come from: 1000 · episode + step.
typedef struct transition {
    int32_t from, action, to;
    float reward;
    bool terminated, last; // the episode ended, or was cut, here
} transition;

// Plays random episodes into a memory; returns how many transitions there were.
static size_t play(agent_replay *replay, base_random *random, size_t steps, transition *all)
{
    size_t n = 0;
    for (int32_t episode = 0; n < steps; episode++) {
        const uint32_t length = 1 + base_random_below(random, 9);
        const bool terminates = base_random_below(random, 3) > 0;
        int32_t at = 1000 * episode;
        agent_replay_begin(replay, &at);
        for (uint32_t t = 1; t <= length && n < steps; t++, n++) {
            const int32_t next = at + 1;
            all[n] = (transition){at,
                                  (int32_t)base_random_below(random, 3),
                                  next,
                                  (float)base_random_uniform(random),
                                  t == length && terminates,
                                  t == length};
            agent_replay_add(replay, all[n].action, (double)all[n].reward, all[n].terminated,
                             &next);
            at = next;
        }
    }
    return n;
}

static void test_samples_are_what_happened(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    for (uint64_t seed = 0; seed < 20; seed++) {
        base_random random = base_random_stream(seed, 1, 0);
        const size_t rows = 2 + base_random_below(&random, 300);
        const size_t steps = 1 + base_random_below(&random, MOST);
        static transition all[MOST];
        agent_replay *replay;
        agent_batch batch;
        size_t seen[MOST] = {0};
        assert_ok(ctx, agent_replay_new(ctx, rows, sizeof(int32_t), &replay));
        assert_ok(ctx, agent_batch_new(ctx, 2000, sizeof(int32_t), &batch));
        const size_t n = play(replay, &random, steps, all);
        agent_replay_sample(replay, &random, &batch);
        for (size_t i = 0; i < batch.n; i++) {
            const int32_t from = ((int32_t *)batch.observations)[i];
            size_t t = n; // the latest with this observation: numbers are unique
            while (t > 0 && all[t - 1].from != from) t--;
            assert_true(t > 0);
            const transition *truth = &all[t - 1];
            seen[t - 1]++;
            assert_int_equal(batch.actions[i], truth->action);
            assert_true(batch.rewards[i] == truth->reward);
            assert_int_equal(batch.terminated[i], truth->terminated);
            if (!truth->terminated) assert_int_equal(((int32_t *)batch.next)[i], truth->to);
        }
        // a row for every observation but the terminal ones: the newest that fit are kept
        size_t room = rows, expected = 0;
        for (size_t t = n; t > 0 && room > 0; t--) {
            const bool open_end = !all[t - 1].terminated && (all[t - 1].last || t == n);
            room -= open_end; // an observation that nothing follows
            if (room == 0) break;
            room--;
            expected++;
        }
        assert_int_equal(replay->kept, expected);
        for (size_t t = 0; t + expected < n; t++) assert_int_equal(seen[t], 0);
        agent_batch_free(ctx, &batch);
        agent_replay_free(ctx, replay);
    }
    psi_ctx_free(ctx);
}

// Every kept transition equally often: χ² of 60,000 draws over 50 of them.
static void test_samples_are_uniform(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    enum { N = 50, DRAWS = 60000 };
    agent_replay *replay;
    agent_batch batch;
    size_t seen[N + 1] = {0};
    base_random random = base_random_stream(3, 2, 0);
    assert_ok(ctx, agent_replay_new(ctx, N + 1, sizeof(int32_t), &replay));
    assert_ok(ctx, agent_batch_new(ctx, DRAWS, sizeof(int32_t), &batch));
    int32_t at = 0;
    agent_replay_begin(replay, &at);
    for (int32_t i = 1; i <= N; i++) agent_replay_add(replay, 0, 0, false, &i);
    assert_int_equal(replay->kept, N);
    agent_replay_sample(replay, &random, &batch);
    for (size_t i = 0; i < DRAWS; i++) seen[((int32_t *)batch.observations)[i]]++;
    double square = 0;
    for (size_t i = 0; i < N; i++) {
        const double off = (double)seen[i] - (double)DRAWS / N;
        square += off * off / ((double)DRAWS / N);
    }
    assert_int_equal(seen[N], 0); // nothing has followed it yet
    assert_true(square < 90);     // 49 degrees of freedom: one in 3,000 is above 86
    agent_batch_free(ctx, &batch);
    agent_replay_free(ctx, replay);
    psi_ctx_free(ctx);
}

static void test_files_bring_it_back(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder();
    const char *path = test_path(folder, "replay.npz");
    static transition all[MOST];
    base_random random = base_random_stream(5, 3, 0);
    agent_replay *replay, *copy, *smaller;
    assert_ok(ctx, agent_replay_new(ctx, 100, sizeof(int32_t), &replay));
    assert_ok(ctx, agent_replay_new(ctx, 100, sizeof(int32_t), &copy));
    assert_ok(ctx, agent_replay_new(ctx, 99, sizeof(int32_t), &smaller));
    play(replay, &random, 700, all);
    assert_ok(ctx, agent_replay_save(ctx, replay, path));
    assert_ok(ctx, agent_replay_load(ctx, copy, 3, 0, path));
    assert_true(copy->kept == replay->kept && copy->begun == replay->begun);
    assert_memory_equal(copy->observations, replay->observations, 100 * sizeof(int32_t));
    assert_memory_equal(copy->actions, replay->actions, 100 * sizeof(int32_t));
    // what does not fit is refused, and nothing has changed
    assert_status(ctx, agent_replay_load(ctx, smaller, 3, 0, path), PSI_ESHAPE);
    assert_int_equal(smaller->begun, 0);
    assert_status(ctx, agent_replay_load(ctx, copy, 2, 0, path), PSI_EFORMAT);  // actions
    assert_status(ctx, agent_replay_load(ctx, copy, 3, 50, path), PSI_EFORMAT); // states
    assert_int_equal(copy->begun, replay->begun);
    agent_replay_free(ctx, replay);
    agent_replay_free(ctx, copy);
    agent_replay_free(ctx, smaller);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

static psi_status make(psi_ctx *ctx, void *argument)
{
    (void)argument;
    agent_replay *replay;
    agent_batch batch = {0};
    psi_status status = agent_replay_new(ctx, 10, 8, &replay);
    if (status == PSI_OK) status = agent_batch_new(ctx, 4, 8, &batch);
    agent_batch_free(ctx, &batch);
    agent_replay_free(ctx, replay);
    return status;
}

static void test_no_allocation_may_fail_badly(void **state)
{
    (void)state;
    assert_true(test_fault_sweep(make, NULL) >= 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples_are_what_happened),
        cmocka_unit_test(test_samples_are_uniform),
        cmocka_unit_test(test_files_bring_it_back),
        cmocka_unit_test(test_no_allocation_may_fail_badly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
