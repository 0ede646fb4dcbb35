// Pictures: what is written is what libpng reads back.
#include "support/support.h"

#include "base/context.h"
#include "report/png.h"

#include <png.h>
#include <string.h>

static void pixels_come_back(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    for (size_t channels = 1; channels <= 3; channels += 2) {
        uint8_t pixels[5 * 7 * 3], back[5 * 7 * 3], *bytes;
        size_t size;
        for (size_t i = 0; i < sizeof pixels; i++) pixels[i] = (uint8_t)(i * 37);
        assert_ok(ctx, report_png(ctx, 7, 5, channels, pixels, &bytes, &size));
        png_image image = {.version = PNG_IMAGE_VERSION};
        assert_int_not_equal(png_image_begin_read_from_memory(&image, bytes, size), 0);
        assert_int_equal(image.width, 7);
        assert_int_equal(image.height, 5);
        image.format = channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
        assert_int_not_equal(png_image_finish_read(&image, NULL, back, 0, NULL), 0);
        assert_memory_equal(back, pixels, 35 * channels);
        base_free(ctx, bytes);
    }
    psi_ctx_free(ctx);
}

static void impossible_sizes_are_refused(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    uint8_t *bytes, pixel = 0;
    size_t size;
    assert_status(ctx, report_png(ctx, 0, 5, 1, &pixel, &bytes, &size), PSI_ELIMIT);
    assert_status(ctx, report_png(ctx, 1, 100000, 1, &pixel, &bytes, &size), PSI_ELIMIT);
    assert_null(bytes);
    psi_ctx_free(ctx);
}

static psi_status encode(psi_ctx *ctx, void *argument)
{
    uint8_t *bytes;
    size_t size;
    const psi_status status = report_png(ctx, 2, 2, 1, argument, &bytes, &size);
    base_free(ctx, bytes);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    uint8_t pixels[4] = {1, 2, 3, 4};
    assert_in_range(test_fault_sweep(encode, pixels), 1, 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pixels_come_back),
        cmocka_unit_test(impossible_sizes_are_refused),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
