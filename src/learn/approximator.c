#include "learn/approximator.h"

#include "base/context.h"

void cluster_fit_free(psi_ctx *ctx, cluster_fit *fit)
{
    if (!fit) return;
    base_free(ctx, fit->p);
    psi_work_free(ctx, fit->work);
    psi_net_free(ctx, fit->net);
    base_free(ctx, fit);
}

psi_status cluster_fit_save(psi_ctx *ctx, const cluster_fit *fit, const char *path)
{
    if (!fit->net) return FAIL(ctx, PSI_EUSAGE, "the fit of a table is not kept");
    return psi_net_save(ctx, fit->net, path);
}

void cluster_approximator_free(psi_ctx *ctx, cluster_approximator *approximator)
{
    if (approximator->kind != PSI_APPROXIMATOR_AUTO) approximator->free(approximator->self, ctx);
    *approximator = (cluster_approximator){0};
}
