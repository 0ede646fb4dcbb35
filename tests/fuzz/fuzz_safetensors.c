// Fuzzes the reader of model files: whatever the bytes, it says no, or it yields tensors that lie
// inside them, do not overlap, and can be found by name.
#include "nn/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    psi_ctx *ctx;
    nn_safetensors *file;
    REQUIRE(psi_ctx_new(&(psi_options){.size = sizeof(psi_options), .threads = 1}, &ctx) == PSI_OK);
    const psi_status status = nn_safetensors_parse(ctx, "fuzz", bytes, size, &file);
    if (status == PSI_OK) {
        size_t total = 0;
        for (size_t i = 0; i < nn_safetensors_count(file); i++) {
            const nn_named_tensor *tensor = nn_safetensors_at(file, i);
            size_t n;
            REQUIRE(nn_named_tensor_bytes(tensor, &n));
            REQUIRE(nn_safetensors_find(file, tensor->name) == tensor);
            REQUIRE((const uint8_t *)tensor->data >= bytes);
            REQUIRE((const uint8_t *)tensor->data + n <= bytes + size);
            uint8_t *copy = malloc(n + 1);
            REQUIRE(copy);
            REQUIRE(nn_safetensors_load(file, tensor, copy) == PSI_OK);
            free(copy);
            total += n;
        }
        REQUIRE(total <= size); // no byte belongs to two tensors
    } else {
        REQUIRE(file == NULL);
        REQUIRE(status == PSI_EFORMAT || status == PSI_EUNSUPPORTED);
        REQUIRE(psi_error(ctx)->message[0] != '\0');
    }
    nn_safetensors_free(file);
    psi_ctx_free(ctx);
    return 0;
}
