// psifold reproduce transfer: figure 6. All agents in three tasks with other transitions and
// rewards than the training task's, on digits that the representation has never seen.
#include "cli/experiments.h"
#include "cli/transfer.h"

#include "base/checked.h"
#include "base/file.h"
#include "base/progress.h"

#include <string.h>
#include <time.h>

const char *const TRANSFER_TASK_NAMES[TRANSFER_TASKS] = {"train", "swap-digits", "reversed-dial",
                                                         "left-dial-broken"};
enum { TRAIN, CAP = 1000, EVALUATION = 10 };

static const struct {
    psi_net_kind net;
    psi_approximator approximator;
    size_t seeds, trajectories;
} SCALES[] = {
    [CLI_QUICK] = {PSI_NET_CNN, PSI_APPROXIMATOR_CNN, 5, 1000},
    [CLI_MEDIUM] = {PSI_NET_RESNET18, PSI_APPROXIMATOR_RESNET18, 3, 1000},
    [CLI_PAPER] = {PSI_NET_RESNET18, PSI_APPROXIMATOR_RESNET18, 20, 10000},
};

// A variant of the lock; test digits for all but the training task.
static psi_status make_task(cli_call *cli, const cli_reproduce_call *call, size_t which,
                            psi_task *task)
{
    psi_status status = PSI_OK;
    const bool drawn = strcmp(call->digits, "drawn") == 0;
    const char *digits = which == TRAIN ? drawn ? "drawn" : "mnist"
                         : drawn        ? "drawn-test"
                                        : "mnist-test";
    TRY(psi_task_defaults(cli->ctx, "combination-lock", TRANSFER_TASK_NAMES[which], task));
    TRY(psi_task_set(cli->ctx, task, "digits", digits));
    task->max_steps = CAP;
    TRY(psi_task_check(cli->ctx, task));
done:
    return status;
}

// ---- the representation

static psi_status keep(void *user, const psi_episode *episode)
{
    return psi_collector_add(user, episode);
}

static psi_status collect(cli_call *cli, const psi_task *task, size_t episodes,
                          psi_trajectories **out)
{
    psi_status status = PSI_OK;
    psi_collector *collector = NULL;
    const psi_episode_spec spec = psi_collect_spec(task);
    *out = NULL;
    TRY(psi_collector_new(cli->ctx, &spec, &collector));
    TRY(psi_collect(cli->ctx, task, episodes, cli->seed, keep, collector, NULL));
    psi_collector *full = collector;
    collector = NULL;
    TRY(psi_collector_finish(full, out));
done:
    psi_collector_discard(collector);
    return status;
}

// Clusters trajectories of the training task as `psifold cluster` would, into a run folder; goes on
// with one that was interrupted.
static psi_status make_run(cli_call *cli, const cli_reproduce_call *call, const char *folder)
{
    psi_status status = PSI_OK;
    psi_trajectories *data = NULL;
    psi_clustering *found = NULL;
    psi_run *run = NULL;
    psi_task task;
    psi_cluster_options how = psi_cluster_defaults();
    TRY(psi_run_resume(cli->ctx, folder, &run));
    if (psi_run_finished(run)) goto done;
    base_note(cli->ctx, "no --run given: clustering %zu trajectories of the training task",
              SCALES[call->scale].trajectories);
    TRY(make_task(cli, call, TRAIN, &task));
    task.max_steps = 100000; // the paper's trajectories are not cut
    TRY(collect(cli, &task, SCALES[call->scale].trajectories, &data));
    how.approximator = SCALES[call->scale].approximator;
    how.seed = cli->seed;
    how.run = run;
    TRY(psi_cluster(cli->ctx, data, &how, &found));
    run = NULL; // closed by what follows
    TRY(psi_run_commit(how.run, "combination-lock", data, &how, found));
done:
    psi_run_suspend(run);
    psi_clustering_free(cli->ctx, found);
    psi_trajectories_free(cli->ctx, data);
    return status;
}

// The run that the representation comes from: given, made before, or made now.
static psi_status find_run(cli_call *cli, const cli_reproduce_call *call, char **folder,
                           psi_run_result **out)
{
    psi_status status = PSI_OK;
    if (call->run) {
        TRY(base_copy_text(cli->ctx, call->run, folder));
    } else {
        TRY(base_join(cli->ctx, call->output, "representation", folder));
        TRY(make_run(cli, call, *folder));
    }
    TRY(psi_run_load(cli->ctx, *folder, out));
    if (!(*out)->representation) {
        status = FAIL(cli->ctx, PSI_EMISSING, "%s has no representation network", *folder);
    }
done:
    return status;
}

// ---- the trials

static psi_status folder_of(cli_call *cli, const cli_reproduce_call *call, size_t task,
                            size_t agent, uint64_t seed, char **out)
{
    char name[128];
    snprintf(name, sizeof name, "runs/%s/%s/seed-%llu", TRANSFER_TASK_NAMES[task],
             psi_agent_kind_name((psi_agent_kind)agent), (unsigned long long)seed);
    return base_join(cli->ctx, call->output, name, out);
}

static psi_status make_trials(cli_call *cli, const cli_reproduce_call *call,
                              const psi_run_result *run, transfer_study *study)
{
    psi_status status = PSI_OK;
    for (size_t task = 0; task < TRANSFER_TASKS; task++) {
        psi_task lock;
        TRY(make_task(cli, call, task, &lock));
        TRY(psi_task_optimum(cli->ctx, &lock, psi_agent_defaults(PSI_AGENT_DQN).gamma,
                             &study->optimum[task]));
        for (size_t agent = 0; agent < TRANSFER_AGENTS; agent++) {
            // nothing is pretrained for the task that pretraining is done on
            if (task == TRAIN && agent == PSI_AGENT_PRETRAINED) continue;
            for (size_t seed = 0; seed < study->seeds; seed++) {
                cli_trial *trial = transfer_trial(study, task, agent, seed);
                *trial = (cli_trial){.task = lock,
                                     .options = psi_agent_defaults((psi_agent_kind)agent),
                                     .episodes = study->episodes,
                                     .evaluation = base_min(EVALUATION, study->episodes),
                                     .keep_network = task == TRAIN && agent == PSI_AGENT_DQN};
                trial->options.net = SCALES[call->scale].net;
                trial->options.representation = run->representation;
                trial->options.seed = cli->seed + seed;
                TRY(folder_of(cli, call, task, agent, trial->options.seed, &trial->folder));
            }
        }
    }
done:
    return status;
}

// Runs the trials of these tasks: the longest first, so that no core is idle at the end.
static psi_status run_trials(cli_call *cli, transfer_study *study, size_t first, size_t last)
{
    static const psi_agent_kind ORDER[TRANSFER_AGENTS] = {
        PSI_AGENT_PRETRAINED, PSI_AGENT_DQN,     PSI_AGENT_REWARD_PREDICTIVE,
        PSI_AGENT_PLANNER,    PSI_AGENT_TABULAR, PSI_AGENT_RANDOM};
    psi_status status = PSI_OK;
    cli_trial *batch = NULL, **from = NULL;
    size_t n = 0;
    const size_t most = (size_t)TRANSFER_TASKS * TRANSFER_AGENTS * study->seeds;
    TRY(base_alloc_zero(cli->ctx, most, sizeof *batch, &batch));
    TRY(base_alloc(cli->ctx, most, sizeof(cli_trial *), &from));
    for (size_t agent = 0; agent < TRANSFER_AGENTS; agent++) {
        for (size_t task = first; task <= last; task++) {
            for (size_t seed = 0; seed < study->seeds; seed++) {
                cli_trial *trial = transfer_trial(study, task, ORDER[agent], seed);
                if (trial->episodes == 0) continue;
                from[n] = trial;
                batch[n++] = *trial;
            }
        }
    }
    status = cli_trials_run(cli, batch, n, false);
    for (size_t i = 0; i < n; i++) *from[i] = batch[i]; // with what came out, also on failure
done:
    base_free(cli->ctx, batch);
    base_free(cli->ctx, from);
    return status;
}

// Q-networks that learnt the training task, one per seed, for the pretrained agents.
static psi_status hand_over_networks(cli_call *cli, transfer_study *study, char **files)
{
    psi_status status = PSI_OK;
    for (size_t seed = 0; seed < study->seeds; seed++) {
        const cli_trial *source = transfer_trial(study, TRAIN, PSI_AGENT_DQN, seed);
        TRY(base_join(cli->ctx, source->folder, "network.safetensors", &files[seed]));
        for (size_t task = TRAIN + 1; task < TRANSFER_TASKS; task++) {
            transfer_trial(study, task, PSI_AGENT_PRETRAINED, seed)->start_file = files[seed];
        }
    }
done:
    return status;
}

static psi_status write_manifest(cli_call *cli, const cli_reproduce_call *call,
                                 const transfer_study *study, const psi_run_result *run,
                                 double seconds)
{
    psi_status status = PSI_OK;
    char *path = NULL;
    json_t *manifest = NULL;
    double trial_seconds = 0;
    for (size_t i = 0; i < (size_t)TRANSFER_TASKS * TRANSFER_AGENTS * study->seeds; i++) {
        trial_seconds += study->trials[i].seconds;
    }
    TRY(base_join(cli->ctx, call->output, "manifest.json", &path));
    manifest =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:s, s:s, s:i, s:f, s:f, s:I}",
                  "what", "transfer", "version", psi_version(), "scale", call->scale_name, "digits",
                  call->digits, "network", study->net, "seeds", (json_int_t)study->seeds,
                  "first_seed", (json_int_t)cli->seed, "episodes", (json_int_t)study->episodes,
                  "latent_states", (json_int_t)run->n_latent, "representation",
                  study->representation, "representation_data_fingerprint", run->fingerprint.hex,
                  "threads", psi_threads(cli->ctx), "seconds_of_this_call", seconds,
                  "seconds_of_all_trials", trial_seconds, "finished_at", (json_int_t)time(NULL));
    TRY(base_json_made(cli->ctx, manifest));
    TRY(base_json_save(cli->ctx, path, manifest));
done:
    base_free(cli->ctx, path);
    json_decref(manifest);
    return status;
}

psi_status cli_reproduce_transfer(cli_call *cli, const cli_reproduce_call *call)
{
    psi_status status = PSI_OK;
    char *run_folder = NULL, **files = NULL;
    psi_run_result *run = NULL;
    const double started = base_seconds();
    transfer_study study = {.scale = call->scale_name,
                            .net = psi_net_kind_name(SCALES[call->scale].net),
                            .seeds = call->seeds ? call->seeds : SCALES[call->scale].seeds,
                            .episodes = call->episodes ? call->episodes : 100};
    const size_t n = (size_t)TRANSFER_TASKS * TRANSFER_AGENTS * study.seeds;
    TRY(base_alloc_zero(cli->ctx, n, sizeof *study.trials, &study.trials));
    TRY(base_alloc_zero(cli->ctx, study.seeds, sizeof(char *), &files));
    TRY(find_run(cli, call, &run_folder, &run));
    study.representation = run_folder;
    TRY(make_trials(cli, call, run, &study));
    TRY(run_trials(cli, &study, TRAIN, TRAIN));
    TRY(hand_over_networks(cli, &study, files));
    TRY(run_trials(cli, &study, TRAIN + 1, TRANSFER_TASKS - 1));
    TRY(transfer_report(cli, &study, call->output));
    TRY(write_manifest(cli, call, &study, run, base_seconds() - started));
done:
    cli_trials_free(cli, study.trials, n);
    base_free(cli->ctx, study.trials);
    for (size_t i = 0; files && i < study.seeds; i++) base_free(cli->ctx, files[i]);
    base_free(cli->ctx, files);
    base_free(cli->ctx, run_folder);
    psi_run_result_free(cli->ctx, run);
    return status;
}
