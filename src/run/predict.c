// Which latent states other observations are: by the table or the network of a run.
#include "run/known.h"

#include "base/checked.h"
#include "base/context.h"
#include "base/progress.h"
#include "base/vector.h"

#include <math.h>
#include <string.h>

enum { BATCH = 256, BLOCK = 4096 };

// Observations are like those that were seen if their features are at most this much further out
// than the furthest of those: the sample that was measured is small.
static const float SLACK = 1.5f;

struct psi_predictor {
    const psi_net *net;     // NULL: a table
    const run_known *known; // the run's; NULL: of an older version
    psi_work *work;
    size_t n_latent, room; // rows that logits and features have room for
    float *logits, *features;
    unsigned char *raw; // of a table
    uint64_t *rows;
};

psi_status psi_predictor_new(psi_ctx *ctx, const psi_run *run, psi_predictor **out)
{
    psi_status status = PSI_OK;
    psi_predictor *made = NULL;
    *out = NULL;
    if (FREED(ctx, run)) return PSI_EUSAGE;
    TRY(base_alloc_zero(ctx, 1, sizeof *made, &made));
    made->net = run->representation;
    made->n_latent = run->n_latent;
    made->known = run->known;
    if (made->net) {
        TRY(psi_work_new(ctx, made->net,
                         &(psi_work_options){.size = sizeof(psi_work_options),
                                             .max_batch = BATCH,
                                             .predict_only = true},
                         &made->work));
    } else if (!made->known && run->failure) {
        TRY(FAIL(ctx, PSI_EMISSING, "%s has nothing that tells latent states: %s",
                 run->folder ? run->folder : "the run", run->failure));
    } else if (!made->known) {
        TRY(FAIL(ctx, PSI_EMISSING,
                 "%s used a table and does not say of which observations: cluster the data again",
                 run->folder ? run->folder : "the run"));
    }
    *out = made;
    made = NULL;
done:
    psi_predictor_free(ctx, made);
    return status;
}

void psi_predictor_free(psi_ctx *ctx, psi_predictor *predictor)
{
    if (!predictor || FREED(ctx, predictor)) return;
    psi_work_free(ctx, predictor->work);
    base_free(ctx, predictor->logits);
    base_free(ctx, predictor->features);
    base_free(ctx, predictor->raw);
    base_free(ctx, predictor->rows);
    base_retire(ctx, predictor);
}

// Room for blocks of so many rows; single observations do not ask for whole blocks.
static psi_status make_room(psi_ctx *ctx, psi_predictor *p, size_t rows)
{
    psi_status status = PSI_OK;
    if (rows <= p->room) return PSI_OK;
    TRY(base_resize(ctx, rows, sizeof *p->rows, &p->rows));
    if (p->net) {
        TRY(base_resize(ctx, rows, p->n_latent * sizeof *p->logits, &p->logits));
        TRY(base_resize(ctx, rows, psi_net_n_features(p->net) * sizeof *p->features, &p->features));
    } else {
        TRY(base_resize(ctx, rows, p->known->observations.row_bytes, &p->raw));
    }
    p->room = rows;
done:
    return status;
}

// ---- by a table ---------------------------------------------------------------------------------

static psi_status ask_table(psi_ctx *ctx, psi_predictor *p, const psi_observations *observations,
                            size_t n, int32_t *labels, float *confidence)
{
    const size_t row_bytes = p->known->observations.row_bytes;
    const psi_status status = psi_observations_gather(ctx, observations, p->rows, n, p->raw);
    if (status != PSI_OK) return status;
    for (size_t i = 0; i < n; i++) {
        const uint32_t at = problem_distinct_find(&p->known->observations, p->raw + i * row_bytes);
        const bool known = at != PROBLEM_DISTINCT_NONE;
        labels[i] = known ? p->known->labels[at] : -1;
        confidence[i] = known ? p->known->confidence[at] : 0.0f;
    }
    return PSI_OK;
}

// ---- by a network -------------------------------------------------------------------------------

// The best of k logits, and its probability.
static int32_t best_of(const float *logits, size_t k, float *probability)
{
    const size_t best = base_largest(logits, 0, k);
    double sum = 0.0;
    for (size_t c = 0; c < k; c++) sum += exp((double)logits[c] - (double)logits[best]);
    *probability = (float)(1.0 / sum);
    return (int32_t)best;
}

static psi_status ask_network(psi_ctx *ctx, psi_predictor *p, problem_inputs *inputs, size_t n,
                              int32_t *labels, float *confidence)
{
    const psi_batch_source source = {inputs, problem_inputs_gather};
    const size_t k = p->n_latent, width = psi_net_n_features(p->net);
    const psi_status status = psi_net_predict_all(ctx, p->net, p->work, &source, p->rows, n, NULL,
                                                  p->features, p->logits);
    if (status != PSI_OK) return status;
    for (size_t i = 0; i < n; i++) {
        labels[i] = best_of(p->logits + i * k, k, &confidence[i]);
        if (!isfinite(confidence[i]))
            return FAIL(ctx, PSI_EDATA, "observation %llu contains a value that is not a number",
                        (unsigned long long)p->rows[i]);
        if (p->known && !(run_known_distance(p->known, labels[i], p->features + i * width) <=
                          SLACK * p->known->reach)) {
            labels[i] = -1;
            confidence[i] = 0.0f;
        }
    }
    return PSI_OK;
}

// ---- either -------------------------------------------------------------------------------------

static psi_status check_kind(psi_ctx *ctx, const psi_predictor *p,
                             const psi_observations *observations, problem_inputs *inputs)
{
    psi_status status = PSI_OK;
    if (p->net) {
        const psi_net_spec *spec = psi_net_spec_of(p->net);
        TRY(problem_inputs_new(ctx, observations, spec->input.rank == 1, inputs));
        return problem_inputs_match(ctx, inputs, spec);
    }
    const psi_dtype dtype = psi_observations_dtype(observations);
    const psi_shape *shape = psi_observations_shape(observations);
    if (dtype != p->known->dtype || !psi_shape_equal(shape, &p->known->shape))
        TRY(FAIL(ctx, PSI_ESHAPE,
                 "the table was made from %s observations of %zu numbers, these are %s of %zu",
                 psi_dtype_name(p->known->dtype), psi_shape_size(&p->known->shape),
                 psi_dtype_name(dtype), psi_shape_size(shape)));
done:
    return status;
}

psi_status psi_predict(psi_ctx *ctx, psi_predictor *p, const psi_observations *observations,
                       double min_confidence, int32_t *labels, float *confidence)
{
    if (FREED(ctx, p, observations)) return PSI_EUSAGE;
    psi_status status = PSI_OK;
    problem_inputs inputs = {0};
    float *sure = NULL;
    const size_t n = psi_observations_count(observations), block = base_min(n, BLOCK);
    TRY(check_kind(ctx, p, observations, &inputs));
    TRY(make_room(ctx, p, block));
    TRY(base_alloc(ctx, block, sizeof *sure, &sure));
    base_progress progress = base_progress_start(ctx, "assigning latent states", n);
    for (size_t begin = 0; begin < n; begin += BLOCK) {
        const size_t count = base_min(BLOCK, n - begin);
        for (size_t i = 0; i < count; i++) p->rows[i] = begin + i;
        TRY(p->net ? ask_network(ctx, p, &inputs, count, labels + begin, sure)
                   : ask_table(ctx, p, observations, count, labels + begin, sure));
        for (size_t i = 0; i < count; i++) {
            if ((double)sure[i] < min_confidence) labels[begin + i] = -1;
        }
        if (confidence) memcpy(confidence + begin, sure, count * sizeof *sure);
        TRY(base_progress_at(&progress, begin + count));
    }
    base_progress_end(&progress, n);
done:
    base_free(ctx, sure);
    problem_inputs_free(ctx, &inputs);
    return status;
}
