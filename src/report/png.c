#include "report/png.h"

#include "base/context.h"

#include <png.h>
#include <string.h>

enum { MAX_SIDE = 16384 };

psi_status report_png(psi_ctx *ctx, size_t width, size_t height, size_t channels,
                      const uint8_t *pixels, uint8_t **out, size_t *size)
{
    uint8_t *bytes = NULL;
    *out = NULL;
    *size = 0;
    if (width == 0 || height == 0 || width > MAX_SIDE || height > MAX_SIDE) {
        return FAIL(ctx, PSI_ELIMIT, "a picture of %zu by %zu pixels cannot be made", width,
                    height);
    }
    png_image image;
    memset(&image, 0, sizeof image);
    image.version = PNG_IMAGE_VERSION;
    image.width = (png_uint_32)width;
    image.height = (png_uint_32)height;
    image.format = channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
    png_alloc_size_t room = PNG_IMAGE_PNG_SIZE_MAX(image);
    const psi_status status = base_alloc(ctx, room, 1, &bytes);
    if (status != PSI_OK) return status;
    if (!png_image_write_to_memory(&image, bytes, &room, 0, pixels, 0, NULL)) {
        base_free(ctx, bytes);
        return FAIL(ctx, PSI_EINTERNAL, "libpng: %s", image.message);
    }
    *out = bytes;
    *size = room;
    return PSI_OK;
}
