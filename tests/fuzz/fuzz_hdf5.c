#include "fuzz_data.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    fuzz_data_set(bytes, size, NULL);
    return 0;
}
