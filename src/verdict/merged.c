// Observations that were put together: would the data have shown it, if they differed? A latent
// state of one observation is what it is, however rarely it was seen. One of several claims that
// these are the same, and that nothing speaks against it says little where little was seen.
#include "verdict/chance.h"
#include "verdict/units.h"

#include "base/checked.h"
#include "base/context.h"

// Whether every action was taken often enough in a unit to show that it is not one of the others of
// its latent state; if not, what is missing. Where the largest took an action more often than all
// others, it is the one that these are compared with.
static psi_status ask_unit(judging *run, const units *all, size_t u, const chance *chances,
                           const double *total, bool is_largest, bool *shown)
{
    psi_status status = PSI_OK;
    const size_t actions = run->problem->data->n_actions, g = (size_t)all->group[u];
    const int32_t first = run->result->has_terminal ? 1 : 0;
    *shown = true;
    for (size_t a = 0; a < actions; a++) {
        const double n = (double)all->visits[u * actions + a], whole = total[g * actions + a];
        if (is_largest && 2.0 * n >= whole) continue;
        const chance *of = &chances[(g + (size_t)first) * actions + a];
        if (verdict_shows(of, n, whole - n)) continue;
        *shown = false;
        if (whole == 0.0) continue; // reported already
        TRY(verdict_doubt(run, (psi_doubt){.kind = PSI_DOUBT_RARE,
                                           .state = (int32_t)g + first,
                                           .other = (int32_t)a,
                                           .visits = all->visits[u * actions + a],
                                           .enough = verdict_draws_that_show(of, whole - n)}));
    }
done:
    return status;
}

psi_status verdict_ask_merged(judging *run, const units *all, uint8_t *several, size_t *doubtful)
{
    psi_status status = PSI_OK;
    const size_t actions = run->problem->data->n_actions;
    const size_t groups = run->found->grouping->n_groups;
    size_t *largest = NULL; // (groups) the unit that the others are compared with, one more
    double *total = NULL;   // (groups, A) draws
    chance *chances = NULL; // (K, A)
    bool shown;
    TRY(base_alloc_zero(run->ctx, groups, sizeof *largest, &largest));
    TRY(base_alloc_zero(run->ctx, groups * actions, sizeof *total, &total));
    TRY(verdict_chances_new(run, 0.0, &chances));
    *doubtful = 0;
    for (size_t g = 0; g < groups; g++) several[g] = 0;
    for (size_t u = 0; u < all->n; u++) {
        if (all->group[u] < 0) continue;
        const size_t g = (size_t)all->group[u];
        for (size_t a = 0; a < actions; a++) {
            total[g * actions + a] += (double)all->visits[u * actions + a];
        }
        several[g] = largest[g] > 0;
        if (largest[g] == 0 || all->rows[u] > all->rows[largest[g] - 1]) largest[g] = u + 1;
    }
    for (size_t u = 0; u < all->n; u++) {
        if (all->group[u] < 0) continue;
        if (!several[all->group[u]]) continue;
        TRY(ask_unit(run, all, u, chances, total, largest[all->group[u]] == u + 1, &shown));
        if (!shown) *doubtful += all->rows[u];
    }
done:
    base_free(run->ctx, chances);
    base_free(run->ctx, total);
    base_free(run->ctx, largest);
    return status;
}
