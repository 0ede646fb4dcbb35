#include "report/extremes.h"

#include "base/checked.h"
#include "base/random.h"

#include <math.h>

enum { STREAM = 0x65787472, SAMPLE_MOST = 64, SAMPLE_LEAST = 8, SAMPLE_BYTES = 96 << 20 };

// Labels that are at least so sure are not doubtful.
static const float CERTAIN = 0.9995f;

// Keeps the n rows with the largest keys, the largest first.
static void keep_largest(uint64_t *rows, double *keys, size_t *n, uint64_t row, double key)
{
    size_t at = *n;
    if (at == REPORT_EXTREMES && keys[at - 1] >= key) return;
    if (at == REPORT_EXTREMES) at--;
    for (; at > 0 && keys[at - 1] < key; at--) {
        rows[at] = rows[at - 1];
        keys[at] = keys[at - 1];
    }
    rows[at] = row;
    keys[at] = key;
    if (*n < REPORT_EXTREMES) (*n)++;
}

// A latent state's observations, one in each row of bytes: the squared distance of each from their
// mean, in standard deviations.
static void measure(const report_samples *like, const unsigned char *bytes, size_t n,
                    double *distance)
{
    const psi_observations *from = like->data->observations;
    const psi_dtype dtype = psi_observations_dtype(from);
    const size_t row_bytes = psi_observations_row_bytes(from);
    for (size_t i = 0; i < n; i++) distance[i] = 0.0;
    for (size_t d = 0; d < like->dimensions; d++) {
        double mean = 0.0, variance = 0.0;
        for (size_t i = 0; i < n; i++) mean += report_number(dtype, bytes + i * row_bytes, d);
        mean /= (double)n;
        for (size_t i = 0; i < n; i++) {
            const double off = report_number(dtype, bytes + i * row_bytes, d) - mean;
            variance += off * off / (double)n;
        }
        if (!(variance > 0.0) || !isfinite(variance)) continue;
        for (size_t i = 0; i < n; i++) {
            const double off = report_number(dtype, bytes + i * row_bytes, d) - mean;
            distance[i] += off * off / variance;
        }
    }
}

psi_status report_least_typical(const report_samples *like, const int32_t *labels, uint64_t seed,
                                report_samples **out)
{
    psi_status status = PSI_OK;
    psi_ctx *ctx = like->ctx;
    const psi_observations *from = like->data->observations;
    const size_t row_bytes = psi_observations_row_bytes(from), k = like->n_latent;
    size_t sample = SAMPLE_BYTES / base_max(1, k * row_bytes);
    report_samples *wide = NULL, *made = NULL;
    unsigned char *bytes = NULL;
    *out = NULL;
    sample = base_max(SAMPLE_LEAST, base_min(SAMPLE_MOST, sample));
    if (like->dimensions < 2) return PSI_OK;
    TRY(report_samples_like(like, sample, &wide));
    TRY(report_samples_choose(wide, labels, seed, STREAM));
    TRY(report_samples_like(like, REPORT_EXTREMES, &made));
    TRY(base_alloc(ctx, sample, row_bytes, &bytes));
    for (size_t s = 0; s < k; s++) {
        double distance[SAMPLE_MOST], keys[REPORT_EXTREMES];
        const uint64_t *rows = wide->rows + s * sample;
        if (wide->found[s] <= REPORT_EXTREMES) continue; // all of them are shown anyway
        TRY(base_cancelled(ctx));
        TRY(psi_observations_gather(ctx, from, rows, wide->found[s], bytes));
        measure(like, bytes, wide->found[s], distance);
        for (size_t i = 0; i < wide->found[s]; i++) {
            keep_largest(made->rows + s * REPORT_EXTREMES, keys, &made->found[s], rows[i],
                         distance[i]);
        }
        // where all are the same, none is less typical than the others
        if (keys[0] <= 0.0) made->found[s] = 0;
    }
    TRY(report_samples_load(made));
    *out = made;
    made = NULL;
done:
    base_free(ctx, bytes);
    report_samples_free(made);
    report_samples_free(wide);
    return status;
}

psi_status report_least_sure(const report_samples *like, const int32_t *labels,
                             const float *confidence, report_samples **out)
{
    psi_status status = PSI_OK;
    const psi_trajectories *data = like->data;
    report_samples *made = NULL;
    double *keys = NULL;
    *out = NULL;
    TRY(report_samples_like(like, REPORT_EXTREMES, &made));
    TRY(base_alloc(like->ctx, like->n_latent * REPORT_EXTREMES, sizeof *keys, &keys));
    for (size_t e = 0; e < data->n_episodes; e++) {
        const uint64_t begin = data->episode_offsets[e] + e, end = data->episode_offsets[e + 1] + e;
        for (uint64_t row = begin; row <= end; row++) {
            if (labels[row] < 0 || (row == end && data->final_missing[e])) continue;
            if (confidence[row] >= CERTAIN) continue;
            const size_t k = (size_t)labels[row];
            keep_largest(made->rows + k * REPORT_EXTREMES, keys + k * REPORT_EXTREMES,
                         &made->found[k], row, -(double)confidence[row]);
        }
    }
    TRY(report_samples_load(made));
    *out = made;
    made = NULL;
done:
    base_free(like->ctx, keys);
    report_samples_free(made);
    return status;
}
