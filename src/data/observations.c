// Batches of observations by index, from memory here, from files through source.c.
#include "data/observations.h"

#include "base/checked.h"
#include "base/context.h"
#include "base/threads.h"
#include "data/joined.h"
#include "data/source.h"
#include "data/stack.h"

#include <string.h>

psi_status data_observations_new(psi_ctx *ctx, psi_dtype dtype, const psi_shape *shape,
                                 size_t count, psi_observations **out)
{
    *out = NULL;
    const size_t element = psi_dtype_size(dtype);
    if (element == 0 || shape->rank > PSI_MAX_RANK) {
        return FAIL(ctx, PSI_ESHAPE, "observations of element type %d and rank %zu are not known",
                    (int)dtype, shape->rank);
    }
    size_t row_bytes = element, total;
    for (size_t d = 0; d < shape->rank; d++) {
        if (shape->dim[d] == 0 || !base_mul(row_bytes, shape->dim[d], &row_bytes)) {
            return FAIL(ctx, PSI_ESHAPE, "dimension %zu of the observations has the size %zu", d,
                        shape->dim[d]);
        }
    }
    if (!base_mul(row_bytes, count, &total)) {
        return FAIL(ctx, PSI_ESHAPE, "%zu observations of %zu bytes cannot be addressed", count,
                    row_bytes);
    }
    psi_observations *fresh;
    const psi_status status = base_alloc_zero(ctx, 1, sizeof *fresh, &fresh);
    if (status != PSI_OK) return status;
    fresh->dtype = dtype;
    fresh->shape = *shape;
    fresh->count = count;
    fresh->row_bytes = row_bytes;
    *out = fresh;
    return PSI_OK;
}

psi_status psi_observations_over(psi_ctx *ctx, psi_dtype dtype, const psi_shape *shape,
                                 size_t count, const void *data, psi_observations **out)
{
    const psi_status status = data_observations_new(ctx, dtype, shape, count, out);
    if (status == PSI_OK) (*out)->data = data;
    return status;
}

void psi_observations_free(psi_ctx *ctx, psi_observations *observations)
{
    if (!observations || FREED(ctx, observations)) return;
    data_source_free(ctx, observations->source);
    for (size_t i = 0; i < observations->n_parts; i++) {
        psi_observations_free(ctx, observations->parts[i]);
    }
    base_free(ctx, observations->parts);
    base_free(ctx, observations->piece);
    base_free(ctx, observations->owned);
    base_free(ctx, observations->earlier);
    base_retire(ctx, observations);
}

size_t psi_observations_count(const psi_observations *observations)
{
    if (FREED(NULL, observations)) return 0;
    return observations->count;
}
psi_dtype psi_observations_dtype(const psi_observations *observations)
{
    if (FREED(NULL, observations)) return (psi_dtype)0;
    return observations->dtype;
}
const psi_shape *psi_observations_shape(const psi_observations *observations)
{
    if (FREED(NULL, observations)) return NULL;
    return &observations->shape;
}
size_t psi_observations_row_bytes(const psi_observations *observations)
{
    if (FREED(NULL, observations)) return 0;
    return observations->row_bytes;
}
const void *psi_observations_data(const psi_observations *observations)
{
    if (FREED(NULL, observations)) return NULL;
    return observations->data;
}

typedef struct copy_job {
    const char *from;
    const uint64_t *rows;
    size_t n, row_bytes;
    char *to;
} copy_job;

static void copy_rows(void *argument, int thread, int threads)
{
    const copy_job *job = argument;
    size_t begin, end;
    base_slice(job->n, thread, threads, &begin, &end);
    for (size_t i = begin; i < end; i++) {
        memcpy(job->to + i * job->row_bytes, job->from + job->rows[i] * job->row_bytes,
               job->row_bytes);
    }
}

psi_status psi_observations_gather(psi_ctx *ctx, const psi_observations *observations,
                                   const uint64_t *rows, size_t n, void *out)
{
    if (FREED(ctx, observations)) return PSI_EUSAGE;
    enum { WORTH_SHARING = 1 << 16 }; // bytes; below that waking a thread costs more than copying
    for (size_t i = 0; i < n; i++) {
        if (rows[i] >= observations->count) {
            return FAIL(ctx, PSI_ESHAPE, "there is no observation %llu: they end at %zu",
                        (unsigned long long)rows[i], observations->count);
        }
    }
    if (!observations->data) {
        return observations->frames  ? data_stack_gather(ctx, observations, rows, n, out)
               : observations->parts ? data_joined_gather(ctx, observations, rows, n, out)
                                     : data_source_gather(ctx, observations->source, rows, n, out);
    }
    copy_job job = {observations->data, rows, n, observations->row_bytes, out};
    if (n * observations->row_bytes < WORTH_SHARING) {
        copy_rows(&job, 0, 1);
    } else {
        base_team_run(base_ctx_team(ctx), copy_rows, &job);
    }
    return PSI_OK;
}
