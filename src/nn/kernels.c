// Which kernels this machine can run.
#include "nn/kernels.h"

#include "base/context.h"

#include <string.h>

psi_status nn_kernels_choose(psi_ctx *ctx, const char *name, const nn_kernels **out)
{
    const nn_kernels *found[3]; // the best first
    size_t n = 0;
#if defined(__x86_64__) && !defined(PSI_NN_DOUBLE)
    if (__builtin_cpu_supports("avx512f")) found[n++] = &nn_kernels_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        found[n++] = &nn_kernels_avx2;
    }
#endif
    found[n++] = &nn_kernels_portable;
    for (size_t i = 0; i < n; i++) {
        if (name && strcmp(name, found[i]->name) != 0) continue;
        *out = found[i];
        return PSI_OK;
    }
    return FAIL(ctx, PSI_EUNSUPPORTED, "this machine has no kernels '%s'; the best it has are '%s'",
                name, found[0]->name);
}
