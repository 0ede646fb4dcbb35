// Training over a data set in shuffled epochs. The order of an epoch is a random stream named by
// seed and epoch, so that all there is to keep for a later continuation is how far we were.
#include "nn/pass.h"
#include "nn/safetensors.h"

#include "base/checked.h"
#include "base/comm.h"
#include "base/context.h"
#include "base/options.h"
#include "base/progress.h"
#include "base/random.h"
#include "base/vector.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { RANDOM_HELD_OUT = 0x6e6e02, RANDOM_EPOCH = 0x6e6e03 };

// One batch on its way from the samples to the network.
typedef struct batch_room {
    void *inputs;
    uint64_t *rows;
    int32_t *actions, *targets;
    float *weights;
    real *outputs; // predictions, when judging
} batch_room;

// How far a training is.
typedef struct progress_state {
    uint64_t epoch, position; // samples of the epoch that are done
    uint64_t steps, stopped;
    double loss_sum; // of the epoch
    uint64_t loss_count;
} progress_state;

struct psi_training {
    psi_net *net;
    psi_work *work;
    psi_samples samples;
    psi_train_options options;
    psi_adam *adam;
    size_t n_train, n_held_out;
    uint64_t steps_per_epoch, n_steps;
    uint32_t *split; // all samples, those held out last
    uint32_t *order; // of the current epoch
    uint64_t order_of;
    batch_room room;
    progress_state at;
    psi_epoch last;
    double started;
    base_progress progress; // of all runs, from the first one on
};

static psi_status check_options(psi_ctx *ctx, const psi_work *work, const psi_samples *samples,
                                const psi_train_options *options)
{
    if (!work->training) {
        return FAIL(ctx, PSI_EUSAGE, "this workspace was made for prediction only");
    }
    if (options->batch < 1 || options->batch > work->max_batch) {
        return FAIL(ctx, PSI_EUSAGE, "batches of %zu in a workspace for 1 to %zu", options->batch,
                    work->max_batch);
    }
    if (options->epochs < 1) return FAIL(ctx, PSI_EUSAGE, "a training has at least one epoch");
    if (!(options->held_out >= 0 && options->held_out <= 0.9)) {
        return FAIL(ctx, PSI_EUSAGE, "a share of 0 to 0.9 can be held out, not %g",
                    options->held_out);
    }
    if (!(options->schedule.learning_rate > 0) || !isfinite(options->schedule.learning_rate)) {
        return FAIL(ctx, PSI_EUSAGE, "the learning rate is %g", options->schedule.learning_rate);
    }
    if (samples->n < 1 || samples->n > UINT32_MAX) {
        return FAIL(ctx, PSI_EDATA, "a training needs from 1 to 2^32 samples, not %zu", samples->n);
    }
    return PSI_OK;
}

static psi_status make_room(psi_ctx *ctx, const psi_net *net, size_t batch, batch_room *room)
{
    const nn_architecture *arch = &net->arch;
    const size_t bytes = psi_shape_size(&arch->input) * psi_dtype_size(arch->input_dtype);
    psi_status status = PSI_OK;
    TRY(base_alloc(ctx, batch, bytes, &room->inputs));
    TRY(base_alloc(ctx, batch, sizeof *room->rows, &room->rows));
    TRY(base_alloc(ctx, batch, sizeof *room->actions, &room->actions));
    TRY(base_alloc(ctx, batch, sizeof *room->targets, &room->targets));
    TRY(base_alloc(ctx, batch, sizeof *room->weights, &room->weights));
    TRY(base_alloc(ctx, batch * psi_net_n_outputs(net), sizeof(real), &room->outputs));
done:
    return status;
}

psi_status psi_training_new(psi_ctx *ctx, psi_net *net, psi_work *work, const psi_samples *samples,
                            const psi_train_options *options, psi_training **out)
{
    *out = NULL;
    if (FREED(ctx, net, work)) return PSI_EUSAGE;
    if (!base_options_fit(ctx, options, sizeof *options, "{.size = sizeof(psi_train_options)}"))
        return PSI_EUSAGE;
    psi_training *training = NULL;
    psi_status status = PSI_OK;
    TRY(nn_work_check(ctx, work, net));
    TRY(check_options(ctx, work, samples, options));
    const psi_labels all = {samples->actions, samples->targets, samples->weights,
                            samples->log_priors};
    TRY(nn_loss_check(ctx, &net->arch, &all, samples->n));
    TRY(base_alloc_zero(ctx, 1, sizeof *training, &training));
    training->net = net;
    training->work = work;
    training->samples = *samples;
    training->options = *options;
    training->n_held_out = (size_t)((double)samples->n * options->held_out);
    training->n_train = samples->n - training->n_held_out;
    // a last batch of one sample has no statistics to norm by, and is left out
    const size_t rest = training->n_train % options->batch;
    training->steps_per_epoch = training->n_train / options->batch + (rest > 1);
    if (training->steps_per_epoch == 0) training->steps_per_epoch = 1;
    training->n_steps = training->steps_per_epoch * options->epochs;
    if (options->max_steps > 0 && options->max_steps < training->n_steps) {
        training->n_steps = options->max_steps;
    }
    TRY(psi_adam_new(ctx, net, NULL, &training->adam));
    TRY(make_room(ctx, net, options->batch, &training->room));
    TRY(base_alloc(ctx, samples->n, sizeof *training->split, &training->split));
    TRY(base_alloc(ctx, samples->n, sizeof *training->order, &training->order));
    base_random stream = base_random_stream(options->seed, RANDOM_HELD_OUT, 0);
    base_random_shuffle(&stream, training->split, samples->n);
    training->order_of = UINT64_MAX;
    const double none = (double)NAN;
    training->last =
        (psi_epoch){.training_loss = none, .held_out_loss = none, .held_out_accuracy = none};
    *out = training;
    training = NULL;
done:
    psi_training_free(ctx, training);
    return status;
}

void psi_training_free(psi_ctx *ctx, psi_training *training)
{
    if (!training || FREED(ctx, training)) return;
    psi_adam_free(ctx, training->adam);
    base_free(ctx, training->room.inputs);
    base_free(ctx, training->room.rows);
    base_free(ctx, training->room.actions);
    base_free(ctx, training->room.targets);
    base_free(ctx, training->room.weights);
    base_free(ctx, training->room.outputs);
    base_free(ctx, training->split);
    base_free(ctx, training->order);
    base_retire(ctx, training);
}

bool psi_training_finished(const psi_training *training)
{
    if (FREED(NULL, training)) return false;
    return training->at.stopped || training->at.steps >= training->n_steps;
}

// Every batch is full but an epoch's last; a sample that would be alone in it is left out.
uint64_t psi_training_seen(const psi_training *training)
{
    if (FREED(NULL, training)) return 0;
    const uint64_t per_epoch = training->steps_per_epoch, steps = training->at.steps;
    const uint64_t batch = training->options.batch;
    return steps / per_epoch * base_min(per_epoch * batch, training->n_train) +
           steps % per_epoch * batch;
}

// Brings the samples with these numbers into the room.
static psi_status fetch(psi_ctx *ctx, psi_training *training, const uint32_t *numbers, size_t n,
                        psi_labels *labels)
{
    const psi_samples *samples = &training->samples;
    batch_room *room = &training->room;
    for (size_t i = 0; i < n; i++) {
        const size_t s = numbers[i];
        room->rows[i] = samples->rows ? samples->rows[s] : s;
        room->actions[i] = samples->actions ? samples->actions[s] : 0;
        room->targets[i] = samples->targets[s];
        room->weights[i] = samples->weights ? samples->weights[s] : 1;
    }
    *labels = (psi_labels){room->actions, room->targets, room->weights, samples->log_priors};
    return samples->source.gather(samples->source.user, ctx, room->rows, n, room->inputs);
}

// Loss and accuracy on the samples that are never trained on.
static psi_status judge(psi_ctx *ctx, psi_training *training, double *loss, double *accuracy)
{
    const nn_architecture *arch = &training->net->arch;
    const size_t width = arch->n_actions * arch->n_classes;
    const uint32_t *held_out = training->split + training->n_train;
    const real *outputs = training->room.outputs;
    double total = 0, weight = 0, right = 0;
    psi_status status = PSI_OK;
    for (size_t first = 0; first < training->n_held_out; first += training->options.batch) {
        const size_t n = base_min(training->options.batch, training->n_held_out - first);
        psi_labels labels;
        TRY(base_cancelled(ctx));
        TRY(fetch(ctx, training, held_out + first, n, &labels));
        TRY(psi_net_predict(ctx, training->net, training->work, training->room.inputs, n, NULL,
                            training->room.outputs));
        total += nn_loss_rows(training->work, &labels, outputs, n, 1, NULL);
        for (size_t i = 0; i < n; i++) {
            const real *z = outputs + i * width + (size_t)labels.actions[i] * arch->n_classes;
            const size_t best = base_largest(z, 0, arch->n_classes);
            right += best == (size_t)labels.targets[i] ? (double)labels.weights[i] : 0;
            weight += (double)labels.weights[i];
        }
    }
    *loss = weight > 0 ? total / weight : (double)NAN;
    *accuracy = weight > 0 ? right / weight : (double)NAN;
done:
    return status;
}

static psi_status end_epoch(psi_ctx *ctx, psi_training *training)
{
    progress_state *at = &training->at;
    psi_epoch *last = &training->last;
    psi_status status = PSI_OK;
    double loss, accuracy;
    TRY(judge(ctx, training, &loss, &accuracy));
    *last = (psi_epoch){.epoch = at->epoch + 1,
                        .steps = at->steps,
                        .training_loss = at->loss_sum / (double)base_max(at->loss_count, 1),
                        .held_out_loss = loss,
                        .held_out_accuracy = accuracy,
                        .learning_rate = psi_schedule_at(&training->options.schedule, at->steps - 1,
                                                         training->n_steps),
                        .seconds = base_seconds() - training->started};
    at->epoch++;
    at->position = 0;
    at->loss_sum = 0;
    at->loss_count = 0;
    bool stop = false;
    if (training->options.after_epoch) {
        TRY(training->options.after_epoch(training->options.user, last, &stop));
    }
    if (stop) at->stopped = 1;
done:
    return status;
}

// The order of the current epoch: the training part of the split, shuffled.
static void order_epoch(psi_training *training)
{
    if (training->order_of == training->at.epoch) return;
    base_random stream =
        base_random_stream(training->options.seed, RANDOM_EPOCH, training->at.epoch);
    base_random_shuffle(&stream, training->order, training->n_train);
    for (size_t i = 0; i < training->n_train; i++) {
        training->order[i] = training->split[training->order[i]];
    }
    training->order_of = training->at.epoch;
}

static psi_status one_step(psi_ctx *ctx, psi_training *training)
{
    progress_state *at = &training->at;
    const double rate = psi_schedule_at(&training->options.schedule, at->steps, training->n_steps);
    const size_t n = base_min(training->options.batch, training->n_train - at->position);
    psi_labels labels;
    double loss = 0;
    psi_status status = PSI_OK;
    order_epoch(training);
    TRY(fetch(ctx, training, training->order + at->position, n, &labels));
    status = psi_net_train_step(ctx, training->net, training->work, training->adam,
                                training->room.inputs, &labels, n, rate, &loss);
    if (status == PSI_ENUMERIC) {
        return FAIL(ctx, PSI_ENUMERIC,
                    "the loss became %g at step %" PRIu64 " with learning rate %g: try a lower "
                    "rate, or look at the scale of the observations",
                    loss, at->steps + 1, rate);
    }
    TRY(status);
    at->loss_sum += loss * (double)n;
    at->loss_count += n;
    at->position += n;
    at->steps++;
    const bool last = at->position >= training->n_train ||
                      at->steps % training->steps_per_epoch == 0 || at->steps >= training->n_steps;
    if (last) TRY(end_epoch(ctx, training));
done:
    return status;
}

psi_status psi_training_run(psi_ctx *ctx, psi_training *training, uint64_t n_steps)
{
    if (FREED(ctx, training)) return PSI_EUSAGE;
    const uint64_t end = n_steps == 0 || training->n_steps - training->at.steps < n_steps
                             ? training->n_steps
                             : training->at.steps + n_steps;
    psi_status status = PSI_OK;
    training->started = base_seconds();
    if (!training->progress.phase) {
        const char *phase = training->options.phase ? training->options.phase : "train";
        training->progress =
            base_progress_resume(ctx, phase, training->at.steps, training->n_steps);
    }
    while (training->at.steps < end && !training->at.stopped) {
        TRY(base_progress_at(&training->progress, training->at.steps));
        TRY(one_step(ctx, training));
    }
    if (psi_training_finished(training)) {
        base_progress_end(&training->progress, training->at.steps);
    }
done:
    return status;
}

// What a state file holds: slabs as they are in memory, and how far the training is.
enum { SLABS = 5, COUNTERS = 9 };

typedef struct slab {
    const char *name;
    real *data;
    size_t n;
} slab;

static void list_slabs(const psi_training *training, slab slabs[SLABS])
{
    const psi_net *net = training->net;
    const nn_architecture *arch = &net->arch;
    slabs[0] = (slab){"parameters", net->parameters, arch->n_parameters};
    slabs[1] = (slab){"running_statistics", net->running, arch->n_running};
    slabs[2] = (slab){"dead_weights", net->dead, arch->n_dead};
    slabs[3] = (slab){"first_moments", training->adam->m, arch->n_parameters};
    slabs[4] = (slab){"second_moments", training->adam->v, arch->n_parameters};
}

static const nn_tensor_dtype real_dtype = sizeof(real) == sizeof(float) ? NN_F32 : NN_F64;

psi_status psi_training_save(psi_ctx *ctx, const psi_training *training, const char *path)
{
    if (FREED(ctx, training)) return PSI_EUSAGE;
    const progress_state *at = &training->at;
    const uint64_t counters[COUNTERS] = {at->epoch,
                                         at->position,
                                         at->steps,
                                         at->stopped,
                                         at->loss_count,
                                         training->adam->steps,
                                         training->net->batches,
                                         training->options.seed,
                                         training->samples.n};
    slab slabs[SLABS];
    list_slabs(training, slabs);
    nn_named_tensor tensors[SLABS + 2];
    for (size_t i = 0; i < SLABS; i++) {
        tensors[i] = (nn_named_tensor){slabs[i].name, real_dtype, 1, {slabs[i].n}, slabs[i].data};
    }
    tensors[SLABS] = (nn_named_tensor){"counters", NN_U64, 1, {COUNTERS}, counters};
    tensors[SLABS + 1] = (nn_named_tensor){"loss_sum", NN_F64, 0, {0}, &at->loss_sum};
    const nn_file_note note = {"psifold", "training"};
    return nn_safetensors_save(ctx, path, tensors, SLABS + 2, &note, 1);
}

// What a file says of a training.
typedef struct kept_training {
    uint64_t counters[COUNTERS];
    double loss_sum;
    real *slab[SLABS];
} kept_training;

static psi_status read_training(psi_ctx *ctx, const psi_training *training, const char *path,
                                const slab slabs[SLABS], kept_training *kept)
{
    nn_safetensors *file = NULL;
    uint64_t *counters = kept->counters;
    psi_status status = PSI_OK;
    TRY(nn_safetensors_open(ctx, path, &file));
    TRY(nn_safetensors_load(file, &(nn_named_tensor){"counters", NN_U64, 1, {COUNTERS}, NULL},
                            counters));
    TRY(nn_safetensors_load(file, &(nn_named_tensor){"loss_sum", NN_F64, 0, {0}, NULL},
                            &kept->loss_sum));
    if (counters[7] != training->options.seed || counters[8] != training->samples.n) {
        status = FAIL(ctx, PSI_EDATA,
                      "%s belongs to a training with seed %" PRIu64 " on %" PRIu64 " samples", path,
                      counters[7], counters[8]);
        goto done;
    }
    if (counters[1] > training->n_train || counters[2] > training->n_steps) {
        status = FAIL(ctx, PSI_EFORMAT, "%s is further than this training goes", path);
        goto done;
    }
    for (size_t i = 0; i < SLABS; i++) {
        TRY(nn_safetensors_load(
            file, &(nn_named_tensor){slabs[i].name, real_dtype, 1, {slabs[i].n}, NULL},
            kept->slab[i]));
    }
done:
    nn_safetensors_free(file);
    return status;
}

psi_status psi_training_load(psi_ctx *ctx, psi_training *training, const char *path)
{
    if (FREED(ctx, training)) return PSI_EUSAGE;
    const bool shared = training->work->shared;
    kept_training kept = {.slab = {NULL}};
    const uint64_t *counters = kept.counters;
    slab slabs[SLABS];
    psi_status status = PSI_OK;
    list_slabs(training, slabs);
    for (size_t i = 0; i < SLABS; i++) {
        TRY(base_alloc(ctx, slabs[i].n, sizeof(real), &kept.slab[i]));
    }
    // all is read before anything changes
    if (!shared || base_rank(ctx) == 0) TRY(read_training(ctx, training, path, slabs, &kept));
    if (shared) {
        TRY(base_broadcast(ctx, kept.counters, sizeof kept.counters, 0));
        TRY(base_broadcast(ctx, &kept.loss_sum, sizeof kept.loss_sum, 0));
        for (size_t i = 0; i < SLABS; i++) {
            TRY(base_broadcast(ctx, kept.slab[i], slabs[i].n * sizeof(real), 0));
        }
    }
    for (size_t i = 0; i < SLABS; i++) {
        memcpy(slabs[i].data, kept.slab[i], slabs[i].n * sizeof(real));
    }
    training->at = (progress_state){.epoch = counters[0],
                                    .position = counters[1],
                                    .steps = counters[2],
                                    .stopped = counters[3],
                                    .loss_count = counters[4],
                                    .loss_sum = kept.loss_sum};
    training->adam->steps = counters[5];
    training->net->batches = counters[6];
    nn_net_changed(training->net);
done:
    for (size_t i = 0; i < SLABS; i++) base_free(ctx, kept.slab[i]);
    return status;
}

psi_status psi_net_train(psi_ctx *ctx, psi_net *net, psi_work *work, const psi_samples *samples,
                         const psi_train_options *options)
{
    if (FREED(ctx, net, work)) return PSI_EUSAGE;
    psi_training *training = NULL;
    psi_status status = PSI_OK;
    TRY(psi_training_new(ctx, net, work, samples, options, &training));
    TRY(psi_training_run(ctx, training, 0));
done:
    psi_training_free(ctx, training);
    return status;
}
