#include "verdict/growth.h"

#include "base/checked.h"
#include "base/context.h"

#include <math.h>
#include <string.h>

enum { FEWEST_EPISODES = 8 }; // two in a quarter

// By which a number that is counted may differ by chance.
static const double STANDARD_ERRORS = 3.0;

// Every stride-th episode of all, as a data set of its own.
typedef struct part {
    psi_trajectories data;
    float *vectors; // (n_observations, width)
    int32_t *actions;
    double *rewards;
    uint64_t *offsets;
    uint8_t *terminated, *truncated, *final_missing;
} part;

static void part_free(psi_ctx *ctx, part *of)
{
    psi_observations_free(ctx, of->data.observations);
    base_free(ctx, of->vectors);
    base_free(ctx, of->actions);
    base_free(ctx, of->rewards);
    base_free(ctx, of->offsets);
    base_free(ctx, of->terminated);
    base_free(ctx, of->truncated);
    base_free(ctx, of->final_missing);
}

static psi_status part_new(psi_ctx *ctx, const cluster_problem *problem, size_t width,
                           const float *vectors, size_t stride, part *out)
{
    psi_status status = PSI_OK;
    const psi_trajectories *all = problem->data;
    const size_t first = (stride - problem->whole.first_episode % stride) % stride;
    const size_t n_episodes =
        all->n_episodes > first ? (all->n_episodes - first + stride - 1) / stride : 0;
    const uint64_t *offset = all->episode_offsets;
    size_t n = 0;
    *out = (part){0};
    for (size_t e = first; e < all->n_episodes; e += stride) n += offset[e + 1] - offset[e];
    TRY(base_alloc(ctx, n + n_episodes, width * sizeof *out->vectors, &out->vectors));
    TRY(base_alloc(ctx, n, sizeof *out->actions, &out->actions));
    TRY(base_alloc(ctx, n, sizeof *out->rewards, &out->rewards));
    TRY(base_alloc(ctx, n_episodes + 1, sizeof *out->offsets, &out->offsets));
    TRY(base_alloc(ctx, n_episodes, sizeof *out->terminated, &out->terminated));
    TRY(base_alloc(ctx, n_episodes, sizeof *out->truncated, &out->truncated));
    TRY(base_alloc(ctx, n_episodes, sizeof *out->final_missing, &out->final_missing));
    out->offsets[0] = 0;
    for (size_t i = 0; i < n_episodes; i++) {
        const size_t e = first + i * stride, length = offset[e + 1] - offset[e],
                     at = out->offsets[i];
        memcpy(out->vectors + psi_row(i, at) * width, vectors + psi_row(e, offset[e]) * width,
               (length + 1) * width * sizeof *vectors);
        memcpy(out->actions + at, all->actions + offset[e], length * sizeof *out->actions);
        memcpy(out->rewards + at, all->rewards + offset[e], length * sizeof *out->rewards);
        out->offsets[i + 1] = at + length;
        out->terminated[i] = all->terminated[e];
        out->truncated[i] = all->truncated[e];
        out->final_missing[i] = all->final_missing[e];
    }
    out->data = (psi_trajectories){.n_episodes = n_episodes,
                                   .n_transitions = n,
                                   .n_observations = n + n_episodes,
                                   .n_actions = all->n_actions,
                                   .actions = out->actions,
                                   .rewards = out->rewards,
                                   .episode_offsets = out->offsets,
                                   .terminated = out->terminated,
                                   .truncated = out->truncated,
                                   .final_missing = out->final_missing};
    TRY(psi_observations_over(ctx, PSI_FLOAT32, &(psi_shape){1, {width}}, n + n_episodes,
                              out->vectors, &out->data.observations));
done:
    return status;
}

static psi_status count_latent(psi_ctx *ctx, const part *of, size_t width, bool means,
                               uint64_t seed, const by_evidence_options *how, size_t *n_latent)
{
    psi_status status = PSI_OK;
    cluster_problem problem = {0};
    problem_looks looks = {0};
    outcome_rewards rewards = {0};
    by_evidence found = {0};
    TRY(problem_new(ctx, &of->data, seed, &problem));
    TRY(problem_looks_standardise(ctx, &problem, width, of->vectors, NULL));
    TRY(problem_looks_tree(ctx, &problem, width, of->vectors, &looks));
    TRY(means ? problem_mean_rewards(ctx, &problem, &looks, NULL, &rewards)
              : problem_outcome_rewards(ctx, &problem, &looks, &rewards));
    TRY(refine_by_evidence(ctx, &problem, &looks, &rewards, how, &found));
    *n_latent = found.n_latent;
done:
    refine_by_evidence_free(ctx, &found);
    problem_outcome_rewards_free(ctx, &rewards);
    problem_looks_free(ctx, &looks);
    problem_free(ctx, &problem);
    return status;
}

psi_status verdict_growth(psi_ctx *ctx, const cluster_problem *problem, size_t width,
                          const float *vectors, bool means, uint64_t seed,
                          const by_evidence_options *how, size_t n_latent[2])
{
    psi_status status = PSI_OK;
    by_evidence_options quietly = *how;
    quietly.watch = NULL;
    n_latent[0] = n_latent[1] = 0;
    if (problem->whole.n_episodes < FEWEST_EPISODES) return PSI_OK;
    for (size_t i = 0; i < 2; i++) {
        part of;
        status = part_new(ctx, problem, width, vectors, i == 0 ? 4 : 2, &of);
        if (status == PSI_OK)
            status = count_latent(ctx, &of, width, means, seed, &quietly, &n_latent[i]);
        part_free(ctx, &of);
        TRY(status);
    }
done:
    return status;
}

// Whether there are more than twice as many of twice the data, beyond chance: they come into sight.
static bool grows_faster_than_data(double before, double after)
{
    return after - 2.0 * before > STANDARD_ERRORS * sqrt(after + 4.0 * before);
}

bool verdict_keeps_growing(const size_t n_latent[3])
{
    const double quarter = (double)n_latent[0], half = (double)n_latent[1];
    const double all = (double)n_latent[2];
    if (quarter < STANDARD_ERRORS * STANDARD_ERRORS) return false; // as good as none
    if (all - quarter <= STANDARD_ERRORS * sqrt(all)) return false;
    if (grows_faster_than_data(quarter, half) || grows_faster_than_data(half, all)) return false;
    return all - half >= half - quarter && half > quarter && all > 2.0 * quarter;
}
