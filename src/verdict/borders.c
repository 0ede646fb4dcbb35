// Observations on the border of two latent states. Cells go by what most of their observations do,
// so that one beyond a border is left with its neighbours if what followed it is possible on both
// sides. Where no empty space is between two latent states, each border has a few of these.
#include "verdict/judging.h"

#include "base/checked.h"
#include "base/comm.h"
#include "base/context.h"

#include <math.h>

// Transitions that are looked at, at least, and numbers that distances are taken of in all, if the
// tree saved nothing: a second's work.
enum { FEWEST_ASKED = 256 };
static const double MOST_WORK = 1e9;

typedef struct bordering {
    const judging *of;
    const psi_counts *counts;
    double within;         // the variance of rewards within a latent state and action
    double mean, variance; // of all rewards
} bordering;

// log P(j | k, a), one draw of it being even over all; without so many draws of that very kind.
static double log_next(const bordering *run, int32_t k, int32_t a, int32_t j, double own)
{
    const psi_counts *counts = run->counts;
    const size_t pair = (size_t)k * counts->n_actions + (size_t)a;
    double seen = 0.0;
    for (uint64_t i = counts->offsets[pair]; i < counts->offsets[pair + 1]; i++) {
        if (counts->next[i] == j) seen = counts->count[i];
    }
    return log((seen - own + 1.0 / (double)counts->n_latent) / (counts->visits[pair] - own + 1.0));
}

// The log of the density of a reward by the mean of (k, a), without so many of it.
static double log_reward(const bordering *run, int32_t k, int32_t a, double reward, double own)
{
    const psi_counts *counts = run->counts;
    const size_t pair = (size_t)k * counts->n_actions + (size_t)a;
    const double n = counts->rewards[pair] - own;
    const double mean = n > 0.0 ? (counts->reward_sum[pair] - own * reward) / n : run->mean;
    const double variance = n > 0.0 ? run->within * (1.0 + 1.0 / n) : run->variance;
    return -0.5 * ((reward - mean) * (reward - mean) / variance + log(variance));
}

// log P(what came before and after transition t | its observation is in latent state k), where
// `own` draws of it are counted in the laws.
static double log_around(const bordering *run, size_t e, size_t t, int32_t k, double own)
{
    const psi_trajectories *data = run->of->problem->data;
    const int32_t *labels = run->of->result->labels;
    const uint64_t row = run->of->problem->row[t];
    double sum = 0.0;
    if (labels[row + 1] >= 0) sum += log_next(run, k, data->actions[t], labels[row + 1], own);
    if (run->variance > 0.0) sum += log_reward(run, k, data->actions[t], data->rewards[t], own);
    if (t > data->episode_offsets[e] && labels[row - 1] >= 0) {
        sum += log_next(run, labels[row - 1], data->actions[t - 1], k, own);
    }
    return sum;
}

// Whether the nearest observations, wherever they are, leave open on which side of a border one is,
// and what came before and after it does so, too.
static bool is_open(const bordering *run, size_t e, size_t t)
{
    const int32_t *labels = run->of->labels;
    const uint64_t row = run->of->problem->row[t];
    const int32_t own = labels[row];
    uint64_t nearest[LOOKS_NEAREST] = {0};
    int32_t label[LOOKS_NEAREST];
    double votes[LOOKS_NEAREST] = {0.0}, for_own = 0.5, odds = 0.0;
    size_t n = 0;
    const size_t found = problem_looks_nearest_of_all(run->of->looks, row, nearest);
    for (size_t i = 0; i < found; i++) {
        const int32_t k = labels[nearest[i]];
        size_t at = 0;
        if (k < 0) continue;
        if (k == own) {
            for_own += 1.0;
            continue;
        }
        while (at < n && label[at] != k) at++;
        if (at == n) label[n++] = k, votes[at] = 0.5;
        votes[at] += 1.0;
    }
    if (n == 0) return false;
    const double here = log(for_own) + log_around(run, e, t, own, 1.0);
    for (size_t i = 0; i < n; i++) {
        odds += exp(log(votes[i]) + log_around(run, e, t, label[i], 0.0) - here);
    }
    return odds > REFINE_ALLOWED;
}

static psi_status describe_rewards(bordering *run)
{
    psi_status status = PSI_OK;
    psi_ctx *ctx = run->of->ctx;
    const psi_trajectories *data = run->of->problem->data;
    const psi_counts *counts = run->counts;
    const double n = (double)run->of->problem->whole.n_transitions;
    double scatter = 0.0, free = 0.0;
    TRY(base_take_turn(ctx, &run->mean, sizeof run->mean));
    for (size_t t = 0; t < data->n_transitions; t++) run->mean += data->rewards[t] / n;
    TRY(base_end_turn(ctx, &run->mean, sizeof run->mean));
    TRY(base_take_turn(ctx, &run->variance, sizeof run->variance));
    for (size_t t = 0; t < data->n_transitions; t++) {
        const double away = data->rewards[t] - run->mean;
        run->variance += away * away / n;
    }
    TRY(base_end_turn(ctx, &run->variance, sizeof run->variance));
    for (size_t i = 0; i < counts->n_latent * counts->n_actions; i++) {
        scatter += counts->reward_scatter[i];
        free += fmax(0.0, counts->rewards[i] - 1.0);
    }
    // rewards that are the same wherever they were seen are so up to their rounding
    run->within = fmax(free > 0.0 ? scatter / free : run->variance, 1e-9 * run->variance);
done:
    return status;
}

psi_status verdict_ask_borders(judging *run, double *share)
{
    psi_status status = PSI_OK;
    const psi_trajectories *data = run->problem->data;
    const problem_looks *looks = run->looks;
    const size_t n = run->problem->whole.n_transitions;
    const psi_paths paths = problem_paths(run->problem, run->result->labels, run->result->n_latent);
    psi_counts *counts = NULL;
    size_t seen[] = {0, 0}; // asked, open
    *share = 0.0;
    if (looks->width == 0) return PSI_OK; // distinct observations have no borders
    TRY(psi_counts_together(run->ctx, &paths, &counts));
    bordering borders = {.of = run, .counts = counts};
    TRY(describe_rewards(&borders));
    const double work = (double)looks->n_references * (double)looks->width;
    const size_t most = base_max(FEWEST_ASKED, (size_t)(MOST_WORK / work));
    const size_t stride = (n + most - 1) / most;
    const size_t first = run->problem->whole.first_transition;
    for (size_t e = 0, t = (stride - first % stride) % stride; e < data->n_episodes; e++) {
        for (; t < data->episode_offsets[e + 1]; t += stride) {
            const uint64_t row = run->problem->row[t];
            if (run->result->labels[row] < 0 || looks->leaf[row] < 0) continue;
            seen[0]++;
            seen[1] += is_open(&borders, e, t);
        }
        TRY(base_cancelled(run->ctx));
    }
    TRY(base_sum_sizes(run->ctx, seen, 2));
    if (seen[0] > 0) *share = (double)seen[1] / (double)seen[0];
done:
    psi_counts_free(run->ctx, counts);
    return status;
}
