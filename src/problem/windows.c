#include "problem/windows.h"

#include "base/checked.h"
#include "base/context.h"

#include <math.h>
#include <string.h>

enum { PRIOR_DRAWS = 400 }; // batches drawn to see how often each reward comes up

static psi_status list_transitions(psi_ctx *ctx, window_sampler *sampler)
{
    psi_status status = PSI_OK;
    const cluster_problem *problem = sampler->problem;
    const psi_trajectories *data = problem->data;
    const size_t classes = problem->rewards.n;
    TRY(base_alloc(ctx, data->n_transitions, sizeof *sampler->usable, &sampler->usable));
    TRY(base_alloc(ctx, data->n_transitions, sizeof *sampler->episode, &sampler->episode));
    TRY(base_alloc_zero(ctx, classes + 1, sizeof *sampler->class_begin, &sampler->class_begin));
    size_t n = 0;
    for (size_t c = 0; c < classes; c++) {
        sampler->class_begin[c] = n;
        for (uint64_t t = 0; t < data->n_transitions; t++) {
            if (!problem->held_out[t] && problem->rewards.of[t] == (int32_t)c)
                sampler->usable[n++] = t;
        }
    }
    sampler->class_begin[classes] = n;
    for (size_t e = 0; e < data->n_episodes; e++) {
        for (uint64_t t = data->episode_offsets[e]; t < data->episode_offsets[e + 1]; t++) {
            sampler->episode[t] = (uint32_t)e;
        }
    }
done:
    return status;
}

// One window: `length` observations of the transition's episode, the transition among them.
static void add_window(const window_sampler *sampler, base_random *random, uint64_t transition,
                       window_batch *batch)
{
    const psi_trajectories *data = sampler->problem->data;
    const uint32_t e = sampler->episode[transition];
    const uint64_t begin = data->episode_offsets[e], end = data->episode_offsets[e + 1];
    const uint64_t last = end - (data->final_missing[e] ? 1 : 0); // last observation that was seen
    const uint64_t steps = sampler->length - 1;
    // the window's first transition: at most steps − 1 before the chosen one, inside the episode
    const uint64_t back = base_random_below(random, (uint32_t)steps);
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
}

void problem_windows_draw(const window_sampler *sampler, base_random *random, window_batch *batch)
{
    const size_t classes = sampler->problem->rewards.n;
    const size_t *begin = sampler->class_begin;
    batch->n_rows = batch->n_pairs = 0;
    for (size_t w = 0; w < sampler->windows; w++) {
        size_t from = 0, to = begin[classes];
        if (w % 4 == 0) { // this one shows a reward of a class chosen evenly
            const uint32_t c = base_random_below(random, (uint32_t)classes);
            if (begin[c + 1] > begin[c]) {
                from = begin[c];
                to = begin[c + 1];
            }
        }
        const uint64_t chosen = from + base_random_below(random, (uint32_t)(to - from));
        add_window(sampler, random, sampler->usable[chosen], batch);
    }
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
    *out = (window_sampler){.problem = problem, .windows = windows, .length = length};
    *batch = (window_batch){0};
    TRY(list_transitions(ctx, out));
    TRY(base_alloc(ctx, most, sizeof *batch->rows, &batch->rows));
    TRY(base_alloc(ctx, most, sizeof *batch->actions, &batch->actions));
    TRY(base_alloc(ctx, most, sizeof *batch->rewards, &batch->rewards));
    TRY(base_alloc(ctx, most, sizeof *batch->weights, &batch->weights));
    TRY(base_alloc(ctx, most, sizeof *batch->first, &batch->first));
    TRY(estimate_priors(ctx, out, seed, batch));
done:
    if (status != PSI_OK) problem_windows_free(ctx, out, batch);
    return status;
}

void problem_windows_free(psi_ctx *ctx, window_sampler *sampler, window_batch *batch)
{
    base_free(ctx, sampler->usable);
    base_free(ctx, sampler->episode);
    base_free(ctx, sampler->class_begin);
    base_free(ctx, sampler->log_priors);
    base_free(ctx, batch->rows);
    base_free(ctx, batch->actions);
    base_free(ctx, batch->rewards);
    base_free(ctx, batch->weights);
    base_free(ctx, batch->first);
    *sampler = (window_sampler){0};
    *batch = (window_batch){0};
}
