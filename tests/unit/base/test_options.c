// Option tables: text in, fields, text and JSON out; what is given is known; what makes no sense is
// refused with a sentence.
#include "support/support.h"

#include "base/options.h"

#include <math.h>
#include <string.h>

typedef enum fruit { APPLE, PEAR, PLUM } fruit;
#define FRUIT_TABLE(X)                                                                             \
    X(APPLE, "apple")                                                                              \
    X(PEAR, "pear")                                                                                \
    X(PLUM, "plum")

typedef struct basket {
    double before; // not in the table
    fruit what;
    bool washed, sorted;
    size_t count;
    uint64_t seed;
    double weight, share, wait;
    const char *label, *colour;
} basket;

#define FIELD(name) OPTION_FIELD(basket, name)
static const psi_option ROWS[] = {
    {"what", 0, PSI_OPTION_CHOICE, FIELD(what), OPTION_WORDS(FRUIT_TABLE), "pear", NULL,
     PSI_OPTION_MAIN, "which"},
    {"washed", 0, PSI_OPTION_FLAG, FIELD(washed), NULL, "on", NULL, PSI_OPTION_MAIN, "or not"},
    {"order", 0, PSI_OPTION_CHOICE, FIELD(sorted), "any|sorted", "any", NULL, PSI_OPTION_MAIN, "?"},
    {"count", 'n', PSI_OPTION_SIZE, FIELD(count), "N", "12", "[1,100]", PSI_OPTION_MAIN,
     "how many"},
    {"seed", 0, PSI_OPTION_SEED, FIELD(seed), "N", "0", NULL, PSI_OPTION_KEPT, "of chance"},
    {"net-weight", 0, PSI_OPTION_REAL, FIELD(weight), "W", "0.1", "(0,", PSI_OPTION_MORE, "of all"},
    {"share", 0, PSI_OPTION_REAL, FIELD(share), "S", NULL, "[0,1)", PSI_OPTION_MORE, "of them"},
    {"wait", 0, PSI_OPTION_SECONDS, FIELD(wait), "SECONDS", "90", "[0,",
     PSI_OPTION_MORE | PSI_OPTION_MAY_CHANGE, "until"},
    {"label", 0, PSI_OPTION_TEXT, FIELD(label), "TEXT", NULL, NULL, PSI_OPTION_MAIN, "on it"},
    {"colour", 0, PSI_OPTION_CHOICE, FIELD(colour), "red|green", "green", NULL, PSI_OPTION_MAIN,
     "of it"},
};
static const psi_option_table TABLE = {ROWS, sizeof ROWS / sizeof ROWS[0]};

static basket standard(void)
{
    basket made = {.before = 7.0, .share = 0.25};
    psi_options_reset(&TABLE, &made);
    return made;
}

static void test_defaults_come_from_the_table(void **state)
{
    (void)state;
    const basket made = standard();
    assert_true(made.before == 7.0);
    assert_int_equal(made.what, PEAR);
    assert_true(made.washed && !made.sorted);
    assert_int_equal(made.count, 12);
    assert_true(made.weight == 0.1 && made.wait == 90.0 && made.share == 0.25);
    assert_null(made.label);
    assert_string_equal(made.colour, "green");
}

static void test_text_becomes_a_value_and_text_again(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    basket made = standard();
    static const char *const pairs[][3] = {
        {"what", "plum", "plum"},      {"washed", "off", "off"},
        {"order", "sorted", "sorted"}, {"count", "100", "100"},
        {"net-weight", "2.5", "2.5"},  {"net_weight", "1e-3", "0.001"},
        {"wait", "45", "45"},          {"wait", "60s", "60"},
        {"wait", "1.5m", "90"},        {"wait", "2h", "7200"},
        {"label", "a b", "a b"},       {"share", "0", "0"},
        {"colour", "red", "red"},      {"seed", "18446744073709551615", "18446744073709551615"}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        char text[PSI_OPTION_TEXT_SIZE];
        assert_ok(ctx, psi_option_set(ctx, &TABLE, &made, pairs[i][0], pairs[i][1], NULL));
        const psi_option *option = psi_option_find(&TABLE, pairs[i][0]);
        assert_string_equal(psi_option_text(option, &made, text), pairs[i][2]);
    }
    assert_int_equal(made.what, PLUM);
    assert_true(!made.washed && made.sorted && made.seed == UINT64_MAX && made.wait == 7200.0);
    assert_ok(ctx, psi_option_set(ctx, &TABLE, &made, "washed", NULL, NULL));
    assert_true(made.washed);
    psi_ctx_free(ctx);
}

static void test_what_makes_no_sense_is_refused(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    static const char *const pairs[][3] = {
        {"what", "fig", "--what takes apple|pear|plum, not 'fig'"},
        {"what", "", "--what takes"},
        {"what", "app", "--what takes"},
        {"washed", "perhaps", "on or off"},
        {"count", "0", "--count must be at least 1 and at most 100, not 0"},
        {"count", "101", "at most 100"},
        {"count", "-1", "a whole number"},
        {"count", "99999999999999999999999", "a whole number"},
        {"count", "1x", "a whole number"},
        {"net-weight", "0", "--net-weight must be above 0, not 0"},
        {"net-weight", "nan", "a number"},
        {"net-weight", "1e999", "a number"},
        {"net-weight", "5m", "a number"},
        {"share", "1", "--share must be at least 0 and below 1, not 1"},
        {"wait", "5 m", "5m or 2h"},
        {"wait", "5d", "5m or 2h"},
        {"wait", "5mm", "5m or 2h"},
        {"wait", "-1", "at least 0"},
        {"label", NULL, "--label needs a value"},
        {"colour", "blue", "--colour takes red|green, not 'blue'"},
        {"labels", "x", "there is no option 'labels'"},
        {"labe", "x", "there is no option 'labe'"}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        basket made = standard(), before = made;
        uint64_t given = 0;
        assert_status(ctx, psi_option_set(ctx, &TABLE, &made, pairs[i][0], pairs[i][1], &given),
                      PSI_EUSAGE);
        test_assert_error_says(ctx, pairs[i][2]);
        assert_true(given == 0);
        assert_memory_equal(&made, &before, sizeof made);
    }
    psi_ctx_free(ctx);
}

static void test_a_struct_made_by_hand_is_checked(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    basket made = standard();
    assert_ok(ctx, psi_options_check(ctx, &TABLE, &made));
    made.count = 0;
    assert_status(ctx, psi_options_check(ctx, &TABLE, &made), PSI_EUSAGE);
    test_assert_error_says(ctx, "--count must be at least 1");
    made = standard();
    made.weight = (double)NAN;
    assert_status(ctx, psi_options_check(ctx, &TABLE, &made), PSI_EUSAGE);
    made = standard();
    made.what = (fruit)3;
    assert_status(ctx, psi_options_check(ctx, &TABLE, &made), PSI_EUSAGE);
    test_assert_error_says(ctx, "--what takes");
    made = standard();
    made.colour = "reddish";
    assert_status(ctx, psi_options_check(ctx, &TABLE, &made), PSI_EUSAGE);
    psi_ctx_free(ctx);
}

// What was given goes on top of other defaults, also where it equals the usual ones.
static void test_what_was_given_is_known(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    basket asked = standard(), other = standard();
    uint64_t given = 0;
    other.count = 50;
    other.weight = 9.0;
    assert_ok(ctx, psi_option_set(ctx, &TABLE, &asked, "count", "12", &given));
    psi_options_copy(&TABLE, given, &asked, &other);
    assert_int_equal(other.count, 12);
    assert_true(other.weight == 9.0);
    psi_ctx_free(ctx);
}

static void test_json_has_every_option_in_order(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    basket made = standard();
    json_t *all, *lasting;
    made.seed = UINT64_MAX;
    assert_ok(ctx, base_options_json(ctx, &TABLE, &made, false, &all));
    assert_ok(ctx, base_options_json(ctx, &TABLE, &made, true, &lasting));
    char *text = json_dumps(all, JSON_COMPACT);
    assert_string_equal(
        text,
        "{\"what\":\"pear\",\"washed\":true,\"order\":\"any\",\"count\":12,"
        "\"seed\":\"18446744073709551615\",\"net_weight\":"
        "0.10000000000000001,\"share\":0.25,\"wait\":90.0,\"label\":null,\"colour\":\"green\"}");
    free(text);
    assert_int_equal(json_object_size(lasting), json_object_size(all) - 1);
    assert_null(json_object_get(lasting, "wait"));
    json_decref(all);
    json_decref(lasting);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults_come_from_the_table),
        cmocka_unit_test(test_text_becomes_a_value_and_text_again),
        cmocka_unit_test(test_what_makes_no_sense_is_refused),
        cmocka_unit_test(test_a_struct_made_by_hand_is_checked),
        cmocka_unit_test(test_what_was_given_is_known),
        cmocka_unit_test(test_json_has_every_option_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
