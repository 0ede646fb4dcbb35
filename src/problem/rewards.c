#include "problem/rewards.h"

#include "base/comm.h"
#include "base/context.h"
#include "base/tally.h"

#include <math.h>

enum { BINS = 1024, EM_STEPS = 60, SPLIT_STEPS = 30, QUANTILE_CLASSES = 8 };

// A histogram of the rewards, and a mixture of normal distributions fitted to it.
typedef struct mixture {
    double low, width;   // of the bins
    double weight[BINS]; // how many rewards fell into each
    double total;
    size_t n;
    double share[REWARD_MAX_CLASSES], mean[REWARD_MAX_CLASSES], deviation[REWARD_MAX_CLASSES];
} mixture;

static double bin_value(const mixture *mix, size_t bin)
{
    return mix->low + ((double)bin + 0.5) * mix->width;
}

// share · N(x; mean, deviation²), up to the common factor 1/sqrt(2π)
static double density(const mixture *mix, size_t c, double x)
{
    const double z = (x - mix->mean[c]) / mix->deviation[c];
    return mix->share[c] / mix->deviation[c] * exp(-0.5 * z * z);
}

// Expectation–maximisation over components [first, first + count) with the bins weighted by how
// much belongs to them. Returns the log-likelihood (meaningful for all components together).
static double fit_mixture(mixture *mix, size_t first, size_t count, const double *belongs,
                          int steps)
{
    double likelihood = 0.0;
    for (int step = 0; step < steps; step++) {
        double sum[REWARD_MAX_CLASSES] = {0}, moment[REWARD_MAX_CLASSES] = {0};
        double square[REWARD_MAX_CLASSES] = {0}, total = 0.0;
        likelihood = 0.0;
        for (size_t b = 0; b < BINS; b++) {
            const double weight = mix->weight[b] * (belongs ? belongs[b] : 1.0);
            if (weight <= 0.0) continue;
            const double x = bin_value(mix, b);
            double part[REWARD_MAX_CLASSES], whole = 1e-300;
            for (size_t c = 0; c < count; c++) whole += part[c] = density(mix, first + c, x);
            likelihood += weight * log(whole);
            total += weight;
            for (size_t c = 0; c < count; c++) {
                const double w = weight * part[c] / whole;
                sum[c] += w;
                moment[c] += w * x;
                square[c] += w * x * x;
            }
        }
        for (size_t c = 0; c < count; c++) {
            if (sum[c] <= 0.0) continue;
            const double mean = moment[c] / sum[c];
            const double variance = square[c] / sum[c] - mean * mean;
            mix->share[first + c] = sum[c] / total;
            mix->mean[first + c] = mean;
            // a bin is never narrower than itself
            mix->deviation[first + c] = sqrt(fmax(variance, mix->width * mix->width / 4.0));
        }
    }
    return likelihood;
}

// Adds a component by splitting the one whose own two-part fit gains most.
static void split_best(mixture *mix)
{
    mixture best = *mix;
    double best_gain = -HUGE_VAL;
    for (size_t c = 0; c < mix->n; c++) {
        double belongs[BINS];
        for (size_t b = 0; b < BINS; b++) {
            double whole = 1e-300;
            const double x = bin_value(mix, b);
            for (size_t k = 0; k < mix->n; k++) whole += density(mix, k, x);
            belongs[b] = density(mix, c, x) / whole;
        }
        mixture own = *mix, halves = *mix;
        own.share[c] = 1.0;
        const double alone = fit_mixture(&own, c, 1, belongs, 2);
        // the two halves stand side by side at [n − 1 … n] of a copy
        const size_t at = mix->n - 1;
        halves.share[c] = halves.share[at];
        halves.mean[c] = halves.mean[at];
        halves.deviation[c] = halves.deviation[at];
        for (size_t h = 0; h < 2; h++) {
            halves.share[at + h] = 0.5;
            halves.mean[at + h] = mix->mean[c] + (h ? 1.0 : -1.0) * mix->deviation[c];
            halves.deviation[at + h] = 0.5 * mix->deviation[c];
        }
        const double gain = fit_mixture(&halves, at, 2, belongs, SPLIT_STEPS) - alone;
        if (gain > best_gain) {
            best_gain = gain;
            best = halves;
            for (size_t h = 0; h < 2; h++) best.share[at + h] *= mix->share[c];
        }
    }
    *mix = best;
    mix->n++;
}

static void sort_components(mixture *mix)
{
    for (size_t i = 1; i < mix->n; i++) {
        for (size_t k = i; k > 0 && mix->mean[k] < mix->mean[k - 1]; k--) {
            double *const field[] = {mix->share, mix->mean, mix->deviation};
            for (size_t f = 0; f < 3; f++) {
                const double swap = field[f][k];
                field[f][k] = field[f][k - 1];
                field[f][k - 1] = swap;
            }
        }
    }
}

// Joins neighbours whose means are closer than two deviations: they cannot be told apart.
static void merge_close(mixture *mix)
{
    sort_components(mix);
    for (size_t c = 0; c + 1 < mix->n;) {
        const double widest = fmax(mix->deviation[c], mix->deviation[c + 1]);
        const double distance = mix->mean[c + 1] - mix->mean[c];
        if (distance >= 2.0 * widest) {
            c++;
            continue;
        }
        const double a = mix->share[c], b = mix->share[c + 1], share = a + b;
        const double mean = (a * mix->mean[c] + b * mix->mean[c + 1]) / share;
        const double da = mix->mean[c] - mean, db = mix->mean[c + 1] - mean;
        const double variance = (a * (mix->deviation[c] * mix->deviation[c] + da * da) +
                                 b * (mix->deviation[c + 1] * mix->deviation[c + 1] + db * db)) /
                                share;
        mix->share[c] = share;
        mix->mean[c] = mean;
        mix->deviation[c] = sqrt(variance);
        for (size_t k = c + 1; k + 1 < mix->n; k++) {
            mix->share[k] = mix->share[k + 1];
            mix->mean[k] = mix->mean[k + 1];
            mix->deviation[k] = mix->deviation[k + 1];
        }
        mix->n--;
        c = 0; // the joined one may now touch its left neighbour
    }
}

// The mixture with the smallest Bayesian information criterion.
static void choose_mixture(mixture *mix)
{
    mixture grown = *mix;
    grown.n = 1;
    grown.share[0] = 1.0;
    grown.mean[0] = grown.low + 0.5 * BINS * grown.width;
    grown.deviation[0] = BINS * grown.width;
    double best = HUGE_VAL;
    for (;;) {
        const double likelihood = fit_mixture(&grown, 0, grown.n, NULL, EM_STEPS);
        const double criterion =
            (3.0 * (double)grown.n - 1.0) * log(grown.total) - 2.0 * likelihood;
        if (criterion < best) {
            best = criterion;
            *mix = grown;
        }
        if (grown.n == REWARD_MAX_CLASSES) break;
        split_best(&grown);
    }
}

// How a reward is told its class: by the boundaries between neighbours.
typedef struct boundaries {
    size_t n; // classes; n − 1 boundaries
    double at[REWARD_MAX_CLASSES];
} boundaries;

static int32_t class_below(const boundaries *between, double reward)
{
    int32_t c = 0;
    while ((size_t)c + 1 < between->n && reward > between->at[c]) c++;
    return c;
}

// All rewards, ascending, each value once.
typedef struct values {
    size_t n, total; // values; rewards
    base_times *times;
} values;

static double value_at(const values *all, size_t i)
{
    return base_real_of_key(all->times[i].key);
}

// Distinct values up to rounding; false if there are more than REWARD_MAX_CLASSES.
static bool distinct_values(const values *all, boundaries *between)
{
    const double scale = fmax(fabs(value_at(all, 0)), fabs(value_at(all, all->n - 1)));
    between->n = 1;
    for (size_t i = 1; i < all->n; i++) {
        if (value_at(all, i) - value_at(all, i - 1) <= 1e-9 * scale) continue;
        if (between->n == REWARD_MAX_CLASSES) return false;
        between->at[between->n++ - 1] = 0.5 * (value_at(all, i) + value_at(all, i - 1));
    }
    return true;
}

// Between two means, where a reward is as likely to come from the one as from the other.
static void mixture_boundaries(const mixture *mix, boundaries *between)
{
    between->n = mix->n;
    for (size_t c = 0; c + 1 < mix->n; c++) {
        double low = mix->mean[c], high = mix->mean[c + 1];
        for (int step = 0; step < 60; step++) {
            const double middle = 0.5 * (low + high);
            if (density(mix, c, middle) > density(mix, c + 1, middle)) {
                low = middle;
            } else {
                high = middle;
            }
        }
        between->at[c] = low;
    }
}

static void quantile_boundaries(const values *all, boundaries *between)
{
    size_t i = 0, below = 0; // rewards less than value[i]
    between->n = 1;
    for (size_t q = 1; q < QUANTILE_CLASSES; q++) {
        const size_t place = q * all->total / QUANTILE_CLASSES;
        while (below + all->times[i].n <= place) below += all->times[i++].n;
        const double at = value_at(all, i);
        const bool is_new = between->n == 1 || at > between->at[between->n - 2];
        if (at >= value_at(all, all->n - 1) || !is_new) continue;
        between->at[between->n++ - 1] = at;
    }
}

static void choose_boundaries(const values *all, mixture *mix, reward_kind *kind,
                              boundaries *between)
{
    *kind = REWARD_DISTINCT;
    if (distinct_values(all, between)) return;
    *mix = (mixture){.low = value_at(all, 0),
                     .width = (value_at(all, all->n - 1) - value_at(all, 0)) / BINS};
    for (size_t i = 0; i < all->n; i++) {
        const double bin = (value_at(all, i) - mix->low) / mix->width;
        mix->weight[bin >= BINS ? BINS - 1 : (size_t)bin] += (double)all->times[i].n;
    }
    mix->total = (double)all->total;
    choose_mixture(mix);
    const size_t components = mix->n;
    merge_close(mix);
    *kind = REWARD_MIXTURE;
    mixture_boundaries(mix, between);
    // several components that all run into one another are no mixture but one wide distribution
    if (mix->n == 1 && components > 1) {
        *kind = REWARD_QUANTILES;
        quantile_boundaries(all, between);
    }
}

// What the rewards of each class are like so far.
typedef struct moments {
    double count[REWARD_MAX_CLASSES], mean[REWARD_MAX_CLASSES], square[REWARD_MAX_CLASSES];
} moments;

// Every reward's class; in the order of the data, their means and how they scatter.
static psi_status classify(psi_ctx *ctx, const double *rewards, size_t n, const boundaries *between,
                           reward_classes *out)
{
    psi_status status = PSI_OK;
    moments of = {0};
    TRY(base_take_turn(ctx, &of, sizeof of));
    for (size_t i = 0; i < n; i++) {
        const int32_t c = class_below(between, rewards[i]);
        out->of[i] = c;
        of.count[c] += 1.0;
        const double step = rewards[i] - of.mean[c]; // Welford's running mean and variance
        of.mean[c] += step / of.count[c];
        of.square[c] += step * (rewards[i] - of.mean[c]);
    }
    TRY(base_end_turn(ctx, &of, sizeof of));
    for (size_t c = 0; c < out->n; c++) {
        out->value[c] = of.mean[c];
        if (of.count[c] > 0.0) {
            out->deviation = fmax(out->deviation, sqrt(of.square[c] / of.count[c]));
        }
        if (c == 0) continue;
        const double gap = out->value[c] - out->value[c - 1];
        if (c == 1 || gap < out->spacing) out->spacing = gap;
    }
done:
    return status;
}

psi_status problem_reward_classes(psi_ctx *ctx, const double *rewards, size_t n,
                                  reward_classes *out)
{
    psi_status status = PSI_OK;
    values all = {.total = n};
    uint64_t *keys = NULL;
    mixture *mix = NULL;
    boundaries between;
    *out = (reward_classes){0};
    TRY(base_sum_sizes(ctx, &all.total, 1));
    if (all.total == 0) {
        return FAIL(ctx, PSI_EDATA, "there is no transition, so no reward to learn from");
    }
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(rewards[i])) {
            return FAIL(ctx, PSI_EDATA, "the reward of transition %zu is not a finite number", i);
        }
    }
    TRY(base_alloc(ctx, n, sizeof *keys, &keys));
    TRY(base_alloc_zero(ctx, 1, sizeof *mix, &mix));
    for (size_t i = 0; i < n; i++) keys[i] = base_key_of_real(rewards[i]);
    TRY(base_tally(ctx, keys, n, &all.times, &all.n));
    choose_boundaries(&all, mix, &out->kind, &between);
    TRY(base_alloc_zero(ctx, between.n, sizeof *out->value, &out->value));
    TRY(base_alloc(ctx, n, sizeof *out->of, &out->of));
    out->n = between.n;
    TRY(classify(ctx, rewards, n, &between, out));
done:
    base_free(ctx, mix);
    base_free(ctx, all.times);
    base_free(ctx, keys);
    if (status != PSI_OK) problem_reward_classes_free(ctx, out);
    return status;
}

void problem_reward_classes_free(psi_ctx *ctx, reward_classes *classes)
{
    base_free(ctx, classes->value);
    base_free(ctx, classes->of);
    *classes = (reward_classes){0};
}
