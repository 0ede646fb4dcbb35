// The table of agents' options: whole, sound, and the base of what each kind does by itself.
#include "support/support.h"

#include <psifold/agent.h>

static void every_default_is_one_that_could_be_given(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    const psi_option_table *table = psi_agent_option_table();
    psi_agent_options options = psi_agent_defaults(PSI_AGENT_DQN);
    for (size_t i = 0; i < table->n; i++) {
        const psi_option *option = &table->rows[i];
        char text[PSI_OPTION_TEXT_SIZE];
        assert_ok(ctx, psi_option_set(ctx, table, &options, option->name, option->standard, NULL));
        assert_string_equal(psi_option_text(option, &options, text), option->standard);
    }
    assert_ok(ctx, psi_options_check(ctx, table, &options));
    psi_ctx_free(ctx);
}

// Every byte but the three borrowed pointers' belongs to exactly one row, or is padding.
static void no_field_is_forgotten(void **state)
{
    (void)state;
    const psi_option_table *table = psi_agent_option_table();
    unsigned char owners[sizeof(psi_agent_options)] = {0};
    size_t covered = 3 * sizeof(void *);
    for (size_t i = 0; i < table->n; i++) {
        const psi_option *option = &table->rows[i];
        for (size_t b = 0; b < option->size; b++) assert_int_equal(owners[option->offset + b]++, 0);
    }
    for (size_t b = 0; b < sizeof owners; b++) covered += owners[b];
    assert_true(covered + 2 * sizeof(double) > sizeof(psi_agent_options));
}

static void kinds_differ_where_they_should(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    const psi_option_table *table = psi_agent_option_table();
    psi_agent_options given = psi_agent_defaults(PSI_AGENT_DQN), planner;
    uint64_t which = 0;
    assert_int_equal(given.exploration_episodes, 10);
    planner = psi_agent_defaults(PSI_AGENT_PLANNER);
    assert_int_equal(planner.exploration_episodes, 0);
    // what equals the usual default is given all the same
    assert_ok(ctx, psi_option_set(ctx, table, &given, "explore", "10", &which));
    psi_options_copy(table, which, &given, &planner);
    assert_int_equal(planner.exploration_episodes, 10);
    assert_int_equal(planner.kind, PSI_AGENT_PLANNER);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_default_is_one_that_could_be_given),
        cmocka_unit_test(no_field_is_forgotten),
        cmocka_unit_test(kinds_differ_where_they_should),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
