// 3×3 convolutions of stride 1 with fewer multiplications: the map is cut into tiles of 4, 3 or 2
// outputs a side, and every tile is computed at 6, 5 or 4 points a side (kernels_transform.inc). At
// each point all tiles of all rows are one product with the weights' values there:
//     V = Bᵀ X B,   M_p = V_p · U_p,   Y = Aᵀ M A.
// Backward is the transposed algorithm, step by step. V and M of a point hold a row for every tile
// that has the point; tiles with more points come first, so that those are always the first few.
#include "nn/conv.h"

#include "base/checked.h"

#include <string.h>

enum {
    SCRATCH_BYTES = 3200 * 1024, // of V and M together: a few times the second cache
    MOST_BLOCKS = 64,            // of channels
    FEWEST_ROWS = 16,            // in a sub-batch, before strips of tiles are taken instead
};

static size_t outputs_of(nn_tile_kind kind)
{
    static const size_t outputs[NN_TILE_KINDS] = {4, 3, 2, 2};
    return outputs[kind];
}

static size_t inputs_of(nn_tile_kind kind)
{
    return kind == NN_TILE_PAIR ? 2 : outputs_of(kind) + 2;
}

static size_t points_of(nn_tile_kind kind)
{
    return kind == NN_TILE_PAIR ? 3 : outputs_of(kind) + 2;
}

// The k-th point of a tile, in the order 0, 1, −1, 2, −½, ∞ of the largest.
static size_t point_at(nn_tile_kind kind, size_t k)
{
    return kind != NN_TILE_PAIR && k + 1 == points_of(kind) ? 5 : k;
}

static bool has_point(nn_tile_kind kind, size_t point)
{
    return kind == NN_TILE_PAIR || point == 5 || point + 1 < points_of(kind);
}

static void tiling_add(nn_tiling *tiling, nn_tile_kind kind)
{
    const size_t n = tiling->n;
    tiling->start[n] = n ? tiling->start[n - 1] + outputs_of(tiling->kind[n - 1]) : 0;
    tiling->kind[n] = kind;
    tiling->n++;
}

// Fours, then what is left over: 5 is 3 + 2, 6 is 4 + 2, 7 is 4 + 3.
static void tiling_init(nn_tiling *tiling, size_t length)
{
    tiling->n = 0;
    size_t fours = length / 4;
    if (length % 4 == 1) fours--;
    for (size_t i = 0; i < fours; i++) tiling_add(tiling, NN_TILE_4);
    const size_t left = length - 4 * fours;
    if (left == 3 || left == 5) tiling_add(tiling, NN_TILE_3);
    if (left == 2 || left == 5) tiling_add(tiling, NN_TILE_2);
}

// How many of the tiles first … end have this point.
static size_t tiles_with(const nn_tiling *tiling, size_t first, size_t end, size_t point)
{
    size_t n = 0;
    for (size_t i = first; i < end; i++) n += has_point(tiling->kind[i], point);
    return n;
}

bool nn_reduced_plan(nn_plan *plan)
{
    const nn_conv *conv = plan->conv;
    if (conv->stem || conv->kernel_h != 3 || conv->kernel_w != 3 || conv->stride != 1 ||
        conv->pad != 1 || conv->n_taps != 9 || conv->in_blocks > MOST_BLOCKS ||
        conv->out_blocks > MOST_BLOCKS) {
        return false;
    }
    const bool pair = conv->in_h == 2 && conv->in_w == 2;
    // narrow maps save little, and their few pixels average little of the rounding away
    if (!pair && (conv->in_h < 4 || conv->in_w < 4)) return false;
    plan->side = pair ? 3 : 6;
    if (pair) {
        plan->down.n = plan->across.n = 0;
        tiling_add(&plan->down, NN_TILE_PAIR);
        tiling_add(&plan->across, NN_TILE_PAIR);
    } else {
        tiling_init(&plan->down, conv->in_h);
        tiling_init(&plan->across, conv->in_w);
    }
    plan->n_prepared = plan->side * plan->side * conv->out_blocks * conv->in_blocks * NN_SQUARE;

    // a row of tiles of one image, and how many images and rows of tiles fit
    size_t points_across = 0;
    for (size_t i = 0; i < plan->across.n; i++) points_across += points_of(plan->across.kind[i]);
    const size_t strip_bytes =
        plan->side * points_across * (conv->in_blocks + conv->out_blocks) * NN_BLOCK * sizeof(real);
    // NOLINTBEGIN(clang-analyzer-core.DivideZero): a side of two or more has at least one tile
    const size_t fit = base_max(SCRATCH_BYTES / strip_bytes, 1);
    plan->strip = base_min(plan->down.n, base_max(fit / FEWEST_ROWS, 1));
    plan->sub_batch = base_min(base_max(fit / plan->strip, FEWEST_ROWS), 128);
    // NOLINTEND(clang-analyzer-core.DivideZero)
    plan->slots = plan->strip * plan->across.n;
    return true;
}

// Some rows of tiles of some rows of the batch: what V and M hold at one time.
typedef struct piece {
    const nn_plan *plan;
    const nn_scratch *scratch;
    size_t first, end; // rows of tiles
    size_t rows;       // of the batch
} piece;

// From one point to the next, and from one block to the next, in V and M.
static size_t block_step(const piece *s)
{
    return nn_plane(s->plan->slots * s->rows);
}

static size_t point_step(const piece *s, size_t blocks)
{
    return blocks * block_step(s) + NN_BLOCK;
}

static size_t rows_at(const piece *s, size_t point)
{
    const size_t side = s->plan->side;
    return tiles_with(&s->plan->down, s->first, s->end, point / side) *
           tiles_with(&s->plan->across, 0, s->plan->across.n, point % side) * s->rows;
}

// Where the points of tile (down, across) of a block lie in V or M.
static void point_planes(const piece *s, real *values, size_t blocks, size_t block, size_t down,
                         size_t across, real **planes)
{
    const nn_plan *plan = s->plan;
    const nn_tile_kind kind_down = plan->down.kind[down], kind_across = plan->across.kind[across];
    size_t n = 0;
    for (size_t i = 0; i < points_of(kind_down); i++) {
        for (size_t j = 0; j < points_of(kind_across); j++) {
            const size_t pi = point_at(kind_down, i), pj = point_at(kind_across, j);
            const size_t width = tiles_with(&plan->across, 0, plan->across.n, pj);
            const size_t slot = (down - s->first) * width + across;
            planes[n++] = values + (pi * plan->side + pj) * point_step(s, blocks) +
                          block * block_step(s) + slot * s->rows * NN_BLOCK;
        }
    }
}

// The pixels that a tile reads; a plane of zeros stands for those outside.
static void input_planes(const piece *s, nn_maps x, size_t block, size_t down, size_t across,
                         real *outside, real **planes)
{
    const nn_plan *plan = s->plan;
    const nn_conv *conv = plan->conv;
    const size_t margin = plan->side == 6; // F(m,3) starts one pixel before its outputs
    size_t n = 0;
    for (size_t i = 0; i < inputs_of(plan->down.kind[down]); i++) {
        for (size_t j = 0; j < inputs_of(plan->across.kind[across]); j++) {
            const size_t y = plan->down.start[down] + i - margin; // wraps around when outside
            const size_t column = plan->across.start[across] + j - margin;
            const bool inside = y < conv->in_h && column < conv->in_w;
            planes[n++] =
                inside ? nn_at(x, nn_in_pixels(conv), block, y * conv->in_w + column) : outside;
        }
    }
}

static void output_planes(const piece *s, nn_maps y, size_t block, size_t down, size_t across,
                          real **planes)
{
    const nn_plan *plan = s->plan;
    const nn_conv *conv = plan->conv;
    size_t n = 0;
    for (size_t i = 0; i < outputs_of(plan->down.kind[down]); i++) {
        for (size_t j = 0; j < outputs_of(plan->across.kind[across]); j++) {
            const size_t pixel =
                (plan->down.start[down] + i) * conv->out_w + plan->across.start[across] + j;
            planes[n++] = nn_at(y, nn_out_pixels(conv), block, pixel);
        }
    }
}

static const nn_tile_transforms *transforms_of(const piece *s, size_t down, size_t across)
{
    return &s->plan->kernels->tile[s->plan->down.kind[down]][s->plan->across.kind[across]];
}

// V = Bᵀ X B
static void transform_inputs(const piece *s, nn_maps x)
{
    const size_t blocks = s->plan->conv->in_blocks;
    real *from[NN_MAX_POINTS], *to[NN_MAX_POINTS];
    for (size_t block = 0; block < blocks; block++) {
        for (size_t down = s->first; down < s->end; down++) {
            for (size_t across = 0; across < s->plan->across.n; across++) {
                input_planes(s, x, block, down, across, s->scratch->zero, from);
                point_planes(s, s->scratch->v, blocks, block, down, across, to);
                transforms_of(s, down, across)
                    ->input((const real *const *)from, to, s->rows * NN_BLOCK, false);
            }
        }
    }
}

// Y = Aᵀ M A
static void transform_outputs(const piece *s, nn_maps y, const nn_after_conv *after)
{
    const size_t blocks = s->plan->conv->out_blocks;
    real *from[NN_MAX_POINTS], *to[NN_MAX_POINTS], *skip[NN_MAX_POINTS];
    for (size_t block = 0; block < blocks; block++) {
        const nn_tile_after tile_after = nn_tile_after_of(after, block, (const real *const *)skip);
        for (size_t down = s->first; down < s->end; down++) {
            for (size_t across = 0; across < s->plan->across.n; across++) {
                point_planes(s, s->scratch->m, blocks, block, down, across, from);
                output_planes(s, y, block, down, across, to);
                if (after->skip.data) output_planes(s, after->skip, block, down, across, skip);
                transforms_of(s, down, across)
                    ->output((const real *const *)from, to, s->rows * NN_BLOCK, &tile_after);
            }
        }
    }
}

// dM = A dY Aᵀ
static void transform_outputs_backward(const piece *s, const nn_out_gradient *d_y)
{
    const size_t blocks = s->plan->conv->out_blocks;
    real *g[NN_MAX_POINTS], *y[NN_MAX_POINTS], *to[NN_MAX_POINTS];
    for (size_t block = 0; block < blocks; block++) {
        const nn_tile_gradient from =
            nn_tile_gradient_of(d_y, block, (const real *const *)g, (const real *const *)y);
        for (size_t down = s->first; down < s->end; down++) {
            for (size_t across = 0; across < s->plan->across.n; across++) {
                output_planes(s, d_y->g, block, down, across, g);
                if (d_y->a) output_planes(s, d_y->y, block, down, across, y);
                point_planes(s, s->scratch->m, blocks, block, down, across, to);
                transforms_of(s, down, across)->output_backward(&from, to, s->rows * NN_BLOCK);
            }
        }
    }
}

// dX += B dV Bᵀ; tiles overlap by two pixels, and what falls outside is thrown away.
static void transform_inputs_backward(const piece *s, nn_maps d_x)
{
    const size_t blocks = s->plan->conv->in_blocks;
    real *from[NN_MAX_POINTS], *to[NN_MAX_POINTS];
    for (size_t block = 0; block < blocks; block++) {
        for (size_t down = s->first; down < s->end; down++) {
            for (size_t across = 0; across < s->plan->across.n; across++) {
                point_planes(s, s->scratch->v, blocks, block, down, across, from);
                input_planes(s, d_x, block, down, across, s->scratch->outside, to);
                transforms_of(s, down, across)
                    ->input_backward((const real *const *)from, to, s->rows * NN_BLOCK, true);
            }
        }
    }
}

// to_p = from_p · U_p at every point; forward with U, backward with its transpose.
static void multiply_points(const piece *s, const real *u, const real *from, size_t in_blocks,
                            real *to, size_t out_blocks)
{
    const real *a[MOST_BLOCKS], *b[MOST_BLOCKS];
    for (size_t p = 0; p < s->plan->side * s->plan->side; p++) {
        for (size_t i = 0; i < in_blocks; i++) {
            a[i] = from + p * point_step(s, in_blocks) + i * block_step(s);
            b[i] = u + (p * out_blocks * in_blocks + i) * NN_SQUARE;
        }
        s->plan->kernels->multiply(a, b, in_blocks, rows_at(s, p), in_blocks * NN_SQUARE,
                                   to + p * point_step(s, out_blocks), block_step(s), out_blocks,
                                   false);
    }
}

// dU_p (+)= V_pᵀ · dM_p
static void point_gradient(const piece *s, bool add)
{
    const nn_kernels *kernels = s->plan->kernels;
    const size_t in = s->plan->conv->in_blocks, out = s->plan->conv->out_blocks, part = 128;
    for (size_t p = 0; p < s->plan->side * s->plan->side; p++) {
        const real *v = s->scratch->v + p * point_step(s, in);
        const real *m = s->scratch->m + p * point_step(s, out);
        real *points = s->scratch->points + p * out * in * NN_SQUARE;
        const size_t rows = rows_at(s, p);
        if (rows == 0 && !add) memset(points, 0, out * in * NN_SQUARE * sizeof(real));
        for (size_t row = 0; row < rows; row += part) {
            for (size_t o = 0; o < out; o += kernels->wide) {
                const real *b = m + o * block_step(s) + row * NN_BLOCK;
                for (size_t i = 0; i < in; i++) {
                    const real *a = v + i * block_step(s) + row * NN_BLOCK;
                    kernels->multiply_transposed(&a, &b, 1, base_min(part, rows - row), NN_BLOCK,
                                                 NN_BLOCK, block_step(s),
                                                 points + (o * in + i) * NN_SQUARE, in * NN_SQUARE,
                                                 base_min(kernels->wide, out - o), add || row > 0);
                }
            }
        }
    }
}

void nn_reduced_forward(const nn_plan *plan, const nn_scratch *scratch, nn_maps x, nn_maps y,
                        const nn_after_conv *after, size_t rows)
{
    const nn_conv *conv = plan->conv;
    for (size_t first = 0; first < plan->down.n; first += plan->strip) {
        const piece s = {plan, scratch, first, base_min(first + plan->strip, plan->down.n), rows};
        transform_inputs(&s, x);
        multiply_points(&s, plan->prepared, scratch->v, conv->in_blocks, scratch->m,
                        conv->out_blocks);
        transform_outputs(&s, y, after);
    }
}

void nn_reduced_backward(const nn_plan *plan, const nn_scratch *scratch, nn_maps x,
                         const nn_out_gradient *d_y, nn_maps d_x, bool add_x, bool add_weights,
                         size_t rows)
{
    const nn_conv *conv = plan->conv;
    const size_t pixels = nn_in_pixels(conv);
    if (d_x.data && !add_x) {
        for (size_t plane = 0; plane < conv->in_blocks * pixels; plane++) {
            memset(d_x.data + plane * d_x.plane, 0, rows * NN_BLOCK * sizeof(real));
        }
    }
    for (size_t first = 0; first < plan->down.n; first += plan->strip) {
        const piece s = {plan, scratch, first, base_min(first + plan->strip, plan->down.n), rows};
        transform_outputs_backward(&s, d_y);
        transform_inputs(&s, x);
        point_gradient(&s, add_weights || first > 0);
        if (!d_x.data) continue;
        multiply_points(&s, plan->transposed, scratch->m, conv->out_blocks, scratch->v,
                        conv->in_blocks);
        transform_inputs_backward(&s, d_x);
    }
}
