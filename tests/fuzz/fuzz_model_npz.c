// One input as a model in psifold's own .npz. What can be read is folded and written again.
#include "fuzz_files.h"
#include "mutate_npz.h"

#include "cli/model_npz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void fold(psi_ctx *ctx, psi_model *model)
{
    char path[256];
    psi_quotient_result *found;
    REQUIRE(psi_quotient_find(ctx, model, NULL, &found) == PSI_OK);
    REQUIRE(found->partition->n_blocks <= model->n_states);
    REQUIRE(cli_model_npz_write(ctx, found->model, fuzz_path(path, "small.npz")) == PSI_OK);
    psi_quotient_free(ctx, found);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char path[256];
    psi_model *model;
    (void)fuzz_first_time();
    psi_ctx *ctx = fuzz_ctx();
    fuzz_put("model.npz", bytes, size);
    const psi_status status = cli_model_npz_read(ctx, fuzz_path(path, "model.npz"), &model);
    fuzz_judge(ctx, status);
    REQUIRE((status == PSI_OK) == (model != NULL));
    if (model) fold(ctx, model);
    psi_model_free(ctx, model);
    psi_ctx_free(ctx);
    return 0;
}
