#include "data/jpeg.h"

#include "base/context.h"

#include <string.h>
#include <turbojpeg.h>

struct data_jpeg_decoder {
    tjhandle handle;
};

enum { LONGEST_SIDE = 16384 };

bool data_jpeg_recognised(const void *bytes, size_t size)
{
    return size >= 4 && memcmp(bytes, "\xff\xd8\xff", 3) == 0;
}

psi_status data_jpeg_decoder_new(psi_ctx *ctx, data_jpeg_decoder **out)
{
    psi_status status = base_alloc_zero(ctx, 1, sizeof **out, out);
    if (status != PSI_OK) return status;
    (*out)->handle = tjInitDecompress();
    if ((*out)->handle) return PSI_OK;
    base_free(ctx, *out);
    *out = NULL;
    return FAIL(ctx, PSI_ENOMEM, "no memory for a JPEG decoder");
}

void data_jpeg_decoder_free(psi_ctx *ctx, data_jpeg_decoder *decoder)
{
    if (!decoder) return;
    tjDestroy(decoder->handle);
    base_free(ctx, decoder);
}

psi_status data_jpeg_shape(psi_ctx *ctx, data_jpeg_decoder *decoder, const char *name,
                           const void *bytes, size_t size, psi_shape *out)
{
    int width = 0, height = 0, subsampling = 0, colours = 0; // not set if there are only tables
    if (!data_jpeg_recognised(bytes, size)) {
        return FAIL(ctx, PSI_EFORMAT, "%s: a frame does not begin like a JPEG image", name);
    }
    if (tjDecompressHeader3(decoder->handle, bytes, size, &width, &height, &subsampling,
                            &colours) != 0) {
        return FAIL(ctx, PSI_EFORMAT, "%s: a JPEG frame is damaged: %s", name,
                    tjGetErrorStr2(decoder->handle));
    }
    if (width < 1 || height < 1) {
        return FAIL(ctx, PSI_EFORMAT, "%s: a JPEG frame is damaged: it has no pixels", name);
    }
    if (width > LONGEST_SIDE || height > LONGEST_SIDE) {
        return FAIL(ctx, PSI_ELIMIT, "%s: a JPEG frame of %d × %d pixels is too large", name,
                    height, width);
    }
    *out = (psi_shape){.rank = colours == TJCS_GRAY ? 2 : 3,
                       .dim = {(size_t)height, (size_t)width, colours == TJCS_GRAY ? 0 : 3}};
    return PSI_OK;
}

psi_status data_jpeg_decode(psi_ctx *ctx, data_jpeg_decoder *decoder, const char *name,
                            const void *bytes, size_t size, const psi_shape *shape, void *out)
{
    psi_shape found = {0};
    const psi_status status = data_jpeg_shape(ctx, decoder, name, bytes, size, &found);
    if (status != PSI_OK) return status;
    if (found.rank != shape->rank || memcmp(found.dim, shape->dim, sizeof found.dim) != 0) {
        return FAIL(ctx, PSI_EDATA,
                    "%s: a JPEG frame is %zu × %zu × %zu, the first is %zu × %zu × %zu", name,
                    found.dim[0], found.dim[1], found.rank == 2 ? 1 : found.dim[2], shape->dim[0],
                    shape->dim[1], shape->rank == 2 ? 1 : shape->dim[2]);
    }
    const int format = shape->rank == 2 ? TJPF_GRAY : TJPF_RGB;
    const int pitch = (int)(shape->dim[1] * (shape->rank == 2 ? 1 : 3));
    // The accurate transform is what other decoders use by default: the same pixels everywhere.
    if (tjDecompress2(decoder->handle, bytes, size, out, (int)shape->dim[1], pitch,
                      (int)shape->dim[0], format, TJFLAG_ACCURATEDCT) != 0) {
        return FAIL(ctx, PSI_EFORMAT, "%s: a JPEG frame is damaged: %s", name,
                    tjGetErrorStr2(decoder->handle));
    }
    return PSI_OK;
}
