#include "learn/share.h"

#include "base/comm.h"
#include "base/context.h"

psi_status learn_share_net(psi_ctx *ctx, psi_net *net)
{
    psi_status status = PSI_OK;
    float *values = NULL;
    for (size_t i = 0; base_ranks(ctx) > 1 && i < psi_net_tensor_count(net); i++) {
        psi_tensor_info info;
        TRY(psi_net_tensor_info(ctx, net, i, &info));
        const size_t n = psi_shape_size(&info.shape);
        base_free(ctx, values);
        values = NULL;
        TRY(base_alloc(ctx, n, sizeof *values, &values));
        TRY(psi_net_tensor_get(ctx, net, i, values));
        TRY(base_broadcast(ctx, values, n * sizeof *values, 0));
        TRY(psi_net_tensor_set(ctx, net, i, values));
    }
done:
    base_free(ctx, values);
    return status;
}
