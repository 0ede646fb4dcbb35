// Small pictures as PNG in memory, through libpng.
#ifndef PSI_REPORT_PNG_H
#define PSI_REPORT_PNG_H

#include <psifold/base.h>

// pixels (height, width, channels), channels 1 (grey) or 3 (RGB). *out belongs to the caller.
psi_status report_png(psi_ctx *ctx, size_t width, size_t height, size_t channels,
                      const uint8_t *pixels, uint8_t **out, size_t *size);

#endif
