// The linear successor feature model (appendix A): M̄, F = (I − γM̄)⁻¹, F_a = I + γ M_a F, and the
// successor features of predictions.
#include <psifold/mdp.h>

#include "base/blas.h"
#include "base/checked.h"
#include "base/context.h"

#include <cblas.h>
#include <lapacke.h>

// M̄: where some actions of a state were never seen, the mean is over those that were.
static void mean_over_actions(const psi_mdp *latent, double *mean)
{
    const size_t n = latent->n_states, n_actions = latent->n_actions;
    for (size_t k = 0; k < n; k++) {
        size_t seen = 0;
        for (size_t a = 0; a < n_actions; a++) seen += psi_mdp_seen(latent, k, a);
        if (seen == 0) continue;
        const uint64_t begin = latent->offsets[k * n_actions];
        const uint64_t end = latent->offsets[(k + 1) * n_actions];
        for (uint64_t i = begin; i < end; i++) {
            mean[k * n + (size_t)latent->next[i]] += latent->probability[i] / (double)seen;
        }
    }
}

// f: (n, n) row-major. LAPACK reads it as the transpose, whose inverse is the transposed inverse:
// what comes back is the inverse in rows again.
static psi_status invert(psi_ctx *ctx, size_t n, double *f)
{
    psi_status status = PSI_OK;
    lapack_int *pivots = NULL;
    if (n == 0) return PSI_OK;
    TRY(base_blas_ready(ctx));
    TRY(base_alloc(ctx, n, sizeof *pivots, &pivots));
    const lapack_int size = (lapack_int)n;
    TRY(base_cancelled(ctx)); // nobody can ask inside of LAPACK
    lapack_int info = LAPACKE_dgetrf(LAPACK_COL_MAJOR, size, size, f, size, pivots);
    TRY(base_cancelled(ctx));
    if (info == 0) info = LAPACKE_dgetri(LAPACK_COL_MAJOR, size, f, size, pivots);
    if (info == LAPACK_WORK_MEMORY_ERROR)
        TRY(FAIL(ctx, PSI_ENOMEM, "no memory to invert a matrix of %zu rows", n));
    if (info != 0) TRY(FAIL(ctx, PSI_ENUMERIC, "I - gamma M cannot be inverted"));
done:
    base_free(ctx, pivots);
    return status;
}

psi_status psi_lsfm_new(psi_ctx *ctx, const psi_mdp *latent, double gamma, psi_lsfm **out)
{
    *out = NULL;
    if (FREED(ctx, latent)) return PSI_EUSAGE;
    psi_status status = PSI_OK;
    psi_lsfm *lsfm = NULL;
    const size_t n = latent->n_states;
    size_t size;
    if (!(gamma >= 0.0 && gamma < 1.0)) {
        return FAIL(ctx, PSI_EUSAGE, "gamma is %g; it has to be at least 0 and below 1", gamma);
    }
    if (n > INT32_MAX || !base_mul(n, n, &size))
        return FAIL(ctx, PSI_ELIMIT, "a dense model of %zu latent states is too large", n);
    TRY(psi_mdp_check(ctx, latent, false));
    TRY(base_alloc_zero(ctx, 1, sizeof *lsfm, &lsfm));
    lsfm->n_latent = n;
    lsfm->gamma = gamma;
    TRY(base_alloc_zero(ctx, size, sizeof *lsfm->mean, &lsfm->mean));
    TRY(base_alloc(ctx, size, sizeof *lsfm->f, &lsfm->f));
    mean_over_actions(latent, lsfm->mean);
    for (size_t i = 0; i < size; i++) lsfm->f[i] = -gamma * lsfm->mean[i];
    for (size_t k = 0; k < n; k++) lsfm->f[k * n + k] += 1.0;
    TRY(invert(ctx, n, lsfm->f));
    *out = lsfm;
    lsfm = NULL;
done:
    psi_lsfm_free(ctx, lsfm);
    return status;
}

void psi_lsfm_free(psi_ctx *ctx, psi_lsfm *lsfm)
{
    if (!lsfm || FREED(ctx, lsfm)) return;
    base_free(ctx, lsfm->f);
    base_free(ctx, lsfm->mean);
    base_retire(ctx, lsfm);
}

psi_status psi_lsfm_action(psi_ctx *ctx, const psi_lsfm *lsfm, const psi_mdp *latent, size_t action,
                           double *f_a)
{
    if (FREED(ctx, lsfm, latent)) return PSI_EUSAGE;
    const size_t n = lsfm->n_latent;
    if (latent->n_states != n || action >= latent->n_actions) {
        return FAIL(ctx, PSI_ESHAPE,
                    "action %zu of a model with %zu states and %zu actions, for F "
                    "of %zu states",
                    action, latent->n_states, latent->n_actions, n);
    }
    for (size_t i = 0; i < n * n; i++) f_a[i] = 0.0;
    for (size_t k = 0; k < n; k++) {
        const size_t row = k * latent->n_actions + action;
        f_a[k * n + k] = 1.0;
        for (uint64_t i = latent->offsets[row]; i < latent->offsets[row + 1]; i++) {
            cblas_daxpy((int)n, lsfm->gamma * latent->probability[i],
                        lsfm->f + (size_t)latent->next[i] * n, 1, f_a + k * n, 1);
        }
    }
    return PSI_OK;
}

psi_status psi_lsfm_predict(psi_ctx *ctx, const psi_lsfm *lsfm, size_t n, const int32_t *labels,
                            const double *p, double *psi)
{
    if (FREED(ctx, lsfm)) return PSI_EUSAGE;
    const size_t n_latent = lsfm->n_latent, most = 1u << 20; // rows per call: BLAS counts in int
    for (size_t i = 0; labels && i < n; i++) {
        if (labels[i] < -1 || (labels[i] >= 0 && (size_t)labels[i] >= n_latent)) {
            return FAIL(ctx, PSI_EDATA, "label %d is not one of %zu latent states", labels[i],
                        n_latent);
        }
    }
    if (n_latent == 0) return PSI_OK;
    for (size_t begin = 0; begin < n; begin += most) {
        const size_t rows = base_min(most, n - begin);
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)rows, (int)n_latent,
                    (int)n_latent, lsfm->gamma, p + begin * n_latent, (int)n_latent, lsfm->f,
                    (int)n_latent, 0.0, psi + begin * n_latent, (int)n_latent);
    }
    for (size_t i = 0; labels && i < n; i++) {
        if (labels[i] >= 0) psi[i * n_latent + (size_t)labels[i]] += 1.0;
    }
    return PSI_OK;
}

bool psi_matching_condition(double gamma, double epsilon_sf)
{
    return gamma >= 0.0 && gamma < 0.5 && epsilon_sf > 0.0 &&
           epsilon_sf < 2.0 / 3.0 * (1.0 - gamma / (1.0 - gamma));
}
