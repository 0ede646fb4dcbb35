// Do the members of groups that somebody else has made follow one law?
#include "base/context.h"
#include "evidence/groups.h"
#include "evidence/share.h"

#include <math.h>

psi_status psi_misfit(psi_ctx *ctx, const psi_forest *forest, const psi_draws *draws,
                      size_t n_groups, const int32_t *group, float *nats, float *same)
{
    psi_status status = PSI_OK;
    evidence_rows rows = {0};
    evidence_groups groups = {0};
    size_t end;
    const bool shared = evidence_is_shared(ctx, forest, draws);
    TRY(evidence_rows_new(ctx, forest, draws, &rows));
    TRY(evidence_groups_new(ctx, &rows, &groups));
    groups.exact = !forest->looks;
    TRY(evidence_groups_reserve(ctx, &groups, n_groups));
    for (size_t v = 0; v < rows.n_nodes; v++) {
        if (forest->left[v] < 0 && group[v] >= 0) {
            TRY(evidence_groups_add(ctx, &groups, (size_t)group[v], v));
        }
    }
    TRY(evidence_learn_concentration(ctx, &groups));
    for (size_t v = evidence_own_part(ctx, shared, rows.n_nodes, &end); v < end; v++) {
        const size_t g = (size_t)group[v];
        nats[v] = -HUGE_VALF;
        if (same) same[v] = HUGE_VALF;
        if (group[v] < 0 || !evidence_is_followed(&rows, v) || groups.cells[g] < 2) continue;
        const double fit = evidence_fit(&groups, g, v, true, -HUGE_VAL);
        nats[v] = (float)(evidence_novel(&groups, g, v, true) - fit);
        if (same) same[v] = (float)(fit - evidence_novel(&groups, groups.n, v, false));
    }
    TRY(evidence_fill_in(ctx, shared, nats, sizeof *nats, rows.n_nodes));
    if (same) TRY(evidence_fill_in(ctx, shared, same, sizeof *same, rows.n_nodes));
done:
    evidence_groups_free(ctx, &groups);
    evidence_rows_free(ctx, &rows);
    return status;
}
