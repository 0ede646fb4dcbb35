// Vectors: looks that stand apart are compared as a table first, which is exact and quick. What
// that leaves open is asked of cells of looks, which may be of any shape and mix latent states.
#include "cluster/clustering.h"

#include "base/context.h"
#include "verdict/contexts.h"
#include "verdict/sight.h"

// Whether a look that stands apart is several by what is seen of it: then looks do not stand apart
// where it matters.
static psi_status is_several(clustering_run *run, const problem_looks *tree, bool *several)
{
    psi_status status = PSI_OK;
    const by_evidence_options how = {.max_refinements = run->options->max_refinements,
                                     .max_latent_states = run->options->max_latent_states};
    double share;
    int32_t worst;
    *several = true;
    problem_outcome_rewards_free(run->ctx, &run->outcomes);
    TRY(problem_outcome_rewards(run->ctx, &run->problem, &run->looks, &run->outcomes));
    TRY(refine_by_evidence(run->ctx, &run->problem, &run->looks, &run->outcomes, &how,
                           &run->found));
    TRY(verdict_ask_looks(run->ctx, &run->problem, &run->outcomes, tree, run->looks.leaf,
                          run->looks.n_leaves, run->found.labels, run->found.n_latent,
                          REFINE_ALLOWED, &share, &worst));
    if (share > 0.0) goto done;
    TRY(verdict_ask_sight(run->ctx, &run->problem, tree, run->looks.leaf, run->looks.n_leaves,
                          run->found.labels, REFINE_ALLOWED, 0.0, several));
done:
    refine_by_evidence_free(run->ctx, &run->found);
    return status;
}

// *apart: they do, and run->found is what follows from that.
static psi_status group_apart(clustering_run *run, size_t width, const float *weight, bool by_means,
                              bool *apart)
{
    psi_status status = PSI_OK;
    problem_looks tree = run->looks;
    bool several;
    *apart = false;
    TRY(problem_looks_apart(run->ctx, &run->problem, width, run->vectors, weight, by_means,
                            CLUSTER_FEWEST_VISITS, &run->looks));
    if (run->looks.n_leaves == 0) goto done;
    TRY(is_several(run, &tree, &several));
    if (several) goto done;
    TRY(cluster_group_looks(run));
    *apart = true;
done:
    if (run->looks.leaf != tree.leaf) problem_looks_free(run->ctx, &run->looks);
    run->looks = tree;
    return status;
}

// Numbers as they are come first: they may have one unit, as pixels do, and those that vary by
// noise alone are small. Then as numbers of units of their own. Nearest rows tell clumps of any
// shape; in many dimensions they are the exceptions among many pairs, and means tell more. Where
// looks stand apart, the data say no more than a table of them does: cells would take for granted
// that what looks alike is alike.
psi_status cluster_group_vectors(clustering_run *run, size_t width, const float *deviation,
                                 bool *apart)
{
    psi_status status = PSI_OK;
    *apart = false;
    for (size_t turn = deviation ? 0 : 2; turn < 4 && !*apart; turn++) {
        TRY(group_apart(run, width, turn < 2 ? deviation : NULL, turn % 2 == 1, apart));
    }
    if (!*apart) TRY(cluster_group_looks(run));
done:
    return status;
}
