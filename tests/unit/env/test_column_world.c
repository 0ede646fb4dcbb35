// The column worlds: orientation, walls, rewards, and points that stay inside their cell.
#include "tasks.h"

static psi_env *world(psi_ctx *ctx, const char *name, const char *preset, const char *options)
{
    const psi_task task = test_task(ctx, name, preset, options);
    psi_env *env;
    assert_ok(ctx, psi_env_new(ctx, &task, 1, 1, &env));
    return env;
}

static void step(psi_env *env, int action, void *observation, double expected_reward)
{
    double reward;
    bool terminated, truncated;
    psi_env_step_one(env, 0, action, observation, &reward, &terminated, &truncated);
    assert_true(reward == expected_reward);
}

static void test_moves_and_walls(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_env *env = world(ctx, "column-world", NULL, "width 3 height 2");
    int64_t cell;
    psi_env_begin_one(env, 0, 0, &cell);
    step(env, PSI_MOVE_UP, &cell, 0.0);
    assert_int_equal(cell, 0); // the top left cell
    step(env, PSI_MOVE_UP, &cell, 0.0);
    assert_int_equal(cell, 0);
    step(env, PSI_MOVE_LEFT, &cell, 0.0);
    assert_int_equal(cell, 0);
    step(env, PSI_MOVE_DOWN, &cell, 0.0);
    assert_int_equal(cell, 3);
    step(env, PSI_MOVE_DOWN, &cell, 0.0);
    assert_int_equal(cell, 3);
    step(env, PSI_MOVE_RIGHT, &cell, 0.0);
    assert_int_equal(cell, 4);
    assert_int_equal(psi_env_latent_state(env, 0), 2);
    step(env, PSI_MOVE_RIGHT, &cell, 1.0);
    assert_int_equal(cell, 5);
    assert_int_equal(psi_env_latent_state(env, 0), 0);
    psi_env_free(ctx, env);
    psi_ctx_free(ctx);
}

static void test_rewards(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    int64_t cell;
    psi_env *being = world(ctx, "column-world", "continuing", "width 2");
    psi_env_begin_one(being, 0, 0, &cell);
    step(being, PSI_MOVE_RIGHT, &cell, 0.0);
    step(being, PSI_MOVE_UP, &cell, 1.0);
    step(being, PSI_MOVE_RIGHT, &cell, 1.0);
    step(being, PSI_MOVE_LEFT, &cell, 1.0);
    step(being, PSI_MOVE_LEFT, &cell, 0.0);
    assert_int_equal(psi_env_latent_state(being, 0), 1);
    psi_env_free(ctx, being);

    psi_env *entering = world(ctx, "column-world", NULL, "width 2 no-terminate");
    psi_env_begin_one(entering, 0, 0, &cell);
    step(entering, PSI_MOVE_RIGHT, &cell, 1.0);
    assert_int_equal(psi_env_latent_state(entering, 0), 2);
    step(entering, PSI_MOVE_RIGHT, &cell, 0.0);
    step(entering, PSI_MOVE_DOWN, &cell, 0.0);
    step(entering, PSI_MOVE_LEFT, &cell, 0.0);
    step(entering, PSI_MOVE_RIGHT, &cell, 1.0);
    psi_env_free(ctx, entering);
    psi_ctx_free(ctx);
}

static void test_points_lie_inside_their_cell(void **state)
{
    (void)state;
    static const char *const SIZES[] = {"", "width 1024 height 5", "width 3 height 1000"};
    psi_ctx *ctx = test_ctx(1);
    for (size_t s = 0; s < 3; s++) {
        psi_env *env = world(ctx, "point-column-world", "continuing", SIZES[s]);
        const psi_task *task = psi_env_task(env);
        double sum[2] = {0.0, 0.0};
        const int n = 4000;
        for (int e = 0; e < n; e++) {
            float point[2];
            psi_env_begin_one(env, 0, (uint64_t)e, point);
            const uint64_t cell = psi_env_ground_state(env, 0);
            const float left = (float)(cell % (uint64_t)task->width);
            const float below = (float)task->height - 1.0F - (float)(cell / (uint64_t)task->width);
            assert_true(point[0] > left && point[0] < left + 1.0F);
            assert_true(point[1] > below && point[1] < below + 1.0F);
            sum[0] += (double)(point[0] - left);
            sum[1] += (double)(point[1] - below);
        }
        // the mean of n uniform numbers: five standard deviations
        for (int k = 0; k < 2; k++) assert_true(sum[k] / n > 0.477 && sum[k] / n < 0.523);
        psi_env_free(ctx, env);
    }
    psi_ctx_free(ctx);
}

// "the top left cell, for example the point (0.83, 3.22)"
static void test_the_paper_s_top_left_point(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_env *env = world(ctx, "point-column-world", NULL, "");
    float point[2];
    psi_env_begin_one(env, 0, 0, point);
    for (int i = 0; i < 4; i++) step(env, PSI_MOVE_UP, point, 0.0);
    assert_true(point[0] > 0.0F && point[0] < 1.0F && point[1] > 3.0F && point[1] < 4.0F);
    psi_env_free(ctx, env);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moves_and_walls),
        cmocka_unit_test(test_rewards),
        cmocka_unit_test(test_points_lie_inside_their_cell),
        cmocka_unit_test(test_the_paper_s_top_left_point),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
