#include "evidence/rows.h"

#include "base/checked.h"
#include "base/context.h"

#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

// Room for more entries at the end of the rows.
static psi_status grow(psi_ctx *ctx, evidence_rows *rows, size_t n, size_t more, size_t *room)
{
    psi_status status = PSI_OK;
    if (n + more <= *room) return PSI_OK;
    *room = 2 * (n + more);
    TRY(base_resize(ctx, *room, sizeof *rows->outcome, &rows->outcome));
    TRY(base_resize(ctx, *room, sizeof *rows->count, &rows->count));
done:
    return status;
}

// The draws of every leaf, counted with a row of counters that is zero before and after.
static psi_status count_leaves(psi_ctx *ctx, const psi_draws *draws, evidence_rows *rows,
                               size_t *entries, size_t *room)
{
    psi_status status = PSI_OK;
    uint64_t *start = NULL;
    const uint32_t *times = draws->times;
    uint32_t *sorted = NULL, *sorted_times = NULL, *touched = NULL, *counter = NULL;
    TRY(base_alloc_zero(ctx, rows->n_nodes + 1, sizeof *start, &start));
    TRY(base_alloc(ctx, draws->n, sizeof *sorted, &sorted));
    TRY(base_alloc(ctx, times ? draws->n : 0, sizeof *sorted_times, &sorted_times));
    TRY(base_alloc(ctx, rows->n_outcomes, sizeof *touched, &touched));
    TRY(base_alloc_zero(ctx, rows->n_outcomes, sizeof *counter, &counter));
    for (size_t i = 0; i < draws->n; i++) start[draws->node[i] + 1]++;
    for (size_t v = 0; v < rows->n_nodes; v++) start[v + 1] += start[v];
    for (size_t i = 0; i < draws->n; i++) {
        const uint64_t at = start[draws->node[i]]++;
        sorted[at] = draws->outcome[i];
        if (times) sorted_times[at] = times[i];
    }
    for (size_t v = 0; v < rows->n_nodes; v++) { // start[v] is now where v's draws end
        size_t n = 0;
        for (uint64_t i = v ? start[v - 1] : 0; i < start[v]; i++) {
            if (counter[sorted[i]] == 0) touched[n++] = sorted[i];
            counter[sorted[i]] += times ? sorted_times[i] : 1;
        }
        qsort(touched, n, sizeof *touched, compare);
        TRY(grow(ctx, rows, *entries, n, room));
        rows->begin[v] = *entries;
        for (size_t i = 0; i < n; i++) {
            rows->outcome[*entries] = touched[i];
            rows->count[(*entries)++] = (float)counter[touched[i]];
            rows->draws[v] += (double)counter[touched[i]];
            counter[touched[i]] = 0;
        }
        rows->end[v] = *entries;
    }
done:
    base_free(ctx, counter);
    base_free(ctx, touched);
    base_free(ctx, sorted_times);
    base_free(ctx, sorted);
    base_free(ctx, start);
    return status;
}

static psi_status add_children(psi_ctx *ctx, evidence_rows *rows, size_t v, size_t l, size_t r,
                               size_t *entries, size_t *room)
{
    psi_status status = PSI_OK;
    uint64_t i = rows->begin[l], j = rows->begin[r];
    TRY(grow(ctx, rows, *entries, rows->end[l] - i + rows->end[r] - j, room));
    rows->begin[v] = *entries;
    while (i < rows->end[l] || j < rows->end[r]) {
        const uint32_t a = i < rows->end[l] ? rows->outcome[i] : UINT32_MAX;
        const uint32_t b = j < rows->end[r] ? rows->outcome[j] : UINT32_MAX;
        rows->outcome[*entries] = a < b ? a : b;
        rows->count[*entries] = (a <= b ? rows->count[i] : 0.0f) + (b <= a ? rows->count[j] : 0.0f);
        i += a <= b;
        j += b <= a;
        ++*entries;
    }
    rows->end[v] = *entries;
    rows->draws[v] = rows->draws[l] + rows->draws[r];
    for (size_t m = 0; m < rows->n_means; m++) {
        const size_t at = v * rows->n_means + m;
        rows->precision[at] =
            rows->precision[l * rows->n_means + m] + rows->precision[r * rows->n_means + m];
        rows->weighted[at] =
            rows->weighted[l * rows->n_means + m] + rows->weighted[r * rows->n_means + m];
    }
done:
    return status;
}

// How usual every outcome is: the mean over the leaves of its share, with half a leaf for each
// outcome and for all that was never seen.
static psi_status find_base(psi_ctx *ctx, const psi_forest *forest, evidence_rows *rows)
{
    psi_status status = PSI_OK;
    double *leaves = NULL;
    TRY(base_alloc_zero(ctx, rows->n_families, sizeof *leaves, &leaves));
    for (size_t v = 0; v < rows->n_nodes; v++) {
        if (forest->left[v] >= 0) continue;
        for (uint64_t i = rows->begin[v]; i < rows->end[v];) {
            const uint32_t f = rows->family[rows->outcome[i]];
            double total = 0.0;
            uint64_t j = i;
            for (; j < rows->end[v] && rows->family[rows->outcome[j]] == f; j++) {
                total += (double)rows->count[j];
            }
            for (; i < j; i++) rows->base[rows->outcome[i]] += (double)rows->count[i] / total;
            leaves[f]++;
        }
    }
    for (size_t o = 0; o < rows->n_outcomes; o++) {
        const uint32_t f = rows->family[o];
        const double kinds = (double)(rows->first[f + 1] - rows->first[f]);
        rows->base[o] = (rows->base[o] + 0.5) / (leaves[f] + 0.5 * (kinds + 1.0));
    }
done:
    base_free(ctx, leaves);
    return status;
}

psi_status evidence_rows_new(psi_ctx *ctx, const psi_forest *forest, const psi_draws *draws,
                             evidence_rows *out)
{
    psi_status status = PSI_OK;
    const size_t n = forest->n_nodes, means = draws->n_means;
    size_t entries = 0, room = 0;
    *out = (evidence_rows){.n_nodes = n,
                           .n_families = draws->n_families,
                           .n_outcomes = draws->family[draws->n_families],
                           .n_means = means,
                           .mean_variance = draws->mean_variance};
    TRY(base_alloc(ctx, n, sizeof *out->begin, &out->begin));
    TRY(base_alloc(ctx, n, sizeof *out->end, &out->end));
    TRY(base_alloc_zero(ctx, n, sizeof *out->draws, &out->draws));
    TRY(base_alloc(ctx, draws->n_families + 1, sizeof *out->first, &out->first));
    TRY(base_alloc(ctx, out->n_outcomes, sizeof *out->family, &out->family));
    TRY(base_alloc_zero(ctx, out->n_outcomes, sizeof *out->base, &out->base));
    TRY(base_alloc(ctx, n * means, sizeof *out->precision, &out->precision));
    TRY(base_alloc(ctx, n * means, sizeof *out->weighted, &out->weighted));
    memcpy(out->first, draws->family, (draws->n_families + 1) * sizeof *out->first);
    for (size_t f = 0; f < draws->n_families; f++) {
        for (uint32_t o = out->first[f]; o < out->first[f + 1]; o++) out->family[o] = (uint32_t)f;
    }
    if (means > 0) {
        memcpy(out->precision, draws->precision, n * means * sizeof *out->precision);
        memcpy(out->weighted, draws->weighted, n * means * sizeof *out->weighted);
    }
    TRY(count_leaves(ctx, draws, out, &entries, &room));
    for (size_t v = n; v-- > 0;) {
        if (forest->left[v] < 0) continue;
        TRY(add_children(ctx, out, v, (size_t)forest->left[v], (size_t)forest->right[v], &entries,
                         &room));
    }
    TRY(find_base(ctx, forest, out));
done:
    if (status != PSI_OK) evidence_rows_free(ctx, out);
    return status;
}

bool evidence_is_followed(const evidence_rows *rows, size_t v)
{
    bool any = rows->draws[v] > 0.0;
    for (size_t m = 0; m < rows->n_means; m++) any |= rows->precision[v * rows->n_means + m] > 0.0;
    return any;
}

void evidence_rows_free(psi_ctx *ctx, evidence_rows *rows)
{
    base_free(ctx, rows->begin);
    base_free(ctx, rows->end);
    base_free(ctx, rows->outcome);
    base_free(ctx, rows->count);
    base_free(ctx, rows->draws);
    base_free(ctx, rows->first);
    base_free(ctx, rows->family);
    base_free(ctx, rows->base);
    base_free(ctx, rows->precision);
    base_free(ctx, rows->weighted);
    *rows = (evidence_rows){0};
}
