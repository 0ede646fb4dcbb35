// Prediction: batch norm folded into the weights once, then batch after batch.
#include "nn/pass.h"

#include "base/checked.h"
#include "base/context.h"
#include "base/progress.h"

#include <string.h>

static void prepare_task(void *argument, int thread, int threads)
{
    (void)threads;
    nn_prepare(argument, thread, false);
}

static void predict_task(void *argument, int thread, int threads)
{
    (void)threads;
    nn_forward_folded(argument, thread);
}

// Folded and prepared weights stay valid until the network changes or the workspace trains.
static void fold_if_needed(const nn_pass *pass)
{
    psi_work *work = pass->work;
    if (work->folded_net == pass->net && work->folded_stamp == pass->net->stamp) return;
    nn_fold(pass->net, work->folded);
    base_team_run(pass->team, prepare_task, (void *)pass);
    work->folded_net = pass->net;
    work->folded_stamp = pass->net->stamp;
    work->forward_net = NULL;
}

psi_status psi_net_predict(psi_ctx *ctx, const psi_net *net, psi_work *work, const void *inputs,
                           size_t n, psi_real *features, psi_real *outputs)
{
    if (FREED(ctx, net, work)) return PSI_EUSAGE;
    const nn_architecture *arch = &net->arch;
    const size_t bytes = psi_shape_size(&arch->input) * psi_dtype_size(arch->input_dtype);
    const size_t n_outputs = arch->n_actions * arch->n_classes;
    psi_status status = PSI_OK;
    TRY(nn_work_check(ctx, work, net));
    nn_pass pass = {.ctx = ctx,
                    .net = (psi_net *)net, // only read
                    .work = work,
                    .team = base_ctx_team(ctx),
                    .parameters = work->folded,
                    .slices = work->threads, // rows are independent: a slice for each
                    .workers = work->threads,
                    .learners = 1,
                    .keep_features = features != NULL,
                    .keep_outputs = outputs != NULL};
    fold_if_needed(&pass);
    work->forward_net = NULL;
    for (size_t first = 0; first < n; first += pass.n) {
        TRY(base_cancelled(ctx));
        pass.n = base_min(n - first, work->max_batch);
        pass.inputs = (const char *)inputs + first * bytes;
        base_team_run(pass.team, predict_task, &pass);
        if (features) {
            memcpy(features + first * arch->n_features, work->features,
                   pass.n * arch->n_features * sizeof(real));
        }
        if (outputs) {
            memcpy(outputs + first * n_outputs, work->outputs, pass.n * n_outputs * sizeof(real));
        }
    }
done:
    return status;
}

psi_status psi_net_predict_all(psi_ctx *ctx, const psi_net *net, psi_work *work,
                               const psi_batch_source *source, const uint64_t *rows, size_t n,
                               const char *phase, psi_real *features, psi_real *outputs)
{
    if (FREED(ctx, net, work)) return PSI_EUSAGE;
    const nn_architecture *arch = &net->arch;
    const size_t bytes = psi_shape_size(&arch->input) * psi_dtype_size(arch->input_dtype);
    const size_t n_outputs = arch->n_actions * arch->n_classes, batch = work->max_batch;
    char *inputs = NULL;
    uint64_t *numbers = NULL;
    psi_status status = PSI_OK;
    base_progress progress = base_progress_start(ctx, phase, n);
    TRY(nn_work_check(ctx, work, net));
    TRY(base_alloc(ctx, batch, bytes, &inputs));
    TRY(base_alloc(ctx, batch, sizeof *numbers, &numbers));
    for (size_t first = 0; first < n; first += batch) {
        const size_t count = base_min(batch, n - first);
        for (size_t i = 0; i < count; i++) numbers[i] = rows ? rows[first + i] : first + i;
        TRY(source->gather(source->user, ctx, numbers, count, inputs));
        TRY(psi_net_predict(ctx, net, work, inputs, count,
                            features ? features + first * arch->n_features : NULL,
                            outputs ? outputs + first * n_outputs : NULL));
        TRY(base_progress_at(&progress, first + count));
    }
    base_progress_end(&progress, n);
done:
    base_free(ctx, inputs);
    base_free(ctx, numbers);
    return status;
}
