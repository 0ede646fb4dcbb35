#include "verdict/memory.h"

#include "base/checked.h"
#include "base/comm.h"
#include "base/context.h"
#include "verdict/foretell.h"

#include <math.h>
#include <string.h>

// ---- what is usual ------------------------------------------------------------------------------

// Whether of[t] is another than the one that most transitions of its stratum have, where that is
// more than half of them; else than one of the more frequent ones (Boyer and Moore's vote).
static psi_status find_unusual(psi_ctx *ctx, const memory *past, size_t strata, const int32_t *of,
                               uint8_t *unusual)
{
    psi_status status = PSI_OK;
    const size_t n = past->data->n_transitions;
    int32_t *usual = NULL;
    uint32_t *votes = NULL;
    TRY(base_alloc_zero(ctx, strata, sizeof *usual, &usual));
    TRY(base_alloc_zero(ctx, strata, sizeof *votes, &votes));
    const base_block turn[] = {{usual, strata * sizeof *usual}, {votes, strata * sizeof *votes}};
    TRY(base_take_turn_with(ctx, turn, 2));
    for (size_t t = 0; t < n; t++) {
        const size_t s = past->stratum[t];
        if (votes[s] == 0) usual[s] = of[t];
        votes[s] += usual[s] == of[t] ? 1 : -1u;
    }
    TRY(base_end_turn_with(ctx, turn, 2));
    for (size_t t = 0; t < n; t++) unusual[t] = of[t] != usual[past->stratum[t]];
done:
    base_free(ctx, votes);
    base_free(ctx, usual);
    return status;
}

// What is left of a number if the mean of the earlier visits of its stratum is taken away.
static psi_status find_residuals(psi_ctx *ctx, const memory *past, size_t strata, bool rewards,
                                 float *left)
{
    psi_status status = PSI_OK;
    const size_t n = past->data->n_transitions;
    double *sum = NULL, *visits = NULL, largest = 1e-300;
    TRY(base_alloc_zero(ctx, strata, sizeof *sum, &sum));
    TRY(base_alloc_zero(ctx, strata, sizeof *visits, &visits));
    TRY(base_take_turn(ctx, &largest, sizeof largest));
    for (size_t t = 0; t < n; t++) largest = fmax(largest, fabs(past->data->rewards[t]));
    TRY(base_end_turn(ctx, &largest, sizeof largest));
    const base_block turn[] = {{sum, strata * sizeof *sum}, {visits, strata * sizeof *visits}};
    TRY(base_take_turn_with(ctx, turn, 2));
    for (size_t t = 0; t < n; t++) {
        const size_t s = past->stratum[t];
        const double x = rewards ? past->data->rewards[t] / largest : (double)past->surprise[t];
        left[t] = visits[s] > 0.0 ? (float)(x - sum[s] / visits[s]) : 0.0f;
        sum[s] += x;
        visits[s]++;
    }
    TRY(base_end_turn_with(ctx, turn, 2));
done:
    base_free(ctx, visits);
    base_free(ctx, sum);
    return status;
}

// ---- numbers ------------------------------------------------------------------------------------

// One after the other: having stayed, doing the same again, a surprise just before, or anywhere in
// the episode, how long it lasts; what rewards and surprises were beyond their means, on average
// over some time; an action, a class of rewards, both together.
enum { STAYED, REPEATED, SURPRISED, SURPRISED_BEFORE, LATE, AVERAGES };
static const double SCALES[] = {1.0, 4.0, 16.0, 64.0, 1e9};
enum { N_SCALES = sizeof SCALES / sizeof *SCALES, ACTION = AVERAGES + 2 * N_SCALES };
enum { MOST_EVENTS = 64, MOST_PAIRS = 256 };

static void average(const memory *past, const float *of, double scale, float *known)
{
    const psi_trajectories *data = past->data;
    for (size_t e = 0; e < data->n_episodes; e++) {
        double sum = 0.0, weight = 0.0;
        for (uint64_t t = data->episode_offsets[e]; t < data->episode_offsets[e + 1]; t++) {
            known[t] = weight > 0.0 ? (float)(sum / sqrt(weight)) : NAN;
            sum = sum * (1.0 - 1.0 / scale) + (double)of[t];
            weight = weight * (1.0 - 1.0 / scale) + 1.0;
        }
    }
}

void verdict_memory_number(const memory *past, size_t which, float *known)
{
    const psi_trajectories *data = past->data;
    const size_t class = which - ACTION - past->actions, pair = class - past->classes;
    if (which >= AVERAGES && which < ACTION) {
        const size_t scale = (which - AVERAGES) / 2;
        average(past, which % 2 ? past->moved_away : past->paid_away, SCALES[scale], known);
        return;
    }
    for (size_t e = 0; e < data->n_episodes; e++) {
        const uint64_t begin = data->episode_offsets[e];
        bool surprised = false;
        if (begin < data->episode_offsets[e + 1]) known[begin] = NAN;
        for (uint64_t t = begin + 1; t < data->episode_offsets[e + 1]; t++) {
            const uint64_t row = past->row[t];
            const size_t action = (size_t)data->actions[t - 1];
            surprised |= past->surprise[t - 1] != 0;
            if (which >= ACTION + past->actions + past->classes) {
                const size_t of = (size_t)past->class_of[t - 1];
                known[t] = (float)(action * past->n_classes + of == pair);
            } else if (which >= ACTION + past->actions) {
                known[t] = (float)((size_t)past->class_of[t - 1] == class);
            } else if (which >= ACTION) {
                known[t] = (float)(action == which - ACTION);
            } else {
                known[t] = which == STAYED     ? (float)(past->labels[row] == past->labels[row - 1])
                           : which == REPEATED ? (float)(data->actions[t] == data->actions[t - 1])
                           : which == SURPRISED        ? (float)past->surprise[t - 1]
                           : which == SURPRISED_BEFORE ? (float)surprised
                                                       : log2f((float)(t - begin));
            }
        }
    }
}

// ---- contexts -----------------------------------------------------------------------------------

enum {
    BEFORE, // latent state, action and class of reward just before
    ACTION_BEFORE,
    STATE_BEFORE,
    REWARD_BEFORE,
    STATE_TWO_BEFORE,
    TWO_ACTIONS_BEFORE,
    LOOK, // what is seen, beyond the latent state
    LOOK_BEFORE,
    FIRST_LOOK,            // of the episode
    TIME,                  // in the episode
    LAST_MOVE,             // where the same stratum led the last time, in this episode
    LAST_REWARD,           // … and what it paid
    LAST_AND_TIME,         // both, and whether that was an odd number of steps ago
    VISITS_SINCE_SURPRISE, // of the same stratum, since it led elsewhere …
    VISITS_SINCE_UNUSUAL,  // … and paid something else, in whatever episode
    STEPS_SINCE_SURPRISE,
    STEPS_SINCE_UNUSUAL,
    SURPRISES,     // in the episode so far
    LAST_SURPRISE, // what it was
    LAST_UNUSUAL,
    PLACES // steps since a look was seen in this episode; then, for strata: what followed
           // the same stratum the last time, and whether the other was visited oddly often since;
           // then, for latent states of several looks: the look that it had the last time
};

// Numbers below 64 as they are, larger ones by their logarithm.
static uint32_t rough(uint64_t n)
{
    return n < 64 ? (uint32_t)n : 58 + (uint32_t)log2((double)n);
}

static uint32_t state_at(const memory *past, uint64_t row)
{
    return past->labels[row] < 0 ? 0 : (uint32_t)past->labels[row];
}

static uint32_t look_at(const memory *past, uint64_t row)
{
    return past->look[row] < 0 ? 0 : (uint32_t)past->look[row];
}

// The class of a reward; of numbers, whether it was more than usual.
static uint32_t paid(const memory *past, uint64_t t)
{
    return past->class_of ? (uint32_t)past->class_of[t] : (uint32_t)(past->paid_away[t] > 0.0f);
}

static uint32_t just_before(const memory *past, size_t which, uint64_t t, uint64_t begin)
{
    const psi_trajectories *data = past->data;
    const uint64_t row = past->row[t];
    const uint32_t actions = (uint32_t)data->n_actions, action = (uint32_t)data->actions[t - 1];
    const uint32_t classes = (uint32_t)base_max(past->n_classes, 2);
    switch (which) {
    case BEFORE: return past->stratum[t - 1] * classes + paid(past, t - 1);
    case ACTION_BEFORE: return action;
    case STATE_BEFORE: return state_at(past, row - 1);
    case REWARD_BEFORE: return paid(past, t - 1);
    case LOOK: return look_at(past, row);
    case LOOK_BEFORE: return look_at(past, row - 1);
    case FIRST_LOOK: return look_at(past, past->row[begin]);
    case TIME: return rough(t - begin);
    default: break;
    }
    if (t < begin + 2) return FORETELL_NONE;
    if (which == STATE_TWO_BEFORE) return state_at(past, row - 2);
    return action * actions + (uint32_t)data->actions[t - 2];
}

// What followed the stratum of t the last time, in this episode; last (strata): t + 1 of it.
static uint32_t last_time(const memory *past, size_t which, uint64_t t, uint64_t begin)
{
    const uint32_t last = past->last[past->stratum[t]];
    if (last <= begin) return FORETELL_NONE;
    const uint32_t move = state_at(past, past->row[last - 1] + 1);
    const uint32_t reward = paid(past, last - 1);
    const uint32_t both = move * (uint32_t)base_max(past->n_classes, 2) + reward;
    return which == LAST_MOVE     ? move
           : which == LAST_REWARD ? reward
                                  : 2 * both + (uint32_t)((t - last + 1) % 2);
}

// It does not begin anew with an episode, nor with another process's.
static psi_status since_in_stratum(psi_ctx *ctx, const memory *past, const uint8_t *event,
                                   uint32_t *known)
{
    psi_status status = PSI_OK;
    const size_t strata = past->n_latent * past->data->n_actions;
    TRY(base_take_turn(ctx, past->count, strata * sizeof *past->count));
    for (size_t t = 0; t < past->data->n_transitions; t++) {
        uint32_t *count = &past->count[past->stratum[t]];
        known[t] = *count == 0 ? FORETELL_NONE : rough(*count);
        *count = event[t] ? 1 : *count + (*count > 0);
    }
    TRY(base_end_turn(ctx, past->count, strata * sizeof *past->count));
done:
    return status;
}

// What is known of the events of an episode so far.
static void of_events(const memory *past, size_t which, uint64_t begin, uint64_t end,
                      uint32_t *known)
{
    const bool rewards = which == STEPS_SINCE_UNUSUAL || which == LAST_UNUSUAL;
    const uint8_t *event = rewards ? past->unusual : past->surprise;
    uint64_t last = 0, n = 0; // t + 1 of the last one
    for (uint64_t t = begin; t < end; t++) {
        const uint32_t classes = (uint32_t)base_max(past->n_classes, 2);
        known[t] =
            which == SURPRISES ? rough(n)
            : last == 0        ? FORETELL_NONE
            : which == LAST_SURPRISE
                ? past->stratum[last - 1] * 1000003u + state_at(past, past->row[last - 1] + 1)
            : which == LAST_UNUSUAL ? past->stratum[last - 1] * classes + paid(past, last - 1)
                                    : rough(t - last);
        if (known[t] == FORETELL_NONE && last > 0) known[t] = 0;
        if (!event[t]) continue;
        last = t + 1;
        n++;
    }
}

// Steps since look `place` was seen in this episode, by their logarithm.
static void since_look(const memory *past, uint32_t place, uint64_t begin, uint64_t end,
                       uint32_t *known)
{
    uint64_t seen = 0; // t + 1
    for (uint64_t t = begin; t < end; t++) {
        known[t] = seen == 0 ? 0 : 1 + (uint32_t)log2((double)(t + 1 - seen));
        if (look_at(past, past->row[t]) == place) seen = t + 1;
    }
}

// What followed the same stratum the last time, and whether stratum `place` was visited oddly often
// since.
static void odd_visits(const memory *past, uint32_t place, uint64_t begin, uint64_t end,
                       uint32_t *known)
{
    uint32_t visits = 0;
    for (uint64_t t = begin; t < end; t++) {
        const uint32_t s = past->stratum[t];
        known[t] = last_time(past, LAST_AND_TIME, t, begin);
        if (known[t] != FORETELL_NONE) {
            known[t] = (known[t] & ~1u) | ((visits - past->count[s]) & 1u);
        }
        past->last[s] = (uint32_t)t + 1;
        past->count[s] = visits;
        visits += s == place;
    }
}

// The look that latent state `place` had the last time, in this episode.
static void last_look(const memory *past, uint32_t place, uint64_t begin, uint64_t end,
                      uint32_t *known)
{
    uint32_t look = FORETELL_NONE;
    for (uint64_t t = begin; t < end; t++) {
        known[t] = look;
        if (state_at(past, past->row[t]) == place) look = look_at(past, past->row[t]);
    }
}

psi_status verdict_memory_context(psi_ctx *ctx, memory *past, size_t which, uint32_t *known)
{
    const psi_trajectories *data = past->data;
    const size_t strata = past->n_latent * data->n_actions;
    memset(past->last, 0, strata * sizeof *past->last);
    memset(past->count, 0, strata * sizeof *past->count);
    if (which == VISITS_SINCE_SURPRISE || which == VISITS_SINCE_UNUSUAL) {
        return since_in_stratum(
            ctx, past, which == VISITS_SINCE_SURPRISE ? past->surprise : past->unusual, known);
    }
    for (size_t e = 0; e < data->n_episodes; e++) {
        const uint64_t begin = data->episode_offsets[e], end = data->episode_offsets[e + 1];
        if (which >= PLACES + past->places + past->odd) {
            last_look(past, past->place[which - PLACES], begin, end, known);
        } else if (which >= PLACES + past->places) {
            odd_visits(past, past->place[which - PLACES], begin, end, known);
        } else if (which >= PLACES) {
            since_look(past, past->place[which - PLACES], begin, end, known);
        } else if (which >= STEPS_SINCE_SURPRISE) {
            of_events(past, which, begin, end, known);
        } else {
            for (uint64_t t = begin; t < end; t++) {
                known[t] = which >= LAST_MOVE ? last_time(past, which, t, begin)
                           : t == begin       ? FORETELL_NONE
                                              : just_before(past, which, t, begin);
                past->last[past->stratum[t]] = (uint32_t)t + 1;
            }
        }
    }
    return PSI_OK;
}

// ---- making -------------------------------------------------------------------------------------

// The `most` most frequent of n numbers in `of`, among those below `kinds`.
static psi_status most_frequent(psi_ctx *ctx, size_t n, const uint32_t *of, size_t kinds,
                                size_t most, uint32_t *out, size_t *found)
{
    psi_status status = PSI_OK;
    uint32_t *count = NULL;
    TRY(base_alloc_zero(ctx, kinds, sizeof *count, &count));
    for (size_t i = 0; i < n; i++) {
        if (of[i] < kinds) count[of[i]]++;
    }
    TRY(base_sum_u32(ctx, count, kinds));
    for (*found = 0; *found < most && *found < kinds; ++*found) {
        size_t best = 0;
        for (size_t k = 1; k < kinds; k++) {
            if (count[k] > count[best]) best = k;
        }
        if (count[best] == 0) break;
        out[*found] = (uint32_t)best;
        count[best] = 0;
    }
done:
    base_free(ctx, count);
    return status;
}

// of (transitions): the latent state, where it has several looks; else n_latent.
static psi_status find_guises(psi_ctx *ctx, const memory *past, uint32_t *of)
{
    psi_status status = PSI_OK;
    const size_t n = past->data->n_transitions;
    uint32_t *first = NULL; // (latent states) a look, one more
    uint8_t *several = NULL;
    TRY(base_alloc_zero(ctx, past->n_latent, sizeof *first, &first));
    TRY(base_alloc_zero(ctx, past->n_latent, sizeof *several, &several));
    const base_block turn[] = {{first, past->n_latent * sizeof *first}, {several, past->n_latent}};
    TRY(base_take_turn_with(ctx, turn, 2));
    for (size_t t = 0; t < n; t++) {
        const uint32_t k = state_at(past, past->row[t]), look = look_at(past, past->row[t]) + 1;
        if (first[k] == 0) first[k] = look;
        several[k] |= first[k] != look;
    }
    TRY(base_end_turn_with(ctx, turn, 2));
    for (size_t t = 0; t < n; t++) {
        const uint32_t k = state_at(past, past->row[t]);
        of[t] = several[k] ? k : (uint32_t)past->n_latent;
    }
done:
    base_free(ctx, several);
    base_free(ctx, first);
    return status;
}

static psi_status choose_places(psi_ctx *ctx, memory *past, size_t strata, size_t most)
{
    psi_status status = PSI_OK;
    const size_t n = past->data->n_transitions;
    uint32_t *of = NULL;
    size_t guises = 0;
    TRY(base_alloc(ctx, n, sizeof *of, &of));
    TRY(base_alloc(ctx, 3 * most, sizeof *past->place, &past->place));
    for (size_t t = 0; t < n; t++) of[t] = look_at(past, past->row[t]);
    TRY(most_frequent(ctx, n, of, past->n_looks, most, past->place, &past->places));
    TRY(most_frequent(ctx, n, past->stratum, strata, most, past->place + past->places, &past->odd));
    TRY(find_guises(ctx, past, of));
    TRY(most_frequent(ctx, n, of, past->n_latent, most, past->place + past->places + past->odd,
                      &guises));
    past->n_contexts = PLACES + past->places + past->odd + guises;
done:
    base_free(ctx, of);
    return status;
}

psi_status verdict_memory_new(psi_ctx *ctx, const cluster_problem *problem,
                              const outcome_rewards *rewards, const int32_t *labels,
                              size_t n_latent, const int32_t *look, size_t n_looks, size_t most,
                              memory *out)
{
    psi_status status = PSI_OK;
    const psi_trajectories *data = problem->data;
    const size_t n = data->n_transitions, actions = data->n_actions, strata = n_latent * actions;
    const size_t classes = rewards->n > 1 ? rewards->n : 0;
    int32_t *next = NULL;
    *out = (memory){.data = data,
                    .row = problem->row,
                    .labels = labels,
                    .look = look,
                    .n_looks = n_looks,
                    .class_of = classes ? rewards->of : NULL,
                    .n_latent = n_latent,
                    .n_classes = classes,
                    .actions = base_min(actions, MOST_EVENTS),
                    .classes = base_min(classes, MOST_EVENTS),
                    .pairs = classes && actions <= MOST_PAIRS / classes ? actions * classes : 0};
    out->n_numbers = ACTION + out->actions + out->classes + out->pairs;
    TRY(base_alloc(ctx, n, sizeof *out->stratum, &out->stratum));
    TRY(base_alloc(ctx, n, sizeof *out->episode, &out->episode));
    TRY(base_alloc(ctx, n, sizeof *out->surprise, &out->surprise));
    TRY(base_alloc_zero(ctx, n, sizeof *out->unusual, &out->unusual));
    TRY(base_alloc(ctx, n, sizeof *out->moved_away, &out->moved_away));
    TRY(base_alloc(ctx, n, sizeof *out->paid_away, &out->paid_away));
    TRY(base_alloc(ctx, strata, sizeof *out->last, &out->last));
    TRY(base_alloc(ctx, strata, sizeof *out->count, &out->count));
    TRY(base_alloc(ctx, n, sizeof *next, &next));
    for (size_t e = 0; e < data->n_episodes; e++) {
        for (uint64_t t = data->episode_offsets[e]; t < data->episode_offsets[e + 1]; t++) {
            out->episode[t] = (uint32_t)(problem->whole.first_episode + e) + 1;
            out->stratum[t] =
                state_at(out, problem->row[t]) * (uint32_t)actions + (uint32_t)data->actions[t];
            next[t] = labels[problem->row[t] + 1];
        }
    }
    TRY(find_unusual(ctx, out, strata, next, out->surprise));
    if (classes) TRY(find_unusual(ctx, out, strata, rewards->of, out->unusual));
    TRY(find_residuals(ctx, out, strata, false, out->moved_away));
    TRY(find_residuals(ctx, out, strata, true, out->paid_away));
    TRY(choose_places(ctx, out, strata, most));
done:
    base_free(ctx, next);
    if (status != PSI_OK) verdict_memory_free(ctx, out);
    return status;
}

void verdict_memory_free(psi_ctx *ctx, memory *past)
{
    base_free(ctx, past->stratum);
    base_free(ctx, past->episode);
    base_free(ctx, past->surprise);
    base_free(ctx, past->unusual);
    base_free(ctx, past->moved_away);
    base_free(ctx, past->paid_away);
    base_free(ctx, past->last);
    base_free(ctx, past->count);
    base_free(ctx, past->place);
    *past = (memory){0};
}
