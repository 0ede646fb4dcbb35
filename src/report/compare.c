#include "report/compare.h"

#include "base/checked.h"
#include "base/context.h"

#include <stdlib.h>
#include <string.h>

// Less than this share of both latent states is noise at their borders, not a split.
static const double STRAY = 0.01;

void report_comparison_free(report_comparison *comparison)
{
    if (!comparison) return;
    base_free(comparison->ctx, comparison->overlaps);
    base_free(comparison->ctx, comparison->fate);
    base_free(comparison->ctx, comparison->fate_other);
    base_free(comparison->ctx, comparison);
}

static psi_status check_same_data(psi_ctx *ctx, const psi_run *run, const psi_run *other)
{
    const bool same = run->n_observations == other->n_observations &&
                      strcmp(run->fingerprint.hex, other->fingerprint.hex) == 0;
    if (same) return PSI_OK;
    return FAIL(ctx, PSI_EDATA,
                "%s and %s were not made from the same data: only runs of one "
                "data set can be compared",
                run->folder, other->folder);
}

static int by_pair(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static int largest_first(const void *a, const void *b)
{
    const report_overlap *x = a, *y = b;
    if (x->state != y->state) return x->state < y->state ? -1 : 1;
    if (x->n != y->n) return x->n < y->n ? 1 : -1;
    return x->other < y->other ? -1 : x->other > y->other;
}

// How many observations every two latent states have in common, where they have any.
static psi_status count_overlaps(psi_ctx *ctx, const psi_run *run, const psi_run *other,
                                 report_comparison *made)
{
    psi_status status = PSI_OK;
    uint64_t *pairs = NULL;
    size_t n = 0;
    TRY(base_alloc(ctx, run->n_observations, sizeof *pairs, &pairs));
    for (size_t i = 0; i < run->n_observations; i++) {
        if (run->labels[i] < 0 || other->labels[i] < 0) continue;
        pairs[n++] = (uint64_t)run->labels[i] << 32 | (uint64_t)other->labels[i];
    }
    qsort(pairs, n, sizeof *pairs, by_pair);
    for (size_t i = 0; i < n; i++) made->n_overlaps += i == 0 || pairs[i] != pairs[i - 1];
    TRY(base_alloc(ctx, made->n_overlaps, sizeof *made->overlaps, &made->overlaps));
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || pairs[i] != pairs[i - 1]) {
            made->overlaps[at++] = (report_overlap){.state = (int32_t)(pairs[i] >> 32),
                                                    .other = (int32_t)(pairs[i] & UINT32_MAX)};
        }
        made->overlaps[at - 1].n++;
    }
    qsort(made->overlaps, made->n_overlaps, sizeof *made->overlaps, largest_first);
done:
    base_free(ctx, pairs);
    return status;
}

static psi_status judge(psi_ctx *ctx, const psi_run *run, const psi_run *other,
                        report_comparison *made)
{
    psi_status status = PSI_OK;
    size_t *size = NULL, *size_other = NULL, *parts = NULL, *parts_other = NULL;
    TRY(base_alloc_zero(ctx, run->n_latent, sizeof *size, &size));
    TRY(base_alloc_zero(ctx, other->n_latent, sizeof *size_other, &size_other));
    TRY(base_alloc_zero(ctx, run->n_latent, sizeof *parts, &parts));
    TRY(base_alloc_zero(ctx, other->n_latent, sizeof *parts_other, &parts_other));
    TRY(base_alloc_zero(ctx, run->n_latent, sizeof *made->fate, &made->fate));
    TRY(base_alloc_zero(ctx, other->n_latent, sizeof *made->fate_other, &made->fate_other));
    for (size_t i = 0; i < made->n_overlaps; i++) {
        const report_overlap *one = &made->overlaps[i];
        size[one->state] += one->n;
        size_other[one->other] += one->n;
    }
    for (size_t i = 0; i < made->n_overlaps; i++) {
        report_overlap *one = &made->overlaps[i];
        one->counts = (double)one->n >= STRAY * (double)size[one->state] ||
                      (double)one->n >= STRAY * (double)size_other[one->other];
        if (!one->counts) continue;
        parts[one->state]++;
        parts_other[one->other]++;
    }
    for (size_t i = 0; i < made->n_overlaps; i++) {
        const report_overlap *one = &made->overlaps[i];
        if (!one->counts) continue;
        if (parts_other[one->other] > 1) made->fate[one->state] = -1;
        if (parts[one->state] > 1) made->fate_other[one->other] = -1;
    }
    for (size_t k = 0; k < run->n_latent; k++) {
        if (parts[k] > 1) made->fate[k] = 1;
        made->split += made->fate[k] > 0;
        made->joined += made->fate[k] < 0;
    }
    for (size_t k = 0; k < other->n_latent; k++) {
        if (parts_other[k] > 1) made->fate_other[k] = 1;
    }
    made->same = run->n_latent - made->split - made->joined;
done:
    base_free(ctx, parts_other);
    base_free(ctx, parts);
    base_free(ctx, size_other);
    base_free(ctx, size);
    return status;
}

static psi_status measure_agreement(psi_ctx *ctx, const psi_run *run, const psi_run *other,
                                    double *share)
{
    psi_status status = PSI_OK;
    psi_partition *a = NULL, *b = NULL;
    TRY(psi_partition_new(ctx, run->n_observations, run->labels, &a));
    TRY(psi_partition_new(ctx, run->n_observations, other->labels, &b));
    TRY(psi_partition_agreement(ctx, a, b, share));
done:
    psi_partition_free(ctx, b);
    psi_partition_free(ctx, a);
    return status;
}

psi_status report_compare(psi_ctx *ctx, const psi_run *run, const psi_run *other,
                          report_comparison **out)
{
    psi_status status = PSI_OK;
    report_comparison *made = NULL;
    *out = NULL;
    TRY(check_same_data(ctx, run, other));
    TRY(base_alloc_zero(ctx, 1, sizeof *made, &made));
    made->ctx = ctx;
    TRY(count_overlaps(ctx, run, other, made));
    TRY(judge(ctx, run, other, made));
    TRY(measure_agreement(ctx, run, other, &made->agreement));
    *out = made;
    made = NULL;
done:
    report_comparison_free(made);
    return status;
}
