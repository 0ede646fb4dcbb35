// MNIST as its four IDX files: two zero bytes, the type (8: bytes), the rank, the dimensions as
// big-endian 32-bit numbers, then the data. The files may have been put into the cache folder by
// anybody: nothing in them is believed.
#include "env/digits.h"

#include "base/checked.h"
#include "base/context.h"
#include "base/file.h"
#include "env/mnist.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TYPE_BYTES = 8, LARGEST_FILE = 1 << 30, MNIST_DIGITS = 10 };

psi_status env_idx_parse(psi_ctx *ctx, const char *name, const uint8_t *bytes, size_t size,
                         env_idx *out)
{
    *out = (env_idx){0};
    if (size < 4 || bytes[0] != 0 || bytes[1] != 0) {
        return FAIL(ctx, PSI_EFORMAT, "%s is not an IDX file: it does not begin like one", name);
    }
    if (bytes[2] != TYPE_BYTES) {
        return FAIL(ctx, PSI_EFORMAT, "%s: IDX elements of type %u, only bytes (8) are read here",
                    name, bytes[2]);
    }
    const size_t rank = bytes[3];
    if (rank < 1 || rank > PSI_MAX_RANK) {
        return FAIL(ctx, PSI_EFORMAT, "%s: an IDX array of %zu dimensions, expected 1 to %d", name,
                    rank, PSI_MAX_RANK);
    }
    const size_t head = 4 + 4 * rank;
    if (size < head) return FAIL(ctx, PSI_EFORMAT, "%s is cut off inside its head", name);
    size_t elements = 1;
    for (size_t i = 0; i < rank; i++) {
        const uint8_t *b = bytes + 4 + 4 * i;
        out->dim[i] = (size_t)b[0] << 24 | (size_t)b[1] << 16 | (size_t)b[2] << 8 | b[3];
        if (!base_mul(elements, out->dim[i], &elements)) {
            return FAIL(ctx, PSI_EFORMAT, "%s: its dimensions are larger than any memory", name);
        }
    }
    if (size - head != elements) {
        return FAIL(ctx, PSI_EFORMAT,
                    "%s is %s: its head announces %zu bytes of data, the file has %zu", name,
                    size - head < elements ? "cut off" : "too long", elements, size - head);
    }
    out->rank = rank;
    out->data = bytes + head;
    return PSI_OK;
}

psi_status env_digits_from_idx(psi_ctx *ctx, const char *name, const env_idx *images,
                               const env_idx *labels, env_digits **out)
{
    psi_status status = PSI_OK;
    env_digits *digits = NULL;
    *out = NULL;
    if (images->rank != 3 || images->dim[1] != PSI_DIGIT_SIDE || images->dim[2] != PSI_DIGIT_SIDE) {
        return FAIL(ctx, PSI_EFORMAT, "%s: these are not images of 28 × 28 pixels", name);
    }
    if (labels->rank != 1 || labels->dim[0] != images->dim[0]) {
        return FAIL(ctx, PSI_EFORMAT, "%s: %zu images, but %zu labels", name, images->dim[0],
                    labels->dim[0]);
    }
    TRY(base_alloc_zero(ctx, 1, sizeof *digits, &digits));
    const size_t n = labels->dim[0];
    uint32_t count[MNIST_DIGITS] = {0};
    for (size_t i = 0; i < n; i++) {
        if (labels->data[i] >= MNIST_DIGITS) {
            status = FAIL(ctx, PSI_EFORMAT, "%s: label %zu is %u, digits go from 0 to 9", name, i,
                          labels->data[i]);
            goto done;
        }
        count[labels->data[i]]++;
    }
    uint32_t next[MNIST_DIGITS] = {0};
    for (int d = 0; d < MNIST_DIGITS; d++) {
        if (count[d] == 0) {
            status = FAIL(ctx, PSI_EFORMAT, "%s: there is no image of the digit %d", name, d);
            goto done;
        }
        next[d] = digits->first[d];
        digits->first[d + 1] = digits->first[d] + count[d];
    }
    TRY(base_alloc(ctx, n, ENV_DIGIT_BYTES, &digits->images));
    for (size_t i = 0; i < n; i++) {
        const size_t place = next[labels->data[i]]++;
        memcpy(digits->images + place * ENV_DIGIT_BYTES, images->data + i * ENV_DIGIT_BYTES,
               ENV_DIGIT_BYTES);
    }
    *out = digits;
    digits = NULL;
done:
    env_digits_free(ctx, digits);
    return status;
}

static psi_status read_idx(psi_ctx *ctx, const char *folder, const char *name, char **bytes,
                           env_idx *out)
{
    psi_status status = PSI_OK;
    char *path = NULL;
    size_t size;
    *bytes = NULL;
    TRY(base_join(ctx, folder, name, &path));
    if (!base_is_there(path)) {
        status = FAIL(ctx, PSI_EMISSING,
                      "%s is not there: run `psifold fetch mnist`, or take --digits drawn", path);
        goto done;
    }
    TRY(base_read_file(ctx, path, LARGEST_FILE, bytes, &size));
    TRY(env_idx_parse(ctx, path, (const uint8_t *)*bytes, size, out));
done:
    base_free(ctx, path);
    return status;
}

psi_status env_digits_mnist(psi_ctx *ctx, bool test, env_digits **out)
{
    psi_status status = PSI_OK;
    char folder[ENV_PATH_SIZE], *image_bytes = NULL, *label_bytes = NULL;
    env_idx images = {0}, labels = {0};
    const env_mnist_file *files = &ENV_MNIST.file[test ? 2 : 0];
    *out = NULL;
    TRY(psi_cache_folder(ctx, folder, sizeof folder));
    TRY(read_idx(ctx, folder, files[0].name, &image_bytes, &images));
    TRY(read_idx(ctx, folder, files[1].name, &label_bytes, &labels));
    TRY(env_digits_from_idx(ctx, files[0].name, &images, &labels, out));
done:
    base_free(ctx, image_bytes);
    base_free(ctx, label_bytes);
    return status;
}
