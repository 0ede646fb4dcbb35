#include "evidence/blend.h"

#include "base/checked.h"
#include "base/context.h"

#include <math.h>
#include <string.h>

enum { MOST_PARTS = 8, STEPS = 60 }; // groups of a mixture; steps of expectation–maximisation

struct blend_work {
    double *best;  // (n_outcomes) the largest probability that any group gives to an outcome
    double *p;     // (n_outcomes, MOST_PARTS) of a row's entries under the groups of a mixture
    double *mixed; // (n_outcomes) under the mixture
    float *joint;  // (n_outcomes, groups) P(family and outcome | group), so that all groups of an
                   // outcome are looked at together
    float *slope;  // (groups)
    size_t room;   // of joint and slope, in groups
};

psi_status evidence_blend_new(psi_ctx *ctx, const evidence_groups *groups, blend_work **out)
{
    psi_status status = PSI_OK;
    const size_t n = groups->rows->n_outcomes;
    blend_work *work = NULL;
    *out = NULL;
    TRY(base_alloc_zero(ctx, 1, sizeof *work, &work));
    TRY(base_alloc(ctx, n, sizeof *work->best, &work->best));
    TRY(base_alloc(ctx, n, MOST_PARTS * sizeof *work->p, &work->p));
    TRY(base_alloc(ctx, n, sizeof *work->mixed, &work->mixed));
    *out = work;
    work = NULL;
done:
    evidence_blend_free(ctx, work);
    return status;
}

void evidence_blend_free(psi_ctx *ctx, blend_work *work)
{
    if (!work) return;
    base_free(ctx, work->best);
    base_free(ctx, work->p);
    base_free(ctx, work->mixed);
    base_free(ctx, work->joint);
    base_free(ctx, work->slope);
    base_free(ctx, work);
}

static double probability(const evidence_groups *groups, size_t g, uint32_t o)
{
    const evidence_rows *rows = groups->rows;
    const uint32_t f = rows->family[o];
    const double alpha = groups->concentration[f];
    return ((double)groups->count[g * rows->n_outcomes + o] + alpha * rows->base[o]) /
           (groups->total[g * rows->n_families + f] + alpha);
}

// P(family f | group g), as often as it was drawn there.
static double share_of_family(const evidence_groups *groups, size_t g, uint32_t f, double drawn)
{
    return (groups->total[g * groups->rows->n_families + f] + 0.5) / drawn;
}

static double drawn_in(const evidence_groups *groups, size_t g)
{
    const size_t families = groups->rows->n_families;
    double sum = 0.0;
    for (size_t f = 0; f < families; f++) sum += groups->total[g * families + f] + 0.5;
    return sum;
}

psi_status evidence_blend_prepare(psi_ctx *ctx, blend_work *work, const evidence_groups *groups)
{
    psi_status status = PSI_OK;
    const evidence_rows *rows = groups->rows;
    if (groups->n > work->room) {
        TRY(base_resize(ctx, rows->n_outcomes, groups->n * sizeof *work->joint, &work->joint));
        TRY(base_resize(ctx, groups->n, sizeof *work->slope, &work->slope));
        work->room = groups->n;
    }
    for (uint32_t o = 0; o < rows->n_outcomes; o++) work->best[o] = 1e-300;
    for (size_t g = 0; g < groups->n; g++) {
        if (groups->cells[g] == 0) continue;
        const double drawn = drawn_in(groups, g);
        for (uint32_t o = 0; o < rows->n_outcomes; o++) {
            const double p = probability(groups, g, o);
            work->best[o] = fmax(work->best[o], p);
            work->joint[o * work->room + g] =
                (float)(p * share_of_family(groups, g, rows->family[o], drawn));
        }
    }
done:
    return status;
}

// A mixture of some groups' laws, and what it makes of a row.
typedef struct mixture {
    size_t parts, part[MOST_PARTS];
    double weight[MOST_PARTS];
    double drawn[MOST_PARTS]; // draws of all families in the group of a part
} mixture;

static void add_part(blend_work *work, const evidence_groups *groups, const blend_row *row,
                     size_t g, mixture *mix)
{
    const size_t k = mix->parts++;
    mix->part[k] = g;
    mix->drawn[k] = drawn_in(groups, g);
    for (size_t i = 0; i < row->n; i++) {
        const uint32_t f = groups->rows->family[row->outcome[i]];
        work->p[i * MOST_PARTS + k] =
            probability(groups, g, row->outcome[i]) * share_of_family(groups, g, f, mix->drawn[k]);
    }
    for (size_t j = 0; j < k; j++) mix->weight[j] *= (double)k / (double)mix->parts;
    mix->weight[k] = 1.0 / (double)mix->parts;
}

// Leaves out what explains less than half a draw.
static void drop_parts(blend_work *work, const blend_row *row, double draws, mixture *mix)
{
    size_t kept = 0;
    double total = 0.0;
    for (size_t k = 0; k < mix->parts; k++) {
        if (mix->weight[k] * draws < 0.5) continue;
        total += mix->weight[k];
        if (kept < k) {
            for (size_t i = 0; i < row->n; i++) {
                work->p[i * MOST_PARTS + kept] = work->p[i * MOST_PARTS + k];
            }
            mix->part[kept] = mix->part[k];
            mix->weight[kept] = mix->weight[k];
            mix->drawn[kept] = mix->drawn[k];
        }
        kept++;
    }
    mix->parts = kept;
    for (size_t k = 0; k < kept; k++) mix->weight[k] /= total;
}

// The weights by expectation–maximisation, until a step adds less than 0.01 nats: it adds the
// divergence of the weights before it from those after it, at least, once for every draw. mixed[i]
// is P(family and outcome of entry i).
static void fit_weights(blend_work *work, const blend_row *row, double draws, mixture *mix)
{
    for (int step = 0; step < STEPS; step++) {
        double next[MOST_PARTS] = {0.0}, change = 0.0;
        for (size_t i = 0; i < row->n; i++) {
            const double *p = work->p + i * MOST_PARTS;
            double sum = 0.0;
            for (size_t k = 0; k < mix->parts; k++) sum += mix->weight[k] * p[k];
            const double each = (double)row->count[i] / sum;
            for (size_t k = 0; k < mix->parts; k++) next[k] += each * p[k];
            work->mixed[i] = sum;
        }
        for (size_t k = 0; k < mix->parts; k++) {
            const double ratio = next[k] / draws; // of the weight after the step to that before it
            next[k] = mix->weight[k] * ratio;
            change += 0.5 * mix->weight[k] * (ratio - 1.0) * (ratio - 1.0);
        }
        if (draws * change < 0.01) break;
        memcpy(mix->weight, next, mix->parts * sizeof *next);
    }
}

// log P(outcomes of the row | their families, mixture).
static double log_likelihood(const blend_work *work, const evidence_groups *groups,
                             const blend_row *row, const mixture *mix)
{
    uint32_t family = UINT32_MAX;
    double of_family = 1.0, sum = 0.0;
    for (size_t i = 0; i < row->n; i++) {
        const uint32_t f = groups->rows->family[row->outcome[i]];
        if (f != family) {
            of_family = 0.0;
            for (size_t k = 0; k < mix->parts; k++) {
                of_family +=
                    mix->weight[k] * share_of_family(groups, mix->part[k], f, mix->drawn[k]);
            }
            family = f;
        }
        sum += (double)row->count[i] * log(work->mixed[i] / of_family);
    }
    return sum;
}

static bool is_part(const mixture *mix, size_t g)
{
    for (size_t k = 0; k < mix->parts; k++) {
        if (mix->part[k] == g) return true;
    }
    return false;
}

// The group whose part would explain most of what the mixture does not: the slope of the
// log-likelihood towards it, Σ count · (p/mixed − 1), is the largest. No mixture is better than
// this one by more than that, since the log-likelihood is concave. n: none.
static size_t steepest(const blend_work *work, const evidence_groups *groups, const blend_row *row,
                       size_t except, const mixture *mix, double draws, double *slope)
{
    size_t best = groups->n;
    float *all = work->slope;
    *slope = 0.0;
    for (size_t g = 0; g < groups->n; g++) all[g] = mix->parts ? -(float)draws : 0.0f;
    for (size_t i = 0; i < row->n; i++) {
        const float *p = work->joint + row->outcome[i] * work->room;
        const float each =
            mix->parts ? (float)((double)row->count[i] / work->mixed[i]) : row->count[i];
        for (size_t g = 0; g < groups->n; g++) all[g] += each * p[g];
    }
    for (size_t g = 0; g < groups->n; g++) {
        if (groups->cells[g] == 0 || g == except || is_part(mix, g)) continue;
        if ((double)all[g] > *slope) *slope = (double)all[g], best = g;
    }
    return best;
}

// How the means of rewards fit those of the mixture, which scatter as those of its parts do.
static double fit_means(const evidence_groups *groups, const blend_row *row, size_t parts,
                        const size_t *part, const double *weight)
{
    const evidence_rows *rows = groups->rows;
    double sum = 0.0;
    for (size_t m = 0; m < rows->n_means; m++) {
        double mean = 0.0, square = 0.0, total = 0.0;
        if (row->precision[m] <= 0.0) continue;
        for (size_t k = 0; k < parts; k++) {
            const double p = groups->precision[part[k] * rows->n_means + m];
            if (p <= 0.0 || weight[k] <= 0.0) continue;
            const double x = groups->weighted[part[k] * rows->n_means + m] / p;
            mean += weight[k] * x;
            square += weight[k] * x * x;
            total += weight[k];
        }
        if (total <= 0.0) continue;
        mean /= total;
        const double scatter = fmax(square / total - mean * mean, 1e-9 * rows->mean_variance);
        const double p = row->precision[m], q = row->weighted[m];
        const double away = q - p * mean;
        sum += mean * q - 0.5 * mean * mean * p +
               0.5 * (scatter * away * away / (1.0 + scatter * p) - log1p(scatter * p));
    }
    return sum;
}

double evidence_blend(blend_work *work, const evidence_groups *groups, const blend_row *row,
                      size_t except, double limit)
{
    double bound = 0.0, draws = 0.0, slope;
    for (size_t i = 0; i < row->n; i++) {
        bound += (double)row->count[i] * log(work->best[row->outcome[i]]);
        draws += (double)row->count[i];
    }
    if (groups->rows->n_means == 0 && bound < limit) return -HUGE_VAL;
    const double naming = log((double)evidence_groups_live(groups));
    mixture mix = {0};
    while (mix.parts < MOST_PARTS) {
        const size_t g = steepest(work, groups, row, except, &mix, draws, &slope);
        if (g == groups->n || (mix.parts > 1 && slope < naming)) break; // does not pay for its name
        add_part(work, groups, row, g, &mix);
        fit_weights(work, row, draws, &mix);
    }
    drop_parts(work, row, draws, &mix);
    if (mix.parts < 2) return -HUGE_VAL; // one law, not a mixture
    fit_weights(work, row, draws, &mix);
    const double used = (double)mix.parts;
    return log_likelihood(work, groups, row, &mix) +
           fit_means(groups, row, mix.parts, mix.part, mix.weight) - used * naming -
           0.5 * (used - 1.0) * log1p(draws);
}
