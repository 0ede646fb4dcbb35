#include "learn/approximator.h"

#include "base/context.h"

void learn_fit_free(psi_ctx *ctx, learn_fit *fit)
{
    if (!fit) return;
    base_free(ctx, fit->p);
    psi_work_free(ctx, fit->work);
    psi_net_free(ctx, fit->net);
    base_free(ctx, fit);
}

psi_status learn_fit_save(psi_ctx *ctx, const learn_fit *fit, const char *path)
{
    if (!fit->net) return FAIL(ctx, PSI_EUSAGE, "the fit of a table is not kept");
    return psi_net_save(ctx, fit->net, path);
}

void learn_approximator_free(psi_ctx *ctx, learn_approximator *approximator)
{
    if (approximator->kind != PSI_APPROXIMATOR_AUTO) approximator->free(approximator->self, ctx);
    *approximator = (learn_approximator){0};
}
