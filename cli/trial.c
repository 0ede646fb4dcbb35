#include "cli/trial.h"

#include "base/file.h"
#include "base/jobs.h"
#include "base/progress.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static const double CHECKPOINT_EVERY = 30; // seconds

typedef struct trials {
    psi_ctx *ctx;
    cli_trial **pending;
    pthread_mutex_t lock; // of progress
    base_progress progress;
    uint64_t done; // episodes of all trials, each as often as its weight
} trials;

// How long an episode takes, roughly and relative to others: 100 episodes of the lock take a cnn
// that learns from images 57 to 184 s, and all other agents at most 1.3 s.
static uint64_t weight_of(const cli_trial *trial)
{
    const psi_agent_kind kind = trial->options.kind;
    return kind == PSI_AGENT_DQN || kind == PSI_AGENT_PRETRAINED ? 100 : 1;
}

// ---- results on disk

static json_t *score_json(const psi_agent_score *score)
{
    return json_pack("{s:f, s:f, s:I, s:I, s:I, s:I, s:b, s:f}", "reward_per_step",
                     score->reward_per_step, "reward", score->reward, "steps",
                     (json_int_t)score->steps, "episodes", (json_int_t)score->episodes, "truncated",
                     (json_int_t)score->truncated, "steps_to_first_solve",
                     (json_int_t)score->steps_to_first_solve, "solved", (int)score->solved, "area",
                     score->area);
}

static psi_agent_score score_from(const json_t *json)
{
    return (psi_agent_score){
        .reward_per_step = json_number_value(json_object_get(json, "reward_per_step")),
        .reward = json_number_value(json_object_get(json, "reward")),
        .steps = (uint64_t)json_integer_value(json_object_get(json, "steps")),
        .episodes = (uint64_t)json_integer_value(json_object_get(json, "episodes")),
        .truncated = (uint64_t)json_integer_value(json_object_get(json, "truncated")),
        .steps_to_first_solve =
            (uint64_t)json_integer_value(json_object_get(json, "steps_to_first_solve")),
        .solved = json_is_true(json_object_get(json, "solved")),
        .area = json_number_value(json_object_get(json, "area"))};
}

json_t *cli_trial_json(const cli_trial *trial)
{
    json_t *json = score_json(&trial->score);
    json_object_set_new(json, "diverged", json_boolean(trial->diverged));
    json_object_set_new(json, "final", trial->evaluation ? score_json(&trial->final) : json_null());
    json_object_set_new(json, "updates", json_integer((json_int_t)trial->updates));
    json_object_set_new(json, "seconds", json_real(trial->seconds));
    json_object_set_new(json, "seed", json_integer((json_int_t)trial->options.seed));
    return json;
}

json_t *cli_interval_json(const psi_interval *interval)
{
    return json_pack("{s:f, s:f, s:f}", "estimate", interval->estimate, "low", interval->low,
                     "high", interval->high);
}

// A number for the weights of a network: results with another representation do not count. FNV-1a.
static psi_status hash_of(psi_ctx *ctx, const psi_net *net, char text[17])
{
    psi_status status = PSI_OK;
    psi_real *values = NULL;
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t i = 0; net && i < psi_net_tensor_count(net); i++) {
        psi_tensor_info info;
        TRY(psi_net_tensor_info(ctx, net, i, &info));
        const size_t n = psi_shape_size(&info.shape);
        TRY(base_resize(ctx, n, sizeof *values, &values));
        TRY(psi_net_tensor_get(ctx, net, i, values));
        for (size_t j = 0; j < n; j++) {
            uint32_t bits;
            memcpy(&bits, &values[j], sizeof bits);
            hash = (hash ^ bits) * 0x100000001b3;
        }
    }
    snprintf(text, 17, "%016" PRIx64, hash);
done:
    base_free(ctx, values);
    return status;
}

static bool sees_through_network(const psi_agent_options *o)
{
    return (o->kind == PSI_AGENT_REWARD_PREDICTIVE || o->kind == PSI_AGENT_PLANNER) &&
           o->view != PSI_VIEW_TRUTH;
}

// What a finished trial must have been for its result to count: the task and all that was chosen.
static psi_status description(psi_ctx *ctx, const cli_trial *trial, json_t **out)
{
    psi_status status = PSI_OK;
    const psi_agent_options *o = &trial->options;
    char task[PSI_TASK_JSON_SIZE], hash[17];
    *out = NULL;
    TRY(psi_task_json(ctx, &trial->task, task));
    TRY(hash_of(ctx, sees_through_network(o) ? o->representation : NULL, hash));
    *out =
        json_pack("{s:s, s:I, s:i, s:b, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:f, s:f, s:I, s:I, "
                  "s:I, s:I, s:f, s:I, "
                  "s:f, s:f, s:f}",
                  "representation", hash, "learning_starts", (json_int_t)o->learning_starts, "loss",
                  (int)o->loss, "freeze_norm", (int)o->freeze_norm, "task", task, "kind",
                  psi_agent_kind_name(o->kind), "net", psi_net_kind_name(o->net), "view",
                  psi_view_name(o->view), "hidden", (json_int_t)o->hidden, "episodes",
                  (json_int_t)trial->episodes, "seed", (json_int_t)o->seed, "gamma", o->gamma,
                  "learning_rate", o->learning_rate, "batch", (json_int_t)o->batch, "buffer",
                  (json_int_t)o->buffer, "exploration_episodes",
                  (json_int_t)o->exploration_episodes, "update_every", (json_int_t)o->update_every,
                  "tau", o->tau, "target_period", (json_int_t)o->target_period, "final_epsilon",
                  o->final_epsilon, "table_rate", o->table_rate, "optimism", o->optimism);
    TRY(base_json_made(ctx, *out));
done:
    return status;
}

static psi_status file_in(psi_ctx *ctx, const cli_trial *trial, const char *name, char **out)
{
    return base_join(ctx, trial->folder, name, out);
}

// Reads the result of a trial that was finished before, if there is one.
static psi_status read_result(psi_ctx *ctx, cli_trial *trial)
{
    enum { LARGEST_RESULT = 1 << 20 };
    psi_status status = PSI_OK;
    char *result = NULL, *curve = NULL;
    json_t *json = NULL, *wanted = NULL;
    struct stat info;
    if (!trial->folder) return PSI_OK;
    TRY(file_in(ctx, trial, "result.json", &result));
    TRY(file_in(ctx, trial, "curve.csv", &curve));
    if (stat(result, &info) != 0) goto done;
    TRY(base_json_load(ctx, result, LARGEST_RESULT, &json));
    TRY(description(ctx, trial, &wanted));
    if (!json_equal(json_object_get(json, "trial"), wanted)) {
        status = FAIL(ctx, PSI_EUSAGE,
                      "%s is there with other options; choose another folder or remove it",
                      trial->folder);
        goto done;
    }
    const json_t *scores = json_object_get(json, "result");
    trial->score = score_from(scores);
    trial->final = score_from(json_object_get(scores, "final"));
    trial->diverged = json_is_true(json_object_get(scores, "diverged"));
    trial->updates = (uint64_t)json_integer_value(json_object_get(scores, "updates"));
    trial->seconds = json_number_value(json_object_get(scores, "seconds"));
    TRY(psi_curve_load_csv(ctx, curve, &trial->curve, &trial->n_curve));
    trial->finished = true;
done:
    base_free(ctx, result);
    base_free(ctx, curve);
    json_decref(json);
    json_decref(wanted);
    return status;
}

static psi_status write_result(psi_ctx *ctx, const cli_trial *trial, const psi_agent *agent)
{
    psi_status status = PSI_OK;
    char *result = NULL, *curve = NULL, *events = NULL, *network = NULL;
    json_t *json = NULL, *wanted = NULL;
    TRY(file_in(ctx, trial, "result.json", &result));
    TRY(file_in(ctx, trial, "curve.csv", &curve));
    TRY(file_in(ctx, trial, "events.out.tfevents.psifold", &events));
    TRY(file_in(ctx, trial, "network.safetensors", &network));
    TRY(psi_curve_save_csv(ctx, trial->curve, trial->n_curve, curve));
    TRY(psi_curve_save_events(ctx, trial->curve, trial->n_curve,
                              (double)time(NULL) - trial->seconds, events));
    if (trial->keep_network && psi_agent_network(agent)) {
        TRY(psi_net_save(ctx, psi_agent_network(agent), network));
    }
    TRY(description(ctx, trial, &wanted));
    json = json_pack("{s:O, s:o}", "trial", wanted, "result", cli_trial_json(trial));
    TRY(base_json_made(ctx, json));
    TRY(base_json_save(ctx, result, json));
done:
    base_free(ctx, result);
    base_free(ctx, curve);
    base_free(ctx, events);
    base_free(ctx, network);
    json_decref(json);
    json_decref(wanted);
    return status;
}

// ---- one trial

static psi_status tell(trials *all, uint64_t weight)
{
    pthread_mutex_lock(&all->lock);
    all->done += weight;
    const psi_status status = base_progress_at(&all->progress, all->done);
    pthread_mutex_unlock(&all->lock);
    return status;
}

// Plays until the agent has all its episodes; a checkpoint now and then.
static psi_status learn(psi_ctx *ctx, trials *all, const cli_trial *trial, psi_agent *agent,
                        const char *checkpoint)
{
    psi_status status = PSI_OK;
    double saved = base_seconds();
    size_t played;
    psi_agent_curve(agent, &played);
    for (size_t e = played; e < trial->episodes; e++) {
        TRY(psi_agent_play(ctx, agent, 1));
        if (tell(all, weight_of(trial)) != PSI_OK) {
            status = FAIL(ctx, PSI_ECANCELLED, "stopped on request");
            goto done;
        }
        if (!checkpoint || base_seconds() - saved < CHECKPOINT_EVERY) continue;
        TRY(psi_agent_save(ctx, agent, checkpoint));
        saved = base_seconds();
    }
done:
    return status;
}

// The Q-network that a pretrained agent starts from: from a file, or learnt here and now.
static psi_status pretrain(psi_ctx *ctx, trials *all, const cli_trial *trial, psi_net **out)
{
    psi_status status = PSI_OK;
    psi_agent *first = NULL;
    psi_agent_options options = trial->options;
    *out = NULL;
    if (trial->start_file) return psi_net_load(ctx, trial->start_file, out);
    options.kind = PSI_AGENT_DQN;
    options.view = PSI_VIEW_AUTO;
    TRY(psi_agent_new(ctx, &trial->training, &options, &first));
    TRY(learn(ctx, all, trial, first, NULL));
    TRY(psi_net_clone(ctx, psi_agent_network(first), out));
done:
    psi_agent_free(ctx, first);
    return status;
}

static psi_status keep_curve(psi_ctx *ctx, cli_trial *trial, const psi_agent *agent)
{
    psi_status status = PSI_OK;
    const psi_agent_episode *curve = psi_agent_curve(agent, &trial->n_curve);
    TRY(base_alloc(ctx, trial->n_curve, sizeof *curve, &trial->curve));
    memcpy(trial->curve, curve, trial->n_curve * sizeof *curve);
    trial->score = psi_agent_score_of(curve, trial->n_curve);
    trial->updates = psi_agent_updates(agent);
done:
    return status;
}

static psi_status run_trial(psi_ctx *ctx, trials *all, cli_trial *trial)
{
    psi_status status = PSI_OK;
    psi_net *start = NULL;
    psi_agent *agent = NULL;
    char *checkpoint = NULL;
    struct stat info;
    const double started = base_seconds();
    psi_agent_options options = trial->options;
    if (trial->folder) {
        TRY(base_make_folders(ctx, trial->folder));
        TRY(file_in(ctx, trial, "checkpoint", &checkpoint));
    }
    if (options.kind == PSI_AGENT_PRETRAINED) TRY(pretrain(ctx, all, trial, &start));
    options.start = start;
    TRY(psi_agent_new(ctx, &trial->task, &options, &agent));
    if (checkpoint && stat(checkpoint, &info) == 0) TRY(psi_agent_load(ctx, agent, checkpoint));
    status = learn(ctx, all, trial, agent, checkpoint);
    trial->diverged = status == PSI_ENUMERIC; // counted and shown, with what it earned till then
    if (!trial->diverged) TRY(status);
    TRY(keep_curve(ctx, trial, agent));
    if (trial->evaluation && !trial->diverged) {
        TRY(psi_agent_evaluate(ctx, agent, trial->evaluation, &trial->final));
    }
    trial->seconds = base_seconds() - started;
    if (trial->folder) TRY(write_result(ctx, trial, agent));
    if (checkpoint) base_remove(checkpoint);
    trial->finished = true;
done:
    base_free(ctx, checkpoint);
    psi_agent_free(ctx, agent);
    psi_net_free(ctx, start);
    return status;
}

static psi_status job(void *user, psi_ctx *own, size_t i)
{
    trials *all = user;
    return run_trial(own, all, all->pending[i]);
}

psi_status cli_trials_run(cli_call *cli, cli_trial *list, size_t n, bool wide)
{
    psi_status status = PSI_OK;
    trials all = {.ctx = cli->ctx};
    uint64_t total = 0;
    size_t pending = 0;
    pthread_mutex_init(&all.lock, NULL);
    TRY(base_alloc(cli->ctx, n, sizeof *all.pending, &all.pending));
    for (size_t i = 0; i < n; i++) {
        if (!list[i].finished) TRY(read_result(cli->ctx, &list[i]));
        if (list[i].finished) continue;
        const bool twice = list[i].options.kind == PSI_AGENT_PRETRAINED && !list[i].start_file;
        total += list[i].episodes * (twice ? 2 : 1) * weight_of(&list[i]);
        all.pending[pending++] = &list[i];
    }
    all.progress = base_progress_start(cli->ctx, "learning", total);
    if (wide) {
        for (size_t i = 0; i < pending; i++) TRY(run_trial(cli->ctx, &all, all.pending[i]));
    } else {
        TRY(base_jobs_run(cli->ctx, pending, job, &all, NULL));
    }
    base_progress_end(&all.progress, total);
done:
    if (status == PSI_ECANCELLED && n > 0 && list[0].folder) {
        status = FAIL(cli->ctx, PSI_ECANCELLED,
                      "stopped on request; the same command goes on from here");
    }
    base_free(cli->ctx, all.pending);
    pthread_mutex_destroy(&all.lock);
    return status;
}

void cli_trials_free(cli_call *cli, cli_trial *list, size_t n)
{
    for (size_t i = 0; list && i < n; i++) {
        base_free(cli->ctx, list[i].folder);
        base_free(cli->ctx, list[i].curve);
    }
}
