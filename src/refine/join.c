#include "refine/join.h"

#include "base/context.h"

enum { MOST_REFINEMENTS = 64 };

psi_status refine_join(psi_ctx *ctx, const cluster_problem *problem, size_t max_latent_states,
                       int32_t *labels, size_t *n_latent, size_t *joined)
{
    psi_status status = PSI_OK;
    const size_t first = problem->has_terminal ? 1 : 0;
    const by_evidence_options how = {.max_refinements = MOST_REFINEMENTS,
                                     .max_latent_states = max_latent_states};
    problem_looks table = {0};
    by_evidence found = {0};
    outcome_rewards rewards = {0};
    *joined = 0;
    TRY(problem_looks_of_labels(ctx, problem, labels, *n_latent - first, first, &table));
    TRY(problem_outcome_rewards(ctx, problem, &table, &rewards));
    TRY(refine_by_evidence(ctx, problem, &table, &rewards, &how, &found));
    *joined = *n_latent - found.n_latent;
    for (size_t i = 0; i < problem->n_states; i++) {
        const uint64_t row = problem->states[i];
        if (labels[row] >= 0) labels[row] = found.labels[row];
    }
    *n_latent = found.n_latent;
done:
    problem_outcome_rewards_free(ctx, &rewards);
    refine_by_evidence_free(ctx, &found);
    problem_looks_free(ctx, &table);
    return status;
}
