// Anything as the JSON of a task. What is taken is written and read again as the same.
#include "fuzz_files.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    psi_ctx *ctx = fuzz_ctx();
    psi_task task, again;
    char text[PSI_TASK_JSON_SIZE], twice[PSI_TASK_JSON_SIZE];
    char *input = malloc(size + 1);
    REQUIRE(input);
    memcpy(input, bytes, size);
    input[size] = '\0';
    const psi_status status = psi_task_from_json(ctx, input, &task);
    fuzz_judge(ctx, status);
    if (status == PSI_OK && psi_task_json(ctx, &task, text) == PSI_OK) {
        REQUIRE(psi_task_from_json(ctx, text, &again) == PSI_OK);
        REQUIRE(psi_task_json(ctx, &again, twice) == PSI_OK);
        REQUIRE(strcmp(text, twice) == 0);
    }
    free(input);
    psi_ctx_free(ctx);
    return 0;
}
