#include "problem/images.h"

#include "base/checked.h"
#include "base/context.h"

#include <math.h>
#include <string.h>

enum { LOOKED_AT = 256, OUTLINE = 8, LARGEST_PLANE = sizeof(float) * 128 * 128 };
static const double SEPARATE = 0.15; // correlation below which channels show different things

static float pixel(const unsigned char *image, psi_dtype dtype, size_t i)
{
    return dtype == PSI_UINT8 ? (float)image[i] : ((const float *)(const void *)image)[i];
}

// Σ over images and pixels of x_c · x_d.
static double together(const float *x, size_t n, size_t channels, size_t pixels, size_t c, size_t d)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        const float *u = x + (i * channels + c) * pixels, *v = x + (i * channels + d) * pixels;
        for (size_t p = 0; p < pixels; p++) sum += (double)u[p] * (double)v[p];
    }
    return sum;
}

// Do channels vary together, pixel by pixel? Colours and stacked frames do, pictures of different
// things do not. x (n, channels, pixels) has mean 0 in every pixel.
static bool are_separate(const float *x, size_t n, size_t channels, size_t pixels)
{
    double largest = 0.0;
    for (size_t c = 0; c < channels; c++) {
        const double own = together(x, n, channels, pixels, c, c);
        for (size_t d = c + 1; d < channels; d++) {
            const double other = together(x, n, channels, pixels, d, d);
            const double both = together(x, n, channels, pixels, c, d);
            largest = fmax(largest, fabs(both) / (sqrt(own * other) + 1e-12));
        }
    }
    return channels > 1 && largest < SEPARATE;
}

// The mean outline, and how far outlines are from it.
static void standardise_outlines(problem_inputs *inputs, const float *outlines, size_t n)
{
    double variance = 0.0;
    for (size_t k = 0; k < inputs->n_coarse; k++) {
        double sum = 0.0, square = 0.0;
        for (size_t i = 0; i < n; i++) {
            const double x = (double)outlines[i * inputs->n_coarse + k];
            sum += x;
            square += x * x;
        }
        const double mean = sum / (double)n;
        inputs->coarse_mean[k] = (float)mean;
        variance += fmax(square / (double)n - mean * mean, 0.0) / (double)inputs->n_coarse;
    }
    inputs->coarse_scale = variance > 0.0 ? (float)(1.0 / sqrt(variance)) : 0.0f;
}

psi_status problem_images_look(psi_ctx *ctx, problem_inputs *inputs)
{
    psi_status status = PSI_OK;
    const size_t size = psi_shape_size(&inputs->shape);
    const size_t channels = inputs->shape.dim[0], h = inputs->shape.dim[1];
    const size_t w = inputs->shape.dim[2], side = (base_max(h, w) + OUTLINE - 1) / OUTLINE;
    unsigned char *images = NULL;
    float *x = NULL, *outlines = NULL;
    size_t n;
    inputs->coarse_side = side;
    inputs->coarse_scale = 1.0f;
    inputs->n_coarse = channels * ((h + side - 1) / side) * ((w + side - 1) / side);
    TRY(base_alloc_zero(ctx, inputs->n_coarse, sizeof(float), &inputs->coarse_mean));
    TRY(problem_inputs_some(ctx, inputs, LOOKED_AT, &images, &n));
    TRY(base_alloc(ctx, n, size * sizeof *x, &x));
    TRY(base_alloc(ctx, n, inputs->n_coarse * sizeof *outlines, &outlines));
    for (size_t i = 0; i < n; i++) {
        const unsigned char *image = images + i * inputs->row_bytes;
        for (size_t k = 0; k < size; k++) x[i * size + k] = pixel(image, inputs->dtype, k);
    }
    for (size_t k = 0; k < size; k++) {
        float mean = 0.0f;
        for (size_t i = 0; i < n; i++) mean += x[i * size + k] / (float)n;
        for (size_t i = 0; i < n; i++) x[i * size + k] -= mean;
    }
    inputs->separate_channels = are_separate(x, n, channels, h * w);
    problem_images_outline(inputs, n, images, outlines);
    standardise_outlines(inputs, outlines, n);
done:
    base_free(ctx, outlines);
    base_free(ctx, x);
    base_free(ctx, images);
    return status;
}

void problem_images_outline(const problem_inputs *inputs, size_t n, const void *images, float *out)
{
    const size_t channels = inputs->shape.dim[0], h = inputs->shape.dim[1];
    const size_t w = inputs->shape.dim[2], side = inputs->coarse_side;
    const size_t columns = (w + side - 1) / side, cells = inputs->n_coarse / channels;
    const unsigned char *plane = images;
    for (size_t i = 0; i < n * channels; i++) {
        const float *mean = inputs->coarse_mean + i % channels * cells;
        float *cell = out + i * cells;
        memset(cell, 0, cells * sizeof *cell);
        for (size_t y = 0; y < h; y++) {
            for (size_t x = 0, column = 0; x < w; column++) {
                const size_t end = base_min(x + side, w);
                float sum = 0.0f;
                for (; x < end; x++) sum += pixel(plane, inputs->dtype, y * w + x);
                cell[y / side * columns + column] += sum;
            }
        }
        for (size_t k = 0; k < cells; k++) cell[k] = (cell[k] - mean[k]) * inputs->coarse_scale;
        plane += h * w * psi_dtype_size(inputs->dtype);
    }
}

// One plane (h, w) of elements of `width` bytes, moved by (dy, dx).
static void move_plane(const unsigned char *from, unsigned char *to, size_t h, size_t w,
                       size_t width, ptrdiff_t dy, ptrdiff_t dx)
{
    const ptrdiff_t last_y = (ptrdiff_t)h - 1;
    const size_t away = base_min((size_t)(dx < 0 ? -dx : dx), w), stays = w - away;
    for (ptrdiff_t y = 0; y <= last_y; y++) {
        const ptrdiff_t sy = y + dy < 0 ? 0 : y + dy > last_y ? last_y : y + dy;
        const unsigned char *row = from + (size_t)sy * w * width;
        const unsigned char *edge = dx > 0 ? row + (w - 1) * width : row;
        unsigned char *out = to + (size_t)y * w * width;
        unsigned char *beyond = dx > 0 ? out + stays * width : out;
        memcpy(dx > 0 ? out : out + away * width, dx > 0 ? row + away * width : row, stays * width);
        for (size_t i = 0; i < away; i++) memcpy(beyond + i * width, edge, width);
    }
}

void problem_images_shift(const problem_inputs *inputs, base_random *random, size_t most, size_t n,
                          void *images)
{
    unsigned char before[LARGEST_PLANE];
    if (!inputs->is_image || inputs->shape.rank != 3 || most == 0) return;
    const size_t channels = inputs->shape.dim[0], h = inputs->shape.dim[1];
    const size_t w = inputs->shape.dim[2], width = psi_dtype_size(inputs->dtype);
    const size_t bytes = h * w * width;
    if (bytes > sizeof before) return; // no network takes such images
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
