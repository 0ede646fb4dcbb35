#include "problem/windows.h"

#include "base/checked.h"
#include "base/comm.h"
#include "base/context.h"

#include <math.h>
#include <string.h>

enum { PRIOR_DRAWS = 400 }; // batches drawn to see how often each reward comes up

static psi_status list_transitions(psi_ctx *ctx, window_sampler *sampler)
{
    psi_status status = PSI_OK;
    const cluster_problem *problem = sampler->problem;
    const psi_trajectories *data = problem->data;
    const size_t classes = problem->rewards.n, ranks = (size_t)sampler->ranks;
    size_t *own = NULL, *all = NULL; // (classes), of every process
    TRY(base_alloc(ctx, data->n_transitions, sizeof *sampler->usable, &sampler->usable));
    TRY(base_alloc(ctx, data->n_transitions, sizeof *sampler->episode, &sampler->episode));
    TRY(base_alloc_zero(ctx, classes + 1, sizeof *sampler->own_begin, &sampler->own_begin));
    TRY(base_alloc_zero(ctx, classes + 1, sizeof *sampler->class_begin, &sampler->class_begin));
    TRY(base_alloc_zero(ctx, classes, (ranks + 1) * sizeof *sampler->before, &sampler->before));
    TRY(base_alloc(ctx, classes, sizeof *own, &own));
    TRY(base_alloc(ctx, ranks, classes * sizeof *all, &all));
    size_t n = 0;
    for (size_t c = 0; c < classes; c++) {
        sampler->own_begin[c] = n;
        for (uint64_t t = 0; t < data->n_transitions; t++) {
            if (!problem->held_out[t] && problem->rewards.of[t] == (int32_t)c)
                sampler->usable[n++] = t;
        }
        own[c] = n - sampler->own_begin[c];
    }
    sampler->own_begin[classes] = n;
    TRY(base_gather(ctx, own, classes * sizeof *own, all));
    for (size_t c = 0; c < classes; c++) {
        size_t *before = sampler->before + c * (ranks + 1);
        for (size_t r = 0; r < ranks; r++) before[r + 1] = before[r] + all[r * classes + c];
        sampler->class_begin[c + 1] = sampler->class_begin[c] + before[ranks];
    }
    for (size_t e = 0; e < data->n_episodes; e++) {
        for (uint64_t t = data->episode_offsets[e]; t < data->episode_offsets[e + 1]; t++) {
            sampler->episode[t] = (uint32_t)e;
        }
    }
done:
    base_free(ctx, all);
    base_free(ctx, own);
    return status;
}

// One window: `length` observations of the transition's episode, the transition among them. back:
// how many transitions it begins before that one, if the episode does not begin there.
static uint32_t add_window(const window_sampler *sampler, uint64_t back, uint64_t transition,
                           window_batch *batch)
{
    const psi_trajectories *data = sampler->problem->data;
    const uint32_t e = sampler->episode[transition];
    const uint64_t begin = data->episode_offsets[e], end = data->episode_offsets[e + 1];
    const uint64_t last = end - (data->final_missing[e] ? 1 : 0); // last observation that was seen
    const uint64_t steps = sampler->length - 1;
    const size_t before = batch->n_rows;
    uint64_t first = transition - begin >= back ? transition - back : begin;
    if (last - begin >= steps && first + steps > last) first = last - steps;
    for (uint64_t t = first; t <= last && t <= first + steps; t++) {
        const size_t at = batch->n_rows++;
        const bool starts = t < end;
        batch->rows[at] = t + e;
        batch->actions[at] = starts ? data->actions[t] : 0;
        batch->rewards[at] = starts ? sampler->problem->rewards.of[t] : 0;
        batch->weights[at] = starts ? 1.0f : 0.0f;
        if (t > first) batch->first[batch->n_pairs++] = (uint32_t)at - 1;
    }
    return (uint32_t)(batch->n_rows - before);
}

// Whose the i-th of all usable transitions is; *at: where it is in his list, if it is this
// process's.
static int owner_of(const window_sampler *sampler, size_t i, size_t *at)
{
    const size_t *before = sampler->before;
    size_t c = 0;
    int owner = 0;
    while (i >= sampler->class_begin[c + 1]) c++;
    i -= sampler->class_begin[c];
    before += c * ((size_t)sampler->ranks + 1);
    while (i >= before[owner + 1]) owner++;
    *at = sampler->own_begin[c] + i - before[owner];
    return owner;
}

void problem_windows_draw(const window_sampler *sampler, base_random *random, window_batch *batch)
{
    const size_t classes = sampler->problem->rewards.n;
    const size_t *begin = sampler->class_begin;
    batch->n_rows = batch->n_pairs = 0;
    for (size_t w = 0; w < sampler->windows; w++) {
        size_t from = 0, to = begin[classes], at;
        if (w % 4 == 0) { // this one shows a reward of a class chosen evenly
            const uint32_t c = base_random_below(random, (uint32_t)classes);
            if (begin[c + 1] > begin[c]) {
                from = begin[c];
                to = begin[c + 1];
            }
        }
        const uint64_t chosen = from + base_random_below(random, (uint32_t)(to - from));
        const uint64_t back = base_random_below(random, (uint32_t)sampler->length - 1);
        batch->owner[w] = owner_of(sampler, chosen, &at);
        const bool own = batch->owner[w] == sampler->rank;
        batch->length[w] = own ? add_window(sampler, back, sampler->usable[at], batch) : 0;
    }
}

// ---- of several processes -----------------------------------------------------------------------

// Windows as they travel: the length, the columns and what is seen, with room for the longest.
static size_t window_bytes(const window_sampler *sampler, const problem_inputs *inputs)
{
    return sizeof(uint32_t) +
           sampler->length * (2 * sizeof(int32_t) + sizeof(float) + inputs->row_bytes);
}

static void pack(const window_sampler *sampler, const window_batch *batch, size_t row_bytes,
                 const char *seen, char *to, size_t bytes)
{
    size_t row = 0;
    for (size_t w = 0; w < sampler->windows; w++) {
        const size_t n = batch->length[w], most = sampler->length;
        char *at = to + sizeof batch->length[w];
        if (batch->owner[w] != sampler->rank) continue;
        memcpy(to, &batch->length[w], sizeof batch->length[w]);
        memcpy(at, batch->actions + row, n * sizeof *batch->actions);
        at += most * sizeof *batch->actions;
        memcpy(at, batch->rewards + row, n * sizeof *batch->rewards);
        at += most * sizeof *batch->rewards;
        memcpy(at, batch->weights + row, n * sizeof *batch->weights);
        at += most * sizeof *batch->weights;
        memcpy(at, seen + row * row_bytes, n * row_bytes);
        row += n;
        to += bytes;
    }
}

// from (ranks): where the next window of each is.
static void unpack(const window_sampler *sampler, const char **from, size_t bytes, size_t row_bytes,
                   char *seen, window_batch *batch)
{
    batch->n_rows = batch->n_pairs = 0;
    for (size_t w = 0; w < sampler->windows; w++) {
        const char *at = from[batch->owner[w]];
        const size_t row = batch->n_rows, most = sampler->length;
        uint32_t n;
        from[batch->owner[w]] += bytes;
        memcpy(&n, at, sizeof n);
        at += sizeof n;
        memcpy(batch->actions + row, at, n * sizeof *batch->actions);
        at += most * sizeof *batch->actions;
        memcpy(batch->rewards + row, at, n * sizeof *batch->rewards);
        at += most * sizeof *batch->rewards;
        memcpy(batch->weights + row, at, n * sizeof *batch->weights);
        at += most * sizeof *batch->weights;
        memcpy(seen + row * row_bytes, at, n * row_bytes);
        for (uint32_t i = 1; i < n; i++) batch->first[batch->n_pairs++] = (uint32_t)row + i - 1;
        batch->length[w] = n;
        batch->n_rows += n;
    }
}

psi_status problem_windows_bring(psi_ctx *ctx, const window_sampler *sampler,
                                 problem_inputs *inputs, window_batch *batch, void *seen)
{
    psi_status status = PSI_OK;
    const size_t ranks = (size_t)sampler->ranks, bytes = window_bytes(sampler, inputs);
    const size_t own = batch->n_rows;
    size_t *sizes = NULL, n = 0; // (ranks)
    const char **from = NULL;    // (ranks)
    char *packed = NULL, *all = NULL;
    TRY(problem_inputs_gather(inputs, ctx, batch->rows, batch->n_rows, seen));
    if (ranks == 1) goto done;
    TRY(base_alloc_zero(ctx, ranks, sizeof *sizes, &sizes));
    TRY(base_alloc_zero(ctx, ranks, sizeof *from, &from));
    for (size_t w = 0; w < sampler->windows; w++) sizes[batch->owner[w]] += bytes;
    TRY(base_alloc_zero(ctx, sizes[sampler->rank], 1, &packed));
    TRY(base_alloc(ctx, sampler->windows, bytes, &all));
    pack(sampler, batch, inputs->row_bytes, seen, packed, bytes);
    TRY(base_gather_into(ctx, packed, sizes, all));
    for (size_t r = 0; r < ranks; r++) {
        from[r] = all + n;
        n += sizes[r];
    }
    unpack(sampler, from, bytes, inputs->row_bytes, seen, batch);
    inputs->passed += batch->n_rows - own;
done:
    base_free(ctx, all);
    base_free(ctx, packed);
    base_free(ctx, from);
    base_free(ctx, sizes);
    return status;
}

// log of how much more often the windows show (a, class) than the data do: added to the logits
// while training, so that without it they fit the data.
static psi_status estimate_priors(psi_ctx *ctx, window_sampler *sampler, uint64_t seed,
                                  window_batch *batch)
{
    psi_status status = PSI_OK;
    const cluster_problem *problem = sampler->problem;
    const size_t classes = problem->rewards.n, cells = problem->data->n_actions * classes;
    double *seen = NULL, *there = NULL, drawn = 0.0, all = 0.0;
    TRY(base_alloc(ctx, cells, sizeof *sampler->log_priors, &sampler->log_priors));
    TRY(base_alloc_zero(ctx, cells, sizeof *seen, &seen));
    TRY(base_alloc_zero(ctx, cells, sizeof *there, &there));
    const base_block turn[] = {{seen, cells * sizeof *seen},
                               {there, cells * sizeof *there},
                               {&drawn, sizeof drawn},
                               {&all, sizeof all}};
    TRY(base_take_turn_with(ctx, turn, 4));
    base_random random = base_random_stream(seed, 0x7072696f, 0);
    for (size_t i = 0; i < PRIOR_DRAWS; i++) {
        problem_windows_draw(sampler, &random, batch);
        for (size_t k = 0; k < batch->n_rows; k++) {
            if (batch->weights[k] == 0.0f) continue;
            seen[(size_t)batch->actions[k] * classes + (size_t)batch->rewards[k]] += 1.0;
            drawn += 1.0;
        }
    }
    for (uint64_t t = 0; t < problem->data->n_transitions; t++) {
        if (problem->held_out[t]) continue;
        there[(size_t)problem->data->actions[t] * classes + (size_t)problem->rewards.of[t]] += 1.0;
        all += 1.0;
    }
    TRY(base_end_turn_with(ctx, turn, 4));
    for (size_t i = 0; i < cells; i++) {
        sampler->log_priors[i] =
            (float)log((seen[i] + 0.5) / drawn * all / (there[i] + 0.5 * all / drawn));
    }
done:
    base_free(ctx, there);
    base_free(ctx, seen);
    return status;
}

psi_status problem_windows_new(psi_ctx *ctx, const cluster_problem *problem, size_t windows,
                               size_t length, uint64_t seed, window_sampler *out,
                               window_batch *batch)
{
    psi_status status = PSI_OK;
    const size_t most = windows * length;
    *out = (window_sampler){.problem = problem,
                            .windows = windows,
                            .length = length,
                            .rank = base_rank(ctx),
                            .ranks = base_ranks(ctx)};
    *batch = (window_batch){0};
    TRY(list_transitions(ctx, out));
    TRY(base_alloc(ctx, most, sizeof *batch->rows, &batch->rows));
    TRY(base_alloc(ctx, most, sizeof *batch->actions, &batch->actions));
    TRY(base_alloc(ctx, most, sizeof *batch->rewards, &batch->rewards));
    TRY(base_alloc(ctx, most, sizeof *batch->weights, &batch->weights));
    TRY(base_alloc(ctx, most, sizeof *batch->first, &batch->first));
    TRY(base_alloc(ctx, windows, sizeof *batch->owner, &batch->owner));
    TRY(base_alloc(ctx, windows, sizeof *batch->length, &batch->length));
    TRY(estimate_priors(ctx, out, seed, batch));
done:
    if (status != PSI_OK) problem_windows_free(ctx, out, batch);
    return status;
}

void problem_windows_free(psi_ctx *ctx, window_sampler *sampler, window_batch *batch)
{
    base_free(ctx, sampler->usable);
    base_free(ctx, sampler->episode);
    base_free(ctx, sampler->own_begin);
    base_free(ctx, sampler->class_begin);
    base_free(ctx, sampler->before);
    base_free(ctx, sampler->log_priors);
    base_free(ctx, batch->rows);
    base_free(ctx, batch->actions);
    base_free(ctx, batch->rewards);
    base_free(ctx, batch->weights);
    base_free(ctx, batch->first);
    base_free(ctx, batch->owner);
    base_free(ctx, batch->length);
    *sampler = (window_sampler){0};
    *batch = (window_batch){0};
}
