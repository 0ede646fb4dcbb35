// Options: what they change, what they refuse and with which sentence, and the way through JSON.
#include "tasks.h"

#include <stdlib.h>

static void test_the_paper_s_defaults(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_task task = test_task(ctx, "combination-lock", NULL, "");
    assert_string_equal(task.preset, "train");
    assert_int_equal(task.dials, 3);
    assert_int_equal(task.digits_per_dial, 10);
    assert_true(!task.broken[0] && !task.broken[1] && task.broken[2]);
    assert_true(task.goal[0] == 9 && task.goal[1] == 9 && task.goal[2] == PSI_ANY);
    const psi_task_space space = psi_task_observe(&task);
    assert_true(space.shape.rank == 3 && space.shape.dim[0] == 3 && space.shape.dim[1] == 28);
    assert_true(space.n_actions == 3 && space.high == 255.0 && space.dtype == PSI_UINT8);
    task = test_task(ctx, "point-column-world", NULL, "");
    assert_true(task.terminate && task.start_column == 0 && task.width == 4 && task.height == 4);
    assert_true(psi_task_observe(&task).row_bytes == 8 && psi_task_observe(&task).high == 4.0);
    task = test_task(ctx, "column-world", NULL, "");
    assert_true(psi_task_observe(&task).shape.rank == 0 && psi_task_observe(&task).high == 15.0);
    psi_ctx_free(ctx);
}

static void test_the_default_goal(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_task task =
        test_task(ctx, "combination-lock", NULL, "dials 4 digits-per-dial 5 broken 1,3");
    static const int EXPECTED[] = {PSI_ANY, 4, PSI_ANY, 4};
    assert_memory_equal(task.goal, EXPECTED, sizeof EXPECTED);
    task = test_task(ctx, "combination-lock", "swap-digits", "digits-per-dial 12");
    assert_true(task.goal[0] == 11 && task.goal[1] == 11 && task.goal[2] == PSI_ANY);
    assert_true(task.swap[0] == 0 && task.swap[1] == 1);
    task = test_task(ctx, "combination-lock", "swap-digits", "max-steps 50 digits none");
    assert_true(task.goal[0] == 5 && task.goal[1] == 6);
    task = test_task(ctx, "combination-lock", NULL, "goal 1,*,2,3 dials 4"); // any order
    assert_true(task.goal[0] == 1 && task.goal[1] == PSI_ANY && task.goal[3] == 3);
    task = test_task(ctx, "combination-lock", NULL, "dials 2"); // the broken dial is gone
    assert_true(!task.broken[2] && task.goal[0] == 9 && task.goal[1] == 9);
    task = test_task(ctx, "combination-lock", NULL, "broken none reverse 2 swap 3,1");
    assert_true(task.reversed[1] && task.swap[0] == 2 && task.swap[1] == 0 && task.goal[2] == 9);
    psi_ctx_free(ctx);
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *name, *preset, *options;
        psi_status status;
        const char *says;
    } CASES[] = {
        {"column-word", NULL, "", PSI_EUSAGE, "the tasks are column-world, point-column-world"},
        {"column-world", "train", "", PSI_EUSAGE, "it has episodic, continuing"},
        {"column-world", NULL, "dials 3", PSI_EUSAGE, "column-world has no option --dials"},
        {"combination-lock", NULL, "spokes 3", PSI_EUSAGE, "no option --spokes"},
        {"combination-lock", NULL, "dials", PSI_EUSAGE, "--dials needs a value"},
        {"combination-lock", NULL, "dials 0", PSI_EUSAGE, "1 to 32"},
        {"combination-lock", NULL, "dials 33", PSI_EUSAGE, "1 to 32"},
        {"combination-lock", NULL, "dials 3x", PSI_EUSAGE, "--dials 3x is not understood"},
        {"combination-lock", NULL, "dials 99999999999999999999", PSI_EUSAGE, "1 to 32"},
        {"combination-lock", NULL, "dials -1", PSI_EUSAGE, "not understood"},
        {"combination-lock", NULL, "digits-per-dial 17", PSI_EUSAGE, "2 to 16"},
        {"combination-lock", NULL, "digits-per-dial 12 digits mnist", PSI_EUSAGE, "--digits drawn"},
        {"combination-lock", NULL, "broken 4", PSI_EUSAGE, "--broken names dial 4"},
        {"combination-lock", NULL, "reverse 1,4", PSI_EUSAGE, "--reverse names dial 4"},
        {"combination-lock", NULL, "broken 0", PSI_EUSAGE, "counted from 1"},
        {"combination-lock", NULL, "broken 1,", PSI_EUSAGE, "not understood"},
        {"combination-lock", NULL, "reverse 3", PSI_EUSAGE, "has no direction"},
        {"combination-lock", NULL, "swap 1", PSI_EUSAGE, "two dials"},
        {"combination-lock", NULL, "swap 1,4", PSI_EUSAGE, "there are dials 1 to 3"},
        {"combination-lock", NULL, "swap 2,2", PSI_EUSAGE, "with itself"},
        {"combination-lock", NULL, "swap 3,1", PSI_EUSAGE, "dial 3 cannot be broken"},
        {"combination-lock", NULL, "swap 1,2 reverse 1", PSI_EUSAGE, "dial 1 cannot be reversed"},
        {"combination-lock", "swap-digits", "dials 1", PSI_EUSAGE, "the swap of dials 1 and 2"},
        {"combination-lock", NULL, "goal 9,9", PSI_EUSAGE, "the goal has 2 digits"},
        {"combination-lock", NULL, "goal 9,10,*", PSI_EUSAGE, "dial 2 has no digit 10"},
        {"combination-lock", NULL, "goal *,*,*", PSI_EUSAGE, "nothing to open"},
        {"combination-lock", NULL, "goal 0,0,*", PSI_EUSAGE, "matches the goal already"},
        {"combination-lock", NULL, "start 9,9,1", PSI_EUSAGE, "matches the goal already"},
        {"combination-lock", NULL, "start 1,2", PSI_EUSAGE, "the start has 2 digits"},
        {"combination-lock", NULL, "start 1,*,2", PSI_EUSAGE, "not understood"},
        {"combination-lock", NULL, "broken 1,2,3", PSI_EUSAGE, "nothing to open"},
        {"combination-lock", NULL, "digits photo", PSI_EUSAGE, "drawn|drawn-test|mnist"},
        {"combination-lock", NULL, "images-per-digit 0", PSI_EUSAGE, "1 to 100000"},
        {"combination-lock", NULL, "dials 32", PSI_ELIMIT, "fewer dials"},
        {"combination-lock", NULL, "dials 12 broken 12", PSI_ELIMIT, "latent states"},
        {"bit-lock", NULL, "horizon 5", PSI_EUSAGE, "no option --horizon"},
        {"bit-lock", NULL, "states 1", PSI_EUSAGE, "2 to 508"},
        {"bit-lock", NULL, "states 30 bits 29", PSI_EUSAGE, "each of 30 states needs one"},
        {"bit-lock", NULL, "bits 513", PSI_EUSAGE, "2 to 512"},
        {"bit-lock", NULL, "random-share 1.5", PSI_EUSAGE, "0 to 1"},
        {"bit-lock", NULL, "random-share nan", PSI_EUSAGE, "0 to 1"},
        {"rich-lock", NULL, "instance -1", PSI_EUSAGE, "0 to 4294967295"},
        {"rich-lock", "occupancy", "random-share .5", PSI_EUSAGE, "no --random-share"},
        {"column-world", NULL, "width 1", PSI_EUSAGE, "2 to 1024"},
        {"column-world", NULL, "height 1025", PSI_EUSAGE, "1 to 1024"},
        {"column-world", NULL, "max-steps 0", PSI_EUSAGE, "--max-steps 0 is not understood"},
        {"column-world", NULL, "start-column 5", PSI_EUSAGE, "start column 5"},
        {"column-world", NULL, "start-column 0", PSI_EUSAGE, "counted from 1"},
        {"column-world", NULL, "start-column 4", PSI_EUSAGE, "where it ends"},
        {"column-world", NULL, "start-column right", PSI_EUSAGE, "where it ends"},
        {"column-world", NULL, "reward being", PSI_EUSAGE, "never rewarded"},
        {"column-world", NULL, "reward leaving", PSI_EUSAGE, "entering|being"},
    };
    psi_ctx *ctx = test_ctx(1);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        psi_task task;
        assert_status(ctx,
                      test_task_from(ctx, CASES[i].name, CASES[i].preset, CASES[i].options, &task),
                      CASES[i].status);
        test_assert_error_says(ctx, CASES[i].says);
    }
    psi_task task = test_task(ctx, "column-world", NULL, "");
    assert_status(ctx, psi_task_set(ctx, &task, "terminate", "yes"), PSI_EUSAGE);
    test_assert_error_says(ctx, "takes no value");
    psi_ctx_free(ctx);
}

// A failed option or check leaves the task as it was.
static void test_a_refused_task_is_untouched(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_task task = test_task(ctx, "combination-lock", NULL, ""), before = task;
    assert_status(ctx, psi_task_set(ctx, &task, "goal", "1,2,z"), PSI_EUSAGE);
    assert_memory_equal(&task, &before, sizeof task);
    assert_ok(ctx, psi_task_set(ctx, &task, "dials", "32"));
    before = task;
    assert_status(ctx, psi_task_check(ctx, &task), PSI_ELIMIT);
    assert_memory_equal(&task, &before, sizeof task);
    psi_ctx_free(ctx);
}

static void same_task(const psi_task *a, const psi_task *b)
{
    assert_true(a->kind == b->kind && a->max_steps == b->max_steps);
    assert_true(a->width == b->width && a->height == b->height && a->terminate == b->terminate);
    assert_true(a->start_column == b->start_column && a->reward == b->reward);
    assert_true(a->dials == b->dials && a->digits_per_dial == b->digits_per_dial);
    assert_memory_equal(a->broken, b->broken, sizeof a->broken);
    assert_memory_equal(a->reversed, b->reversed, sizeof a->reversed);
    assert_memory_equal(a->swap, b->swap, sizeof a->swap);
    for (int i = 0; i < a->dials; i++) {
        assert_int_equal(a->goal[i], b->goal[i]);
        assert_int_equal(a->start[i], b->start[i]);
    }
    assert_true(a->digits == b->digits && a->images_per_digit == b->images_per_digit);
    assert_true(a->levels == b->levels && a->bits == b->bits && a->instance == b->instance);
    assert_true(a->random_share == b->random_share && a->occupancy == b->occupancy);
}

static void test_json_there_and_back(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char text[PSI_TASK_JSON_SIZE];
    size_t n;
    const psi_task_preset *presets = psi_task_presets(&n);
    for (size_t i = 0; i < n; i++) {
        const psi_task task =
            test_task(ctx, psi_task_name(presets[i].kind), presets[i].name, "max-steps 77");
        psi_task back;
        assert_ok(ctx, psi_task_json(ctx, &task, text));
        assert_ok(ctx, psi_task_from_json(ctx, text, &back));
        same_task(&task, &back);
        assert_string_equal(back.preset, presets[i].name);
    }
    base_random random = base_random_stream(3, 1, 0);
    for (int i = 0; i < 100; i++) {
        const psi_task task = test_random_lock(ctx, &random);
        psi_task back;
        assert_ok(ctx, psi_task_json(ctx, &task, text));
        assert_ok(ctx, psi_task_from_json(ctx, text, &back));
        same_task(&task, &back);
    }
    const psi_task wide =
        test_task(ctx, "combination-lock", NULL,
                  "dials 31 digits-per-dial 2 broken 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17");
    psi_task back;
    assert_ok(ctx, psi_task_json(ctx, &wide, text));
    assert_ok(ctx, psi_task_from_json(ctx, text, &back));
    same_task(&wide, &back);

    const psi_task ring = test_task(ctx, "bit-lock", NULL, "states 30 instance 7 random-share .3");
    assert_ok(ctx, psi_task_json(ctx, &ring, text));
    assert_ok(ctx, psi_task_from_json(ctx, text, &back));
    same_task(&ring, &back);

    assert_status(ctx, psi_task_from_json(ctx, "{", &back), PSI_EFORMAT);
    assert_status(ctx, psi_task_from_json(ctx, "[]", &back), PSI_EFORMAT);
    const char *odd =
        "{\"task\":\"column-world\",\"preset\":\"episodic\",\"options\":{\"width\":3}}";
    assert_status(ctx, psi_task_from_json(ctx, odd, &back), PSI_EUSAGE);
    psi_ctx_free(ctx);
}

static void test_tables(void **state)
{
    (void)state;
    size_t n;
    const psi_task_option *options = psi_task_options(&n);
    assert_true(n <= 32); // psi_task.given has a bit for each
    for (size_t i = 0; i < n; i++) assert_true(options[i].kinds && options[i].what[0]);
    for (int kind = 0; kind < PSI_TASK_KINDS; kind++) {
        assert_non_null(strchr(psi_task_name((psi_task_kind)kind), '-'));
        assert_true(strlen(psi_task_what((psi_task_kind)kind)) > 10);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_paper_s_defaults),
        cmocka_unit_test(test_the_default_goal),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_a_refused_task_is_untouched),
        cmocka_unit_test(test_json_there_and_back),
        cmocka_unit_test(test_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
