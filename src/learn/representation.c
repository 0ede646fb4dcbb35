#include "learn/representation.h"

#include <psifold/cluster.h>

#include "base/checked.h"
#include "base/comm.h"
#include "base/context.h"
#include "base/progress.h"
#include "base/random.h"
#include "base/vector.h"
#include "learn/share.h"
#include "problem/images.h"

#include <string.h>
#include <unistd.h>

enum { BATCH = 256, BLOCK = 4096, STEPS = 20 };
enum { FEWEST_STEPS = 1000, MOST_STEPS = 12000, RESNET_SPARES = 250 };
enum { MOST_ROWS = 1 << 22, LABELLED_STREAM = 0x6c61626c }; // rows of MOST_STEPS, and more
static const double KEEP_EVERY = 20.0;                      // seconds

bool learn_same_trunk(const psi_net_spec *a, const psi_net_spec *b)
{
    bool same = a->kind == b->kind && a->input_dtype == b->input_dtype &&
                psi_shape_equal(&a->input, &b->input) && a->n_hidden == b->n_hidden;
    for (size_t i = 0; same && i < a->n_hidden; i++) same = a->hidden[i] == b->hidden[i];
    return same;
}

psi_status learn_with_new_head(psi_ctx *ctx, const psi_net *from, size_t n_actions,
                               size_t n_classes, uint64_t seed, psi_net **out)
{
    psi_status status = PSI_OK;
    psi_net *net = NULL;
    float *values = NULL;
    psi_net_spec spec = *psi_net_spec_of(from);
    spec.n_actions = n_actions;
    spec.n_classes = n_classes;
    *out = NULL;
    TRY(psi_net_new(ctx, &spec, seed, &net));
    for (size_t i = 0; i < psi_net_tensor_count(from); i++) {
        psi_tensor_info info;
        TRY(psi_net_tensor_info(ctx, from, i, &info));
        if (strncmp(info.name, "head.", 5) == 0) continue;
        base_free(ctx, values);
        TRY(base_alloc(ctx, psi_shape_size(&info.shape), sizeof *values, &values));
        TRY(psi_net_tensor_get(ctx, from, i, values));
        TRY(psi_net_tensor_set(ctx, net, i, values));
    }
    *out = net;
    net = NULL;
done:
    base_free(ctx, values);
    psi_net_free(ctx, net);
    return status;
}

// Rows with a label, of the held-out episodes or of the others.
typedef struct labelled {
    uint64_t *rows;
    int32_t *targets;
    size_t n;
} labelled;

static psi_status choose_rows(psi_ctx *ctx, const cluster_problem *problem, const int32_t *labels,
                              bool held_out, labelled *out)
{
    psi_status status = PSI_OK;
    const psi_trajectories *data = problem->data;
    TRY(base_alloc(ctx, problem->n_rows, sizeof *out->rows, &out->rows));
    TRY(base_alloc(ctx, problem->n_rows, sizeof *out->targets, &out->targets));
    for (size_t e = 0; e < data->n_episodes; e++) {
        const uint64_t begin = data->episode_offsets[e], end = data->episode_offsets[e + 1];
        if (begin == end || (problem->held_out[begin] != 0) != held_out) continue;
        for (uint64_t row = begin + e; row <= end + e; row++) {
            if (labels[row] < 0 || (row == end + e && data->final_missing[e])) continue;
            out->rows[out->n] = row;
            out->targets[out->n++] = labels[row];
        }
    }
done:
    return status;
}

static void labelled_free(psi_ctx *ctx, labelled *rows)
{
    base_free(ctx, rows->rows);
    base_free(ctx, rows->targets);
}

// Where there are more than are ever learnt from, one at random of each of so many parts of equal
// size. *n: how many all processes have.
static psi_status choose_some(psi_ctx *ctx, uint64_t seed, labelled *rows, size_t *n)
{
    psi_status status = PSI_OK;
    const size_t most = MOST_ROWS;
    size_t first, kept = 0;
    *n = rows->n;
    TRY(base_sum_sizes(ctx, n, 1));
    if (*n <= most) return PSI_OK;
    TRY(base_sum_before(ctx, rows->n, &first));
    base_random random = base_random_stream(seed, LABELLED_STREAM, 0);
    for (size_t i = 0; i < most; i++) {
        const size_t begin = *n * i / most, end = *n * (i + 1) / most;
        const size_t at = begin + base_random_below(&random, (uint32_t)(end - begin));
        if (at < first || at - first >= rows->n) continue; // another process's
        rows->rows[kept] = rows->rows[at - first];
        rows->targets[kept++] = rows->targets[at - first];
    }
    rows->n = kept;
    *n = most;
done:
    return status;
}

static psi_status measure_accuracy(psi_ctx *ctx, const psi_net *net, problem_inputs *inputs,
                                   const labelled *judged, size_t n_latent, double *accuracy)
{
    psi_status status = PSI_OK;
    psi_work *work = NULL;
    float *logits = NULL;
    size_t seen[] = {0, judged->n}; // right, of so many
    const psi_batch_source source = {inputs, problem_inputs_gather};
    base_progress progress = base_progress_start(ctx, "testing the representation", judged->n);
    TRY(psi_work_new(ctx, net,
                     &(psi_work_options){.size = sizeof(psi_work_options),
                                         .max_batch = BATCH,
                                         .predict_only = true},
                     &work));
    TRY(base_alloc(ctx, BLOCK, n_latent * sizeof *logits, &logits));
    for (size_t begin = 0; begin < judged->n; begin += BLOCK) {
        const size_t n = base_min(BLOCK, judged->n - begin);
        TRY(psi_net_predict_all(ctx, net, work, &source, judged->rows + begin, n, NULL, NULL,
                                logits));
        for (size_t i = 0; i < n; i++) {
            const size_t best = base_largest(logits + i * n_latent, 0, n_latent);
            seen[0] += best == (size_t)judged->targets[begin + i];
        }
        TRY(base_progress_at(&progress, begin + n));
    }
    base_progress_end(&progress, judged->n);
    TRY(base_sum_sizes(ctx, seen, 2));
    *accuracy = seen[1] > 0 ? (double)seen[0] / (double)seen[1] : 0.0;
done:
    base_free(ctx, logits);
    psi_work_free(ctx, work);
    return status;
}

// Images moved about, against overfitting.
typedef struct shifted_inputs {
    learn_rows *all;
    size_t most;
    uint64_t seed;
} shifted_inputs;

// How a batch is moved depends on what is in it and on nothing else.
static psi_status gather_shifted(void *user, psi_ctx *ctx, const uint64_t *rows, size_t n,
                                 void *out)
{
    const shifted_inputs *shifted = user;
    uint64_t batch = 0;
    const psi_status status = learn_rows_gather(shifted->all, ctx, rows, n, out);
    if (status != PSI_OK) return status;
    for (size_t i = 0; i < n; i++) batch = (batch ^ rows[i]) * 0x9e3779b97f4a7c15ull;
    base_random random = base_random_stream(shifted->seed, 0x73686966, batch);
    problem_images_shift(shifted->all->inputs, &random, shifted->most, n, out);
    return PSI_OK;
}

psi_status learn_train(psi_ctx *ctx, psi_net *net, psi_work *work, const psi_samples *samples,
                       const psi_train_options *options, const char *checkpoint,
                       problem_inputs *inputs)
{
    psi_status status = PSI_OK;
    psi_training *training = NULL;
    TRY(psi_training_new(ctx, net, work, samples, options, &training));
    uint8_t begun = checkpoint && access(checkpoint, F_OK) == 0;
    TRY(base_broadcast(ctx, &begun, sizeof begun, 0));
    if (begun) {
        TRY(psi_training_load(ctx, training, checkpoint));
        inputs->passed += psi_training_seen(training);
    }
    const bool keeps = checkpoint && base_rank(ctx) == 0;
    double kept = base_seconds();
    while (!psi_training_finished(training)) {
        status = psi_training_run(ctx, training, keeps ? STEPS : 0);
        if (status != PSI_OK && status != PSI_ECANCELLED) goto done;
        const bool cancelled = status == PSI_ECANCELLED;
        if (keeps &&
            (cancelled || base_seconds() - kept > KEEP_EVERY || psi_training_finished(training))) {
            TRY(psi_training_save(ctx, training, checkpoint));
            kept = base_seconds();
        }
        if (cancelled) TRY(base_cancelled(ctx));
    }
done:
    psi_training_free(ctx, training);
    return status;
}

// A resnet18 needs to see an observation less often than the other networks. Where there are few of
// them its steps are a third of a run's time, and 367 fewer cost 0.2 % of the images never seen.
static size_t enough_steps(psi_net_kind kind, size_t n)
{
    const bool resnet = kind == PSI_NET_RESNET18;
    const size_t steps = base_max((resnet ? 2 : 3) * n / BATCH, FEWEST_STEPS);
    return base_min(steps - (resnet ? RESNET_SPARES : 0), MOST_STEPS);
}

// The rows that all processes have chosen, by their number in the data.
static psi_status list_rows(psi_ctx *ctx, const learn_rows *all, labelled *rows)
{
    psi_status status = PSI_OK;
    labelled whole = {0};
    size_t bytes;
    if (base_ranks(ctx) == 1) return PSI_OK;
    for (size_t i = 0; i < rows->n; i++) rows->rows[i] += all->first[base_rank(ctx)];
    TRY(base_gather_parts(ctx, rows->rows, rows->n * sizeof *rows->rows, &whole.rows, &bytes));
    TRY(base_gather_parts(ctx, rows->targets, rows->n * sizeof *rows->targets, &whole.targets,
                          &bytes));
    whole.n = bytes / sizeof *rows->targets;
    labelled_free(ctx, rows);
    *rows = whole;
    whole = (labelled){0};
done:
    labelled_free(ctx, &whole);
    return status;
}

static psi_status train(psi_ctx *ctx, learn_rows *all, const labelled *training, psi_net *net,
                        const representation_options *options)
{
    psi_status status = PSI_OK;
    psi_work *work = NULL;
    TRY(psi_work_new(ctx, net,
                     &(psi_work_options){.size = sizeof(psi_work_options),
                                         .max_batch = base_max(BATCH, options->batch),
                                         .shared = true},
                     &work));
    shifted_inputs shifted = {all, options->shift, options->seed};
    const psi_samples samples = {.source = {&shifted, gather_shifted},
                                 .n = training->n,
                                 .rows = training->rows,
                                 .targets = training->targets};
    const size_t batch = options->epochs > 0 ? options->batch : BATCH, n = base_max(training->n, 1);
    const psi_train_options how = {
        .size = sizeof how,
        .batch = base_min(batch, n),
        .epochs = options->epochs > 0 ? options->epochs : 1 + options->steps * BATCH / n,
        .max_steps = options->epochs > 0 ? 0 : options->steps,
        .schedule = {options->epochs > 0 ? PSI_CONSTANT : PSI_LINEAR, options->learning_rate,
                     options->epochs > 0 ? 0 : 20, 0.3},
        .seed = options->seed,
        .phase = "training the representation"};
    TRY(learn_train(ctx, net, work, &samples, &how, options->checkpoint, all->inputs));
done:
    psi_work_free(ctx, work);
    return status;
}

psi_status learn_representation(psi_ctx *ctx, const cluster_problem *problem,
                                problem_inputs *inputs, const psi_net *from, const int32_t *labels,
                                size_t n_latent, const representation_options *options,
                                psi_net **out)
{
    psi_status status = PSI_OK;
    labelled training = {0};
    learn_rows all = {0};
    psi_net *net = NULL;
    representation_options how = *options;
    size_t n;
    *out = NULL;
    TRY(learn_rows_new(ctx, problem, inputs, &all));
    TRY(choose_rows(ctx, problem, labels, false, &training));
    TRY(choose_some(ctx, options->seed, &training, &n));
    if (how.steps == 0) how.steps = enough_steps(psi_net_spec_of(from)->kind, n);
    TRY(learn_with_new_head(ctx, from, 1, n_latent, options->seed, &net));
    TRY(list_rows(ctx, &all, &training));
    const psi_status trained = train(ctx, &all, &training, net, &how);
    if (trained != PSI_OK && !(trained == PSI_ECANCELLED && base_time_is_up(ctx))) TRY(trained);
    TRY(learn_share_net(ctx, net));
    status = trained; // that the time was up is told, too
    *out = net;       // as far as it got
    net = NULL;
done:
    learn_rows_free(ctx, &all);
    psi_net_free(ctx, net);
    labelled_free(ctx, &training);
    return status;
}

psi_status learn_representation_judge(psi_ctx *ctx, const cluster_problem *problem,
                                      problem_inputs *inputs, const psi_net *net,
                                      const int32_t *labels, size_t n_latent, double *accuracy)
{
    psi_status status = PSI_OK;
    labelled judged = {0};
    TRY(choose_rows(ctx, problem, labels, true, &judged));
    size_t any = judged.n;
    TRY(base_sum_sizes(ctx, &any, 1));
    if (any == 0) {
        labelled_free(ctx, &judged);
        judged = (labelled){0};
        TRY(choose_rows(ctx, problem, labels, false, &judged));
    }
    TRY(measure_accuracy(ctx, net, inputs, &judged, n_latent, accuracy));
done:
    labelled_free(ctx, &judged);
    return status;
}
