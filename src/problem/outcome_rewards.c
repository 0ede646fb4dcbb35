#include "problem/outcome_rewards.h"

#include "base/checked.h"
#include "base/comm.h"
#include "base/context.h"
#include "base/tally.h"

#include <math.h>

enum { MOST_CLASSES = 4096 };

// Only the mean of a reward counts. In a table its values are classes where that makes no
// difference: there are two, or observation and action determine it. Cells of looks mix latent
// states, and single values tell more of these than means do: there they are classes if two draws
// agree at least so often, until classes are seen to part what means do not. Noise hardly ever
// repeats; a reward that is one of four with equal odds repeats that often.
static const double REPEATS_IN_CELLS = 0.25;

// Draws that the variance of the wider surroundings counts for, beside a cell's own, if rewards are
// normal. Where a few rare ones make most of the variance, as many draws say less of it: those of a
// look in which none came would say that nothing is left to chance. A variance is known from n
// draws to √((kurtosis − 1)/n) of it, from normal ones, whose kurtosis is 3, to √(2/n).
static const double PRIOR_DRAWS = 8.0;

static double prior_draws(double n, double square, double fourth)
{
    const double kurtosis = square > 0.0 ? n * fourth / (square * square) : 3.0;
    return PRIOR_DRAWS * fmax(1.0, 0.5 * (kurtosis - 1.0));
}

// Distinct values, ascending.
static psi_status distinct_values(psi_ctx *ctx, const psi_trajectories *data, double **out,
                                  size_t *n)
{
    psi_status status = PSI_OK;
    uint64_t *keys = NULL;
    base_times *times = NULL;
    TRY(base_alloc(ctx, data->n_transitions, sizeof *keys, &keys));
    for (size_t t = 0; t < data->n_transitions; t++) keys[t] = base_key_of_real(data->rewards[t]);
    TRY(base_tally(ctx, keys, data->n_transitions, &times, n));
    TRY(base_alloc(ctx, *n, sizeof **out, out));
    for (size_t i = 0; i < *n; i++) (*out)[i] = base_real_of_key(times[i].key);
done:
    base_free(ctx, times);
    base_free(ctx, keys);
    return status;
}

static int32_t class_of(const double *value, size_t n, double reward)
{
    size_t low = 0;
    for (size_t high = n; low + 1 < high;) {
        const size_t middle = (low + high) / 2;
        if (value[middle] <= reward) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return (int32_t)low;
}

// How often two rewards of the same look and action are the same number, one of n values.
static psi_status share_of_repeats(psi_ctx *ctx, const cluster_problem *problem,
                                   const problem_looks *looks, const double *value, size_t n,
                                   double *share)
{
    psi_status status = PSI_OK;
    const psi_trajectories *data = problem->data;
    double pairs = 0.0, equal = 0.0;
    uint64_t *keys = NULL; // (leaf, action, value)
    base_times *times = NULL;
    size_t m = 0, kinds;
    TRY(base_alloc(ctx, data->n_transitions, sizeof *keys, &keys));
    for (size_t t = 0; t < data->n_transitions; t++) {
        const int32_t leaf = looks->leaf[problem->row[t]];
        if (leaf < 0) continue;
        const uint64_t at = (uint64_t)leaf * data->n_actions + (uint64_t)data->actions[t];
        keys[m++] = at * n + (uint64_t)class_of(value, n, data->rewards[t]);
    }
    TRY(base_tally(ctx, keys, m, &times, &kinds));
    for (size_t i = 0, j; i < kinds; i = j) {
        uint64_t draws = 0;
        for (j = i; j < kinds && times[j].key / n == times[i].key / n; j++) draws += times[j].n;
        if (draws < 2) continue;
        for (size_t k = i; k < j; k++) { // every draw weighs the same
            const double same = (double)times[k].n;
            equal += same * (same - 1.0) / ((double)draws - 1.0);
        }
        pairs += (double)draws;
    }
    *share = pairs > 0.0 ? equal / pairs : 1.0;
done:
    base_free(ctx, times);
    base_free(ctx, keys);
    return status;
}

// Rewards, less what those of an action that led to the same latent state are on average: away
// (transitions). Where one latent state leads somewhere as often as another, their means differ by
// as much as before, while chance that decides where it leads no longer hides it.
static psi_status find_away(psi_ctx *ctx, const cluster_problem *problem, const int32_t *led_to,
                            double mean, double *away)
{
    psi_status status = PSI_OK;
    const psi_trajectories *data = problem->data;
    double *sum = NULL, *n = NULL; // (latent states and unknown, A)
    int64_t most = -1;
    for (size_t t = 0; t < data->n_transitions; t++) away[t] = data->rewards[t] - mean;
    if (!led_to) return PSI_OK;
    for (size_t i = 0; i < problem->n_rows; i++) most = led_to[i] > most ? led_to[i] : most;
    TRY(base_maximum(ctx, &most, 1));
    const size_t kinds = (size_t)(most + 2) * data->n_actions;
    TRY(base_alloc_zero(ctx, kinds, sizeof *sum, &sum));
    TRY(base_alloc_zero(ctx, kinds, sizeof *n, &n));
    const base_block state[] = {{sum, kinds * sizeof *sum}, {n, kinds * sizeof *n}};
    TRY(base_take_turn_with(ctx, state, 2));
    for (size_t pass = 0; pass < 2; pass++) {
        for (size_t t = 0; t < data->n_transitions; t++) {
            const size_t at = (size_t)(led_to[problem->row[t] + 1] + 1) * data->n_actions +
                              (size_t)data->actions[t];
            if (pass == 0) {
                sum[at] += away[t];
                n[at]++;
            } else {
                away[t] -= sum[at] / n[at];
            }
        }
        if (pass == 0) TRY(base_end_turn_with(ctx, state, 2));
    }
done:
    base_free(ctx, n);
    base_free(ctx, sum);
    return status;
}

// How far rewards are from the mean of their leaf and action, to the power of four, of all actions
// (A): in standard deviations of all rewards, so that no power is infinite.
static psi_status find_fourth(psi_ctx *ctx, const cluster_problem *problem,
                              const problem_looks *looks, const double *away, const double *n,
                              const double *sum, double variance, double *fourth)
{
    psi_status status = PSI_OK;
    const psi_trajectories *data = problem->data;
    TRY(base_take_turn(ctx, fourth, data->n_actions * sizeof *fourth));
    for (size_t t = 0; t < data->n_transitions; t++) {
        const int32_t leaf = looks->leaf[problem->row[t]];
        if (leaf < 0) continue;
        const size_t a = (size_t)data->actions[t], at = (size_t)leaf * data->n_actions + a;
        const double e = away[t] - sum[at] / n[at];
        fourth[a] += (e * e / variance) * (e * e / variance);
    }
    TRY(base_end_turn(ctx, fourth, data->n_actions * sizeof *fourth));
done:
    return status;
}

// The variance of a leaf's rewards over all its actions, held near that of all leaves.
static double variance_of_leaf(const double *n, const double *sum, const double *square,
                               size_t actions, double anywhere)
{
    double scatter = 0.0, free = 0.0;
    for (size_t a = 0; a < actions; a++) {
        if (n[a] < 2.0) continue;
        scatter += fmax(square[a] - sum[a] * sum[a] / n[a], 0.0);
        free += n[a] - 1.0;
    }
    return (scatter + PRIOR_DRAWS * anywhere) / (free + PRIOR_DRAWS);
}

// What is known of the mean reward of every leaf and action: its variance is that of its own draws,
// held near that of the branch it is on, that of an action, and this near that of all actions; or
// near that of the leaf's other actions, if that is more. Two draws that happen to be the same
// number do not make an action one that pays for sure, least of all where others pay by chance.
psi_status problem_mean_rewards(psi_ctx *ctx, const cluster_problem *problem,
                                const problem_looks *looks, const int32_t *led_to,
                                outcome_rewards *out)
{
    psi_status status = PSI_OK;
    const psi_trajectories *data = problem->data;
    const size_t nodes = looks->forest.n_nodes, actions = data->n_actions;
    const double all = (double)problem->whole.n_transitions;
    double *n = NULL, *sum = NULL, *square = NULL, *variance = NULL, *within = NULL, *away = NULL;
    double *fourth = NULL, *prior = NULL;                                // (A)
    double scatter_within = 0.0, free_within = 0.0, fourth_within = 0.0; // of all actions
    *out = (outcome_rewards){0};
    TRY(base_take_turn(ctx, &out->mean, sizeof out->mean));
    for (size_t t = 0; t < data->n_transitions; t++) out->mean += data->rewards[t] / all;
    TRY(base_end_turn(ctx, &out->mean, sizeof out->mean));
    TRY(base_take_turn(ctx, &out->variance, sizeof out->variance));
    for (size_t t = 0; t < data->n_transitions; t++) {
        const double from_mean = data->rewards[t] - out->mean;
        out->variance += from_mean * from_mean / all;
    }
    TRY(base_end_turn(ctx, &out->variance, sizeof out->variance));
    TRY(base_alloc(ctx, data->n_transitions, sizeof *away, &away));
    TRY(find_away(ctx, problem, led_to, out->mean, away));
    TRY(base_alloc_zero(ctx, nodes * actions, sizeof *n, &n));
    TRY(base_alloc_zero(ctx, nodes * actions, sizeof *sum, &sum));
    TRY(base_alloc_zero(ctx, nodes * actions, sizeof *square, &square));
    TRY(base_alloc(ctx, nodes * actions, sizeof *variance, &variance));
    TRY(base_alloc_zero(ctx, 2 * actions, sizeof *within, &within));
    TRY(base_alloc_zero(ctx, nodes * actions, sizeof *out->precision, &out->precision));
    TRY(base_alloc_zero(ctx, nodes * actions, sizeof *out->weighted, &out->weighted));
    const size_t bytes = nodes * actions * sizeof *n;
    const base_block turn[] = {{n, bytes}, {sum, bytes}, {square, bytes}};
    TRY(base_take_turn_with(ctx, turn, 3));
    for (size_t t = 0; t < data->n_transitions; t++) {
        const int32_t leaf = looks->leaf[problem->row[t]];
        if (leaf < 0) continue;
        const size_t at = (size_t)leaf * actions + (size_t)data->actions[t];
        n[at]++;
        sum[at] += away[t];
        square[at] += away[t] * away[t];
    }
    TRY(base_end_turn_with(ctx, turn, 3));
    TRY(base_alloc_zero(ctx, actions, sizeof *fourth, &fourth));
    if (out->variance > 0.0) {
        TRY(find_fourth(ctx, problem, looks, away, n, sum, out->variance, fourth));
    }
    for (size_t at = 0; at < nodes * actions; at++) { // pooled over the leaves of an action
        if (n[at] < 2.0) continue;
        within[at % actions] += square[at] - sum[at] * sum[at] / n[at];
        within[actions + at % actions] += n[at] - 1.0;
    }
    for (size_t a = 0; a < actions; a++) {
        scatter_within += within[a];
        free_within += within[actions + a];
        fourth_within += fourth[a];
    }
    const double anywhere = free_within > 0.0 ? scatter_within / free_within : out->variance;
    TRY(base_alloc(ctx, actions, sizeof *prior, &prior));
    for (size_t a = 0; a < actions; a++) {
        prior[a] = within[a] > 0.0
                       ? prior_draws(within[actions + a], within[a] / out->variance, fourth[a])
                       : prior_draws(free_within, scatter_within / out->variance, fourth_within);
    }
    for (size_t v = nodes; v-- > 1;) {
        for (size_t a = 0; looks->parent[v] >= 0 && a < actions; a++) {
            const size_t up = (size_t)looks->parent[v] * actions + a, at = v * actions + a;
            n[up] += n[at];
            sum[up] += sum[at];
            square[up] += square[at];
        }
    }
    for (size_t v = 0; v < nodes; v++) {
        const size_t row = v * actions;
        // a cell has its branch; an observation's other actions say that it pays by chance
        const double of_leaf =
            looks->forest.looks
                ? 0.0
                : variance_of_leaf(n + row, sum + row, square + row, actions, anywhere);
        for (size_t a = 0; a < actions; a++) {
            const size_t at = row + a;
            const double pooled =
                (within[a] + PRIOR_DRAWS * anywhere) / (within[actions + a] + PRIOR_DRAWS);
            const double around =
                looks->parent[v] < 0 ? pooled : variance[(size_t)looks->parent[v] * actions + a];
            const double scatter =
                n[at] > 0.0 ? fmax(square[at] - sum[at] * sum[at] / n[at], 0.0) : 0.0;
            const double free = fmax(n[at] - 1.0, 0.0);
            variance[at] = fmax((scatter + prior[a] * around) / (free + prior[a]),
                                (scatter + PRIOR_DRAWS * of_leaf) / (free + PRIOR_DRAWS));
            variance[at] = fmax(variance[at], 1e-12 * out->variance);
            if (looks->left[v] >= 0 || n[at] == 0.0) continue;
            out->precision[at] = n[at] / variance[at];
            out->weighted[at] = sum[at] / variance[at];
        }
    }
done:
    base_free(ctx, prior);
    base_free(ctx, fourth);
    base_free(ctx, away);
    base_free(ctx, within);
    base_free(ctx, variance);
    base_free(ctx, square);
    base_free(ctx, sum);
    base_free(ctx, n);
    if (status != PSI_OK) problem_outcome_rewards_free(ctx, out);
    return status;
}

// Variances of rewards have to be numbers, and no zeros.
static psi_status check_squares(psi_ctx *ctx, double least, double most)
{
    const bool large = fmax(fabs(least), fabs(most)) > 1e150;
    if (large || most - least < 1e-150) {
        return FAIL(ctx, PSI_EDATA, "rewards from %g to %g are too %s to be squared: scale them",
                    least, most, large ? "large" : "close together");
    }
    return PSI_OK;
}

psi_status problem_outcome_rewards(psi_ctx *ctx, const cluster_problem *problem,
                                   const problem_looks *looks, outcome_rewards *out)
{
    psi_status status = PSI_OK;
    const psi_trajectories *data = problem->data;
    double *value = NULL, repeats = 1.0;
    size_t n;
    *out = (outcome_rewards){0};
    TRY(distinct_values(ctx, data, &value, &n));
    if (n > 2 && n <= MOST_CLASSES) TRY(share_of_repeats(ctx, problem, looks, value, n, &repeats));
    const double determined = looks->forest.looks ? REPEATS_IN_CELLS : 1.0;
    if (n > MOST_CLASSES || repeats < determined) {
        TRY(check_squares(ctx, value[0], value[n - 1]));
        TRY(problem_mean_rewards(ctx, problem, looks, NULL, out));
        goto done;
    }
    out->n = n;
    TRY(base_alloc(ctx, data->n_transitions, sizeof *out->of, &out->of));
    for (size_t t = 0; t < data->n_transitions; t++) {
        out->of[t] = class_of(value, n, data->rewards[t]);
    }
done:
    base_free(ctx, value);
    if (status != PSI_OK) problem_outcome_rewards_free(ctx, out);
    return status;
}

void problem_outcome_rewards_free(psi_ctx *ctx, outcome_rewards *rewards)
{
    base_free(ctx, rewards->of);
    base_free(ctx, rewards->precision);
    base_free(ctx, rewards->weighted);
    *rewards = (outcome_rewards){0};
}
