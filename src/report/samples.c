#include "report/samples.h"

#include "base/checked.h"
#include "base/random.h"

#include <math.h>
#include <string.h>

enum {
    SAMPLES_STREAM = 0x73616d70,
    IMAGES_SHOWN = 6,
    POINTS_SHOWN = 40,
    LINES_SHOWN = 6,
    NUMBERS_SHOWN = 12,
    VALUES_LIMIT = 1 << 24
};

void report_samples_free(report_samples *samples)
{
    if (!samples) return;
    base_free(samples->ctx, samples->rows);
    base_free(samples->ctx, samples->found);
    base_free(samples->ctx, samples->low);
    base_free(samples->ctx, samples->high);
    base_free(samples->ctx, samples->values);
    base_free(samples->ctx, samples);
}

// Bytes in two or three dimensions are images; which of the dimensions are rows and columns is a
// guess from their sizes.
static bool looks_like_image(const psi_observations *observations, report_samples *samples)
{
    const psi_shape *shape = psi_observations_shape(observations);
    if (psi_observations_dtype(observations) != PSI_UINT8) return false;
    samples->planes = samples->channels = 1;
    if (shape->rank == 2) {
        samples->height = shape->dim[0];
        samples->width = shape->dim[1];
    } else if (shape->rank == 3 && (shape->dim[2] == 3 || shape->dim[2] == 1)) {
        samples->height = shape->dim[0];
        samples->width = shape->dim[1];
        samples->channels = shape->dim[2];
    } else if (shape->rank == 3 && shape->dim[0] <= 16) {
        samples->planes = shape->dim[0];
        samples->height = shape->dim[1];
        samples->width = shape->dim[2];
    } else {
        return false;
    }
    return samples->height >= 2 && samples->width >= 2 && samples->height <= 4096 &&
           samples->width * samples->planes <= 4096;
}

double report_number(psi_dtype dtype, const void *row, size_t i)
{
    switch (dtype) {
    case PSI_UINT8: return (double)((const uint8_t *)row)[i];
    case PSI_INT32: return (double)((const int32_t *)row)[i];
    case PSI_INT64: return (double)((const int64_t *)row)[i];
    case PSI_FLOAT32: return (double)((const float *)row)[i];
    case PSI_FLOAT64: return ((const double *)row)[i];
    }
    return 0.0;
}

// Reservoir sampling: every observation of a latent state has the same chance.
psi_status report_samples_choose(report_samples *samples, const int32_t *labels, uint64_t seed,
                                 uint32_t stream)
{
    psi_status status = PSI_OK;
    base_random random = base_random_stream(seed, stream, 0);
    const psi_trajectories *data = samples->data;
    size_t *seen = NULL;
    TRY(base_alloc_zero(samples->ctx, samples->n_latent, sizeof *seen, &seen));
    for (size_t e = 0; e < data->n_episodes; e++) {
        const uint64_t begin = data->episode_offsets[e] + e, end = data->episode_offsets[e + 1] + e;
        for (uint64_t row = begin; row <= end; row++) {
            if (labels[row] < 0 || (row == end && data->final_missing[e])) continue;
            const size_t k = (size_t)labels[row];
            uint64_t *rows = samples->rows + k * samples->per_state;
            const size_t n = seen[k]++;
            if (n < samples->per_state) {
                rows[n] = row;
                samples->found[k] = n + 1;
            } else {
                const uint32_t place =
                    base_random_below(&random, (uint32_t)base_min(n + 1, UINT32_MAX));
                if (place < samples->per_state) rows[place] = row;
            }
        }
    }
done:
    base_free(samples->ctx, seen);
    return status;
}

psi_status report_samples_load(report_samples *samples)
{
    psi_status status = PSI_OK;
    if (samples->look == REPORT_LOOK_IMAGE) return PSI_OK;
    const psi_observations *from = samples->data->observations;
    const psi_dtype dtype = psi_observations_dtype(from);
    const size_t row_bytes = psi_observations_row_bytes(from), width = samples->dimensions;
    unsigned char *bytes = NULL;
    TRY(base_alloc(samples->ctx, samples->per_state, row_bytes, &bytes));
    TRY(base_alloc(samples->ctx, samples->n_latent * samples->per_state * width, sizeof(double),
                   &samples->values));
    for (size_t k = 0; k < samples->n_latent; k++) {
        TRY(psi_observations_gather(samples->ctx, from, samples->rows + k * samples->per_state,
                                    samples->found[k], bytes));
        for (size_t s = 0; s < samples->found[k]; s++) {
            double *to = samples->values + (k * samples->per_state + s) * width;
            for (size_t i = 0; i < width; i++) {
                to[i] = report_number(dtype, bytes + s * row_bytes, i);
                if (!isfinite(to[i])) to[i] = 0.0;
                samples->low[i] = fmin(samples->low[i], to[i]); // those of `like` stay in sight
                samples->high[i] = fmax(samples->high[i], to[i]);
            }
        }
    }
done:
    base_free(samples->ctx, bytes);
    return status;
}

// Memory for the rows, and for the range of what they hold.
static psi_status make_room(report_samples *samples, const report_samples *like)
{
    psi_status status = PSI_OK;
    psi_ctx *ctx = samples->ctx;
    const size_t width = samples->dimensions;
    TRY(base_alloc_zero(ctx, samples->n_latent * samples->per_state, sizeof *samples->rows,
                        &samples->rows));
    TRY(base_alloc_zero(ctx, samples->n_latent, sizeof *samples->found, &samples->found));
    if (samples->look == REPORT_LOOK_IMAGE) goto done;
    TRY(base_alloc(ctx, width, sizeof(double), &samples->low));
    TRY(base_alloc(ctx, width, sizeof(double), &samples->high));
    for (size_t i = 0; i < width; i++) {
        samples->low[i] = like ? like->low[i] : HUGE_VAL;
        samples->high[i] = like ? like->high[i] : -HUGE_VAL;
    }
done:
    return status;
}

psi_status report_samples_like(const report_samples *like, size_t per_state, report_samples **out)
{
    psi_status status = PSI_OK;
    report_samples *samples = NULL;
    *out = NULL;
    TRY(base_alloc(like->ctx, 1, sizeof *samples, &samples));
    *samples = *like;
    samples->per_state = per_state;
    samples->rows = NULL;
    samples->found = NULL;
    samples->low = samples->high = samples->values = NULL;
    TRY(make_room(samples, like));
    *out = samples;
    samples = NULL;
done:
    report_samples_free(samples);
    return status;
}

psi_status report_samples_new(psi_ctx *ctx, const psi_trajectories *data, const int32_t *labels,
                              size_t n_latent, uint64_t seed, report_samples **out)
{
    psi_status status = PSI_OK;
    report_samples *samples = NULL;
    *out = NULL;
    TRY(base_alloc_zero(ctx, 1, sizeof *samples, &samples));
    samples->ctx = ctx;
    samples->data = data;
    samples->n_latent = n_latent;
    samples->dimensions = psi_shape_size(psi_observations_shape(data->observations));
    if (looks_like_image(data->observations, samples)) {
        samples->look = REPORT_LOOK_IMAGE;
        samples->per_state = IMAGES_SHOWN;
    } else if (samples->dimensions == 2) {
        samples->look = REPORT_LOOK_POINT;
        samples->per_state = POINTS_SHOWN;
    } else if (samples->dimensions <= 4) {
        samples->look = REPORT_LOOK_NUMBERS;
        samples->per_state = NUMBERS_SHOWN;
    } else {
        samples->look = REPORT_LOOK_VECTOR;
        samples->per_state = LINES_SHOWN;
    }
    const size_t most = VALUES_LIMIT / base_max(1, n_latent * samples->dimensions);
    if (samples->look != REPORT_LOOK_IMAGE) {
        samples->per_state = base_max(1, base_min(samples->per_state, most));
    }
    TRY(make_room(samples, NULL));
    TRY(report_samples_choose(samples, labels, seed, SAMPLES_STREAM));
    TRY(report_samples_load(samples));
    *out = samples;
    samples = NULL;
done:
    report_samples_free(samples);
    return status;
}

void report_samples_describe(const report_samples *samples, report_text *text)
{
    const psi_observations *observations = samples->data->observations;
    const psi_shape *shape = psi_observations_shape(observations);
    if (shape->rank == 0) report_put(text, "one number");
    for (size_t i = 0; i < shape->rank; i++) {
        report_putf(text, "%s%zu", i ? " × " : "", shape->dim[i]);
    }
    report_putf(text, " of type %s", psi_dtype_name(psi_observations_dtype(observations)));
}
