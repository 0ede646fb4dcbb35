#include "learn/principal.h"

#include "base/blas.h"
#include "base/checked.h"
#include "base/context.h"

#include <cblas.h>
#include <lapacke.h>
#include <string.h>

enum { BLOCK = 1024, MOST_SAMPLES = 16384 };

// Scaled features of the given rows, into z (count, D).
static void gather(psi_ctx *ctx, const feature_cache *features, const uint64_t *rows, size_t count,
                   float *z)
{
    learn_features_gather(ctx, features, rows, count, z);
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < features->d; j++) z[i * features->d + j] *= features->scale[j];
    }
}

// Mean (D) and covariance (D, D; its lower half) of evenly spaced states.
static psi_status measure(psi_ctx *ctx, const cluster_problem *problem,
                          const feature_cache *features, float *z, float *mean, float *covariance)
{
    psi_status status = PSI_OK;
    const size_t d = features->d, n = base_min(problem->n_states, MOST_SAMPLES);
    uint64_t rows[BLOCK];
    memset(mean, 0, d * sizeof *mean);
    memset(covariance, 0, d * d * sizeof *covariance);
    for (int pass = 0; pass < 2; pass++) {
        for (size_t begin = 0; begin < n; begin += BLOCK) {
            const size_t count = base_min(BLOCK, n - begin);
            for (size_t i = 0; i < count; i++) {
                rows[i] = problem->states[(begin + i) * problem->n_states / n];
            }
            TRY(base_cancelled(ctx));
            gather(ctx, features, rows, count, z);
            for (size_t i = 0; i < count * d; i++) {
                if (pass == 0) {
                    mean[i % d] += z[i] / (float)n;
                } else {
                    z[i] -= mean[i % d];
                }
            }
            if (pass == 0) continue;
            cblas_ssyrk(CblasRowMajor, CblasLower, CblasTrans, (blasint)d, (blasint)count,
                        1.0f / (float)n, z, (blasint)d, 1.0f, covariance, (blasint)d);
        }
    }
done:
    return status;
}

psi_status learn_principal_components(psi_ctx *ctx, const cluster_problem *problem,
                                      const feature_cache *features, size_t *width, float **out)
{
    psi_status status = PSI_OK;
    const size_t n = features->n, d = features->d, w = base_min(*width, d);
    float *z = NULL, *mean = NULL, *covariance = NULL, *values = NULL, *made = NULL;
    uint64_t rows[BLOCK];
    *out = NULL;
    TRY(base_blas_ready(ctx));
    TRY(base_alloc(ctx, BLOCK, d * sizeof *z, &z));
    TRY(base_alloc(ctx, d, sizeof *mean, &mean));
    TRY(base_alloc(ctx, d, d * sizeof *covariance, &covariance));
    TRY(base_alloc(ctx, d, sizeof *values, &values));
    TRY(base_alloc(ctx, n, w * sizeof *made, &made));
    TRY(measure(ctx, problem, features, z, mean, covariance));
    // eigenvectors become the columns, eigenvalues ascend
    if (LAPACKE_ssyevd(LAPACK_ROW_MAJOR, 'V', 'L', (lapack_int)d, covariance, (lapack_int)d,
                       values) != 0) {
        status = FAIL(ctx, PSI_ENUMERIC, "the features have no principal components");
        goto done;
    }
    for (size_t begin = 0; begin < n; begin += BLOCK) {
        const size_t count = base_min(BLOCK, n - begin);
        for (size_t i = 0; i < count; i++) rows[i] = begin + i;
        TRY(base_cancelled(ctx));
        gather(ctx, features, rows, count, z);
        for (size_t i = 0; i < count; i++) {
            for (size_t k = 0; k < d; k++) z[i * d + k] -= mean[k];
        }
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (blasint)count, (blasint)w,
                    (blasint)d, 1.0f, z, (blasint)d, covariance + (d - w), (blasint)d, 0.0f,
                    made + begin * w, (blasint)w);
    }
    *width = w;
    *out = made;
    made = NULL;
done:
    base_free(ctx, made);
    base_free(ctx, values);
    base_free(ctx, covariance);
    base_free(ctx, mean);
    base_free(ctx, z);
    return status;
}
