// psifold reproduce transfer: figure 6. All agents in three tasks with other transitions and
// rewards than the training task's, on digits that the representation has never seen.
#include "study/transfer.h"
#include "study/trial.h"

#include "base/checked.h"
#include "base/file.h"
#include "base/progress.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

const char *const STUDY_TRANSFER_TASK_NAMES[TRANSFER_TASKS] = {"train", "swap-digits",
                                                               "reversed-dial", "left-dial-broken"};
enum { TRAIN, CAP = 1000, EVALUATION = 10, FEW_SEEDS = 5 };

// Steps between updates of Q-networks that learn from images, where nearly all time goes: every
// second step takes twice the time and was measured to bring no more.
enum { UPDATE_EVERY = 4 };

static const struct {
    psi_net_kind net;
    size_t seeds, trajectories;
} SCALES[] = {{PSI_NET_CNN, 5, 1000}, {PSI_NET_RESNET18, 3, 1000}, {PSI_NET_RESNET18, 20, 10000}};

// A variant of the lock; test digits for all but the training task. With fewer digits on a dial the
// highest of them are rewarded in all variants: those of the paper may not be there.
static psi_status make_task(study *of, const transfer_study *transfer, size_t which, psi_task *task)
{
    psi_status status = PSI_OK;
    psi_ctx *ctx = of->ctx;
    char digits[16], images[16];
    snprintf(digits, sizeof digits, "%zu", of->how->digits_per_dial);
    snprintf(images, sizeof images, "%s%s", transfer->digits, which == TRAIN ? "" : "-test");
    TRY(psi_task_defaults(ctx, "combination-lock", STUDY_TRANSFER_TASK_NAMES[which], task));
    if (of->how->digits_per_dial != 10) TRY(psi_task_set(ctx, task, "digits-per-dial", digits));
    TRY(psi_task_set(ctx, task, "digits", images));
    task->max_steps = CAP;
    TRY(psi_task_check(ctx, task));
done:
    return status;
}

// ---- the representation

// Whether a run folder is finished: its manifest comes last.
static psi_status is_run(study *of, const char *folder, bool *finished)
{
    psi_status status = PSI_OK;
    char *manifest = NULL;
    TRY(base_join(of->ctx, folder, "manifest.json", &manifest));
    *finished = access(manifest, F_OK) == 0;
done:
    base_free(of->ctx, manifest);
    return status;
}

// Whether the lock of figure 5, in this folder, is the one that is asked for. Where nothing was
// asked for, its digits are taken.
static psi_status is_same_lock(study *of, const char *folder, transfer_study *transfer, bool *same)
{
    psi_status status = PSI_OK;
    char *path = NULL;
    json_t *results = NULL;
    *same = true;
    TRY(base_join(of->ctx, folder, "results.json", &path));
    if (access(path, F_OK) != 0) goto done; // clustered, but not looked at yet
    TRY(base_json_load(of->ctx, path, 1 << 22, &results));
    const char *digits = json_string_value(json_object_get(results, "digits"));
    const json_t *per_dial = json_object_get(results, "digits_per_dial");
    const bool drawn = digits && strcmp(digits, "drawn") == 0;
    if (strcmp(of->how->digits, "auto") == 0) transfer->digits = drawn ? "drawn" : "mnist";
    *same = (strcmp(transfer->digits, "drawn") == 0) == drawn &&
            (!per_dial || json_integer_value(per_dial) == (json_int_t)of->how->digits_per_dial);
done:
    base_free(of->ctx, path);
    json_decref(results);
    return status;
}

// The finished run of the lock of figure 5 in the same output; NULL if there is none that fits.
static psi_status ask_lock(study *of, transfer_study *transfer, char **run)
{
    psi_status status = PSI_OK;
    char *folder = NULL;
    bool finished = false, same = false;
    TRY(study_folder(of, "combination-lock", &folder));
    TRY(base_join(of->ctx, folder, "run", run));
    TRY(is_run(of, *run, &finished));
    if (finished) {
        TRY(is_same_lock(of, folder, transfer, &same));
        if (!same) TRY(study_says(of, "%s has other digits: its run is not taken", folder));
    }
    if (same) goto done;
    base_free(of->ctx, *run);
    *run = NULL;
done:
    base_free(of->ctx, folder);
    return status;
}

static psi_status choose_net(study *of, transfer_study *transfer)
{
    transfer->net = SCALES[of->how->scale].net;
    if (strcmp(of->how->net, "auto") == 0) return PSI_OK;
    return psi_net_kind_from_name(of->ctx, of->how->net, &transfer->net);
}

// Clusters trajectories of the training task, or goes on with it.
static psi_status make_run(study *of, const transfer_study *transfer)
{
    psi_status status = PSI_OK;
    psi_trajectories *data = NULL;
    psi_run *run = NULL;
    psi_cluster_options how;
    psi_task task;
    const size_t episodes =
        of->how->episodes ? of->how->episodes : SCALES[of->how->scale].trajectories;
    TRY(study_says(of, "no representation yet: clustering %zu trajectories", episodes));
    TRY(make_task(of, transfer, TRAIN, &task));
    task.max_steps = 100000; // the paper's trajectories are not cut
    TRY(study_trajectories(of, &task, episodes, of->how->seed, "data", &data));
    TRY(study_cluster_options(of, "combination-lock", &how));
    how.approximator =
        transfer->net == PSI_NET_RESNET18 ? PSI_APPROXIMATOR_RESNET18 : PSI_APPROXIMATOR_CNN;
    TRY(study_cluster(of, "data", data, &how, "representation", &run));
done:
    psi_run_free(of->ctx, run);
    psi_trajectories_free(of->ctx, data);
    return status;
}

// The network that a study looked through stays with it: all that is needed to go on elsewhere.
static const char KEPT[] = "representation.safetensors";

// Where the representation comes from: given, made before, borrowed from figure 5, kept, or made
// now.
static psi_status find_folder(study *of, transfer_study *transfer, char **folder, bool *borrowed)
{
    psi_status status = PSI_OK;
    char *own = NULL;
    bool finished = false;
    *borrowed = false;
    if (of->how->run) return base_copy_text(of->ctx, of->how->run, folder);
    TRY(study_path(of, "representation", &own));
    TRY(is_run(of, own, &finished));
    if (!finished) {
        TRY(ask_lock(of, transfer, folder));
        *borrowed = *folder != NULL;
        if (*borrowed) goto done;
        if (study_has(of, KEPT)) {
            status = study_path(of, KEPT, folder);
            goto done;
        }
        TRY(make_run(of, transfer));
    }
    *folder = own;
    own = NULL;
done:
    base_free(of->ctx, own);
    return status;
}

static bool is_network_file(const char *path)
{
    static const char END[] = ".safetensors";
    const size_t n = strlen(path), m = sizeof END - 1;
    return n > m && strcmp(path + n - m, END) == 0;
}

// Of a run nothing but its network is needed: that of a study that was kept is such a file.
static psi_status load_run(psi_ctx *ctx, const char *path, psi_run **out)
{
    psi_status status = PSI_OK;
    psi_run *run = NULL;
    if (!is_network_file(path)) return psi_run_load(ctx, path, out);
    TRY(base_alloc_zero(ctx, 1, sizeof *run, &run));
    TRY(psi_net_load(ctx, path, &run->representation));
    run->n_latent = psi_net_n_outputs(run->representation);
    *out = run;
    run = NULL;
done:
    psi_run_free(ctx, run);
    return status;
}

// Q-networks are of the same kind as a borrowed representation, as in the paper.
static psi_status find_run(study *of, transfer_study *transfer, char **folder, psi_run **out)
{
    psi_status status = PSI_OK;
    char *kept = NULL;
    bool borrowed;
    TRY(study_images(of, &transfer->digits));
    TRY(choose_net(of, transfer));
    TRY(find_folder(of, transfer, folder, &borrowed));
    TRY(load_run(of->ctx, *folder, out));
    if (!(*out)->representation) {
        status = FAIL(of->ctx, PSI_EMISSING, "%s has no representation network", *folder);
        goto done;
    }
    if (borrowed && strcmp(of->how->net, "auto") == 0) {
        transfer->net = psi_net_spec_of((*out)->representation)->kind;
    }
    TRY(study_says(of, "representation: %s, %zu latent states", *folder, (*out)->n_latent));
    TRY(study_path(of, KEPT, &kept));
    if (strcmp(kept, *folder) != 0) TRY(psi_net_save(of->ctx, (*out)->representation, kept));
done:
    base_free(of->ctx, kept);
    return status;
}

// ---- the trials

static psi_status folder_of(study *of, size_t task, size_t agent, uint64_t seed, char **out)
{
    char name[128];
    snprintf(name, sizeof name, "runs/%s/%s/seed-%llu", STUDY_TRANSFER_TASK_NAMES[task],
             psi_agent_kind_name((psi_agent_kind)agent), (unsigned long long)seed);
    return study_path(of, name, out);
}

static psi_status make_trials(study *of, const psi_run *run, transfer_study *transfer)
{
    psi_status status = PSI_OK;
    psi_ctx *ctx = of->ctx;
    for (size_t task = 0; task < TRANSFER_TASKS; task++) {
        psi_task lock;
        TRY(make_task(of, transfer, task, &lock));
        TRY(psi_task_optimum(ctx, &lock, psi_agent_defaults(PSI_AGENT_DQN).gamma,
                             &transfer->optimum[task]));
        for (size_t agent = 0; agent < TRANSFER_AGENTS; agent++) {
            // nothing is pretrained for the task that pretraining is done on
            if (task == TRAIN && agent == PSI_AGENT_PRETRAINED) continue;
            for (size_t seed = 0; seed < transfer->seeds; seed++) {
                psi_trial *trial = transfer_trial(transfer, task, agent, seed);
                *trial = (psi_trial){.task = lock,
                                     .options = psi_agent_defaults((psi_agent_kind)agent),
                                     .episodes = transfer->episodes,
                                     .evaluation = base_min(EVALUATION, transfer->episodes),
                                     .keep_network = task == TRAIN && agent == PSI_AGENT_DQN};
                trial->options.net = transfer->net;
                if (agent == PSI_AGENT_DQN || agent == PSI_AGENT_PRETRAINED) {
                    trial->options.update_every = UPDATE_EVERY;
                    trial->options.stop_forgotten = true;
                }
                if (agent == PSI_AGENT_PRETRAINED) {
                    trial->source = transfer_trial(transfer, TRAIN, PSI_AGENT_DQN, seed);
                }
                trial->options.representation = run->representation;
                trial->options.seed = of->how->seed + seed;
                TRY(folder_of(of, task, agent, trial->options.seed, &trial->folder));
            }
        }
    }
done:
    return status;
}

// Some of the seeds: from one to before another.
typedef struct seed_range {
    size_t from, to;
} seed_range;

// Runs the trials of these tasks and seeds: the longest first, so that no core is idle at the end.
static psi_status run_trials(psi_ctx *ctx, transfer_study *transfer, size_t first, size_t last,
                             seed_range seeds)
{
    static const psi_agent_kind ORDER[TRANSFER_AGENTS] = {
        PSI_AGENT_PRETRAINED, PSI_AGENT_DQN,     PSI_AGENT_REWARD_PREDICTIVE,
        PSI_AGENT_PLANNER,    PSI_AGENT_TABULAR, PSI_AGENT_RANDOM};
    psi_status status = PSI_OK;
    psi_trial *batch = NULL, **from = NULL;
    size_t n = 0;
    const size_t most = (size_t)TRANSFER_TASKS * TRANSFER_AGENTS * (seeds.to - seeds.from);
    TRY(base_alloc_zero(ctx, most, sizeof *batch, &batch));
    TRY(base_alloc(ctx, most, sizeof(psi_trial *), &from));
    for (size_t agent = 0; agent < TRANSFER_AGENTS; agent++) {
        for (size_t task = first; task <= last; task++) {
            for (size_t seed = seeds.from; seed < seeds.to; seed++) {
                psi_trial *trial = transfer_trial(transfer, task, ORDER[agent], seed);
                if (trial->episodes == 0) continue;
                from[n] = trial;
                batch[n++] = *trial;
            }
        }
    }
    status = psi_trials_run(ctx, batch, n, false);
    for (size_t i = 0; i < n; i++) *from[i] = batch[i]; // with what came out, also on failure
done:
    base_free(ctx, batch);
    base_free(ctx, from);
    return status;
}

// What pretrained agents start from is needed while one of them has no result yet.
static psi_status look_for_pretrained(psi_ctx *ctx, transfer_study *transfer, seed_range seeds)
{
    psi_status status = PSI_OK;
    for (size_t seed = seeds.from; seed < seeds.to; seed++) {
        psi_trial *source = transfer_trial(transfer, TRAIN, PSI_AGENT_DQN, seed);
        for (size_t task = TRAIN + 1; task < TRANSFER_TASKS; task++) {
            psi_trial *trial = transfer_trial(transfer, task, PSI_AGENT_PRETRAINED, seed);
            TRY(study_trial_read(ctx, trial));
            if (!trial->finished) source->needs_network = true;
        }
    }
done:
    return status;
}

// As many seeds at a time as there are threads: whenever it is stopped, nearly as many are there of
// every agent in every task.
static psi_status run_seeds(psi_ctx *ctx, transfer_study *transfer)
{
    psi_status status = PSI_OK;
    const size_t together = (size_t)psi_threads(ctx);
    for (size_t from = 0; from < transfer->seeds; from += together) {
        const seed_range seeds = {from, base_min(from + together, transfer->seeds)};
        TRY(look_for_pretrained(ctx, transfer, seeds));
        TRY(run_trials(ctx, transfer, TRAIN, TRAIN, seeds));
        TRY(run_trials(ctx, transfer, TRAIN + 1, TRANSFER_TASKS - 1, seeds));
    }
done:
    return status;
}

static psi_status write_manifest(study *of, const transfer_study *transfer, const psi_run *run,
                                 double seconds)
{
    psi_status status = PSI_OK;
    psi_ctx *ctx = of->ctx;
    char *path = NULL;
    json_t *manifest = NULL;
    double trial_seconds = 0;
    for (size_t i = 0; i < (size_t)TRANSFER_TASKS * TRANSFER_AGENTS * transfer->seeds; i++) {
        trial_seconds += transfer->trials[i].seconds;
    }
    TRY(study_path(of, "manifest.json", &path));
    manifest = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:s, s:s, s:i, s:f, s:f, s:I}", "what",
        "transfer", "version", psi_version(), "commit", psi_commit(), "scale", study_scale_name(of),
        "digits", transfer->digits, "network", psi_net_kind_name(transfer->net), "seeds",
        (json_int_t)transfer->seeds, "first_seed", (json_int_t)of->how->seed, "episodes",
        (json_int_t)transfer->episodes, "latent_states", (json_int_t)run->n_latent,
        "representation", transfer->representation, "representation_data_fingerprint",
        run->fingerprint.hex, "threads", psi_threads(ctx), "seconds_of_this_call", seconds,
        "seconds_of_all_trials", trial_seconds, "finished_at", (json_int_t)time(NULL));
    TRY(base_json_made(ctx, manifest));
    TRY(base_json_save(ctx, path, manifest));
    TRY(study_file(of, "manifest.json", "what this was made with"));
    TRY(study_file(of, "runs", "every trial: its result, learning curve and TensorBoard events"));
done:
    base_free(ctx, path);
    json_decref(manifest);
    return status;
}

// ---- the study

static psi_status say_what(study *of, const transfer_study *transfer, const psi_run *run)
{
    psi_status status = PSI_OK;
    char what[1280];
    snprintf(
        what, sizeof what,
        "Three variants of the lock with other transitions and rewards, seen as digits that "
        "nothing was trained on. Who learns them faster: a Q-network from random weights "
        "(dqn), one that has learnt the lock of figure 5 (pretrained), or one linear layer "
        "on the frozen network of its clustering (reward-predictive)? The first two are updated "
        "every %zu steps, the last every %zu; one whose whole memory holds no reward any more is "
        "stopped, and the episodes that are left count as its last one. Beyond the paper, the "
        "planner counts a model of the same latent states anew and plans. Yes means that the "
        "95 %% interval of the probability of beating the other lies above one half, and that "
        "of the gain's lead above 1.%s",
        (size_t)UPDATE_EVERY, psi_agent_defaults(PSI_AGENT_REWARD_PREDICTIVE).update_every,
        transfer->seeds < FEW_SEEDS
            ? " These are very few seeds: intervals of so few are narrower than is known."
            : "");
    TRY(study_title(of, "Figure 6: agents in new tasks", what));
    TRY(study_set(of, "digits", json_string(transfer->digits)));
    TRY(study_set(of, "digits_per_dial", json_integer((json_int_t)of->how->digits_per_dial)));
    TRY(study_set(of, "net", json_string(psi_net_kind_name(transfer->net))));
    TRY(study_set(of, "seeds", json_integer((json_int_t)transfer->seeds)));
    TRY(study_set(of, "episodes", json_integer((json_int_t)transfer->episodes)));
    TRY(study_set(of, "update_every", json_integer(UPDATE_EVERY)));
    TRY(study_set(of, "latent_states", json_integer((json_int_t)run->n_latent)));
    TRY(study_set(of, "representation", json_string(transfer->representation)));
done:
    return status;
}

psi_status study_transfer(study *of)
{
    psi_status status = PSI_OK;
    psi_ctx *ctx = of->ctx;
    char *run_folder = NULL;
    psi_run *run = NULL;
    const double started = base_seconds();
    transfer_study transfer = {.seeds =
                                   of->how->seeds ? of->how->seeds : SCALES[of->how->scale].seeds,
                               .episodes = of->how->agent_episodes ? of->how->agent_episodes : 100};
    const size_t n = (size_t)TRANSFER_TASKS * TRANSFER_AGENTS * transfer.seeds;
    TRY(base_alloc_zero(ctx, n, sizeof *transfer.trials, &transfer.trials));
    TRY(find_run(of, &transfer, &run_folder, &run));
    transfer.representation = run_folder;
    TRY(say_what(of, &transfer, run));
    TRY(make_trials(of, run, &transfer));
    TRY(run_seeds(ctx, &transfer));
    TRY(study_transfer_report(of, &transfer));
    TRY(study_transfer_figures(of, &transfer));
    TRY(write_manifest(of, &transfer, run, base_seconds() - started));
done:
    psi_trials_free(ctx, transfer.trials, n);
    base_free(ctx, transfer.trials);
    base_free(ctx, run_folder);
    psi_run_free(ctx, run);
    return status;
}
