// Speed of the network engine: images a second, and useful work against OpenBLAS's sgemm.
#include "cli/bench.h"

#include "base/context.h"
#include "base/json.h"
#include "base/progress.h"
#include "base/random.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

enum { SGEMM_SIDE = 1024, FEWEST_STEPS = 3, RANDOM_BATCH = 0x62656e };

// One thread's sgemm on large square matrices, in operations a second.
static psi_status measure_sgemm(psi_ctx *ctx, double *flops)
{
    const size_t side = SGEMM_SIDE;
    float *a = NULL, *b = NULL, *c = NULL;
    psi_status status = PSI_OK;
    TRY(base_alloc_zero(ctx, side * side, sizeof *a, &a));
    TRY(base_alloc_zero(ctx, side * side, sizeof *b, &b));
    TRY(base_alloc_zero(ctx, side * side, sizeof *c, &c));
    openblas_set_num_threads(1);
    double best = (double)INFINITY;
    for (int i = 0; i < 8; i++) {
        const double start = base_seconds();
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, SGEMM_SIDE, SGEMM_SIDE, SGEMM_SIDE,
                    1, a, SGEMM_SIDE, b, SGEMM_SIDE, 0, c, SGEMM_SIDE);
        best = fmin(best, base_seconds() - start);
    }
    *flops = 2.0 * (double)side * (double)side * (double)side / best;
done:
    base_free(ctx, a);
    base_free(ctx, b);
    base_free(ctx, c);
    return status;
}

typedef struct bench_room {
    psi_net *net;
    psi_work *work;
    psi_adam *adam;
    void *inputs;
    int32_t *actions, *targets;
    psi_real *outputs;
} bench_room;

static void bench_free(psi_ctx *ctx, bench_room *room)
{
    psi_adam_free(ctx, room->adam);
    psi_work_free(ctx, room->work);
    psi_net_free(ctx, room->net);
    base_free(ctx, room->inputs);
    base_free(ctx, room->actions);
    base_free(ctx, room->targets);
    base_free(ctx, room->outputs);
}

static psi_status bench_make(psi_ctx *ctx, const bench_nn_options *options, bool predict,
                             bench_room *room)
{
    const bool heads = strcmp(options->net, "heads") == 0;
    const size_t size = psi_shape_size(&options->shape);
    psi_net_kind kind = PSI_NET_MLP;
    psi_status status = PSI_OK;
    *room = (bench_room){0};
    if (!heads) TRY(psi_net_kind_from_name(ctx, options->net, &kind));
    const bool images = kind != PSI_NET_MLP;
    psi_net_spec spec = psi_net_defaults(kind, &options->shape, images ? PSI_UINT8 : PSI_FLOAT32,
                                         options->n_actions, options->n_classes);
    if (heads) spec.n_hidden = 0;
    const psi_work_options work_options = {.size = sizeof work_options,
                                           .max_batch = options->batch,
                                           .predict_only = predict,
                                           .exact_conv = options->exact_conv,
                                           .kernels = options->kernels};
    TRY(psi_net_new(ctx, &spec, 1, &room->net));
    TRY(psi_work_new(ctx, room->net, &work_options, &room->work));
    if (!predict) TRY(psi_adam_new(ctx, room->net, NULL, &room->adam));
    TRY(base_alloc(ctx, options->batch * size, psi_dtype_size(spec.input_dtype), &room->inputs));
    TRY(base_alloc(ctx, options->batch, sizeof(int32_t), &room->actions));
    TRY(base_alloc(ctx, options->batch, sizeof(int32_t), &room->targets));
    TRY(base_alloc(ctx, options->batch * psi_net_n_outputs(room->net), sizeof(psi_real),
                   &room->outputs));
    base_random random = base_random_stream(1, RANDOM_BATCH, 0);
    for (size_t i = 0; i < options->batch * size; i++) {
        if (images)
            ((uint8_t *)room->inputs)[i] = (uint8_t)base_random_below(&random, 256);
        else
            ((float *)room->inputs)[i] = (float)base_random_uniform(&random);
    }
    for (size_t i = 0; i < options->batch; i++) {
        room->actions[i] = (int32_t)base_random_below(&random, (uint32_t)options->n_actions);
        room->targets[i] = (int32_t)base_random_below(&random, (uint32_t)options->n_classes);
    }
done:
    return status;
}

static psi_status one_step(psi_ctx *ctx, const bench_nn_options *options, bench_room *room)
{
    const psi_labels labels = {.actions = room->actions, .targets = room->targets};
    double loss;
    if (!room->adam) {
        return psi_net_predict(ctx, room->net, room->work, room->inputs, options->batch, NULL,
                               room->outputs);
    }
    return psi_net_train_step(ctx, room->net, room->work, room->adam, room->inputs, &labels,
                              options->batch, 1e-3, &loss);
}

// The best step of those that fit into the time, after two to warm up.
static psi_status measure(psi_ctx *ctx, const bench_nn_options *options, bench_room *room,
                          double *best)
{
    psi_status status = PSI_OK;
    TRY(one_step(ctx, options, room));
    TRY(one_step(ctx, options, room));
    *best = (double)INFINITY;
    const double start = base_seconds();
    for (int i = 0; i < FEWEST_STEPS || base_seconds() - start < options->seconds; i++) {
        const double before = base_seconds();
        TRY(base_cancelled(ctx));
        TRY(one_step(ctx, options, room));
        *best = fmin(*best, base_seconds() - before);
    }
done:
    return status;
}

static psi_status bench(psi_ctx *ctx, const bench_nn_options *options, bool predict,
                        json_t *results)
{
    bench_room room = {0};
    psi_status status = PSI_OK;
    double best, sgemm;
    TRY(bench_make(ctx, options, predict, &room));
    TRY(measure(ctx, options, &room, &best));
    TRY(measure_sgemm(ctx, &sgemm));
    const double useful = psi_net_flops(room.net) * (double)options->batch / best;
    json_t *figures = json_pack(
        "{s:s, s:s, s:I, s:i, s:s, s:b, s:f, s:f, s:f, s:f, s:f, s:I}", "work",
        predict ? "predict" : "train", "net", options->net, "batch", (json_int_t)options->batch,
        "threads", psi_threads(ctx), "kernels", psi_work_kernels(room.work), "exact_conv",
        (int)options->exact_conv, "images_per_s", (double)options->batch / best, "step_ms",
        best * 1e3, "useful_gflops", predict ? 0.0 : useful / 1e9, "sgemm_gflops", sgemm / 1e9,
        "sgemm_share", predict ? 0.0 : useful / (sgemm * psi_threads(ctx)), "workspace_bytes",
        (json_int_t)psi_work_bytes(room.work));
    TRY(base_json_made(ctx, figures));
    if (json_object_update_new(results, figures) != 0) {
        status = FAIL(ctx, PSI_ENOMEM, "no memory for the figures");
    }
done:
    bench_free(ctx, &room);
    return status;
}

psi_status bench_train(psi_ctx *ctx, const bench_nn_options *options, json_t *results)
{
    return bench(ctx, options, false, results);
}

psi_status bench_predict(psi_ctx *ctx, const bench_nn_options *options, json_t *results)
{
    return bench(ctx, options, true, results);
}
