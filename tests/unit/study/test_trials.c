// Trials: the same on any number of threads, kept and read again, and never taken for another one.
#include "support/collect.h"
#include "support/support.h"
#include "support/truth.h"

#include "base/context.h"
#include "base/file.h"
#include "base/json.h"
#include "study/trial.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TRIALS = 6 };

static psi_task small_task(psi_ctx *ctx)
{
    psi_task task;
    assert_ok(ctx, psi_task_defaults(ctx, "column-world", NULL, &task));
    assert_ok(ctx, psi_task_set(ctx, &task, "max-steps", "60"));
    assert_ok(ctx, psi_task_check(ctx, &task));
    return task;
}

// A planner over the true latent states, which needs no network.
static psi_trial planner(psi_ctx *ctx, uint64_t seed)
{
    psi_trial trial = {.task = small_task(ctx),
                       .options = psi_agent_defaults(PSI_AGENT_PLANNER),
                       .episodes = 8,
                       .evaluation = 2};
    trial.options.view = PSI_VIEW_TRUTH;
    trial.options.exploration_episodes = 4; // so that seeds make a difference
    trial.options.seed = seed;
    return trial;
}

static void assert_same_scores(const psi_trial *a, const psi_trial *b)
{
    assert_true(a->finished && b->finished);
    assert_int_equal(a->score.steps, b->score.steps);
    assert_true(a->score.reward == b->score.reward);
    assert_true(a->final.reward_per_step == b->final.reward_per_step);
    assert_int_equal(a->n_curve, b->n_curve);
    for (size_t e = 0; e < a->n_curve; e++) {
        assert_int_equal(a->curve[e].steps, b->curve[e].steps);
    }
}

static void results_do_not_depend_on_threads(void **state)
{
    (void)state;
    psi_trial all[3][TRIALS];
    psi_ctx *ctx[3];
    for (int i = 0; i < 3; i++) {
        ctx[i] = test_ctx(i == 0 ? 1 : 3);
        for (size_t t = 0; t < TRIALS; t++) all[i][t] = planner(ctx[i], t);
        assert_ok(ctx[i], psi_trials_run(ctx[i], all[i], TRIALS, i == 2));
        for (size_t t = 0; t < TRIALS; t++) assert_same_scores(&all[0][t], &all[i][t]);
    }
    assert_int_not_equal(all[0][0].score.steps, all[0][1].score.steps); // seeds differ
    for (int i = 0; i < 3; i++) {
        psi_trials_free(ctx[i], all[i], TRIALS);
        psi_ctx_free(ctx[i]);
    }
}

// Those that look through one network are played together: what comes out is what each does alone.
static void other_agents_of_a_batch_change_nothing(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_trajectories *data = test_collect(ctx, "point-column-world", 60, 1, NULL);
    psi_net *net;
    assert_ok(ctx, test_truth_net(ctx, data, PSI_NET_MLP, 30, 3, &net));
    psi_trial together[4], alone[4];
    psi_task task;
    assert_ok(ctx, psi_task_defaults(ctx, "point-column-world", NULL, &task));
    task.max_steps = 60;
    assert_ok(ctx, psi_task_check(ctx, &task));
    for (size_t t = 0; t < 4; t++) {
        alone[t] = (psi_trial){.task = task,
                               .options = psi_agent_defaults(PSI_AGENT_PLANNER),
                               .episodes = 5,
                               .evaluation = 2};
        alone[t].options.representation = net;
        alone[t].options.seed = t;
        together[t] = alone[t];
    }
    assert_ok(ctx, psi_trials_run(ctx, together, 4, false));
    for (size_t t = 0; t < 4; t++) {
        assert_ok(ctx, psi_trials_run(ctx, &alone[t], 1, false));
        assert_same_scores(&together[t], &alone[t]);
    }
    psi_trials_free(ctx, together, 4);
    psi_trials_free(ctx, alone, 4);
    psi_net_free(ctx, net);
    psi_trajectories_free(ctx, data);
    psi_ctx_free(ctx);
}

static int64_t written_at(const char *path)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    return (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec;
}

static void a_result_is_kept_and_read_again(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder(), text[PSI_TRIAL_JSON_SIZE];
    psi_trial first = planner(ctx, 3), second = planner(ctx, 3);
    assert_ok(ctx, psi_trial_keep_in(ctx, &first, test_path(folder, "trial")));
    assert_ok(ctx, psi_trial_keep_in(ctx, &second, test_path(folder, "trial")));
    assert_ok(ctx, psi_trials_run(ctx, &first, 1, false));
    static const char *const files[] = {"trial.json", "result.json", "curve.csv",
                                        "events.out.tfevents.psifold"};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(access(test_path(test_path(folder, "trial"), files[i]), F_OK), 0);
    }
    assert_int_not_equal(access(test_path(folder, "trial/checkpoint"), F_OK), 0);
    const int64_t before = written_at(test_path(folder, "trial/result.json"));
    assert_ok(ctx, psi_trials_run(ctx, &second, 1, false));
    assert_int_equal(written_at(test_path(folder, "trial/result.json")), before);
    assert_same_scores(&first, &second);
    // the same as JSON
    json_t *json;
    assert_ok(ctx, psi_trial_json(ctx, &second, text));
    assert_ok(ctx, base_json_parse(ctx, "scores", text, strlen(text), &json));
    assert_int_equal(json_integer_value(json_object_get(json, "steps")), first.score.steps);
    assert_int_equal(json_integer_value(json_object_get(json, "seed")), 3);
    assert_true(json_is_object(json_object_get(json, "final")));
    json_decref(json);
    psi_trials_free(ctx, &first, 1);
    psi_trials_free(ctx, &second, 1);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

// Everything that decides a result is part of its key, whether it is finished or only begun.
static void another_trial_is_refused(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder();
    psi_task truth;
    assert_ok(ctx, psi_task_defaults(ctx, "column-world", "continuing", &truth));
    assert_ok(ctx, psi_task_check(ctx, &truth));
    psi_trial first = planner(ctx, 3);
    assert_ok(ctx, psi_trial_keep_in(ctx, &first, test_path(folder, "trial")));
    assert_ok(ctx, psi_trials_run(ctx, &first, 1, false));
    for (int begun = 0; begun < 2; begun++) {
        static const char *const differs[] = {"gamma",    "evaluation", "episodes",
                                              "truth_of", "task",       "seed",
                                              "view",     "explore",    "best_value"};
        if (begun) assert_int_equal(unlink(test_path(folder, "trial/result.json")), 0);
        for (size_t i = 0; i < sizeof differs / sizeof differs[0]; i++) {
            psi_trial other = planner(ctx, 3);
            char sentence[64];
            assert_ok(ctx, psi_trial_keep_in(ctx, &other, test_path(folder, "trial")));
            switch (i) {
            case 0: other.options.gamma = 0.5; break;
            case 1: other.evaluation = 3; break;
            case 2: other.episodes = 9; break;
            case 3: other.options.truth_of = &truth; break;
            case 4: other.task.max_steps = 61; break;
            case 5: other.options.seed = 4; break;
            case 6: other.options.view = PSI_VIEW_AUTO; break;
            case 7: other.options.exploration_episodes = 5; break;
            default: other.options.best_value = 2.0; break;
            }
            snprintf(sentence, sizeof sentence, "with another %s", differs[i]);
            assert_status(ctx, psi_trials_run(ctx, &other, 1, false), PSI_EUSAGE);
            if (i != 6) test_assert_error_says(ctx, sentence); // two things differ then
            psi_trials_free(ctx, &other, 1);
        }
    }
    psi_trials_free(ctx, &first, 1);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

// Leaves what a process that was stopped after some episodes would have: what the trial is, and a
// checkpoint.
static void stop_after(psi_ctx *ctx, const psi_trial *trial, size_t episodes)
{
    psi_agent *agent;
    char *checkpoint;
    assert_ok(ctx, study_trial_claim(ctx, trial));
    assert_ok(ctx, study_trial_file(ctx, trial, "checkpoint", &checkpoint));
    assert_ok(ctx, psi_agent_new(ctx, &trial->task, &trial->options, &agent));
    assert_ok(ctx, psi_agent_play(ctx, agent, episodes));
    assert_ok(ctx, psi_agent_save(ctx, agent, checkpoint));
    psi_agent_free(ctx, agent);
    base_free(ctx, checkpoint);
}

static void assert_same_file(psi_ctx *ctx, const char *a, const char *b)
{
    char *first, *second;
    size_t n_first, n_second;
    assert_ok(ctx, base_read_file(ctx, a, 1 << 20, &first, &n_first));
    assert_ok(ctx, base_read_file(ctx, b, 1 << 20, &second, &n_second));
    assert_int_equal(n_first, n_second);
    assert_memory_equal(first, second, n_first);
    base_free(ctx, first);
    base_free(ctx, second);
}

// From a checkpoint it goes on, and comes to what it comes to at one go. A checkpoint that cannot
// be read is not passed over.
static void a_trial_goes_on_from_its_checkpoint(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder(), damaged[1024];
    static const char *const names[] = {"whole", "stopped", "damaged"};
    psi_trial trials[3];
    for (size_t i = 0; i < 3; i++) {
        trials[i] = planner(ctx, 3);
        assert_ok(ctx, psi_trial_keep_in(ctx, &trials[i], test_path(folder, names[i])));
        if (i > 0) stop_after(ctx, &trials[i], 5);
    }
    assert_ok(ctx, psi_trials_run(ctx, trials, 2, false));
    assert_same_scores(&trials[0], &trials[1]);
    assert_same_file(ctx, test_path(folder, "whole/curve.csv"),
                     test_path(folder, "stopped/curve.csv"));
    assert_int_not_equal(access(test_path(folder, "stopped/checkpoint"), F_OK), 0);
    snprintf(damaged, sizeof damaged, "%s/damaged/checkpoint", folder);
    base_remove(damaged);
    assert_int_equal(mkdir(damaged, 0777), 0);
    const psi_status status = psi_trials_run(ctx, &trials[2], 1, false);
    assert_true(status == PSI_EFORMAT || status == PSI_EIO);
    test_assert_error_says(ctx, "damaged/checkpoint");
    assert_false(trials[2].finished);
    psi_trials_free(ctx, trials, 3);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

static void one_that_is_stopped_says_how_to_go_on(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder();
    psi_trial trial = planner(ctx, 3);
    psi_cancel(ctx);
    assert_status(ctx, psi_trials_run(ctx, &trial, 1, false), PSI_ECANCELLED);
    assert_null(strstr(psi_error(ctx)->message, "goes on")); // it was kept nowhere
    psi_ctx_free(ctx);
    ctx = test_ctx(1);
    trial = planner(ctx, 3);
    assert_ok(ctx, psi_trial_keep_in(ctx, &trial, test_path(folder, "trial")));
    psi_cancel(ctx);
    assert_status(ctx, psi_trials_run(ctx, &trial, 1, false), PSI_ECANCELLED);
    test_assert_error_says(ctx, "the same command goes on from here");
    assert_false(trial.finished);
    assert_int_not_equal(access(test_path(folder, "trial/result.json"), F_OK), 0);
    psi_trials_free(ctx, &trial, 1);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

// A pretrained agent starts from the network of a file, or learns the first task here and now, with
// the same seed: that is the same network, so it comes to the same, and to something else than one
// that starts from random weights.
static void pretraining_from_a_file_or_now_is_the_same(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder(), start[1024];
    psi_trial trials[4];
    for (size_t i = 0; i < 4; i++) {
        const psi_agent_kind kind = i == 0 || i == 3 ? PSI_AGENT_DQN : PSI_AGENT_PRETRAINED;
        trials[i] = (psi_trial){.task = small_task(ctx),
                                .training = small_task(ctx),
                                .options = psi_agent_defaults(kind),
                                .episodes = 4,
                                .keep_network = true};
        trials[i].options.hidden = 8;
        trials[i].options.batch = 8;
        trials[i].options.learning_starts = 8;
        trials[i].options.exploration_episodes = 2;
        if (i > 0) trials[i].task.max_steps = 40;
        assert_ok(ctx, psi_task_check(ctx, &trials[i].task));
    }
    snprintf(start, sizeof start, "%s/dqn/network.safetensors", folder);
    assert_ok(ctx, psi_trial_keep_in(ctx, &trials[0], test_path(folder, "dqn")));
    assert_ok(ctx, psi_trials_run(ctx, trials, 1, false));
    assert_true(trials[0].updates > 0);
    trials[1].start_file = start;
    assert_ok(ctx, psi_trials_run(ctx, trials + 1, 3, false));
    assert_same_scores(&trials[1], &trials[2]);
    assert_true(trials[1].curve[0].loss == trials[2].curve[0].loss);
    assert_true(trials[1].curve[0].loss != trials[3].curve[0].loss);

    // from another trial: its result can be read when the network is there no more, and where one
    // is needed, that trial is run again
    psi_trial next = trials[1], again = trials[1], source = trials[0];
    next.start_file = again.start_file = NULL;
    next.source = again.source = &trials[0];
    next.finished = again.finished = source.finished = false;
    next.folder = again.folder = NULL;
    next.curve = again.curve = source.curve = NULL;
    source.folder = NULL;
    assert_ok(ctx, psi_trial_keep_in(ctx, &next, test_path(folder, "next")));
    assert_ok(ctx, psi_trial_keep_in(ctx, &again, test_path(folder, "next")));
    assert_ok(ctx, psi_trial_keep_in(ctx, &source, test_path(folder, "dqn")));
    assert_ok(ctx, psi_trials_run(ctx, &next, 1, false));
    assert_same_scores(&trials[1], &next);
    assert_int_equal(unlink(start), 0);
    assert_ok(ctx, psi_trials_run(ctx, &again, 1, false));
    assert_same_scores(&trials[1], &again);
    assert_int_not_equal(access(start, F_OK), 0);
    source.needs_network = true;
    assert_ok(ctx, psi_trials_run(ctx, &source, 1, false));
    assert_same_scores(&trials[0], &source);
    assert_int_equal(access(start, F_OK), 0);

    // another source is another trial
    trials[0].options.gamma = 0.5;
    psi_trials_free(ctx, &again, 1);
    again.finished = false;
    again.folder = NULL;
    again.curve = NULL;
    assert_ok(ctx, psi_trial_keep_in(ctx, &again, test_path(folder, "next")));
    assert_status(ctx, psi_trials_run(ctx, &again, 1, false), PSI_EUSAGE);
    test_assert_error_says(ctx, "with another gamma");
    psi_trials_free(ctx, &next, 1);
    psi_trials_free(ctx, &again, 1);
    psi_trials_free(ctx, &source, 1);
    psi_trials_free(ctx, trials, 4);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

// A result that was written before an option existed is one with the option as it is by default.
static void options_may_come_later(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder(), path[1024];
    for (int usual = 0; usual < 2; usual++) {
        psi_trial first = planner(ctx, 3), second = planner(ctx, 3);
        json_t *kept;
        assert_ok(ctx, psi_trial_keep_in(ctx, &first, test_path(folder, usual ? "a" : "b")));
        assert_ok(ctx, psi_trial_keep_in(ctx, &second, test_path(folder, usual ? "a" : "b")));
        if (!usual) first.options.best_value = second.options.best_value = 2;
        assert_ok(ctx, psi_trials_run(ctx, &first, 1, false));
        snprintf(path, sizeof path, "%s/result.json", first.folder);
        assert_ok(ctx, base_json_load(ctx, path, 1 << 20, &kept));
        json_t *options = json_object_get(json_object_get(kept, "trial"), "options");
        assert_int_equal(json_object_del(options, "best_value"), 0);
        assert_ok(ctx, base_json_save(ctx, path, kept));
        if (usual) {
            assert_ok(ctx, psi_trials_run(ctx, &second, 1, false));
            assert_same_scores(&first, &second);
        } else {
            assert_status(ctx, psi_trials_run(ctx, &second, 1, false), PSI_EUSAGE);
            test_assert_error_says(ctx, "with another best_value");
        }
        json_decref(kept);
        psi_trials_free(ctx, &first, 1);
        psi_trials_free(ctx, &second, 1);
    }
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

typedef struct fault_case {
    psi_task task;
} fault_case;

static psi_status run_two(psi_ctx *ctx, void *argument)
{
    const fault_case *of = argument;
    psi_trial trials[2];
    for (size_t i = 0; i < 2; i++) {
        trials[i] = (psi_trial){
            .task = of->task, .options = psi_agent_defaults(PSI_AGENT_RANDOM), .episodes = 1};
        trials[i].options.seed = i;
    }
    const psi_status status = psi_trials_run(ctx, trials, 2, true);
    psi_trials_free(ctx, trials, 2);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    fault_case of = {small_task(ctx)};
    assert_true(test_fault_sweep(run_two, &of) > 5);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_do_not_depend_on_threads),
        cmocka_unit_test(other_agents_of_a_batch_change_nothing),
        cmocka_unit_test(a_result_is_kept_and_read_again),
        cmocka_unit_test(another_trial_is_refused),
        cmocka_unit_test(a_trial_goes_on_from_its_checkpoint),
        cmocka_unit_test(one_that_is_stopped_says_how_to_go_on),
        cmocka_unit_test(pretraining_from_a_file_or_now_is_the_same),
        cmocka_unit_test(options_may_come_later),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
