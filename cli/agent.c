// psifold agent: an agent learns a built-in task, once per seed.
#include "cli/commands.h"
#include "cli/task.h"

#include "base/file.h"

#include <math.h>
#include <string.h>

typedef struct agent_call {
    const char *run, *start, *truth_of, *output;
    size_t episodes, seeds, evaluation;
    bool wide, mpi;
    cli_task task;
    psi_agent_options options;
} agent_call;

// What the command adds to the options of agents (src/agent/options.c) and of tasks.
#define FIELD(name) OPTION_FIELD(agent_call, name)
static const psi_option OPTIONS[] = {
    {"run", 0, PSI_OPTION_TEXT, FIELD(run), "RUN", NULL, NULL, PSI_OPTION_MAIN,
     "run folder of psifold cluster; for reward-predictive and planner"},
    {"truth-of", 0, PSI_OPTION_TEXT, FIELD(truth_of), "PRESET", NULL, NULL, PSI_OPTION_MORE,
     "view truth: the latent states of this variant of the task"},
    {"start-from", 0, PSI_OPTION_TEXT, FIELD(start), "FILE", NULL, NULL, PSI_OPTION_MAIN,
     "pretrained: the Q-network to start from; without it, the task's first preset is learnt"},
    {"episodes", 0, PSI_OPTION_SIZE, FIELD(episodes), "N", "100", "[1,", PSI_OPTION_MAIN,
     "of learning"},
    {"seeds", 0, PSI_OPTION_SIZE, FIELD(seeds), "N", "1", "[1,", PSI_OPTION_MAIN,
     "runs, with seeds from --seed on"},
    {"evaluate", 0, PSI_OPTION_SIZE, FIELD(evaluation), "N", "10", NULL, PSI_OPTION_MAIN,
     "episodes without exploration at the end"},
    {"wide", 0, PSI_OPTION_FLAG, FIELD(wide), NULL, "off", NULL, PSI_OPTION_MORE,
     "one seed after the other on all threads, instead of one thread for each"},
    {"output", 'o', PSI_OPTION_TEXT, FIELD(output), "DIR", NULL, NULL, PSI_OPTION_MAIN,
     "results, learning curves and TensorBoard events; what is there already is continued"},
    CLI_MPI(FIELD(mpi)),
};

// What was given, on top of what is usual for the kind of agent.
static void choose_options(agent_call *call, uint64_t given)
{
    psi_agent_options chosen = psi_agent_defaults(call->options.kind);
    psi_options_copy(psi_agent_option_table(), given, &call->options, &chosen);
    call->options = chosen;
}

// What a pretrained agent learns first: the task's first preset, with the look and size of the
// task.
static psi_status training_task(cli_call *cli, const psi_task *task, psi_task *out)
{
    psi_status status = PSI_OK;
    char size[16];
    TRY(psi_task_defaults(cli->ctx, psi_task_name(task->kind), NULL, out));
    out->digits = task->digits == PSI_DIGITS_MNIST_TEST   ? PSI_DIGITS_MNIST
                  : task->digits == PSI_DIGITS_DRAWN_TEST ? PSI_DIGITS_DRAWN
                                                          : task->digits;
    out->images_per_digit = task->images_per_digit;
    out->max_steps = task->max_steps;
    out->width = task->width;
    out->height = task->height;
    if (task->digits_per_dial != out->digits_per_dial) {
        snprintf(size, sizeof size, "%d", task->digits_per_dial);
        TRY(psi_task_set(cli->ctx, out, "digits-per-dial", size));
    }
    TRY(psi_task_check(cli->ctx, out));
done:
    return status;
}

static psi_status make_trials(cli_call *cli, const agent_call *call, const psi_task *task,
                              psi_trial *trials)
{
    psi_status status = PSI_OK;
    psi_task training;
    TRY(training_task(cli, task, &training));
    for (size_t i = 0; i < call->seeds; i++) {
        trials[i] = (psi_trial){.task = *task,
                                .training = training,
                                .start_file = call->start,
                                .options = call->options,
                                .episodes = call->episodes,
                                .evaluation = call->evaluation,
                                .keep_network = true};
        trials[i].options.seed = cli->seed + i;
        if (!call->output) continue;
        char name[32];
        snprintf(name, sizeof name, "seed-%zu", (size_t)trials[i].options.seed);
        TRY(base_join(cli->ctx, call->output, name, &trials[i].folder));
    }
done:
    return status;
}

static psi_status report(cli_call *cli, const agent_call *call, const psi_task *task,
                         const psi_trial *trials)
{
    psi_status status = PSI_OK;
    json_t *runs = json_array();
    double *scores = NULL;
    psi_optimum optimum;
    psi_interval mean;
    TRY(base_json_made(cli->ctx, runs));
    TRY(base_alloc(cli->ctx, call->seeds, sizeof *scores, &scores));
    const char *kind = psi_agent_kind_name(call->options.kind);
    cli_print(cli, "%s in %s (%s), %zu episodes", kind, psi_task_name(task->kind), task->preset,
              call->episodes);
    cli_print(cli, "%6s %16s %9s %12s %10s %9s %16s", "seed", "reward per step", "steps",
              "first solve", "truncated", "updates", "at the end");
    for (size_t i = 0; i < call->seeds; i++) {
        const psi_trial *t = &trials[i];
        scores[i] = t->score.reward_per_step;
        char text[PSI_TRIAL_JSON_SIZE];
        json_t *trial = NULL;
        TRY(psi_trial_json(cli->ctx, t, text));
        TRY(base_json_parse(cli->ctx, "the scores of a trial", text, strlen(text), &trial));
        json_array_append_new(runs, trial);
        cli_print(cli, "%6llu %16.4f %9llu %12llu %10llu %9llu %16.4f%s%s",
                  (unsigned long long)t->options.seed, t->score.reward_per_step,
                  (unsigned long long)t->score.steps,
                  (unsigned long long)t->score.steps_to_first_solve,
                  (unsigned long long)t->score.truncated, (unsigned long long)t->updates,
                  t->final.reward_per_step, t->diverged ? "  diverged" : "",
                  t->not_played ? "  stopped: it has forgotten its task" : "");
    }
    const psi_bootstrap_options bootstrap = psi_bootstrap_defaults();
    TRY(psi_scores_iqm(cli->ctx, &(psi_scores){1, call->seeds, scores}, &bootstrap, &mean));
    TRY(psi_task_optimum(cli->ctx, task, call->options.gamma, &optimum));
    cli_print(cli, "interquartile mean %.4f [%.4f, %.4f]; the optimum is %.4f, %.1f steps",
              mean.estimate, mean.low, mean.high, optimum.reward_per_step, optimum.steps);
    TRY(cli_set(cli, "task", json_string(psi_task_name(task->kind))));
    TRY(cli_set(cli, "preset", json_string(task->preset)));
    TRY(cli_set(cli, "kind", json_string(kind)));
    TRY(cli_set(cli, "episodes", json_integer((json_int_t)call->episodes)));
    TRY(cli_set(cli, "reward_per_step",
                json_pack("{s:f, s:f, s:f}", "estimate", mean.estimate, "low", mean.low, "high",
                          mean.high)));
    TRY(cli_set(cli, "optimum",
                json_pack("{s:f, s:f, s:f}", "reward_per_step", optimum.reward_per_step, "steps",
                          optimum.steps, "value", optimum.value)));
    TRY(cli_set(cli, "runs", json_incref(runs)));
done:
    json_decref(runs);
    base_free(cli->ctx, scores);
    return status;
}

psi_status cli_agent(cli_call *cli, int argc, char **argv)
{
    psi_status status = PSI_OK;
    agent_call call = {0};
    cli_options options[] = {{psi_agent_option_table(), &call.options, 0},
                             {CLI_TABLE(OPTIONS), &call, 0},
                             cli_task_options(&call.task)};
    const cli_usage usage = {
        .name = "agent",
        .arguments = "TASK",
        .summary = "Lets agents learn a built-in task and scores them",
        .text = "The score is total reward / total steps while learning, exploration included.\n"
                "Steps to the first reward, truncated episodes and a last evaluation without\n"
                "exploration are printed, too.",
        .example = "psifold agent column-world --kind tabular --seeds 3",
        .options = options,
        .n_options = CLI_COUNT(options),
        .shared = true};
    const char *arguments[CLI_MAX_ARGUMENTS];
    psi_task task, truth;
    psi_run *run = NULL;
    psi_trial *trials = NULL;
    TRY(cli_parse(cli, &usage, argc, argv, arguments));
    TRY(cli_join_others(cli, call.mpi));
    choose_options(&call, options[0].given);
    TRY(cli_task_make(cli, arguments[0], &call.task, &task));
    if (call.truth_of) {
        TRY(psi_task_defaults(cli->ctx, arguments[0], call.truth_of, &truth));
        TRY(psi_task_check(cli->ctx, &truth));
        call.options.truth_of = &truth;
    }
    if (call.run) {
        TRY(psi_run_load(cli->ctx, call.run, &run));
        if (!run->representation) {
            status =
                FAIL(cli->ctx, PSI_EMISSING,
                     "%s used a table, which cannot be applied to other observations", call.run);
            goto done;
        }
        call.options.representation = run->representation;
    }
    TRY(base_alloc_zero(cli->ctx, call.seeds, sizeof *trials, &trials));
    TRY(make_trials(cli, &call, &task, trials));
    TRY(psi_trials_run(cli->ctx, trials, call.seeds, call.wide));
    if (psi_rank(cli->ctx) == 0) status = report(cli, &call, &task, trials);
done:
    psi_trials_free(cli->ctx, trials, call.seeds);
    base_free(cli->ctx, trials);
    psi_run_free(cli->ctx, run);
    return status;
}
