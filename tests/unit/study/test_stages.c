// Earlier cluster functions on other data, and pages about the paper.
#include "support/collect.h"
#include "support/support.h"

#include "base/context.h"
#include "base/file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

// Features of a network that was never trained: enough for a linear head to tell columns apart.
static psi_net *random_features(psi_ctx *ctx, size_t inputs)
{
    psi_net *net;
    psi_net_spec spec = psi_net_defaults(PSI_NET_MLP, &(psi_shape){1, {inputs}}, PSI_FLOAT32, 1, 4);
    spec.n_hidden = 1;
    spec.hidden[0] = 96;
    assert_ok(ctx, psi_net_new(ctx, &spec, 3, &net));
    return net;
}

static void finer_stages_predict_better(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    for (uint64_t seed = 0; seed < 2; seed++) {
        psi_trajectories *data = test_collect(ctx, "point-column-world", 150, seed, NULL);
        psi_trajectories *test = test_collect(ctx, "point-column-world", 40, 100 + seed, NULL);
        psi_net *net = random_features(ctx, 2);
        int32_t *coarse;
        assert_ok(ctx, base_alloc(ctx, data->n_observations, sizeof *coarse, &coarse));
        for (size_t i = 0; i < data->n_observations; i++) coarse[i] = data->latent_states[i] != 0;
        const int32_t *labels[2] = {coarse, data->latent_states};
        const psi_stages stages = {net, data, 2, labels, test, seed};
        double errors[2 * 40];
        psi_sequence_error summary[2];
        assert_ok(ctx, psi_stage_errors(ctx, &stages, errors, summary));
        for (size_t s = 0; s < 2; s++) {
            double sum = 0.0;
            assert_int_equal(summary[s].judged, 40);
            for (size_t e = 0; e < 40; e++) sum += errors[s * 40 + e];
            assert_true(fabs(sum / 40.0 - summary[s].mean) < 1e-9);
        }
        assert_true(summary[0].mean > 0.3 * summary[0].zero_baseline);
        assert_true(summary[1].mean < 0.1 * summary[1].zero_baseline);
        // the same seed, the same errors
        double again[2 * 40];
        assert_ok(ctx, psi_stage_errors(ctx, &stages, again, summary));
        assert_memory_equal(errors, again, sizeof errors);
        base_free(ctx, coarse);
        psi_net_free(ctx, net);
        psi_trajectories_free(ctx, test);
        psi_trajectories_free(ctx, data);
    }
    psi_ctx_free(ctx);
}

static void data_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_trajectories *data = test_collect(ctx, "point-column-world", 5, 0, NULL);
    psi_trajectories *other =
        test_collect(ctx, "combination-lock", 2, 0, (const char *const[]){"max-steps", "10", NULL});
    psi_net *net = random_features(ctx, 2), *wide = random_features(ctx, 3);
    const int32_t *labels[1] = {data->latent_states};
    double errors[5];
    psi_sequence_error summary;
    psi_stages stages = {net, data, 1, labels, other, 0};
    assert_status(ctx, psi_stage_errors(ctx, &stages, errors, &summary), PSI_ESHAPE);
    stages = (psi_stages){wide, data, 1, labels, data, 0};
    assert_status(ctx, psi_stage_errors(ctx, &stages, errors, &summary), PSI_ESHAPE);
    psi_net_free(ctx, wide);
    psi_net_free(ctx, net);
    psi_trajectories_free(ctx, other);
    psi_trajectories_free(ctx, data);
    psi_ctx_free(ctx);
}

// ---- pages --------------------------------------------------------------------------------------

static void claims_stand_beside_ours_and_stay_words(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder(), page[1024], *text;
    size_t size;
    const char *folders[] = {folder};
    snprintf(page, sizeof page, "%s/index.html", folder);
    test_put_text(test_path(folder, "map.svg"), "<svg xmlns='http://www.w3.org/2000/svg'/>");
    test_put_text(test_path(folder, "map-dark.svg"), "<svg xmlns='http://www.w3.org/2000/svg'/>");
    test_put_text(
        test_path(folder, "results.json"),
        "{\"title\": \"<script>alert(1)</script>\", \"what\": \"a & b\", \"claims\": [{\"claim\": "
        "\"<b>c</b>\", \"paper\": \"100\", \"ours\": \"99\", \"holds\": false}, 5, {\"holds\": "
        "true}], \"figures\": [{\"name\": \"map\", \"alt\": \"\\\"><img src=x>\", \"caption\": "
        "\"<i>\"}], \"files\": [{\"name\": \"<u>\", \"what\": 3}]}");
    assert_ok(ctx, psi_report_studies(ctx, page, "<title>", 1, folders));
    assert_ok(ctx, base_read_file(ctx, page, 1 << 22, &text, &size));
    static const char *const absent[] = {"<script", "<b>c", "<img src=x", "<i>", "<u>"};
    for (size_t i = 0; i < 5; i++) assert_null(strstr(text, absent[i]));
    static const char *const present[] = {"&lt;script&gt;",
                                          "a &amp; b",
                                          ">100<",
                                          ">99<",
                                          ">no<",
                                          ">yes<",
                                          "data:image/svg+xml;base64,"};
    for (size_t i = 0; i < 7; i++) {
        if (!strstr(text, present[i])) fail_msg("the page lacks %s", present[i]);
    }
    base_free(ctx, text);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

static void results_that_are_none_are_refused(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder();
    const char *folders[] = {folder};
    char page[1024];
    struct stat info;
    snprintf(page, sizeof page, "%s/index.html", folder);
    assert_status(ctx, psi_report_studies(ctx, page, "t", 1, folders), PSI_EIO);
    static const char *const wrong[] = {
        "[]", "{\"title\": 3}",
        "{\"title\": \"t\", \"figures\": [{\"name\": \"../../etc/passwd\"}]}",
        "{\"title\": \"t\", \"figures\": [{\"name\": 7}]}", "{"};
    for (size_t i = 0; i < 5; i++) {
        test_put_text(test_path(folder, "results.json"), wrong[i]);
        assert_status(ctx, psi_report_studies(ctx, page, "t", 1, folders), PSI_EFORMAT);
        test_assert_error_says(ctx, "results.json");
    }
    test_put_text(test_path(folder, "results.json"),
                  "{\"title\": \"t\", \"figures\": [{\"name\": \"missing\"}]}");
    assert_status(ctx, psi_report_studies(ctx, page, "t", 1, folders), PSI_EIO);
    assert_int_not_equal(stat(page, &info), 0);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

static psi_status write_study(psi_ctx *ctx, void *folder)
{
    const char *folders[] = {folder};
    char page[1024];
    snprintf(page, sizeof page, "%s/index.html", (char *)folder);
    return psi_report_studies(ctx, page, "t", 1, folders);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    char *folder = test_folder();
    test_put_text(test_path(folder, "results.json"), "{\"title\": \"t\", \"what\": \"w\"}");
    assert_in_range(test_fault_sweep(write_study, folder), 5, 100);
    test_folder_free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finer_stages_predict_better),
        cmocka_unit_test(data_that_do_not_fit_are_refused),
        cmocka_unit_test(claims_stand_beside_ours_and_stay_words),
        cmocka_unit_test(results_that_are_none_are_refused),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
