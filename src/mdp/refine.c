// Algorithm 1 on tables: reward refinement, then successor-feature refinement until nothing
// changes. The functions f_r and f_i of the paper are the MDP's own numbers here.
#include <psifold/mdp.h>

#include "base/checked.h"
#include "base/context.h"
#include "mdp/cover.h"
#include "mdp/csr.h"

#include <math.h>

psi_refine_options psi_refine_defaults(void)
{
    return (psi_refine_options){.gamma = 0.4, .epsilon_sf = 1e-7, .norm = PSI_L2};
}

static psi_status check_options(psi_ctx *ctx, const psi_refine_options *options)
{
    if (!(options->gamma > 0.0 && options->gamma < 1.0)) {
        return FAIL(ctx, PSI_EUSAGE, "gamma is %g; refinement needs one between 0 and 1",
                    options->gamma);
    }
    if (!(options->epsilon_sf > 0.0) || !(options->epsilon_reward >= 0.0)) {
        return FAIL(ctx, PSI_EUSAGE,
                    "epsilons of %g (rewards) and %g (successor features) cannot "
                    "be used",
                    options->epsilon_reward, options->epsilon_sf);
    }
    return PSI_OK;
}

// c_1(s) = c_1(s̃) ⟹ Σ_a |r(s,a) − r(s̃,a)| ≤ ε_r (equation 5), on top of c_0 = {terminal, rest}.
static psi_status reward_refinement(psi_ctx *ctx, const psi_mdp *mdp, const int32_t *terminal,
                                    double epsilon, psi_partition **out)
{
    if (epsilon == 0.0) {
        double largest = 0.0;
        for (size_t i = 0; i < mdp->n_states * mdp->n_actions; i++)
            largest = fmax(largest, fabs(mdp->reward[i]));
        epsilon = 1e-9 * largest;
    }
    return mdp_cover(ctx, mdp->n_states, mdp->n_actions, 1, mdp->reward, terminal, PSI_L1, epsilon,
                     out);
}

// ψ(s,a) = e_c(s) + γ Fᵀ p(·|s,a) for all pairs, into memory of the caller's (S, A, K).
static psi_status predict_successor_features(psi_ctx *ctx, const psi_mdp *mdp,
                                             const psi_partition *c, double gamma, double **psi)
{
    psi_status status = PSI_OK;
    const size_t n_rows = mdp->n_states * mdp->n_actions, n_blocks = c->n_blocks;
    psi_mdp *latent = NULL;
    psi_lsfm *lsfm = NULL;
    mdp_csr rows = {0};
    double *p = NULL;
    int32_t *labels = NULL;
    size_t size;
    *psi = NULL;
    if (!base_mul(n_rows, n_blocks, &size))
        TRY(FAIL(ctx, PSI_ELIMIT, "too many states, actions and blocks"));
    TRY(psi_quotient(ctx, mdp, c, &latent, NULL));
    TRY(psi_lsfm_new(ctx, latent, gamma, &lsfm));
    TRY(mdp_block_rows(ctx, mdp, c, &rows));
    TRY(base_alloc_zero(ctx, size, sizeof *p, &p));
    TRY(base_alloc(ctx, size, sizeof **psi, psi));
    TRY(base_alloc(ctx, n_rows, sizeof *labels, &labels));
    for (size_t row = 0; row < n_rows; row++) {
        labels[row] = c->label[row / mdp->n_actions];
        for (uint64_t i = rows.offsets[row]; i < rows.offsets[row + 1]; i++)
            p[row * n_blocks + (size_t)rows.column[i]] = rows.value[i];
    }
    TRY(psi_lsfm_predict(ctx, lsfm, n_rows, labels, p, *psi));
done:
    base_free(ctx, labels);
    base_free(ctx, p);
    mdp_csr_free(ctx, &rows);
    psi_lsfm_free(ctx, lsfm);
    psi_mdp_free(ctx, latent);
    if (status != PSI_OK) {
        base_free(ctx, *psi);
        *psi = NULL;
    }
    return status;
}

// c_{i+1}(s) = c_{i+1}(s̃) ⟹ Σ_a ‖ψ_i(s,a) − ψ_i(s̃,a)‖ ≤ ε_ψ (equation 9).
static psi_status successor_feature_refinement(psi_ctx *ctx, const psi_mdp *mdp,
                                               const psi_partition *c, const int32_t *terminal,
                                               const psi_refine_options *options,
                                               psi_partition **out)
{
    psi_status status = PSI_OK;
    double *psi = NULL;
    *out = NULL;
    TRY(predict_successor_features(ctx, mdp, c, options->gamma, &psi));
    TRY(mdp_cover(ctx, mdp->n_states, mdp->n_actions, c->n_blocks, psi,
                  options->recluster ? terminal : c->label, options->norm, options->epsilon_sf,
                  out));
done:
    base_free(ctx, psi);
    return status;
}

static psi_status record(psi_ctx *ctx, psi_refinement *refinement, size_t clusters)
{
    const psi_status status = base_resize(ctx, refinement->n_refinements + 1,
                                          sizeof *refinement->clusters, &refinement->clusters);
    if (status == PSI_OK) refinement->clusters[refinement->n_refinements++] = clusters;
    return status;
}

psi_status psi_refine(psi_ctx *ctx, const psi_mdp *mdp, const psi_refine_options *options,
                      psi_refinement **out)
{
    psi_status status = PSI_OK;
    const psi_refine_options chosen = options ? *options : psi_refine_defaults();
    const size_t limit = chosen.max_refinements ? chosen.max_refinements : mdp->n_states + 2;
    psi_refinement *refinement = NULL;
    psi_partition *next = NULL;
    int32_t *terminal = NULL;
    *out = NULL;
    TRY(check_options(ctx, &chosen));
    TRY(psi_mdp_check(ctx, mdp, true));
    TRY(base_alloc_zero(ctx, 1, sizeof *refinement, &refinement));
    TRY(base_alloc(ctx, mdp->n_states, sizeof *terminal, &terminal));
    for (size_t s = 0; s < mdp->n_states; s++) terminal[s] = mdp->terminal[s] != 0;

    TRY(reward_refinement(ctx, mdp, terminal, chosen.epsilon_reward, &refinement->partition));
    TRY(record(ctx, refinement, refinement->partition->n_blocks));
    while (!refinement->converged && refinement->n_refinements < limit) {
        TRY(base_cancelled(ctx));
        TRY(successor_feature_refinement(ctx, mdp, refinement->partition, terminal, &chosen,
                                         &next));
        TRY(record(ctx, refinement, next->n_blocks));
        TRY(psi_partition_equal(ctx, refinement->partition, next, &refinement->converged));
        psi_partition_free(ctx, refinement->partition);
        refinement->partition = next;
        next = NULL;
    }
    TRY(psi_partition_canonical(ctx, refinement->partition, mdp->terminal));
    *out = refinement;
    refinement = NULL;
done:
    base_free(ctx, terminal);
    psi_partition_free(ctx, next);
    psi_refinement_free(ctx, refinement);
    return status;
}

void psi_refinement_free(psi_ctx *ctx, psi_refinement *refinement)
{
    if (!refinement) return;
    psi_partition_free(ctx, refinement->partition);
    base_free(ctx, refinement->clusters);
    base_free(ctx, refinement);
}
