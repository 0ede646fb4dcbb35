// 3×3 convolutions of stride 2 from 7×7 to 4×4 pixels, resnet18's first halving of a 28×28 image,
// with 64 multiplications for 100. Along one side the outputs are
//     y0 = w1 x0 + w2 x1,  y1 = w0 x1 + w1 x2 + w2 x3,  y2 = w0 x3 + w1 x4 + w2 x5,
//     y3 = w0 x5 + w1 x6:
// as polynomials, y(t) = w1 (x0 + x2 t + x4 t² + x6 t³) + (w2 + w0 t)(x1 + x3 t + x5 t²). Its
// values at 0, 1, −1 and ∞ give y, with one product for the even pixels at each and one for the
// odd. On a map the two sides make four phases of pixels, and all four add up at each of 16 points:
//     M_p = Σ over phases of V_p · U_p.
#include "nn/conv.h"

#include "base/checked.h"

#include <string.h>

enum {
    FROM = 7,
    TO = 4,
    PHASES = 4, // even or odd down, even or odd across
    POINTS = TO * TO,
    WEIGHT_SIDE = 5, // w1, then w2 + w0 t at the four points
    WEIGHT_SETS = WEIGHT_SIDE * WEIGHT_SIDE,
    PRODUCTS = POINTS * PHASES,
    PIXELS = FROM * FROM,
    MOST_BLOCKS = 64,
    SCRATCH_BYTES = 1600 * 1024, // of V and M together
};

bool nn_halved_plan(nn_plan *plan)
{
    const nn_conv *conv = plan->conv;
    if (conv->stem || conv->kernel_h != 3 || conv->kernel_w != 3 || conv->stride != 2 ||
        conv->pad != 1 || conv->in_h != FROM || conv->in_w != FROM ||
        conv->in_blocks > MOST_BLOCKS || conv->out_blocks > MOST_BLOCKS) {
        return false;
    }
    const size_t row =
        (PHASES * conv->in_blocks + conv->out_blocks) * POINTS * NN_BLOCK * sizeof(real);
    plan->side = WEIGHT_SIDE;
    plan->n_prepared = WEIGHT_SETS * conv->out_blocks * conv->in_blocks * (size_t)NN_SQUARE;
    plan->sub_batch = base_min(base_max(SCRATCH_BYTES / row, 16), 128);
    return true;
}

size_t nn_halved_scratch(const nn_plan *plan)
{
    const size_t blocks = base_max(PHASES * plan->conv->in_blocks, plan->conv->out_blocks);
    return POINTS * (blocks * nn_plane(plan->sub_batch) + NN_BLOCK);
}

// Some rows of the batch on their way through.
typedef struct halving {
    const nn_plan *plan;
    const nn_scratch *scratch;
    size_t rows;
} halving;

static real *v_at(const halving *h, size_t point, size_t phase, size_t block)
{
    const size_t in = h->plan->conv->in_blocks;
    return h->scratch->v + ((point * PHASES + phase) * in + block) * nn_plane(h->rows) +
           point * NN_BLOCK; // planes off each other's sets of the cache
}

static real *m_at(const halving *h, size_t point, size_t block)
{
    return h->scratch->m + (point * h->plan->conv->out_blocks + block) * nn_plane(h->rows) +
           point * NN_BLOCK;
}

// Which of the 5×5 sets of weights a phase uses at a point.
static size_t weights_at(size_t phase, size_t point)
{
    const size_t down = phase / 2 ? 1 + point / TO : 0, across = phase % 2 ? 1 + point % TO : 0;
    return down * WEIGHT_SIDE + across;
}

// The pixels of a phase, row by row, and its points.
static void planes_of(const halving *h, nn_maps x, size_t phase, size_t block, real **pixels,
                      real **points)
{
    size_t n = 0;
    for (size_t y = phase / 2; y < FROM; y += 2) {
        for (size_t c = phase % 2; c < FROM; c += 2) {
            pixels[n++] = nn_at(x, PIXELS, block, y * FROM + c);
        }
    }
    for (size_t p = 0; p < POINTS; p++) points[p] = v_at(h, p, phase, block);
}

static void transform_inputs(const halving *h, nn_maps x)
{
    real *pixels[NN_MAX_POINTS], *points[NN_MAX_POINTS];
    for (size_t block = 0; block < h->plan->conv->in_blocks; block++) {
        for (size_t phase = 0; phase < PHASES; phase++) {
            planes_of(h, x, phase, block, pixels, points);
            h->plan->kernels->half_input[phase]((const real *const *)pixels, points,
                                                h->rows * NN_BLOCK, false);
        }
    }
}

static void transform_inputs_backward(const halving *h, nn_maps d_x, bool add)
{
    real *pixels[NN_MAX_POINTS], *points[NN_MAX_POINTS];
    for (size_t block = 0; block < h->plan->conv->in_blocks; block++) {
        for (size_t phase = 0; phase < PHASES; phase++) {
            planes_of(h, d_x, phase, block, pixels, points);
            h->plan->kernels->half_input_backward[phase]((const real *const *)points, pixels,
                                                         h->rows * NN_BLOCK, add);
        }
    }
}

static void output_planes(nn_maps y, size_t block, real **planes)
{
    for (size_t q = 0; q < POINTS; q++) planes[q] = nn_at(y, POINTS, block, q);
}

static void transform_outputs(const halving *h, nn_maps y, const nn_after_conv *after)
{
    real *from[POINTS], *to[POINTS], *skip[POINTS];
    for (size_t block = 0; block < h->plan->conv->out_blocks; block++) {
        const nn_tile_after tile_after = nn_tile_after_of(after, block, (const real *const *)skip);
        for (size_t p = 0; p < POINTS; p++) from[p] = m_at(h, p, block);
        output_planes(y, block, to);
        if (after->skip.data) output_planes(after->skip, block, skip);
        h->plan->kernels->half_output((const real *const *)from, to, h->rows * NN_BLOCK,
                                      &tile_after);
    }
}

static void transform_outputs_backward(const halving *h, const nn_out_gradient *d_y)
{
    real *g[POINTS], *y[POINTS], *to[POINTS];
    for (size_t block = 0; block < h->plan->conv->out_blocks; block++) {
        const nn_tile_gradient from =
            nn_tile_gradient_of(d_y, block, (const real *const *)g, (const real *const *)y);
        output_planes(d_y->g, block, g);
        if (d_y->a) output_planes(d_y->y, block, y);
        for (size_t p = 0; p < POINTS; p++) to[p] = m_at(h, p, block);
        h->plan->kernels->half_output_backward(&from, to, h->rows * NN_BLOCK);
    }
}

void nn_halved_forward(const nn_plan *plan, const nn_scratch *scratch, nn_maps x, nn_maps y,
                       const nn_after_conv *after, size_t rows)
{
    const halving h = {plan, scratch, rows};
    const size_t in = plan->conv->in_blocks, out = plan->conv->out_blocks;
    transform_inputs(&h, x);
    for (size_t p = 0; p < POINTS; p++) {
        const real *a[PHASES * MOST_BLOCKS], *b[PHASES * MOST_BLOCKS];
        for (size_t k = 0; k < PHASES * in; k++) {
            const size_t phase = k / in, i = k % in;
            a[k] = v_at(&h, p, phase, i);
            b[k] = plan->prepared + (weights_at(phase, p) * out * in + i) * NN_SQUARE;
        }
        plan->kernels->multiply(a, b, PHASES * in, rows, in * NN_SQUARE, m_at(&h, p, 0),
                                nn_plane(rows), out, false);
    }
    transform_outputs(&h, y, after);
}

// dU (+)= V_pᵀ · dM_p for every phase and point; the first point that uses a set of weights begins
// it.
static void weight_gradient(const halving *h, bool add)
{
    const nn_kernels *kernels = h->plan->kernels;
    const size_t in = h->plan->conv->in_blocks, out = h->plan->conv->out_blocks;
    bool begun[WEIGHT_SETS] = {false};
    for (size_t k = 0; k < PRODUCTS; k++) {
        const size_t p = k / PHASES, phase = k % PHASES, set = weights_at(phase, p);
        for (size_t o = 0; o < out; o += kernels->wide) {
            const real *b = m_at(h, p, o);
            for (size_t i = 0; i < in; i++) {
                const real *a = v_at(h, p, phase, i);
                kernels->multiply_transposed(
                    &a, &b, 1, h->rows, NN_BLOCK, NN_BLOCK, nn_plane(h->rows),
                    h->scratch->points + ((set * out + o) * in + i) * NN_SQUARE, in * NN_SQUARE,
                    base_min(kernels->wide, out - o), add || begun[set]);
            }
        }
        begun[set] = true;
    }
}

void nn_halved_backward(const nn_plan *plan, const nn_scratch *scratch, nn_maps x,
                        const nn_out_gradient *d_y, nn_maps d_x, bool add_x, bool add_weights,
                        size_t rows)
{
    const halving h = {plan, scratch, rows};
    const size_t in = plan->conv->in_blocks, out = plan->conv->out_blocks;
    transform_outputs_backward(&h, d_y);
    transform_inputs(&h, x);
    weight_gradient(&h, add_weights);
    if (!d_x.data) return;
    for (size_t k = 0; k < PRODUCTS; k++) {
        const size_t p = k / PHASES, phase = k % PHASES;
        const real *a[MOST_BLOCKS], *b[MOST_BLOCKS];
        for (size_t o = 0; o < out; o++) {
            a[o] = m_at(&h, p, o);
            b[o] = plan->transposed + (weights_at(phase, p) * in * out + o) * NN_SQUARE;
        }
        plan->kernels->multiply(a, b, out, rows, out * NN_SQUARE, v_at(&h, p, phase, 0),
                                nn_plane(rows), in, false);
    }
    transform_inputs_backward(&h, d_x, add_x);
}
