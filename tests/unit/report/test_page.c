// The page of a run: of every kind of observation, of any size, finished or not, and of folders
// that mean harm.
#include "support/collect.h"
#include "support/runs.h"
#include "support/support.h"

#include "base/context.h"
#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// Without gnuplot, which is most of the time: the tests of the figures look at them.
static void hide_programs(void)
{
    assert_int_equal(setenv("PATH", "/nonexistent", 1), 0);
}

static void read_page(psi_ctx *ctx, const char *folder, char **page, size_t *size)
{
    assert_ok(ctx, base_read_file(ctx, test_path(folder, "page.html"), 1 << 24, page, size));
}

static size_t count_of(const char *text, const char *words)
{
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, words)); at += strlen(words)) n++;
    return n;
}

static void assert_says(const char *page, const char *words)
{
    if (!strstr(page, words)) fail_msg("the page does not say \"%s\"", words);
}

static void assert_silent(const char *page, const char *words)
{
    if (strstr(page, words)) fail_msg("the page says \"%s\"", words);
}

static psi_status report(psi_ctx *ctx, const char *folder, const char *data,
                         psi_report_result *result)
{
    psi_report_options how = psi_report_defaults();
    how.replace = true;
    char run[1024], page[1024];
    snprintf(run, sizeof run, "%s/run", folder);
    snprintf(page, sizeof page, "%s/page.html", folder);
    return test_report(ctx, run, data, page, how, result);
}

static void a_real_run_is_told_as_it_is(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(2);
    char *folder = test_folder();
    size_t size;
    psi_report_result result;
    test_cluster_run(ctx, folder, "column-world", 200, NULL, NULL);
    assert_ok(ctx, report(ctx, folder, NULL, &result));
    assert_true(result.finished && result.trusted && result.pictures);
    assert_int_equal(result.latent_states, 4);
    assert_int_equal(result.refinements, 3);
    assert_true(result.error < 1e-9 && result.zero_error > 0.01);
    char *page;
    read_page(ctx, folder, &page, &size);
    assert_int_equal(size, result.bytes);
    assert_says(page, "4 latent states");
    assert_says(page, "<b>Certain:</b>");
    assert_says(page, "class=\"tag\">terminal");
    assert_says(page, "Time and passes per phase");
    assert_says(page, "<tr><td>refinements</td><td>");
    assert_says(page, " s</td><td>0</td></tr><tr><td>everything else</td><td>");
    assert_int_equal(count_of(page, "<tr id=\"s"), 4);
    // sizes on the page are those of the labels
    psi_run *run;
    assert_ok(ctx, psi_run_load(ctx, test_path(folder, "run"), &run));
    for (int32_t k = 0; k < 4; k++) {
        size_t n = 0;
        char words[80];
        for (size_t i = 0; i < run->n_observations; i++) n += run->labels[i] == k;
        snprintf(words, sizeof words, "data-k=\"%d\" data-size=\"%zu\"", k, n);
        assert_says(page, words);
    }
    psi_run_free(ctx, run);
    base_free(ctx, page);
    psi_report_options how = psi_report_defaults();
    assert_status(ctx,
                  test_report(ctx, test_path(folder, "run"), NULL, test_path(folder, "page.html"),
                              how, &result),
                  PSI_EUSAGE);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

static void every_kind_of_observation_is_shown(void **state)
{
    (void)state;
    const struct {
        psi_dtype dtype;
        psi_shape shape;
        const char *look;
    } kinds[] = {
        {PSI_UINT8, {2, {9, 11}}, "data:image/png;base64,"},
        {PSI_UINT8, {3, {2, 28, 28}}, "data:image/png;base64,"},
        {PSI_UINT8, {3, {100, 90, 3}}, "data:image/png;base64,"},
        {PSI_FLOAT32, {1, {2}}, "<svg class=\"points\""},
        {PSI_FLOAT64, {1, {40}}, "<svg class=\"lines\""},
        {PSI_FLOAT32, {3, {3, 12, 12}}, "<svg class=\"lines\""},
        {PSI_INT64, {0, {0}}, "<span class=\"numbers\">2</span>"},
        {PSI_FLOAT32, {1, {3}}, "<span class=\"numbers\">("},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        psi_ctx *ctx = test_ctx(1);
        char *folder = test_folder();
        size_t size;
        psi_report_result result;
        const test_run_spec spec = {.n_latent = 6,
                                    .n_actions = 2,
                                    .episodes = 12,
                                    .length = 10,
                                    .dtype = kinds[i].dtype,
                                    .shape = kinds[i].shape,
                                    .refinements = 2};
        test_made_up_run(ctx, folder, &spec);
        assert_ok(ctx, report(ctx, folder, NULL, &result));
        assert_true(result.pictures);
        char *page;
        read_page(ctx, folder, &page, &size);
        assert_says(page, kinds[i].look);
        assert_int_equal(count_of(page, "class=\"look\""), 6);
        base_free(ctx, page);
        test_folder_free(folder);
        psi_ctx_free(ctx);
    }
}

static void two_thousand_latent_states_stay_below_5_megabytes(void **state)
{
    (void)state;
    const struct {
        psi_dtype dtype;
        psi_shape shape;
        size_t actions;
    } kinds[] = {{PSI_UINT8, {3, {3, 28, 28}}, 2}, // noise: nothing compresses worse
                 {PSI_FLOAT32, {1, {64}}, 3},
                 {PSI_FLOAT32, {1, {2}}, 18}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        psi_ctx *ctx = test_ctx(2);
        char *folder = test_folder();
        size_t size;
        psi_report_result result;
        const test_run_spec spec = {.n_latent = kinds[i].actions > 2 ? 1200 : 2000,
                                    .n_actions = kinds[i].actions,
                                    .episodes = 2000,
                                    .length = 6,
                                    .dtype = kinds[i].dtype,
                                    .shape = kinds[i].shape,
                                    .refinements = 12};
        test_made_up_run(ctx, folder, &spec);
        assert_ok(ctx, report(ctx, folder, NULL, &result));
        assert_int_equal(result.latent_states, spec.n_latent);
        assert_in_range(result.bytes, 100000, 5000000);
        char *page;
        read_page(ctx, folder, &page, &size);
        assert_int_equal(count_of(page, "<tr id=\"s"), spec.n_latent);
        base_free(ctx, page);
        test_folder_free(folder);
        psi_ctx_free(ctx);
    }
}

static void a_run_whose_data_are_gone_says_so(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder();
    size_t size;
    psi_report_result result;
    test_cluster_run(ctx, folder, "column-world", 100, NULL, NULL);
    assert_int_equal(rename(test_path(folder, "data.npz"), test_path(folder, "moved.npz")), 0);
    assert_ok(ctx, report(ctx, folder, NULL, &result));
    assert_false(result.pictures);
    char *page;
    read_page(ctx, folder, &page, &size);
    assert_says(page, "no longer where they were");
    assert_silent(page, "class=\"look\"");
    assert_says(page, "leads to"); // the model is still there
    base_free(ctx, page);
    assert_ok(ctx, report(ctx, folder, test_path(folder, "moved.npz"), &result));
    assert_true(result.pictures);
    // other data than the run's: refused if named, left out if not
    test_run_spec other = {.n_latent = 3,
                           .n_actions = 4,
                           .episodes = 5,
                           .length = 5,
                           .dtype = PSI_FLOAT32,
                           .shape = {1, {2}},
                           .refinements = 1};
    char elsewhere[1024];
    snprintf(elsewhere, sizeof elsewhere, "%s/other", folder);
    assert_int_equal(mkdir(elsewhere, 0777), 0);
    test_made_up_run(ctx, elsewhere, &other);
    assert_status(ctx, report(ctx, folder, test_path(elsewhere, "data.npz"), &result), PSI_EDATA);
    test_assert_error_says(ctx, "is not the data set");
    assert_int_equal(rename(test_path(elsewhere, "data.npz"), test_path(folder, "data.npz")), 0);
    assert_ok(ctx, report(ctx, folder, NULL, &result));
    assert_false(result.pictures);
    read_page(ctx, folder, &page, &size);
    assert_says(page, "have changed since");
    base_free(ctx, page);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

static psi_status stop_at_two(void *user, const psi_cluster_step *step, size_t refinement, size_t n,
                              const int32_t *labels)
{
    (void)step, (void)n, (void)labels;
    return refinement == 2 ? FAIL((psi_ctx *)user, PSI_ECANCELLED, "stopped") : PSI_OK;
}

// With the discount that it was started with, not with the usual one.
static void an_interrupted_run_keeps_its_gamma(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder(), run[1024];
    snprintf(run, sizeof run, "%s/run", folder);
    psi_trajectories *data = test_collect(ctx, "point-column-world", 12, 5, NULL);
    psi_cluster_options how = psi_cluster_defaults();
    psi_run *read;
    how.method = PSI_METHOD_SUCCESSOR_FEATURES;
    how.trunk_steps = how.head_steps = how.representation_steps = 12;
    how.hidden = 16;
    how.gamma = 0.8125;
    how.watch = stop_at_two;
    how.user = ctx;
    assert_status(ctx, test_cluster_into(ctx, run, PSI_FOLDER_NEW, data, &how, &read),
                  PSI_ECANCELLED);
    assert_ok(ctx, psi_run_load_so_far(ctx, run, &read));
    assert_false(read->finished);
    assert_true(read->gamma == 0.8125);
    psi_run_free(ctx, read);
    psi_trajectories_free(ctx, data);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

static void an_interrupted_run_is_shown_as_far_as_it_got(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder(), run[1024];
    size_t size;
    psi_report_result result;
    psi_trajectories *data;
    psi_run *none;
    snprintf(run, sizeof run, "%s/run", folder);
    test_cluster_run(ctx, folder, "column-world", 100, NULL, NULL);
    assert_ok(ctx, psi_trajectories_read(ctx, test_path(folder, "data.npz"), NULL, &data));
    psi_cluster_options how = psi_cluster_defaults();
    how.watch = stop_at_two;
    how.user = ctx;
    base_remove(run);
    assert_status(ctx, test_cluster_into(ctx, run, PSI_FOLDER_NEW, data, &how, &none),
                  PSI_ECANCELLED);
    psi_trajectories_free(ctx, data);
    // it does not say where its data are: they are named, or not shown at all
    assert_ok(ctx, report(ctx, folder, NULL, &result));
    assert_false(result.finished || result.pictures);
    char *page;
    read_page(ctx, folder, &page, &size);
    assert_says(page, "nothing says where the data are");
    base_free(ctx, page);
    assert_ok(ctx, report(ctx, folder, test_path(folder, "data.npz"), &result));
    assert_false(result.finished || result.trusted);
    assert_true(result.pictures);
    assert_int_equal(result.refinements, 2);
    assert_int_equal(result.latent_states, 4);
    read_page(ctx, folder, &page, &size);
    assert_says(page, "This run was interrupted");
    assert_says(page, "class=\"look\"");
    base_free(ctx, page);
    // before the first refinement there is nothing to show
    assert_int_equal(unlink(test_path(folder, "run/checkpoint/result/clusters-01.npy")), 0);
    assert_status(ctx, report(ctx, folder, NULL, &result), PSI_EMISSING);
    test_assert_error_says(ctx, "no labels yet");
    assert_int_equal(unlink(test_path(folder, "run/checkpoint/start.json")), 0);
    assert_status(ctx, report(ctx, folder, NULL, &result), PSI_EMISSING);
    test_assert_error_says(ctx, "not the folder of a run");
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

static void a_run_that_did_not_converge_says_so_at_the_top(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder();
    size_t size;
    psi_report_result result;
    test_cluster_run(ctx, folder, "column-world", 100, NULL, NULL);
    char *text, path[1024];
    snprintf(path, sizeof path, "%s/run/manifest.json", folder);
    const struct {
        const char *from, *to, *words;
    } changes[] = {
        {"\"converged\": true", "\"converged\": fals", "Did not converge"},
    };
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        assert_ok(ctx, base_read_file(ctx, path, 1 << 20, &text, &size));
        char *at = strstr(text, changes[i].from);
        assert_non_null(at);
        FILE *file = fopen(path, "w");
        fprintf(file, "%.*s%s%s", (int)(at - text), text, changes[i].to,
                strstr(changes[i].to, "fals") ? "e" : "");
        fputs(at + strlen(changes[i].from), file);
        fclose(file);
        base_free(ctx, text);
        assert_ok(ctx, report(ctx, folder, NULL, &result));
        assert_false(result.trusted);
        char *page;
        read_page(ctx, folder, &page, &size);
        assert_says(page, changes[i].words);
        *strstr(page, "<h2>") = '\0'; // the top is what stands before the first section
        assert_says(page, "id=\"verdict\"");
        base_free(ctx, page);
    }
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

// ---- harm ---------------------------------------------------------------------------------------

static void names_that_are_scripts_stay_names(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder();
    size_t size;
    psi_report_result result;
    const test_run_spec spec = {.n_latent = 3,
                                .n_actions = 2,
                                .episodes = 4,
                                .length = 4,
                                .dtype = PSI_FLOAT32,
                                .shape = {1, {2}},
                                .refinements = 2,
                                .data_path =
                                    "/no/<script>alert(1)</script>\"><img src=x onerror=alert(2)>",
                                .approximator = "table"};
    test_made_up_run(ctx, folder, &spec);
    char *manifest, path[1024];
    snprintf(path, sizeof path, "%s/run/manifest.json", folder);
    assert_ok(ctx, base_read_file(ctx, path, 1 << 20, &manifest, &size));
    FILE *file = fopen(path, "w");
    char *at = strstr(manifest, "\"options\": {");
    fprintf(file,
            "%.*s\"phases\": [{\"phase\": \"</script><script>alert(3)</script>\", \"passes\": -1}, "
            "7],"
            "\"options\": {\"<b onclick=alert(4)>\": \"</dd><script>alert(5)</script>\",%s",
            (int)(at - manifest), manifest, at + strlen("\"options\": {"));
    fclose(file);
    base_free(ctx, manifest);
    assert_ok(ctx, report(ctx, folder, NULL, &result));
    char *page;
    read_page(ctx, folder, &page, &size);
    assert_says(page, "&lt;script&gt;alert(1)&lt;/script&gt;");
    assert_silent(page, "<script>alert(1)");
    for (int i = 3; i <= 5; i++) { // phases and options are told in words of our own
        char words[40];
        snprintf(words, sizeof words, "alert(%d)", i);
        assert_silent(page, words);
    }
    assert_silent(page, "<img src=x");
    assert_silent(page, "<b onclick");
    // one script of our own, and the data of the graph and the slider
    assert_int_equal(count_of(page, "<script>"), 1);
    assert_int_equal(count_of(page, "<script"), 3);
    assert_int_equal(count_of(page, "<script type=\"application/json\" id=\""), 2);
    assert_says(page, "script-src 'sha256-");
    base_free(ctx, page);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

static void damaged_folders_are_refused_with_the_name_of_the_file(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder();
    psi_report_result result;
    const test_run_spec spec = {.n_latent = 3,
                                .n_actions = 2,
                                .episodes = 4,
                                .length = 4,
                                .dtype = PSI_FLOAT32,
                                .shape = {1, {2}},
                                .refinements = 2};
    assert_status(ctx, report(ctx, folder, NULL, &result), PSI_EIO);
    const size_t n = spec.episodes * (spec.length + 1);
    int32_t labels[20] = {0};
    const psi_array array = {"x", PSI_INT32, {1, {n}}, labels};
    static const char *const damage[] = {"clusters.npy",     "clusters-02.npy", "clusters-01.npy",
                                         "manifest.json",    "latent.npz",      "refinements.jsonl",
                                         "manifest.json?",   "steps",           "short",
                                         "refinements.jsonl"};
    for (size_t i = 0; i < sizeof damage / sizeof damage[0]; i++) {
        char *inner = test_folder();
        test_made_up_run(ctx, inner, &spec);
        const char *names = damage[i];
        psi_status expected = PSI_EDATA;
        if (i == 0) {
            labels[7] = 3; // no latent state has this number
            assert_ok(ctx, psi_arrays_save(ctx, test_path(inner, "run/clusters.npy"), &array, 1));
        } else if (i == 1) {
            labels[7] = 1 << 30;
            assert_ok(ctx,
                      psi_arrays_save(ctx, test_path(inner, "run/clusters-02.npy"), &array, 1));
        } else if (i == 2) {
            labels[7] = -2;
            assert_ok(ctx,
                      psi_arrays_save(ctx, test_path(inner, "run/clusters-01.npy"), &array, 1));
        } else if (i == 3) {
            test_put_text(test_path(inner, "run/manifest.json"), "{\"data\": ");
            expected = PSI_EFORMAT;
        } else if (i == 4) {
            test_put_text(test_path(inner, "run/latent.npz"), "not an archive");
            expected = PSI_EFORMAT;
        } else if (i == 5) {
            test_put_text(test_path(inner, "run/refinements.jsonl"),
                          "{\"clusters\": 2, \"looked_at\": 9, \"ignored_fraction\": 1e300}\n");
            expected = PSI_EFORMAT;
        } else if (i == 6) {
            test_put_text(test_path(inner, "run/manifest.json"), "[1, 2, 3]");
            expected = PSI_EFORMAT;
            names = "manifest.json";
        } else if (i == 7) {
            assert_int_equal(unlink(test_path(inner, "run/refinements.jsonl")), 0);
            expected = PSI_EIO;
            names = "refinements.jsonl";
        } else if (i == 9) {
            test_put_text(test_path(inner, "run/refinements.jsonl"),
                          "{\"clusters\": \"many\", \"looked_at\": 9, \"ignored_fraction\": 0}\n");
            expected = PSI_EFORMAT;
        } else {
            const psi_array less = {"x", PSI_INT32, {1, {3}}, labels};
            assert_ok(ctx, psi_arrays_save(ctx, test_path(inner, "run/clusters-01.npy"), &less, 1));
            names = "clusters-01.npy";
        }
        assert_status(ctx, report(ctx, inner, NULL, &result), expected);
        test_assert_error_says(ctx, names);
        assert_int_not_equal(access(test_path(inner, "page.html"), F_OK), 0);
        labels[7] = 0;
        test_folder_free(inner);
    }
    assert_int_equal(mkdir(test_path(folder, "run"), 0777), 0);
    assert_status(ctx, report(ctx, folder, NULL, &result), PSI_EMISSING);
    test_assert_error_says(ctx, "is not the folder of a run");
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

static psi_status write_report(psi_ctx *ctx, void *folder)
{
    return report(ctx, folder, NULL, NULL);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder();
    const test_run_spec spec = {.n_latent = 3,
                                .n_actions = 2,
                                .episodes = 3,
                                .length = 4,
                                .dtype = PSI_UINT8,
                                .shape = {2, {4, 4}},
                                .refinements = 2};
    test_made_up_run(ctx, folder, &spec);
    assert_in_range(test_fault_sweep(write_report, folder), 80, 3000);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_real_run_is_told_as_it_is),
        cmocka_unit_test(every_kind_of_observation_is_shown),
        cmocka_unit_test(two_thousand_latent_states_stay_below_5_megabytes),
        cmocka_unit_test(a_run_whose_data_are_gone_says_so),
        cmocka_unit_test(an_interrupted_run_is_shown_as_far_as_it_got),
        cmocka_unit_test(an_interrupted_run_keeps_its_gamma),
        cmocka_unit_test(a_run_that_did_not_converge_says_so_at_the_top),
        cmocka_unit_test(names_that_are_scripts_stay_names),
        cmocka_unit_test(damaged_folders_are_refused_with_the_name_of_the_file),
        cmocka_unit_test(every_allocation_may_fail),
    };
    hide_programs();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
