// The transfer study's files, table and figures, of trials that are made up so that every number is
// known.
#include "support/studies.h"
#include "support/support.h"

#include "study/transfer.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

enum { SEEDS = 2, EPISODES = 12, N = TRANSFER_TASKS * TRANSFER_AGENTS * SEEDS };

typedef struct made_up {
    transfer_study transfer;
    psi_trial trials[N];
    psi_agent_episode curves[N][EPISODES];
} made_up;

// An episode of agent a with seed s takes 10 (s + 1) steps and earns a + 1, but for the first, and
// random never earns anything. dqn diverged with seed 1 in swap-digits after two episodes, and had
// forgotten reversed-dial after seven with seed 0; pretrained did not take part in the training
// task.
static void make_up(made_up *of)
{
    *of = (made_up){.transfer = {.digits = "drawn",
                                 .net = PSI_NET_CNN,
                                 .representation = "somewhere/run",
                                 .seeds = SEEDS,
                                 .episodes = EPISODES,
                                 .trials = of->trials}};
    for (size_t task = 0; task < TRANSFER_TASKS; task++) {
        of->transfer.optimum[task].reward_per_step = 0.5 + 0.1 * (double)task;
        for (size_t agent = 0; agent < TRANSFER_AGENTS; agent++) {
            for (size_t s = 0; s < SEEDS; s++) {
                psi_trial *trial = transfer_trial(&of->transfer, task, agent, s);
                psi_agent_episode *curve = of->curves[trial - of->trials];
                if (task == 0 && agent == PSI_AGENT_PRETRAINED) continue;
                trial->task.preset = STUDY_TRANSFER_TASK_NAMES[task];
                trial->options.kind = (psi_agent_kind)agent;
                trial->options.seed = 7 + s;
                trial->finished = true;
                trial->diverged = task == 1 && agent == PSI_AGENT_DQN && s == 1;
                trial->n_curve = trial->diverged ? 2 : EPISODES;
                if (task == 2 && agent == PSI_AGENT_DQN && s == 0) trial->not_played = 5;
                trial->curve = curve;
                trial->seconds = 0.25;
                for (size_t e = 0; e < EPISODES; e++) {
                    curve[e].steps = 10 * (s + 1);
                    if (e > 0 && agent != PSI_AGENT_RANDOM) curve[e].reward = (double)(agent + 1);
                }
                curve[0].truncated = true;
                trial->score = psi_agent_score_of(curve, trial->n_curve);
                trial->final.reward_per_step = 0.125 * (double)agent;
            }
        }
    }
}

// Reward per step up to episode e with a seed, over at most ten episodes, the first of which earns
// nothing.
static double lately(size_t agent, size_t seed, size_t last)
{
    const size_t first = last < 10 ? 0 : last - 9, earning = last + 1 - (first == 0 ? 1 : first);
    return (double)((agent + 1) * earning) / (double)(10 * (seed + 1) * (last + 1 - first));
}

static void check_curves(psi_ctx *ctx, char *folder)
{
    static const char HEAD[] = "task,agent,seed,episode,steps,total_steps,reward,truncated\n"
                               "train,dqn,7,1,10,10,0,1\n"
                               "train,dqn,7,2,10,20,1,0\n";
    char *text = test_text(ctx, folder, "curves.csv");
    size_t lines = 0;
    assert_memory_equal(text, HEAD, sizeof HEAD - 1);
    for (const char *c = text; *c; c++) lines += *c == '\n';
    // a head; pretrained is missing once; the one that diverged has two episodes only
    assert_int_equal(lines, 1 + (N - SEEDS) * EPISODES - (EPISODES - 2));
    assert_non_null(strstr(text, "\nswap-digits,dqn,8,2,20,40,1,0\n"));
    assert_null(strstr(text, "swap-digits,dqn,8,3,"));
    assert_non_null(strstr(text, "\nleft-dial-broken,planner,8,12,20,240,4,0\n"));
    base_free(ctx, text);
}

static double score_in(const json_t *scores, const char *figure, const char *task,
                       const char *agent, size_t seed)
{
    const json_t *list =
        json_object_get(json_object_get(json_object_get(scores, figure), task), agent);
    assert_int_equal(json_array_size(list), SEEDS);
    return json_number_value(json_array_get(list, seed));
}

static void check_scores(psi_ctx *ctx, char *folder)
{
    json_t *scores = test_load(ctx, folder, "scores.json");
    // eleven of twelve episodes earn 4, with seed 1 in twice as many steps
    assert_true(fabs(score_in(scores, "reward_per_step", "train", "planner", 0) - 44.0 / 120) <
                1e-12);
    assert_true(fabs(score_in(scores, "reward_per_step", "train", "planner", 1) - 44.0 / 240) <
                1e-12);
    assert_true(score_in(scores, "steps", "swap-digits", "dqn", 1) == 40);
    assert_true(score_in(scores, "truncated", "swap-digits", "dqn", 1) == 1);
    assert_true(score_in(scores, "steps_to_first_solve", "reversed-dial", "dqn", 1) == 40);
    assert_true(score_in(scores, "final_reward_per_step", "train", "planner", 1) == 0.375);
    assert_true(score_in(scores, "seconds", "train", "tabular", 0) == 0.25);
    const json_t *random = json_object_get(
        json_object_get(json_object_get(scores, "steps_to_first_solve"), "train"), "random");
    assert_true(json_is_null(json_array_get(random, 0))); // never
    const json_t *bad =
        json_object_get(json_object_get(json_object_get(scores, "diverged"), "swap-digits"), "dqn");
    assert_true(json_is_false(json_array_get(bad, 0)) && json_is_true(json_array_get(bad, 1)));
    assert_true(score_in(scores, "not_played", "reversed-dial", "dqn", 0) == 5);
    assert_true(score_in(scores, "not_played", "reversed-dial", "dqn", 1) == 0);
    const json_t *train = json_object_get(json_object_get(scores, "reward_per_step"), "train");
    assert_int_equal(json_object_size(train), TRANSFER_AGENTS - 1);
    assert_null(json_object_get(train, "pretrained"));
    assert_true(test_number(json_object_get(scores, "optimum"), "reversed-dial") == 0.7);
    assert_string_equal(json_string_value(json_object_get(scores, "representation")),
                        "somewhere/run");
    // of two the interquartile mean is the mean
    const json_t *iqm = json_object_get(json_object_get(scores, "statistics"), "iqm");
    const json_t *planner = json_object_get(json_object_get(iqm, "reversed-dial"), "planner");
    assert_true(fabs(test_number(planner, "estimate") - 0.275) < 1e-12);
    assert_true(fabs(test_number(planner, "low") - 44.0 / 240) < 1e-12);
    assert_true(fabs(test_number(planner, "high") - 44.0 / 120) < 1e-12);
    json_decref(scores);
}

static void files_and_table_have_the_scores(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    static made_up all;
    char *folder = test_folder();
    test_listener heard = {.text = ""};
    const psi_study_options options = test_study_options(folder, &heard);
    study of = test_study_begun(ctx, folder, &options);
    make_up(&all);
    assert_ok(ctx, study_transfer_report(&of, &all.transfer));
    check_curves(ctx, folder);
    check_scores(ctx, folder);
    test_assert_heard(&heard, "\nquick, 2 seeds, 12 episodes, cnn\nreward per step ");
    test_assert_heard(&heard, "\nplanner               0.2750 [0.1833, 0.3667]    0.2750 ");
    test_assert_heard(&heard, "\npretrained                                       0.1375 ");
    test_assert_heard(&heard, "\noptimum                                0.5000   ");
    test_assert_heard(&heard, "had forgotten their task: 1, 5 episodes were not played");
    assert_true(test_number(of.results, "forgot") == 1);
    assert_true(test_number(json_object_get(of.results, "optimum"), "left-dial-broken") == 0.8);
    assert_int_equal(json_array_size(json_object_get(of.results, "claims")), 13);
    assert_int_equal(json_array_size(json_object_get(of.results, "files")), 2);
    json_decref(of.results);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

static void check_bars(psi_ctx *ctx, const char *folder)
{
    double bars[2 * TRANSFER_TASKS], seeds[4 * TRANSFER_TASKS];
    const size_t planner = PSI_AGENT_PLANNER, pretrained = PSI_AGENT_PRETRAINED;
    assert_int_equal(
        test_figure_numbers(ctx, folder, "scores.dat", 2 * planner, bars, 2 * TRANSFER_TASKS),
        2 * TRANSFER_TASKS);
    for (size_t task = 0; task < TRANSFER_TASKS; task++) {
        assert_true(fabs(bars[2 * task + 1] - 0.275) < 1e-8);
    }
    assert_int_equal(
        test_figure_numbers(ctx, folder, "scores.dat", 2 * planner + 1, seeds, 4 * TRANSFER_TASKS),
        4 * TRANSFER_TASKS);
    assert_true(fabs(seeds[1] - 44.0 / 120) < 1e-8 && fabs(seeds[3] - 44.0 / 240) < 1e-8);
    // a bar that is not there, and no dot of it
    assert_int_equal(
        test_figure_numbers(ctx, folder, "scores.dat", 2 * pretrained, bars, 2 * TRANSFER_TASKS),
        2 * TRANSFER_TASKS);
    assert_true(isnan(bars[1]) && fabs(bars[3] - 0.1375) < 1e-8);
    assert_int_equal(test_figure_numbers(ctx, folder, "scores.dat", 2 * pretrained + 1, seeds,
                                         4 * TRANSFER_TASKS),
                     4 * (TRANSFER_TASKS - 1));
}

static void check_learning(psi_ctx *ctx, const char *folder)
{
    enum { COLUMNS = 13 }; // episode, then mean, low, high of four agents
    static const psi_agent_kind LEARNERS[] = {PSI_AGENT_DQN, PSI_AGENT_PRETRAINED,
                                              PSI_AGENT_REWARD_PREDICTIVE, PSI_AGENT_PLANNER};
    double rows[COLUMNS * EPISODES], line[4];
    assert_int_equal(
        test_figure_numbers(ctx, folder, "curves-swap-digits.dat", 0, rows, COLUMNS * EPISODES),
        COLUMNS * EPISODES);
    for (size_t e = 0; e < EPISODES; e++) {
        const double *row = rows + COLUMNS * e;
        assert_true(row[0] == (double)(e + 1));
        for (size_t i = 0; i < COUNT(LEARNERS); i++) {
            // dqn's second seed stays where it diverged
            const size_t ended = LEARNERS[i] == PSI_AGENT_DQN && e > 1 ? 1 : e;
            const double high = lately(LEARNERS[i], 0, e), low = lately(LEARNERS[i], 1, ended);
            assert_true(fabs(row[1 + 3 * i] - (low + high) / 2) < 1e-8);
            assert_true(fabs(row[2 + 3 * i] - low) < 1e-8);
            assert_true(fabs(row[3 + 3 * i] - high) < 1e-8);
        }
    }
    assert_int_equal(test_figure_numbers(ctx, folder, "curves-swap-digits.dat", 1, line, 4), 4);
    assert_true(fabs(line[1] - 0.6) < 1e-8 && line[2] == EPISODES);
}

static void figures_show_the_scores(void **state)
{
    (void)state;
    if (!psi_figures_possible()) skip();
    psi_ctx *ctx = test_ctx(1);
    static made_up all;
    char *folder = test_folder();
    test_listener heard = {.text = ""};
    const psi_study_options options = test_study_options(folder, &heard);
    study of = test_study_begun(ctx, folder, &options);
    make_up(&all);
    assert_ok(ctx, study_transfer_figures(&of, &all.transfer));
    check_bars(ctx, folder);
    check_learning(ctx, folder);
    const json_t *figures = json_object_get(of.results, "figures");
    static const char *const names[] = {"scores", "curves-swap-digits", "curves-reversed-dial",
                                        "curves-left-dial-broken"};
    assert_int_equal(json_array_size(figures), COUNT(names));
    for (size_t i = 0; i < COUNT(names); i++) {
        char name[64];
        const json_t *figure = json_array_get(figures, i);
        assert_string_equal(json_string_value(json_object_get(figure, "name")), names[i]);
        assert_true(json_is_true(json_object_get(figure, "wide")) == (i == 0));
        snprintf(name, sizeof name, "%s.svg", names[i]);
        assert_int_equal(access(test_path(folder, name), F_OK), 0);
    }
    json_decref(of.results);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_and_table_have_the_scores),
        cmocka_unit_test(figures_show_the_scores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
