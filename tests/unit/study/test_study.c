// Studies from C: a small one from beginning to end, what is finished, and what is refused.
#include "support/support.h"

#include "base/context.h"
#include "base/json.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct heard {
    size_t results, details;
    char last[256]; // line of results
} heard;

static void listen(void *user, bool detail, const char *line)
{
    heard *all = user;
    assert_true(line[0] != '\0');
    if (detail) {
        all->details++;
    } else {
        all->results++;
        snprintf(all->last, sizeof all->last, "%s", line);
    }
}

static psi_study_options small(const char *folder, heard *all)
{
    psi_study_options options = psi_study_defaults();
    options.output = folder;
    options.episodes = 200;
    options.tell = listen;
    options.user = all;
    return options;
}

static void a_table_of_sound_options(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_study_options options = psi_study_defaults();
    assert_ok(ctx, psi_options_check(ctx, psi_study_option_table(), &options));
    assert_string_equal(options.net, "auto");
    assert_int_equal(options.digits_per_dial, 10);
    for (size_t i = 0; i < PSI_STUDIES; i++) assert_non_null(psi_studies()[i].what);
    psi_ctx_free(ctx);
}

static void column_world_from_beginning_to_end(void **state)
{
    (void)state;
    if (!psi_figures_possible()) skip();
    psi_ctx *ctx = test_ctx(2);
    char *folder = test_folder();
    heard all = {0};
    psi_study_options options = small(folder, &all);
    psi_study_result made;
    assert_ok(ctx, psi_study_run(ctx, "column-world", &options, &made));
    assert_int_equal(made.n, 1);
    assert_true(all.details >= 3 && all.results == 1);
    assert_int_equal(access(made.page, F_OK), 0);
    json_t *results, *claim;
    size_t i;
    assert_ok(ctx,
              base_json_load(ctx, test_path(made.folders[0], "results.json"), 1 << 20, &results));
    assert_int_equal(json_array_size(json_object_get(results, "claims")), 4);
    json_array_foreach(json_object_get(results, "claims"), i, claim)
    {
        assert_true(json_is_true(json_object_get(claim, "holds")));
    }
    json_t *figure;
    json_array_foreach(json_object_get(results, "figures"), i, figure)
    {
        char name[128];
        snprintf(name, sizeof name, "%s.svg", json_string_value(json_object_get(figure, "name")));
        assert_int_equal(access(test_path(made.folders[0], name), F_OK), 0);
    }
    assert_int_equal(i, 4);
    json_decref(results);
    psi_study_result_free(ctx, &made);

    // finished is finished
    assert_ok(ctx, psi_study_run(ctx, "column-world", &options, &made));
    assert_non_null(strstr(all.last, "finished before"));
    psi_study_result_free(ctx, &made);
    options.episodes = 0; // as many as there are
    assert_ok(ctx, psi_study_run(ctx, "column-world", &options, &made));
    psi_study_result_free(ctx, &made);
    // … but what was asked for otherwise is not taken for it
    options.episodes = 300;
    assert_status(ctx, psi_study_run(ctx, "column-world", &options, &made), PSI_EUSAGE);
    test_assert_error_says(ctx, "with another episodes");
    assert_null(made.page);
    options.episodes = 200;
    options.seed = 1;
    assert_status(ctx, psi_study_run(ctx, "column-world", &options, &made), PSI_EUSAGE);
    test_assert_error_says(ctx, "with another seed");
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

static void what_makes_no_sense_is_refused(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder();
    heard all = {0};
    psi_study_options options = small(folder, &all);
    psi_study_result made;
    options.digits_per_dial = 11;
    assert_status(ctx, psi_study_run(ctx, "column-world", &options, &made), PSI_EUSAGE);
    test_assert_error_says(ctx, "--digits-per-dial");
    options = small(folder, &all);
    options.net = "transformer";
    assert_status(ctx, psi_study_run(ctx, "column-world", &options, &made), PSI_EUSAGE);
    options = small(folder, &all);
    if (!psi_figures_possible()) skip();
    assert_status(ctx, psi_study_run(ctx, "figure-7", &options, &made), PSI_EUSAGE);
    test_assert_error_says(ctx, "there is no study 'figure-7'");
    psi_cancel(ctx);
    assert_status(ctx, psi_study_run(ctx, "column-world", &options, &made), PSI_ECANCELLED);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_of_sound_options),
        cmocka_unit_test(column_world_from_beginning_to_end),
        cmocka_unit_test(what_makes_no_sense_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
