// The bit lock and the rich lock: what their authors say of them, seen from outside.
#include "tasks.h"

#include <math.h>
#include <psifold/agent.h>
#include <stdlib.h>

static psi_env *lock(psi_ctx *ctx, const char *name, const char *preset, const char *options)
{
    const psi_task task = test_task(ctx, name, preset, options);
    psi_env *env;
    assert_ok(ctx, psi_env_new(ctx, &task, 1, 1, &env));
    return env;
}

static int32_t right_action(const psi_env *env)
{
    int32_t right;
    psi_env_behaviour(env, 0, &right);
    return right;
}

// Right actions go round for a reward, any other goes back to the first state.
static void test_the_ring(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_env *env = lock(ctx, "bit-lock", NULL, "states 5 bits 40");
    uint8_t bits[40];
    double reward;
    bool terminated, truncated;
    psi_env_begin_one(env, 0, 0, bits);
    psi_env_step_one(env, 0, 1 - right_action(env), bits, &reward, &terminated, &truncated);
    assert_int_equal(psi_env_latent_state(env, 0), 1);
    for (int t = 0; t < 10; t++) {
        psi_env_step_one(env, 0, right_action(env), bits, &reward, &terminated, &truncated);
        assert_int_equal(psi_env_latent_state(env, 0), 1 + (t + 1) % 5);
        assert_true(reward == (t % 5 == 4) && !terminated && !truncated);
    }
    for (int t = 0; t < 3; t++) {
        psi_env_step_one(env, 0, right_action(env), bits, &reward, &terminated, &truncated);
    }
    psi_env_step_one(env, 0, 1 - right_action(env), bits, &reward, &terminated, &truncated);
    assert_true(psi_env_latent_state(env, 0) == 1 && reward == 0.0);
    psi_env_free(ctx, env);
    psi_ctx_free(ctx);
}

// One bit for each state is on exactly then; every other flips with odds of .1 to .9 from both of
// its values, whatever the state does.
static void test_bits(void **state)
{
    (void)state;
    enum { STATES = 5, BITS = 64, STEPS = 20000 };
    psi_ctx *ctx = test_ctx(1);
    psi_env *env = lock(ctx, "bit-lock", NULL, "states 5 bits 64 max-steps 20000 instance 3");
    uint8_t before[BITS], bits[BITS];
    double on[BITS][STATES + 1] = {0}, visits[STATES + 1] = {0}, from[BITS][2] = {0};
    double flips[BITS][2] = {0}, reward;
    bool terminated, truncated = false;
    psi_env_begin_one(env, 0, 0, bits);
    while (!truncated) {
        memcpy(before, bits, sizeof bits);
        psi_env_step_one(env, 0, right_action(env), bits, &reward, &terminated, &truncated);
        const int32_t latent = psi_env_latent_state(env, 0);
        visits[latent] += 1.0;
        for (int i = 0; i < BITS; i++) {
            assert_true(bits[i] <= 1);
            on[i][latent] += bits[i];
            from[i][before[i]] += 1.0;
            flips[i][before[i]] += before[i] != bits[i];
        }
    }
    int shown[STATES + 1] = {0};
    for (int i = 0; i < BITS; i++) {
        int full = 0, none = 0, which = 0;
        for (int s = 1; s <= STATES; s++) {
            full += on[i][s] == visits[s];
            none += on[i][s] == 0.0;
            if (on[i][s] == visits[s]) which = s;
        }
        if (full == 1 && none == STATES - 1) {
            shown[which]++;
            continue;
        }
        for (int value = 0; value < 2; value++) { // five standard deviations at .1
            const double rate = flips[i][value] / from[i][value];
            const double slack = 5.0 * sqrt(0.09 / from[i][value]);
            assert_true(rate > 0.1 - slack && rate < 0.9 + slack);
        }
    }
    for (int s = 1; s <= STATES; s++) assert_int_equal(shown[s], 1);
    psi_env_free(ctx, env);
    psi_ctx_free(ctx);
}

// Turning back (the matrix is its own inverse, times its size) shows state and step as ones.
static void unrotate(size_t n, const float *seen, double *out)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = 0.0;
        for (size_t j = 0; j < n; j++) {
            out[i] += __builtin_parityll(i & j) ? -(double)seen[j] : (double)seen[j];
        }
        out[i] /= (double)n;
    }
}

static void test_rich_observations(void **state)
{
    (void)state;
    enum { HORIZON = 12, WIDTH = 16, EPISODES = 400 };
    psi_ctx *ctx = test_ctx(1);
    psi_env *env = lock(ctx, "rich-lock", NULL, "horizon 12");
    assert_int_equal(psi_env_space(env)->shape.dim[0], WIDTH);
    float seen[WIDTH];
    double noise = 0.0, draws = 0.0;
    for (uint64_t episode = 0; episode < EPISODES; episode++) {
        bool terminated = false, truncated;
        double reward, turned[WIDTH];
        psi_env_begin_one(env, 0, episode, seen);
        for (size_t level = 0;; level++) {
            const size_t which = psi_env_ground_state(env, 0) % 3;
            unrotate(WIDTH, seen, turned);
            for (size_t i = 0; i < WIDTH; i++) {
                const double rest = turned[i] - (i == which) - (i == 3 + level);
                if (i < 3 + HORIZON) {
                    noise += rest * rest;
                    draws += 1.0;
                } else {
                    assert_true(fabs(rest) < 1e-5);
                }
            }
            if (terminated) break;
            const int32_t action = episode % 2 ? right_action(env) : (int32_t)(episode % 10);
            psi_env_step_one(env, 0, action, seen, &reward, &terminated, &truncated);
            assert_int_equal(terminated, level + 1 == HORIZON);
            if (episode % 2) assert_true(reward == (terminated ? 1.0 : 0.0));
        }
        assert_int_equal(psi_env_latent_state(env, 0), 0);
    }
    assert_true(fabs(noise / draws - 0.01) < 0.0002); // variance of .1; five standard errors
    psi_env_free(ctx, env);
    psi_ctx_free(ctx);
}

// How often the behaviour of a task reaches the end with a reward of 1.
typedef struct share_opened {
    double opened, episodes;
} share_opened;

static psi_status count_opened(void *user, const psi_episode *episode)
{
    share_opened *share = user;
    double most = 0.0;
    for (size_t t = 0; t < episode->length; t++) most = fmax(most, episode->rewards[t]);
    share->opened += most == 1.0;
    share->episodes += 1.0;
    return PSI_OK;
}

static double opens(psi_ctx *ctx, const char *name, const char *preset, const char *options)
{
    const psi_task task = test_task(ctx, name, preset, options);
    share_opened share = {0};
    assert_ok(ctx, psi_collect(ctx, &task, 4000, 5, count_opened, &share, NULL));
    return share.opened / share.episodes;
}

static void test_behaviour_reaches_the_end(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    // one action in the middle is right by chance, nine others are but for .9 of the random ones
    assert_true(fabs(opens(ctx, "rich-lock", NULL, "horizon 10") - 0.1 * pow(0.91, 9)) < 0.02);
    // a step that is drawn, and random actions from there on
    assert_true(fabs(opens(ctx, "rich-lock", "occupancy", "horizon 10") - 0.011) < 0.01);
    assert_true(opens(ctx, "bit-lock", NULL, "states 10 bits 10 max-steps 100") > 0.9);
    assert_true(opens(ctx, "bit-lock", NULL, "states 10 bits 10 max-steps 100 random-share 1") <
                0.2);
    psi_ctx_free(ctx);
}

static psi_status make_lock(psi_ctx *ctx, void *argument)
{
    psi_env *env;
    const psi_status status = psi_env_new(ctx, argument, 2, 1, &env);
    if (status != PSI_OK) assert_null(env);
    psi_env_free(ctx, env);
    return status;
}

static void test_no_allocation_may_fail_badly(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_task task = test_task(ctx, "bit-lock", NULL, "");
    assert_true(test_fault_sweep(make_lock, &task) >= 3);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_ring),
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_rich_observations),
        cmocka_unit_test(test_behaviour_reaches_the_end),
        cmocka_unit_test(test_no_allocation_may_fail_badly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
