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

// Draws that the variance of the wider surroundings counts for, beside a cell's own.
static const double PRIOR_DRAWS = 8.0;

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

// What is known of the mean reward of every leaf and action: its variance is that of its own draws,
// held near that of the branch it is on, that of an action, and this near that of all actions. Two
// draws that happen to be the same number do not make an action one that pays for sure.
psi_status problem_mean_rewards(psi_ctx *ctx, const cluster_problem *problem,
                                const problem_looks *looks, const int32_t *led_to,
                                outcome_rewards *out)
{
    psi_status status = PSI_OK;
    const psi_trajectories *data = problem->data;
    const size_t nodes = looks->forest.n_nodes, actions = data->n_actions;
    const double all = (double)problem->whole.n_transitions;
    double *n = NULL, *sum = NULL, *square = NULL, *variance = NULL, *within = NULL, *away = NULL;
    double scatter_within = 0.0, free_within = 0.0; // of all actions
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
    for (size_t at = 0; at < nodes * actions; at++) { // pooled over the leaves of an action
        if (n[at] < 2.0) continue;
        within[at % actions] += square[at] - sum[at] * sum[at] / n[at];
        within[actions + at % actions] += n[at] - 1.0;
    }
    for (size_t a = 0; a < actions; a++) {
        scatter_within += within[a];
        free_within += within[actions + a];
    }
    const double anywhere = free_within > 0.0 ? scatter_within / free_within : out->variance;
    for (size_t v = nodes; v-- > 1;) {
        for (size_t a = 0; looks->parent[v] >= 0 && a < actions; a++) {
            const size_t up = (size_t)looks->parent[v] * actions + a, at = v * actions + a;
            n[up] += n[at];
            sum[up] += sum[at];
            square[up] += square[at];
        }
    }
    for (size_t v = 0; v < nodes; v++) {
        for (size_t a = 0; a < actions; a++) {
            const size_t at = v * actions + a;
            const double pooled =
                (within[a] + PRIOR_DRAWS * anywhere) / (within[actions + a] + PRIOR_DRAWS);
            const double around =
                looks->parent[v] < 0 ? pooled : variance[(size_t)looks->parent[v] * actions + a];
            const double scatter = n[at] > 0.0 ? square[at] - sum[at] * sum[at] / n[at] : 0.0;
            variance[at] = fmax(1e-12 * out->variance, (fmax(scatter, 0.0) + PRIOR_DRAWS * around) /
                                                           (fmax(n[at] - 1.0, 0.0) + PRIOR_DRAWS));
            if (looks->left[v] >= 0 || n[at] == 0.0) continue;
            out->precision[at] = n[at] / variance[at];
            out->weighted[at] = sum[at] / variance[at];
        }
    }
done:
    base_free(ctx, away);
    base_free(ctx, within);
    base_free(ctx, variance);
    base_free(ctx, square);
    base_free(ctx, sum);
    base_free(ctx, n);
    if (status != PSI_OK) problem_outcome_rewards_free(ctx, out);
    return status;
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
