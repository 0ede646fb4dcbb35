// JPEG frames through libturbojpeg: grey or colour, as they were encoded.
#ifndef PSI_DATA_JPEG_H
#define PSI_DATA_JPEG_H

#include <psifold/base.h>

typedef struct data_jpeg_decoder data_jpeg_decoder; // one per thread

bool data_jpeg_recognised(const void *bytes, size_t size); // by its first bytes FF D8 FF

psi_status data_jpeg_decoder_new(psi_ctx *ctx, data_jpeg_decoder **out);
void data_jpeg_decoder_free(psi_ctx *ctx, data_jpeg_decoder *decoder);

// (height, width) of a grey frame, (height, width, 3) of a colour one. PSI_EFORMAT names name.
psi_status data_jpeg_shape(psi_ctx *ctx, data_jpeg_decoder *decoder, const char *name,
                           const void *bytes, size_t size, psi_shape *out);

// Decodes a frame that must have this shape. PSI_EFORMAT if it is damaged.
psi_status data_jpeg_decode(psi_ctx *ctx, data_jpeg_decoder *decoder, const char *name,
                            const void *bytes, size_t size, const psi_shape *shape, void *out);

#endif
