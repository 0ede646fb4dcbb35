// How well earlier cluster functions would have predicted: linear heads on the final features.
#include <psifold/cluster.h>
#include <psifold/study.h>

#include "base/checked.h"
#include "base/context.h"
#include "base/vector.h"

#include <string.h>

enum { MOST_ROWS = 20000, HEAD_STEPS = 600, HEAD_BATCH = 512, BATCH = 256 };

typedef struct features {
    size_t n, d;
    uint64_t *rows; // of the observations
    float *values;  // (n, d)
} features;

static psi_status gather_observations(void *user, psi_ctx *ctx, const uint64_t *rows, size_t n,
                                      void *out)
{
    return psi_observations_gather(ctx, user, rows, n, out);
}

static psi_status gather_features(void *user, psi_ctx *ctx, const uint64_t *rows, size_t n,
                                  void *out)
{
    const features *from = user;
    float *to = out;
    (void)ctx;
    for (size_t i = 0; i < n; i++) {
        memcpy(to + i * from->d, from->values + rows[i] * from->d, from->d * sizeof *to);
    }
    return PSI_OK;
}

static psi_status check_inputs(psi_ctx *ctx, const psi_net *net, const psi_trajectories *data)
{
    const psi_net_spec *spec = psi_net_spec_of(net);
    if (psi_observations_dtype(data->observations) == spec->input_dtype &&
        psi_shape_size(psi_observations_shape(data->observations)) ==
            psi_shape_size(&spec->input)) {
        return PSI_OK;
    }
    return FAIL(ctx, PSI_ESHAPE, "the network was made for other observations than these");
}

// rows are chosen by the caller.
static psi_status compute_features(psi_ctx *ctx, const psi_net *net, const psi_trajectories *data,
                                   features *out)
{
    psi_status status = PSI_OK;
    psi_work *work = NULL;
    const psi_batch_source source = {data->observations, gather_observations};
    out->d = psi_net_n_features(net);
    TRY(check_inputs(ctx, net, data));
    TRY(base_alloc(ctx, out->n * out->d, sizeof *out->values, &out->values));
    TRY(psi_work_new(ctx, net,
                     &(psi_work_options){.size = sizeof(psi_work_options),
                                         .max_batch = BATCH,
                                         .predict_only = true},
                     &work));
    TRY(psi_net_predict_all(ctx, net, work, &source, out->rows, out->n, "computing features",
                            out->values, NULL));
done:
    psi_work_free(ctx, work);
    return status;
}

static void features_free(psi_ctx *ctx, features *of)
{
    base_free(ctx, of->rows);
    base_free(ctx, of->values);
}

// Evenly chosen observations that are not the end of a terminated episode.
static psi_status training_features(psi_ctx *ctx, const psi_stages *stages, features *out)
{
    psi_status status = PSI_OK;
    const psi_trajectories *data = stages->data;
    const size_t step = 1 + (data->n_observations - 1) / MOST_ROWS;
    TRY(base_alloc(ctx, data->n_observations / step + 1, sizeof *out->rows, &out->rows));
    for (size_t e = 0; e < data->n_episodes; e++) {
        const uint64_t begin = data->episode_offsets[e] + e, end = data->episode_offsets[e + 1] + e;
        for (uint64_t row = begin; row < end; row++) {
            if (row % step == 0) out->rows[out->n++] = row;
        }
    }
    TRY(compute_features(ctx, stages->representation, data, out));
done:
    return status;
}

static psi_status first_features(psi_ctx *ctx, const psi_stages *stages, features *out)
{
    psi_status status = PSI_OK;
    const psi_trajectories *test = stages->test;
    TRY(base_alloc(ctx, test->n_episodes, sizeof *out->rows, &out->rows));
    for (size_t e = 0; e < test->n_episodes; e++)
        out->rows[out->n++] = test->episode_offsets[e] + e;
    TRY(compute_features(ctx, stages->representation, test, out));
done:
    return status;
}

// A head for one stage's labels, trained on the rows that it does not ignore.
static psi_status train_head(psi_ctx *ctx, const psi_stages *stages, const features *training,
                             const int32_t *labels, size_t n_latent, uint64_t seed, psi_net **out)
{
    psi_status status = PSI_OK;
    psi_net *head = NULL;
    psi_work *work = NULL;
    uint64_t *rows = NULL;
    int32_t *targets = NULL;
    size_t n = 0;
    *out = NULL;
    TRY(base_alloc(ctx, training->n, sizeof *rows, &rows));
    TRY(base_alloc(ctx, training->n, sizeof *targets, &targets));
    for (size_t i = 0; i < training->n; i++) {
        if (labels[training->rows[i]] < 0) continue;
        rows[n] = i;
        targets[n++] = labels[training->rows[i]];
    }
    if (n == 0) {
        status = FAIL(ctx, PSI_EDATA, "a refinement ignores every observation");
        goto done;
    }
    TRY(psi_net_head(ctx, stages->representation, 1, n_latent, seed, &head));
    TRY(psi_work_new(ctx, head,
                     &(psi_work_options){.size = sizeof(psi_work_options), .max_batch = HEAD_BATCH},
                     &work));
    const size_t batch = base_min(HEAD_BATCH, n);
    const psi_samples samples = {
        .source = {(void *)training, gather_features}, .n = n, .rows = rows, .targets = targets};
    const psi_train_options how = {.size = sizeof how,
                                   .batch = batch,
                                   .epochs = 1 + HEAD_STEPS * batch / n,
                                   .max_steps = HEAD_STEPS,
                                   .schedule = {PSI_LINEAR, 2e-3, 20, 0.3},
                                   .seed = seed};
    TRY(psi_net_train(ctx, head, work, &samples, &how));
    *out = head;
    head = NULL;
done:
    psi_work_free(ctx, work);
    psi_net_free(ctx, head);
    base_free(ctx, targets);
    base_free(ctx, rows);
    return status;
}

// Latent states of the first observations; all others stay unknown, which is enough for roll-outs.
static psi_status label_test(psi_ctx *ctx, const psi_trajectories *test, const psi_net *head,
                             const features *first, size_t n_latent, bool has_terminal,
                             int32_t *labels)
{
    psi_status status = PSI_OK;
    psi_work *work = NULL;
    float *logits = NULL;
    TRY(base_alloc(ctx, first->n, n_latent * sizeof *logits, &logits));
    TRY(psi_work_new(ctx, head,
                     &(psi_work_options){.size = sizeof(psi_work_options),
                                         .max_batch = BATCH,
                                         .predict_only = true},
                     &work));
    TRY(psi_net_predict(ctx, head, work, first->values, first->n, NULL, logits));
    for (size_t i = 0; i < test->n_observations; i++) labels[i] = -1;
    for (size_t e = 0; e < first->n; e++) {
        if (test->episode_offsets[e] == test->episode_offsets[e + 1]) continue;
        // an episode that goes on is not at its end
        const size_t best = base_largest(logits + e * n_latent, has_terminal ? 1 : 0, n_latent);
        if (best < n_latent) labels[first->rows[e]] = (int32_t)best;
    }
done:
    psi_work_free(ctx, work);
    base_free(ctx, logits);
    return status;
}

static psi_status judge_stage(psi_ctx *ctx, const psi_stages *stages, size_t stage,
                              const features *training, const features *first, bool has_terminal,
                              double *errors, psi_sequence_error *summary)
{
    psi_status status = PSI_OK;
    const psi_trajectories *data = stages->data;
    const int32_t *labels = stages->labels[stage];
    psi_counts *counts = NULL;
    psi_mdp *model = NULL;
    psi_net *head = NULL;
    int32_t *predicted = NULL;
    size_t n_latent = 0;
    for (size_t i = 0; i < data->n_observations; i++) {
        if (labels[i] >= 0) n_latent = base_max(n_latent, (size_t)labels[i] + 1);
    }
    const psi_paths paths = psi_trajectories_paths(data, labels, n_latent, has_terminal);
    TRY(psi_counts_new(ctx, &paths, &counts));
    TRY(psi_counts_model(ctx, counts, 1.0, &model));
    TRY(train_head(ctx, stages, training, labels, n_latent, stages->seed + stage, &head));
    TRY(base_alloc(ctx, stages->test->n_observations, sizeof *predicted, &predicted));
    TRY(label_test(ctx, stages->test, head, first, n_latent, has_terminal, predicted));
    const psi_paths judged =
        psi_trajectories_paths(stages->test, predicted, n_latent, has_terminal);
    TRY(psi_sequence_errors(ctx, model, &judged, NULL, PSI_ROLLOUT_SOFT, errors, summary));
done:
    base_free(ctx, predicted);
    psi_net_free(ctx, head);
    psi_mdp_free(ctx, model);
    psi_counts_free(ctx, counts);
    return status;
}

psi_status psi_stage_errors(psi_ctx *ctx, const psi_stages *stages, double *errors,
                            psi_sequence_error *summary)
{
    psi_status status = PSI_OK;
    features training = {0}, first = {0};
    bool has_terminal = false;
    const psi_trajectories *data = stages->data;
    if (data->n_actions != stages->test->n_actions) {
        return FAIL(ctx, PSI_ESHAPE, "the two data sets have %zu and %zu actions", data->n_actions,
                    stages->test->n_actions);
    }
    for (size_t e = 0; e < data->n_episodes; e++) has_terminal |= data->terminated[e] != 0;
    TRY(training_features(ctx, stages, &training));
    TRY(first_features(ctx, stages, &first));
    for (size_t i = 0; i < stages->n_stages; i++) {
        TRY(judge_stage(ctx, stages, i, &training, &first, has_terminal,
                        errors + i * stages->test->n_episodes, &summary[i]));
    }
done:
    features_free(ctx, &first);
    features_free(ctx, &training);
    return status;
}
