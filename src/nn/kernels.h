// The inner loops, compiled once for every kind of processor and chosen when a workspace is made.
// Everything is void and trusts its arguments: shapes were checked at the door.
#ifndef PSI_NN_KERNELS_H
#define PSI_NN_KERNELS_H

#include "nn/real.h"

// One-dimensional short convolutions that trade multiplications for additions (nn/reduced.h says
// where they come from). F(m,3) makes m outputs from m + 2 inputs with m + 2 multiplications; PAIR
// is a whole map of two, zero outside, with three.
typedef enum nn_tile_kind {
    NN_TILE_4,
    NN_TILE_3,
    NN_TILE_2,
    NN_TILE_PAIR,
    NN_TILE_KINDS
} nn_tile_kind;

// dst = L · src · Rᵀ for small constant matrices L and R, on grids of pointers to n numbers each
// (a multiple of 16); with add, dst += …
typedef void nn_transform(const real *const *src, real *const *dst, size_t n, bool add);

// Sums over rows and pixels that batch norm needs, per channel of one block.
typedef struct nn_sums {
    double first[NN_BLOCK], second[NN_BLOCK];
} nn_sums;

// What is done with the outputs of a block while they are in registers:
//     y ← f(y + bias + skip), f = ReLU or identity
typedef struct nn_tile_after {
    const real *bias;        // NULL: nothing
    const real *const *skip; // planes, as of y, or NULL
    bool relu;
} nn_tile_after;

// The gradient by the outputs of a block: g · a + y · b + c, or g alone where y is NULL.
typedef struct nn_tile_gradient {
    const real *const *g, *const *y; // planes
    const real *a, *b, *c;           // a number for each channel
} nn_tile_gradient;

typedef void nn_output_transform(const real *const *src, real *const *dst, size_t n,
                                 const nn_tile_after *after);
typedef void nn_gradient_transform(const nn_tile_gradient *src, real *const *dst, size_t n);

// The four maps between a tile's pixels and its products, named after the usual Y = Aᵀ[U ∘ BᵀXB]A.
typedef struct nn_tile_transforms {
    nn_transform *input;                    // X → V:   Bᵀ X B
    nn_transform *input_backward;           // dV → dX: B dV Bᵀ
    nn_output_transform *output;            // M → Y:   Aᵀ M A
    nn_gradient_transform *output_backward; // dY → dM: A dY Aᵀ
} nn_tile_transforms;

typedef struct nn_pool_window { // what one output of a pooling looks at
    size_t n;
    const real *plane[9];
    uint8_t tap[9];
} nn_pool_window;

typedef struct nn_pool_sources { // the outputs that looked at one pixel
    size_t n;
    const real *gradient[4];
    const uint8_t *chosen[4];
    uint8_t tap[4];
} nn_pool_sources;

typedef struct nn_adam_step {
    real beta1, beta2; // decay of the moments
    real step, root;   // learning rate / (1 − β1^t), 1 / √(1 − β2^t)
    real epsilon;
} nn_adam_step;

typedef struct nn_kernels {
    const char *name;
    size_t wide;  // blocks of outputs that one product does best
    size_t depth; // pairs of operands that stay in the first cache with that

    // C_b (+)= Σ_l A_l · B_l,b for every block b < blocks: A is (rows, depth) with row distance
    // a_row, B (depth, 16), C (rows, 16); B and C of block b start b·b_step and b·c_step further
    // on.
    void (*multiply)(const real *const *a, const real *const *b, size_t pairs, size_t rows,
                     size_t b_step, real *c, size_t c_step, size_t blocks, bool add);
    void (*multiply_rows)(const real *const *a, const real *const *b, size_t pairs, size_t rows,
                          size_t a_row, size_t depth, size_t b_step, real *c, size_t c_step,
                          size_t blocks, bool add);

    // C_b (+)= Σ_l A_lᵀ · B_l,b: A is (rows, depth), B (rows, 16), C (depth, 16).
    void (*multiply_transposed)(const real *const *a, const real *const *b, size_t pairs,
                                size_t rows, size_t a_row, size_t depth, size_t b_step, real *c,
                                size_t c_step, size_t blocks, bool add);

    void (*transpose)(const real *src, real *dst); // one 16×16 block

    nn_tile_transforms tile[NN_TILE_KINDS][NN_TILE_KINDS]; // [down][across]
    nn_transform *weights, *weights_backward;              // 3×3 ↔ 6×6 points
    nn_transform *pair_weights, *pair_weights_backward;    // 3×3 ↔ 3×3 points

    // the same for a stride of 2 from 7×7 to 4×4 (conv_halved.c): four phases of pixels
    nn_transform *half_input[4], *half_input_backward[4];
    nn_output_transform *half_output;
    nn_gradient_transform *half_output_backward;
    nn_transform *half_weights, *half_weights_backward; // 3×3 ↔ 5×5

    // All below work on `pixels` planes of one block, `rows` rows each.

    // sums += Σ (y − shift), Σ (y − shift)²
    void (*moments)(const real *y, size_t plane, size_t pixels, size_t rows, const real *shift,
                    nn_sums *sums);
    // y ← f(y + bias + skip), f = ReLU or identity; skip may be NULL
    void (*add_bias)(real *y, const real *bias, const real *skip, size_t plane, size_t pixels,
                     size_t rows, bool relu);
    // out = f(y · scale + bias + skip · skip_scale), f = ReLU or identity; skip may be NULL
    void (*activate)(const real *y, const real *scale, const real *bias, const real *skip,
                     const real *skip_scale, size_t plane, size_t pixels, size_t rows, bool relu,
                     real *out);
    // g = active > 0 ? g : 0 where active is given; sums += Σ g, Σ g · (y − mean) where y is
    void (*gradient_sums)(real *g, const real *active, const real *y, const real *mean,
                          size_t plane, size_t pixels, size_t rows, nn_sums *sums);
    // out = g · a + y · b + c
    void (*norm_backward)(const real *g, const real *y, size_t plane, const real *a, const real *b,
                          const real *c, size_t pixels, size_t rows, real *out, size_t out_plane);
    // out = max(0, max over the window of y · scale + bias); where wanted, also that y and which
    // tap it was
    void (*pool)(const nn_pool_window *window, const real *scale, const real *bias, size_t rows,
                 real *out, real *chosen_y, uint8_t *chosen);
    // out = g · a + y · b + c with g the gradients of those outputs that chose this pixel
    void (*pool_backward)(const nn_pool_sources *sources, const real *y, const real *a,
                          const real *b, const real *c, size_t rows, real *out);
    void (*average)(const real *x, size_t plane, size_t pixels, size_t rows, real *out);
    void (*average_backward)(const real *g, size_t plane, size_t pixels, size_t rows, real *out);

    // z ← e^(z − largest) of n numbers, with room up to a multiple of 16, and their sum
    void (*exponentials)(real *z, size_t n, double *largest, double *sum);
    // to += from; of n numbers, a multiple of 16, as below
    void (*add)(const real *from, size_t n, real *to);
    // One Adam update.
    void (*adam)(const nn_adam_step *step, const real *gradient, size_t n, real *m, real *v,
                 real *parameters);
} nn_kernels;

extern const nn_kernels nn_kernels_portable;
#if defined(__x86_64__) && !defined(PSI_NN_DOUBLE)
extern const nn_kernels nn_kernels_avx2, nn_kernels_avx512;
#endif

// The best kernels of this machine, or those of that name. PSI_EUNSUPPORTED if it has none such.
psi_status nn_kernels_choose(psi_ctx *ctx, const char *name, const nn_kernels **out);

#endif
