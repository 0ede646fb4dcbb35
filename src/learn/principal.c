#include "learn/principal.h"

#include "base/blas.h"
#include "base/checked.h"
#include "base/comm.h"
#include "base/context.h"

#include <cblas.h>
#include <lapacke.h>
#include <string.h>

enum { BLOCK = 1024, MOST_SAMPLES = 16384 };

// What the numbers of an observation are.
typedef struct source {
    size_t n, d;
    const feature_cache *features; // scaled; or, if NULL, pixels:
    problem_inputs *inputs;
    unsigned char *block; // (BLOCK, row_bytes)
} source;

// Numbers of the given rows, at most BLOCK of them, into z (count, D).
static psi_status gather(psi_ctx *ctx, const source *from, const uint64_t *rows, size_t count,
                         float *z)
{
    psi_status status = PSI_OK;
    const size_t d = from->d;
    if (from->features) {
        learn_features_gather(ctx, from->features, rows, count, z);
        for (size_t i = 0; i < count * d; i++) z[i] *= from->features->scale[i % d];
        goto done;
    }
    TRY(problem_inputs_gather(from->inputs, ctx, rows, count, from->block));
    if (from->inputs->dtype == PSI_FLOAT32) {
        memcpy(z, from->block, count * d * sizeof *z);
    } else {
        for (size_t i = 0; i < count * d; i++) z[i] = (float)from->block[i];
    }
done:
    return status;
}

// Numbers of states i … i + count − 1 of n, evenly from those of all processes, for rank 0.
static psi_status bring(psi_ctx *ctx, const cluster_problem *problem, const source *from, size_t i,
                        size_t count, size_t n, float *z)
{
    psi_status status = PSI_OK;
    const size_t all = problem->whole.n_states, first = problem->whole.first_state;
    uint64_t rows[BLOCK];
    float *brought = NULL;
    size_t own = 0, bytes;
    for (size_t end = i + count; i < end; i++) {
        const size_t at = i * all / n;
        if (at < first || at - first >= problem->n_states) continue; // another process's
        rows[own++] = problem->states[at - first];
    }
    TRY(gather(ctx, from, rows, own, z));
    if (base_ranks(ctx) == 1) goto done;
    TRY(base_collect(ctx, z, own * from->d * sizeof *z, &brought, &bytes));
    if (brought) memcpy(z, brought, bytes);
done:
    base_free(ctx, brought);
    return status;
}

// Mean (D) and covariance (D, D; its lower half) of evenly spaced states, which rank 0 finds.
static psi_status measure(psi_ctx *ctx, const cluster_problem *problem, const source *from,
                          float *z, float *mean, float *covariance)
{
    psi_status status = PSI_OK;
    const size_t d = from->d, n = base_min(problem->whole.n_states, MOST_SAMPLES);
    memset(mean, 0, d * sizeof *mean);
    memset(covariance, 0, d * d * sizeof *covariance);
    for (int pass = 0; pass < 2; pass++) {
        for (size_t begin = 0; begin < n; begin += BLOCK) {
            const size_t count = base_min(BLOCK, n - begin);
            TRY(base_cancelled(ctx));
            TRY(bring(ctx, problem, from, begin, count, n, z));
            if (base_rank(ctx) > 0) continue;
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

static psi_status find_components(psi_ctx *ctx, const cluster_problem *problem, const source *from,
                                  size_t *width, float **out)
{
    psi_status status = PSI_OK;
    const size_t n = from->n, d = from->d, w = base_min(*width, d);
    float *z = NULL, *mean = NULL, *covariance = NULL, *values = NULL, *made = NULL;
    uint64_t rows[BLOCK];
    *out = NULL;
    TRY(base_blas_ready(ctx));
    TRY(base_alloc(ctx, BLOCK, d * sizeof *z, &z));
    TRY(base_alloc(ctx, d, sizeof *mean, &mean));
    TRY(base_alloc(ctx, d, d * sizeof *covariance, &covariance));
    TRY(base_alloc(ctx, d, sizeof *values, &values));
    TRY(base_alloc(ctx, n, w * sizeof *made, &made));
    TRY(measure(ctx, problem, from, z, mean, covariance));
    // eigenvectors become the columns, eigenvalues ascend
    if (base_rank(ctx) == 0 && LAPACKE_ssyevd(LAPACK_ROW_MAJOR, 'V', 'L', (lapack_int)d, covariance,
                                              (lapack_int)d, values) != 0) {
        status = FAIL(ctx, PSI_ENUMERIC, "the observations have no principal components");
        goto done;
    }
    TRY(base_broadcast(ctx, mean, d * sizeof *mean, 0));
    TRY(base_broadcast(ctx, covariance, d * d * sizeof *covariance, 0));
    for (size_t begin = 0; begin < n; begin += BLOCK) {
        const size_t count = base_min(BLOCK, n - begin);
        for (size_t i = 0; i < count; i++) rows[i] = begin + i;
        TRY(base_cancelled(ctx));
        TRY(gather(ctx, from, rows, count, z));
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

psi_status learn_principal_components(psi_ctx *ctx, const cluster_problem *problem,
                                      const feature_cache *features, size_t *width, float **out)
{
    const source from = {.n = features->n, .d = features->d, .features = features};
    return find_components(ctx, problem, &from, width, out);
}

psi_status learn_principal_pixels(psi_ctx *ctx, const cluster_problem *problem,
                                  problem_inputs *inputs, size_t *width, float **out)
{
    psi_status status = PSI_OK;
    source from = {.n = problem->n_rows, .d = psi_shape_size(&inputs->shape), .inputs = inputs};
    *out = NULL;
    if (from.d > LEARN_MOST_PIXELS) {
        return FAIL(ctx, PSI_ELIMIT, "images of %zu numbers, more than %d", from.d,
                    LEARN_MOST_PIXELS);
    }
    TRY(base_alloc(ctx, BLOCK, inputs->row_bytes, &from.block));
    TRY(find_components(ctx, problem, &from, width, out));
done:
    base_free(ctx, from.block);
    return status;
}
