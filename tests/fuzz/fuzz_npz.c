#include "fuzz_data.h"
#include "mutate_npz.h"

// The same file as plain arrays: every name that the seed inputs have, as every type.
static void load_arrays(psi_ctx *ctx, const char *path)
{
    static const char *const names[] = {NULL, "observations", "actions", "rewards", "terminated"};
    static const psi_dtype types[] = {PSI_UINT8, PSI_INT32, PSI_INT64, PSI_FLOAT32, PSI_FLOAT64};
    for (int i = 0; i < 25; i++) {
        const psi_dtype type = types[i % 5];
        psi_shape shape;
        void *data;
        const psi_status status = psi_array_load(ctx, path, names[i / 5], type, &shape, &data);
        if ((status == PSI_OK) != (data != NULL) || status == PSI_EINTERNAL) abort();
        if (status != PSI_OK) continue;
        volatile char sink = 0;
        const size_t bytes = psi_shape_size(&shape) * psi_dtype_size(type);
        if (bytes > 0) sink = (char)(((char *)data)[0] ^ ((char *)data)[bytes - 1]);
        (void)sink;
        psi_array_free(ctx, data);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    fuzz_data_set(bytes, size, load_arrays);
    return 0;
}
