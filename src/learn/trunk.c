#include "learn/trunk.h"

#include "base/blas.h"
#include "base/checked.h"
#include "base/comm.h"
#include "base/context.h"
#include "base/progress.h"
#include "base/threads.h"
#include "learn/contrast.h"
#include "learn/share.h"
#include "problem/images.h"
#include "problem/windows.h"

#include <math.h>
#include <string.h>

static const double TEMPERATURE = 0.1;
enum { INVERSE_HIDDEN = 256, WARM_UP = 50 };

// A small network that reads the trunk's features, with all it needs to be trained.
typedef struct feature_reader {
    psi_net *net;
    psi_work *work;
    psi_adam *adam;
} feature_reader;

typedef struct trunk_state {
    psi_net *net;
    psi_work *work;
    psi_adam *adam;
    feature_reader inverse;    // (z, z') → action
    feature_reader next;       // (z, a) → z' seen coarsely
    feature_reader query, key; // (z, a) → 64 numbers, z' → 64 numbers
    window_sampler sampler;
    window_batch batch;
    size_t d;              // features
    void *observations;    // (batch) as the network takes them
    float *features;       // (pairs, 2·D) both ends side by side, or one of them
    float *d_pairs;        // (pairs, 2·D) gradient by them
    float *d_features;     // (batch, D)
    float *d_outputs;      // (batch, widest output)
    float *projected;      // (4, pairs, CONTRAST_WIDTH) query, key and their gradients
    float *scratch;        // of the contrast
    float *coarse;         // (batch, inputs->n_coarse)
    int32_t *pair_actions; // (pairs)
} trunk_state;

static void reader_free(psi_ctx *ctx, feature_reader *reader)
{
    psi_adam_free(ctx, reader->adam);
    psi_work_free(ctx, reader->work);
    psi_net_free(ctx, reader->net);
}

static psi_status reader_new(psi_ctx *ctx, size_t inputs, size_t hidden, size_t actions,
                             size_t classes, size_t max_batch, uint64_t seed, feature_reader *out)
{
    psi_status status = PSI_OK;
    psi_net_spec spec =
        psi_net_defaults(PSI_NET_MLP, &(psi_shape){1, {inputs}}, PSI_FLOAT32, actions, classes);
    spec.n_hidden = hidden > 0;
    spec.hidden[0] = hidden;
    TRY(psi_net_new(ctx, &spec, seed, &out->net));
    TRY(psi_work_new(ctx, out->net,
                     &(psi_work_options){.size = sizeof(psi_work_options), .max_batch = max_batch},
                     &out->work));
    TRY(psi_adam_new(ctx, out->net, NULL, &out->adam));
done:
    return status;
}

static void trunk_free(psi_ctx *ctx, trunk_state *trunk)
{
    psi_adam_free(ctx, trunk->adam);
    psi_work_free(ctx, trunk->work);
    reader_free(ctx, &trunk->inverse);
    reader_free(ctx, &trunk->next);
    reader_free(ctx, &trunk->query);
    reader_free(ctx, &trunk->key);
    problem_windows_free(ctx, &trunk->sampler, &trunk->batch);
    base_free(ctx, trunk->observations);
    base_free(ctx, trunk->features);
    base_free(ctx, trunk->d_pairs);
    base_free(ctx, trunk->d_features);
    base_free(ctx, trunk->d_outputs);
    base_free(ctx, trunk->projected);
    base_free(ctx, trunk->scratch);
    base_free(ctx, trunk->coarse);
    base_free(ctx, trunk->pair_actions);
}

static psi_status trunk_new(psi_ctx *ctx, const cluster_problem *problem,
                            const problem_inputs *inputs, const trunk_options *options,
                            psi_net *net, trunk_state *out)
{
    psi_status status = PSI_OK;
    const size_t most = options->windows * options->length, actions = problem->data->n_actions;
    const size_t d = psi_net_n_features(net);
    const size_t widest =
        base_max(psi_net_n_outputs(net), actions * base_max(CONTRAST_WIDTH, inputs->n_coarse));
    *out = (trunk_state){.net = net, .d = d};
    TRY(psi_work_new(
        ctx, net,
        &(psi_work_options){.size = sizeof(psi_work_options), .max_batch = most, .shared = true},
        &out->work));
    TRY(psi_adam_new(ctx, net, NULL, &out->adam));
    TRY(reader_new(ctx, 2 * d, INVERSE_HIDDEN, 1, actions, most, options->seed + 1, &out->inverse));
    TRY(reader_new(ctx, d, 0, actions, CONTRAST_WIDTH, most, options->seed + 2, &out->query));
    TRY(reader_new(ctx, d, 0, 1, CONTRAST_WIDTH, most, options->seed + 3, &out->key));
    if (inputs->n_coarse > 0) {
        TRY(reader_new(ctx, d, 0, actions, inputs->n_coarse, most, options->seed + 4, &out->next));
        TRY(base_alloc(ctx, most, inputs->n_coarse * sizeof(float), &out->coarse));
    }
    TRY(problem_windows_new(ctx, problem, options->windows, options->length, options->seed,
                            &out->sampler, &out->batch));
    TRY(base_alloc(ctx, most, inputs->row_bytes, &out->observations));
    TRY(base_alloc(ctx, most, 2 * d * sizeof(float), &out->features));
    TRY(base_alloc(ctx, most, 2 * d * sizeof(float), &out->d_pairs));
    TRY(base_alloc(ctx, most, d * sizeof(float), &out->d_features));
    TRY(base_alloc(ctx, most, widest * sizeof(float), &out->d_outputs));
    TRY(base_alloc(ctx, 4 * most, CONTRAST_WIDTH * sizeof(float), &out->projected));
    TRY(base_blas_ready(ctx));
    TRY(base_alloc(ctx, learn_contrast_scratch(most), sizeof(float), &out->scratch));
    TRY(base_alloc(ctx, most, sizeof *out->pair_actions, &out->pair_actions));
done:
    if (status != PSI_OK) trunk_free(ctx, out);
    return status;
}

// Copies the features of the pairs' first (end 0) or second (end 1) observations to `to`, whose
// rows are `stride` apart.
static void gather_ends(const trunk_state *trunk, size_t end, float *to, size_t stride)
{
    const float *z = psi_work_features(trunk->work);
    for (size_t p = 0; p < trunk->batch.n_pairs; p++) {
        memcpy(to + p * stride, z + (trunk->batch.first[p] + end) * trunk->d,
               trunk->d * sizeof(float));
    }
}

// Adds weight · (gradients by the ends' features) to the gradients by the batch's features.
static void scatter_ends(trunk_state *trunk, size_t end, const float *from, size_t stride,
                         float weight)
{
    for (size_t p = 0; p < trunk->batch.n_pairs; p++) {
        float *d = trunk->d_features + (trunk->batch.first[p] + end) * trunk->d;
        for (size_t i = 0; i < trunk->d; i++) d[i] += weight * from[p * stride + i];
    }
}

// Which action leads from z to z'? Adds its gradient to d_features.
static psi_status inverse_dynamics(psi_ctx *ctx, trunk_state *trunk, double weight, double rate,
                                   double *loss)
{
    psi_status status = PSI_OK;
    const feature_reader *inverse = &trunk->inverse;
    const size_t n = trunk->batch.n_pairs, d = trunk->d;
    gather_ends(trunk, 0, trunk->features, 2 * d);
    gather_ends(trunk, 1, trunk->features + d, 2 * d);
    TRY(psi_net_forward(ctx, inverse->net, inverse->work, trunk->features, n, PSI_NORM_BATCH));
    const psi_labels labels = {.targets = trunk->pair_actions};
    TRY(psi_net_loss(ctx, inverse->net, inverse->work, &labels, trunk->d_outputs, loss));
    TRY(psi_net_backward(ctx, inverse->net, inverse->work, trunk->d_outputs, NULL, trunk->d_pairs));
    TRY(psi_adam_step(ctx, inverse->adam, inverse->net, inverse->work, rate));
    scatter_ends(trunk, 0, trunk->d_pairs, 2 * d, (float)weight);
    scatter_ends(trunk, 1, trunk->d_pairs + d, 2 * d, (float)weight);
done:
    return status;
}

// One side of the contrast: forwards the ends' features and keeps the projections of the taken
// action.
static psi_status project(psi_ctx *ctx, trunk_state *trunk, const feature_reader *reader,
                          size_t end, const int32_t *actions, float *to)
{
    const size_t n = trunk->batch.n_pairs, width = psi_net_n_outputs(reader->net);
    gather_ends(trunk, end, trunk->features, trunk->d);
    const psi_status status =
        psi_net_forward(ctx, reader->net, reader->work, trunk->features, n, PSI_NORM_BATCH);
    if (status != PSI_OK) return status;
    const float *outputs = psi_work_outputs(reader->work);
    for (size_t p = 0; p < n; p++) {
        const size_t at = p * width + (actions ? (size_t)actions[p] * CONTRAST_WIDTH : 0);
        memcpy(to + p * CONTRAST_WIDTH, outputs + at, CONTRAST_WIDTH * sizeof *to);
    }
    return PSI_OK;
}

// The way back of `project`.
static psi_status unproject(psi_ctx *ctx, trunk_state *trunk, const feature_reader *reader,
                            size_t end, const int32_t *actions, const float *from, double weight,
                            double rate)
{
    psi_status status = PSI_OK;
    const size_t n = trunk->batch.n_pairs, width = psi_net_n_outputs(reader->net);
    memset(trunk->d_outputs, 0, n * width * sizeof(float));
    for (size_t p = 0; p < n; p++) {
        const size_t at = p * width + (actions ? (size_t)actions[p] * CONTRAST_WIDTH : 0);
        memcpy(trunk->d_outputs + at, from + p * CONTRAST_WIDTH, CONTRAST_WIDTH * sizeof *from);
    }
    TRY(psi_net_backward(ctx, reader->net, reader->work, trunk->d_outputs, NULL, trunk->d_pairs));
    TRY(psi_adam_step(ctx, reader->adam, reader->net, reader->work, rate));
    scatter_ends(trunk, end, trunk->d_pairs, trunk->d, (float)weight);
done:
    return status;
}

static psi_status contrast_next(psi_ctx *ctx, trunk_state *trunk, double weight, double rate,
                                double *loss)
{
    psi_status status = PSI_OK;
    const size_t n = trunk->batch.n_pairs, size = n * CONTRAST_WIDTH;
    float *query = trunk->projected, *key = query + size, *d_query = key + size;
    float *d_key = d_query + size;
    TRY(project(ctx, trunk, &trunk->query, 0, trunk->pair_actions, query));
    TRY(project(ctx, trunk, &trunk->key, 1, NULL, key));
    *loss = learn_contrast(query, key, n, TEMPERATURE, trunk->scratch, d_query, d_key);
    TRY(unproject(ctx, trunk, &trunk->key, 1, NULL, d_key, weight, rate));
    // the query's workspace still holds its own forward pass
    TRY(unproject(ctx, trunk, &trunk->query, 0, trunk->pair_actions, d_query, weight, rate));
done:
    return status;
}

// What will be seen, in coarse outline? The mean of the squared error, of which 1 is no better than
// knowing the mean.
static psi_status predict_next(psi_ctx *ctx, trunk_state *trunk, const problem_inputs *inputs,
                               double weight, double rate, double *loss)
{
    psi_status status = PSI_OK;
    const feature_reader *next = &trunk->next;
    const size_t n = trunk->batch.n_pairs, width = psi_net_n_outputs(next->net);
    const size_t cells = inputs->n_coarse;
    gather_ends(trunk, 0, trunk->features, trunk->d);
    TRY(psi_net_forward(ctx, next->net, next->work, trunk->features, n, PSI_NORM_BATCH));
    const float *outputs = psi_work_outputs(next->work);
    memset(trunk->d_outputs, 0, n * width * sizeof(float));
    const float each = 2.0f / (float)(n * cells);
    *loss = 0.0;
    for (size_t p = 0; p < n; p++) {
        const size_t at = p * width + (size_t)trunk->pair_actions[p] * cells;
        const float *seen = trunk->coarse + (trunk->batch.first[p] + 1) * cells;
        for (size_t i = 0; i < cells; i++) {
            const float error = outputs[at + i] - seen[i];
            trunk->d_outputs[at + i] = each * error;
            *loss += 0.5 * (double)(each * error * error);
        }
    }
    TRY(psi_net_backward(ctx, next->net, next->work, trunk->d_outputs, NULL, trunk->d_pairs));
    TRY(psi_adam_step(ctx, next->adam, next->net, next->work, rate));
    scatter_ends(trunk, 0, trunk->d_pairs, trunk->d, (float)weight);
done:
    return status;
}

// Several processes have the same batch: the trunk's passes they share, what reads its features
// each of them learns by itself, as all others do.
static psi_status train_step(psi_ctx *ctx, trunk_state *trunk, problem_inputs *inputs,
                             const trunk_options *options, base_random *random, double rate,
                             trunk_losses *losses)
{
    psi_status status = PSI_OK;
    window_batch *batch = &trunk->batch;
    TRY(problem_windows_bring(ctx, &trunk->sampler, inputs, batch, trunk->observations));
    if (inputs->n_coarse > 0) {
        problem_images_outline(inputs, batch->n_rows, trunk->observations, trunk->coarse);
    }
    problem_images_shift(inputs, random, options->shift, batch->n_rows, trunk->observations);
    TRY(psi_net_forward(ctx, trunk->net, trunk->work, trunk->observations, batch->n_rows,
                        PSI_NORM_BATCH));
    for (size_t p = 0; p < batch->n_pairs; p++) {
        trunk->pair_actions[p] = batch->actions[batch->first[p]];
    }
    memset(trunk->d_features, 0, batch->n_rows * trunk->d * sizeof(float));
    if (options->inverse_weight > 0.0) {
        TRY(inverse_dynamics(ctx, trunk, options->inverse_weight, rate, &losses->inverse));
    }
    if (options->contrast_weight > 0.0) {
        TRY(contrast_next(ctx, trunk, options->contrast_weight, rate, &losses->contrast));
    }
    if (options->next_weight > 0.0 && inputs->n_coarse > 0) {
        TRY(predict_next(ctx, trunk, inputs, options->next_weight, rate, &losses->next));
    }
    const psi_labels labels = {.actions = batch->actions,
                               .targets = batch->rewards,
                               .weights = batch->weights,
                               .log_priors = trunk->sampler.log_priors};
    TRY(psi_net_loss(ctx, trunk->net, trunk->work, &labels, trunk->d_outputs, &losses->reward));
    if (!isfinite(losses->reward + losses->inverse + losses->contrast + losses->next)) {
        status = FAIL(ctx, PSI_ENUMERIC,
                      "the trunk's loss is no longer a number at learning rate %g; a smaller "
                      "--learning-rate may help",
                      rate);
        goto done;
    }
    TRY(psi_net_backward(ctx, trunk->net, trunk->work, trunk->d_outputs, trunk->d_features, NULL));
    TRY(psi_adam_step(ctx, trunk->adam, trunk->net, trunk->work, rate));
done:
    return status;
}

psi_status learn_trunk_train(psi_ctx *ctx, const cluster_problem *problem, problem_inputs *inputs,
                             const trunk_options *options, psi_net *net, trunk_losses *losses)
{
    psi_status status = PSI_OK;
    trunk_state trunk;
    *losses = (trunk_losses){0};
    TRY(trunk_new(ctx, problem, inputs, options, net, &trunk));
    const psi_schedule schedule = {.kind = PSI_LINEAR,
                                   .learning_rate = options->learning_rate,
                                   .warmup_steps = WARM_UP,
                                   .decay_from = 0.3};
    const size_t counted = base_max(options->steps / 10, 1);
    base_progress progress = base_progress_start(ctx, "learning features", options->steps);
    for (size_t step = 0; status == PSI_OK && step < options->steps; step++) {
        trunk_losses now = {0};
        base_random random = base_random_stream(options->seed, 0x77696e64, step);
        problem_windows_draw(&trunk.sampler, &random, &trunk.batch);
        const double rate = psi_schedule_at(&schedule, step, options->steps);
        status = train_step(ctx, &trunk, inputs, options, &random, rate, &now);
        if (status == PSI_OK) status = base_progress_at(&progress, step + 1);
        if (step + counted < options->steps) continue;
        losses->reward += now.reward / (double)counted;
        losses->inverse += now.inverse / (double)counted;
        losses->contrast += now.contrast / (double)counted;
        losses->next += now.next / (double)counted;
    }
    if (status == PSI_OK) base_progress_end(&progress, options->steps);
    if (status == PSI_OK) status = learn_share_net(ctx, net);
    trunk_free(ctx, &trunk);
done:
    return status;
}
