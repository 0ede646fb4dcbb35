// The first convolution reads images of a few channels. They are packed so that the pixels under
// one row of the kernel, all channels of them, lie side by side: a row of the kernel is then one
// product of depth kernel_w · C, and padding to the left and right is part of the image.
#include "nn/conv.h"

#include "base/checked.h"

enum { ROWS_IN_CACHE = 64 };

size_t nn_stem_row(const nn_conv *conv)
{
    return base_round_up((conv->in_w + 2 * conv->pad) * conv->in_channels, NN_BLOCK);
}

// The image's row under row ky of the kernel at output row oy; false if that is padding.
static bool image_row(const nn_conv *conv, size_t oy, size_t ky, size_t *y)
{
    *y = oy * conv->stride + ky - conv->pad;
    return oy * conv->stride + ky >= conv->pad && *y < conv->in_h;
}

void nn_stem_forward(const nn_plan *plan, const real *weights, nn_maps x, nn_maps y, size_t rows)
{
    const nn_conv *conv = plan->conv;
    const size_t pixels = nn_out_pixels(conv), depth = conv->kernel_w * conv->in_channels;
    for (size_t q = 0; q < pixels; q++) {
        const real *a[NN_MAX_TAPS], *b[NN_MAX_TAPS];
        size_t n = 0, row;
        for (size_t ky = 0; ky < conv->kernel_h; ky++) {
            if (!image_row(conv, q / conv->out_w, ky, &row)) continue;
            a[n] = x.data + row * x.plane + q % conv->out_w * conv->stride * conv->in_channels;
            b[n++] = weights + ky * depth * NN_BLOCK;
        }
        plan->kernels->multiply_rows(a, b, n, rows, nn_stem_row(conv), depth,
                                     conv->kernel_h * depth * NN_BLOCK, nn_at(y, pixels, 0, q),
                                     pixels * y.plane, conv->out_blocks, false);
    }
}

void nn_stem_backward(const nn_plan *plan, nn_maps x, nn_maps d_y, real *d_weights,
                      bool add_weights, size_t rows)
{
    const nn_conv *conv = plan->conv;
    const nn_kernels *kernels = plan->kernels;
    const size_t pixels = nn_out_pixels(conv), depth = conv->kernel_w * conv->in_channels;
    const size_t group = base_min(base_max(ROWS_IN_CACHE / rows, 1), NN_BLOCK);
    for (size_t o = 0; o < conv->out_blocks; o += kernels->wide) {
        const size_t blocks = base_min(kernels->wide, conv->out_blocks - o);
        bool started[NN_MAX_TAPS] = {false};
        for (size_t oy = 0; oy < conv->out_h; oy++) {
            for (size_t first = 0; first < conv->out_w; first += group) {
                const size_t n = base_min(group, conv->out_w - first);
                for (size_t ky = 0; ky < conv->kernel_h; ky++) {
                    const real *a[NN_BLOCK], *b[NN_BLOCK];
                    size_t row;
                    if (!image_row(conv, oy, ky, &row)) continue;
                    for (size_t k = 0; k < n; k++) {
                        const size_t ox = first + k;
                        a[k] = x.data + row * x.plane + ox * conv->stride * conv->in_channels;
                        b[k] = nn_at(d_y, pixels, o, oy * conv->out_w + ox);
                    }
                    kernels->multiply_transposed(
                        a, b, n, rows, nn_stem_row(conv), depth, pixels * d_y.plane,
                        d_weights + (o * conv->kernel_h + ky) * depth * NN_BLOCK,
                        conv->kernel_h * depth * NN_BLOCK, blocks, add_weights || started[ky]);
                    started[ky] = true;
                }
            }
        }
    }
}
