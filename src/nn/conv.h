// A convolution: its geometry, which of its weights can ever matter, and how it is computed.
//
// On a small map most taps of a kernel only ever see padding. Those weights are dead: they get no
// gradient, are not multiplied with, and keep their first value. Dense layers are convolutions
// whose kernel is the whole map.
#ifndef PSI_NN_CONV_H
#define PSI_NN_CONV_H

#include "nn/kernels.h"

enum { NN_MAX_TAPS = 49, NN_MAX_TILES = 32, NN_MAX_POINTS = 36 };

typedef struct nn_conv {
    size_t in_channels, out_channels, in_h, in_w, out_h, out_w;
    size_t kernel_h, kernel_w, stride, pad;
    size_t in_blocks, out_blocks;
    bool stem;                // reads packed images (conv_stem.c) instead of maps
    size_t n_taps;            // that see a pixel somewhere
    uint8_t tap[NN_MAX_TAPS]; // ky · kernel_w + kx
    size_t n_weights;         // in our layout, dead ones left out
} nn_conv;

// Fills in what follows from channels, input size, kernel, stride and pad.
void nn_conv_init(nn_conv *conv);

static inline size_t nn_in_pixels(const nn_conv *conv)
{
    return conv->in_h * conv->in_w;
}
static inline size_t nn_out_pixels(const nn_conv *conv)
{
    return conv->out_h * conv->out_w;
}

// Where weights of PyTorch's (C_out, C_in, K, K) lie in ours. Live ones:
//     maps   [live tap][C_out/16][C_in/16][16 in][16 out]
//     stem   [C_out/16][ky][kx · C_in + i][16 out]
// and dead ones, in memory of their own: [dead tap][C_out][C_in].
size_t nn_conv_n_dead(const nn_conv *conv);

// Copies all weights from PyTorch's layout (import) or to it; dead may be NULL on the way out and
// then counts as zeros.
void nn_conv_import(const nn_conv *conv, const real *values, real *weights, real *dead);
void nn_conv_export(const nn_conv *conv, const real *weights, const real *dead, real *values);

// Multiplications of one image that do not fall on padding.
double nn_conv_useful(const nn_conv *conv);

typedef enum nn_algorithm { NN_STEM, NN_DIRECT, NN_REDUCED, NN_HALVED } nn_algorithm;

// One side of a map cut into tiles: fours first, then a three, then a two.
typedef struct nn_tiling {
    size_t n;
    nn_tile_kind kind[NN_MAX_TILES];
    size_t start[NN_MAX_TILES]; // first output
} nn_tiling;

// How a workspace computes a convolution.
typedef struct nn_plan {
    const nn_conv *conv;
    const nn_kernels *kernels;
    nn_algorithm algorithm;
    size_t sub_batch; // rows that are taken through all stages at once, while they are in cache
    int32_t *source;  // direct: (n_taps, out pixels) the pixel a tap sees, or −1
    int32_t *sink;    // direct: (n_taps, in pixels) the output that sees this pixel through a tap

    // reduced
    nn_tiling down, across;
    size_t side;  // points of the weights on a side: 6, or 3, or 5 if halved
    size_t strip; // rows of tiles that are worked on at once
    size_t slots; // rows of V and M for one row of the batch

    real *prepared;    // reduced and halved: U [point][C_out/16][C_in/16][16][16]
    real *transposed;  // W or U with both block and blocks transposed, for the backward pass
    size_t n_prepared; // numbers in U
} nn_plan;

// What a thread has to itself while it computes convolutions.
typedef struct nn_scratch {
    real *v, *m;      // transformed inputs and outputs
    real *zero;       // a plane of zeros
    real *outside;    // a plane for what nobody reads
    real *points;     // gradient of U
    nn_maps d_output; // gradient of the output, for one sub-batch
} nn_scratch;

// Chooses the algorithm and takes memory for tables and prepared weights. rows: of a thread's
// slice.
psi_status nn_plan_init(psi_ctx *ctx, const nn_conv *conv, const nn_kernels *kernels, size_t rows,
                        bool exact, bool backward, nn_plan *plan);
void nn_plan_free(psi_ctx *ctx, nn_plan *plan);

// Numbers that scratch.v (and as many scratch.m) and scratch.points must hold.
size_t nn_plan_scratch(const nn_plan *plan);

// Brings weights into the form the passes want: a thread's share of them; all threads have to be
// done before the first pass.
void nn_plan_prepare(const nn_plan *plan, const real *weights, bool backward, int thread,
                     int threads);

// What is done with y as soon as it is computed: one of the two, or nothing.
typedef struct nn_after_conv {
    nn_sums *sums; // one for each block: += Σ (y − shift), Σ (y − shift)²; or NULL
    const real *shift;
    const real *bias; // y ← f(y + bias + skip), f = ReLU or identity; or NULL
    nn_maps skip;
    bool relu;
} nn_after_conv;

// y = conv(x) for some rows, and what comes after. Stems read x as packed images.
void nn_conv_forward(const nn_plan *plan, const nn_scratch *scratch, const real *weights, nn_maps x,
                     nn_maps y, const nn_after_conv *after, size_t rows);

// The gradient by y: g itself, or through a norm g · a + y · b + c, with numbers for each channel.
typedef struct nn_out_gradient {
    nn_maps g, y;
    const real *a, *b, *c; // NULL: g
} nn_out_gradient;

// d_weights (+)= the rows' gradient; d_x (+)= it, if d_x.data is given. finish must follow the last
// rows: it turns gradients of transformed weights into gradients of weights.
void nn_conv_backward(const nn_plan *plan, const nn_scratch *scratch, nn_maps x,
                      const nn_out_gradient *d_y, nn_maps d_x, bool add_x, real *d_weights,
                      bool add_weights, size_t rows);
void nn_conv_backward_finish(const nn_plan *plan, const nn_scratch *scratch, real *d_weights);

// The chapters behind these.
void nn_direct_forward(const nn_plan *plan, const real *weights, nn_maps x, nn_maps y, size_t rows);
void nn_direct_backward(const nn_plan *plan, nn_maps x, nn_maps d_y, nn_maps d_x, bool add_x,
                        real *d_weights, bool add_weights, size_t rows);
void nn_stem_forward(const nn_plan *plan, const real *weights, nn_maps x, nn_maps y, size_t rows);
void nn_stem_backward(const nn_plan *plan, nn_maps x, nn_maps d_y, real *d_weights,
                      bool add_weights, size_t rows);
bool nn_reduced_plan(nn_plan *plan);
void nn_reduced_forward(const nn_plan *plan, const nn_scratch *scratch, nn_maps x, nn_maps y,
                        const nn_after_conv *after, size_t rows);
void nn_reduced_backward(const nn_plan *plan, const nn_scratch *scratch, nn_maps x,
                         const nn_out_gradient *d_y, nn_maps d_x, bool add_x, bool add_weights,
                         size_t rows);
bool nn_halved_plan(nn_plan *plan);
size_t nn_halved_scratch(const nn_plan *plan);
void nn_halved_forward(const nn_plan *plan, const nn_scratch *scratch, nn_maps x, nn_maps y,
                       const nn_after_conv *after, size_t rows);
void nn_halved_backward(const nn_plan *plan, const nn_scratch *scratch, nn_maps x,
                        const nn_out_gradient *d_y, nn_maps d_x, bool add_x, bool add_weights,
                        size_t rows);

// One block's part of these, on planes that the caller fills in.
nn_tile_after nn_tile_after_of(const nn_after_conv *after, size_t block, const real *const *skip);
nn_tile_gradient nn_tile_gradient_of(const nn_out_gradient *d_y, size_t block, const real *const *g,
                                     const real *const *y);

// Packed images: [y][row][(x + pad) · C + c], rows of this many numbers, zero where x is outside.
size_t nn_stem_row(const nn_conv *conv);

#endif
