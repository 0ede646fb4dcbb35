// The batch: dice that depend on nothing but their names, flags, and what a step refuses.
#include "tasks.h"

#include <stdlib.h>

enum { MOST_ENVS = 3000, STEPS = 40 };

typedef struct record {
    unsigned char *observations;
    double rewards[MOST_ENVS];
    uint8_t terminated[MOST_ENVS], truncated[MOST_ENVS];
    uint64_t hash;
} record;

static uint64_t mix(uint64_t hash, const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) hash = (hash ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3U;
    return hash;
}

// Hash of everything that environments 0 … watched−1 do in a batch of n on so many threads.
static uint64_t run_batch(const char *name, const char *options, size_t n, size_t watched,
                          int threads)
{
    psi_ctx *ctx = test_ctx(threads);
    const psi_task task = test_task(ctx, name, NULL, options);
    psi_env *env;
    assert_ok(ctx, psi_env_new(ctx, &task, n, 5, &env));
    const size_t row = psi_env_space(env)->row_bytes;
    const uint32_t n_actions = (uint32_t)psi_env_space(env)->n_actions;
    record *got = calloc(1, sizeof *got);
    int32_t *actions = calloc(n, sizeof *actions);
    assert_non_null(got);
    assert_non_null(actions);
    got->observations = calloc(n, row);
    assert_non_null(got->observations);
    assert_ok(ctx, psi_env_reset(ctx, env, NULL, got->observations));
    uint64_t hash = mix(14695981039346656037U, got->observations, watched * row);
    for (uint64_t t = 0; t < STEPS; t++) {
        for (size_t i = 0; i < n; i++) {
            base_random choice = base_random_stream(1, 99, t << 32 | i);
            actions[i] = (int32_t)base_random_below(&choice, n_actions);
        }
        assert_ok(ctx, psi_env_step(ctx, env, actions, got->observations, got->rewards,
                                    got->terminated, got->truncated));
        hash = mix(hash, got->observations, watched * row);
        hash = mix(hash, got->rewards, watched * sizeof *got->rewards);
        hash = mix(hash, got->terminated, watched);
        hash = mix(hash, got->truncated, watched);
        for (size_t i = 0; i < n; i++) got->terminated[i] |= got->truncated[i];
        assert_ok(ctx, psi_env_reset(ctx, env, got->terminated, got->observations));
        for (size_t i = 0; i < watched; i++) {
            const int32_t latent = psi_env_latent_state(env, i);
            hash = mix(hash, &latent, sizeof latent);
        }
    }
    free(got->observations);
    free(got);
    free(actions);
    psi_env_free(ctx, env);
    psi_ctx_free(ctx);
    return hash;
}

static void test_batch_size_and_threads_change_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *name, *options;
        size_t many;
    } CASES[] = {{"column-world", "", MOST_ENVS},
                 {"point-column-world", "start-column any max-steps 7", MOST_ENVS},
                 {"combination-lock", "images-per-digit 5 digits-per-dial 3 dials 2", 200},
                 {"combination-lock", "digits none digits-per-dial 3", MOST_ENVS},
                 {"bit-lock", "states 3 bits 20 max-steps 7", 200},
                 {"rich-lock", "horizon 4", 200}};
    for (size_t c = 0; c < sizeof CASES / sizeof CASES[0]; c++) {
        const uint64_t alone = run_batch(CASES[c].name, CASES[c].options, 10, 10, 1);
        assert_true(alone == run_batch(CASES[c].name, CASES[c].options, CASES[c].many, 10, 1));
        assert_true(alone == run_batch(CASES[c].name, CASES[c].options, CASES[c].many, 10, 3));
        assert_false(alone == run_batch(CASES[c].name, CASES[c].options, 11, 11, 1));
    }
}

static void test_the_dynamics_do_not_depend_on_the_digits(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    const psi_task seen = test_task(ctx, "combination-lock", NULL, "images-per-digit 2");
    const psi_task bare = test_task(ctx, "combination-lock", NULL, "digits none");
    psi_env *a, *b;
    assert_ok(ctx, psi_env_new(ctx, &seen, 1, 3, &a));
    assert_ok(ctx, psi_env_new(ctx, &bare, 1, 3, &b));
    uint8_t image[3 * 784];
    int64_t number;
    psi_env_begin_one(a, 0, 8, image);
    psi_env_begin_one(b, 0, 8, &number);
    for (int t = 0; t < 200; t++) {
        double reward[2];
        bool terminated, truncated;
        psi_env_step_one(a, 0, t % 3, image, &reward[0], &terminated, &truncated);
        psi_env_step_one(b, 0, t % 3, &number, &reward[1], &terminated, &truncated);
        assert_true(psi_env_ground_state(a, 0) == psi_env_ground_state(b, 0));
        assert_true((uint64_t)number == psi_env_ground_state(b, 0));
        assert_true(reward[0] == reward[1]);
    }
    psi_env_free(ctx, a);
    psi_env_free(ctx, b);
    psi_ctx_free(ctx);
}

static void test_an_episode_that_is_over_stands_still(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    const psi_task task = test_task(ctx, "column-world", NULL, "width 2 max-steps 2");
    psi_env *env;
    assert_ok(ctx, psi_env_new(ctx, &task, 3, 1, &env));
    int64_t cell[3];
    double reward[3];
    uint8_t terminated[3], truncated[3];
    const int32_t actions[] = {PSI_MOVE_RIGHT, PSI_MOVE_LEFT, PSI_MOVE_RIGHT};
    const int32_t stay[] = {PSI_MOVE_LEFT, PSI_MOVE_LEFT, PSI_MOVE_LEFT};

    // nothing moves before the first reset
    assert_ok(ctx, psi_env_step(ctx, env, actions, cell, reward, terminated, truncated));
    assert_true(reward[0] == 0.0 && truncated[0] && !terminated[0]);

    const uint8_t which[] = {1, 1, 0};
    cell[2] = -7;
    assert_ok(ctx, psi_env_reset(ctx, env, which, cell));
    assert_true(cell[2] == -7);
    assert_ok(ctx, psi_env_step(ctx, env, actions, cell, reward, terminated, truncated));
    assert_true(terminated[0] && !truncated[0] && reward[0] == 1.0);
    assert_true(!terminated[1] && !truncated[1] && reward[1] == 0.0);
    const int64_t kept = cell[0];
    assert_ok(ctx, psi_env_step(ctx, env, stay, cell, reward, terminated, truncated));
    assert_true(terminated[0] && !truncated[0] && reward[0] == 0.0 && cell[0] == kept);
    assert_true(!terminated[1] && truncated[1]);

    // an action that does not exist moves nobody
    assert_ok(ctx, psi_env_reset(ctx, env, NULL, cell));
    const int64_t before = cell[0];
    const int32_t wrong[] = {PSI_MOVE_RIGHT, 4, 0};
    assert_status(ctx, psi_env_step(ctx, env, wrong, cell, reward, terminated, truncated),
                  PSI_EUSAGE);
    test_assert_error_says(ctx, "environment 1: there is no action 4");
    assert_true(psi_env_ground_state(env, 0) == (uint64_t)before);
    psi_env_free(ctx, env);
    psi_ctx_free(ctx);
}

// The last step that is allowed may also be the one that ends the episode: then it terminated.
static void test_terminated_wins_over_truncated(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    const psi_task task = test_task(ctx, "column-world", NULL, "width 2 max-steps 1");
    psi_env *env;
    assert_ok(ctx, psi_env_new(ctx, &task, 1, 1, &env));
    int64_t cell;
    double reward;
    bool terminated, truncated;
    psi_env_begin_one(env, 0, 0, &cell);
    psi_env_step_one(env, 0, PSI_MOVE_RIGHT, &cell, &reward, &terminated, &truncated);
    assert_true(terminated && !truncated);
    psi_env_begin_one(env, 0, 0, &cell);
    psi_env_step_one(env, 0, PSI_MOVE_UP, &cell, &reward, &terminated, &truncated);
    assert_true(!terminated && truncated);
    psi_env_free(ctx, env);
    psi_ctx_free(ctx);
}

static void test_every_episode_rolls_other_dice(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    const psi_task task = test_task(ctx, "point-column-world", NULL, "");
    psi_env *env;
    assert_ok(ctx, psi_env_new(ctx, &task, 2, 1, &env));
    float first[2][2], second[2][2];
    assert_ok(ctx, psi_env_reset(ctx, env, NULL, first));
    assert_ok(ctx, psi_env_reset(ctx, env, NULL, second));
    assert_false(memcmp(first[0], first[1], sizeof first[0]) == 0);
    assert_false(memcmp(first[0], second[0], sizeof first[0]) == 0);
    float again[2];
    psi_env_begin_one(env, 1, 1, again); // the second episode of environment 0
    assert_memory_equal(again, second[0], sizeof again);
    psi_env_free(ctx, env);
    psi_ctx_free(ctx);
}

static psi_status make_and_step(psi_ctx *ctx, void *argument)
{
    const psi_task *task = argument;
    psi_env *env;
    psi_status status = psi_env_new(ctx, task, 100, 1, &env);
    if (status != PSI_OK) {
        assert_null(env);
        return status;
    }
    static uint8_t observations[100 * 3 * 784];
    static double rewards[100];
    static uint8_t terminated[100], truncated[100];
    static const int32_t actions[100];
    status = psi_env_reset(ctx, env, NULL, observations);
    if (status == PSI_OK) {
        status = psi_env_step(ctx, env, actions, observations, rewards, terminated, truncated);
    }
    psi_env_free(ctx, env);
    return status;
}

static void test_no_allocation_may_fail_badly(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_task lock = test_task(ctx, "combination-lock", NULL, "images-per-digit 2");
    psi_task column = test_task(ctx, "column-world", NULL, "");
    assert_true(test_fault_sweep(make_and_step, &lock) >= 6);
    assert_true(test_fault_sweep(make_and_step, &column) >= 2);
    psi_ctx_free(ctx);
}

static void test_refusals(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_task task = test_task(ctx, "column-world", NULL, "");
    psi_env *env;
    assert_status(ctx, psi_env_new(ctx, &task, 0, 1, &env), PSI_EUSAGE);
    assert_null(env);
    task.width = 1;
    assert_status(ctx, psi_env_new(ctx, &task, 1, 1, &env), PSI_EUSAGE);
    assert_null(env);
    psi_env_free(ctx, NULL);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batch_size_and_threads_change_nothing),
        cmocka_unit_test(test_the_dynamics_do_not_depend_on_the_digits),
        cmocka_unit_test(test_an_episode_that_is_over_stands_still),
        cmocka_unit_test(test_terminated_wins_over_truncated),
        cmocka_unit_test(test_every_episode_rolls_other_dice),
        cmocka_unit_test(test_no_allocation_may_fail_badly),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
