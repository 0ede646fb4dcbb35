// A disk that is full while a study writes: there is a status with a sentence, what is there is
// whole, nothing temporary is left, and when there is room again it comes to the same. Every
// attempt is a process of its own, whose Nth call that writes fails (support/fail_write.c is linked
// in).
#include "support/studies.h"
#include "support/support.h"

#include "base/file.h"
#include "study/transfer.h"

#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef psi_status attempt(psi_ctx *ctx, const char *folder);

enum { NO_SENTENCE = 100 };

// The status of an attempt whose call fail_at, and if it stays full all after it, fails; 0: none
// does, and their number goes into the file count.
static psi_status in_child(attempt *work, const char *folder, long fail_at, bool stays_full,
                           const char *count)
{
    int code;
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char number[32];
        snprintf(number, sizeof number, "%ld", fail_at);
        if (fail_at) setenv("FAIL_WRITE_AT", number, 1);
        if (stays_full) setenv("FAIL_WRITE_ON", "1", 1);
        if (count) setenv("FAIL_WRITE_COUNT", count, 1);
        psi_ctx *ctx = test_ctx(1);
        const psi_status status = work(ctx, folder);
        const bool silent = status != PSI_OK && psi_error(ctx)->message[0] == '\0';
        psi_ctx_free(ctx);
        exit(silent ? NO_SENTENCE : (int)status);
    }
    assert_int_equal(waitpid(child, &code, 0), child);
    if (!WIFEXITED(code)) fail_msg("call %ld: it died of signal %d", fail_at, WTERMSIG(code));
    return (psi_status)WEXITSTATUS(code);
}

// How many calls write, if none fails.
static long count_calls(attempt *work, const char *folder)
{
    char path[1100];
    long calls = 0;
    snprintf(path, sizeof path, "%s-count", folder);
    assert_int_equal(in_child(work, folder, 0, false, path), PSI_OK);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld", &calls), 1);
    fclose(file);
    assert_int_equal(remove(path), 0);
    return calls;
}

static int refuse_temporary(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info, (void)kind, (void)at;
    if (strstr(path, ".tmp-")) fail_msg("%s was left", path);
    return 0;
}

static void assert_nothing_temporary(const char *folder)
{
    if (access(folder, F_OK) != 0) return;
    assert_int_equal(nftw(folder, refuse_temporary, 8, FTW_PHYS), 0);
}

// A file is not there, or it is the one that was written with room enough.
static void assert_whole_or_absent(psi_ctx *ctx, const char *folder, const char *name,
                                   const char *whole)
{
    char *expected = test_text(ctx, whole, name);
    if (access(test_path(folder, name), F_OK) == 0) test_assert_text(ctx, folder, name, expected);
    base_free(ctx, expected);
}

// Lets every third call fail, alternately for once and for good.
static void sweep(attempt *work, const char *const *names, long least)
{
    psi_ctx *ctx = test_ctx(1);
    char *parent = test_folder(), whole[1024], folder[1024];
    snprintf(whole, sizeof whole, "%s/whole", parent);
    const long calls = count_calls(work, whole);
    assert_true(calls >= least);
    for (long n = 1; n <= calls; n += 3) {
        snprintf(folder, sizeof folder, "%s/%ld", parent, n);
        assert_int_equal(in_child(work, folder, n, n % 2 == 0, NULL), PSI_EIO);
        assert_nothing_temporary(folder);
        for (size_t i = 0; names[i]; i++) assert_whole_or_absent(ctx, folder, names[i], whole);
        assert_int_equal(in_child(work, folder, 0, false, NULL), PSI_OK);
        for (size_t i = 0; names[i]; i++) {
            char *expected = test_text(ctx, whole, names[i]);
            test_assert_text(ctx, folder, names[i], expected);
            base_free(ctx, expected);
        }
    }
    test_folder_free(parent);
    psi_ctx_free(ctx);
}

// ---- a trial ------------------------------------------------------------------------------------

static psi_status run_trial(psi_ctx *ctx, const char *folder)
{
    psi_trial trial = {.options = psi_agent_defaults(PSI_AGENT_TABULAR), .episodes = 3};
    psi_status status = psi_task_defaults(ctx, "column-world", NULL, &trial.task);
    if (status == PSI_OK) status = psi_task_check(ctx, &trial.task);
    if (status == PSI_OK) status = psi_trial_keep_in(ctx, &trial, folder);
    if (status == PSI_OK) status = psi_trials_run(ctx, &trial, 1, false);
    psi_trials_free(ctx, &trial, 1);
    return status;
}

static void a_trial_is_whole_or_not_there(void **state)
{
    (void)state;
    static const char *const names[] = {"trial.json", "curve.csv", NULL};
    sweep(run_trial, names, 8);
}

// ---- the report of transfer ---------------------------------------------------------------------

static psi_status report_transfer(psi_ctx *ctx, const char *folder)
{
    enum { N = TRANSFER_TASKS * TRANSFER_AGENTS };
    psi_agent_episode curve = {.steps = 4, .reward = 1.0};
    psi_trial trials[N];
    transfer_study transfer = {
        .seeds = 1, .episodes = 1, .representation = "run", .trials = trials};
    const psi_study_options options = psi_study_defaults();
    memset(trials, 0, sizeof trials);
    for (size_t task = 0; task < TRANSFER_TASKS; task++) {
        transfer.optimum[task].reward_per_step = 0.5;
        for (size_t agent = 0; agent < TRANSFER_AGENTS; agent++) {
            *transfer_trial(&transfer, task, agent, 0) =
                (psi_trial){.finished = true,
                            .task = {.preset = STUDY_TRANSFER_TASK_NAMES[task]},
                            .options = {.kind = (psi_agent_kind)agent},
                            .score = psi_agent_score_of(&curve, 1),
                            .curve = &curve,
                            .n_curve = 1};
        }
    }
    study of = test_study_begun(ctx, (char *)folder, &options);
    psi_status status = base_make_folders(ctx, folder);
    if (status == PSI_OK) status = study_transfer_report(&of, &transfer);
    json_decref(of.results);
    return status;
}

static void a_report_is_whole_or_not_there(void **state)
{
    (void)state;
    static const char *const names[] = {"scores.json", "curves.csv", NULL};
    sweep(report_transfer, names, 6);
}

// ---- a whole study ------------------------------------------------------------------------------

static psi_status run_study(psi_ctx *ctx, const char *folder)
{
    psi_study_options options = psi_study_defaults();
    psi_study_result made;
    options.output = folder;
    options.episodes = 20;
    const psi_status status = psi_study_run(ctx, "column-world", &options, &made);
    psi_study_result_free(ctx, &made);
    return status;
}

// All fits but the page, which comes after the results: it is made when there is room.
static void a_page_that_did_not_fit_is_made_later(void **state)
{
    (void)state;
    if (!psi_figures_possible()) skip();
    char *parent = test_folder(), whole[1024], folder[1024], page[1100], results[1100];
    snprintf(whole, sizeof whole, "%s/whole", parent);
    snprintf(folder, sizeof folder, "%s/full", parent);
    snprintf(page, sizeof page, "%s/column-world/quick/index.html", folder);
    snprintf(results, sizeof results, "%s/column-world/quick/results.json", folder);
    const long calls = count_calls(run_study, whole);
    assert_int_equal(in_child(run_study, folder, calls - 2, true, NULL), PSI_EIO);
    assert_nothing_temporary(folder);
    assert_int_equal(access(results, F_OK), 0);
    assert_int_not_equal(access(page, F_OK), 0);
    assert_int_equal(in_child(run_study, folder, 0, false, NULL), PSI_OK);
    assert_int_equal(access(page, F_OK), 0);
    test_folder_free(parent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trial_is_whole_or_not_there),
        cmocka_unit_test(a_report_is_whole_or_not_there),
        cmocka_unit_test(a_page_that_did_not_fit_is_made_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
