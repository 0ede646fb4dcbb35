// Steps that studies share: trajectories and runs that are there are taken for what they are, and
// for nothing else.
#include "support/studies.h"
#include "support/support.h"

#include "base/file.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static psi_task task_of(psi_ctx *ctx, const char *name, int width)
{
    psi_task task;
    assert_ok(ctx, psi_task_defaults(ctx, name, NULL, &task));
    if (width) task.width = width;
    assert_ok(ctx, psi_task_check(ctx, &task));
    return task;
}

static void refuse(study *of, const psi_task *task, size_t episodes, uint64_t seed)
{
    psi_trajectories *data = NULL;
    assert_status(of->ctx, study_trajectories(of, task, episodes, seed, "data", &data), PSI_EUSAGE);
    test_assert_error_says(of->ctx, "data has other trajectories than are asked for");
    psi_trajectories_free(of->ctx, data);
}

static void trajectories_are_collected_once(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder();
    test_listener all = {.text = ""};
    const psi_study_options options = test_study_options(folder, &all);
    study of = test_study_begun(ctx, folder, &options);
    const psi_task task = task_of(ctx, "column-world", 0), narrow = task_of(ctx, "column-world", 3),
                   points = task_of(ctx, "point-column-world", 0);
    psi_trajectories *first = NULL, *second = NULL;
    struct stat before, after;
    assert_ok(ctx, study_trajectories(&of, &task, 7, 1, "data", &first));
    assert_int_equal(first->n_episodes, 7);
    assert_int_equal(stat(test_path(folder, "data"), &before), 0);
    assert_ok(ctx, study_trajectories(&of, &task, 7, 1, "data", &second));
    assert_int_equal(stat(test_path(folder, "data"), &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    assert_int_equal(first->n_transitions, second->n_transitions);
    assert_memory_equal(first->actions, second->actions,
                        first->n_transitions * sizeof *first->actions);
    test_assert_heard(&all, "data: 7 trajectories, ");
    // another number of them, seed or task
    refuse(&of, &task, 8, 1);
    refuse(&of, &task, 7, 2);
    refuse(&of, &narrow, 7, 1);
    refuse(&of, &points, 7, 1);
    json_decref(of.results);
    psi_trajectories_free(ctx, second);
    psi_trajectories_free(ctx, first);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

// The same actions and rewards, seen as other images.
static void other_images_are_other_trajectories(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder();
    test_listener all = {.text = ""};
    const psi_study_options options = test_study_options(folder, &all);
    study of = test_study_begun(ctx, folder, &options);
    psi_trajectories *data = NULL;
    psi_task tasks[2];
    for (size_t i = 0; i < 2; i++) {
        assert_ok(ctx, psi_task_defaults(ctx, "combination-lock", NULL, &tasks[i]));
        assert_ok(ctx, psi_task_set(ctx, &tasks[i], "digits-per-dial", "2"));
        assert_ok(ctx, psi_task_set(ctx, &tasks[i], "images-per-digit", "2"));
        assert_ok(ctx, psi_task_set(ctx, &tasks[i], "digits", i ? "drawn-test" : "drawn"));
        assert_ok(ctx, psi_task_check(ctx, &tasks[i]));
    }
    assert_ok(ctx, study_trajectories(&of, &tasks[0], 2, 1, "data", &data));
    refuse(&of, &tasks[1], 2, 1);
    json_decref(of.results);
    psi_trajectories_free(ctx, data);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

// A run that is finished is taken with the data that it was made of, and not with others.
static void a_run_belongs_to_its_trajectories(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder();
    test_listener all = {.text = ""};
    const psi_study_options options = test_study_options(folder, &all);
    study of = test_study_begun(ctx, folder, &options);
    const psi_task task = task_of(ctx, "column-world", 0);
    psi_trajectories *data = NULL, *other = NULL;
    psi_run *run = NULL, *again = NULL, *wrong = NULL;
    psi_cluster_options how;
    assert_ok(ctx, study_cluster_options(&of, "column-world", &how));
    assert_ok(ctx, study_trajectories(&of, &task, 60, 1, "data", &data));
    assert_ok(ctx, study_trajectories(&of, &task, 60, 2, "other", &other));
    assert_ok(ctx, study_cluster(&of, "data", data, &how, "run", &run));
    assert_null(strstr(all.text, "clustered before"));
    assert_ok(ctx, study_cluster(&of, "data", data, &how, "run", &again));
    test_assert_heard(&all, "run: clustered before");
    assert_int_equal(run->n_latent, again->n_latent);
    assert_memory_equal(run->labels, again->labels, run->n_observations * sizeof *run->labels);
    assert_status(ctx, study_cluster(&of, "other", other, &how, "run", &wrong), PSI_EUSAGE);
    test_assert_error_says(ctx, "run was started with data");
    json_t *phases = test_load(ctx, folder, "run-phases.json");
    assert_int_equal(json_array_size(phases), run->n_phases);
    json_decref(phases);
    json_decref(of.results);
    psi_run_free(ctx, wrong);
    psi_run_free(ctx, again);
    psi_run_free(ctx, run);
    psi_trajectories_free(ctx, other);
    psi_trajectories_free(ctx, data);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

static void constants_are_ours_or_the_papers(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_study_options options = psi_study_defaults();
    study of = test_study_begun(ctx, "", &options);
    psi_cluster_options ours, theirs;
    options.seed = 5;
    assert_ok(ctx, study_cluster_options(&of, "combination-lock", &ours));
    options.constants = "table-1";
    assert_ok(ctx, study_cluster_options(&of, "combination-lock", &theirs));
    assert_true(ours.seed == 5 && theirs.seed == 5);
    assert_false(ours.heads || theirs.heads);
    assert_int_equal(ours.paper, psi_cluster_defaults().paper);
    assert_int_equal(theirs.paper, PSI_PAPER_COMBINATION_LOCK);
    assert_true(theirs.gamma == 0.6 && theirs.epsilon_sf == 0.8 && theirs.batch == 256); // table 1
    assert_status(ctx, study_cluster_options(&of, "taxi", &theirs), PSI_EUSAGE);
    test_assert_error_says(ctx, "not for 'taxi'");
    json_decref(of.results);
    psi_ctx_free(ctx);
}

// Without MNIST, digits are drawn, which is told and noted; unless MNIST was asked for.
static void digits_are_drawn_where_mnist_is_missing(void **state)
{
    (void)state;
    char *empty = test_folder();
    assert_int_equal(setenv("PSIFOLD_CACHE", empty, 1), 0);
    psi_ctx *ctx = test_ctx(1);
    static const char *const asked[] = {"auto", "drawn", "mnist"}, *const found[] = {
                                                                       "drawn", "drawn", "mnist"};
    for (size_t i = 0; i < 3; i++) {
        test_listener all = {.text = ""};
        psi_study_options options = test_study_options(empty, &all);
        study of = test_study_begun(ctx, empty, &options);
        const char *images;
        options.digits = asked[i];
        assert_ok(ctx, study_images(&of, &images));
        assert_string_equal(images, found[i]);
        assert_string_equal(json_string_value(json_object_get(of.results, "digits")), found[i]);
        assert_true((strstr(all.text, "MNIST was not fetched") != NULL) == (i == 0));
        json_decref(of.results);
    }
    psi_ctx_free(ctx);
    test_folder_free(empty);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trajectories_are_collected_once),
        cmocka_unit_test(other_images_are_other_trajectories),
        cmocka_unit_test(a_run_belongs_to_its_trajectories),
        cmocka_unit_test(constants_are_ours_or_the_papers),
        cmocka_unit_test(digits_are_drawn_where_mnist_is_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
