#include "cli/trial.h"

#include "base/checked.h"
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
enum { MOST_TOGETHER = 16 };               // trials that look through a network together
enum { LARGEST_RESULT = 1 << 20 };         // bytes

typedef struct trials {
    psi_ctx *ctx;
    cli_trial **pending;  // those of a party next to each other …
    size_t *first;        // … from here up to the next one's
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

// The network in a file, as a number.
static psi_status hash_of_file(psi_ctx *ctx, const char *path, char text[17])
{
    psi_status status = PSI_OK;
    psi_net *net = NULL;
    TRY(psi_net_load(ctx, path, &net));
    TRY(hash_of(ctx, net, text));
done:
    psi_net_free(ctx, net);
    return status;
}

// What a trial must have been for its result to count, or its checkpoint: all that decides what
// comes out of it.
static psi_status key_of(psi_ctx *ctx, const cli_trial *trial, json_t **out)
{
    psi_status status = PSI_OK;
    const psi_agent_options *o = &trial->options;
    const bool pretrained = o->kind == PSI_AGENT_PRETRAINED;
    char task[PSI_TASK_JSON_SIZE], truth[PSI_TASK_JSON_SIZE] = "", first[PSI_TASK_JSON_SIZE] = "",
                                   representation[17], start[17] = "";
    json_t *chosen = NULL;
    *out = NULL;
    TRY(psi_task_json(ctx, &trial->task, task));
    if (o->truth_of) TRY(psi_task_json(ctx, o->truth_of, truth));
    if (pretrained && !trial->start_file) TRY(psi_task_json(ctx, &trial->training, first));
    if (pretrained && trial->start_file) TRY(hash_of_file(ctx, trial->start_file, start));
    TRY(hash_of(ctx, sees_through_network(o) ? o->representation : NULL, representation));
    TRY(base_options_json(ctx, psi_agent_option_table(), o, true, &chosen));
    *out = json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:O}", "task", task, "truth_of", truth,
                     "pretraining", first, "start", start, "representation", representation,
                     "episodes", (json_int_t)trial->episodes, "evaluation",
                     (json_int_t)trial->evaluation, "options", chosen);
    TRY(base_json_made(ctx, *out));
done:
    json_decref(chosen);
    return status;
}

// The first member that two objects do not share, or NULL.
static const char *first_difference(const json_t *wanted, const json_t *found)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)wanted, key, value)
    {
        const json_t *other = json_object_get(found, key);
        if (json_is_object(value) && json_is_object(other)) {
            const char *inside = first_difference(value, other);
            if (inside) return inside;
        } else if (!other || !json_equal(value, other)) {
            return key;
        }
    }
    return NULL;
}

static psi_status check_key(psi_ctx *ctx, const cli_trial *trial, const json_t *found)
{
    psi_status status = PSI_OK;
    json_t *wanted = NULL;
    TRY(key_of(ctx, trial, &wanted));
    const char *other = first_difference(wanted, found);
    if (other) {
        status =
            FAIL(ctx, PSI_EUSAGE, "%s is there with another %s; choose another folder or remove it",
                 trial->folder, other);
    }
done:
    json_decref(wanted);
    return status;
}

static psi_status file_in(psi_ctx *ctx, const cli_trial *trial, const char *name, char **out)
{
    return base_join(ctx, trial->folder, name, out);
}

// Reads the result of a trial that was finished before, if there is one.
static psi_status read_result(psi_ctx *ctx, cli_trial *trial)
{
    psi_status status = PSI_OK;
    char *result = NULL, *curve = NULL;
    json_t *json = NULL;
    struct stat info;
    if (!trial->folder) return PSI_OK;
    TRY(file_in(ctx, trial, "result.json", &result));
    TRY(file_in(ctx, trial, "curve.csv", &curve));
    if (stat(result, &info) != 0) goto done;
    TRY(base_json_load(ctx, result, LARGEST_RESULT, &json));
    TRY(check_key(ctx, trial, json_object_get(json, "trial")));
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
    return status;
}

// trial.json says from the beginning on what a folder is about, before there is a result.
static psi_status claim_folder(psi_ctx *ctx, const cli_trial *trial)
{
    psi_status status = PSI_OK;
    char *path = NULL;
    json_t *key = NULL;
    struct stat info;
    TRY(base_make_folders(ctx, trial->folder));
    TRY(file_in(ctx, trial, "trial.json", &path));
    if (stat(path, &info) == 0) {
        TRY(base_json_load(ctx, path, LARGEST_RESULT, &key));
        TRY(check_key(ctx, trial, key));
    } else {
        TRY(key_of(ctx, trial, &key));
        TRY(base_json_save(ctx, path, key));
    }
done:
    json_decref(key);
    base_free(ctx, path);
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
    TRY(key_of(ctx, trial, &wanted));
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

// ---- trials that are played together

// One trial, or several that look through the same network.
typedef struct party {
    trials *all;
    psi_ctx *ctx;
    cli_trial *const *members; // (n)
    size_t n;
    psi_net *start[MOST_TOGETHER]; // pretrained: what it starts from
    psi_agent *agents[MOST_TOGETHER];
    char *checkpoints[MOST_TOGETHER]; // where they are kept; NULL: nowhere
    psi_status each[MOST_TOGETHER];
    double saved[MOST_TOGETHER]; // when
} party;

// After every episode: a checkpoint now and then.
static psi_status ended(void *user, size_t i)
{
    psi_status status = PSI_OK;
    party *p = user;
    trials *all = p->all;
    pthread_mutex_lock(&all->lock);
    all->done += weight_of(p->members[i]);
    status = base_progress_at(&all->progress, all->done);
    pthread_mutex_unlock(&all->lock);
    if (status != PSI_OK) return FAIL(p->ctx, PSI_ECANCELLED, "stopped on request");
    if (!p->checkpoints[i] || base_seconds() - p->saved[i] < CHECKPOINT_EVERY) goto done;
    TRY(psi_agent_save(p->ctx, p->agents[i], p->checkpoints[i]));
    p->saved[i] = base_seconds();
done:
    return status;
}

// The Q-network that a pretrained agent starts from: from a file, or learnt here and now.
static psi_status pretrain(psi_ctx *ctx, trials *all, cli_trial *trial, psi_net **out)
{
    psi_status status = PSI_OK;
    party alone = {.all = all, .ctx = ctx, .members = &trial, .n = 1};
    psi_agent_options options = trial->options;
    *out = NULL;
    if (trial->start_file) return psi_net_load(ctx, trial->start_file, out);
    options.kind = PSI_AGENT_DQN;
    options.view = PSI_VIEW_AUTO;
    TRY(psi_agent_new(ctx, &trial->training, &options, &alone.agents[0]));
    TRY(psi_agents_play(ctx, alone.agents, 1, trial->episodes, ended, &alone, NULL));
    TRY(psi_net_clone(ctx, psi_agent_network(alone.agents[0]), out));
done:
    psi_agent_free(ctx, alone.agents[0]);
    return status;
}

static psi_status make_member(psi_ctx *ctx, party *p, size_t i)
{
    psi_status status = PSI_OK;
    cli_trial *trial = p->members[i];
    struct stat info;
    psi_agent_options options = trial->options;
    if (trial->folder) {
        TRY(claim_folder(ctx, trial));
        TRY(file_in(ctx, trial, "checkpoint", &p->checkpoints[i]));
    }
    if (options.kind == PSI_AGENT_PRETRAINED) TRY(pretrain(ctx, p->all, trial, &p->start[i]));
    options.start = p->start[i];
    TRY(psi_agent_new(ctx, &trial->task, &options, &p->agents[i]));
    if (p->checkpoints[i] && stat(p->checkpoints[i], &info) == 0) {
        TRY(psi_agent_load(ctx, p->agents[i], p->checkpoints[i]));
    }
    p->saved[i] = base_seconds();
done:
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

// Those that did not diverge, without exploration.
static psi_status evaluate(psi_ctx *ctx, party *p)
{
    psi_status status = PSI_OK;
    psi_agent *sound[MOST_TOGETHER];
    psi_agent_score scores[MOST_TOGETHER];
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++) {
        if (p->each[i] == PSI_OK) sound[n++] = p->agents[i];
    }
    if (p->members[0]->evaluation == 0) goto done;
    TRY(psi_agents_evaluate(ctx, sound, n, p->members[0]->evaluation, scores));
    n = 0;
    for (size_t i = 0; i < p->n; i++) {
        if (p->each[i] == PSI_OK) p->members[i]->final = scores[n++];
    }
done:
    return status;
}

static psi_status run_party(psi_ctx *ctx, trials *all, cli_trial *const *members, size_t n)
{
    psi_status status = PSI_OK;
    party p = {.all = all, .ctx = ctx, .members = members, .n = n};
    const double started = base_seconds();
    for (size_t i = 0; i < n; i++) TRY(make_member(ctx, &p, i));
    TRY(psi_agents_play(ctx, p.agents, n, members[0]->episodes, ended, &p, p.each));
    for (size_t i = 0; i < n; i++) TRY(keep_curve(ctx, members[i], p.agents[i]));
    TRY(evaluate(ctx, &p));
    const double seconds = (base_seconds() - started) / (double)n;
    for (size_t i = 0; i < n; i++) {
        cli_trial *trial = members[i];
        trial->diverged = p.each[i] != PSI_OK; // counted and shown, with what it earned till then
        trial->seconds = seconds;
        if (trial->folder) TRY(write_result(ctx, trial, p.agents[i]));
        if (p.checkpoints[i]) base_remove(p.checkpoints[i]);
        trial->finished = true;
    }
done:
    for (size_t i = 0; i < n; i++) {
        base_free(ctx, p.checkpoints[i]);
        psi_agent_free(ctx, p.agents[i]);
        psi_net_free(ctx, p.start[i]);
    }
    return status;
}

static bool can_join(const cli_trial *a, const cli_trial *b)
{
    return sees_through_network(&a->options) && sees_through_network(&b->options) &&
           a->options.representation == b->options.representation &&
           a->options.view == b->options.view && a->episodes == b->episodes &&
           a->evaluation == b->evaluation;
}

// Brings trials that can be played together next to each other, in parties that begin at first[i]
// and are as large as they may be while every thread gets one.
static size_t make_parties(cli_trial **pending, size_t n, size_t threads, size_t *first)
{
    size_t parties = 0;
    for (size_t i = 0; i < n; parties++) {
        size_t same = 0, joined = i + 1;
        for (size_t j = i; j < n; j++) same += j == i || can_join(pending[i], pending[j]);
        const size_t most = base_min((same + threads - 1) / threads, MOST_TOGETHER);
        for (size_t j = joined; j < n && joined - i < most; j++) {
            if (!can_join(pending[i], pending[j])) continue;
            cli_trial *const friend = pending[j];
            memmove(pending + joined + 1, pending + joined, (j - joined) * sizeof(cli_trial *));
            pending[joined++] = friend;
        }
        first[parties] = i;
        i = joined;
    }
    first[parties] = n;
    return parties;
}

static psi_status job(void *user, psi_ctx *own, size_t i)
{
    trials *all = user;
    return run_party(own, all, all->pending + all->first[i], all->first[i + 1] - all->first[i]);
}

psi_status cli_trials_run(cli_call *cli, cli_trial *list, size_t n, bool wide)
{
    psi_status status = PSI_OK;
    trials all = {.ctx = cli->ctx};
    uint64_t total = 0;
    size_t pending = 0;
    pthread_mutex_init(&all.lock, NULL);
    TRY(base_alloc(cli->ctx, n, sizeof *all.pending, &all.pending));
    TRY(base_alloc(cli->ctx, n + 1, sizeof *all.first, &all.first));
    for (size_t i = 0; i < n; i++) {
        if (!list[i].finished) TRY(read_result(cli->ctx, &list[i]));
        if (list[i].finished) continue;
        const bool twice = list[i].options.kind == PSI_AGENT_PRETRAINED && !list[i].start_file;
        total += list[i].episodes * (twice ? 2 : 1) * weight_of(&list[i]);
        all.pending[pending++] = &list[i];
    }
    all.progress = base_progress_start(cli->ctx, "learning", total);
    const size_t threads = wide ? 1 : (size_t)psi_threads(cli->ctx);
    const size_t parties = make_parties(all.pending, pending, threads, all.first);
    if (wide) {
        for (size_t i = 0; i < parties; i++) TRY(job(&all, cli->ctx, i));
    } else {
        TRY(base_jobs_run(cli->ctx, parties, job, &all, NULL));
    }
    base_progress_end(&all.progress, total);
done:
    if (status == PSI_ECANCELLED && n > 0 && list[0].folder) {
        status = FAIL(cli->ctx, PSI_ECANCELLED,
                      "stopped on request; the same command goes on from here");
    }
    base_free(cli->ctx, all.pending);
    base_free(cli->ctx, all.first);
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
