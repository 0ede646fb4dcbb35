// A step that fails late takes nothing away: refinements, the verdict, networks, memory that is
// refused at any request after the first refinement. For tables, vectors and images, in memory and
// in a folder. (Budgets: test_budget.c; the command: tests/faults/late.)
#include "support/collect.h"
#include "support/support.h"

#include <stdlib.h>
#include <string.h>

typedef struct kind {
    const char *task;
    uint64_t episodes;
    const char *const *settings;
    size_t few; // latent states that the first refinement keeps to and a later one does not
} kind;

static const char *const DRAWN[] = {"digits", "drawn", "dials", "2", "digits-per-dial", "3", NULL};
static const char *const LONGER[] = {"width", "6", NULL};
static const kind KINDS[] = {{"column-world", 40, LONGER, 3},
                             {"point-column-world", 40, NULL, 3},
                             {"combination-lock", 12, DRAWN, 6}};
enum { N_KINDS = sizeof KINDS / sizeof KINDS[0] };

static size_t n_kinds(void) // images take minutes under sanitizers
{
    return test_repetitions(N_KINDS) < N_KINDS ? N_KINDS - 1 : N_KINDS;
}

// What was told of refinements: how many, and the labels of the last.
typedef struct told {
    const test_faults *faults;
    long allocations; // before the first was told
    size_t n, n_observations;
    int32_t *labels;
} told;

static psi_status watch(void *user, const psi_cluster_step *step, size_t refinement, size_t n,
                        const int32_t *labels)
{
    told *to = user;
    (void)step;
    if (refinement == 1 && to->faults) to->allocations = to->faults->count;
    to->n = refinement;
    if (!labels) return PSI_OK;
    to->n_observations = n;
    to->labels = realloc(to->labels, n * sizeof *labels);
    assert_non_null(to->labels);
    memcpy(to->labels, labels, n * sizeof *labels);
    return PSI_OK;
}

static psi_cluster_options quick(told *to)
{
    psi_cluster_options how = psi_cluster_defaults();
    how.hidden = 16;
    how.trunk_steps = how.head_steps = how.representation_steps = 12;
    how.watch = watch;
    how.user = to;
    return how;
}

static psi_trajectories *collect(psi_ctx *ctx, const kind *of)
{
    return test_collect(ctx, of->task, of->episodes, 3, of->settings);
}

// Every observation has a latent state that there is, or none; the model is of these.
static void assert_whole(const psi_run *run)
{
    char text[256];
    assert_non_null(run);
    assert_true(run->finished && run->n_latent >= 1 && run->n_steps >= 1);
    assert_non_null(run->model);
    assert_int_equal(run->model->n_states, run->n_latent);
    for (size_t i = 0; i < run->n_observations; i++) {
        assert_in_range(run->labels[i] + 1, 0, run->n_latent);
    }
    assert_non_null(run->failure);
    assert_int_equal(run->verdict, PSI_VERDICT_UNDETERMINED);
    psi_verdict_sentence(run, text, sizeof text);
    assert_non_null(strstr(text, "not everything was asked and learnt"));
}

// The same from a folder: whole, read back, and nothing is left to do.
static void assert_kept(psi_ctx *ctx, const char *folder, const psi_run *run)
{
    psi_run *read;
    psi_run_folder *place;
    assert_whole(run);
    assert_ok(ctx, psi_run_check(ctx, folder));
    assert_ok(ctx, psi_run_load(ctx, folder, &read));
    assert_whole(read);
    assert_string_equal(read->failure, run->failure);
    assert_int_equal(read->n_observations, run->n_observations);
    assert_memory_equal(read->labels, run->labels, run->n_observations * sizeof *run->labels);
    psi_run_free(ctx, read);
    assert_ok(ctx, psi_run_folder_open(ctx, folder, PSI_FOLDER_RESUME, &place));
    assert_true(psi_run_folder_finished(place));
    psi_run_folder_close(place);
}

static void a_later_refinement_fails(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    for (size_t k = 0; k < n_kinds(); k++) {
        char *room = test_folder(), *folder = strdup(test_path(room, "run"));
        psi_trajectories *data = collect(ctx, &KINDS[k]);
        for (psi_method method = 0; method <= PSI_METHOD_SUCCESSOR_FEATURES; method++) {
            told to = {0};
            psi_cluster_options how = quick(&to);
            psi_run *run;
            how.method = method;
            how.max_latent_states = KINDS[k].few;
            assert_ok(ctx, psi_cluster(ctx, data, &how, &run));
            if (method == PSI_METHOD_EVIDENCE || run->failure) {
                assert_whole(run);
                assert_non_null(strstr(run->failure, "--max-latent-states"));
            }
            if (k == 0 && method == PSI_METHOD_EVIDENCE) { // others are smoothed once more
                assert_memory_equal(to.labels, run->labels, to.n_observations * sizeof *to.labels);
            }
            const bool failed = run->failure != NULL;
            psi_run_free(ctx, run);
            assert_ok(ctx, test_cluster_into(ctx, folder, PSI_FOLDER_REPLACE, data, &how, &run));
            assert_int_equal(failed, run->failure != NULL);
            if (failed) assert_kept(ctx, folder, run);
            psi_run_free(ctx, run);
            free(to.labels);
        }
        psi_trajectories_free(ctx, data);
        free(folder);
        test_folder_free(room);
    }
    psi_ctx_free(ctx);
}

// Numbers that explode while networks learn: what vectors and pixels say as they are is the answer.
static void a_network_fails(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    for (size_t k = 1; k < n_kinds(); k++) {
        char *room = test_folder(), *folder = strdup(test_path(room, "run"));
        psi_trajectories *data = collect(ctx, &KINDS[k]);
        told to = {0};
        psi_cluster_options how = quick(&to);
        psi_run *run;
        psi_predictor *predictor;
        how.learning_rate = 1e30;
        assert_ok(ctx, test_cluster_into(ctx, folder, PSI_FOLDER_NEW, data, &how, &run));
        assert_kept(ctx, folder, run);
        assert_null(run->representation);
        assert_true(run->n_latent > 2);
        assert_status(ctx, psi_predictor_new(ctx, run, &predictor), PSI_EMISSING);
        test_assert_error_says(ctx, "learning rate");
        psi_run_free(ctx, run);
        psi_trajectories_free(ctx, data);
        free(to.labels);
        free(folder);
        test_folder_free(room);
    }
    psi_ctx_free(ctx);
}

// Whoever watches may end it, for whatever reason: that is no failure to go on from.
static psi_status refuse(void *user, const psi_cluster_step *step, size_t refinement, size_t n,
                         const int32_t *labels)
{
    (void)user, (void)step, (void)n, (void)labels;
    return refinement == 2 ? PSI_EDATA : PSI_OK;
}

static void who_watches_has_the_last_word(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    for (size_t k = 0; k < n_kinds(); k++) {
        psi_trajectories *data = collect(ctx, &KINDS[k]);
        psi_cluster_options how = quick(NULL);
        psi_run *run;
        how.watch = refuse;
        assert_int_equal(psi_cluster(ctx, data, &how, &run), PSI_EDATA);
        assert_null(run);
        psi_trajectories_free(ctx, data);
    }
    psi_ctx_free(ctx);
}

// Without memory for the answer itself, its model and its record, there is none: 23 of a thousand
// requests for a table, all of which are refused where sweeps are full.
enum { MOST_WITHOUT = 24, TRIES = 16 };

// One request is refused after the first refinement, here or there: in memory the answer so far is
// returned, …
static void memory_is_refused_late(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    for (size_t k = 0; k < n_kinds(); k++) {
        psi_trajectories *data = collect(ctx, &KINDS[k]);
        test_faults faults = {0};
        told to = {.faults = &faults};
        psi_cluster_options how = quick(&to);
        psi_run *run;
        psi_ctx *counting = test_faulty_ctx(&faults, 1);
        assert_ok(counting, psi_cluster(counting, data, &how, &run));
        psi_run_free(counting, run);
        psi_ctx_free(counting);
        const long first = to.allocations + 1, last = faults.count;
        const bool full = getenv("PSIFOLD_FULL_SWEEPS"), every = k == 0 && full;
        // images take half of a second each
        const size_t usual = k == N_KINDS - 1 && !full ? TRIES / 2 : TRIES;
        const long tries = (long)test_repetitions(k == 0 ? 4 * TRIES : usual);
        const long step = every ? 1 : 1 + (last - first) / tries;
        long tried = 0, kept = 0;
        for (long at = first; at <= last; at += step) {
            faults = (test_faults){.fail_at = at};
            psi_ctx *failing = test_faulty_ctx(&faults, 1);
            const psi_status status = psi_cluster(failing, data, &how, &run);
            if (status != PSI_ENOMEM) assert_ok(failing, status);
            // features that cannot be learnt are no failure: vectors as they are answer all the
            // same
            if (status == PSI_OK && run->failure) assert_whole(run);
            kept += status == PSI_OK;
            tried++;
            psi_run_free(failing, run);
            psi_ctx_free(failing);
            assert_int_equal(faults.live, 0);
        }
        print_message("%s: %ld of %ld kept\n", KINDS[k].task, kept, tried);
        assert_true(tried >= tries / 2 && tried - kept <= (every ? MOST_WITHOUT : tried / 8));
        free(to.labels);
        psi_trajectories_free(ctx, data);
    }
    psi_ctx_free(ctx);
}

// … and in a folder the run waits with what it has, to be resumed to the same end.
static void memory_is_refused_late_in_a_folder(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    for (size_t k = 0; k < n_kinds(); k++) {
        char *room = test_folder(), *folder = strdup(test_path(room, "run"));
        psi_trajectories *data = collect(ctx, &KINDS[k]);
        test_faults faults = {0};
        told to = {.faults = &faults};
        psi_cluster_options how = quick(&to);
        psi_run *end, *run;
        psi_ctx *counting = test_faulty_ctx(&faults, 1);
        assert_ok(counting, test_cluster_into(counting, folder, PSI_FOLDER_NEW, data, &how, &end));
        const long first = to.allocations + 40, last = faults.count; // 40: its labels are written
        for (size_t i = 1; i <= test_repetitions(4); i++) {
            test_folder_free(room);
            room = test_folder();
            free(folder);
            folder = strdup(test_path(room, "run"));
            test_faults one = {.fail_at = first + (last - first) * (long)i / 5};
            psi_ctx *failing = test_faulty_ctx(&one, 1);
            assert_status(failing,
                          test_cluster_into(failing, folder, PSI_FOLDER_NEW, data, &how, &run),
                          PSI_ENOMEM);
            psi_ctx_free(failing);
            assert_ok(ctx, psi_run_load_so_far(ctx, folder, &run));
            assert_true(!run->finished && run->labels && run->n_steps >= 1);
            psi_run_free(ctx, run);
            assert_ok(ctx, test_cluster_into(ctx, folder, PSI_FOLDER_RESUME, data, &how, &run));
            assert_null(run->failure);
            assert_int_equal(run->n_latent, end->n_latent);
            assert_memory_equal(run->labels, end->labels,
                                end->n_observations * sizeof *end->labels);
            psi_run_free(ctx, run);
        }
        psi_run_free(counting, end);
        psi_ctx_free(counting);
        free(to.labels);
        psi_trajectories_free(ctx, data);
        free(folder);
        test_folder_free(room);
    }
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_later_refinement_fails),
        cmocka_unit_test(a_network_fails),
        cmocka_unit_test(who_watches_has_the_last_word),
        cmocka_unit_test(memory_is_refused_late),
        cmocka_unit_test(memory_is_refused_late_in_a_folder),
    };
    return cmocka_run_group_tests_name("cluster/late", tests, NULL, NULL);
}
