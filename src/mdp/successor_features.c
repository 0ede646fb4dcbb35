// Exact successor features of a finite MDP, and with them Definition 2: what the linear model of
// latent_model.c is judged by.
#include <psifold/mdp.h>

#include "base/blas.h"
#include "base/checked.h"
#include "base/context.h"
#include "mdp/csr.h"

#include <cblas.h>
#include <lapacke.h>
#include <math.h>

// Ψ̄ = (I − γP̄)⁻¹ Φ, all matrices by columns as LAPACK wants them; occupancy is (S, K) on return.
static psi_status mean_occupancy(psi_ctx *ctx, const psi_mdp *mdp, const psi_partition *c,
                                 double gamma, double *occupancy)
{
    psi_status status = PSI_OK;
    const size_t n = mdp->n_states, n_actions = mdp->n_actions;
    double *system = NULL;
    lapack_int *pivots = NULL;
    size_t size;
    if (n > INT32_MAX || !base_mul(n, n, &size))
        return FAIL(ctx, PSI_ELIMIT, "%zu states are too many for a dense solution", n);
    TRY(base_blas_ready(ctx));
    TRY(base_alloc_zero(ctx, size, sizeof *system, &system));
    TRY(base_alloc(ctx, n, sizeof *pivots, &pivots));
    for (size_t s = 0; s < n; s++) {
        system[s * n + s] = 1.0;
        occupancy[(size_t)c->label[s] * n + s] = 1.0;
    }
    for (size_t s = 0; s < n; s++) {
        for (uint64_t i = mdp->offsets[s * n_actions]; i < mdp->offsets[(s + 1) * n_actions]; i++) {
            system[(size_t)mdp->next[i] * n + s] -= gamma * mdp->probability[i] / (double)n_actions;
        }
    }
    const lapack_int info = LAPACKE_dgesv(LAPACK_COL_MAJOR, (lapack_int)n, (lapack_int)c->n_blocks,
                                          system, (lapack_int)n, pivots, occupancy, (lapack_int)n);
    if (info != 0) TRY(FAIL(ctx, PSI_ENUMERIC, "I - gamma P cannot be inverted"));
done:
    base_free(ctx, pivots);
    base_free(ctx, system);
    return status;
}

psi_status psi_successor_features(psi_ctx *ctx, const psi_mdp *mdp, const psi_partition *c,
                                  double gamma, double *psi)
{
    if (FREED(ctx, mdp, c)) return PSI_EUSAGE;
    psi_status status = PSI_OK;
    const size_t n = mdp->n_states, n_actions = mdp->n_actions, n_blocks = c->n_blocks;
    double *occupancy = NULL; // (S, K) by columns
    size_t size;
    if (!(gamma >= 0.0 && gamma < 1.0)) {
        return FAIL(ctx, PSI_EUSAGE, "gamma is %g; it has to be at least 0 and below 1", gamma);
    }
    TRY(psi_mdp_check(ctx, mdp, true));
    TRY(mdp_check_complete(ctx, c, n));
    if (n == 0 || n_actions == 0) goto done;
    if (!base_mul(n, n_blocks, &size)) TRY(FAIL(ctx, PSI_ELIMIT, "too many states and blocks"));
    TRY(base_alloc_zero(ctx, size, sizeof *occupancy, &occupancy));
    TRY(mean_occupancy(ctx, mdp, c, gamma, occupancy));
    for (size_t row = 0; row < n * n_actions; row++) {
        double *sf = psi + row * n_blocks;
        for (size_t k = 0; k < n_blocks; k++) sf[k] = 0.0;
        sf[c->label[row / n_actions]] = 1.0;
        for (uint64_t i = mdp->offsets[row]; i < mdp->offsets[row + 1]; i++) {
            cblas_daxpy((int)n_blocks, gamma * mdp->probability[i], occupancy + mdp->next[i],
                        (int)n, sf, 1);
        }
    }
done:
    base_free(ctx, occupancy);
    return status;
}

psi_status psi_reward_predictive_error(psi_ctx *ctx, const psi_mdp *mdp, const psi_partition *c,
                                       double gamma, double *reward_error, double *sf_error)
{
    if (FREED(ctx, mdp, c)) return PSI_EUSAGE;
    psi_status status = PSI_OK;
    const size_t n_actions = mdp->n_actions, n_blocks = c->n_blocks;
    psi_mdp *latent = NULL;
    psi_lsfm *lsfm = NULL;
    double *psi = NULL, *f_a = NULL, *difference = NULL;
    size_t pairs = 0, size = 0;
    *reward_error = *sf_error = 0.0;
    TRY(psi_quotient(ctx, mdp, c, &latent, NULL));
    TRY(psi_lsfm_new(ctx, latent, gamma, &lsfm));
    if (!base_mul(mdp->n_states, n_actions, &pairs) || !base_mul(pairs, n_blocks, &size))
        TRY(FAIL(ctx, PSI_ELIMIT, "too many states, actions and blocks"));
    TRY(base_alloc(ctx, size, sizeof *psi, &psi));
    TRY(base_alloc(ctx, n_blocks * n_blocks, sizeof *f_a, &f_a));
    TRY(base_alloc(ctx, n_blocks, sizeof *difference, &difference));
    TRY(psi_successor_features(ctx, mdp, c, gamma, psi));
    for (size_t a = 0; a < n_actions; a++) {
        TRY(psi_lsfm_action(ctx, lsfm, latent, a, f_a));
        for (size_t s = 0; s < mdp->n_states; s++) {
            const size_t k = (size_t)c->label[s], row = s * n_actions + a;
            const double off = fabs(latent->reward[k * n_actions + a] - mdp->reward[row]);
            *reward_error = fmax(*reward_error, off);
            cblas_dcopy((int)n_blocks, psi + row * n_blocks, 1, difference, 1);
            cblas_daxpy((int)n_blocks, -1.0, f_a + k * n_blocks, 1, difference, 1);
            *sf_error = fmax(*sf_error, cblas_dnrm2((int)n_blocks, difference, 1));
        }
    }
done:
    base_free(ctx, difference);
    base_free(ctx, f_a);
    base_free(ctx, psi);
    psi_lsfm_free(ctx, lsfm);
    psi_mdp_free(ctx, latent);
    return status;
}
