// Collecting: every byte the same on any number of threads, episodes whole and in order, errors of
// the receiver passed on.
#include "support/support.h"

#include "base/context.h"
#include "base/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct receiver {
    psi_ctx *ctx;
    size_t row_bytes, n_actions;
    uint64_t hash, episodes, steps, cut;
    uint64_t fail_at; // episode
    double square;    // of the lengths, summed
    bool pays_before; // a reward may come before the end, or none with it
} receiver;

static uint64_t mix(uint64_t hash, const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) hash = (hash ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3U;
    return hash;
}

static psi_status receive(void *user, const psi_episode *episode)
{
    receiver *got = user;
    const size_t L = episode->length;
    if (got->fail_at && got->episodes + 1 == got->fail_at) {
        return FAIL(got->ctx, PSI_EIO, "the disk is full");
    }
    assert_true(L > 0 && episode->terminated != episode->truncated);
    for (size_t t = 0; t < L; t++) {
        assert_in_range(episode->actions[t], 0, got->n_actions - 1);
        const double at_the_end = t + 1 == L && episode->terminated ? 1.0 : 0.0;
        assert_true(got->pays_before || episode->rewards[t] == at_the_end);
        assert_true(episode->latent_states[t] > 0);
    }
    assert_int_equal(episode->latent_states[L] == 0, episode->terminated);
    got->hash = mix(got->hash, &L, sizeof L);
    got->hash = mix(got->hash, episode->observations, (L + 1) * got->row_bytes);
    got->hash = mix(got->hash, episode->actions, L * sizeof *episode->actions);
    got->hash = mix(got->hash, episode->rewards, L * sizeof *episode->rewards);
    got->hash = mix(got->hash, episode->latent_states, (L + 1) * sizeof *episode->latent_states);
    got->episodes++;
    got->steps += L;
    got->cut += episode->truncated;
    got->square += (double)L * (double)L;
    return PSI_OK;
}

static psi_task task_of(psi_ctx *ctx, const char *name, const char *option, const char *value)
{
    psi_task task;
    assert_ok(ctx, psi_task_defaults(ctx, name, NULL, &task));
    if (option) assert_ok(ctx, psi_task_set(ctx, &task, option, value));
    assert_ok(ctx, psi_task_check(ctx, &task));
    return task;
}

static receiver collect(psi_ctx *ctx, const psi_task *task, uint64_t episodes, uint64_t seed)
{
    const psi_task_space space = psi_task_observe(task);
    const bool levels = task->kind == PSI_BIT_LOCK || task->kind == PSI_RICH_LOCK;
    receiver got = {.ctx = ctx,
                    .row_bytes = space.row_bytes,
                    .n_actions = space.n_actions,
                    .pays_before = levels};
    psi_collect_result result;
    assert_ok(ctx, psi_collect(ctx, task, episodes, seed, receive, &got, &result));
    assert_true(result.episodes == episodes && got.episodes == episodes);
    assert_true(result.steps == got.steps && result.terminated == episodes - got.cut);
    return got;
}

static void test_threads_change_no_byte(void **state)
{
    (void)state;
    static const struct {
        const char *name, *option, *value;
        uint64_t episodes;
    } CASES[] = {{"column-world", NULL, NULL, 1000},
                 {"point-column-world", "max-steps", "15", 129},
                 {"combination-lock", "images-per-digit", "7", 70},
                 {"combination-lock", "digits", "none", 64},
                 {"bit-lock", "max-steps", "40", 70},
                 {"rich-lock", "horizon", "9", 70}};
    for (size_t c = 0; c < sizeof CASES / sizeof CASES[0]; c++) {
        uint64_t hash = 0;
        for (int threads = 1; threads <= 4; threads++) {
            psi_ctx *ctx = test_ctx(threads);
            const psi_task task = task_of(ctx, CASES[c].name, CASES[c].option, CASES[c].value);
            const receiver got = collect(ctx, &task, CASES[c].episodes, 42);
            if (threads > 1) assert_true(got.hash == hash);
            hash = got.hash;
            if (threads == 1) assert_false(collect(ctx, &task, CASES[c].episodes, 43).hash == hash);
            psi_ctx_free(ctx);
        }
    }
}

// More episodes do not change the first ones, and none is fine, too.
static void test_prefixes(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(2);
    const psi_task task = task_of(ctx, "column-world", NULL, NULL);
    assert_int_equal(collect(ctx, &task, 0, 1).steps, 0);
    const receiver one = collect(ctx, &task, 1, 1);
    receiver more = {.ctx = ctx, .row_bytes = 8, .n_actions = 4, .fail_at = 2};
    psi_collect_result result;
    assert_status(ctx, psi_collect(ctx, &task, 500, 1, receive, &more, &result), PSI_EIO);
    assert_true(more.hash == one.hash && result.episodes == 1);
    psi_ctx_free(ctx);
}

// The mean of n episodes lies within five standard errors of the exact figure.
static void check_mean(psi_ctx *ctx, const psi_task *task, uint64_t episodes, double exact)
{
    const receiver got = collect(ctx, task, episodes, 5);
    const double n = (double)episodes, mean = (double)got.steps / n;
    const double error = sqrt((got.square / n - mean * mean) / n);
    print_message("%s: mean length %.2f ± %.2f\n", psi_task_name(task->kind), mean, error);
    assert_true(fabs(mean - exact) < 5.0 * error);
    assert_true(error < 0.01 * exact);
    assert_int_equal(got.cut, 0);
}

static void test_mean_lengths(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(2);
    psi_task task = task_of(ctx, "combination-lock", "digits", "none");
    check_mean(ctx, &task, 20000, 146.3);
    task = task_of(ctx, "point-column-world", NULL, NULL);
    check_mean(ctx, &task, 20000, 24.0);
    psi_ctx_free(ctx);
}

static void test_errors_of_the_receiver_arrive(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 3; threads++) {
        psi_ctx *ctx = test_ctx(threads);
        const psi_task task = task_of(ctx, "column-world", NULL, NULL);
        receiver got = {.ctx = ctx, .row_bytes = 8, .n_actions = 4, .fail_at = 100};
        psi_collect_result result;
        assert_status(ctx, psi_collect(ctx, &task, 1000, 1, receive, &got, &result), PSI_EIO);
        test_assert_error_says(ctx, "the disk is full");
        assert_int_equal(result.episodes, 99);
        psi_cancel(ctx);
        got.fail_at = 0;
        assert_status(ctx, psi_collect(ctx, &task, 1000, 1, receive, &got, NULL), PSI_ECANCELLED);
        psi_ctx_free(ctx);
    }
}

static void test_the_spec(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    const psi_task task = task_of(ctx, "combination-lock", NULL, NULL);
    const psi_episode_spec spec = psi_collect_spec(&task);
    assert_true(spec.observation_dtype == PSI_UINT8 && spec.observation_shape.rank == 3);
    assert_true(spec.n_actions == 3 && spec.latent_states && spec.observation_high == 255.0);
    psi_ctx_free(ctx);
}

static psi_status sink(void *user, const psi_episode *episode)
{
    (void)user;
    (void)episode;
    return PSI_OK;
}

static psi_status collect_few(psi_ctx *ctx, void *argument)
{
    return psi_collect(ctx, argument, 5, 1, sink, NULL, NULL);
}

static void test_no_allocation_may_fail_badly(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_task lock = task_of(ctx, "combination-lock", "images-per-digit", "2");
    assert_true(test_fault_sweep(collect_few, &lock) >= 20);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_change_no_byte),
        cmocka_unit_test(test_prefixes),
        cmocka_unit_test(test_mean_lengths),
        cmocka_unit_test(test_errors_of_the_receiver_arrive),
        cmocka_unit_test(test_the_spec),
        cmocka_unit_test(test_no_allocation_may_fail_badly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
