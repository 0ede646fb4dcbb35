#include "fuzz_data.h"
#include "mutate_npz.h"

// The same file as a plain array: one of the names that the seed inputs have, as one of the types.
// Which one, the file itself says: all 25 pairs would open it 50 times, and cost most of the time.
static void load_array(psi_ctx *ctx, const char *path, uint32_t choice)
{
    static const char *const names[] = {NULL, "observations", "actions", "rewards", "terminated"};
    static const psi_dtype types[] = {PSI_UINT8, PSI_INT32, PSI_INT64, PSI_FLOAT32, PSI_FLOAT64};
    const psi_dtype type = types[choice % 5];
    psi_shape shape;
    void *data;
    const psi_status status = psi_array_load(ctx, path, names[choice / 5 % 5], type, &shape, &data);
    if ((status == PSI_OK) != (data != NULL) || status == PSI_EINTERNAL) abort();
    if (status != PSI_OK) return;
    volatile char sink = 0;
    const size_t bytes = psi_shape_size(&shape) * psi_dtype_size(type);
    if (bytes > 0) sink = (char)(((char *)data)[0] ^ ((char *)data)[bytes - 1]);
    (void)sink;
    psi_array_free(ctx, data);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    fuzz_data_set(bytes, size, load_array);
    return 0;
}
