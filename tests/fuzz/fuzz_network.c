// Anything as the file of a network: its tensors, and the description of it in the metadata.
#include "fuzz_files.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char path[256];
    (void)fuzz_first_time();
    psi_ctx *ctx = fuzz_ctx();
    psi_net *net;
    fuzz_put("net.safetensors", bytes, size);
    const psi_status status = psi_net_load(ctx, fuzz_path(path, "net.safetensors"), &net);
    fuzz_judge(ctx, status);
    REQUIRE((status == PSI_OK) == (net != NULL));
    if (net) REQUIRE(psi_net_n_outputs(net) > 0);
    psi_net_free(ctx, net);
    psi_ctx_free(ctx);
    return 0;
}
