// Two questions. Does what followed one past differ from what followed the others of the same
// latent state? That finds a past that changes much in few places. And is anything of the past
// correlated with anything that follows, over all latent states together? That finds a past that
// changes little in many places, each of which was seen too rarely to show it.
#include "verdict/past.h"

#include "base/checked.h"
#include "base/comm.h"
#include "base/context.h"
#include "verdict/contexts.h"
#include "verdict/foretell.h"
#include "verdict/judging.h"
#include "verdict/memory.h"

#include <math.h>

typedef struct asking {
    psi_ctx *ctx;
    const cluster_problem *problem;
    const outcome_rewards *rewards;
    outcome_rewards classes; // what is remembered of rewards that are numbers, too
    const int32_t *labels;
    const int32_t *look; // (n_rows)
    size_t n_looks;
    size_t n_latent, n_strata; // a stratum is a latent state and an action
    double misplaced;
    size_t questions; // so far: several processes take turns with them
    uint8_t *asked;   // (transitions) has a past, and starts and ends in a known latent state
    int32_t *next;    // (transitions) the latent state that it ends in
} asking;

// ---- one past against the others ----------------------------------------------------------------

// The past is the latent state before, the action there, or both and the class of its reward: the
// less it tells apart, the smaller a difference shows. Or there is none: the episode begins.
typedef enum past_kind {
    STATE_BEFORE,
    ACTION_BEFORE,
    ALL_BEFORE,
    NONE_BEFORE,
    PAST_KINDS
} past_kind;

static bool begins(const cluster_problem *problem, size_t t)
{
    return t == 0 || problem->row[t - 1] + 1 != problem->row[t];
}

static psi_status compare_pasts(asking *run, past_kind kind, double allowed, verdict_past *out)
{
    psi_status status = PSI_OK;
    const psi_trajectories *data = run->problem->data;
    const size_t classes = base_max(run->classes.n, 1);
    uint64_t *context = NULL;
    TRY(base_alloc(run->ctx, data->n_transitions, sizeof *context, &context));
    for (size_t t = 0; t < data->n_transitions; t++) {
        context[t] = kind == NONE_BEFORE ? begins(run->problem, t) : CONTEXT_NONE;
        if (kind == NONE_BEFORE || !run->asked[t]) continue;
        const size_t class = run->classes.n > 1 ? (size_t)run->classes.of[t - 1] : 0;
        const uint64_t before = (uint64_t)run->labels[run->problem->row[t] - 1];
        const uint64_t action = (uint64_t)data->actions[t - 1];
        context[t] = kind == STATE_BEFORE ? before
                     : kind == ACTION_BEFORE
                         ? action
                         : (before * data->n_actions + action) * classes + class;
    }
    TRY(verdict_compare_contexts(run->ctx, run->problem, run->rewards, run->labels, run->n_latent,
                                 context, allowed, &out->share, &out->worst, NULL));
    if (out->share <= run->misplaced) *out = (verdict_past){.worst = -1};
    out->suspect = out->share > 0.0;
done:
    base_free(run->ctx, context);
    return status;
}

// The first kind that tells something. Several processes look at all kinds, each at some of them.
static psi_status compare_all(asking *run, double allowed, verdict_past *out)
{
    psi_status status = PSI_OK;
    const size_t ranks = (size_t)base_ranks(run->ctx), rank = (size_t)base_rank(run->ctx);
    verdict_past own[PAST_KINDS], (*all)[PAST_KINDS] = NULL;
    TRY(base_alloc(run->ctx, ranks, sizeof *all, &all));
    for (past_kind kind = 0; kind < PAST_KINDS; kind++) {
        own[kind] = (verdict_past){.worst = -1};
        if (kind % ranks != rank || (ranks == 1 && out->share > 0.0)) continue;
        TRY(compare_pasts(run, kind, allowed / PAST_KINDS, &own[kind]));
        if (ranks == 1) *out = own[kind];
    }
    TRY(base_gather(run->ctx, own, sizeof own, all));
    for (past_kind kind = 0; kind < PAST_KINDS && out->share == 0.0; kind++) {
        *out = all[kind % ranks][kind];
    }
done:
    base_free(run->ctx, all);
    return status;
}

// ---- all pasts together -------------------------------------------------------------------------

enum { MOST_ASKED = 1 << 18, LONG_PART = 4096 }; // transitions that are enough; of a part
enum { FEWEST_PLACES = 16, MOST_PLACES = 64, PLACE_STEPS = 1 << 22 };
static const double ECHOES[] = {1.0, 16.0, 256.0}; // visits that an echo lasts
enum { N_ECHOES = sizeof ECHOES / sizeof *ECHOES };

// One way to foretell what follows, with what it came to.
static void weigh(const asking *run, double nats, double moved, double clear, double suspect,
                  verdict_past *out)
{
    const double share = moved / (double)run->problem->data->n_transitions;
    if (share <= run->misplaced) return;
    out->suspect |= nats > suspect;
    if (nats > clear && share > out->share) out->share = share;
}

// Whether the next question is this process's.
static bool has_turn(asking *run)
{
    return run->questions++ % (size_t)base_ranks(run->ctx) == (size_t)base_rank(run->ctx);
}

// What all processes have found.
static psi_status put_together(asking *run, verdict_past *out)
{
    psi_status status = PSI_OK;
    verdict_past *all = NULL;
    if (base_ranks(run->ctx) == 1) return PSI_OK;
    TRY(base_alloc(run->ctx, (size_t)base_ranks(run->ctx), sizeof *all, &all));
    TRY(base_gather(run->ctx, out, sizeof *out, all));
    for (int r = 0; r < base_ranks(run->ctx); r++) {
        out->suspect |= all[r].suspect;
        out->share = fmax(out->share, all[r].share);
    }
done:
    base_free(run->ctx, all);
    return status;
}

static psi_status foretell(asking *run, memory *past, bool rewards, double clear, double suspect,
                           verdict_past *out)
{
    psi_status status = PSI_OK;
    const size_t n = run->problem->data->n_transitions;
    foretold what = {0};
    float *number = NULL;
    uint32_t *context = NULL;
    double moved, nats;
    TRY(verdict_foretold_new(run->ctx, n, run->asked, past->stratum, run->n_strata,
                             rewards ? NULL : run->next, run->problem->data->rewards, &what));
    if (what.n == 0) goto done;
    TRY(base_alloc(run->ctx, n, sizeof *number, &number));
    TRY(base_alloc(run->ctx, n, sizeof *context, &context));
    for (size_t which = 0; which < past->n_numbers; which++) {
        TRY(base_cancelled(run->ctx));
        if (!has_turn(run)) continue;
        verdict_memory_number(past, which, number);
        nats = verdict_foretell_by_number(&what, number, &moved);
        weigh(run, nats, moved, clear, suspect, out);
    }
    if (has_turn(run)) {
        nats = verdict_foretell_by_time(&what, n, &moved);
        weigh(run, nats, moved, clear, suspect, out);
    }
    for (size_t which = 0; which < past->n_contexts; which++) {
        TRY(base_cancelled(run->ctx));
        if (!has_turn(run)) continue;
        verdict_memory_context(past, which, context);
        for (size_t odds = 0; odds < (rewards ? 1 : 2); odds++) {
            nats = verdict_foretell_by_context(&what, context, odds == 1, &moved);
            weigh(run, nats, moved, clear, suspect, out);
        }
    }
    for (size_t which = 0; which < (size_t)2 * N_ECHOES; which++) {
        if (!has_turn(run)) continue;
        nats = verdict_foretell_by_echo(&what, which % 2 ? past->episode : NULL, ECHOES[which / 2],
                                        &moved);
        weigh(run, nats, moved, clear, suspect, out);
    }
done:
    base_free(run->ctx, context);
    base_free(run->ctx, number);
    verdict_foretold_free(run->ctx, &what);
    return status;
}

// n exceptions that all have the same of two pasts have a probability of 2^−n by chance. Fewer than
// it takes to be suspicious of that could all be owed to something that is not seen, and nobody
// would know.
static void ask_for_exceptions(const asking *run, const memory *past, const uint8_t *event,
                               double suspect, verdict_past *out)
{
    const psi_trajectories *data = run->problem->data;
    size_t n = 0, last = 0;
    for (size_t t = 0; t < data->n_transitions; t++) {
        if (!run->asked[t] || !event[t]) continue;
        n++;
        last = past->stratum[t];
    }
    const double most = run->misplaced * (double)data->n_transitions;
    if ((double)n <= most || (double)n * M_LN2 >= suspect) return;
    out->exceptions = n;
    out->state = (int32_t)(last / data->n_actions);
    out->action = (int32_t)(last % data->n_actions);
}

static psi_status ask_all(asking *run, double allowed, verdict_past *out)
{
    psi_status status = PSI_OK;
    const size_t n = run->problem->data->n_transitions;
    const size_t places = base_min(base_max(PLACE_STEPS / (n + 1), FEWEST_PLACES), MOST_PLACES);
    memory past = {0};
    TRY(verdict_memory_new(run->ctx, run->problem, &run->classes, run->labels, run->n_latent,
                           run->look, run->n_looks, places, &past));
    const double ways =
        (double)(2 * (past.n_numbers + (size_t)2 * N_ECHOES + 1) + 3 * past.n_contexts);
    const double clear = log(ways / allowed), suspect = log(ways / VERDICT_SUSPECT);
    for (size_t rewards = 0; rewards < 2; rewards++) {
        TRY(foretell(run, &past, rewards == 1, clear, suspect, out));
        ask_for_exceptions(run, &past, rewards ? past.unusual : past.surprise, suspect, out);
    }
    TRY(put_together(run, out));
done:
    verdict_memory_free(run->ctx, &past);
    return status;
}

psi_status verdict_ask_the_past(psi_ctx *ctx, const cluster_problem *problem,
                                const outcome_rewards *rewards, const int32_t *labels,
                                size_t n_latent, const int32_t *look, size_t n_looks,
                                double allowed, double misplaced, verdict_past *out)
{
    psi_status status = PSI_OK;
    const psi_trajectories *data = problem->data;
    asking run = {.ctx = ctx,
                  .problem = problem,
                  .rewards = rewards,
                  .classes = {.n = problem->rewards.n, .of = problem->rewards.of},
                  .labels = labels,
                  .look = look ? look : labels,
                  .n_looks = look ? n_looks : n_latent,
                  .n_latent = n_latent,
                  .n_strata = n_latent * data->n_actions,
                  .misplaced = misplaced};
    *out = (verdict_past){.worst = -1};
    if (rewards->n > 0) run.classes = *rewards;
    const size_t stride = 1 + data->n_transitions / MOST_ASKED; // of episodes, or of long parts
    TRY(base_alloc(ctx, data->n_transitions, sizeof *run.asked, &run.asked));
    TRY(base_alloc(ctx, data->n_transitions, sizeof *run.next, &run.next));
    for (size_t t = 0; t < data->n_transitions; t++) {
        const uint64_t row = problem->row[t];
        run.asked[t] =
            !begins(problem, t) && labels[row] >= 0 && labels[row - 1] >= 0 && labels[row + 1] >= 0;
        run.next[t] = labels[row + 1];
    }
    TRY(compare_all(&run, 0.5 * allowed, out));
    for (size_t t = 0; t < data->n_transitions; t++) {
        run.asked[t] &= t / LONG_PART % stride == 0;
    }
    if (out->share == 0.0) TRY(ask_all(&run, 0.5 * allowed, out));
done:
    base_free(ctx, run.next);
    base_free(ctx, run.asked);
    return status;
}
