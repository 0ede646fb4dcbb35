// psifold reproduce sweep: table 2. Each option of deep Q-learning over the values that the paper
// tried, the others at their best, on the training task.
#include "cli/experiments.h"
#include "cli/trial.h"

#include "base/file.h"

#include <math.h>
#include <string.h>

typedef enum sweep_option { LEARNING_RATE, BATCH, BUFFER, EXPLORATION } sweep_option;

static const struct {
    sweep_option option;
    const char *name;
    double value, best; // best: the paper's
} SETTINGS[] = {
    {LEARNING_RATE, "learning_rate", 1e-4, 1e-3},
    {LEARNING_RATE, "learning_rate", 1e-3, 1e-3},
    {LEARNING_RATE, "learning_rate", 1e-2, 1e-3},
    {LEARNING_RATE, "learning_rate", 1e-1, 1e-3},
    {BATCH, "batch", 100, 200},
    {BATCH, "batch", 200, 200},
    {BATCH, "batch", 500, 200},
    {BUFFER, "buffer", 100, 10000},
    {BUFFER, "buffer", 1000, 10000},
    {BUFFER, "buffer", 10000, 10000},
    {EXPLORATION, "exploration_episodes", 5, 10},
    {EXPLORATION, "exploration_episodes", 10, 10},
    {EXPLORATION, "exploration_episodes", 20, 10},
    {EXPLORATION, "exploration_episodes", 50, 10},
    {EXPLORATION, "exploration_episodes", 80, 10},
};
enum { N_SETTINGS = CLI_COUNT(SETTINGS) };

static void apply(size_t setting, psi_agent_options *options)
{
    const double value = SETTINGS[setting].value;
    switch (SETTINGS[setting].option) {
    case LEARNING_RATE: options->learning_rate = value; break;
    case BATCH: options->batch = (size_t)value; break;
    case BUFFER: options->buffer = (size_t)value; break;
    case EXPLORATION: options->exploration_episodes = (size_t)value; break;
    }
}

// The setting with the paper's values stands in every row, but is run once.
static size_t same_as(size_t setting)
{
    return SETTINGS[setting].value == SETTINGS[setting].best ? 1 : setting;
}

static psi_status make_trials(cli_call *cli, const cli_reproduce_call *call, size_t seeds,
                              cli_trial *trials, size_t *n)
{
    psi_status status = PSI_OK;
    psi_task task;
    TRY(psi_task_defaults(cli->ctx, "combination-lock", "train", &task));
    TRY(psi_task_set(cli->ctx, &task, "digits", call->digits));
    task.max_steps = 1000;
    TRY(psi_task_check(cli->ctx, &task));
    for (size_t i = 0; i < N_SETTINGS; i++) {
        for (size_t s = 0; s < seeds && same_as(i) == i; s++) {
            cli_trial *trial = &trials[(*n)++];
            char name[128];
            *trial = (cli_trial){.task = task,
                                 .options = psi_agent_defaults(PSI_AGENT_DQN),
                                 .episodes = call->episodes ? call->episodes : 100};
            trial->options.net = call->scale == CLI_QUICK ? PSI_NET_CNN : PSI_NET_RESNET18;
            trial->options.seed = cli->seed + s;
            apply(i, &trial->options);
            snprintf(name, sizeof name, "runs/%s-%g/seed-%llu", SETTINGS[i].name, SETTINGS[i].value,
                     (unsigned long long)trial->options.seed);
            TRY(base_join(cli->ctx, call->output, name, &trial->folder));
        }
    }
done:
    return status;
}

// The trials of a setting: where they begin.
static size_t first_of(size_t setting, size_t seeds)
{
    size_t before = 0;
    for (size_t i = 0; i < same_as(setting); i++) before += same_as(i) == i;
    return before * seeds;
}

static psi_status report(cli_call *cli, const cli_trial *trials, size_t seeds, const char *folder)
{
    psi_status status = PSI_OK;
    char *path = NULL;
    double *scores = NULL;
    json_t *table = json_object(), *bad = json_object();
    const psi_bootstrap_options how = psi_bootstrap_defaults();
    TRY(base_join(cli->ctx, folder, "scores.json", &path));
    TRY(base_alloc(cli->ctx, seeds, sizeof *scores, &scores));
    cli_print(cli, "%-22s %10s %28s", "option", "value", "reward per step");
    for (size_t i = 0; i < N_SETTINGS; i++) {
        const cli_trial *of = trials + first_of(i, seeds);
        char value[32];
        size_t diverged = 0;
        psi_interval mean;
        json_t *list = json_array();
        for (size_t s = 0; s < seeds; s++) {
            scores[s] = of[s].score.reward_per_step;
            diverged += of[s].diverged;
            json_array_append_new(list, json_real(scores[s]));
        }
        snprintf(value, sizeof value, "%g", SETTINGS[i].value);
        json_t *row = json_object_get(table, SETTINGS[i].name);
        if (!row) {
            json_object_set_new(table, SETTINGS[i].name, json_object());
            json_object_set_new(bad, SETTINGS[i].name, json_object());
            row = json_object_get(table, SETTINGS[i].name);
        }
        json_object_set_new(row, value, list);
        json_object_set_new(json_object_get(bad, SETTINGS[i].name), value,
                            json_integer((json_int_t)diverged));
        TRY(psi_scores_iqm(cli->ctx, &(psi_scores){1, seeds, scores}, &how, &mean));
        cli_print(cli, "%-22s %10s %10.4f [%.4f, %.4f]%s", SETTINGS[i].name, value, mean.estimate,
                  mean.low, mean.high, diverged ? "  some diverged" : "");
    }
    TRY(cli_set(cli, "seeds", json_integer((json_int_t)seeds)));
    TRY(cli_set(cli, "reward_per_step", json_incref(table)));
    TRY(cli_set(cli, "diverged", json_incref(bad)));
    TRY(base_json_save(cli->ctx, path, cli->result));
done:
    base_free(cli->ctx, path);
    base_free(cli->ctx, scores);
    json_decref(table);
    json_decref(bad);
    return status;
}

psi_status cli_reproduce_sweep(cli_call *cli, const cli_reproduce_call *call)
{
    psi_status status = PSI_OK;
    static const size_t SEEDS[] = {[CLI_QUICK] = 2, [CLI_MEDIUM] = 2, [CLI_PAPER] = 5};
    const size_t seeds = call->seeds ? call->seeds : SEEDS[call->scale];
    cli_trial *trials = NULL;
    size_t n = 0;
    TRY(base_alloc_zero(cli->ctx, N_SETTINGS * seeds, sizeof *trials, &trials));
    TRY(make_trials(cli, call, seeds, trials, &n));
    TRY(cli_trials_run(cli, trials, n, false));
    TRY(report(cli, trials, seeds, call->output));
done:
    cli_trials_free(cli, trials, n);
    base_free(cli->ctx, trials);
    return status;
}
