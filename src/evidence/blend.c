#include "evidence/blend.h"

#include "base/checked.h"
#include "base/context.h"

#include <math.h>
#include <string.h>

enum { MOST_PARTS = 8, STEPS = 60 }; // groups that a mixture may have; of expectation–maximisation

struct blend_work {
    double *best; // (n_outcomes) the largest probability that any group gives to an outcome
    double *p;    // (n_outcomes, MOST_PARTS) of a row's entries under the groups of a mixture
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

void evidence_blend_prepare(blend_work *work, const evidence_groups *groups)
{
    for (uint32_t o = 0; o < groups->rows->n_outcomes; o++) {
        work->best[o] = 1e-300;
        for (size_t g = 0; g < groups->n; g++) {
            if (groups->cells[g]) work->best[o] = fmax(work->best[o], probability(groups, g, o));
        }
    }
}

// The groups that could explain most of the row.
static size_t choose_parts(const evidence_groups *groups, const blend_row *row, size_t except,
                           size_t part[MOST_PARTS])
{
    double score[MOST_PARTS];
    size_t parts = 0;
    for (size_t g = 0; g < groups->n; g++) {
        if (groups->cells[g] == 0 || g == except) continue;
        double shared = 0.0;
        for (size_t i = 0; i < row->n; i++) {
            shared += (double)row->count[i] * probability(groups, g, row->outcome[i]);
        }
        size_t at = parts < MOST_PARTS ? parts++ : MOST_PARTS;
        if (at == MOST_PARTS && shared <= score[MOST_PARTS - 1]) continue;
        if (at == MOST_PARTS) at--;
        for (; at > 0 && score[at - 1] < shared; at--) {
            score[at] = score[at - 1];
            part[at] = part[at - 1];
        }
        score[at] = shared;
        part[at] = g;
    }
    return parts;
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
    const evidence_rows *rows = groups->rows;
    double bound = 0.0, draws = 0.0;
    for (size_t i = 0; i < row->n; i++) {
        bound += (double)row->count[i] * log(work->best[row->outcome[i]]);
        draws += (double)row->count[i];
    }
    if (rows->n_means == 0 && bound < limit) return -HUGE_VAL;

    size_t part[MOST_PARTS];
    const size_t parts = choose_parts(groups, row, except, part);
    if (parts < 2) return -HUGE_VAL;
    double weight[MOST_PARTS], next[MOST_PARTS], log_likelihood = 0.0;
    for (size_t k = 0; k < parts; k++) weight[k] = 1.0 / (double)parts;

    // the part of a draw: its group's share, how often this family was drawn in the group, and the
    // law
    double *p = work->p;
    double drawn[MOST_PARTS];
    for (size_t k = 0; k < parts; k++) {
        drawn[k] = 0.0;
        for (size_t f = 0; f < rows->n_families; f++) {
            drawn[k] += groups->total[part[k] * rows->n_families + f] + 0.5;
        }
    }
    for (size_t i = 0; i < row->n; i++) {
        const uint32_t f = rows->family[row->outcome[i]];
        for (size_t k = 0; k < parts; k++) {
            p[i * MOST_PARTS + k] = probability(groups, part[k], row->outcome[i]) *
                                    (groups->total[part[k] * rows->n_families + f] + 0.5) /
                                    drawn[k];
        }
    }
    for (int step = 0; step < STEPS; step++) {
        const double before = log_likelihood;
        double total = 0.0, of_family = 1.0;
        uint32_t family = UINT32_MAX;
        log_likelihood = 0.0;
        memset(next, 0, sizeof next);
        for (size_t i = 0; i < row->n; i++) {
            const uint32_t f = rows->family[row->outcome[i]];
            if (f != family) {
                family = f;
                of_family = 0.0;
                for (size_t k = 0; k < parts; k++) {
                    of_family += weight[k] * (groups->total[part[k] * rows->n_families + f] + 0.5) /
                                 drawn[k];
                }
            }
            double sum = 0.0;
            for (size_t k = 0; k < parts; k++) sum += weight[k] * p[i * MOST_PARTS + k];
            for (size_t k = 0; k < parts; k++) {
                next[k] += (double)row->count[i] * weight[k] * p[i * MOST_PARTS + k] / sum;
            }
            log_likelihood += (double)row->count[i] * log(sum / of_family);
        }
        for (size_t k = 0; k < parts; k++) {
            if (step > 3 && next[k] < 0.5) next[k] = 0.0; // less than half a draw: no part of it
            total += next[k];
        }
        for (size_t k = 0; k < parts; k++) weight[k] = next[k] / total;
        if (step > 4 && log_likelihood - before < 1e-3) break;
    }
    double used = 0.0;
    for (size_t k = 0; k < parts; k++) used += weight[k] > 0.0;
    if (used < 2.0) return -HUGE_VAL; // one law, not a mixture
    log_likelihood += fit_means(groups, row, parts, part, weight);
    return log_likelihood - used * log((double)evidence_groups_live(groups)) -
           0.5 * (used - 1.0) * log1p(draws);
}
