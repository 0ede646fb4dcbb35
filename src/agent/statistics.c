// How agents are compared over seeds, as rliable does it (Agarwal et al., 2021): interquartile
// means, probabilities of improvement and performance profiles, with intervals from a bootstrap
// that resamples the runs of every task on their own.
#include <psifold/agent.h>

#include "agent/streams.h"
#include "base/checked.h"
#include "base/context.h"
#include "base/options.h"
#include "base/order.h"
#include "base/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

psi_bootstrap_options psi_bootstrap_defaults(void)
{
    return (psi_bootstrap_options){
        .size = sizeof(psi_bootstrap_options), .repetitions = 2000, .confidence = 0.95};
}

// Sorts the numbers.
static double interquartile_mean(double *numbers, size_t n)
{
    const size_t cut = n / 4;
    double sum = 0;
    qsort(numbers, n, sizeof *numbers, base_by_real);
    for (size_t i = cut; i < n - cut; i++) sum += numbers[i];
    return sum / (double)(n - 2 * cut);
}

psi_status psi_iqm(psi_ctx *ctx, const double *numbers, size_t n, double *out)
{
    psi_status status = PSI_OK;
    double *copy = NULL;
    if (n == 0) return FAIL(ctx, PSI_EUSAGE, "a mean needs at least one number");
    TRY(base_alloc(ctx, n, sizeof *copy, &copy));
    memcpy(copy, numbers, n * sizeof *copy);
    *out = interquartile_mean(copy, n);
done:
    base_free(ctx, copy);
    return status;
}

// A statistic of one or two agents' scores. The numbers come apart from their shape, because they
// are resampled, and may be reordered.
typedef struct statistic {
    double (*of)(const struct statistic *what, double *x, double *y);
    psi_scores x, y; // y has no tasks if there is only one agent
    double threshold;
} statistic;

static double iqm_of(const statistic *what, double *x, double *y)
{
    (void)y;
    return interquartile_mean(x, what->x.tasks * what->x.runs);
}

static double improvement_of(const statistic *what, double *x, double *y)
{
    const size_t tasks = what->x.tasks, n = what->x.runs, m = what->y.runs;
    double sum = 0;
    for (size_t t = 0; t < tasks; t++) {
        double wins = 0;
        for (size_t i = 0; i < n; i++) {
            for (size_t j = 0; j < m; j++) {
                const double a = x[t * n + i], b = y[t * m + j];
                wins += a > b ? 1 : a == b ? 0.5 : 0;
            }
        }
        sum += wins / (double)(n * m);
    }
    return sum / (double)tasks;
}

static double share_above(const statistic *what, double *x, double *y)
{
    (void)y;
    const size_t n = what->x.tasks * what->x.runs;
    size_t above = 0;
    for (size_t i = 0; i < n; i++) above += x[i] > what->threshold;
    return (double)above / (double)n;
}

static psi_status check(psi_ctx *ctx, const psi_scores *scores,
                        const psi_bootstrap_options *options)
{
    size_t n;
    if (!base_options_fit(ctx, options, sizeof *options, "psi_bootstrap_defaults"))
        return PSI_EUSAGE;
    if (scores->tasks == 0 || scores->runs == 0 || scores->runs > UINT32_MAX ||
        !base_mul(scores->tasks, scores->runs, &n)) {
        return FAIL(ctx, PSI_EUSAGE,
                    "statistics need at least one task and one run, not %zu and "
                    "%zu",
                    scores->tasks, scores->runs);
    }
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(scores->scores[i])) {
            return FAIL(ctx, PSI_EDATA, "the score of run %zu in task %zu is not a finite number",
                        i % scores->runs, i / scores->runs);
        }
    }
    if (options->repetitions < 1 || options->repetitions > 1 << 24 ||
        !(options->confidence > 0 && options->confidence < 1)) {
        return FAIL(ctx, PSI_EUSAGE,
                    "a bootstrap has from 1 to 2^24 repetitions and a confidence between 0 and 1");
    }
    return PSI_OK;
}

// Runs of every task drawn with replacement, independently of the other tasks.
static void resample(const psi_scores *scores, base_random *dice, double *out)
{
    for (size_t t = 0; t < scores->tasks; t++) {
        const double *of_task = scores->scores + t * scores->runs;
        for (size_t i = 0; i < scores->runs; i++) {
            out[t * scores->runs + i] = of_task[base_random_below(dice, (uint32_t)scores->runs)];
        }
    }
}

// Between two order statistics, linearly, as numpy's percentiles.
static double percentile(const double *sorted, size_t n, double share)
{
    const double at = share * (double)(n - 1);
    const size_t below = (size_t)at, above = base_min(below + 1, n - 1);
    return sorted[below] + (at - (double)below) * (sorted[above] - sorted[below]);
}

// The statistic of the scores as they are, and its interval.
static psi_status bootstrap(psi_ctx *ctx, const statistic *what,
                            const psi_bootstrap_options *options, psi_interval *out)
{
    psi_status status = PSI_OK;
    const size_t n = what->x.tasks * what->x.runs, m = what->y.tasks * what->y.runs;
    double *x = NULL, *y = NULL, *found = NULL;
    TRY(base_alloc(ctx, n, sizeof *x, &x));
    TRY(base_alloc(ctx, m, sizeof *y, &y));
    TRY(base_alloc(ctx, options->repetitions, sizeof *found, &found));
    memcpy(x, what->x.scores, n * sizeof *x);
    if (m > 0) memcpy(y, what->y.scores, m * sizeof *y);
    out->estimate = what->of(what, x, y);
    for (size_t r = 0; r < options->repetitions; r++) {
        base_random dice = base_random_stream(options->seed, AGENT_STREAM_BOOTSTRAP, r);
        TRY(base_cancelled(ctx));
        resample(&what->x, &dice, x);
        resample(&what->y, &dice, y);
        found[r] = what->of(what, x, y);
    }
    qsort(found, options->repetitions, sizeof *found, base_by_real);
    out->low = percentile(found, options->repetitions, (1 - options->confidence) / 2);
    out->high = percentile(found, options->repetitions, (1 + options->confidence) / 2);
done:
    base_free(ctx, x);
    base_free(ctx, y);
    base_free(ctx, found);
    return status;
}

psi_status psi_scores_iqm(psi_ctx *ctx, const psi_scores *scores,
                          const psi_bootstrap_options *options, psi_interval *out)
{
    const psi_status status = check(ctx, scores, options);
    if (status != PSI_OK) return status;
    return bootstrap(ctx, &(statistic){.of = iqm_of, .x = *scores}, options, out);
}

psi_status psi_scores_improvement(psi_ctx *ctx, const psi_scores *x, const psi_scores *y,
                                  const psi_bootstrap_options *options, psi_interval *out)
{
    psi_status status = PSI_OK;
    TRY(check(ctx, x, options));
    TRY(check(ctx, y, options));
    if (x->tasks != y->tasks) {
        status = FAIL(ctx, PSI_ESHAPE, "agents are compared on the same tasks, not on %zu and %zu",
                      x->tasks, y->tasks);
        goto done;
    }
    TRY(bootstrap(ctx, &(statistic){.of = improvement_of, .x = *x, .y = *y}, options, out));
done:
    return status;
}

psi_status psi_scores_profile(psi_ctx *ctx, const psi_scores *scores, const double *thresholds,
                              size_t n, const psi_bootstrap_options *options, psi_interval *out)
{
    psi_status status = PSI_OK;
    TRY(check(ctx, scores, options));
    for (size_t i = 0; i < n; i++) {
        const statistic what = {.of = share_above, .x = *scores, .threshold = thresholds[i]};
        TRY(bootstrap(ctx, &what, options, &out[i]));
    }
done:
    return status;
}
