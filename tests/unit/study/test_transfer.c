// The transfer study on a lock of four patterns: where its representation comes from, which trials
// it plays, and what is played again.
#include "support/collect.h"
#include "support/runs.h"
#include "support/studies.h"
#include "support/support.h"
#include "support/truth.h"

#include "base/file.h"
#include "study/transfer.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static psi_study_options small(const char *output, test_listener *all)
{
    psi_study_options options = test_study_options(output, all);
    options.digits_per_dial = 2;
    options.seeds = 1;
    options.agent_episodes = 1;
    return options;
}

// A run of the lock with its true latent states, whose network has hardly learnt anything.
static void make_run(psi_ctx *ctx, const char *folder, uint64_t seed)
{
    static const char *const TASK[] = {"digits-per-dial", "2", "images-per-digit", "4", NULL};
    psi_net *net;
    psi_trajectories *data = test_collect(ctx, "combination-lock", 5, 1, TASK);
    assert_ok(ctx, test_truth_net(ctx, data, PSI_NET_CNN, 1, seed, &net));
    assert_ok(ctx, test_truth_run(ctx, data, net, folder));
    psi_trajectories_free(ctx, data);
}

static int64_t written_at(const char *path)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    return (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec;
}

static const char *file_of(const char *folder, size_t task, size_t agent, size_t seed,
                           const char *file)
{
    char name[256];
    snprintf(name, sizeof name, "runs/%s/%s/seed-%zu/%s", STUDY_TRANSFER_TASK_NAMES[task],
             psi_agent_kind_name((psi_agent_kind)agent), seed, file);
    return test_path(folder, name);
}

// Every agent in every task, but for pretrained in the task that it is pretrained on; and what it
// starts from is the network that dqn learnt there, and nobody else's is kept.
static void check_trials(psi_ctx *ctx, const char *folder)
{
    const json_t *start = NULL;
    json_t *trials[TRANSFER_TASKS] = {NULL};
    for (size_t task = 0; task < TRANSFER_TASKS; task++) {
        for (size_t agent = 0; agent < TRANSFER_AGENTS; agent++) {
            const bool there = task > 0 || agent != PSI_AGENT_PRETRAINED;
            const bool kept = task == 0 && agent == PSI_AGENT_DQN;
            assert_int_equal(access(file_of(folder, task, agent, 0, "result.json"), F_OK),
                             there ? 0 : -1);
            assert_int_equal(access(file_of(folder, task, agent, 0, "network.safetensors"), F_OK),
                             kept ? 0 : -1);
        }
        if (task == 0) continue;
        assert_ok(ctx,
                  base_json_load(ctx, file_of(folder, task, PSI_AGENT_PRETRAINED, 0, "trial.json"),
                                 1 << 20, &trials[task]));
        const json_t *from = json_object_get(trials[task], "start");
        assert_non_null(strstr(json_string_value(json_object_get(from, "task")), "\"drawn\""));
        if (start) assert_true(json_equal(from, start));
        start = from;
        // digits that nothing was trained on
        const char *words = json_string_value(json_object_get(trials[task], "task"));
        assert_non_null(strstr(words, "\"digits\":\"drawn-test\""));
        assert_non_null(strstr(words, "\"digits-per-dial\":\"2\""));
    }
    for (size_t task = 1; task < TRANSFER_TASKS; task++) json_decref(trials[task]);
}

static void check_results(psi_ctx *ctx, const char *folder, const char *run)
{
    json_t *results = test_load(ctx, folder, "results.json"),
           *manifest = test_load(ctx, folder, "manifest.json");
    const json_t *optimum = json_object_get(results, "optimum");
    // two dials have to be turned once; with swapped digits one of them twice
    assert_true(test_number(optimum, "train") == 0.5);
    assert_true(fabs(test_number(optimum, "swap-digits") - 1.0 / 3) < 1e-12);
    assert_true(test_number(results, "latent_states") == 4);
    assert_true(test_number(results, "update_every") == 4);
    assert_true(test_number(results, "digits_per_dial") == 2);
    assert_string_equal(json_string_value(json_object_get(results, "representation")), run);
    assert_string_equal(json_string_value(json_object_get(results, "net")), "cnn");
    assert_non_null(strstr(json_string_value(json_object_get(results, "what")), "very few seeds"));
    assert_string_equal(json_string_value(json_object_get(manifest, "digits")), "drawn");
    assert_true(test_number(manifest, "latent_states") == 4);
    assert_true(test_number(manifest, "seeds") == 1 && test_number(manifest, "episodes") == 1);
    json_decref(manifest);
    json_decref(results);
}

// What was lost is played again and comes to the same; all else is read. What is asked for
// otherwise is not taken for it.
static void what_is_kept_is_not_played_again(void **state)
{
    (void)state;
    if (!psi_figures_possible()) skip();
    psi_ctx *ctx = test_ctx(1);
    char *output = test_folder(), folder[1024], run[1100], kept[1200], lost[1200];
    test_listener all = {.text = ""};
    psi_study_options options = small(output, &all);
    snprintf(run, sizeof run, "%s/somewhere", output);
    snprintf(folder, sizeof folder, "%s/transfer/quick", output);
    make_run(ctx, run, 1);
    options.run = run;
    test_study_run(ctx, "transfer", &options);
    check_trials(ctx, folder);
    check_results(ctx, folder, run);
    char *curves = test_text(ctx, folder, "curves.csv");

    snprintf(kept, sizeof kept, "%s", file_of(folder, 0, PSI_AGENT_DQN, 0, "result.json"));
    snprintf(lost, sizeof lost, "%s", file_of(folder, 1, PSI_AGENT_PRETRAINED, 0, "result.json"));
    const int64_t before = written_at(kept);
    assert_int_equal(unlink(lost), 0);
    assert_int_equal(unlink(test_path(folder, "results.json")), 0);
    test_study_run(ctx, "transfer", &options);
    assert_int_equal(written_at(kept), before);
    assert_int_equal(access(lost, F_OK), 0);
    test_assert_text(ctx, folder, "curves.csv", curves);

    // where only results and curves are left, nothing is played again; and where a pretrained one
    // is missing, what it starts from is learnt again first
    char network[1200];
    snprintf(network, sizeof network, "%s",
             file_of(folder, 0, PSI_AGENT_DQN, 0, "network.safetensors"));
    assert_int_equal(unlink(network), 0);
    assert_int_equal(unlink(file_of(folder, 0, PSI_AGENT_DQN, 0, "trial.json")), 0);
    assert_int_equal(unlink(test_path(folder, "results.json")), 0);
    test_study_run(ctx, "transfer", &options);
    assert_int_equal(written_at(kept), before);
    assert_int_not_equal(access(network, F_OK), 0);
    assert_int_equal(unlink(lost), 0);
    assert_int_equal(unlink(test_path(folder, "results.json")), 0);
    test_study_run(ctx, "transfer", &options);
    assert_int_equal(access(network, F_OK), 0);
    assert_int_equal(access(lost, F_OK), 0);
    test_assert_text(ctx, folder, "curves.csv", curves);

    // the network of the run is enough, which stays with the study
    char alone[1200];
    snprintf(alone, sizeof alone, "%s/representation.safetensors", folder);
    options.run = NULL;
    assert_int_equal(unlink(test_path(folder, "results.json")), 0);
    assert_int_equal(unlink(file_of(folder, 1, PSI_AGENT_PLANNER, 0, "result.json")), 0);
    test_study_run(ctx, "transfer", &options);
    test_assert_text(ctx, folder, "curves.csv", curves);
    check_results(ctx, folder, alone);
    options.run = run;

    assert_int_equal(unlink(test_path(folder, "results.json")), 0);
    options.agent_episodes = 2;
    test_study_refused(ctx, "transfer", &options, PSI_EUSAGE, "with another episodes");
    options.agent_episodes = 1;
    make_run(ctx, run, 2); // another network, for those that look through it
    test_study_refused(ctx, "transfer", &options, PSI_EUSAGE, "with another representation");
    test_assert_error_says(ctx, "train/reward-predictive/seed-0");
    base_free(ctx, curves);
    test_folder_free(output);
    psi_ctx_free(ctx);
}

// ---- the representation -------------------------------------------------------------------------

static void put_results(psi_ctx *ctx, const char *folder, const char *digits, int per_dial)
{
    json_t *results = json_pack("{s:s, s:i}", "digits", digits, "digits_per_dial", per_dial);
    assert_ok(ctx, base_json_save(ctx, test_path(folder, "results.json"), results));
    json_decref(results);
}

// Calls the study until it says which representation it takes, or that it has to make one, or until
// it has collected data for that.
static void find(const char *output, const char *digits, const char *until, const char *words,
                 const char *other)
{
    psi_ctx *ctx = test_ctx(1);
    test_listener all = {.text = "", .cancel = ctx, .when = until};
    psi_study_options options = small(output, &all);
    options.digits = digits;
    options.episodes = 3;
    test_study_refused(ctx, "transfer", &options, PSI_ECANCELLED, "stopped on request");
    test_assert_heard(&all, words);
    if (other) assert_null(strstr(all.text, other));
    psi_ctx_free(ctx);
}

static void the_lock_lends_its_network_if_it_is_the_same(void **state)
{
    (void)state;
    if (!psi_figures_possible()) skip();
    psi_ctx *ctx = test_ctx(1);
    char *output = test_folder(), lock[1024], run[1100], words[1200], own[1100];
    snprintf(lock, sizeof lock, "%s/combination-lock/quick", output);
    snprintf(run, sizeof run, "%s/run", lock);
    snprintf(own, sizeof own, "%s/transfer/quick/representation", output);
    assert_ok(ctx, base_make_folders(ctx, lock));
    find(output, "drawn", "data: ", "no representation yet: clustering 3 traj", "other digits");
    make_run(ctx, run, 1);
    snprintf(words, sizeof words, "representation: %s, 4 latent states", run);
    find(output, "drawn", "representation", words, "other digits"); // not looked at yet
    put_results(ctx, lock, "drawn", 2);
    find(output, "drawn", "representation", words, "other digits");
    find(output, "auto", "representation", words, "other digits"); // the lock's are taken
    put_results(ctx, lock, "drawn", 3);
    find(output, "drawn", "representation", "has other digits: its run is not taken", words);
    put_results(ctx, lock, "mnist", 2);
    find(output, "drawn", "representation", "no representation yet: clustering", words);

    // one that the study made itself comes first
    put_results(ctx, lock, "drawn", 2);
    assert_int_equal(rename(run, own), 0);
    make_run(ctx, run, 1);
    snprintf(words, sizeof words, "representation: %s, 4 latent states", own);
    find(output, "drawn", "representation", words, NULL);
    test_folder_free(output);
    psi_ctx_free(ctx);
}

static void a_run_without_a_network_is_no_representation(void **state)
{
    (void)state;
    if (!psi_figures_possible()) skip();
    psi_ctx *ctx = test_ctx(1);
    char *output = test_folder(), run[1100];
    test_listener all = {.text = ""};
    psi_study_options options = small(output, &all);
    const test_run_spec spec = {.n_latent = 3,
                                .n_actions = 2,
                                .episodes = 3,
                                .length = 4,
                                .dtype = PSI_INT64,
                                .shape = {1, {1}},
                                .refinements = 1};
    snprintf(run, sizeof run, "%s/run", output);
    options.run = run;
    test_study_refused(ctx, "transfer", &options, PSI_EIO, run);
    test_made_up_run(ctx, output, &spec);
    test_study_refused(ctx, "transfer", &options, PSI_EMISSING, "has no representation network");
    assert_int_not_equal(access(test_path(output, "transfer/quick/runs"), F_OK), 0);
    test_folder_free(output);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_kept_is_not_played_again),
        cmocka_unit_test(the_lock_lends_its_network_if_it_is_the_same),
        cmocka_unit_test(a_run_without_a_network_is_no_representation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
