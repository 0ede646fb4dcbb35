// A budget that ends anywhere: the answer so far, a whole folder, and a run that goes on to the
// same end. Time runs out when the test says so: after refinement n, or within a phase, a deadline
// in the past is set.
#include "support/collect.h"
#include "support/support.h"

#include "base/context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct stopwatch {
    psi_ctx *ctx;
    size_t stop_after; // refinements; 0: never
    size_t told;
} stopwatch;

static psi_status tick(void *user, const psi_cluster_step *step, size_t refinement, size_t n,
                       const int32_t *labels)
{
    (void)step, (void)n, (void)labels;
    stopwatch *c = user;
    c->told = refinement;
    if (refinement == c->stop_after) base_set_deadline(c->ctx, 1e-9);
    return PSI_OK;
}

// A clustering into a folder, new or resumed, stopped after so many refinements.
static psi_run *cluster(psi_ctx *ctx, const psi_trajectories *data, psi_method method,
                        const char *folder, bool resume, size_t stop_after, size_t *told)
{
    stopwatch c = {.ctx = ctx, .stop_after = stop_after};
    psi_cluster_options how = psi_cluster_defaults();
    psi_run_folder *place;
    psi_run *found;
    how.budget = stop_after > 0 ? 1e6 : 0.0;
    how.method = method;
    how.watch = tick;
    how.user = &c;
    how.trunk_steps = 60;
    how.hidden = 16;
    how.head_steps = 60;
    how.representation_steps = 60;
    assert_ok(
        ctx, psi_run_folder_open(ctx, folder, resume ? PSI_FOLDER_RESUME : PSI_FOLDER_NEW, &place));
    assert_false(psi_run_folder_finished(place));
    assert_ok(ctx, psi_cluster_into(place, &(const char *){"data"}, 1, data, &how, &found));
    test_check_run(folder);
    assert_ok(ctx, base_cancelled(ctx)); // no deadline is left behind
    if (told) *told = c.told;
    return found;
}

// Whole, and as honest as it can be.
static void check_stopped(psi_ctx *ctx, const char *folder, const psi_run *found)
{
    char text[256];
    psi_run *run;
    assert_true(found->stopped);
    assert_int_equal(found->verdict, PSI_VERDICT_UNDETERMINED);
    assert_true(found->n_steps >= 1 && found->n_latent >= 1);
    psi_verdict_sentence(found, text, sizeof text);
    assert_non_null(strstr(text, "budget"));
    assert_ok(ctx, psi_run_load(ctx, folder, &run));
    assert_int_equal(run->n_latent, found->n_latent);
    assert_memory_equal(run->labels, found->labels, found->n_observations * sizeof *found->labels);
    psi_run_free(ctx, run);
}

// Stops after one refinement and another, goes on, and must end where a run without a budget does.
static void stop_everywhere(const char *task, uint64_t episodes, psi_method method, size_t at_least,
                            bool features)
{
    psi_ctx *ctx = test_ctx(1);
    char *room = test_folder(), *whole = strdup(test_path(room, "whole"));
    psi_trajectories *data = test_collect(ctx, task, episodes, 3, NULL);
    size_t n;
    psi_run *end = cluster(ctx, data, method, whole, false, 0, &n);
    assert_true(n >= at_least && end->has_trunk == features);
    assert_false(end->stopped);
    for (size_t stop = 1; stop < n; stop += 1 + n / test_repetitions(4)) {
        char name[32];
        snprintf(name, sizeof name, "stopped-%zu", stop);
        char *folder = strdup(test_path(room, name));
        psi_run *found = cluster(ctx, data, method, folder, false, stop, NULL);
        check_stopped(ctx, folder, found);
        psi_run_free(ctx, found);
        psi_run_folder *place;
        assert_status(ctx, psi_run_folder_open(ctx, folder, PSI_FOLDER_NEW, &place), PSI_EUSAGE);
        if (stop + 1 < n) { // … and stopped once more, further on
            found = cluster(ctx, data, method, folder, true, stop + 1, NULL);
            check_stopped(ctx, folder, found);
            psi_run_free(ctx, found);
        }
        found = cluster(ctx, data, method, folder, true, 0, NULL);
        assert_false(found->stopped);
        assert_int_equal(found->verdict, end->verdict);
        assert_int_equal(found->n_steps, end->n_steps);
        assert_memory_equal(found->labels, end->labels, end->n_observations * sizeof *end->labels);
        psi_run_free(ctx, found);
        assert_ok(ctx, psi_run_folder_open(ctx, folder, PSI_FOLDER_RESUME, &place));
        assert_true(psi_run_folder_finished(place));
        psi_run_folder_close(place);
        free(folder);
    }
    psi_run_free(ctx, end);
    psi_trajectories_free(ctx, data);
    free(whole);
    test_folder_free(room);
    psi_ctx_free(ctx);
}

static void a_table_is_stopped_anywhere(void **state)
{
    (void)state;
    stop_everywhere("column-world", 60, PSI_METHOD_EVIDENCE, 3, false);
}

static void vectors_are_stopped_anywhere(void **state)
{
    (void)state;
    // as they are, and by features
    stop_everywhere("point-column-world", 40, PSI_METHOD_EVIDENCE, 10, true);
}

static void successor_features_are_stopped_anywhere(void **state)
{
    (void)state;
    stop_everywhere("point-column-world", 40, PSI_METHOD_SUCCESSOR_FEATURES, 4, true);
}

// A phase that time runs out in, as soon as it reports itself.
typedef struct cut {
    psi_ctx *ctx;
    const char *phase;
} cut;

static void cut_short(void *user, const psi_progress *progress)
{
    const cut *of = user;
    if (strcmp(progress->phase, of->phase) == 0) base_set_deadline(of->ctx, 1e-9);
}

static psi_ctx *ctx_to_cut(cut *of)
{
    const psi_options options = {
        .size = sizeof options, .threads = 1, .progress = cut_short, .user = of};
    assert_int_equal(psi_ctx_new(&options, &of->ctx), PSI_OK);
    return of->ctx;
}

// Labels may be certain, but what was learnt of them is not all that was to be learnt.
static void a_network_is_cut_short(void **state)
{
    (void)state;
    cut network = {.phase = "training the representation"};
    psi_ctx *ctx = ctx_to_cut(&network);
    psi_trajectories *data = test_collect(ctx, "point-column-world", 100, 3, NULL);
    psi_cluster_options how = psi_cluster_defaults();
    psi_run *found;
    how.budget = 1e6;
    how.representation_steps = 100000000;
    assert_ok(ctx, psi_cluster(ctx, data, &how, &found));
    assert_true(found->stopped);
    assert_int_not_equal(found->verdict, PSI_VERDICT_CERTAIN);
    assert_non_null(found->representation);
    assert_true(found->accuracy >= 0.0 && found->accuracy <= 1.0);
    psi_run_free(ctx, found);
    psi_trajectories_free(ctx, data);
    psi_ctx_free(ctx);
}

static psi_trajectories *collect_images(psi_ctx *ctx, uint64_t episodes, const char *per_dial)
{
    const char *const options[] = {"digits-per-dial", per_dial, "digits", "drawn", NULL};
    return test_collect(ctx, "combination-lock", episodes, 5, options);
}

// Features that were not learnt to the end are better than none: images have an answer all the
// same, and none that is certain. There are too few of these to stand apart.
static void features_of_images_are_cut_short(void **state)
{
    (void)state;
    cut features = {.phase = "learning features"};
    psi_ctx *ctx = ctx_to_cut(&features);
    psi_trajectories *data = collect_images(ctx, 3, "10");
    psi_cluster_options how = psi_cluster_defaults();
    psi_run *found;
    how.budget = 1e6;
    how.trunk_steps = 100000000;
    how.representation_steps = 20;
    assert_ok(ctx, psi_cluster(ctx, data, &how, &found));
    assert_true(found->stopped && found->n_latent > 1 && found->n_steps > 0);
    assert_int_equal(found->verdict, PSI_VERDICT_UNDETERMINED);
    psi_run_free(ctx, found);
    psi_trajectories_free(ctx, data);
    psi_ctx_free(ctx);
}

// Budgets that end in one phase or another, as it happens; in the end it is the same.
static void images_are_stopped_anywhere(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *room = test_folder(), *folder = strdup(test_path(room, "run"));
    psi_trajectories *data = collect_images(ctx, 12, "3");
    psi_cluster_options how = psi_cluster_defaults();
    psi_run *end, *found;
    how.trunk_steps = 20;
    how.head_steps = 30;
    how.representation_steps = 20;
    assert_ok(ctx, psi_cluster(ctx, data, &how, &end));
    const double shares[] = {0.6, 1.2, 0.0};
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        how.budget = shares[i] * end->seconds;
        const psi_status status =
            test_cluster_into(ctx, folder, PSI_FOLDER_RESUME, data, &how, &found);
        if (status == PSI_ECANCELLED && how.budget > 0.0) continue; // no answer yet
        assert_ok(ctx, status);
        if (found->stopped) {
            check_stopped(ctx, folder, found);
        } else {
            assert_int_equal(found->verdict, end->verdict);
            assert_int_equal(found->n_latent, end->n_latent);
            assert_memory_equal(found->labels, end->labels,
                                end->n_observations * sizeof *end->labels);
        }
        assert_false(how.budget <= 0.0 && found->stopped);
        psi_run_free(ctx, found);
    }
    psi_run_free(ctx, end);
    psi_trajectories_free(ctx, data);
    free(folder);
    test_folder_free(room);
    psi_ctx_free(ctx);
}

static void too_little_is_said_in_a_sentence(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_trajectories *data = test_collect(ctx, "column-world", 20, 3, NULL);
    psi_cluster_options how = psi_cluster_defaults();
    psi_run *found;
    how.budget = 1e-9;
    assert_status(ctx, psi_cluster(ctx, data, &how, &found), PSI_ECANCELLED);
    test_assert_error_says(ctx, "before the first refinement was done");
    assert_null(found);
    assert_ok(ctx, base_cancelled(ctx));
    psi_trajectories_free(ctx, data);
    psi_ctx_free(ctx);
}

static void a_deadline_is_no_cancel(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1), *child;
    assert_ok(ctx, base_ctx_child(ctx, 1, &child));
    assert_false(base_time_is_up(ctx));
    base_set_deadline(ctx, 1e-9);
    assert_true(base_time_is_up(ctx) && base_time_is_up(child));
    assert_status(child, base_cancelled(child), PSI_ECANCELLED);
    base_set_deadline(ctx, 1e300);
    assert_false(base_time_is_up(ctx));
    assert_ok(ctx, base_cancelled(ctx));
    psi_cancel(ctx);
    base_set_deadline(ctx, 1e-9);
    assert_false(base_time_is_up(ctx)); // somebody has asked
    assert_status(ctx, base_cancelled(ctx), PSI_ECANCELLED);
    psi_ctx_free(child);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_is_stopped_anywhere),
        cmocka_unit_test(vectors_are_stopped_anywhere),
        cmocka_unit_test(successor_features_are_stopped_anywhere),
        cmocka_unit_test(images_are_stopped_anywhere),
        cmocka_unit_test(features_of_images_are_cut_short),
        cmocka_unit_test(a_network_is_cut_short),
        cmocka_unit_test(too_little_is_said_in_a_sentence),
        cmocka_unit_test(a_deadline_is_no_cancel),
    };
    return cmocka_run_group_tests_name("cluster/budget", tests, NULL, NULL);
}
