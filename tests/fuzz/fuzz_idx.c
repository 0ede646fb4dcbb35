// Anything as an IDX file, and as a pair of them: the first two bytes say where the labels begin.
#include "env/digits.h"

#include "base/context.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    psi_ctx *ctx;
    env_idx images, labels;
    if (size < 2 ||
        psi_ctx_new(&(psi_options){.size = sizeof(psi_options), .threads = 1}, &ctx) != PSI_OK)
        return 0;
    size_t split = (size_t)data[0] << 8 | data[1];
    data += 2;
    size -= 2;
    split = split < size ? split : size;
    // what is accepted lies inside the file, to the last byte
    if (env_idx_parse(ctx, "images", data, split, &images) == PSI_OK) {
        size_t elements = 1;
        for (size_t i = 0; i < images.rank; i++) elements *= images.dim[i];
        if (images.data + elements != data + split) abort();
        if (env_idx_parse(ctx, "labels", data + split, size - split, &labels) == PSI_OK) {
            env_digits *digits;
            if (env_digits_from_idx(ctx, "pair", &images, &labels, &digits) == PSI_OK) {
                for (unsigned d = 0; d < 10; d++) {
                    if (digits->first[d] >= digits->first[d + 1]) abort();
                }
            }
            env_digits_free(ctx, digits);
        }
    }
    psi_ctx_free(ctx);
    return 0;
}
