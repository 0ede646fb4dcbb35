// Reward sequences predicted by the latent model alone (equation 1): a belief over latent states
// moves through M_a, or its most probable state does, and earns w_a.
#include <psifold/mdp.h>

#include "base/comm.h"
#include "base/context.h"
#include "base/order.h"
#include "base/threads.h"
#include "mdp/transitions.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

// A belief with a list of the latent states it holds: deterministic models keep it short.
typedef struct belief {
    double *now, *next;        // (K) zero outside the lists
    int32_t *held, *held_next; // (K) latent states with belief, in order of arrival
    size_t n_held;
    double unseen; // belief that ran into unseen pairs
} belief;

static void belief_free(psi_ctx *ctx, belief *b)
{
    base_free(ctx, b->held_next);
    base_free(ctx, b->held);
    base_free(ctx, b->next);
    base_free(ctx, b->now);
    *b = (belief){0};
}

static psi_status belief_new(psi_ctx *ctx, size_t n_latent, belief *b)
{
    psi_status status = PSI_OK;
    *b = (belief){0};
    TRY(base_alloc_zero(ctx, n_latent, sizeof *b->now, &b->now));
    TRY(base_alloc_zero(ctx, n_latent, sizeof *b->next, &b->next));
    TRY(base_alloc(ctx, n_latent, sizeof *b->held, &b->held));
    TRY(base_alloc(ctx, n_latent, sizeof *b->held_next, &b->held_next));
done:
    if (status != PSI_OK) belief_free(ctx, b);
    return status;
}

static void belief_clear(belief *b)
{
    for (size_t i = 0; i < b->n_held; i++) b->now[b->held[i]] = 0.0;
    b->n_held = 0;
    b->unseen = 0.0;
}

static void belief_add(belief *b, int32_t k, double mass)
{
    if (!(mass > 0.0)) return;
    if (b->now[k] == 0.0) b->held[b->n_held++] = k;
    b->now[k] += mass;
}

// Moves all belief to its most probable state; the first one of equals.
static void belief_sharpen(belief *b)
{
    int32_t best = -1;
    double largest = 0.0;
    for (size_t i = 0; i < b->n_held; i++) {
        const int32_t k = b->held[i];
        if (b->now[k] < largest || (b->now[k] == largest && k > best)) continue;
        largest = b->now[k];
        best = k;
    }
    const double unseen = b->unseen;
    belief_clear(b);
    b->unseen = unseen;
    if (best >= 0) belief_add(b, best, 1.0);
}

// r = w_aᵀ b, then b ← M_aᵀ b. Terminal and unseen rows are empty: what stood there is gone.
static double belief_step(belief *b, const psi_mdp *latent, size_t action)
{
    double reward = 0.0;
    size_t n_next = 0;
    for (size_t h = 0; h < b->n_held; h++) {
        const int32_t k = b->held[h];
        const size_t row = (size_t)k * latent->n_actions + action;
        const double mass = b->now[k];
        b->now[k] = 0.0;
        reward += mass * latent->reward[row];
        if (latent->offsets[row] == latent->offsets[row + 1] && !latent->terminal[k])
            b->unseen += mass;
        for (uint64_t i = latent->offsets[row]; i < latent->offsets[row + 1]; i++) {
            const int32_t j = latent->next[i];
            const double arriving = mass * latent->probability[i];
            if (!(arriving > 0.0)) continue;
            if (b->next[j] == 0.0) b->held_next[n_next++] = j;
            b->next[j] += arriving;
        }
    }
    double *const now = b->now;
    int32_t *const held = b->held;
    b->now = b->next;
    b->held = b->held_next;
    b->next = now;
    b->held_next = held;
    b->n_held = n_next;
    return reward;
}

// The same without lists, for crowded M_a, where belief is everywhere after a few steps.
static double belief_step_dense(belief *b, const psi_mdp *latent, const mdp_transitions *m,
                                size_t action)
{
    double reward = 0.0;
    for (size_t k = 0; k < latent->n_states; k++) {
        const size_t row = k * latent->n_actions + action;
        reward += b->now[k] * latent->reward[row];
        if (latent->offsets[row] == latent->offsets[row + 1] && !latent->terminal[k])
            b->unseen += b->now[k];
    }
    mdp_forward(m, action, b->now, b->next);
    double *const now = b->now;
    b->now = b->next;
    b->next = now;
    return reward;
}

// Back from dense steps to an empty belief with its lists.
static void belief_clear_dense(belief *b, size_t n_latent)
{
    for (size_t k = 0; k < n_latent; k++) b->now[k] = b->next[k] = 0.0;
    b->n_held = 0;
}

psi_status psi_rollout(psi_ctx *ctx, const psi_mdp *latent, const double *start, size_t length,
                       const int32_t *actions, psi_rollout_kind kind, double *rewards)
{
    if (FREED(ctx, latent)) return PSI_EUSAGE;
    psi_status status = PSI_OK;
    belief b = {0};
    for (size_t k = 0; k < latent->n_states; k++) {
        if (!(start[k] >= 0.0) || isinf(start[k]))
            return FAIL(ctx, PSI_EDATA, "the belief in latent state %zu is %g", k, start[k]);
    }
    for (size_t t = 0; t < length; t++) {
        if (actions[t] < 0 || (size_t)actions[t] >= latent->n_actions) {
            return FAIL(ctx, PSI_EDATA, "action %d at step %zu is not one of %zu", actions[t], t,
                        latent->n_actions);
        }
    }
    TRY(belief_new(ctx, latent->n_states, &b));
    for (size_t k = 0; k < latent->n_states; k++) belief_add(&b, (int32_t)k, start[k]);
    for (size_t t = 0; t < length; t++) {
        if (kind == PSI_ROLLOUT_ARGMAX) belief_sharpen(&b);
        rewards[t] = belief_step(&b, latent, (size_t)actions[t]);
    }
done:
    belief_free(ctx, &b);
    return status;
}

// Episodes are handed out a few at a time; every one writes its own line of the results.
typedef struct judging {
    psi_ctx *ctx;
    const psi_mdp *latent;
    const psi_paths *paths;
    const double *beliefs;
    psi_rollout_kind kind;
    mdp_transitions transitions;
    bool dense;
    belief *workspace;             // (threads)
    double *error, *zero, *unseen; // (E) error is NaN where nothing can be judged
    atomic_size_t taken;
    atomic_bool cancelled;
} judging;

enum { EPISODES_AT_ONCE = 16 };

static void judge_episode(judging *work, belief *b, size_t e)
{
    const psi_paths *paths = work->paths;
    const uint64_t begin = paths->episode_offsets[e], end = paths->episode_offsets[e + 1];
    const int32_t first = paths->labels[begin + e];
    work->error[e] = (double)NAN;
    belief_clear(b);
    if (work->beliefs) {
        const double *start = work->beliefs + e * paths->n_latent;
        for (size_t k = 0; k < paths->n_latent; k++) belief_add(b, (int32_t)k, start[k]);
    } else if (first >= 0) {
        belief_add(b, first, 1.0);
    }
    if (b->n_held == 0 || begin == end) return;
    double error = 0.0, zero = 0.0;
    for (uint64_t t = begin; t < end; t++) {
        const size_t action = (size_t)paths->actions[t];
        if (work->kind == PSI_ROLLOUT_ARGMAX) belief_sharpen(b);
        const double predicted =
            work->dense ? belief_step_dense(b, work->latent, &work->transitions, action)
                        : belief_step(b, work->latent, action);
        error += fabs(paths->rewards[t] - predicted);
        zero += fabs(paths->rewards[t]);
    }
    work->error[e] = error / (double)(end - begin);
    work->zero[e] = zero / (double)(end - begin);
    work->unseen[e] = b->unseen;
    if (work->dense) belief_clear_dense(b, paths->n_latent);
}

static void judge_episodes(void *argument, int thread, int threads)
{
    (void)threads;
    judging *work = argument;
    const size_t n = work->paths->n_episodes;
    for (;;) {
        const size_t begin = atomic_fetch_add(&work->taken, EPISODES_AT_ONCE);
        if (begin >= n) return;
        if (base_cancelled(work->ctx) != PSI_OK) {
            atomic_store(&work->cancelled, true);
            return;
        }
        for (size_t e = begin; e < n && e < begin + EPISODES_AT_ONCE; e++)
            judge_episode(work, &work->workspace[thread], e);
    }
}

// Means in the order of the episodes, so that the number of threads, or of processes, cannot be
// seen in them.
static psi_status summarise(psi_ctx *ctx, const judging *work, bool together,
                            psi_sequence_error *summary)
{
    psi_status status = PSI_OK;
    double *own = NULL, *sorted = NULL;
    size_t n = 0, bytes;
    TRY(base_alloc(ctx, work->paths->n_episodes, sizeof *own, &own));
    if (together) TRY(base_take_turn(ctx, summary, sizeof *summary));
    for (size_t e = 0; e < work->paths->n_episodes; e++) {
        if (isnan(work->error[e])) continue;
        summary->mean += work->error[e];
        summary->zero_baseline += work->zero[e];
        summary->unseen += work->unseen[e];
        own[n++] = work->error[e];
    }
    if (together) {
        TRY(base_end_turn(ctx, summary, sizeof *summary));
        TRY(base_gather_parts(ctx, own, n * sizeof *own, &sorted, &bytes));
        n = bytes / sizeof *sorted;
    } else {
        sorted = own;
        own = NULL;
    }
    summary->judged = n;
    if (n > 0) {
        qsort(sorted, n, sizeof *sorted, base_by_real);
        summary->median = 0.5 * (sorted[(n - 1) / 2] + sorted[n / 2]);
        summary->mean /= (double)n;
        summary->zero_baseline /= (double)n;
        summary->unseen /= (double)n;
    }
done:
    base_free(ctx, own);
    base_free(ctx, sorted);
    return status;
}

static psi_status check_beliefs(psi_ctx *ctx, const psi_paths *paths, const double *beliefs)
{
    for (size_t i = 0; beliefs && i < paths->n_episodes * paths->n_latent; i++) {
        if (!(beliefs[i] >= 0.0) || isinf(beliefs[i])) {
            return FAIL(ctx, PSI_EDATA, "episode %zu starts with a belief of %g",
                        i / paths->n_latent, beliefs[i]);
        }
    }
    return PSI_OK;
}

static psi_status judge(psi_ctx *ctx, const psi_mdp *latent, const psi_paths *paths,
                        const double *beliefs, psi_rollout_kind kind, bool together, double *errors,
                        psi_sequence_error *summary)
{
    if (FREED(ctx, latent)) return PSI_EUSAGE;
    psi_status status = PSI_OK;
    base_team *team = base_ctx_team(ctx);
    const size_t threads = (size_t)base_team_size(team), n = paths->n_episodes;
    judging work = {.ctx = ctx, .latent = latent, .paths = paths, .beliefs = beliefs, .kind = kind};
    *summary = (psi_sequence_error){0};
    TRY(psi_paths_check(ctx, paths));
    TRY(check_beliefs(ctx, paths, beliefs));
    if (latent->n_states != paths->n_latent || latent->n_actions != paths->n_actions) {
        TRY(FAIL(ctx, PSI_ESHAPE,
                 "the model has %zu latent states and %zu actions, the paths have "
                 "%zu and %zu",
                 latent->n_states, latent->n_actions, paths->n_latent, paths->n_actions));
    }
    TRY(mdp_transitions_new(ctx, latent, 0.0, &work.transitions));
    work.dense = work.transitions.dense && kind == PSI_ROLLOUT_SOFT;
    TRY(base_alloc_zero(ctx, threads, sizeof *work.workspace, &work.workspace));
    for (size_t t = 0; t < threads; t++) TRY(belief_new(ctx, paths->n_latent, &work.workspace[t]));
    TRY(base_alloc_zero(ctx, n, sizeof *work.error, &work.error));
    TRY(base_alloc_zero(ctx, n, sizeof *work.zero, &work.zero));
    TRY(base_alloc_zero(ctx, n, sizeof *work.unseen, &work.unseen));
    base_team_run(team, judge_episodes, &work);
    if (atomic_load(&work.cancelled)) TRY(base_cancelled(ctx));
    TRY(summarise(ctx, &work, together, summary));
    for (size_t e = 0; errors && e < n; e++) errors[e] = work.error[e];
done:
    base_free(ctx, work.unseen);
    base_free(ctx, work.zero);
    base_free(ctx, work.error);
    for (size_t t = 0; work.workspace && t < threads; t++) belief_free(ctx, &work.workspace[t]);
    base_free(ctx, work.workspace);
    mdp_transitions_free(ctx, &work.transitions);
    return status;
}

psi_status psi_sequence_errors(psi_ctx *ctx, const psi_mdp *latent, const psi_paths *paths,
                               const double *beliefs, psi_rollout_kind kind, double *errors,
                               psi_sequence_error *summary)
{
    return judge(ctx, latent, paths, beliefs, kind, false, errors, summary);
}

psi_status psi_sequence_errors_together(psi_ctx *ctx, const psi_mdp *latent, const psi_paths *paths,
                                        psi_rollout_kind kind, double *errors,
                                        psi_sequence_error *summary)
{
    return judge(ctx, latent, paths, NULL, kind, true, errors, summary);
}
