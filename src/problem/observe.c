#include "problem/observe.h"

#include "base/checked.h"
#include "base/comm.h"
#include "base/context.h"
#include "problem/images.h"

#include <math.h>
#include <string.h>

enum { LOOKED_AT = 4096, RAW_ROWS = 1024, SMALLEST_SIDE = 8, MOST_CHANNELS = 16 };

// (H, W, C) if the last dimension can only be channels, else (C, H, W).
static bool find_frame(problem_inputs *inputs, const psi_shape *shape)
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

// One frame, or several whose channels are all of one image.
static bool find_image(problem_inputs *inputs, const psi_shape *shape)
{
    const size_t *dim = shape->dim;
    if (shape->rank < 4) return find_frame(inputs, shape);
    if (!find_frame(inputs, &(psi_shape){3, {dim[1], dim[2], dim[3]}})) return false;
    inputs->frames = dim[0];
    inputs->shape.dim[0] *= dim[0];
    return true;
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

static void convert_one(const problem_inputs *inputs, const unsigned char *from, size_t source,
                        unsigned char *to, size_t i)
{
    if (inputs->dtype == PSI_UINT8) {
        to[i] = from[source];
    } else {
        const psi_dtype dtype = psi_observations_dtype(inputs->observations);
        ((float *)(void *)to)[i] = (float)element(from, dtype, source);
    }
}

// One observation into the network's type and order.
static void convert(const problem_inputs *inputs, const unsigned char *from, unsigned char *to)
{
    const size_t size = psi_shape_size(&inputs->shape), pixels = size / inputs->shape.dim[0];
    const size_t channels = inputs->shape.dim[0] / inputs->frames;
    size_t i = 0;
    for (size_t begin = 0; begin < size; begin += channels * pixels) { // of every frame
        for (size_t c = 0; c < channels; c++) {
            for (size_t p = 0; p < pixels; p++, i++) {
                const size_t source = inputs->channels_last ? begin + p * channels + c : i;
                convert_one(inputs, from, source, to, i);
            }
        }
    }
}

psi_status problem_inputs_gather(void *user, psi_ctx *ctx, const uint64_t *rows, size_t n,
                                 void *out)
{
    problem_inputs *inputs = user;
    inputs->passed += n;
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

psi_status problem_inputs_some(psi_ctx *ctx, problem_inputs *inputs, size_t most,
                               unsigned char **out, size_t *n)
{
    psi_status status = PSI_OK;
    const size_t own = psi_observations_count(inputs->observations);
    size_t all = own, first, kept = 0, bytes;
    unsigned char *block = NULL;
    TRY(base_sum_sizes(ctx, &all, 1));
    *n = base_min(all, most);
    TRY(base_sum_before(ctx, own, &first));
    TRY(base_alloc(ctx, base_min(*n, own), inputs->row_bytes, &block));
    for (size_t i = 0; i < *n; i++) {
        const uint64_t of_all = i * all / *n, row = of_all - first;
        if (of_all < first || row >= own) continue; // another process's
        TRY(problem_inputs_gather(inputs, ctx, &row, 1, block + kept++ * inputs->row_bytes));
    }
    TRY(base_gather_parts(ctx, block, kept * inputs->row_bytes, out, &bytes));
done:
    base_free(ctx, block);
    return status;
}

// Mean and deviation of every component of a vector, or of every channel of an image, from some
// observations of all processes.
static psi_status standardise(psi_ctx *ctx, problem_inputs *inputs)
{
    psi_status status = PSI_OK;
    const size_t own = psi_observations_count(inputs->observations);
    const size_t size = psi_shape_size(&inputs->shape);
    const size_t parts = inputs->is_image ? inputs->shape.dim[0] : size, each = size / parts;
    size_t n = own, first;
    unsigned char *row = NULL;
    double *sum = NULL, *square = NULL;
    TRY(base_alloc_zero(ctx, parts, sizeof *sum, &sum));
    TRY(base_alloc_zero(ctx, parts, sizeof *square, &square));
    TRY(base_alloc(ctx, 1, inputs->row_bytes, &row));
    TRY(base_sum_sizes(ctx, &n, 1));
    TRY(base_sum_before(ctx, own, &first));
    const size_t looked_at = base_min(n, LOOKED_AT);
    const base_block turn[] = {{sum, parts * sizeof *sum}, {square, parts * sizeof *square}};
    TRY(base_take_turn_with(ctx, turn, 2));
    for (size_t i = 0; i < looked_at; i++) {
        const uint64_t of_all = i * n / looked_at, at = of_all - first;
        if (of_all < first || at >= own) continue; // another process's
        TRY(problem_inputs_gather(inputs, ctx, &at, 1, row));
        for (size_t k = 0; k < size; k++) {
            const double x = element(row, inputs->dtype, k);
            if (!isfinite(x)) {
                status =
                    FAIL(ctx, PSI_EDATA, "observation %llu contains a value that is not a number",
                         (unsigned long long)at);
                goto done;
            }
            sum[k / each] += x;
            square[k / each] += x * x;
        }
    }
    TRY(base_end_turn_with(ctx, turn, 2));
    for (size_t p = 0; p < parts; p++) {
        const double count = (double)(looked_at * each), mean = sum[p] / count;
        const double variance = square[p] / count - mean * mean;
        inputs->mean[p] = (float)mean;
        // what varies by less than rounding is constant, in whatever unit it is given
        const bool varies = variance > 1e-12 * mean * mean && variance > 1e-70;
        inputs->scale[p] = varies ? (float)(1.0 / sqrt(variance)) : 0.0f;
    }
done:
    base_free(ctx, row);
    base_free(ctx, square);
    base_free(ctx, sum);
    return status;
}

psi_status problem_inputs_new(psi_ctx *ctx, const psi_observations *observations, bool as_vectors,
                              problem_inputs *out)
{
    psi_status status = PSI_OK;
    *out = (problem_inputs){.observations = observations, .frames = 1};
    const psi_shape *shape = psi_observations_shape(observations);
    const psi_dtype dtype = psi_observations_dtype(observations);
    out->is_image = !as_vectors && find_image(out, shape);
    if (!out->is_image) out->shape = (psi_shape){1, {psi_shape_size(shape)}};
    out->dtype = dtype == PSI_UINT8 ? PSI_UINT8 : PSI_FLOAT32;
    out->row_bytes = psi_shape_size(&out->shape) * psi_dtype_size(out->dtype);
    const size_t parts = out->shape.dim[0];
    TRY(base_alloc_zero(ctx, parts, sizeof *out->mean, &out->mean));
    TRY(base_alloc_zero(ctx, parts, sizeof *out->scale, &out->scale));
    if (out->channels_last || out->dtype != dtype) {
        out->raw_rows = RAW_ROWS;
        TRY(base_alloc(ctx, RAW_ROWS, psi_observations_row_bytes(observations), &out->raw));
    }
done:
    if (status != PSI_OK) problem_inputs_free(ctx, out);
    return status;
}

psi_status problem_inputs_look(psi_ctx *ctx, problem_inputs *inputs)
{
    psi_status status = PSI_OK;
    const uint64_t passed = inputs->passed;
    TRY(standardise(ctx, inputs));
    if (inputs->is_image) TRY(problem_images_look(ctx, inputs));
    inputs->passed = passed; // these were only looked at
done:
    return status;
}

psi_status problem_inputs_match(psi_ctx *ctx, const problem_inputs *inputs,
                                const psi_net_spec *spec)
{
    if (psi_shape_size(&inputs->shape) == psi_shape_size(&spec->input) &&
        inputs->dtype == spec->input_dtype) {
        return PSI_OK;
    }
    return FAIL(ctx, PSI_ESHAPE,
                "the network was made for %s observations of %zu numbers, these are %s of %zu",
                psi_dtype_name(spec->input_dtype), psi_shape_size(&spec->input),
                psi_dtype_name(inputs->dtype), psi_shape_size(&inputs->shape));
}

void problem_inputs_free(psi_ctx *ctx, problem_inputs *inputs)
{
    base_free(ctx, inputs->mean);
    base_free(ctx, inputs->scale);
    base_free(ctx, inputs->coarse_mean);
    base_free(ctx, inputs->raw);
    *inputs = (problem_inputs){0};
}
