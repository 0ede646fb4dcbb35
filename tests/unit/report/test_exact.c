// A finite model in the place of a run: the quotient, its refinements, its page.
#include "report/exact.h"

#include "support/support.h"

#include "base/context.h"
#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Two copies of a chain of n states, each with one choice that leads on and earns 1 at the end.
static psi_model *two_chains(psi_ctx *ctx, size_t n)
{
    psi_model *model;
    psi_model_reward *reward;
    uint8_t *odd;
    assert_ok(ctx, psi_model_new(ctx, 2 * n, 2 * n, 2 * n, &model));
    assert_ok(ctx, psi_model_add_reward(ctx, model, "gain", false, true, &reward));
    assert_ok(ctx, psi_model_add_label(ctx, model, "<b>last</b>", &odd));
    model->n_actions = 1;
    model->choices[0] = model->offsets[0] = 0;
    for (size_t s = 0; s < 2 * n; s++) {
        const bool last = s % n == n - 1;
        model->choices[s + 1] = model->offsets[s + 1] = s + 1;
        model->next[s] = (int32_t)(last ? s : s + 1);
        model->probability[s] = 1.0;
        model->action[s] = 0;
        model->initial[s] = s == 0;
        reward->choice[s] = s % n == n - 2 ? 1.0 : 0.0;
        odd[s] = last;
    }
    assert_ok(ctx, psi_model_check(ctx, model));
    return model;
}

static void copies_fold_and_the_way_there_is_told(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    enum { N = 6 };
    psi_model *model = two_chains(ctx, N);
    report_exact exact;
    assert_ok(ctx, report_exact_find(ctx, model, "chains", &exact));
    const psi_run *run = exact.run;
    assert_int_equal(run->n_observations, 2 * N);
    assert_int_equal(run->n_latent, N);
    for (size_t s = 0; s < N; s++) assert_int_equal(run->labels[s], run->labels[s + N]);
    assert_true(run->model->terminal[run->labels[N - 1]]); // it stays and earns nothing
    assert_false(run->model->terminal[run->labels[N - 2]]);
    assert_true(run->model->reward[run->labels[N - 2]] == 1.0);
    // by label and reward: the end, the one that earns, the rest; then one more at a time
    assert_int_equal(exact.levels.n, N); // with c_0 and the final ones
    for (size_t i = 1; i + 1 < exact.levels.n; i++) {
        assert_int_equal(exact.levels.clusters[i], i + 2);
    }
    report_exact_free(ctx, &exact);
    psi_model_free(ctx, model);
    psi_ctx_free(ctx);
}

static psi_status write_page(psi_ctx *ctx, void *path)
{
    psi_status status = PSI_OK;
    psi_report_options how = psi_report_defaults();
    psi_model *model = NULL;
    how.replace = true;
    TRY(psi_model_new(ctx, 2, 1, 1, &model));
    model->n_actions = 1;
    model->action[0] = 0;
    model->initial[0] = model->initial[1] = 0;
    model->choices[0] = model->offsets[0] = 0;
    model->choices[1] = model->choices[2] = 1;
    model->offsets[1] = 1;
    model->next[0] = 1;
    model->probability[0] = 1.0;
    TRY(psi_report_model(ctx, model, "two states", path, &how, NULL));
done:
    psi_model_free(ctx, model);
    return status;
}

static void the_page_names_labels_and_escapes_them(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder(), *page, path[1024];
    size_t size;
    psi_model *model = two_chains(ctx, 5);
    psi_report_result result;
    const psi_report_options how = psi_report_defaults();
    snprintf(path, sizeof path, "%s/page.html", folder);
    assert_ok(ctx, psi_report_model(ctx, model, "chains", path, &how, &result));
    assert_true(result.finished && result.trusted && !result.pictures);
    assert_int_equal(result.latent_states, 5);
    assert_ok(ctx, base_read_file(ctx, path, 1 << 24, &page, &size));
    assert_non_null(strstr(page, "<b>Exact:</b>"));
    assert_non_null(strstr(page, "&lt;b&gt;last&lt;/b&gt;"));
    assert_null(strstr(page, "<b>last"));
    assert_non_null(strstr(page, "id=\"graph-data\""));
    assert_null(strstr(page, "id=\"episode-data\""));
    base_free(ctx, page);
    psi_model_free(ctx, model);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    char *folder = test_folder(), path[1024];
    snprintf(path, sizeof path, "%s/page.html", folder);
    assert_in_range(test_fault_sweep(write_page, path), 40, 2000);
    test_folder_free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_fold_and_the_way_there_is_told),
        cmocka_unit_test(the_page_names_labels_and_escapes_them),
        cmocka_unit_test(every_allocation_may_fail),
    };
    assert_int_equal(setenv("PATH", "/nonexistent", 1), 0); // figures have tests of their own
    return cmocka_run_group_tests(tests, NULL, NULL);
}
