// psifold agent: an agent learns a built-in task, once per seed.
#include "cli/commands.h"
#include "cli/task.h"
#include "cli/trial.h"

#include "base/file.h"

#include <math.h>
#include <string.h>

typedef struct agent_call {
    const char *kind, *net, *view, *loss, *run, *start, *truth_of, *output;
    size_t episodes, seeds, evaluation;
    bool wide;
    cli_task of_task;
    psi_agent_options options; // as chosen on the command line
} agent_call;

static psi_status choose_options(cli_call *cli, agent_call *call)
{
    psi_status status = PSI_OK;
    psi_agent_options *o = &call->options;
    TRY(psi_agent_kind_from_name(cli->ctx, call->kind, &o->kind));
    TRY(psi_net_kind_from_name(cli->ctx, call->net, &o->net));
    for (int view = PSI_VIEW_AUTO; view <= PSI_VIEW_TRUTH; view++) {
        if (strcmp(call->view, psi_view_name((psi_view)view)) == 0) o->view = (psi_view)view;
    }
    o->loss = strcmp(call->loss, "squared") == 0 ? PSI_TD_SQUARED : PSI_TD_HUBER;
    // a planner explores by itself, unless it is told to be random, too
    if (o->kind == PSI_AGENT_PLANNER) o->exploration_episodes = 0;
    if (call->seeds == 0 || call->episodes == 0) {
        status = FAIL(cli->ctx, PSI_EUSAGE, "--seeds and --episodes must be at least 1");
    }
done:
    return status;
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
                              cli_trial *trials)
{
    psi_status status = PSI_OK;
    psi_task training;
    TRY(training_task(cli, task, &training));
    for (size_t i = 0; i < call->seeds; i++) {
        trials[i] = (cli_trial){.task = *task,
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
                         const cli_trial *trials)
{
    psi_status status = PSI_OK;
    json_t *runs = json_array();
    double *scores = NULL;
    psi_optimum optimum;
    psi_interval mean;
    TRY(base_json_made(cli->ctx, runs));
    TRY(base_alloc(cli->ctx, call->seeds, sizeof *scores, &scores));
    cli_print(cli, "%s in %s (%s), %zu episodes", call->kind, psi_task_name(task->kind),
              task->preset, call->episodes);
    cli_print(cli, "%6s %16s %9s %12s %10s %9s %16s", "seed", "reward per step", "steps",
              "first solve", "truncated", "updates", "at the end");
    for (size_t i = 0; i < call->seeds; i++) {
        const cli_trial *t = &trials[i];
        scores[i] = t->score.reward_per_step;
        json_array_append_new(runs, cli_trial_json(t));
        cli_print(cli, "%6llu %16.4f %9llu %12llu %10llu %9llu %16.4f%s",
                  (unsigned long long)t->options.seed, t->score.reward_per_step,
                  (unsigned long long)t->score.steps,
                  (unsigned long long)t->score.steps_to_first_solve,
                  (unsigned long long)t->score.truncated, (unsigned long long)t->updates,
                  t->final.reward_per_step, t->diverged ? "  diverged" : "");
    }
    const psi_bootstrap_options bootstrap = psi_bootstrap_defaults();
    TRY(psi_scores_iqm(cli->ctx, &(psi_scores){1, call->seeds, scores}, &bootstrap, &mean));
    TRY(psi_task_optimum(cli->ctx, task, call->options.gamma, &optimum));
    cli_print(cli, "interquartile mean %.4f [%.4f, %.4f]; the optimum is %.4f, %.1f steps",
              mean.estimate, mean.low, mean.high, optimum.reward_per_step, optimum.steps);
    TRY(cli_set(cli, "task", json_string(psi_task_name(task->kind))));
    TRY(cli_set(cli, "preset", json_string(task->preset)));
    TRY(cli_set(cli, "kind", json_string(call->kind)));
    TRY(cli_set(cli, "episodes", json_integer((json_int_t)call->episodes)));
    TRY(cli_set(cli, "reward_per_step", cli_interval_json(&mean)));
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
    agent_call call = {.kind = "dqn",
                       .net = "cnn",
                       .view = "auto",
                       .loss = "huber",
                       .episodes = 100,
                       .seeds = 1,
                       .evaluation = 10,
                       .options = psi_agent_defaults(PSI_AGENT_DQN)};
    psi_agent_options *o = &call.options;
    enum { OWN = 26 };
    cli_option options[OWN + 1 + CLI_TASK_OPTIONS] = {
        {"kind", 0, "dqn|pretrained|reward-predictive|planner|tabular|random", CLI_CHOICE,
         &call.kind, "which agent"},
        {"run", 0, "RUN", CLI_TEXT, &call.run,
         "run folder of psifold cluster; for reward-predictive and planner"},
        {"net", 0, "cnn|resnet18|mlp", CLI_CHOICE, &call.net, "Q-network of dqn and pretrained"},
        {"hidden", 0, "N", CLI_SIZE, &o->hidden, "units of each of the mlp's two layers"},
        {"view", 0, "auto|observation|one-hot|softmax|features|truth", CLI_CHOICE, &call.view,
         "what the learning part sees"},
        {"truth-of", 0, "PRESET", CLI_TEXT, &call.truth_of,
         "view truth: the latent states of this variant of the task"},
        {"start", 0, "FILE", CLI_TEXT, &call.start,
         "pretrained: the Q-network to start from; without it, the task's first preset is learnt"},
        {"episodes", 0, "N", CLI_SIZE, &call.episodes, "of learning"},
        {"seeds", 0, "N", CLI_SIZE, &call.seeds, "runs, with seeds from --seed on"},
        {"evaluate", 0, "N", CLI_SIZE, &call.evaluation, "episodes without exploration at the end"},
        {"wide", 0, NULL, CLI_FLAG, &call.wide,
         "one seed after the other on all threads, instead of one thread for each"},
        {"output", 'o', "DIR", CLI_TEXT, &call.output,
         "results, learning curves and TensorBoard events; what is there already goes on"},
        {"gamma", 0, "G", CLI_REAL, &o->gamma, "discount"},
        {"learning-rate", 0, "R", CLI_REAL, &o->learning_rate, "of Adam"},
        {"batch", 0, "N", CLI_SIZE, &o->batch, "transitions of an update"},
        {"buffer", 0, "N", CLI_SIZE, &o->buffer, "observations the replay memory holds"},
        {"learning-starts", 0, "N", CLI_SIZE, &o->learning_starts, "steps before the first update"},
        {"update-every", 0, "N", CLI_SIZE, &o->update_every, "steps between updates"},
        {"explore", 0, "N", CLI_SIZE, &o->exploration_episodes,
         "episodes over which epsilon falls from 1; not for the planner"},
        {"final-epsilon", 0, "E", CLI_REAL, &o->final_epsilon, "random actions after that"},
        {"tau", 0, "T", CLI_REAL, &o->tau, "how fast the target network follows"},
        {"target-period", 0, "N", CLI_SIZE, &o->target_period,
         "copy the target every N updates instead; 0: follow"},
        {"loss", 0, "huber|squared", CLI_CHOICE, &call.loss, "of temporal differences"},
        {"freeze-norm", 0, NULL, CLI_FLAG, &o->freeze_norm,
         "batch norm by running statistics in updates, too"},
        {"table-rate", 0, "R", CLI_REAL, &o->table_rate, "tabular: step size"},
        {"optimism", 0, "N", CLI_REAL, &o->optimism,
         "planner: imagined visits that found a reward, per latent state and action"},
    };
    const size_t n_options = cli_task_options(&call.of_task, options, OWN);
    const cli_usage usage = {
        .name = "agent",
        .arguments = "TASK",
        .summary = "Lets agents learn a built-in task and scores them",
        .text = "The score is total reward / total steps while learning, exploration included.\n"
                "Steps to the first reward, truncated episodes and a last evaluation without\n"
                "exploration are told beside it.",
        .example = "psifold agent column-world --kind tabular --seeds 3",
        .options = options,
        .n_options = n_options};
    const char *arguments[CLI_MAX_ARGUMENTS];
    psi_task task, truth;
    psi_run_result *run = NULL;
    cli_trial *trials = NULL;
    TRY(cli_parse(cli, &usage, argc, argv, arguments));
    TRY(choose_options(cli, &call));
    TRY(cli_task_make(cli, arguments[0], &call.of_task, &task));
    if (call.truth_of) {
        TRY(psi_task_defaults(cli->ctx, arguments[0], call.truth_of, &truth));
        TRY(psi_task_check(cli->ctx, &truth));
        call.options.truth_of = &truth;
    }
    if (call.run) {
        TRY(psi_run_load(cli->ctx, call.run, &run));
        if (!run->representation) {
            status = FAIL(cli->ctx, PSI_EMISSING,
                          "%s used a table, which knows nothing of other observations", call.run);
            goto done;
        }
        call.options.representation = run->representation;
    }
    TRY(base_alloc_zero(cli->ctx, call.seeds, sizeof *trials, &trials));
    TRY(make_trials(cli, &call, &task, trials));
    TRY(cli_trials_run(cli, trials, call.seeds, call.wide));
    status = report(cli, &call, &task, trials);
done:
    cli_trials_free(cli, trials, call.seeds);
    base_free(cli->ctx, trials);
    psi_run_result_free(cli->ctx, run);
    return status;
}
