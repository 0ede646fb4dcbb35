#include "verdict/scatter.h"

#include "base/context.h"
#include "base/order.h"
#include "verdict/units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLE = 1001 }; // rows that tell how far a look scatters

void verdict_scatter_free(psi_ctx *ctx, scatter *all)
{
    base_free(ctx, all->scale);
    base_free(ctx, all->first);
    base_free(ctx, all->part);
}

static double median(double *value, size_t n)
{
    qsort(value, n, sizeof *value, base_by_real);
    return 0.5 * (value[(n - 1) / 2] + value[n / 2]);
}

// Of rows (n), with room for SAMPLE numbers and for the middle (width).
static double scale_of(const problem_looks *looks, const uint64_t *row, size_t n, double *value,
                       float *middle)
{
    const size_t stride = (n + SAMPLE - 1) / SAMPLE;
    size_t count = 0;
    for (size_t w = 0; w < looks->width; w++) {
        count = 0;
        for (size_t i = 0; i < n; i += stride) {
            value[count++] = (double)problem_looks_vector(looks, row[i])[w];
        }
        middle[w] = (float)median(value, count);
    }
    for (size_t i = 0; i < count; i++) {
        double square = 0.0;
        for (size_t w = 0; w < looks->width; w++) {
            const float away = problem_looks_vector(looks, row[i * stride])[w] - middle[w];
            square += (double)away * (double)away;
        }
        value[i] = sqrt(square);
    }
    return median(value, count) / log(2.0);
}

// The rows of every kind side by side, where first says.
static void sort_rows(judging *run, const problem_looks *looks, size_t kinds, scatter *out,
                      uint64_t *at, uint64_t *row)
{
    const int32_t *labels = run->labels;
    for (size_t turn = 0; turn < 2; turn++) { // counted first
        for (size_t i = 0; i < looks->n_references; i++) {
            const uint64_t one = looks->reference[i];
            if (labels[one] < 0) continue;
            const size_t part = (size_t)out->part[looks->leaf[one]];
            const size_t kind = part * out->n_labels + (size_t)labels[one];
            if (turn == 0) {
                out->first[kind + 1]++;
            } else {
                row[at[kind]++] = one;
            }
        }
        for (size_t i = 0; turn == 0 && i < kinds; i++) {
            at[i] = out->first[i];
            out->first[i + 1] += out->first[i];
        }
    }
}

psi_status verdict_scatter_new(judging *run, const problem_looks *looks, scatter *out)
{
    psi_status status = PSI_OK;
    const size_t n = looks->n_references, k = run->result->n_latent;
    uint64_t *row = NULL, *at = NULL;
    double *value = NULL, *all = NULL;
    float *middle = NULL;
    size_t parts, kinds, known = 0;
    *out = (scatter){.n_labels = k};
    TRY(verdict_find_parts(run->ctx, looks, &out->part, &parts));
    if (parts > n / k) { // that many are hardly of several labels: all are one then
        memset(out->part, 0, looks->forest.n_nodes * sizeof *out->part);
        parts = 1;
    }
    kinds = parts * k;
    TRY(base_alloc_zero(run->ctx, kinds + 1, sizeof *out->first, &out->first));
    TRY(base_alloc_zero(run->ctx, kinds, sizeof *out->scale, &out->scale));
    TRY(base_alloc(run->ctx, kinds, sizeof *at, &at));
    TRY(base_alloc(run->ctx, n, sizeof *row, &row));
    TRY(base_alloc(run->ctx, SAMPLE, sizeof *value, &value));
    TRY(base_alloc(run->ctx, looks->width, sizeof *middle, &middle));
    TRY(base_alloc(run->ctx, kinds, sizeof *all, &all));
    sort_rows(run, looks, kinds, out, at, row);
    for (size_t i = 0; i < kinds; i++) {
        const size_t rows = out->first[i + 1] - out->first[i];
        if (rows == 0) continue;
        out->scale[i] = scale_of(looks, row + out->first[i], rows, value, middle);
        if (rows >= UNITS_FEW) all[known++] = out->scale[i];
    }
    if (known > 0) out->usual = median(all, known);
done:
    base_free(run->ctx, all);
    base_free(run->ctx, middle);
    base_free(run->ctx, value);
    base_free(run->ctx, row);
    base_free(run->ctx, at);
    if (status != PSI_OK) verdict_scatter_free(run->ctx, out);
    return status;
}

double verdict_scale_around(const scatter *known, const problem_looks *looks, uint64_t row,
                            int32_t label, size_t few)
{
    const size_t part = (size_t)known->part[looks->leaf[row]];
    const size_t kind = part * known->n_labels + (size_t)label;
    const bool half = known->first[kind + 1] - known->first[kind] <= 2 * few;
    if (half || known->usual == 0.0) return half ? known->usual : known->scale[kind];
    return fmin(known->scale[kind], known->usual);
}
