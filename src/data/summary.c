// What `psifold inspect` shows: how often every reward and action occurs, how long the episodes
// are, how they end, and everything that looks wrong.
#include "base/arena.h"
#include "base/checked.h"
#include "base/context.h"
#include "data/observations.h"
#include "data/trajectories.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MOST_PROBLEMS = DATA_FINDINGS + 16 };

typedef struct summary {
    psi_summary view; // first: a psi_summary * is a summary *
    base_arena arena;
    const char *problem[MOST_PROBLEMS];
} summary;

static psi_status PRINTF_LIKE(2, 3) add_problem(summary *all, const char *format, ...)
{
    char sentence[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    if (all->view.n_problems == MOST_PROBLEMS) return PSI_OK;
    const psi_status status =
        base_arena_text(&all->arena, sentence, &all->problem[all->view.n_problems]);
    if (status == PSI_OK) all->view.n_problems++;
    return status;
}

static void count_reward(psi_summary *view, double reward, bool *too_many)
{
    size_t low = 0, high = view->n_rewards;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (view->rewards[middle].value < reward) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low < view->n_rewards && view->rewards[low].value == reward) {
        view->rewards[low].count++;
    } else if (view->n_rewards == PSI_SUMMARY_REWARDS) {
        *too_many = true;
    } else {
        memmove(&view->rewards[low + 1], &view->rewards[low],
                (view->n_rewards - low) * sizeof view->rewards[0]);
        view->rewards[low] = (psi_reward_count){reward, 1};
        view->n_rewards++;
    }
}

// The mean of finite rewards is finite, though their sum may not be.
static double mean_reward(const psi_trajectories *data, double sum)
{
    const double n = (double)data->n_transitions;
    if (isfinite(sum)) return sum / n;
    double mean = 0;
    for (size_t t = 0; t < data->n_transitions; t++) mean += data->rewards[t] / n;
    return mean;
}

static psi_status summarise_rewards(summary *all, const psi_trajectories *data)
{
    psi_summary *view = &all->view;
    bool too_many = false;
    double sum = 0;
    view->reward_min = HUGE_VAL;
    view->reward_max = -HUGE_VAL;
    for (size_t t = 0; t < data->n_transitions; t++) {
        const double reward = data->rewards[t];
        sum += reward;
        view->reward_min = fmin(view->reward_min, reward);
        view->reward_max = fmax(view->reward_max, reward);
        if (!too_many) count_reward(view, reward, &too_many);
    }
    // rounding must not lead outside either, where the largest doubles are
    view->reward_mean = fmax(view->reward_min, fmin(view->reward_max, mean_reward(data, sum)));
    if (too_many) view->n_rewards = 0;
    if (view->reward_min < view->reward_max) return PSI_OK;
    return add_problem(all,
                       "Every reward is %g: all states predict the same reward sequences, and "
                       "there is nothing to tell apart.",
                       view->reward_min);
}

static psi_status summarise_actions(summary *all, const psi_trajectories *data)
{
    psi_summary *view = &all->view;
    uint64_t *counts;
    const psi_status status =
        base_arena_take(&all->arena, data->n_actions, sizeof *counts, &counts);
    if (status != PSI_OK) return status;
    for (size_t t = 0; t < data->n_transitions; t++) counts[data->actions[t]]++;
    view->n_actions = data->n_actions;
    view->action_counts = counts;
    size_t first = data->n_actions;
    for (size_t a = data->n_actions; a-- > 0;) {
        if (counts[a] == 0) {
            view->n_actions_never_taken++;
            first = a;
        }
    }
    if (view->n_actions_never_taken == 0) return PSI_OK;
    return add_problem(all,
                       "%zu of %zu actions are never taken, the first of them is %zu: nothing "
                       "can be learnt about them.",
                       view->n_actions_never_taken, data->n_actions, first);
}

static psi_status summarise_episodes(summary *all, const psi_trajectories *data)
{
    psi_summary *view = &all->view;
    size_t both = 0;
    view->length_min = SIZE_MAX;
    for (size_t e = 0; e < data->n_episodes; e++) {
        const size_t length = data->episode_offsets[e + 1] - data->episode_offsets[e];
        view->length_min = base_min(view->length_min, length);
        view->length_max = base_max(view->length_max, length);
        view->n_terminated += data->terminated[e];
        view->n_truncated += data->truncated[e];
        view->n_final_missing += data->final_missing[e];
        both += data->terminated[e] && data->truncated[e];
    }
    view->length_mean = (double)data->n_transitions / (double)data->n_episodes;
    if (both == 0) return PSI_OK;
    return add_problem(all,
                       "%zu episodes are both terminated and truncated; they count as "
                       "terminated.",
                       both);
}

// The first element that is not finite, or n.
static size_t first_bad(psi_dtype dtype, const void *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const bool good = dtype == PSI_FLOAT32 ? isfinite(((const float *)values)[i])
                                               : isfinite(((const double *)values)[i]);
        if (!good) return i;
    }
    return n;
}

static psi_status look_at_observations(psi_ctx *ctx, summary *all, const psi_trajectories *data)
{
    enum { BATCH_BYTES = 1 << 22 };
    const psi_observations *source = data->observations;
    const size_t elements = source->row_bytes / psi_dtype_size(source->dtype);
    const size_t batch = base_max(1, BATCH_BYTES / source->row_bytes);
    psi_status status = PSI_OK;
    uint64_t *rows = NULL;
    char *values = NULL;
    if (source->dtype != PSI_FLOAT32 && source->dtype != PSI_FLOAT64) return PSI_OK;
    TRY(base_alloc(ctx, batch, sizeof *rows, &rows));
    TRY(base_alloc(ctx, batch, source->row_bytes, &values));
    for (size_t first = 0; first < source->count; first += batch) {
        const size_t n = base_min(batch, source->count - first);
        for (size_t i = 0; i < n; i++) rows[i] = first + i;
        TRY(psi_observations_gather(ctx, source, rows, n, values));
        const size_t bad = first_bad(source->dtype, values, n * elements);
        if (bad < n * elements) {
            const size_t row = first + bad / elements;
            size_t e = 0; // the episode whose rows [offset + e, next offset + e] hold it
            while (data->episode_offsets[e + 1] + e < row) e++;
            status = add_problem(all,
                                 "Episode %zu, observations: a value at step %zu is not a "
                                 "finite number.",
                                 e, row - data->episode_offsets[e] - e);
            break;
        }
    }
done:
    base_free(ctx, rows);
    base_free(ctx, values);
    return status;
}

psi_status psi_trajectories_summary(psi_ctx *ctx, const psi_trajectories *data, psi_summary **out)
{
    psi_status status = PSI_OK;
    summary *all;
    *out = NULL;
    if (FREED(ctx, data)) return PSI_EUSAGE;
    TRY(base_alloc_zero(ctx, 1, sizeof *all, &all));
    all->arena.ctx = ctx;
    all->view.problems = all->problem;
    TRY(summarise_rewards(all, data));
    TRY(look_at_observations(ctx, all, data));
    TRY(summarise_actions(all, data));
    TRY(summarise_episodes(all, data));
    for (size_t i = 0; i < data->n_findings; i++) TRY(add_problem(all, "%s", data->findings[i]));
    all->view.observation_bytes = data->n_observations * data->observations->row_bytes;
    all->view.in_memory = data->observations->data != NULL;
    const size_t columns =
        data->n_transitions * (sizeof *data->actions + sizeof *data->rewards) +
        (data->n_episodes + 1) * (sizeof *data->episode_offsets + 3) +
        (data->latent_states ? data->n_observations * sizeof *data->latent_states : 0);
    all->view.memory_bytes = columns + (all->view.in_memory ? all->view.observation_bytes : 0);
    *out = &all->view;
    all = NULL;
done:
    psi_summary_free(ctx, all ? &all->view : NULL);
    return status;
}

void psi_summary_free(psi_ctx *ctx, psi_summary *view)
{
    summary *all = (summary *)view;
    if (!all || FREED(ctx, all)) return;
    base_arena_free(&all->arena);
    base_retire(ctx, all);
}
