// Images that are moved and seen in coarse outline, against the definition, pixel by pixel.
#include "support/support.h"

#include "problem/images.h"

#include <math.h>
#include <string.h>

enum { H = 9, W = 11, CHANNELS = 3, IMAGES = 40, MOST = 3 };

static size_t clamped(ptrdiff_t at, size_t n)
{
    return at < 0 ? 0 : at >= (ptrdiff_t)n ? n - 1 : (size_t)at;
}

static bool is_moved_by(const uint8_t *from, const uint8_t *to, ptrdiff_t dy, ptrdiff_t dx)
{
    for (size_t y = 0; y < H; y++) {
        for (size_t x = 0; x < W; x++) {
            const size_t sy = clamped((ptrdiff_t)y + dy, H), sx = clamped((ptrdiff_t)x + dx, W);
            if (to[y * W + x] != from[sy * W + sx]) return false;
        }
    }
    return true;
}

// Which of the (2·MOST + 1)² moves it was; −1: none of them.
static int move_of(const uint8_t *from, const uint8_t *to)
{
    for (int dy = -MOST; dy <= MOST; dy++) {
        for (int dx = -MOST; dx <= MOST; dx++) {
            if (is_moved_by(from, to, dy, dx)) return (dy + MOST) * (2 * MOST + 1) + dx + MOST;
        }
    }
    return -1;
}

static void images_move_by_a_few_pixels(void **state)
{
    (void)state;
    static uint8_t before[IMAGES][CHANNELS][H * W], after[IMAGES][CHANNELS][H * W];
    base_random random = base_random_stream(7, 0, 0);
    for (int separate = 0; separate < 2; separate++) {
        const problem_inputs inputs = {.dtype = PSI_UINT8,
                                       .shape = {3, {CHANNELS, H, W}},
                                       .is_image = true,
                                       .separate_channels = separate};
        uint8_t *pixels = &before[0][0][0];
        for (size_t i = 0; i < sizeof before; i++) {
            pixels[i] = (uint8_t)base_random_below(&random, 256);
        }
        memcpy(after, before, sizeof before);
        problem_images_shift(&inputs, &random, MOST, IMAGES, after);
        size_t different = 0, moved = 0;
        for (size_t i = 0; i < IMAGES; i++) {
            const int first = move_of(before[i][0], after[i][0]);
            for (size_t c = 0; c < CHANNELS; c++) {
                const int move = move_of(before[i][c], after[i][c]);
                assert_true(move >= 0);
                different += move != first;
                moved += memcmp(before[i][c], after[i][c], H * W) != 0;
            }
        }
        assert_true(moved > IMAGES * CHANNELS / 2);
        assert_true(separate ? different > IMAGES : different == 0);
        memcpy(after, before, sizeof before);
        problem_images_shift(&inputs, &random, 0, IMAGES, after);
        assert_memory_equal(before, after, sizeof before);
    }
}

static void outlines_are_sums_of_squares_of_pixels(void **state)
{
    (void)state;
    enum { SIDE = 4, ROWS = 3, COLUMNS = 3, CELLS = CHANNELS * ROWS * COLUMNS };
    static float image[CHANNELS][H][W];
    float mean[CELLS], found[CELLS], wanted[CELLS] = {0};
    base_random random = base_random_stream(8, 0, 0);
    for (size_t k = 0; k < CELLS; k++) mean[k] = (float)k;
    const problem_inputs inputs = {.dtype = PSI_FLOAT32,
                                   .shape = {3, {CHANNELS, H, W}},
                                   .is_image = true,
                                   .n_coarse = CELLS,
                                   .coarse_side = SIDE,
                                   .coarse_mean = mean,
                                   .coarse_scale = 0.5f};
    for (size_t c = 0; c < CHANNELS; c++) {
        for (size_t y = 0; y < H; y++) {
            for (size_t x = 0; x < W; x++) {
                image[c][y][x] = (float)base_random_below(&random, 100);
                wanted[(c * ROWS + y / SIDE) * COLUMNS + x / SIDE] += image[c][y][x];
            }
        }
    }
    problem_images_outline(&inputs, 1, image, found);
    for (size_t k = 0; k < CELLS; k++) {
        assert_true(fabsf(found[k] - 0.5f * (wanted[k] - mean[k])) < 1e-3f);
    }
}

// Frames (n, H, W, C) and (n, C, H, W): all their channels, in order, as one image.
static void stacked_frames_are_one_image(void **state)
{
    (void)state;
    enum { FRAMES = 2 };
    static uint8_t last[IMAGES][FRAMES][H][W][CHANNELS], first[IMAGES][FRAMES][CHANNELS][H][W];
    static uint8_t found[FRAMES][CHANNELS][H][W];
    psi_ctx *ctx = test_ctx(1);
    base_random random = base_random_stream(9, 0, 0);
    for (size_t i = 0; i < sizeof last; i++) {
        const size_t c = i % CHANNELS, x = i / CHANNELS % W, y = i / CHANNELS / W % H;
        const size_t f = i / CHANNELS / W / H % FRAMES, k = i / CHANNELS / W / H / FRAMES;
        last[k][f][y][x][c] = first[k][f][c][y][x] = (uint8_t)base_random_below(&random, 256);
    }
    const psi_shape shapes[] = {{4, {FRAMES, H, W, CHANNELS}}, {4, {FRAMES, CHANNELS, H, W}}};
    const void *const rows[] = {last, first};
    for (size_t s = 0; s < 2; s++) {
        psi_observations *observations;
        problem_inputs inputs;
        assert_ok(
            ctx, psi_observations_over(ctx, PSI_UINT8, &shapes[s], IMAGES, rows[s], &observations));
        assert_ok(ctx, problem_inputs_new(ctx, observations, false, &inputs));
        assert_true(inputs.is_image);
        assert_memory_equal(inputs.shape.dim, ((size_t[]){FRAMES * CHANNELS, H, W}),
                            3 * sizeof(size_t));
        for (uint64_t i = 0; i < IMAGES; i++) {
            assert_ok(ctx, problem_inputs_gather(&inputs, ctx, &i, 1, found));
            assert_memory_equal(found, first[i], sizeof found);
        }
        problem_inputs_free(ctx, &inputs);
        psi_observations_free(ctx, observations);
    }
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_move_by_a_few_pixels),
        cmocka_unit_test(outlines_are_sums_of_squares_of_pixels),
        cmocka_unit_test(stacked_frames_are_one_image),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
