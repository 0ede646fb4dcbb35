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
    uint8_t *asked; // (transitions) has a past, and starts and ends in a known latent state
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

// The first kind that tells something.
static psi_status compare_all(asking *run, double allowed, verdict_past *out)
{
    psi_status status = PSI_OK;
    for (past_kind kind = 0; kind < PAST_KINDS && out->share == 0.0; kind++) {
        TRY(compare_pasts(run, kind, allowed / PAST_KINDS, out));
    }
done:
    return status;
}

// ---- all pasts together -------------------------------------------------------------------------

enum { MOST_ASKED = 1 << 18, LONG_PART = 4096 }; // transitions that are enough; of a part
enum { FEWEST_PLACES = 16, MOST_PLACES = 64, PLACE_STEPS = 1 << 22 };
static const double ECHOES[] = {1.0, 16.0, 256.0}; // visits that an echo lasts
enum { N_ECHOES = sizeof ECHOES / sizeof *ECHOES };

// The transitions that are asked, of all processes in the order of the data, and what followed
// them. They are so few that each process may have all of them, while it remembers its own episodes
// only.
typedef struct asked_ones {
    const asking *run;
    memory *past;      // of this process
    size_t n, mine;    // of all, of this process
    size_t *bytes;     // (ranks) what a number of each of theirs takes, process by process
    uint32_t *at;      // (mine) transitions of this process
    uint8_t *all;      // (n) 1
    uint32_t *stratum; // (n)
    uint32_t *episode; // (n)
    int32_t *next;     // (n) the latent state that it ends in
    double *reward;    // (n)
    uint64_t *when;    // (n) its number in the data
    // what may be remembered: (transitions) of this process, and (n) of all
    float *number, *number_of_all;
    uint32_t *context, *context_of_all;
    double clear, suspect; // nats
} asked_ones;

static void asked_free(psi_ctx *ctx, asked_ones *ones)
{
    base_free(ctx, ones->bytes);
    base_free(ctx, ones->at);
    base_free(ctx, ones->all);
    base_free(ctx, ones->stratum);
    base_free(ctx, ones->episode);
    base_free(ctx, ones->next);
    base_free(ctx, ones->reward);
    base_free(ctx, ones->when);
    base_free(ctx, ones->number);
    base_free(ctx, ones->number_of_all);
    base_free(ctx, ones->context);
    base_free(ctx, ones->context_of_all);
}

static psi_status asked_new(const asking *run, memory *past, asked_ones *out)
{
    psi_status status = PSI_OK;
    psi_ctx *ctx = run->ctx;
    const cluster_problem *problem = run->problem;
    const size_t n = problem->data->n_transitions;
    uint32_t *stratum = NULL, *episode = NULL;
    int32_t *next = NULL;
    double *reward = NULL;
    uint64_t *when = NULL;
    size_t bytes;
    *out = (asked_ones){.run = run, .past = past};
    for (size_t t = 0; t < n; t++) out->mine += run->asked[t];
    TRY(base_alloc(ctx, out->mine, sizeof *out->at, &out->at));
    TRY(base_alloc(ctx, out->mine, sizeof *stratum, &stratum));
    TRY(base_alloc(ctx, out->mine, sizeof *episode, &episode));
    TRY(base_alloc(ctx, out->mine, sizeof *next, &next));
    TRY(base_alloc(ctx, out->mine, sizeof *reward, &reward));
    TRY(base_alloc(ctx, out->mine, sizeof *when, &when));
    for (size_t t = 0, i = 0; t < n; t++) {
        if (!run->asked[t]) continue;
        stratum[i] = past->stratum[t];
        episode[i] = past->episode[t];
        next[i] = run->labels[problem->row[t] + 1];
        reward[i] = problem->data->rewards[t];
        when[i] = problem->whole.first_transition + t;
        out->at[i++] = (uint32_t)t;
    }
    TRY(base_gather_parts(ctx, stratum, out->mine * sizeof *stratum, &out->stratum, &bytes));
    TRY(base_gather_parts(ctx, episode, out->mine * sizeof *episode, &out->episode, &bytes));
    TRY(base_gather_parts(ctx, next, out->mine * sizeof *next, &out->next, &bytes));
    TRY(base_gather_parts(ctx, reward, out->mine * sizeof *reward, &out->reward, &bytes));
    TRY(base_gather_parts(ctx, when, out->mine * sizeof *when, &out->when, &bytes));
    out->n = bytes / sizeof *when;
    const size_t own = out->mine * sizeof *out->context;
    TRY(base_alloc(ctx, (size_t)base_ranks(ctx), sizeof *out->bytes, &out->bytes));
    TRY(base_gather(ctx, &own, sizeof own, out->bytes));
    TRY(base_alloc(ctx, out->n, 1, &out->all));
    for (size_t i = 0; i < out->n; i++) out->all[i] = 1;
    TRY(base_alloc(ctx, n, sizeof *out->number, &out->number));
    TRY(base_alloc(ctx, n, sizeof *out->context, &out->context));
    TRY(base_alloc(ctx, out->n, sizeof *out->number_of_all, &out->number_of_all));
    TRY(base_alloc(ctx, out->n, sizeof *out->context_of_all, &out->context_of_all));
done:
    base_free(ctx, when);
    base_free(ctx, reward);
    base_free(ctx, next);
    base_free(ctx, episode);
    base_free(ctx, stratum);
    return status;
}

// What is asked one after the other: numbers, then the time, then contexts, then echoes.
static size_t count_questions(const memory *past)
{
    return past->n_numbers + 1 + past->n_contexts + (size_t)2 * N_ECHOES;
}

// What may be remembered for a question, of all that are asked, reaches the process that asks it.
static psi_status remember(asked_ones *ones, size_t question, int asker)
{
    psi_status status = PSI_OK;
    psi_ctx *ctx = ones->run->ctx;
    const memory *past = ones->past;
    const size_t context = question - past->n_numbers - 1;
    _Static_assert(sizeof *ones->number == sizeof *ones->context,
                   "so that bytes are those of both");
    if (question < past->n_numbers) {
        verdict_memory_number(past, question, ones->number);
        for (size_t i = 0; i < ones->mine; i++) ones->number[i] = ones->number[ones->at[i]];
        TRY(base_gather_at(ctx, ones->number, ones->bytes, asker, ones->number_of_all));
    } else if (question > past->n_numbers && context < past->n_contexts) {
        TRY(verdict_memory_context(ctx, ones->past, context, ones->context));
        for (size_t i = 0; i < ones->mine; i++) ones->context[i] = ones->context[ones->at[i]];
        TRY(base_gather_at(ctx, ones->context, ones->bytes, asker, ones->context_of_all));
    }
done:
    return status;
}

// One way to foretell what follows, with what it came to.
static void weigh(const asked_ones *ones, double nats, double moved, verdict_past *out)
{
    const double share = moved / (double)ones->run->problem->whole.n_transitions;
    if (share <= ones->run->misplaced) return;
    out->suspect |= nats > ones->suspect;
    if (nats > ones->clear && share > out->share) out->share = share;
}

static void ask(const asked_ones *ones, foretold *what, size_t question, bool rewards,
                verdict_past *out)
{
    const memory *past = ones->past;
    const size_t context = question - past->n_numbers - 1, echo = context - past->n_contexts;
    double nats, moved;
    if (question < past->n_numbers) {
        nats = verdict_foretell_by_number(what, ones->number_of_all, &moved);
        weigh(ones, nats, moved, out);
    } else if (question == past->n_numbers) {
        nats = verdict_foretell_by_time(what, ones->when, ones->run->problem->whole.n_transitions,
                                        &moved);
        weigh(ones, nats, moved, out);
    } else if (context < past->n_contexts) {
        for (size_t odds = 0; odds < (rewards ? 1 : 2); odds++) {
            nats = verdict_foretell_by_context(what, ones->context_of_all, odds == 1, &moved);
            weigh(ones, nats, moved, out);
        }
    } else {
        nats = verdict_foretell_by_echo(what, echo % 2 ? ones->episode : NULL, ECHOES[echo / 2],
                                        &moved);
        weigh(ones, nats, moved, out);
    }
}

// Several processes ask as many questions at a time, each one of them.
static psi_status foretell(asked_ones *ones, bool rewards, verdict_past *out)
{
    psi_status status = PSI_OK;
    psi_ctx *ctx = ones->run->ctx;
    const size_t questions = count_questions(ones->past), ranks = (size_t)base_ranks(ctx);
    foretold what = {0};
    TRY(verdict_foretold_new(ctx, ones->n, ones->all, ones->stratum, ones->run->n_strata,
                             rewards ? NULL : ones->next, ones->reward, &what));
    for (size_t first = 0; what.n > 0 && first < questions; first += ranks) {
        const size_t own = first + (size_t)base_rank(ctx);
        TRY(base_cancelled(ctx));
        for (size_t r = 0; r < ranks && first + r < questions; r++) {
            TRY(remember(ones, first + r, (int)r));
        }
        if (own < questions) ask(ones, &what, own, rewards, out);
    }
done:
    verdict_foretold_free(ctx, &what);
    return status;
}

// What all processes have found.
static psi_status put_together(const asking *run, verdict_past *out)
{
    psi_status status = PSI_OK;
    verdict_past *all = NULL;
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

// n exceptions that all have the same of two pasts have a probability of 2^−n by chance. Fewer than
// it takes to be suspicious of that could all be owed to something that is not seen, and nobody
// would know.
static psi_status ask_for_exceptions(const asking *run, const memory *past, const uint8_t *event,
                                     double suspect, verdict_past *out)
{
    psi_status status = PSI_OK;
    const psi_trajectories *data = run->problem->data;
    struct {
        size_t n, last;
    } seen = {0, 0};
    TRY(base_take_turn(run->ctx, &seen, sizeof seen));
    for (size_t t = 0; t < data->n_transitions; t++) {
        if (!run->asked[t] || !event[t]) continue;
        seen.n++;
        seen.last = past->stratum[t];
    }
    TRY(base_end_turn(run->ctx, &seen, sizeof seen));
    const double most = run->misplaced * (double)run->problem->whole.n_transitions;
    if ((double)seen.n <= most || (double)seen.n * M_LN2 >= suspect) goto done;
    out->exceptions = seen.n;
    out->state = (int32_t)(seen.last / data->n_actions);
    out->action = (int32_t)(seen.last % data->n_actions);
done:
    return status;
}

static psi_status ask_all(asking *run, double allowed, verdict_past *out)
{
    psi_status status = PSI_OK;
    const size_t n = run->problem->whole.n_transitions;
    const size_t places = base_min(base_max(PLACE_STEPS / (n + 1), FEWEST_PLACES), MOST_PLACES);
    memory past = {0};
    asked_ones ones = {0};
    TRY(verdict_memory_new(run->ctx, run->problem, &run->classes, run->labels, run->n_latent,
                           run->look, run->n_looks, places, &past));
    TRY(asked_new(run, &past, &ones));
    const double ways =
        (double)(2 * (past.n_numbers + (size_t)2 * N_ECHOES + 1) + 3 * past.n_contexts);
    ones.clear = log(ways / allowed);
    ones.suspect = log(ways / VERDICT_SUSPECT);
    for (size_t rewards = 0; rewards < 2; rewards++) {
        TRY(foretell(&ones, rewards == 1, out));
        TRY(ask_for_exceptions(run, &past, rewards ? past.unusual : past.surprise, ones.suspect,
                               out));
    }
    TRY(put_together(run, out));
done:
    asked_free(run->ctx, &ones);
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
    const size_t all = problem->whole.n_transitions, first = problem->whole.first_transition;
    const size_t stride = 1 + all / MOST_ASKED; // of episodes, or of long parts
    TRY(base_alloc(ctx, data->n_transitions, sizeof *run.asked, &run.asked));
    for (size_t t = 0; t < data->n_transitions; t++) {
        const uint64_t row = problem->row[t];
        run.asked[t] =
            !begins(problem, t) && labels[row] >= 0 && labels[row - 1] >= 0 && labels[row + 1] >= 0;
    }
    TRY(compare_all(&run, 0.5 * allowed, out));
    for (size_t t = 0; t < data->n_transitions; t++) {
        run.asked[t] &= (first + t) / LONG_PART % stride == 0;
    }
    if (out->share == 0.0) TRY(ask_all(&run, 0.5 * allowed, out));
done:
    base_free(ctx, run.asked);
    return status;
}
