// Every convolution algorithm, on every kind of kernels this machine has, against the definition.
#include "support/support.h"

#include "base/checked.h"
#include "base/context.h"
#include "base/random.h"
#include "nn/conv.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct shape_case {
    size_t in, out, h, w, kernel, stride, pad, rows;
    bool stem;
} shape_case;

static const shape_case cases[] = {
    // the maps of resnet18 on 28×28
    {64, 64, 7, 7, 3, 1, 1, 33, false},
    {64, 128, 7, 7, 3, 2, 1, 17, false},
    {64, 128, 7, 7, 1, 2, 0, 9, false},
    {32, 32, 4, 4, 3, 1, 1, 40, false},
    {32, 48, 4, 4, 3, 2, 1, 5, false},
    {32, 32, 2, 2, 3, 1, 1, 21, false},
    {32, 64, 2, 2, 3, 2, 1, 12, false},
    {80, 64, 1, 1, 3, 1, 1, 30, false},
    // every way to cut a side, square and not
    {16, 16, 3, 3, 3, 1, 1, 1, false},
    {16, 16, 5, 5, 3, 1, 1, 2, false},
    {16, 32, 6, 6, 3, 1, 1, 7, false},
    {16, 16, 8, 9, 3, 1, 1, 3, false},
    {16, 16, 2, 7, 3, 1, 1, 6, false},
    {16, 16, 1, 4, 3, 1, 1, 6, false},
    {48, 80, 11, 6, 3, 1, 1, 19, false},
    {64, 64, 21, 21, 3, 1, 1, 18, false}, // worked on in strips
    // dense layers: channels that fill no block, kernels as large as the map
    {1, 1, 1, 1, 1, 1, 0, 1, false},
    {1000, 37, 1, 1, 1, 1, 0, 32, false},
    {24, 100, 4, 4, 4, 1, 0, 11, false},
    // stems
    {3, 64, 28, 28, 7, 2, 3, 34, true},
    {1, 64, 9, 13, 7, 2, 3, 6, true},
    {4, 32, 10, 8, 3, 2, 1, 3, true},
    {20, 16, 8, 8, 3, 1, 1, 2, true},
};
enum { N_CASES = sizeof cases / sizeof *cases };

// One case's numbers in PyTorch's layout, and as maps.
typedef struct numbers {
    real *x, *w, *d_y;     // (rows, C, H, W), (C_out, C_in, K, K), (rows, C_out, H', W')
    double *y, *d_x, *d_w; // what they should give
} numbers;

static real *random_numbers(base_random *random, size_t n)
{
    real *values = malloc(n * sizeof *values);
    for (size_t i = 0; i < n; i++) values[i] = (real)base_random_normal(random);
    return values;
}

// The definition, in double.
static void reference(const nn_conv *c, size_t rows, numbers *n)
{
    const size_t P = nn_in_pixels(c), Q = nn_out_pixels(c), taps = c->kernel_h * c->kernel_w;
    for (size_t r = 0; r < rows; r++) {
        for (size_t o = 0; o < c->out_channels; o++) {
            for (size_t q = 0; q < Q; q++) {
                double sum = 0;
                const double g = (double)n->d_y[(r * c->out_channels + o) * Q + q];
                for (size_t t = 0; t < taps; t++) {
                    const size_t y = q / c->out_w * c->stride + t / c->kernel_w - c->pad;
                    const size_t x = q % c->out_w * c->stride + t % c->kernel_w - c->pad;
                    if (y >= c->in_h || x >= c->in_w) continue;
                    for (size_t i = 0; i < c->in_channels; i++) {
                        const size_t at_x = (r * c->in_channels + i) * P + y * c->in_w + x;
                        const size_t at_w = (o * c->in_channels + i) * taps + t;
                        sum += (double)n->x[at_x] * (double)n->w[at_w];
                        n->d_x[at_x] += g * (double)n->w[at_w];
                        n->d_w[at_w] += g * (double)n->x[at_x];
                    }
                }
                n->y[(r * c->out_channels + o) * Q + q] = sum;
            }
        }
    }
}

static nn_conv conv_of(const shape_case *s)
{
    nn_conv conv = {.in_channels = s->in,
                    .out_channels = s->out,
                    .in_h = s->h,
                    .in_w = s->w,
                    .kernel_h = s->kernel,
                    .kernel_w = s->kernel,
                    .stride = s->stride,
                    .pad = s->pad,
                    .stem = s->stem};
    nn_conv_init(&conv);
    return conv;
}

// The definition takes longest by far, and is the same for all kernels: once for each case.
static numbers numbers_of[N_CASES];

static int make_numbers(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_CASES; i++) {
        const shape_case *s = &cases[i];
        const nn_conv conv = conv_of(s);
        const size_t n_x = s->rows * s->in * nn_in_pixels(&conv);
        const size_t n_y = s->rows * s->out * nn_out_pixels(&conv);
        const size_t n_w = s->out * s->in * s->kernel * s->kernel;
        base_random random = base_random_stream(7, 0, s->in * 1000 + s->h);
        numbers_of[i] = (numbers){random_numbers(&random, n_x), random_numbers(&random, n_w),
                                  random_numbers(&random, n_y), calloc(n_y, sizeof(double)),
                                  calloc(n_x, sizeof(double)),  calloc(n_w, sizeof(double))};
        reference(&conv, s->rows, &numbers_of[i]);
    }
    return 0;
}

static int free_numbers(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_CASES; i++) {
        const numbers *n = &numbers_of[i];
        void *all[] = {n->x, n->w, n->d_y, n->y, n->d_x, n->d_w};
        for (size_t j = 0; j < sizeof all / sizeof *all; j++) free(all[j]);
    }
    return 0;
}

static nn_maps make_maps(size_t channels, size_t pixels, size_t rows)
{
    nn_maps maps = {NULL, nn_plane(rows)};
    maps.data = calloc(nn_blocks(channels) * pixels * maps.plane, sizeof(real));
    return maps;
}

static real *element(nn_maps maps, size_t pixels, size_t channel, size_t pixel, size_t row)
{
    return nn_at(maps, pixels, channel / NN_BLOCK, pixel) + row * NN_BLOCK + channel % NN_BLOCK;
}

static void fill_maps(nn_maps maps, const real *values, size_t channels, size_t pixels, size_t rows)
{
    for (size_t r = 0; r < rows; r++) {
        for (size_t c = 0; c < channels; c++) {
            for (size_t p = 0; p < pixels; p++) {
                *element(maps, pixels, c, p, r) = values[(r * channels + c) * pixels + p];
            }
        }
    }
}

static double maps_error(nn_maps maps, const double *exact, size_t channels, size_t pixels,
                         size_t rows, double offset)
{
    double wrong = 0, right = 1e-30;
    for (size_t r = 0; r < rows; r++) {
        for (size_t c = 0; c < channels; c++) {
            for (size_t p = 0; p < pixels; p++) {
                const double e = exact[(r * channels + c) * pixels + p];
                const double d = (double)*element(maps, pixels, c, p, r) - offset - e;
                wrong += d * d;
                right += e * e;
            }
        }
    }
    return sqrt(wrong / right);
}

static nn_maps pack_images(const nn_conv *c, const real *x, size_t rows)
{
    const size_t row = nn_stem_row(c);
    nn_maps maps = {NULL, (rows + 1) * row};
    maps.data = calloc(c->in_h * maps.plane + NN_BLOCK, sizeof(real));
    for (size_t r = 0; r < rows; r++) {
        for (size_t i = 0; i < c->in_channels; i++) {
            for (size_t y = 0; y < c->in_h; y++) {
                for (size_t k = 0; k < c->in_w; k++) {
                    maps.data[y * maps.plane + r * row + (k + c->pad) * c->in_channels + i] =
                        x[((r * c->in_channels + i) * c->in_h + y) * c->in_w + k];
                }
            }
        }
    }
    return maps;
}

static nn_maps rows_from(const nn_conv *c, nn_maps maps, size_t row, bool images)
{
    maps.data += row * (images ? nn_stem_row(c) : (size_t)NN_BLOCK);
    return maps;
}

static void check(psi_ctx *ctx, size_t number, const char *kernels_name, bool exact)
{
    const nn_kernels *kernels;
    if (nn_kernels_choose(ctx, kernels_name, &kernels) != PSI_OK) return;
    const shape_case *s = &cases[number];
    const numbers n = numbers_of[number];
    const nn_conv conv = conv_of(s);
    const size_t P = nn_in_pixels(&conv), Q = nn_out_pixels(&conv), rows = s->rows;
    const size_t n_w = s->out * s->in * s->kernel * s->kernel;

    nn_plan plan;
    assert_ok(ctx, nn_plan_init(ctx, &conv, kernels, rows, exact, true, &plan));
    if (exact) assert_true(plan.algorithm == NN_STEM || plan.algorithm == NN_DIRECT);
    const size_t size = nn_plan_scratch(&plan) + 1;
    nn_scratch scratch = {.v = calloc(size, sizeof(real)),
                          .m = calloc(size, sizeof(real)),
                          .zero = calloc(nn_plane(plan.sub_batch), sizeof(real)),
                          .outside = calloc(nn_plane(plan.sub_batch), sizeof(real)),
                          .points = calloc(plan.n_prepared + 1, sizeof(real))};
    memset(scratch.points, 0x7f, plan.n_prepared * sizeof(real)); // must not be trusted
    real *weights = calloc(conv.n_weights, sizeof(real));
    real *d_weights = malloc(conv.n_weights * sizeof(real));
    real *dead = calloc(nn_conv_n_dead(&conv) + 1, sizeof(real));
    real *d_w = calloc(n_w, sizeof(real));
    memset(d_weights, 0x7f, conv.n_weights * sizeof(real));
    nn_conv_import(&conv, n.w, weights, dead);
    for (int t = 0; t < 3; t++) nn_plan_prepare(&plan, weights, true, t, 3);

    nn_maps x = s->stem ? pack_images(&conv, n.x, rows) : make_maps(s->in, P, rows);
    nn_maps y = make_maps(s->out, Q, rows), d_y = make_maps(s->out, Q, rows);
    nn_maps d_x = make_maps(s->in, P, rows), none = {NULL, 0};
    if (!s->stem) fill_maps(x, n.x, s->in, P, rows);
    fill_maps(d_y, n.d_y, s->out, Q, rows);
    for (size_t i = 0; i < nn_blocks(s->in) * P * d_x.plane; i++) d_x.data[i] = 1;
    const bool add = s->rows % 2; // both ways to write the gradient are met
    for (size_t first = 0; first < rows; first += plan.sub_batch) {
        const size_t count = base_min(plan.sub_batch, rows - first);
        const nn_maps part = rows_from(&conv, x, first, s->stem);
        const nn_out_gradient gradient = {.g = nn_rows_from(d_y, first)};
        nn_conv_forward(&plan, &scratch, weights, part, nn_rows_from(y, first), &(nn_after_conv){0},
                        count);
        nn_conv_backward(&plan, &scratch, part, &gradient,
                         s->stem ? none : nn_rows_from(d_x, first), add, d_weights, first > 0,
                         count);
    }
    nn_conv_backward_finish(&plan, &scratch, d_weights);
    nn_conv_export(&conv, d_weights, NULL, d_w);

    const double bound = plan.prepared ? 2e-5 : 2e-6;
    double wrong = 0, right = 1e-30;
    for (size_t i = 0; i < n_w; i++) {
        wrong += ((double)d_w[i] - n.d_w[i]) * ((double)d_w[i] - n.d_w[i]);
        right += n.d_w[i] * n.d_w[i];
    }
    const double error[3] = {maps_error(y, n.y, s->out, Q, rows, 0), sqrt(wrong / right),
                             s->stem ? 0 : maps_error(d_x, n.d_x, s->in, P, rows, add ? 1 : 0)};
    for (size_t i = 0; i < 3; i++) {
        if (error[i] <= bound) continue;
        fail_msg("%s, %zu→%zu on %zu×%zu, kernel %zu, stride %zu, %s: error %zu is %.2e",
                 kernels->name, s->in, s->out, s->h, s->w, s->kernel, s->stride,
                 exact ? "direct" : "reduced", i, error[i]);
    }
    nn_plan_free(ctx, &plan);
    void *all[] = {scratch.v, scratch.m, scratch.zero, scratch.outside, scratch.points, weights,
                   d_weights, dead,      d_w,          x.data,          y.data,         d_y.data,
                   d_x.data};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static void check_all(const char *kernels)
{
    psi_ctx *ctx = test_ctx(1);
    for (size_t i = 0; i < N_CASES; i++) {
        check(ctx, i, kernels, true);
        check(ctx, i, kernels, false);
    }
    psi_ctx_free(ctx);
}

static void portable_kernels(void **state)
{
    (void)state;
    check_all("portable");
}

static void avx2_kernels(void **state)
{
    (void)state;
    check_all("avx2");
}

static void avx512_kernels(void **state)
{
    (void)state;
    check_all("avx512");
}

static void unknown_kernels_are_refused(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    const nn_kernels *kernels;
    assert_status(ctx, nn_kernels_choose(ctx, "abacus", &kernels), PSI_EUNSUPPORTED);
    psi_ctx_free(ctx);
}

// A 3×3 kernel on a 1×1 map has one live tap of nine; on 2×2 all nine see something.
static void dead_taps_are_left_out(void **state)
{
    (void)state;
    nn_conv conv = {.in_channels = 16,
                    .out_channels = 16,
                    .in_h = 1,
                    .in_w = 1,
                    .kernel_h = 3,
                    .kernel_w = 3,
                    .stride = 1,
                    .pad = 1};
    nn_conv_init(&conv);
    assert_int_equal(conv.n_taps, 1);
    assert_int_equal(conv.tap[0], 4);
    assert_int_equal(nn_conv_n_dead(&conv), 8 * 16 * 16);
    real values[9 * 256], back[9 * 256], weights[256], dead[8 * 256];
    for (size_t i = 0; i < 9 * 256; i++) values[i] = (real)i;
    nn_conv_import(&conv, values, weights, dead);
    nn_conv_export(&conv, weights, dead, back);
    assert_memory_equal(values, back, sizeof values);
    conv.in_h = conv.in_w = 2;
    nn_conv_init(&conv);
    assert_int_equal(conv.n_taps, 9);
}

#ifdef __SANITIZE_ADDRESS__
// Kernels multiply without a check of every access; a row that ends too early is reported still.
static void rows_that_end_too_early_are_reported(void **state)
{
    (void)state;
    enum { ROWS = 5, SIZE = ROWS * NN_BLOCK };
    const char *names[] = {"portable", "avx2", "avx512"};
    psi_ctx *ctx = test_ctx(1);
    for (size_t i = 0; i < 3; i++) {
        const nn_kernels *kernels;
        if (nn_kernels_choose(ctx, names[i], &kernels) != PSI_OK) continue;
        for (int at_fault = 0; at_fault < 4; at_fault++) { // none, A, B, C
            fflush(NULL);
            const pid_t child = fork();
            assert_true(child >= 0);
            if (child == 0) {
                (void)freopen("/dev/null", "w", stderr);
                const real *a = calloc(SIZE - (at_fault == 1), sizeof *a);
                const real *b = calloc(NN_SQUARE - (at_fault == 2), sizeof *b);
                real *c = calloc(SIZE - (at_fault == 3), sizeof *c);
                kernels->multiply(&a, &b, 1, ROWS, NN_SQUARE, c, SIZE, 1, true);
                kernels->multiply_rows(&a, &b, 1, ROWS, NN_BLOCK, NN_BLOCK, NN_SQUARE, c, SIZE, 1,
                                       true);
                _exit(0);
            }
            int result;
            assert_int_equal(waitpid(child, &result, 0), child);
            assert_true((WIFEXITED(result) && WEXITSTATUS(result) == 0) == (at_fault == 0));
        }
    }
    psi_ctx_free(ctx);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(portable_kernels),
        cmocka_unit_test(avx2_kernels),
        cmocka_unit_test(avx512_kernels),
        cmocka_unit_test(unknown_kernels_are_refused),
        cmocka_unit_test(dead_taps_are_left_out),
#ifdef __SANITIZE_ADDRESS__
        cmocka_unit_test(rows_that_end_too_early_are_reported),
#endif
    };
    return cmocka_run_group_tests(tests, make_numbers, free_numbers);
}
