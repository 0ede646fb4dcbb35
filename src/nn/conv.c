// Geometry and planning of convolutions, and the way to the three algorithms.
#include "nn/conv.h"

#include "nn/memory.h"

#include "base/checked.h"
#include "base/context.h"
#include "base/threads.h"

// The pixel that output q sees through a tap, or −1 where that is padding.
static int32_t seen_pixel(const nn_conv *conv, size_t tap, size_t q)
{
    const size_t y = q / conv->out_w * conv->stride + tap / conv->kernel_w;
    const size_t x = q % conv->out_w * conv->stride + tap % conv->kernel_w;
    if (y < conv->pad || x < conv->pad) return -1;
    if (y - conv->pad >= conv->in_h || x - conv->pad >= conv->in_w) return -1;
    return (int32_t)((y - conv->pad) * conv->in_w + x - conv->pad);
}

void nn_conv_init(nn_conv *conv)
{
    conv->out_h = (conv->in_h + 2 * conv->pad - conv->kernel_h) / conv->stride + 1;
    conv->out_w = (conv->in_w + 2 * conv->pad - conv->kernel_w) / conv->stride + 1;
    conv->in_blocks = nn_blocks(conv->in_channels);
    conv->out_blocks = nn_blocks(conv->out_channels);
    conv->n_taps = 0;
    for (size_t tap = 0; tap < conv->kernel_h * conv->kernel_w; tap++) {
        bool live = conv->stem; // padding is part of a packed image: its weights stay
        for (size_t q = 0; q < nn_out_pixels(conv) && !live; q++)
            live = seen_pixel(conv, tap, q) >= 0;
        if (live) conv->tap[conv->n_taps++] = (uint8_t)tap;
    }
    conv->n_weights = conv->stem ? conv->out_blocks * conv->n_taps * conv->in_channels * NN_BLOCK
                                 : conv->n_taps * conv->out_blocks * conv->in_blocks * NN_SQUARE;
}

size_t nn_conv_n_dead(const nn_conv *conv)
{
    const size_t dead_taps = conv->kernel_h * conv->kernel_w - conv->n_taps;
    return dead_taps * conv->out_channels * conv->in_channels;
}

// The weights of one tap, in either world: place(o, i) = base + …
typedef struct tap_place {
    bool live;
    size_t index; // among the live or the dead taps
} tap_place;

static tap_place place_of(const nn_conv *conv, size_t tap)
{
    size_t live = 0;
    while (live < conv->n_taps && conv->tap[live] < tap) live++;
    const bool is_live = live < conv->n_taps && conv->tap[live] == tap;
    return (tap_place){is_live, is_live ? live : tap - live};
}

static size_t index_of(const nn_conv *conv, tap_place place, size_t o, size_t i)
{
    if (!place.live) return (place.index * conv->out_channels + o) * conv->in_channels + i;
    const size_t block = o / NN_BLOCK, lane = o % NN_BLOCK;
    if (conv->stem) {
        return ((block * conv->n_taps + place.index) * conv->in_channels + i) * NN_BLOCK + lane;
    }
    const size_t square = (place.index * conv->out_blocks + block) * conv->in_blocks + i / NN_BLOCK;
    return square * NN_SQUARE + i % NN_BLOCK * NN_BLOCK + lane;
}

void nn_conv_import(const nn_conv *conv, const real *values, real *weights, real *dead)
{
    const size_t taps = conv->kernel_h * conv->kernel_w;
    for (size_t tap = 0; tap < taps; tap++) {
        const tap_place place = place_of(conv, tap);
        real *to = place.live ? weights : dead;
        for (size_t o = 0; o < conv->out_channels; o++) {
            for (size_t i = 0; i < conv->in_channels; i++) {
                to[index_of(conv, place, o, i)] = values[(o * conv->in_channels + i) * taps + tap];
            }
        }
    }
}

void nn_conv_export(const nn_conv *conv, const real *weights, const real *dead, real *values)
{
    const size_t taps = conv->kernel_h * conv->kernel_w;
    for (size_t tap = 0; tap < taps; tap++) {
        const tap_place place = place_of(conv, tap);
        const real *from = place.live ? weights : dead;
        for (size_t o = 0; o < conv->out_channels; o++) {
            for (size_t i = 0; i < conv->in_channels; i++) {
                values[(o * conv->in_channels + i) * taps + tap] =
                    from ? from[index_of(conv, place, o, i)] : 0;
            }
        }
    }
}

double nn_conv_useful(const nn_conv *conv)
{
    double seen = 0;
    for (size_t t = 0; t < conv->kernel_h * conv->kernel_w; t++) {
        for (size_t q = 0; q < nn_out_pixels(conv); q++) seen += seen_pixel(conv, t, q) >= 0;
    }
    return seen * (double)conv->in_channels * (double)conv->out_channels;
}

static psi_status make_tables(psi_ctx *ctx, nn_plan *plan)
{
    const nn_conv *conv = plan->conv;
    const size_t in = nn_in_pixels(conv), out = nn_out_pixels(conv);
    psi_status status = PSI_OK;
    TRY(base_alloc(ctx, conv->n_taps * out, sizeof *plan->source, &plan->source));
    TRY(base_alloc(ctx, conv->n_taps * in, sizeof *plan->sink, &plan->sink));
    for (size_t i = 0; i < conv->n_taps * in; i++) plan->sink[i] = -1;
    for (size_t t = 0; t < conv->n_taps; t++) {
        for (size_t q = 0; q < out; q++) {
            const int32_t p = seen_pixel(conv, conv->tap[t], q);
            plan->source[t * out + q] = p;
            if (p >= 0) plan->sink[t * in + (size_t)p] = (int32_t)q;
        }
    }
done:
    return status;
}

// As many rows as the second cache holds, so that weights are fetched seldom.
static size_t direct_rows(const nn_conv *conv)
{
    enum { MAPS_BYTES = 1 << 20, FEWEST = 16, MOST = 256 };
    const size_t planes =
        conv->in_blocks * nn_in_pixels(conv) + conv->out_blocks * nn_out_pixels(conv);
    const size_t rows = MAPS_BYTES / (planes * NN_BLOCK * sizeof(real));
    return base_min(base_max(rows, FEWEST), MOST);
}

psi_status nn_plan_init(psi_ctx *ctx, const nn_conv *conv, const nn_kernels *kernels, size_t rows,
                        bool exact, bool backward, nn_plan *plan)
{
    *plan = (nn_plan){.conv = conv, .kernels = kernels};
    psi_status status = PSI_OK;
    plan->algorithm = conv->stem ? NN_STEM : NN_DIRECT;
    plan->sub_batch = conv->stem ? 64 : direct_rows(conv);
    if (!exact && nn_reduced_plan(plan)) plan->algorithm = NN_REDUCED;
    if (!exact && nn_halved_plan(plan)) plan->algorithm = NN_HALVED;
    // as even as can be: 130 rows are 44 + 43 + 43, not 64 + 64 + 2
    rows = base_max(rows, 1);
    const size_t parts = (rows + plan->sub_batch - 1) / plan->sub_batch;
    plan->sub_batch = (rows + parts - 1) / parts;
    if (plan->algorithm == NN_DIRECT) {
        TRY(make_tables(ctx, plan));
        if (backward) TRY(nn_alloc_large(ctx, conv->n_weights, sizeof(real), &plan->transposed));
    } else if (plan->algorithm != NN_STEM) {
        TRY(nn_alloc_large(ctx, plan->n_prepared, sizeof(real), &plan->prepared));
        if (backward) TRY(nn_alloc_large(ctx, plan->n_prepared, sizeof(real), &plan->transposed));
    }
done:
    if (status != PSI_OK) nn_plan_free(ctx, plan);
    return status;
}

void nn_plan_free(psi_ctx *ctx, nn_plan *plan)
{
    base_free(ctx, plan->source);
    base_free(ctx, plan->sink);
    base_free(ctx, plan->prepared);
    base_free(ctx, plan->transposed);
    *plan = (nn_plan){0};
}

size_t nn_plan_scratch(const nn_plan *plan)
{
    if (plan->algorithm == NN_HALVED) return nn_halved_scratch(plan);
    if (plan->algorithm != NN_REDUCED) return 0;
    const nn_conv *conv = plan->conv;
    const size_t blocks = base_max(conv->in_blocks, conv->out_blocks);
    const size_t point = blocks * nn_plane(plan->slots * plan->sub_batch) + NN_BLOCK;
    return plan->side * plan->side * point;
}

// [set][C_out/16][C_in/16] → [set][C_in/16][C_out/16], every block transposed
static void transpose_squares(const nn_plan *plan, const real *from, size_t sets, size_t first,
                              size_t end)
{
    const size_t out = plan->conv->out_blocks, in = plan->conv->in_blocks;
    for (size_t set = 0; set < sets; set++) {
        for (size_t square = first; square < end; square++) {
            const size_t o = square / in, i = square % in;
            plan->kernels->transpose(from + (set * out * in + square) * NN_SQUARE,
                                     plan->transposed + ((set * in + i) * out + o) * NN_SQUARE);
        }
    }
}

// U of the squares first … end
static void prepare_points(const nn_plan *plan, const real *weights, size_t first, size_t end)
{
    const nn_kernels *kernels = plan->kernels;
    const size_t set = plan->conv->out_blocks * plan->conv->in_blocks * NN_SQUARE;
    const size_t n_points = plan->side * plan->side;
    const real *src[9];
    real *dst[NN_MAX_POINTS];
    for (size_t t = 0; t < 9; t++) src[t] = weights + t * set + first * NN_SQUARE;
    for (size_t p = 0; p < n_points; p++) dst[p] = plan->prepared + p * set + first * NN_SQUARE;
    nn_transform *transform = plan->side == 3   ? kernels->pair_weights
                              : plan->side == 5 ? kernels->half_weights
                                                : kernels->weights;
    transform(src, dst, (end - first) * NN_SQUARE, false);
}

void nn_plan_prepare(const nn_plan *plan, const real *weights, bool backward, int thread,
                     int threads)
{
    if (plan->algorithm == NN_STEM) return;
    size_t first, end;
    base_slice(plan->conv->out_blocks * plan->conv->in_blocks, thread, threads, &first, &end);
    if (plan->prepared) {
        prepare_points(plan, weights, first, end);
        if (backward) {
            transpose_squares(plan, plan->prepared, plan->side * plan->side, first, end);
        }
    } else if (backward) {
        transpose_squares(plan, weights, plan->conv->n_taps, first, end);
    }
}

nn_tile_after nn_tile_after_of(const nn_after_conv *after, size_t block, const real *const *skip)
{
    const size_t c = block * NN_BLOCK;
    nn_tile_after tile = {.relu = after->relu, .skip = after->skip.data ? skip : NULL};
    if (after->bias) tile.bias = after->bias + c;
    return tile;
}

nn_tile_gradient nn_tile_gradient_of(const nn_out_gradient *d_y, size_t block, const real *const *g,
                                     const real *const *y)
{
    const size_t c = block * NN_BLOCK;
    if (!d_y->a) return (nn_tile_gradient){.g = g};
    return (nn_tile_gradient){g, y, d_y->a + c, d_y->b + c, d_y->c + c};
}

// What comes after, on maps that are in cache.
static void add_moments(const nn_plan *plan, nn_maps y, const nn_after_conv *after, size_t rows)
{
    const size_t pixels = nn_out_pixels(plan->conv);
    for (size_t block = 0; block < plan->conv->out_blocks; block++) {
        plan->kernels->moments(nn_at(y, pixels, block, 0), y.plane, pixels, rows,
                               after->shift + block * NN_BLOCK, &after->sums[block]);
    }
}

static void add_bias(const nn_plan *plan, nn_maps y, const nn_after_conv *after, size_t rows)
{
    const size_t pixels = nn_out_pixels(plan->conv);
    for (size_t block = 0; block < plan->conv->out_blocks; block++) {
        const real *skip = after->skip.data ? nn_at(after->skip, pixels, block, 0) : NULL;
        plan->kernels->add_bias(nn_at(y, pixels, block, 0), after->bias + block * NN_BLOCK, skip,
                                y.plane, pixels, rows, after->relu);
    }
}

void nn_conv_forward(const nn_plan *plan, const nn_scratch *scratch, const real *weights, nn_maps x,
                     nn_maps y, const nn_after_conv *after, size_t rows)
{
    const bool fused = plan->algorithm == NN_REDUCED || plan->algorithm == NN_HALVED;
    switch (plan->algorithm) {
    case NN_STEM: nn_stem_forward(plan, weights, x, y, rows); break;
    case NN_DIRECT: nn_direct_forward(plan, weights, x, y, rows); break;
    case NN_REDUCED: nn_reduced_forward(plan, scratch, x, y, after, rows); break;
    case NN_HALVED: nn_halved_forward(plan, scratch, x, y, after, rows); break;
    }
    if (after->sums) add_moments(plan, y, after, rows);
    if (after->bias && !fused) add_bias(plan, y, after, rows);
}

// The gradient as maps of their own, unless it is that already.
static nn_maps through_norm(const nn_plan *plan, const nn_scratch *scratch,
                            const nn_out_gradient *d_y, size_t rows)
{
    const size_t pixels = nn_out_pixels(plan->conv);
    if (!d_y->a) return d_y->g;
    const nn_maps out = {scratch->d_output.data, nn_plane(rows)};
    for (size_t block = 0; block < plan->conv->out_blocks; block++) {
        const size_t c = block * NN_BLOCK;
        plan->kernels->norm_backward(nn_at(d_y->g, pixels, block, 0),
                                     nn_at(d_y->y, pixels, block, 0), d_y->y.plane, d_y->a + c,
                                     d_y->b + c, d_y->c + c, pixels, rows,
                                     nn_at(out, pixels, block, 0), out.plane);
    }
    return out;
}

void nn_conv_backward(const nn_plan *plan, const nn_scratch *scratch, nn_maps x,
                      const nn_out_gradient *d_y, nn_maps d_x, bool add_x, real *d_weights,
                      bool add_weights, size_t rows)
{
    switch (plan->algorithm) {
    case NN_STEM:
        nn_stem_backward(plan, x, through_norm(plan, scratch, d_y, rows), d_weights, add_weights,
                         rows);
        break;
    case NN_DIRECT:
        nn_direct_backward(plan, x, through_norm(plan, scratch, d_y, rows), d_x, add_x, d_weights,
                           add_weights, rows);
        break;
    case NN_REDUCED:
        nn_reduced_backward(plan, scratch, x, d_y, d_x, add_x, add_weights, rows);
        break;
    case NN_HALVED: nn_halved_backward(plan, scratch, x, d_y, d_x, add_x, add_weights, rows); break;
    }
}

void nn_conv_backward_finish(const nn_plan *plan, const nn_scratch *scratch, real *d_weights)
{
    if (!plan->prepared) return;
    const nn_kernels *kernels = plan->kernels;
    const size_t set = plan->conv->out_blocks * plan->conv->in_blocks * NN_SQUARE;
    const size_t n_points = plan->side * plan->side;
    const real *src[NN_MAX_POINTS];
    real *dst[9];
    for (size_t p = 0; p < n_points; p++) src[p] = scratch->points + p * set;
    for (size_t t = 0; t < 9; t++) dst[t] = d_weights + t * set;
    nn_transform *transform = plan->side == 3   ? kernels->pair_weights_backward
                              : plan->side == 5 ? kernels->half_weights_backward
                                                : kernels->weights_backward;
    transform(src, dst, set, false);
}
