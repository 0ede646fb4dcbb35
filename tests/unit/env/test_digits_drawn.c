// Drawn digits: the same everywhere from the same seed, inside the frame, varied, and told apart by
// the simplest of classifiers, also when it was trained on other renderings.
#include "tasks.h"

#include "env/digits.h"
#include "env/rules.h"

#include <math.h>

static env_digits *drawn(psi_ctx *ctx, uint64_t seed, uint32_t purpose, size_t n, uint32_t each)
{
    env_digits *digits;
    assert_ok(ctx, env_digits_drawn(ctx, seed, purpose, n, each, &digits));
    return digits;
}

static void test_the_seed_decides(void **state)
{
    (void)state;
    psi_ctx *one = test_ctx(1), *three = test_ctx(3);
    env_digits *a = drawn(one, 1, ENV_STREAM_DRAWN, 10, 50);
    env_digits *b = drawn(three, 1, ENV_STREAM_DRAWN, 16, 50); // more digits change none of them
    assert_memory_equal(a->images, b->images, (size_t)10 * 50 * ENV_DIGIT_BYTES);
    env_digits *other = drawn(one, 2, ENV_STREAM_DRAWN, 10, 50);
    env_digits *test = drawn(one, 1, ENV_STREAM_DRAWN_TEST, 10, 50);
    for (size_t i = 0; i < 500; i++) {
        const uint8_t *image = a->images + i * ENV_DIGIT_BYTES;
        for (size_t j = 0; j < 500; j++) {
            const size_t at = j * ENV_DIGIT_BYTES;
            assert_false(memcmp(image, other->images + at, ENV_DIGIT_BYTES) == 0);
            assert_false(memcmp(image, test->images + at, ENV_DIGIT_BYTES) == 0);
            assert_true(i == j || memcmp(image, a->images + at, ENV_DIGIT_BYTES) != 0);
        }
    }
    env_digits_free(one, a);
    env_digits_free(three, b);
    env_digits_free(one, other);
    env_digits_free(one, test);
    psi_ctx_free(one);
    psi_ctx_free(three);
}

// White strokes on black, a share of ink like MNIST's (13 % of the full white on average there),
// and an empty border.
static void test_the_look(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(2);
    env_digits *digits = drawn(ctx, 4, ENV_STREAM_DRAWN, PSI_MAX_DIGITS, 200);
    double ink = 0.0, border = 0.0;
    const size_t n = (size_t)PSI_MAX_DIGITS * 200;
    for (size_t i = 0; i < n; i++) {
        int brightest = 0;
        for (int p = 0; p < ENV_DIGIT_BYTES; p++) {
            const int value = digits->images[i * ENV_DIGIT_BYTES + (size_t)p];
            const int x = p % PSI_DIGIT_SIDE, y = p / PSI_DIGIT_SIDE;
            brightest = value > brightest ? value : brightest;
            ink += value;
            if (x == 0 || y == 0 || x == 27 || y == 27) border += value;
        }
        assert_true(brightest > 190);
    }
    ink /= 255.0 * (double)(n * ENV_DIGIT_BYTES);
    assert_true(ink > 0.06 && ink < 0.2);
    print_message("ink %.3f, border %.4f\n", ink, border / (255.0 * (double)n));
    assert_true(border / (255.0 * (double)n) < 0.05); // pixels an image
    env_digits_free(ctx, digits);
    psi_ctx_free(ctx);
}

// Nearest neighbour in pixels, from the drawn to the test pool.
static void test_digits_can_be_told_apart(void **state)
{
    (void)state;
    enum { EACH = 60, TESTS = 10 };
    psi_ctx *ctx = test_ctx(2);
    env_digits *known = drawn(ctx, 1, ENV_STREAM_DRAWN, 10, EACH);
    env_digits *fresh = drawn(ctx, 1, ENV_STREAM_DRAWN_TEST, 10, TESTS);
    int right = 0;
    for (size_t i = 0; i < (size_t)10 * TESTS; i++) {
        long least = INT32_MAX;
        size_t nearest = 0;
        for (size_t j = 0; j < (size_t)10 * EACH; j++) {
            long distance = 0;
            for (size_t p = 0; p < ENV_DIGIT_BYTES; p++) {
                const int difference =
                    fresh->images[i * ENV_DIGIT_BYTES + p] - known->images[j * ENV_DIGIT_BYTES + p];
                distance += difference * difference;
            }
            if (distance < least) {
                least = distance;
                nearest = j;
            }
        }
        right += nearest / EACH == i / TESTS;
    }
    print_message("nearest neighbour: %d of %d right\n", right, 10 * TESTS);
    assert_true(right >= 85);
    env_digits_free(ctx, known);
    env_digits_free(ctx, fresh);
    psi_ctx_free(ctx);
}

static void test_variants(void **state)
{
    (void)state;
    for (unsigned d = 0; d < PSI_MAX_DIGITS; d++) {
        unsigned n;
        const env_glyph *variants = env_glyph_variants(d, &n);
        assert_true(n >= (d < 10 ? 2 : 1));
        for (unsigned v = 0; v < n; v++) {
            for (int s = 0; s < variants[v].n; s++) {
                assert_in_range(variants[v].strokes[s].n, 2, 14);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_seed_decides),
        cmocka_unit_test(test_the_look),
        cmocka_unit_test(test_digits_can_be_told_apart),
        cmocka_unit_test(test_variants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
