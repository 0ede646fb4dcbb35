// Convolution as it is defined, tap by tap: every live tap is a product of a plane of rows with
// blocks of weights. The rounding is that of any framework.
#include "nn/conv.h"

#include "base/checked.h"

#include <string.h>

enum {
    MOST_PAIRS = 16,    // not below any kernels' depth
    ROWS_IN_CACHE = 64, // of operands of a transposed product
    MOST_PIXELS = 16,
};

// y = Σ over taps of x(seen pixel) · weights(tap). table[t][pixel of y] is the pixel of x. Forward
// and backward differ in the table and the weights only. Weights stay in the first cache while all
// pixels that use them pass by.
static void gather(const nn_kernels *kernels, const int32_t *table, size_t n_taps, size_t y_pixels,
                   size_t x_pixels, size_t y_blocks, size_t x_blocks, const real *weights,
                   nn_maps x, nn_maps y, bool add, size_t rows)
{
    const size_t set = y_blocks * x_blocks * NN_SQUARE, pairs = n_taps * x_blocks;
    for (size_t o = 0; o < y_blocks; o += kernels->wide) {
        const size_t blocks = base_min(kernels->wide, y_blocks - o);
        for (size_t first = 0; first < pairs; first += kernels->depth) {
            const size_t end = base_min(first + kernels->depth, pairs);
            for (size_t q = 0; q < y_pixels; q++) {
                const real *a[MOST_PAIRS], *b[MOST_PAIRS];
                size_t n = 0;
                for (size_t pair = first; pair < end; pair++) {
                    const size_t t = pair / x_blocks, i = pair % x_blocks;
                    const int32_t p = table[t * y_pixels + q];
                    if (p < 0) continue;
                    a[n] = nn_at(x, x_pixels, i, (size_t)p);
                    b[n++] = weights + t * set + (o * x_blocks + i) * NN_SQUARE;
                }
                if (n == 0) continue;
                bool started = add; // by the caller, or by an earlier tap
                for (size_t pair = 0; pair < first && !started; pair += x_blocks) {
                    started = table[pair / x_blocks * y_pixels + q] >= 0;
                }
                kernels->multiply(a, b, n, rows, x_blocks * NN_SQUARE, nn_at(y, y_pixels, o, q),
                                  y_pixels * y.plane, blocks, started);
            }
        }
    }
}

// Pixels that no output looks at (a stride of 2 with a 1×1 kernel has such) get no gradient.
static void clear_unseen(const nn_plan *plan, nn_maps d_x, size_t rows)
{
    const nn_conv *conv = plan->conv;
    const size_t pixels = nn_in_pixels(conv);
    for (size_t p = 0; p < pixels; p++) {
        bool seen = false;
        for (size_t t = 0; t < conv->n_taps && !seen; t++) seen = plan->sink[t * pixels + p] >= 0;
        if (seen) continue;
        for (size_t i = 0; i < conv->in_blocks; i++) {
            memset(nn_at(d_x, pixels, i, p), 0, rows * NN_BLOCK * sizeof(real));
        }
    }
}

// d_weights(tap) (+)= Σ over pixels of x(seen pixel)ᵀ · d_y. A few pixels' d_y stay in the first
// cache while all taps and input channels use them.
static void weight_gradient(const nn_plan *plan, nn_maps x, nn_maps d_y, real *d_weights, bool add,
                            size_t rows)
{
    const nn_conv *conv = plan->conv;
    const nn_kernels *kernels = plan->kernels;
    const size_t pixels = nn_out_pixels(conv), in_pixels = nn_in_pixels(conv);
    const size_t in = conv->in_blocks, set = conv->out_blocks * in * NN_SQUARE;
    const size_t part = base_min(rows, ROWS_IN_CACHE);
    const size_t group = base_min(base_max(ROWS_IN_CACHE / part, 1), MOST_PIXELS);
    for (size_t o = 0; o < conv->out_blocks; o += kernels->wide) {
        const size_t blocks = base_min(kernels->wide, conv->out_blocks - o);
        bool started[NN_MAX_TAPS] = {false};
        for (size_t first = 0; first < pixels; first += group) {
            for (size_t row = 0; row < rows; row += part) {
                const size_t n_rows = base_min(part, rows - row);
                for (size_t t = 0; t < conv->n_taps; t++) {
                    const real *a[MOST_PIXELS], *b[MOST_PIXELS];
                    size_t seen[MOST_PIXELS], n = 0;
                    for (size_t q = first; q < base_min(first + group, pixels); q++) {
                        const int32_t p = plan->source[t * pixels + q];
                        if (p < 0) continue;
                        b[n] = nn_at(d_y, pixels, o, q) + row * NN_BLOCK;
                        seen[n++] = (size_t)p;
                    }
                    if (n == 0) continue;
                    for (size_t i = 0; i < in; i++) {
                        for (size_t k = 0; k < n; k++) {
                            a[k] = nn_at(x, in_pixels, i, seen[k]) + row * NN_BLOCK;
                        }
                        kernels->multiply_transposed(a, b, n, n_rows, NN_BLOCK, NN_BLOCK,
                                                     pixels * d_y.plane,
                                                     d_weights + t * set + (o * in + i) * NN_SQUARE,
                                                     in * NN_SQUARE, blocks, add || started[t]);
                    }
                    started[t] = true;
                }
            }
        }
    }
}

void nn_direct_forward(const nn_plan *plan, const real *weights, nn_maps x, nn_maps y, size_t rows)
{
    const nn_conv *conv = plan->conv;
    gather(plan->kernels, plan->source, conv->n_taps, nn_out_pixels(conv), nn_in_pixels(conv),
           conv->out_blocks, conv->in_blocks, weights, x, y, false, rows);
}

void nn_direct_backward(const nn_plan *plan, nn_maps x, nn_maps d_y, nn_maps d_x, bool add_x,
                        real *d_weights, bool add_weights, size_t rows)
{
    const nn_conv *conv = plan->conv;
    weight_gradient(plan, x, d_y, d_weights, add_weights, rows);
    if (!d_x.data) return;
    if (!add_x) clear_unseen(plan, d_x, rows);
    gather(plan->kernels, plan->sink, conv->n_taps, nn_in_pixels(conv), nn_out_pixels(conv),
           conv->in_blocks, conv->out_blocks, plan->transposed, d_y, d_x, add_x, rows);
}
