#include "learn/network.h"

#include "base/checked.h"
#include "base/comm.h"
#include "base/context.h"
#include "base/progress.h"
#include "base/random.h"
#include "base/threads.h"
#include "learn/representation.h"
#include "learn/share.h"

#include <math.h>
#include <string.h>

enum { PREDICT_ROWS = 2048 };

typedef struct network_state {
    const network_options *options;
    feature_cache cache;
    float *block; // (PREDICT_ROWS, D)
} network_state;

// Every class begins as the class it comes from, for all actions.
static psi_status inherit(psi_ctx *ctx, const learn_fit *start, const int32_t *parent,
                          learn_fit *fit, size_t d)
{
    psi_status status = PSI_OK;
    float *from = NULL, *to = NULL;
    TRY(base_alloc(ctx, start->n_actions * start->n_classes, d * sizeof(float), &from));
    TRY(base_alloc(ctx, fit->n_actions * fit->n_classes, d * sizeof(float), &to));
    for (size_t tensor = 0; tensor < 2; tensor++) { // head.weight (A·K, D), head.bias (A·K)
        const size_t width = tensor == 0 ? d : 1;
        TRY(psi_net_tensor_get(ctx, start->net, tensor, from));
        TRY(psi_net_tensor_get(ctx, fit->net, tensor, to));
        for (size_t a = 0; a < fit->n_actions; a++) {
            for (size_t k = 0; k < fit->n_classes; k++) {
                if (parent[k] < 0) continue;
                memcpy(to + (a * fit->n_classes + k) * width,
                       from + (a * start->n_classes + (size_t)parent[k]) * width,
                       width * sizeof *to);
            }
        }
        TRY(psi_net_tensor_set(ctx, fit->net, tensor, to));
    }
done:
    base_free(ctx, to);
    base_free(ctx, from);
    return status;
}

static psi_status head_new(psi_ctx *ctx, const network_state *state, const learn_samples *samples,
                           size_t max_batch, uint64_t seed, learn_fit **out)
{
    psi_status status = PSI_OK;
    learn_fit *fit = NULL;
    *out = NULL;
    psi_net_spec spec = psi_net_defaults(PSI_NET_MLP, &(psi_shape){1, {state->cache.d}},
                                         PSI_FLOAT32, samples->n_actions, samples->n_classes);
    spec.n_hidden = 0;
    spec.scale = state->cache.scale;
    TRY(base_alloc_zero(ctx, 1, sizeof *fit, &fit));
    fit->n_actions = samples->n_actions;
    fit->n_classes = samples->n_classes;
    TRY(psi_net_new(ctx, &spec, seed, &fit->net));
    TRY(psi_work_new(ctx, fit->net,
                     &(psi_work_options){.size = sizeof(psi_work_options), .max_batch = max_batch},
                     &fit->work));
    *out = fit;
    fit = NULL;
done:
    learn_fit_free(ctx, fit);
    return status;
}

// Samples by class: those of class k are order[begin[k] … begin[k + 1]).
typedef struct by_class {
    uint32_t *order;
    size_t *begin; // (K + 1)
} by_class;

static psi_status sort_by_class(psi_ctx *ctx, const learn_samples *samples, by_class *out)
{
    psi_status status = PSI_OK;
    size_t *next = NULL;
    const size_t k = samples->n_classes;
    TRY(base_alloc(ctx, samples->n, sizeof *out->order, &out->order));
    TRY(base_alloc_zero(ctx, k + 1, sizeof *out->begin, &out->begin));
    TRY(base_alloc(ctx, k, sizeof *next, &next));
    for (size_t i = 0; i < samples->n; i++) out->begin[samples->targets[i] + 1]++;
    for (size_t c = 0; c < k; c++) {
        out->begin[c + 1] += out->begin[c];
        next[c] = out->begin[c];
    }
    for (size_t i = 0; i < samples->n; i++) {
        out->order[next[samples->targets[i]]++] = (uint32_t)i;
    }
done:
    base_free(ctx, next);
    return status;
}

// Steps whose batches are drawn at once, by several processes: rank 0 learns from what all of them
// have, and they talk seldom.
enum { AT_ONCE = 16 };

// What head training keeps between steps.
typedef struct head_training {
    int rank, ranks;
    size_t at_once;
    by_class sorted;
    size_t *before;    // (ranks + 1) samples of earlier processes
    size_t *of_class;  // (K, ranks + 1) the same of every class
    int *owner;        // (at_once · batch) the process whose sample it is
    uint64_t *rows;    // (at_once · batch) of this process's samples
    float *inputs;     // (at_once · batch, D)
    int32_t *actions;  // (at_once · batch)
    int32_t *targets;  // (at_once · batch)
    float *log_priors; // (A, K)
} head_training;

static void head_training_free(psi_ctx *ctx, head_training *training)
{
    base_free(ctx, training->sorted.order);
    base_free(ctx, training->sorted.begin);
    base_free(ctx, training->before);
    base_free(ctx, training->of_class);
    base_free(ctx, training->owner);
    base_free(ctx, training->rows);
    base_free(ctx, training->inputs);
    base_free(ctx, training->actions);
    base_free(ctx, training->targets);
    base_free(ctx, training->log_priors);
}

// How many samples of every class all processes have.
static psi_status count_samples(psi_ctx *ctx, const learn_samples *samples, head_training *training)
{
    psi_status status = PSI_OK;
    const size_t ranks = (size_t)training->ranks, k = samples->n_classes;
    size_t *own = NULL, *all = NULL; // (K), of every process
    TRY(base_alloc_zero(ctx, ranks + 1, sizeof *training->before, &training->before));
    TRY(base_alloc_zero(ctx, k, (ranks + 1) * sizeof *training->of_class, &training->of_class));
    TRY(base_alloc(ctx, k, sizeof *own, &own));
    TRY(base_alloc(ctx, ranks, k * sizeof *all, &all));
    for (size_t c = 0; c < k; c++)
        own[c] = training->sorted.begin[c + 1] - training->sorted.begin[c];
    TRY(base_gather(ctx, own, k * sizeof *own, all));
    for (size_t r = 0; r < ranks; r++) {
        training->before[r + 1] = training->before[r];
        for (size_t c = 0; c < k; c++) {
            size_t *of = training->of_class + c * (ranks + 1) + r;
            of[1] = of[0] + all[r * k + c];
            training->before[r + 1] += all[r * k + c];
        }
    }
done:
    base_free(ctx, all);
    base_free(ctx, own);
    return status;
}

// Half of a batch is drawn class by class. That shows class k (½ + ½/(K·p(k))) times as often as
// the data do; the logarithm is added to the logits while training.
static void class_priors(const learn_samples *samples, const head_training *training,
                         float *log_priors)
{
    size_t present = 0;
    const size_t classes = samples->n_classes, ranks = (size_t)training->ranks;
    const size_t *of_class = training->of_class + ranks; // in all
    for (size_t k = 0; k < classes; k++) present += of_class[k * (ranks + 1)] > 0;
    for (size_t k = 0; k < classes; k++) {
        const double share = (double)of_class[k * (ranks + 1)] / (double)training->before[ranks];
        const double more = share > 0.0 ? 0.5 + 0.5 / ((double)present * share) : 1.0;
        for (size_t a = 0; a < samples->n_actions; a++) {
            log_priors[a * classes + k] = (float)log(more);
        }
    }
}

static int owner_of(const size_t *before, size_t i)
{
    int owner = 0;
    while (i >= before[owner + 1]) owner++;
    return owner;
}

// The samples of this process among those of a batch, from `own` on; returns how many there are in
// all so far.
static size_t draw_batch(const learn_samples *samples, head_training *training, base_random *random,
                         size_t batch, int *owner, size_t own)
{
    const by_class *sorted = &training->sorted;
    const size_t ranks = (size_t)training->ranks;
    for (size_t i = 0; i < batch; i++) {
        const size_t *before = training->before;
        const uint32_t *order = NULL;
        size_t chosen = base_random_below(random, (uint32_t)before[ranks]);
        if (i % 2 == 0) {
            const uint32_t k = base_random_below(random, (uint32_t)samples->n_classes);
            const size_t *of_class = training->of_class + k * (ranks + 1);
            if (of_class[ranks] > 0) {
                chosen = base_random_below(random, (uint32_t)of_class[ranks]);
                before = of_class;
                order = sorted->order + sorted->begin[k];
            }
        }
        owner[i] = owner_of(before, chosen);
        if (owner[i] != training->rank) continue;
        chosen -= before[training->rank];
        if (order) chosen = order[chosen];
        training->actions[own] = samples->actions ? samples->actions[chosen] : 0;
        training->targets[own] = samples->targets[chosen];
        training->rows[own++] = samples->rows[chosen];
    }
    return own;
}

// What several processes have drawn, n samples in all, in its order: for rank 0.
static psi_status bring_batches(psi_ctx *ctx, head_training *training, size_t d, size_t n)
{
    psi_status status = PSI_OK;
    const size_t ranks = (size_t)training->ranks;
    float *inputs = NULL;
    int32_t *columns = NULL, *all_columns = NULL;       // (n, 2) action, target
    size_t *counts = NULL, *sizes = NULL, *next = NULL; // (ranks)
    const size_t room = training->rank == 0 ? n : 0;
    TRY(base_alloc_zero(ctx, ranks, sizeof *counts, &counts));
    TRY(base_alloc_zero(ctx, ranks, sizeof *next, &next));
    TRY(base_alloc(ctx, ranks, sizeof *sizes, &sizes));
    for (size_t i = 0; i < n; i++) counts[training->owner[i]]++;
    const size_t own = counts[training->rank];
    TRY(base_alloc(ctx, room, d * sizeof *inputs, &inputs));
    TRY(base_alloc(ctx, own, 2 * sizeof *columns, &columns));
    TRY(base_alloc(ctx, room, 2 * sizeof *columns, &all_columns));
    for (size_t i = 0; i < own; i++) {
        columns[2 * i] = training->actions[i];
        columns[2 * i + 1] = training->targets[i];
    }
    for (size_t r = 0; r < ranks; r++) sizes[r] = counts[r] * 2 * sizeof *columns;
    TRY(base_gather_at(ctx, columns, sizes, 0, all_columns));
    for (size_t r = 0; r < ranks; r++) sizes[r] = counts[r] * d * sizeof *inputs;
    TRY(base_gather_at(ctx, training->inputs, sizes, 0, inputs));
    for (size_t r = 1; r < ranks; r++) next[r] = next[r - 1] + counts[r - 1];
    for (size_t i = 0; i < room; i++) {
        const size_t at = next[training->owner[i]]++;
        memcpy(training->inputs + i * d, inputs + at * d, d * sizeof *inputs);
        training->actions[i] = all_columns[2 * at];
        training->targets[i] = all_columns[2 * at + 1];
    }
done:
    base_free(ctx, next);
    base_free(ctx, sizes);
    base_free(ctx, counts);
    base_free(ctx, all_columns);
    base_free(ctx, columns);
    base_free(ctx, inputs);
    return status;
}

// The batches of so many steps.
static psi_status draw_batches(psi_ctx *ctx, const network_state *state,
                               const learn_samples *samples, uint64_t seed, size_t first,
                               size_t steps, size_t batch, head_training *training)
{
    size_t own = 0;
    for (size_t step = first; step < first + steps; step++) {
        base_random random = base_random_stream(seed, 0x68656164, step);
        own = draw_batch(samples, training, &random, batch,
                         training->owner + (step - first) * batch, own);
    }
    learn_features_gather(ctx, &state->cache, training->rows, own, training->inputs);
    return training->ranks == 1 ? PSI_OK
                                : bring_batches(ctx, training, state->cache.d, steps * batch);
}

// A batch of rows of features, of which each loses half.
typedef struct dropping {
    float *inputs; // (batch, D)
    size_t batch, d;
    uint64_t seed, step;
} dropping;

// What four features are multiplied by, for every four random bits. Those that are kept are
// doubled: the mean stays what it was. (Without the table, branches take longer than the training.)
static const float KEPT[16][4] = {{0, 0, 0, 0}, {2, 0, 0, 0}, {0, 2, 0, 0}, {2, 2, 0, 0},
                                  {0, 0, 2, 0}, {2, 0, 2, 0}, {0, 2, 2, 0}, {2, 2, 2, 0},
                                  {0, 0, 0, 2}, {2, 0, 0, 2}, {0, 2, 0, 2}, {2, 2, 0, 2},
                                  {0, 0, 2, 2}, {2, 0, 2, 2}, {0, 2, 2, 2}, {2, 2, 2, 2}};

static void drop_half(void *argument, int thread, int threads)
{
    enum { BITS = 128 }; // that are drawn at once
    const dropping *job = argument;
    const size_t d = job->d;
    size_t begin, end;
    base_slice(job->batch, thread, threads, &begin, &end);
    for (size_t i = begin; i < end; i++) {
        float *z = job->inputs + i * d;
        uint32_t bits[BITS / 32];
        for (size_t k = 0; k < d; k += 4) {
            if (k % BITS == 0) {
                base_random_block(job->seed, 0x64726f70, job->step * job->batch + i,
                                  (uint32_t)(k / BITS), bits);
            }
            const float *kept = KEPT[bits[k % BITS / 32] >> k % 32 & 15];
            if (d - k >= 4) {
                for (size_t j = 0; j < 4; j++) z[k + j] *= kept[j];
            } else {
                for (size_t j = 0; j < d - k; j++) z[k + j] *= kept[j];
            }
        }
    }
}

static psi_status head_training_new(psi_ctx *ctx, const learn_samples *samples, size_t batch,
                                    size_t d, head_training *out)
{
    psi_status status = PSI_OK;
    const size_t cells = samples->n_actions * samples->n_classes;
    *out = (head_training){.rank = base_rank(ctx), .ranks = base_ranks(ctx)};
    out->at_once = out->ranks > 1 ? AT_ONCE : 1;
    const size_t room = out->at_once * batch;
    TRY(sort_by_class(ctx, samples, &out->sorted));
    TRY(count_samples(ctx, samples, out));
    if (out->before[out->ranks] == 0) {
        TRY(FAIL(ctx, PSI_EDATA, "there is no transition left to learn from"));
    }
    TRY(base_alloc(ctx, room, sizeof *out->owner, &out->owner));
    TRY(base_alloc(ctx, room, sizeof *out->rows, &out->rows));
    TRY(base_alloc(ctx, room, d * sizeof(float), &out->inputs));
    TRY(base_alloc(ctx, room, sizeof *out->actions, &out->actions));
    TRY(base_alloc(ctx, room, sizeof *out->targets, &out->targets));
    TRY(base_alloc(ctx, cells, sizeof *out->log_priors, &out->log_priors));
    class_priors(samples, out, out->log_priors);
done:
    return status;
}

static psi_status fit_head(void *self, psi_ctx *ctx, const learn_samples *samples,
                           const learn_fit *start, const int32_t *parent, uint64_t seed,
                           learn_fit **out)
{
    psi_status status = PSI_OK;
    const network_state *state = self;
    const network_options *options = state->options;
    const size_t batch = options->head_batch, steps = options->head_steps, d = state->cache.d;
    learn_fit *fit = NULL;
    psi_adam *adam = NULL;
    head_training training;
    *out = NULL;
    TRY(head_training_new(ctx, samples, batch, d, &training));
    TRY(head_new(ctx, state, samples, base_max(batch, PREDICT_ROWS), seed, &fit));
    if (start) TRY(inherit(ctx, start, parent, fit, d));
    TRY(psi_adam_new(ctx, fit->net, NULL, &adam));
    const psi_schedule schedule = {PSI_LINEAR, options->head_learning_rate, 0, 0.0};
    base_progress progress = base_progress_start(ctx, samples->phase, steps);
    for (size_t step = 0; step < steps; step++) {
        const size_t drawn = step % training.at_once, first = drawn * batch;
        if (drawn == 0) {
            TRY(draw_batches(ctx, state, samples, seed, step,
                             base_min(training.at_once, steps - step), batch, &training));
        }
        if (training.rank > 0) continue;
        const psi_labels labels = {.actions = training.actions + first,
                                   .targets = training.targets + first,
                                   .log_priors = training.log_priors};
        float *inputs = training.inputs + first * d;
        if (options->dropout) {
            dropping job = {inputs, batch, d, seed, step};
            base_team_run(base_ctx_team(ctx), drop_half, &job);
        }
        double loss;
        TRY(psi_net_train_step(ctx, fit->net, fit->work, adam, inputs, &labels, batch,
                               psi_schedule_at(&schedule, step, steps), &loss));
        TRY(base_progress_at(&progress, step + 1));
    }
    base_progress_end(&progress, steps);
    TRY(learn_share_net(ctx, fit->net));
    *out = fit;
    fit = NULL;
done:
    head_training_free(ctx, &training);
    psi_adam_free(ctx, adam);
    learn_fit_free(ctx, fit);
    return status;
}

static psi_status load(void *self, psi_ctx *ctx, const char *path, size_t n_actions,
                       size_t n_classes, learn_fit **out)
{
    psi_status status = PSI_OK;
    const network_state *state = self;
    learn_fit *fit = NULL;
    *out = NULL;
    TRY(base_alloc_zero(ctx, 1, sizeof *fit, &fit));
    TRY(psi_net_load(ctx, path, &fit->net));
    const psi_net_spec *spec = psi_net_spec_of(fit->net);
    if (spec->kind != PSI_NET_MLP || spec->n_hidden != 0 || spec->input_dtype != PSI_FLOAT32 ||
        psi_shape_size(&spec->input) != state->cache.d || spec->n_actions != n_actions ||
        spec->n_classes != n_classes) {
        status = FAIL(ctx, PSI_EDATA, "%s does not hold heads of %zu actions and %zu classes", path,
                      n_actions, n_classes);
        goto done;
    }
    fit->n_actions = n_actions;
    fit->n_classes = n_classes;
    TRY(psi_work_new(
        ctx, fit->net,
        &(psi_work_options){.size = sizeof(psi_work_options), .max_batch = PREDICT_ROWS},
        &fit->work));
    *out = fit;
    fit = NULL;
done:
    learn_fit_free(ctx, fit);
    return status;
}

// base_softmax in floats and by all threads: every state, action and class of every refinement
// passes here.
typedef struct softmax_job {
    float *p;
    size_t n, k; // rows of k logits
} softmax_job;

static void softmax_rows(void *argument, int thread, int threads)
{
    const softmax_job *job = argument;
    size_t begin, end;
    base_slice(job->n, thread, threads, &begin, &end);
    for (size_t i = begin; i < end; i++) {
        float *row = job->p + i * job->k, most = row[0], sum = 0.0f;
        for (size_t k = 1; k < job->k; k++) most = row[k] > most ? row[k] : most;
        for (size_t k = 0; k < job->k; k++) sum += row[k] = expf(row[k] - most);
        for (size_t k = 0; k < job->k; k++) row[k] /= sum;
    }
}

static psi_status predict(void *self, psi_ctx *ctx, const learn_fit *fit, const uint64_t *rows,
                          size_t n, float *p)
{
    const network_state *state = self;
    const size_t width = fit->n_actions * fit->n_classes;
    for (size_t begin = 0; begin < n; begin += PREDICT_ROWS) {
        const size_t count = base_min(PREDICT_ROWS, n - begin);
        learn_features_gather(ctx, &state->cache, rows + begin, count, state->block);
        const psi_status status =
            psi_net_predict(ctx, fit->net, fit->work, state->block, count, NULL, p + begin * width);
        if (status != PSI_OK) return status;
        softmax_job job = {p + begin * width, count * fit->n_actions, fit->n_classes};
        base_team_run(base_ctx_team(ctx), softmax_rows, &job);
    }
    return PSI_OK;
}

static void network_free(void *self, psi_ctx *ctx)
{
    network_state *state = self;
    if (!state) return;
    learn_features_free(ctx, &state->cache);
    base_free(ctx, state->block);
    base_free(ctx, state);
}

// A trunk that was fitted before must be the network that would be fitted now.
static psi_status check_trunk(psi_ctx *ctx, const psi_net *trunk, const psi_net_spec *wanted)
{
    const psi_net_spec *spec = psi_net_spec_of(trunk);
    const bool same = learn_same_trunk(spec, wanted) && spec->n_actions == wanted->n_actions &&
                      spec->n_classes == wanted->n_classes;
    if (same) return PSI_OK;
    return FAIL(ctx, PSI_EDATA, "the checkpoint's trunk is not a network for these observations");
}

static psi_net_spec trunk_spec(const cluster_problem *problem, const problem_inputs *inputs,
                               const network_options *options)
{
    psi_net_spec spec = psi_net_defaults(options->kind, &inputs->shape, inputs->dtype,
                                         problem->data->n_actions, problem->rewards.n);
    spec.mean = inputs->mean;
    spec.scale = inputs->scale;
    if (options->n_hidden > 0) {
        spec.n_hidden = options->n_hidden;
        memcpy(spec.hidden, options->hidden, sizeof spec.hidden);
    }
    return spec;
}

psi_status learn_network_new_trunk(psi_ctx *ctx, const cluster_problem *problem,
                                   const problem_inputs *inputs, const network_options *options,
                                   psi_net **out)
{
    psi_net_spec spec = trunk_spec(problem, inputs, options);
    spec.n_actions = 1; // its heads are never asked
    spec.n_classes = 2;
    return psi_net_new(ctx, &spec, options->seed, out);
}

psi_status learn_network_fit_trunk(psi_ctx *ctx, const cluster_problem *problem,
                                   problem_inputs *inputs, const network_options *options,
                                   psi_net **out)
{
    psi_status status = PSI_OK;
    psi_net *trunk = NULL;
    trunk_losses losses;
    const psi_net_spec spec = trunk_spec(problem, inputs, options);
    *out = NULL;
    TRY(psi_net_new(ctx, &spec, options->seed, &trunk));
    status = learn_trunk_train(ctx, problem, inputs, &options->trunk, trunk, &losses);
    if (status != PSI_OK && !(status == PSI_ECANCELLED && base_time_is_up(ctx))) goto done;
    *out = trunk; // as far as it got
    trunk = NULL;
done:
    psi_net_free(ctx, trunk);
    return status;
}

psi_status learn_network_share_trunk(psi_ctx *ctx, const cluster_problem *problem,
                                     const problem_inputs *inputs, const network_options *options,
                                     psi_net **trunk)
{
    psi_status status = PSI_OK;
    const psi_net_spec spec = trunk_spec(problem, inputs, options);
    uint8_t known = *trunk != NULL;
    TRY(base_any(ctx, &known, 1));
    if (!known) goto done;
    if (*trunk) TRY(check_trunk(ctx, *trunk, &spec));
    if (!*trunk) TRY(psi_net_new(ctx, &spec, options->seed, trunk));
    TRY(learn_share_net(ctx, *trunk));
done:
    return status;
}

psi_status learn_network_new(psi_ctx *ctx, const cluster_problem *problem, problem_inputs *inputs,
                             const network_options *options, const psi_net *trunk,
                             learn_approximator *out)
{
    psi_status status = PSI_OK;
    network_state *state = NULL;
    const psi_net_spec spec = trunk_spec(problem, inputs, options);
    *out = (learn_approximator){0};
    TRY(check_trunk(ctx, trunk, &spec));
    TRY(base_alloc_zero(ctx, 1, sizeof *state, &state));
    state->options = options;
    TRY(learn_features_new(ctx, problem, inputs, trunk, options->cache, &state->cache));
    TRY(base_alloc(ctx, PREDICT_ROWS, state->cache.d * sizeof(float), &state->block));
    *out = (learn_approximator){.kind = learn_kind_of(options->kind),
                                .self = state,
                                .fit = fit_head,
                                .predict = predict,
                                .load = load,
                                .free = network_free,
                                .features = &state->cache};
    state = NULL;
done:
    network_free(state, ctx);
    return status;
}

psi_status learn_network_join(psi_ctx *ctx, const feature_cache *features, const psi_net *trunk,
                              const learn_fit *fit, psi_net **out)
{
    psi_status status = PSI_OK;
    const size_t d = features->d, outputs = fit->n_actions * fit->n_classes;
    psi_net *net = NULL, *head = NULL;
    float *weight = NULL;
    *out = NULL;
    TRY(learn_with_new_head(ctx, trunk, fit->n_actions, fit->n_classes, 0, &net));
    TRY(psi_net_clone(ctx, fit->net, &head));
    TRY(base_alloc(ctx, outputs, d * sizeof *weight, &weight));
    TRY(psi_net_tensor_get(ctx, head, 0, weight)); // head.weight (A·K, D), of scaled features
    for (size_t i = 0; i < outputs * d; i++) weight[i] *= features->scale[i % d];
    TRY(psi_net_tensor_set(ctx, head, 0, weight));
    TRY(psi_net_set_head(ctx, net, head));
    *out = net;
    net = NULL;
done:
    base_free(ctx, weight);
    psi_net_free(ctx, head);
    psi_net_free(ctx, net);
    return status;
}
