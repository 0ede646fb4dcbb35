// The table of a clustering's options: whole, sound, and what the paper's constants lie on.
#include "support/support.h"

#include <psifold/cluster.h>

#include <string.h>

static void test_every_default_is_one_that_could_be_given(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    const psi_option_table *table = psi_cluster_option_table();
    psi_cluster_options options = psi_cluster_defaults();
    assert_true(table->n <= 64);
    for (size_t i = 0; i < table->n; i++) {
        const psi_option *option = &table->rows[i];
        char text[PSI_OPTION_TEXT_SIZE];
        assert_non_null(option->standard);
        assert_ok(ctx, psi_option_set(ctx, table, &options, option->name, option->standard, NULL));
        assert_string_equal(psi_option_text(option, &options, text), option->standard);
        assert_ptr_equal(psi_option_find(table, option->name), option);
    }
    assert_ok(ctx, psi_options_check(ctx, table, &options));
    psi_ctx_free(ctx);
}

// Every byte of the struct up to the seed belongs to exactly one row, but for padding.
static void test_no_field_is_forgotten(void **state)
{
    (void)state;
    const psi_option_table *table = psi_cluster_option_table();
    unsigned char owners[sizeof(psi_cluster_options)] = {0};
    size_t covered = 0;
    for (size_t i = 0; i < table->n; i++) {
        const psi_option *option = &table->rows[i];
        for (size_t b = 0; b < option->size; b++) assert_int_equal(owners[option->offset + b]++, 0);
    }
    for (size_t b = 0; b < offsetof(psi_cluster_options, seed); b++) covered += owners[b];
    assert_true(covered + 2 * sizeof(double) > offsetof(psi_cluster_options, seed));
    for (size_t b = offsetof(psi_cluster_options, seed); b < sizeof owners; b++) {
        assert_int_equal(owners[b], 0);
    }
}

static void test_words_are_the_names_of_the_values(void **state)
{
    (void)state;
    const psi_option *option = psi_option_find(psi_cluster_option_table(), "approximator");
    for (int kind = PSI_APPROXIMATOR_AUTO; kind <= PSI_APPROXIMATOR_RESNET18; kind++) {
        char text[PSI_OPTION_TEXT_SIZE];
        const psi_cluster_options options = {.size = sizeof options,
                                             .approximator = (psi_approximator)kind};
        assert_string_equal(psi_option_text(option, &options, text),
                            psi_approximator_name((psi_approximator)kind));
    }
}

// What equals the usual default is kept all the same.
static void test_what_is_given_beats_the_paper(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    const psi_option_table *table = psi_cluster_option_table();
    psi_cluster_options asked = psi_cluster_defaults(), paper;
    uint64_t given = 0;
    assert_ok(ctx, psi_cluster_paper(ctx, "column-world", &paper));
    assert_true(paper.gamma == 0.7 && paper.paper == PSI_PAPER_COLUMN_WORLD);
    assert_ok(ctx, psi_option_set(ctx, table, &asked, "gamma", "0.5", &given));
    psi_options_copy(table, given, &asked, &paper);
    assert_true(paper.gamma == 0.5 && paper.epsilon_sf == 1.0);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_default_is_one_that_could_be_given),
        cmocka_unit_test(test_no_field_is_forgotten),
        cmocka_unit_test(test_words_are_the_names_of_the_values),
        cmocka_unit_test(test_what_is_given_beats_the_paper),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
