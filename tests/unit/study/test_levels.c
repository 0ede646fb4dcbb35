// Tables of refinements and errors, of a run whose labels are made up.
#include "support/runs.h"
#include "support/studies.h"
#include "support/support.h"

#include <string.h>
#include <unistd.h>

// Three latent states, visited in turns by two episodes of five observations each.
static const test_run_spec SPEC = {.n_latent = 3,
                                   .n_actions = 1,
                                   .episodes = 2,
                                   .length = 4,
                                   .dtype = PSI_INT64,
                                   .shape = {1, {1}},
                                   .refinements = 2};

static void clusters_are_counted_level_by_level(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder(), run_folder[1024];
    const psi_study_options options = psi_study_defaults();
    study of = test_study_begun(ctx, folder, &options);
    psi_levels levels;
    psi_run *run;
    test_made_up_run(ctx, folder, &SPEC);
    snprintf(run_folder, sizeof run_folder, "%s/run", folder);
    assert_ok(ctx, psi_run_load(ctx, run_folder, &run));
    assert_ok(ctx, study_levels(&of, run, &levels));
    // by hand: episodes 0 1 2 0 1 and 1 2 0 1 2; the first refinement has {0, 1} together, and
    // looked at one observation more, which it ignored
    run->steps[0].looked_at = 10;
    run->steps[0].ignored = 0.1;
    levels.labels[1][0] = -1;
    assert_ok(ctx, study_refinements(&of, run, &levels, "table"));
    test_assert_text(ctx, folder, "table.csv",
                     "stage,cluster,observations,share\n"
                     "0,ignored,0,0\n0,0,10,1\n"
                     "1,ignored,1,0.1\n1,0,6,0.6\n1,1,3,0.3\n"
                     "2,ignored,0,0\n2,0,3,0.3\n2,1,4,0.4\n2,2,3,0.3\n"
                     "final,ignored,0,0\nfinal,0,3,0.3\nfinal,1,4,0.4\nfinal,2,3,0.3\n");
    const json_t *list = json_object_get(of.results, "table");
    assert_int_equal(json_array_size(list), 4);
    assert_true(test_number(json_array_get(list, 1), "clusters") == 2);
    assert_true(test_number(json_array_get(list, 1), "ignored_fraction") == 0.1);
    psi_levels_free(ctx, &levels);

    // labels of a refinement that are gone
    assert_int_equal(unlink(test_path(run_folder, "clusters-02.npy")), 0);
    assert_status(ctx, study_levels(&of, run, &levels), PSI_EDATA);
    test_assert_error_says(ctx, "a record of 2 refinements and labels of 1");
    json_decref(of.results);
    psi_run_free(ctx, run);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

static void errors_are_a_column_for_each_stage(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder();
    const psi_study_options options = psi_study_defaults();
    study of = test_study_begun(ctx, folder, &options);
    const double errors[2][3] = {{0.5, 0.25, 1.0 / 3}, {0, 1e-7, 2}};
    const char *const names[] = {"1", "final"};
    assert_ok(ctx, study_save_errors(&of, "errors", 2, 3, &errors[0][0], names));
    test_assert_text(ctx, folder, "errors.csv",
                     "trajectory,1,final\n0,0.5,0\n1,0.25,1e-07\n2,0.333333333,2\n");
    const json_t *file = json_array_get(json_object_get(of.results, "files"), 0);
    assert_string_equal(json_string_value(json_object_get(file, "name")), "errors.csv");
    json_decref(of.results);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clusters_are_counted_level_by_level),
        cmocka_unit_test(errors_are_a_column_for_each_stage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
