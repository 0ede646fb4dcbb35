#include "cluster/observe.h"

#include "base/checked.h"
#include "base/context.h"

#include <math.h>
#include <string.h>

enum { COMPARED = 256, COARSE = 8, MOST_SHIFTED = 128 * 128 * sizeof(float) };
static const double SEPARATE = 0.15; // correlation below which channels show different things
enum { LOOKED_AT = 4096, RAW_ROWS = 1024, SMALLEST_SIDE = 8, MOST_CHANNELS = 16 };

// (H, W, C) if the last dimension can only be channels, else (C, H, W).
static bool find_image(cluster_inputs *inputs, const psi_shape *shape)
{
    const size_t *dim = shape->dim;
    if (shape->rank == 2 && dim[0] >= SMALLEST_SIDE && dim[1] >= SMALLEST_SIDE) {
        inputs->shape = (psi_shape){3, {1, dim[0], dim[1]}};
        return true;
    }
    if (shape->rank != 3) return false;
    if (dim[1] >= SMALLEST_SIDE && dim[2] >= SMALLEST_SIDE) {
        inputs->shape = *shape;
        return true;
    }
    if (dim[0] >= SMALLEST_SIDE && dim[1] >= SMALLEST_SIDE && dim[2] <= MOST_CHANNELS) {
        inputs->channels_last = true;
        inputs->shape = (psi_shape){3, {dim[2], dim[0], dim[1]}};
        return true;
    }
    return false;
}

static double element(const unsigned char *row, psi_dtype dtype, size_t i)
{
    switch (dtype) {
    case PSI_UINT8: return (double)row[i];
    case PSI_INT32: return (double)((const int32_t *)(const void *)row)[i];
    case PSI_INT64: return (double)((const int64_t *)(const void *)row)[i];
    case PSI_FLOAT32: return (double)((const float *)(const void *)row)[i];
    case PSI_FLOAT64: return ((const double *)(const void *)row)[i];
    }
    return 0.0;
}

// One observation into the network's type and order.
static void convert(const cluster_inputs *inputs, const unsigned char *from, unsigned char *to)
{
    const psi_dtype dtype = psi_observations_dtype(inputs->observations);
    const size_t size = psi_shape_size(&inputs->shape);
    const size_t channels = inputs->shape.dim[0];
    const size_t pixels = inputs->channels_last ? size / channels : 1;
    for (size_t i = 0; i < size; i++) {
        const size_t source = inputs->channels_last ? i % pixels * channels + i / pixels : i;
        if (inputs->dtype == PSI_UINT8) {
            to[i] = from[source];
        } else {
            ((float *)(void *)to)[i] = (float)element(from, dtype, source);
        }
    }
}

psi_status cluster_inputs_gather(void *user, psi_ctx *ctx, const uint64_t *rows, size_t n,
                                 void *out)
{
    const cluster_inputs *inputs = user;
    if (!inputs->raw) return psi_observations_gather(ctx, inputs->observations, rows, n, out);
    const size_t raw_bytes = psi_observations_row_bytes(inputs->observations);
    unsigned char *to = out;
    for (size_t begin = 0; begin < n; begin += inputs->raw_rows) {
        const size_t count = base_min(inputs->raw_rows, n - begin);
        const psi_status status =
            psi_observations_gather(ctx, inputs->observations, rows + begin, count, inputs->raw);
        if (status != PSI_OK) return status;
        for (size_t i = 0; i < count; i++) {
            convert(inputs, inputs->raw + i * raw_bytes, to + (begin + i) * inputs->row_bytes);
        }
    }
    return PSI_OK;
}

// Mean and deviation of every component of a vector, or of every channel of an image.
static psi_status standardise(psi_ctx *ctx, cluster_inputs *inputs)
{
    psi_status status = PSI_OK;
    const size_t n = psi_observations_count(inputs->observations);
    const size_t looked_at = base_min(n, LOOKED_AT);
    const size_t size = psi_shape_size(&inputs->shape);
    const size_t parts = inputs->is_image ? inputs->shape.dim[0] : size, each = size / parts;
    unsigned char *row = NULL;
    double *sum = NULL, *square = NULL;
    TRY(base_alloc_zero(ctx, parts, sizeof *sum, &sum));
    TRY(base_alloc_zero(ctx, parts, sizeof *square, &square));
    TRY(base_alloc(ctx, 1, inputs->row_bytes, &row));
    for (size_t i = 0; i < looked_at; i++) {
        const uint64_t at = i * n / looked_at;
        TRY(cluster_inputs_gather(inputs, ctx, &at, 1, row));
        for (size_t k = 0; k < size; k++) {
            const double x = element(row, inputs->dtype, k);
            if (!isfinite(x)) {
                status = FAIL(ctx, PSI_EDATA, "observation %llu contains a value that is no number",
                              (unsigned long long)at);
                goto done;
            }
            sum[k / each] += x;
            square[k / each] += x * x;
        }
    }
    for (size_t p = 0; p < parts; p++) {
        const double count = (double)(looked_at * each), mean = sum[p] / count;
        const double variance = square[p] / count - mean * mean;
        inputs->mean[p] = (float)mean;
        inputs->scale[p] =
            variance > 1e-12 * (1.0 + mean * mean) ? (float)(1.0 / sqrt(variance)) : 0.0f;
    }
done:
    base_free(ctx, row);
    base_free(ctx, square);
    base_free(ctx, sum);
    return status;
}

// Do channels vary together, pixel by pixel? Colours and stacked frames do, pictures of different
// things do not.
static psi_status compare_channels(psi_ctx *ctx, cluster_inputs *inputs)
{
    psi_status status = PSI_OK;
    const size_t n = psi_observations_count(inputs->observations);
    const size_t looked_at = base_min(n, COMPARED), size = psi_shape_size(&inputs->shape);
    const size_t channels = inputs->shape.dim[0], pixels = size / channels;
    unsigned char *row = NULL;
    float *x = NULL, *mean = NULL;
    TRY(base_alloc(ctx, 1, inputs->row_bytes, &row));
    TRY(base_alloc_zero(ctx, size, sizeof *mean, &mean));
    TRY(base_alloc(ctx, looked_at, size * sizeof *x, &x));
    for (size_t i = 0; i < looked_at; i++) {
        const uint64_t at = i * n / looked_at;
        TRY(cluster_inputs_gather(inputs, ctx, &at, 1, row));
        for (size_t k = 0; k < size; k++) {
            x[i * size + k] = (float)element(row, inputs->dtype, k);
            mean[k] += x[i * size + k] / (float)looked_at;
        }
    }
    double largest = 0.0;
    for (size_t c = 0; c < channels; c++) {
        for (size_t d = c + 1; d < channels; d++) {
            double both = 0.0, first = 0.0, second = 0.0;
            for (size_t i = 0; i < looked_at; i++) {
                for (size_t p = 0; p < pixels; p++) {
                    const size_t j = c * pixels + p, k = d * pixels + p;
                    const double u = (double)(x[i * size + j] - mean[j]);
                    const double v = (double)(x[i * size + k] - mean[k]);
                    both += u * v;
                    first += u * u;
                    second += v * v;
                }
            }
            largest = fmax(largest, fabs(both) / (sqrt(first * second) + 1e-12));
        }
    }
    inputs->separate_channels = channels > 1 && largest < SEPARATE;
done:
    base_free(ctx, x);
    base_free(ctx, mean);
    base_free(ctx, row);
    return status;
}

static float plane_element(const unsigned char *plane, psi_dtype dtype, size_t i)
{
    return dtype == PSI_UINT8 ? (float)plane[i] : ((const float *)(const void *)plane)[i];
}

void cluster_inputs_coarse(const cluster_inputs *inputs, size_t n, const void *images, float *out)
{
    const size_t channels = inputs->shape.dim[0], h = inputs->shape.dim[1];
    const size_t w = inputs->shape.dim[2], side = inputs->coarse_side;
    const size_t rows = (h + side - 1) / side, columns = (w + side - 1) / side;
    const unsigned char *plane = images;
    for (size_t i = 0; i < n * channels; i++) {
        float *cell = out + i * rows * columns;
        memset(cell, 0, rows * columns * sizeof *cell);
        for (size_t y = 0; y < h; y++) {
            for (size_t x = 0; x < w; x++) {
                cell[y / side * columns + x / side] +=
                    plane_element(plane, inputs->dtype, y * w + x);
            }
        }
        const float *mean = inputs->coarse_mean + i % channels * rows * columns;
        for (size_t k = 0; k < rows * columns; k++) {
            cell[k] = (cell[k] - mean[k]) * inputs->coarse_scale;
        }
        plane += h * w * psi_dtype_size(inputs->dtype);
    }
}

// The mean outline, and how far outlines are from it.
static psi_status outline(psi_ctx *ctx, cluster_inputs *inputs)
{
    psi_status status = PSI_OK;
    const size_t n = psi_observations_count(inputs->observations);
    const size_t looked_at = base_min(n, COMPARED);
    const psi_shape *shape = &inputs->shape;
    const size_t side = (base_max(shape->dim[1], shape->dim[2]) + COARSE - 1) / COARSE;
    const size_t cells =
        shape->dim[0] * ((shape->dim[1] + side - 1) / side) * ((shape->dim[2] + side - 1) / side);
    unsigned char *row = NULL;
    float *x = NULL;
    double *mean = NULL, *square = NULL;
    inputs->coarse_side = side;
    TRY(base_alloc_zero(ctx, cells, sizeof(float), &inputs->coarse_mean));
    TRY(base_alloc(ctx, 1, inputs->row_bytes, &row));
    TRY(base_alloc(ctx, cells, sizeof *x, &x));
    TRY(base_alloc_zero(ctx, cells, sizeof *mean, &mean));
    TRY(base_alloc_zero(ctx, cells, sizeof *square, &square));
    inputs->coarse_scale = 1.0f;
    for (size_t i = 0; i < looked_at; i++) {
        const uint64_t at = i * n / looked_at;
        TRY(cluster_inputs_gather(inputs, ctx, &at, 1, row));
        cluster_inputs_coarse(inputs, 1, row, x);
        for (size_t k = 0; k < cells; k++) {
            mean[k] += (double)x[k] / (double)looked_at;
            square[k] += (double)x[k] * (double)x[k] / (double)looked_at;
        }
    }
    double variance = 0.0;
    for (size_t k = 0; k < cells; k++) {
        inputs->coarse_mean[k] = (float)mean[k];
        variance += fmax(square[k] - mean[k] * mean[k], 0.0) / (double)cells;
    }
    inputs->coarse_scale = variance > 0.0 ? (float)(1.0 / sqrt(variance)) : 0.0f;
    inputs->n_coarse = cells;
done:
    base_free(ctx, square);
    base_free(ctx, mean);
    base_free(ctx, x);
    base_free(ctx, row);
    return status;
}

// One plane (h, w) of elements of `width` bytes, moved by (dy, dx); the plane as it was is in from.
static void move_plane(const unsigned char *from, unsigned char *to, size_t h, size_t w,
                       size_t width, ptrdiff_t dy, ptrdiff_t dx)
{
    const ptrdiff_t last_y = (ptrdiff_t)h - 1, last_x = (ptrdiff_t)w - 1;
    for (ptrdiff_t y = 0; y <= last_y; y++) {
        const ptrdiff_t sy = y + dy < 0 ? 0 : y + dy > last_y ? last_y : y + dy;
        for (ptrdiff_t x = 0; x <= last_x; x++) {
            const ptrdiff_t sx = x + dx < 0 ? 0 : x + dx > last_x ? last_x : x + dx;
            memcpy(to + (size_t)(y * (ptrdiff_t)w + x) * width,
                   from + (size_t)(sy * (ptrdiff_t)w + sx) * width, width);
        }
    }
}

void cluster_inputs_shift(const cluster_inputs *inputs, base_random *random, size_t most, size_t n,
                          void *images)
{
    unsigned char before[MOST_SHIFTED];
    if (!inputs->is_image || most == 0) return;
    const size_t channels = inputs->shape.dim[0], h = inputs->shape.dim[1];
    const size_t w = inputs->shape.dim[2], width = psi_dtype_size(inputs->dtype);
    const size_t bytes = h * w * width;
    if (bytes > sizeof before) return;
    unsigned char *plane = images;
    ptrdiff_t dy = 0, dx = 0;
    for (size_t i = 0; i < n * channels; i++, plane += bytes) {
        if (inputs->separate_channels || i % channels == 0) {
            dy = (ptrdiff_t)base_random_below(random, (uint32_t)(2 * most + 1)) - (ptrdiff_t)most;
            dx = (ptrdiff_t)base_random_below(random, (uint32_t)(2 * most + 1)) - (ptrdiff_t)most;
        }
        if (dy == 0 && dx == 0) continue;
        memcpy(before, plane, bytes);
        move_plane(before, plane, h, w, width, dy, dx);
    }
}

psi_status cluster_inputs_new(psi_ctx *ctx, const psi_observations *observations,
                              cluster_inputs *out)
{
    psi_status status = PSI_OK;
    *out = (cluster_inputs){.observations = observations};
    const psi_shape *shape = psi_observations_shape(observations);
    const psi_dtype dtype = psi_observations_dtype(observations);
    out->is_image = find_image(out, shape);
    if (!out->is_image) out->shape = (psi_shape){1, {psi_shape_size(shape)}};
    out->dtype = dtype == PSI_UINT8 ? PSI_UINT8 : PSI_FLOAT32;
    out->row_bytes = psi_shape_size(&out->shape) * psi_dtype_size(out->dtype);
    const size_t parts = out->shape.dim[0];
    TRY(base_alloc(ctx, parts, sizeof *out->mean, &out->mean));
    TRY(base_alloc(ctx, parts, sizeof *out->scale, &out->scale));
    if (out->channels_last || out->dtype != dtype) {
        out->raw_rows = RAW_ROWS;
        TRY(base_alloc(ctx, RAW_ROWS, psi_observations_row_bytes(observations), &out->raw));
    }
    TRY(standardise(ctx, out));
    if (out->is_image) TRY(compare_channels(ctx, out));
    if (out->is_image) TRY(outline(ctx, out));
done:
    if (status != PSI_OK) cluster_inputs_free(ctx, out);
    return status;
}

void cluster_inputs_free(psi_ctx *ctx, cluster_inputs *inputs)
{
    base_free(ctx, inputs->mean);
    base_free(ctx, inputs->scale);
    base_free(ctx, inputs->coarse_mean);
    base_free(ctx, inputs->raw);
    *inputs = (cluster_inputs){0};
}
