#include "evidence/check.h"

#include "base/context.h"

#include <math.h>

psi_status evidence_check(psi_ctx *ctx, const psi_forest *forest, const psi_draws *draws)
{
    if (!(forest->impurity >= 0.0 && isfinite(forest->impurity))) {
        return FAIL(ctx, PSI_ESHAPE, "an impurity of %g is none", forest->impurity);
    }
    for (size_t v = 0; v < forest->n_nodes; v++) {
        const int32_t children[] = {forest->left[v], forest->right[v]};
        if (children[0] == -1) continue;
        for (int i = 0; i < 2; i++) {
            if (children[i] <= (int64_t)v || (size_t)children[i] >= forest->n_nodes) {
                return FAIL(ctx, PSI_ESHAPE, "node %zu of %zu has the child %d, which is none", v,
                            forest->n_nodes, children[i]);
            }
        }
    }
    for (size_t f = 0; f < draws->n_families; f++) {
        if (draws->family[f] > draws->family[f + 1]) {
            return FAIL(ctx, PSI_ESHAPE, "the outcomes of family %zu end before they begin", f);
        }
    }
    for (size_t i = 0; i < draws->n; i++) {
        if (draws->node[i] >= forest->n_nodes ||
            draws->outcome[i] >= draws->family[draws->n_families]) {
            return FAIL(ctx, PSI_ESHAPE, "draw %zu is outcome %u of node %u: there is no such one",
                        i, draws->outcome[i], draws->node[i]);
        }
    }
    return PSI_OK;
}
