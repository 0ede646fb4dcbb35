#include "problem/problem.h"

#include <psifold/cluster.h>

#include "base/checked.h"
#include "base/comm.h"
#include "base/context.h"
#include "base/progress.h"
#include "base/random.h"

#include <float.h>
#include <math.h>

static void list_states(cluster_problem *problem)
{
    const psi_trajectories *data = problem->data;
    for (size_t e = 0; e < data->n_episodes; e++) {
        const uint64_t begin = data->episode_offsets[e], end = data->episode_offsets[e + 1];
        for (uint64_t t = begin; t < end; t++) {
            problem->row[t] = t + e;
            problem->states[problem->n_states++] = t + e;
        }
        // the last observation is a state, too, unless it is terminal or was never seen
        if (!data->terminated[e] && !data->final_missing[e]) {
            problem->states[problem->n_states++] = end + e;
        }
        problem->has_terminal |= data->terminated[e] != 0;
    }
}

static void hold_out(cluster_problem *problem, uint64_t seed)
{
    const psi_trajectories *data = problem->data;
    if (problem->whole.n_episodes < 10) return;
    for (size_t e = 0; e < data->n_episodes; e++) {
        const size_t of_all = problem->whole.first_episode + e;
        base_random random = base_random_stream(seed, 0x686f6c64, of_all / 10);
        const bool held = base_random_below(&random, 10) == of_all % 10;
        for (uint64_t t = data->episode_offsets[e]; t < data->episode_offsets[e + 1]; t++) {
            problem->held_out[t] = held;
            problem->n_held_out += held;
        }
    }
}

static psi_status find_whole(psi_ctx *ctx, cluster_problem *problem)
{
    psi_status status = PSI_OK;
    const psi_trajectories *data = problem->data;
    uint8_t has_terminal = problem->has_terminal;
    size_t n[] = {data->n_episodes, data->n_transitions, problem->n_rows, problem->n_states};
    TRY(base_sum_before(ctx, n[0], &problem->whole.first_episode));
    TRY(base_sum_before(ctx, n[1], &problem->whole.first_transition));
    TRY(base_sum_before(ctx, n[3], &problem->whole.first_state));
    TRY(base_sum_sizes(ctx, n, 4));
    problem->whole.n_episodes = n[0];
    problem->whole.n_transitions = n[1];
    problem->whole.n_rows = n[2];
    problem->whole.n_states = n[3];
    TRY(base_any(ctx, &has_terminal, 1));
    problem->has_terminal = has_terminal != 0;
done:
    return status;
}

// The first of n numbers that is none, or too large for a float; n if all are fine.
static size_t find_strange(const void *values, psi_dtype dtype, size_t n)
{
    size_t i = 0;
    if (dtype == PSI_FLOAT32) {
        const float *x = values;
        while (i < n && fabsf(x[i]) <= FLT_MAX) i++;
    } else {
        const double *x = values;
        while (i < n && fabs(x[i]) <= (double)FLT_MAX) i++;
    }
    return i;
}

// Floating-point observations are looked at once, from first to last: one value that is not a
// number would spoil everything that is learnt.
static psi_status check_observations(psi_ctx *ctx, const psi_observations *observations)
{
    psi_status status = PSI_OK;
    enum { BLOCK = 4096 };
    const psi_dtype dtype = psi_observations_dtype(observations);
    const size_t row_bytes = psi_observations_row_bytes(observations);
    const size_t width = row_bytes / psi_dtype_size(dtype);
    unsigned char *block = NULL;
    uint64_t *rows = NULL;
    const size_t n = psi_observations_count(observations);
    if (dtype != PSI_FLOAT32 && dtype != PSI_FLOAT64) return PSI_OK;
    TRY(base_alloc(ctx, BLOCK, row_bytes, &block));
    TRY(base_alloc(ctx, BLOCK, sizeof *rows, &rows));
    base_progress progress = base_progress_start(ctx, "checking observations", n);
    for (size_t begin = 0; begin < n; begin += BLOCK) {
        const size_t count = base_min(BLOCK, n - begin);
        for (size_t i = 0; i < count; i++) rows[i] = begin + i;
        TRY(base_progress_at(&progress, begin));
        TRY(psi_observations_gather(ctx, observations, rows, count, block));
        const size_t at = find_strange(block, dtype, count * width);
        if (at == count * width) continue;
        status = FAIL(ctx, PSI_EDATA,
                      "observation %zu has a value that is infinite, too large, or not a number",
                      begin + at / width);
        goto done;
    }
    base_progress_end(&progress, n);
done:
    base_free(ctx, rows);
    base_free(ctx, block);
    return status;
}

psi_status problem_new(psi_ctx *ctx, const psi_trajectories *data, uint64_t seed,
                       cluster_problem *out)
{
    psi_status status = PSI_OK;
    *out = (cluster_problem){.data = data, .n_rows = data->n_observations};
    TRY(problem_reward_classes(ctx, data->rewards, data->n_transitions, &out->rewards));
    TRY(check_observations(ctx, data->observations));
    TRY(base_alloc(ctx, data->n_observations, sizeof *out->states, &out->states));
    TRY(base_alloc(ctx, data->n_transitions, sizeof *out->row, &out->row));
    TRY(base_alloc_zero(ctx, data->n_transitions, sizeof *out->held_out, &out->held_out));
    list_states(out);
    TRY(find_whole(ctx, out));
    hold_out(out, seed);
    TRY(base_sum_sizes(ctx, &out->n_held_out, 1));
done:
    if (status != PSI_OK) problem_free(ctx, out);
    return status;
}

void problem_free(psi_ctx *ctx, cluster_problem *problem)
{
    problem_reward_classes_free(ctx, &problem->rewards);
    base_free(ctx, problem->states);
    base_free(ctx, problem->row);
    base_free(ctx, problem->held_out);
    *problem = (cluster_problem){0};
}

psi_paths psi_trajectories_paths(const psi_trajectories *data, const int32_t *labels,
                                 size_t n_latent, bool has_terminal)
{
    return (psi_paths){.n_episodes = data->n_episodes,
                       .n_transitions = data->n_transitions,
                       .n_actions = data->n_actions,
                       .n_latent = n_latent,
                       .has_terminal = has_terminal,
                       .labels = labels,
                       .actions = data->actions,
                       .rewards = data->rewards,
                       .episode_offsets = data->episode_offsets,
                       .terminated = data->terminated};
}

psi_paths problem_paths(const cluster_problem *problem, const int32_t *labels, size_t n_latent)
{
    return psi_trajectories_paths(problem->data, labels, n_latent, problem->has_terminal);
}
