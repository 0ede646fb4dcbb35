// The lock: what each action does in each preset, and that every image is drawn anew.
#include "tasks.h"

#include "env/rules.h"

static void turn(const psi_task *task, int action, int spun, const char *from, const char *to)
{
    uint8_t digit[PSI_MAX_DIALS] = {0};
    for (int i = 0; i < task->dials; i++) digit[i] = (uint8_t)(from[i] - '0');
    env_lock_turn(task, action, (uint8_t)spun, digit);
    for (int i = 0; i < task->dials; i++) assert_int_equal(digit[i], to[i] - '0');
}

static void test_the_presets_turn_as_the_paper_says(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    const psi_task train = test_task(ctx, "combination-lock", "train", "");
    turn(&train, 0, 0, "123", "223");
    turn(&train, 0, 0, "923", "023");
    turn(&train, 1, 0, "123", "133");
    turn(&train, 2, 7, "123", "127");

    const psi_task swap = test_task(ctx, "combination-lock", "swap-digits", "");
    turn(&swap, 0, 0, "123", "213");
    turn(&swap, 1, 0, "193", "103");
    turn(&swap, 2, 0, "123", "120");

    const psi_task reversed = test_task(ctx, "combination-lock", "reversed-dial", "");
    turn(&reversed, 0, 0, "123", "223");
    turn(&reversed, 1, 0, "103", "193");
    turn(&reversed, 1, 0, "193", "183");
    turn(&reversed, 2, 4, "123", "124");

    const psi_task left = test_task(ctx, "combination-lock", "left-dial-broken", "");
    turn(&left, 0, 5, "123", "523");
    turn(&left, 1, 0, "123", "133");
    turn(&left, 2, 0, "129", "120");
    psi_ctx_free(ctx);
}

static void test_goals(void **state)
{
    (void)state;
    static const struct {
        const char *preset;
        uint8_t open[3], shut[3];
    } CASES[] = {{"train", {9, 9, 4}, {9, 8, 9}},
                 {"swap-digits", {5, 6, 0}, {6, 5, 0}},
                 {"reversed-dial", {7, 4, 9}, {4, 7, 9}},
                 {"left-dial-broken", {3, 9, 9}, {9, 9, 3}}};
    psi_ctx *ctx = test_ctx(1);
    for (size_t i = 0; i < 4; i++) {
        const psi_task task = test_task(ctx, "combination-lock", CASES[i].preset, "");
        uint8_t digit[PSI_MAX_DIALS] = {0};
        memcpy(digit, CASES[i].open, 3);
        assert_true(env_lock_matches(&task, digit));
        memcpy(digit, CASES[i].shut, 3);
        assert_false(env_lock_matches(&task, digit));
    }
    psi_ctx_free(ctx);
}

static bool shows(const env_digits *digits, unsigned digit, const uint8_t *image)
{
    for (uint32_t i = digits->first[digit]; i < digits->first[digit + 1]; i++) {
        if (memcmp(digits->images + (size_t)i * ENV_DIGIT_BYTES, image, ENV_DIGIT_BYTES) == 0) {
            return true;
        }
    }
    return false;
}

static void test_images_show_the_digits_and_are_redrawn(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    const psi_task task = test_task(ctx, "combination-lock", NULL, "images-per-digit 40");
    psi_env *env;
    assert_ok(ctx, psi_env_new(ctx, &task, 1, 2, &env));
    assert_int_equal(psi_env_space(env)->row_bytes, 3 * 28 * 28);
    uint8_t before[3][ENV_DIGIT_BYTES], image[3][ENV_DIGIT_BYTES];
    int same = 0;
    psi_env_begin_one(env, 0, 0, image);
    for (int t = 0; t < 100; t++) {
        double reward;
        bool terminated, truncated;
        memcpy(before, image, sizeof image);
        psi_env_step_one(env, 0, 2, image, &reward, &terminated, &truncated);
        for (int i = 0; i < 3; i++)
            assert_true(shows(env->images, env->lanes[0].digit[i], image[i]));
        same += memcmp(before[0], image[0], ENV_DIGIT_BYTES) == 0; // dial 1 has not moved
    }
    assert_in_range(same, 0, 12); // 1 in 40 by chance: 2.5 of 100 expected
    psi_env_free(ctx, env);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_presets_turn_as_the_paper_says),
        cmocka_unit_test(test_goals),
        cmocka_unit_test(test_images_show_the_digits_and_are_redrawn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
