// The coarsest bisimulation of an MDP, by the quotient of the model that it is.
#include <psifold/mdp.h>

#include "base/context.h"

psi_status psi_bisimulation(psi_ctx *ctx, const psi_mdp *mdp, double tolerance, psi_partition **out)
{
    psi_status status = PSI_OK;
    psi_model *model = NULL;
    psi_quotient_result *found = NULL;
    psi_quotient_options how = psi_quotient_defaults();
    *out = NULL;
    if (FREED(ctx, mdp)) return PSI_EUSAGE;
    if (!(tolerance >= 0.0)) return FAIL(ctx, PSI_EUSAGE, "a tolerance of %g", tolerance);
    how.tolerance = tolerance > 0.0 ? tolerance : 1e-9;
    TRY(psi_mdp_check(ctx, mdp, true));
    TRY(psi_model_from_mdp(ctx, mdp, &model));
    TRY(psi_quotient_find(ctx, model, &how, &found));
    TRY(psi_partition_canonical(ctx, found->partition, mdp->terminal));
    *out = found->partition;
    found->partition = NULL;
done:
    psi_quotient_free(ctx, found);
    psi_model_free(ctx, model);
    return status;
}
