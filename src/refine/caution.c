#include "base/comm.h"
#include "base/context.h"
#include "refine/refining.h"

#include <math.h>
#include <string.h>

// How many leaves share what is known of them with others, and how many of these the data say so of
// (alike); whether all groups are clearly apart.
static psi_status count_shared(refining *run, double *shared, double *alike, bool *apart)
{
    psi_status status = PSI_OK;
    const psi_grouping *groups = run->found->grouping;
    const int32_t first = run->problem->has_terminal ? 1 : 0;
    int64_t *known = NULL; // (nodes)
    uint32_t *size = NULL;
    TRY(base_alloc(run->ctx, run->looks->forest.n_nodes, sizeof *known, &known));
    TRY(base_alloc_zero(run->ctx, groups->n_groups, sizeof *size, &size));
    for (size_t v = 0; v < run->looks->forest.n_nodes; v++) known[v] = -1;
    for (size_t i = 0; i < run->problem->n_states; i++) {
        const uint64_t row = run->problem->states[i];
        const int32_t leaf = run->looks->leaf[row];
        if (leaf >= 0) known[leaf] = run->known[row] - first; // as in find_known
    }
    TRY(base_maximum(run->ctx, known, run->looks->forest.n_nodes));
    for (size_t v = 0; v < run->looks->forest.n_nodes; v++) {
        if (known[v] >= 0) size[known[v]]++;
    }
    *shared = *alike = 0.0;
    *apart = true;
    for (size_t v = 0; v < run->looks->forest.n_nodes; v++) {
        if (groups->group[v] < 0) continue;
        *apart &= known[v] == groups->group[v];
        if (known[v] < 0 || size[known[v]] < 2) continue;
        ++*shared;
        *alike += (double)groups->same[v] >= REFINE_CLEAR && groups->same[v] < HUGE_VALF;
    }
done:
    base_free(run->ctx, size);
    base_free(run->ctx, known);
    return status;
}

// Two latent states that clear (n_rows) has as one of its n.
static psi_status find_unclear(refining *run, const int32_t *clear, size_t n)
{
    psi_status status = PSI_OK;
    by_evidence *found = run->found;
    int32_t *one = NULL, *pair; // one (n + 2): the first of each; then the pair, as it is found
    TRY(base_alloc(run->ctx, n + 2, sizeof *one, &one));
    for (size_t k = 0; k < n + 2; k++) one[k] = -1;
    pair = one + n;
    TRY(base_take_turn(run->ctx, one, (n + 2) * sizeof *one));
    for (size_t i = 0; i < run->problem->n_states && pair[0] < 0; i++) {
        const uint64_t row = run->problem->states[i];
        const int32_t k = clear[row], label = found->labels[row];
        if (k < 0 || label < 0) continue;
        if (one[k] < 0) one[k] = label;
        if (one[k] == label) continue;
        pair[0] = one[k];
        pair[1] = label;
    }
    TRY(base_end_turn(run->ctx, one, (n + 2) * sizeof *one));
    found->unclear = pair[0] >= 0;
    memcpy(found->unclear_pair, pair, sizeof found->unclear_pair);
done:
    base_free(run->ctx, one);
    return status;
}

// A split that rests on chance is not seen as such once it was made: whatever leads to its halves
// is split as well, clearly, and where these lead back, they support it. So latent states have to
// be clearly apart when they are first told apart, at first: each of n leaves may seem to be of
// another latent state than its like by chance. Once fewer share a latent state, fewer may. What
// is told apart after that, by what is more probable, is not clear.
psi_status refine_with_caution(refining *run)
{
    psi_status status = PSI_OK;
    by_evidence *found = run->found;
    int32_t *clear = NULL;
    double shared = (double)run->looks->n_leaves, alike;
    bool apart = false;
    for (size_t turn = 0; turn < 2; turn++) {
        run->clear = refine_safe_nats(shared);
        TRY(refine_until_nothing_changes(run));
        if (found->n_steps >= run->options->max_refinements) goto done;
        TRY(count_shared(run, &shared, &alike, &apart));
        if (apart && found->converged) goto done; // nothing is left to be told apart
    }
    TRY(base_alloc(run->ctx, run->problem->n_rows, sizeof *clear, &clear));
    memcpy(clear, run->known, run->problem->n_rows * sizeof *clear);
    const size_t n = found->n_latent;
    // to be told apart from its like has odds of one to the number of those that clearly are not
    run->clear = 0.0;
    run->caution = log(fmax(alike, 1.0));
    TRY(refine_until_nothing_changes(run));
    TRY(find_unclear(run, clear, n));
done:
    base_free(run->ctx, clear);
    return status;
}
