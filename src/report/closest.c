#include "report/closest.h"

#include "base/checked.h"
#include "base/context.h"

#include <math.h>
#include <psifold/evidence.h>

enum { MOST_STATES = 5000 };

static double range_of_rewards(const psi_mdp *model)
{
    double low = HUGE_VAL, high = -HUGE_VAL;
    for (size_t i = 0; i < model->n_states * model->n_actions; i++) {
        if (model->offsets[i] == model->offsets[i + 1]) continue;
        low = fmin(low, model->reward[i]);
        high = fmax(high, model->reward[i]);
    }
    return high > low ? high - low : 1.0;
}

// ½ Σ |p − q| of two rows, whose entries ascend.
static double total_variation(const psi_mdp *model, size_t x, size_t y)
{
    size_t i = model->offsets[x], j = model->offsets[y];
    const size_t i_end = model->offsets[x + 1], j_end = model->offsets[y + 1];
    double sum = 0.0;
    while (i < i_end || j < j_end) {
        if (j == j_end || (i < i_end && model->next[i] < model->next[j])) {
            sum += model->probability[i++];
        } else if (i == i_end || model->next[j] < model->next[i]) {
            sum += model->probability[j++];
        } else {
            sum += fabs(model->probability[i++] - model->probability[j++]);
        }
    }
    return 0.5 * sum;
}

// How two latent states differ, over the actions that both have seen. Gives up beyond limit.
static report_neighbour compare(const psi_mdp *model, bool exact, size_t k, size_t other,
                                double range, double limit)
{
    report_neighbour found = {.state = (int32_t)other, .action = -1, .nats = (double)NAN};
    for (size_t a = 0; a < model->n_actions && found.total <= limit; a++) {
        const size_t x = k * model->n_actions + a, y = other * model->n_actions + a;
        const bool seen = psi_mdp_seen(model, k, a), there = psi_mdp_seen(model, other, a);
        if (exact && seen != there) { // allowed in one only: nothing differs more
            found.total += 1.0;
            if (found.apart < 1.0) {
                found = (report_neighbour){found.state, (int32_t)a,  false,
                                           1.0,         found.total, (double)NAN};
            }
        }
        if (!seen || !there) continue;
        const double reward = fmin(1.0, fabs(model->reward[x] - model->reward[y]) / range);
        const double leads = total_variation(model, x, y);
        found.total += fmax(reward, leads);
        if (fmax(reward, leads) <= found.apart) continue;
        found.apart = fmax(reward, leads);
        found.by_reward = reward >= leads;
        found.action = (int32_t)a;
    }
    return found;
}

static void insert(report_neighbour *best, report_neighbour found)
{
    for (size_t i = 0; i < REPORT_CLOSEST; i++) {
        if (best[i].state >= 0 && best[i].total <= found.total) continue;
        const report_neighbour later = best[i];
        best[i] = found;
        found = later;
        if (found.state < 0) return;
    }
}

// ---- evidence -----------------------------------------------------------------------------------

// log P of counts under a Dirichlet prior of weight 1, shared evenly by the outcomes either side
// has shown: Π (1/m)_{n_o} / (1)_n.
static double evidence_of(double total, double share, const double *counts, size_t n)
{
    double sum = -psi_log_rising(1.0, total);
    for (size_t i = 0; i < n; i++) sum += psi_log_rising(share, counts[i]);
    return sum;
}

// Agreement of one family counts for at most log 2, a conflict for all it is worth: two states may
// share any one law. two_one is log P(two laws) − log P(one).
static double apart_by(double two_one)
{
    return two_one > 30.0 ? two_one - log(2.0) : log(0.5 + 0.5 * exp(two_one));
}

typedef struct weighing {
    const psi_counts *counts;
    double *left, *right, *both; // (n_latent) of one row, packed
} weighing;

static double nats_of_next(const weighing *with, size_t x, size_t y)
{
    const psi_counts *counts = with->counts;
    size_t i = counts->offsets[x], j = counts->offsets[y], m = 0;
    const size_t i_end = counts->offsets[x + 1], j_end = counts->offsets[y + 1];
    while (i < i_end || j < j_end) {
        const bool take_left = j == j_end || (i < i_end && counts->next[i] <= counts->next[j]);
        const bool take_right = i == i_end || (j < j_end && counts->next[j] <= counts->next[i]);
        with->left[m] = take_left ? counts->count[i++] : 0.0;
        with->right[m] = take_right ? counts->count[j++] : 0.0;
        with->both[m] = with->left[m] + with->right[m];
        m++;
    }
    if (m < 2) return 0.0;
    const double share = 1.0 / (double)m, n = counts->visits[x], o = counts->visits[y];
    return apart_by(evidence_of(n, share, with->left, m) + evidence_of(o, share, with->right, m) -
                    evidence_of(n + o, share, with->both, m));
}

// Rewards that do not vary are two outcomes, or one; others are compared by their means.
static double nats_of_rewards(const psi_counts *counts, size_t x, size_t y, double range)
{
    const double n = counts->rewards[x], o = counts->rewards[y];
    if (n < 1.0 || o < 1.0) return 0.0;
    const double difference = counts->reward_sum[x] / n - counts->reward_sum[y] / o;
    const double scatter = counts->reward_scatter[x] + counts->reward_scatter[y];
    const double variance = scatter / fmax(1.0, n + o - 2.0);
    if (variance < 1e-12 * range * range) {
        if (fabs(difference) < 1e-6 * range) return 0.0;
        const double left[2] = {n, 0.0}, right[2] = {0.0, o}, both[2] = {n, o};
        return apart_by(evidence_of(n, 0.5, left, 2) + evidence_of(o, 0.5, right, 2) -
                        evidence_of(n + o, 0.5, both, 2));
    }
    const double weight = n * o / (n + o);
    return apart_by(0.5 * weight * difference * difference / variance - 0.5 * log1p(weight));
}

static void weigh(const weighing *with, size_t k, double range, report_neighbour *found)
{
    const psi_counts *counts = with->counts;
    found->nats = 0.0;
    for (size_t a = 0; a < counts->n_actions; a++) {
        const size_t x = k * counts->n_actions + a,
                     y = (size_t)found->state * counts->n_actions + a;
        if (counts->visits[x] < 1.0 || counts->visits[y] < 1.0) continue;
        found->nats += nats_of_next(with, x, y) + nats_of_rewards(counts, x, y, range);
    }
}

static psi_status weigh_all(psi_ctx *ctx, const psi_run *run, const psi_trajectories *data,
                            double range, report_neighbour *found)
{
    psi_status status = PSI_OK;
    psi_counts *counts = NULL;
    weighing with = {0};
    const psi_paths paths =
        psi_trajectories_paths(data, run->labels, run->n_latent, run->has_terminal);
    TRY(psi_counts_new(ctx, &paths, &counts));
    with.counts = counts;
    TRY(base_alloc(ctx, run->n_latent, sizeof(double), &with.left));
    TRY(base_alloc(ctx, run->n_latent, sizeof(double), &with.right));
    TRY(base_alloc(ctx, run->n_latent, sizeof(double), &with.both));
    for (size_t i = 0; i < run->n_latent * REPORT_CLOSEST; i++) {
        if (found[i].state >= 0) weigh(&with, i / REPORT_CLOSEST, range, &found[i]);
    }
done:
    base_free(ctx, with.both);
    base_free(ctx, with.right);
    base_free(ctx, with.left);
    psi_counts_free(ctx, counts);
    return status;
}

psi_status report_closest(psi_ctx *ctx, const psi_run *run, const psi_trajectories *data,
                          bool exact, report_neighbour **out)
{
    psi_status status = PSI_OK;
    const psi_mdp *model = run->model;
    const size_t n = run->n_latent;
    report_neighbour *found = NULL;
    *out = NULL;
    TRY(base_alloc(ctx, n * REPORT_CLOSEST, sizeof *found, &found));
    for (size_t i = 0; i < n * REPORT_CLOSEST; i++) found[i] = (report_neighbour){.state = -1};
    const double range = range_of_rewards(model);
    for (size_t k = 0; n <= MOST_STATES && k < n; k++) {
        TRY(base_cancelled(ctx));
        for (size_t other = 0; other < k; other++) {
            if (model->terminal[k] != model->terminal[other]) continue;
            report_neighbour *mine = found + k * REPORT_CLOSEST,
                             *theirs = found + other * REPORT_CLOSEST;
            const size_t last = REPORT_CLOSEST - 1;
            const double limit = fmax(mine[last].state < 0 ? HUGE_VAL : mine[last].total,
                                      theirs[last].state < 0 ? HUGE_VAL : theirs[last].total);
            report_neighbour pair = compare(model, exact, k, other, range, limit);
            if (pair.total > limit) continue;
            insert(mine, pair);
            pair.state = (int32_t)k;
            insert(theirs, pair);
        }
    }
    if (data) TRY(weigh_all(ctx, run, data, range, found));
    *out = found;
    found = NULL;
done:
    base_free(ctx, found);
    return status;
}
