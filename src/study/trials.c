// Trials side by side: which are played together, on which thread, with a checkpoint now and then.
#include "study/trial.h"

#include "base/checked.h"
#include "base/comm.h"
#include "base/context.h"
#include "base/file.h"
#include "base/jobs.h"
#include "base/progress.h"

#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

static const double CHECKPOINT_EVERY = 30; // seconds
enum { MOST_TOGETHER = 16 };               // trials that look through a network together

typedef struct trials {
    psi_ctx *ctx;
    psi_trial **pending;  // those of a batch next to each other …
    size_t *first;        // … from here up to the next one's
    pthread_mutex_t lock; // of progress
    base_progress progress;
    uint64_t done; // episodes of all trials, each as often as its weight
} trials;

// How long an episode takes, roughly and relative to others: 100 episodes of the lock take a cnn
// that learns from images 57 to 184 s, and all other agents at most 1.3 s.
static uint64_t weight_of(const psi_trial *trial)
{
    const psi_agent_kind kind = trial->options.kind;
    return kind == PSI_AGENT_DQN || kind == PSI_AGENT_PRETRAINED ? 100 : 1;
}

// ---- trials that are played together

// One trial, or several that look through the same network.
typedef struct batch {
    trials *all;
    psi_ctx *ctx;
    psi_trial *const *members; // (n)
    size_t n;
    psi_net *start[MOST_TOGETHER]; // pretrained: what it starts from
    psi_agent *agents[MOST_TOGETHER];
    char *checkpoints[MOST_TOGETHER]; // where they are kept; NULL: nowhere
    psi_status each[MOST_TOGETHER];
    double saved[MOST_TOGETHER]; // when
} batch;

// After every episode: a checkpoint now and then.
static psi_status ended(void *user, size_t i)
{
    psi_status status = PSI_OK;
    batch *p = user;
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

// The Q-network that a pretrained agent starts from: from a file, another trial's, or learnt here
// and now.
static psi_status pretrain(psi_ctx *ctx, trials *all, psi_trial *trial, psi_net **out)
{
    psi_status status = PSI_OK;
    batch alone = {.all = all, .ctx = ctx, .members = &trial, .n = 1};
    psi_agent_options options = trial->options;
    *out = NULL;
    if (trial->start_file) return psi_net_load(ctx, trial->start_file, out);
    if (trial->source) return study_trial_network(ctx, trial->source, out);
    options.kind = PSI_AGENT_DQN;
    options.view = PSI_VIEW_AUTO;
    TRY(psi_agent_new(ctx, &trial->training, &options, &alone.agents[0]));
    TRY(psi_agents_play(ctx, alone.agents, 1, trial->episodes, ended, &alone, NULL));
    TRY(psi_net_clone(ctx, psi_agent_network(alone.agents[0]), out));
done:
    psi_agent_free(ctx, alone.agents[0]);
    return status;
}

static psi_status make_member(psi_ctx *ctx, batch *p, size_t i)
{
    psi_status status = PSI_OK;
    psi_trial *trial = p->members[i];
    struct stat info;
    psi_agent_options options = trial->options;
    if (trial->folder) {
        TRY(study_trial_claim(ctx, trial));
        TRY(study_trial_file(ctx, trial, "checkpoint", &p->checkpoints[i]));
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

static psi_status keep_curve(psi_ctx *ctx, psi_trial *trial, const psi_agent *agent)
{
    psi_status status = PSI_OK;
    const psi_agent_episode *curve = psi_agent_curve(agent, &trial->n_curve);
    TRY(base_alloc(ctx, trial->n_curve, sizeof *curve, &trial->curve));
    memcpy(trial->curve, curve, trial->n_curve * sizeof *curve);
    trial->score = psi_agent_score_of(curve, trial->n_curve);
    trial->updates = psi_agent_updates(agent);
    trial->not_played = psi_agent_not_played(agent);
done:
    return status;
}

// Those that did not diverge, without exploration.
static psi_status evaluate(psi_ctx *ctx, batch *p)
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

static psi_status run_batch(psi_ctx *ctx, trials *all, psi_trial *const *members, size_t n)
{
    psi_status status = PSI_OK;
    batch p = {.all = all, .ctx = ctx, .members = members, .n = n};
    const double started = base_seconds();
    for (size_t i = 0; i < n; i++) TRY(make_member(ctx, &p, i));
    TRY(psi_agents_play(ctx, p.agents, n, members[0]->episodes, ended, &p, p.each));
    for (size_t i = 0; i < n; i++) TRY(keep_curve(ctx, members[i], p.agents[i]));
    TRY(evaluate(ctx, &p));
    const double seconds = (base_seconds() - started) / (double)n;
    for (size_t i = 0; i < n; i++) {
        psi_trial *trial = members[i];
        trial->diverged = p.each[i] != PSI_OK; // counted and shown, with what it earned till then
        trial->seconds = seconds;
        if (trial->folder) TRY(study_trial_write(ctx, trial, p.agents[i]));
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

static bool can_join(const psi_trial *a, const psi_trial *b)
{
    return study_sees_through_network(&a->options) && study_sees_through_network(&b->options) &&
           a->options.representation == b->options.representation &&
           a->options.view == b->options.view && a->episodes == b->episodes &&
           a->evaluation == b->evaluation;
}

// Brings trials that can be played together next to each other, in batches that begin at first[i]
// and are as large as they may be while every thread gets one.
static size_t make_batches(psi_trial **pending, size_t n, size_t threads, size_t *first)
{
    size_t batches = 0;
    for (size_t i = 0; i < n; batches++) {
        size_t same = 0, joined = i + 1;
        for (size_t j = i; j < n; j++) same += j == i || can_join(pending[i], pending[j]);
        const size_t most = base_min((same + threads - 1) / threads, MOST_TOGETHER);
        for (size_t j = joined; j < n && joined - i < most; j++) {
            if (!can_join(pending[i], pending[j])) continue;
            psi_trial *const other = pending[j];
            memmove(pending + joined + 1, pending + joined, (j - joined) * sizeof(psi_trial *));
            pending[joined++] = other;
        }
        first[batches] = i;
        i = joined;
    }
    first[batches] = n;
    return batches;
}

static psi_status job(void *user, psi_ctx *own, size_t i)
{
    trials *all = user;
    return run_batch(own, all, all->pending + all->first[i], all->first[i + 1] - all->first[i]);
}

// ---- several processes --------------------------------------------------------------------------

// What a trial came to, on its way to other processes; its curve follows.
typedef struct outcome {
    uint64_t trial, n_curve, updates, diverged, not_played;
    psi_agent_score score, final;
    double seconds;
} outcome;

static psi_status take_outcome(psi_ctx *ctx, const outcome *from, const char *curve, psi_trial *to)
{
    psi_status status = PSI_OK;
    TRY(base_alloc(ctx, from->n_curve, sizeof *to->curve, &to->curve));
    memcpy(to->curve, curve, from->n_curve * sizeof *to->curve);
    to->n_curve = from->n_curve;
    to->updates = from->updates;
    to->diverged = from->diverged != 0;
    to->not_played = from->not_played;
    to->score = from->score;
    to->final = from->final;
    to->seconds = from->seconds;
    to->finished = true;
done:
    return status;
}

// Trial i is played by process i mod n: what each has played is told to all.
static psi_status share_outcomes(psi_ctx *ctx, psi_trial *list, size_t n)
{
    psi_status status = PSI_OK;
    const size_t ranks = (size_t)base_ranks(ctx), rank = (size_t)base_rank(ctx);
    char *own = NULL, *all = NULL;
    size_t bytes = 0, total = 0;
    if (ranks == 1) return PSI_OK;
    for (size_t i = rank; i < n; i += ranks) {
        bytes += sizeof(outcome) + list[i].n_curve * sizeof *list[i].curve;
    }
    TRY(base_alloc_zero(ctx, bytes, 1, &own));
    bytes = 0;
    for (size_t i = rank; i < n; i += ranks) {
        const psi_trial *trial = &list[i];
        const size_t size = trial->n_curve * sizeof *trial->curve;
        const outcome what = {i,
                              trial->n_curve,
                              trial->updates,
                              trial->diverged,
                              trial->not_played,
                              trial->score,
                              trial->final,
                              trial->seconds};
        memcpy(own + bytes, &what, sizeof what);
        if (size > 0) memcpy(own + bytes + sizeof what, trial->curve, size);
        bytes += sizeof what + size;
    }
    TRY(base_gather_parts(ctx, own, bytes, &all, &total));
    for (size_t at = 0; at < total;) {
        outcome what;
        memcpy(&what, all + at, sizeof what);
        at += sizeof what;
        if (!list[what.trial].finished) {
            TRY(take_outcome(ctx, &what, all + at, &list[what.trial]));
        }
        at += what.n_curve * sizeof *list->curve;
    }
done:
    base_free(ctx, all);
    base_free(ctx, own);
    return status;
}

psi_status psi_trials_run(psi_ctx *ctx, psi_trial *list, size_t n, bool wide)
{
    psi_status status = PSI_OK;
    trials all = {.ctx = ctx};
    uint64_t total = 0;
    size_t pending = 0;
    pthread_mutex_init(&all.lock, NULL);
    TRY(base_alloc(ctx, n, sizeof *all.pending, &all.pending));
    TRY(base_alloc(ctx, n + 1, sizeof *all.first, &all.first));
    for (size_t i = 0; i < n; i++) {
        if (i % (size_t)base_ranks(ctx) != (size_t)base_rank(ctx)) continue; // another process's
        if (!list[i].finished) TRY(study_trial_read(ctx, &list[i]));
        if (list[i].finished) continue;
        const bool twice =
            list[i].options.kind == PSI_AGENT_PRETRAINED && !list[i].start_file && !list[i].source;
        total += list[i].episodes * (twice ? 2 : 1) * weight_of(&list[i]);
        all.pending[pending++] = &list[i];
    }
    all.progress = base_progress_start(ctx, "learning", total);
    const size_t threads = wide ? 1 : (size_t)psi_threads(ctx);
    const size_t batches = make_batches(all.pending, pending, threads, all.first);
    if (wide) {
        for (size_t i = 0; i < batches; i++) TRY(job(&all, ctx, i));
    } else {
        TRY(base_jobs_run(ctx, batches, job, &all, NULL));
    }
    base_progress_end(&all.progress, total);
    TRY(share_outcomes(ctx, list, n));
done:
    if (status == PSI_ECANCELLED && n > 0 && list[0].folder) {
        status =
            FAIL(ctx, PSI_ECANCELLED, "stopped on request; the same command goes on from here");
    }
    base_free(ctx, all.pending);
    base_free(ctx, all.first);
    pthread_mutex_destroy(&all.lock);
    return status;
}
