#include "learn/features.h"

#include "base/checked.h"
#include "base/comm.h"
#include "base/context.h"
#include "base/progress.h"
#include "base/threads.h"

#include <math.h>
#include <string.h>

enum { BATCH = 512 };
static const size_t MOST_FULL = (size_t)1 << 30; // bytes of floats

// bfloat16 has the range of float and eight bits of its precision: an error of at most 0.4 %, far
// below what two pictures of the same thing differ by. Features are finite, so rounding cannot run
// into the patterns of NaN.
static uint16_t half_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

static float full_of(uint16_t half)
{
    const uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void read_row(const feature_cache *cache, size_t row, float *out)
{
    if (cache->full) {
        memcpy(out, cache->full + row * cache->d, cache->d * sizeof *out);
        return;
    }
    const uint16_t *half = cache->half + row * cache->d;
    for (size_t k = 0; k < cache->d; k++) out[k] = full_of(half[k]);
}

// One over the root of the mean square, of up to 4,096 observations of all processes.
static psi_status measure_scale(psi_ctx *ctx, const cluster_problem *problem, feature_cache *cache)
{
    psi_status status = PSI_OK;
    float *z = NULL;
    double square = 0.0;
    const size_t all = problem->whole.n_rows, looked_at = base_min(all, 4096), d = cache->d;
    const size_t first = problem->whole.first_episode + problem->whole.first_transition;
    TRY(base_alloc(ctx, d, sizeof *z, &z));
    TRY(base_take_turn(ctx, &square, sizeof square));
    for (size_t i = 0; i < looked_at; i++) {
        const size_t row = i * all / looked_at;
        if (row < first || row - first >= cache->n) continue; // another process's
        read_row(cache, row - first, z);
        for (size_t k = 0; k < d; k++) square += (double)z[k] * (double)z[k];
    }
    TRY(base_end_turn(ctx, &square, sizeof square));
    const double rms = sqrt(square / (double)(looked_at * d));
    for (size_t k = 0; k < d; k++) cache->scale[k] = rms > 0.0 ? (float)(1.0 / rms) : 1.0f;
done:
    base_free(ctx, z);
    return status;
}

static psi_status compute(psi_ctx *ctx, problem_inputs *inputs, const psi_net *net, psi_work *work,
                          feature_cache *cache)
{
    psi_status status = PSI_OK;
    void *images = NULL;
    float *z = NULL;
    uint64_t rows[BATCH];
    const size_t d = cache->d;
    base_progress progress = base_progress_start(ctx, "computing features", cache->n);
    TRY(base_alloc(ctx, BATCH, inputs->row_bytes, &images));
    TRY(base_alloc(ctx, BATCH, d * sizeof *z, &z));
    for (size_t begin = 0; begin < cache->n; begin += BATCH) {
        const size_t count = base_min(BATCH, cache->n - begin);
        float *to = cache->full ? cache->full + begin * d : z;
        for (size_t i = 0; i < count; i++) rows[i] = begin + i;
        TRY(problem_inputs_gather(inputs, ctx, rows, count, images));
        TRY(psi_net_predict(ctx, net, work, images, count, to, NULL));
        for (size_t i = 0; cache->half && i < count * d; i++) {
            cache->half[begin * d + i] = half_of(z[i]);
        }
        TRY(base_progress_at(&progress, begin + count));
    }
    base_progress_end(&progress, cache->n);
done:
    base_free(ctx, z);
    base_free(ctx, images);
    return status;
}

psi_status learn_features_new(psi_ctx *ctx, const cluster_problem *problem, problem_inputs *inputs,
                              const psi_net *net, psi_cache precision, feature_cache *out)
{
    psi_status status = PSI_OK;
    psi_work *work = NULL;
    const size_t n = problem->n_rows, d = psi_net_n_features(net);
    const bool half =
        precision == PSI_CACHE_HALF ||
        (precision == PSI_CACHE_AUTO && problem->whole.n_rows > MOST_FULL / (d * sizeof(float)));
    *out = (feature_cache){.n = n, .d = d};
    TRY(psi_work_new(ctx, net,
                     &(psi_work_options){.size = sizeof(psi_work_options),
                                         .max_batch = BATCH,
                                         .predict_only = true},
                     &work));
    TRY(base_alloc(ctx, d, sizeof *out->scale, &out->scale));
    TRY(half ? base_alloc(ctx, n, d * sizeof *out->half, &out->half)
             : base_alloc(ctx, n, d * sizeof *out->full, &out->full));
    TRY(compute(ctx, inputs, net, work, out));
    TRY(measure_scale(ctx, problem, out));
done:
    psi_work_free(ctx, work);
    if (status != PSI_OK) learn_features_free(ctx, out);
    return status;
}

void learn_features_free(psi_ctx *ctx, feature_cache *cache)
{
    base_free(ctx, cache->full);
    base_free(ctx, cache->half);
    base_free(ctx, cache->scale);
    *cache = (feature_cache){0};
}

typedef struct gathering {
    const feature_cache *cache;
    const uint64_t *rows;
    size_t count;
    float *out;
} gathering;

static void gather_rows(void *argument, int thread, int threads)
{
    const gathering *job = argument;
    size_t begin, end;
    base_slice(job->count, thread, threads, &begin, &end);
    for (size_t i = begin; i < end; i++) {
        read_row(job->cache, job->rows[i], job->out + i * job->cache->d);
    }
}

void learn_features_gather(psi_ctx *ctx, const feature_cache *cache, const uint64_t *rows,
                           size_t count, float *out)
{
    gathering job = {cache, rows, count, out};
    base_team_run(base_ctx_team(ctx), gather_rows, &job);
}
