// Two questions. Does what followed one past differ from what followed the others of the same
// latent state? That finds a past that changes much in few places. And is anything of the past
// correlated with anything that follows, over all latent states together? That finds a past that
// changes little in many places, each of which was seen too rarely to show it.
#include "cluster/past.h"

#include "base/checked.h"
#include "base/context.h"
#include "cluster/contexts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// The probability of a suspicion where there is nothing: it costs an answer that could have been
// certain, while one that is missed makes a wrong answer certain.
static const double SUSPECT = 0.05;

typedef struct asking {
    psi_ctx *ctx;
    const cluster_problem *problem;
    const outcome_rewards *rewards;
    const int32_t *labels;
    size_t n_latent, n_strata; // a stratum is a latent state and an action
    double misplaced;
    // (transitions) what is correlated
    float *past, *future;
    uint32_t *stratum; // its latent state and action
    uint8_t *asked;    // has a past, and starts and ends in a known latent state
    int32_t *usual;    // (K, A) the next latent state that most transitions lead to
    uint8_t *surprise; // (transitions) led elsewhere
} asking;

// ---- one past against the others ----------------------------------------------------------------

// The past is the latent state before, the action there, and the class of its reward.
static psi_status compare_pasts(asking *run, double allowed, cluster_past *out)
{
    psi_status status = PSI_OK;
    const psi_trajectories *data = run->problem->data;
    const size_t classes = base_max(run->rewards->n, 1);
    uint64_t *context = NULL;
    TRY(base_alloc(run->ctx, data->n_transitions, sizeof *context, &context));
    for (size_t t = 0; t < data->n_transitions; t++) {
        context[t] = CONTEXT_NONE;
        if (!run->asked[t]) continue;
        const size_t class = run->rewards->n > 1 ? (size_t)run->rewards->of[t - 1] : 0;
        const uint64_t before = (uint64_t)run->labels[run->problem->row[t] - 1];
        context[t] = (before * data->n_actions + (uint64_t)data->actions[t - 1]) * classes + class;
    }
    TRY(cluster_compare_contexts(run->ctx, run->problem, run->rewards, run->labels, run->n_latent,
                                 context, allowed, &out->share, &out->worst, NULL));
    if (out->share <= run->misplaced) *out = (cluster_past){.worst = -1};
    out->suspect = out->share > 0.0;
done:
    base_free(run->ctx, context);
    return status;
}

// ---- all pasts together -------------------------------------------------------------------------

enum { BLOCK = 64 };           // transitions of a block of time
enum { MOST_ASKED = 1 << 20 }; // transitions that are enough

typedef struct stratum {          // a latent state and an action
    float n[2];                   // transitions in blocks with even and odd numbers
    float past, future;           // Σ past over the former, Σ future over the latter
    float asked, product, x2, y2; // transitions with both means, and Σ xy, Σ x², Σ y² over them
} stratum;

static void count_block(const asking *run, stratum *strata, size_t begin, size_t end, float sign)
{
    const size_t odd = begin / BLOCK % 2;
    for (size_t t = begin; t < end; t++) {
        if (!run->asked[t]) continue;
        stratum *s = &strata[run->stratum[t]];
        s->n[odd] += sign;
        if (odd) {
            s->future += sign * run->future[t];
        } else {
            s->past += sign * run->past[t];
        }
    }
}

// Σ xy over the transitions of each (latent state, action), where x is the past and y the future,
// less their means in other blocks, and in different ones: with means of the same data what follows
// would seem to be correlated with what preceded it (by −1/n for a stratum of n draws). Nats that
// speak against chance: sums of martingale differences of at most c with variance V exceed s with a
// probability below exp(−V/c² · h(c s/V)), h(u) = (1 + u) log(1 + u) − u (Freedman's inequality in
// Bennett's form). *moved gets how many transitions the sum amounts to.
static double correlate(const asking *run, stratum *strata, double *moved)
{
    const size_t n = run->problem->data->n_transitions, many = run->n_strata;
    double sum = 0.0, variance = 0.0, c = 0.0, most = 0.0;
    memset(strata, 0, many * sizeof *strata);
    for (size_t begin = 0; begin < n; begin += BLOCK) {
        count_block(run, strata, begin, base_min(begin + BLOCK, n), 1.0f);
    }
    for (size_t begin = 0; begin < n; begin += BLOCK) {
        const size_t end = base_min(begin + BLOCK, n);
        count_block(run, strata, begin, end, -1.0f);
        for (size_t t = begin; t < end; t++) {
            stratum *s = &strata[run->stratum[t]];
            if (!run->asked[t] || s->n[0] < 1.0f || s->n[1] < 1.0f) continue;
            const float x = run->past[t] - s->past / s->n[0];
            const float y = run->future[t] - s->future / s->n[1];
            s->asked++;
            s->product += x * y;
            s->x2 += x * x;
            s->y2 += y * y;
            c = fmax(c, fabs((double)(x * y)));
            most = fmax(most, fabs((double)y));
        }
        count_block(run, strata, begin, end, 1.0f);
    }
    for (size_t i = 0; i < many; i++) {
        const stratum *s = &strata[i];
        sum += (double)s->product;
        if (s->asked > 0.0f) variance += (double)(s->x2 * s->y2 / s->asked);
    }
    *moved = most > 0.0 ? fabs(sum) / most : 0.0;
    if (sum == 0.0 || variance <= 0.0) return 0.0;
    const double u = c * fabs(sum) / variance;
    return variance / (c * c) * ((1.0 + u) * log1p(u) - u);
}

// The next latent state that most transitions of a (latent state, action) lead to, where that is
// more than half of them; else one of the more frequent ones.
static void find_usual(asking *run, uint32_t *votes)
{
    const psi_trajectories *data = run->problem->data;
    for (size_t t = 0; t < data->n_transitions; t++) {
        const int32_t from = run->labels[run->problem->row[t]];
        const int32_t to = run->labels[run->problem->row[t] + 1];
        if (from < 0 || to < 0) continue;
        const size_t at = (size_t)from * data->n_actions + (size_t)data->actions[t];
        if (votes[at] == 0) run->usual[at] = to;
        votes[at] += run->usual[at] == to ? 1 : -1u;
    }
    for (size_t t = 0; t < data->n_transitions; t++) {
        const int32_t from = run->labels[run->problem->row[t]];
        const int32_t to = run->labels[run->problem->row[t] + 1];
        run->surprise[t] =
            from >= 0 &&
            to != run->usual[(size_t)from * data->n_actions + (size_t)data->actions[t]];
    }
}

// What may be told by the past, one after the other: having stayed, a surprise just before or
// anywhere in the episode, how long the episode lasts, an action, a class of rewards, both
// together.
enum { STAYED, SURPRISED, SURPRISED_BEFORE, LATE, ACTION };
enum { MOST_EVENTS = 64, MOST_PAIRS = 256 };

typedef struct events {
    size_t actions, classes, pairs, n; // that are asked for; n: all in all
} events;

static events list_events(const asking *run)
{
    const size_t actions = run->problem->data->n_actions, classes = run->rewards->n;
    events out = {.actions = base_min(actions, MOST_EVENTS)};
    out.classes = classes > 1 ? base_min(classes, MOST_EVENTS) : 0;
    out.pairs = classes > 1 && actions <= MOST_PAIRS / classes ? actions * classes : 0;
    out.n = ACTION + out.actions + out.classes + out.pairs;
    return out;
}

static void set_past(asking *run, const events *all, size_t what)
{
    const psi_trajectories *data = run->problem->data;
    const size_t class = what - ACTION - all->actions, pair = class - all->classes;
    for (size_t e = 0; e < data->n_episodes; e++) {
        const uint64_t begin = data->episode_offsets[e];
        bool surprised = false;
        for (uint64_t t = begin + 1; t < data->episode_offsets[e + 1]; t++) {
            const uint64_t row = run->problem->row[t];
            const size_t action = (size_t)data->actions[t - 1];
            surprised |= run->surprise[t - 1] != 0;
            if (what >= ACTION + all->actions + all->classes) {
                const size_t of = (size_t)run->rewards->of[t - 1];
                run->past[t] = (float)(action * run->rewards->n + of == pair);
            } else if (what >= ACTION + all->actions) {
                run->past[t] = (float)((size_t)run->rewards->of[t - 1] == class);
            } else if (what >= ACTION) {
                run->past[t] = (float)(action == what - ACTION);
            } else if (what == LATE) {
                run->past[t] = log2f((float)(t - begin));
            } else {
                run->past[t] = (float)(what == STAYED ? run->labels[row] == run->labels[row - 1]
                                       : what == SURPRISED ? run->surprise[t - 1]
                                                           : surprised);
            }
        }
    }
}

// What follows: whether the next latent state is the usual one, and the reward.
static void set_future(asking *run, bool reward)
{
    const psi_trajectories *data = run->problem->data;
    const double scale = run->rewards->n == 0 ? sqrt(fmax(run->rewards->variance, 1e-300)) : 1.0;
    for (size_t t = 0; t < data->n_transitions; t++) {
        run->future[t] = !reward ? (float)run->surprise[t]
                         : run->rewards->n > 1
                             ? (float)run->rewards->of[t]
                             : (float)((data->rewards[t] - run->rewards->mean) / scale);
    }
}

static psi_status correlate_all(asking *run, double allowed, cluster_past *out)
{
    psi_status status = PSI_OK;
    const psi_trajectories *data = run->problem->data;
    const size_t strata = run->n_strata;
    const size_t futures = run->rewards->n == 1 ? 1 : 2;
    const events all = list_events(run);
    const double clear = log((double)(all.n * futures) / allowed);
    const double suspect = log((double)(all.n * futures) / SUSPECT);
    stratum *table = NULL;
    uint32_t *votes = NULL;
    TRY(base_alloc(run->ctx, strata, sizeof *table, &table));
    TRY(base_alloc_zero(run->ctx, strata, sizeof *votes, &votes));
    TRY(base_alloc_zero(run->ctx, strata, sizeof *run->usual, &run->usual));
    TRY(base_alloc(run->ctx, data->n_transitions, sizeof *run->surprise, &run->surprise));
    TRY(base_alloc_zero(run->ctx, data->n_transitions, sizeof *run->past, &run->past));
    TRY(base_alloc(run->ctx, data->n_transitions, sizeof *run->future, &run->future));
    TRY(base_alloc(run->ctx, data->n_transitions, sizeof *run->stratum, &run->stratum));
    for (size_t t = 0; t < data->n_transitions; t++) {
        const int32_t from = run->labels[run->problem->row[t]];
        run->stratum[t] =
            (uint32_t)((size_t)(from < 0 ? 0 : from) * data->n_actions + (size_t)data->actions[t]);
    }
    find_usual(run, votes);
    for (size_t future = 0; future < futures; future++) {
        set_future(run, future == 1);
        for (size_t what = 0; what < all.n; what++) {
            double moved;
            TRY(base_cancelled(run->ctx));
            set_past(run, &all, what);
            const double nats = correlate(run, table, &moved);
            const double share = moved / (double)data->n_transitions;
            if (share <= run->misplaced) continue;
            out->suspect |= nats > suspect;
            if (nats > clear && share > out->share) out->share = share;
        }
    }
done:
    base_free(run->ctx, votes);
    base_free(run->ctx, table);
    return status;
}

psi_status cluster_ask_the_past(psi_ctx *ctx, const cluster_problem *problem,
                                const outcome_rewards *rewards, const int32_t *labels,
                                size_t n_latent, double allowed, double misplaced,
                                cluster_past *out)
{
    psi_status status = PSI_OK;
    const psi_trajectories *data = problem->data;
    asking run = {.ctx = ctx,
                  .problem = problem,
                  .rewards = rewards,
                  .labels = labels,
                  .n_latent = n_latent,
                  .n_strata = n_latent * data->n_actions,
                  .misplaced = misplaced};
    *out = (cluster_past){.worst = -1};
    const size_t stride = 1 + data->n_transitions / MOST_ASKED; // pairs of blocks
    TRY(base_alloc(ctx, data->n_transitions, sizeof *run.asked, &run.asked));
    for (size_t t = 0; t < data->n_transitions; t++) {
        const uint64_t row = problem->row[t];
        const bool first = t == 0 || problem->row[t - 1] + 1 != row;
        run.asked[t] = !first && labels[row] >= 0 && labels[row - 1] >= 0 && labels[row + 1] >= 0;
    }
    TRY(compare_pasts(&run, 0.5 * allowed, out));
    for (size_t t = 0; t < data->n_transitions; t++) {
        run.asked[t] &= t / BLOCK / 2 % stride == 0;
    }
    if (out->share == 0.0) TRY(correlate_all(&run, 0.5 * allowed, out));
done:
    base_free(ctx, run.stratum);
    base_free(ctx, run.future);
    base_free(ctx, run.past);
    base_free(ctx, run.surprise);
    base_free(ctx, run.usual);
    base_free(ctx, run.asked);
    return status;
}
