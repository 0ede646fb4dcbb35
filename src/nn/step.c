// The public passes: checks at the door, then the team goes through.
#include "nn/pass.h"

#include "base/checked.h"
#include "base/context.h"

#include <math.h>

static psi_status check_batch(psi_ctx *ctx, const psi_work *work, const psi_net *net, size_t n)
{
    psi_status status = PSI_OK;
    TRY(nn_work_check(ctx, work, net));
    if (!work->training) {
        status = FAIL(ctx, PSI_EUSAGE, "this workspace was made for prediction only");
    } else if (n < 1 || n > work->max_batch) {
        status =
            FAIL(ctx, PSI_ESHAPE, "a batch of %zu in a workspace for 1 to %zu", n, work->max_batch);
    }
done:
    return status;
}

static nn_pass training_pass(psi_ctx *ctx, psi_net *net, psi_work *work, const void *inputs,
                             size_t n, psi_norm_mode mode)
{
    const int slices = nn_slices(&net->arch, n), ranks = work->together ? work->together->ranks : 1;
    const int learners = nn_workers(ranks, slices);
    return (nn_pass){.ctx = ctx,
                     .net = net,
                     .work = work,
                     .team = base_ctx_team(ctx),
                     .parameters = net->parameters,
                     .n = n,
                     .slices = slices,
                     .workers = nn_workers(work->threads, slices / learners),
                     .rank = work->together ? work->together->rank : 0,
                     .learners = learners,
                     .mode = mode,
                     .inputs = inputs};
}

// The prepared weights in a workspace belong to the last pass only.
static void forward_done(psi_work *work, const psi_net *net, size_t n, psi_norm_mode mode)
{
    work->folded_net = NULL;
    work->forward_net = net;
    work->forward_rows = n;
    work->mode = mode;
}

static void forward_task(void *argument, int thread, int threads)
{
    (void)threads;
    nn_prepare(argument, thread, true);
    nn_forward(argument, thread);
}

psi_status psi_net_forward(psi_ctx *ctx, psi_net *net, psi_work *work, const void *inputs, size_t n,
                           psi_norm_mode mode)
{
    if (FREED(ctx, net, work)) return PSI_EUSAGE;
    psi_status status = PSI_OK;
    TRY(check_batch(ctx, work, net, n));
    nn_pass pass = training_pass(ctx, net, work, inputs, n, mode);
    pass.keep_features = pass.keep_outputs = pass.input_gradient = true;
    nn_together_begin(&pass);
    base_team_run(pass.team, forward_task, &pass);
    nn_meet_rows(&pass, work->features, net->arch.n_features * sizeof(real));
    nn_meet_rows(&pass, work->outputs, psi_net_n_outputs(net) * sizeof(real));
    TRY(nn_together_end(&pass));
    if (mode == PSI_NORM_BATCH) {
        net->batches++;
        nn_net_changed(net);
    }
    forward_done(work, net, n, mode);
done:
    return status;
}

typedef struct backward_call {
    nn_pass pass;
    const real *d_outputs, *d_features;
    real *d_inputs;
} backward_call;

static void backward_task(void *argument, int thread, int threads)
{
    (void)threads;
    const backward_call *call = argument;
    nn_backward(&call->pass, thread, call->d_outputs, call->d_features, call->d_inputs);
    base_team_barrier(call->pass.team);
    nn_gradient_sum(&call->pass, thread);
    nn_meet_gradients(&call->pass, thread);
}

psi_status psi_net_backward(psi_ctx *ctx, const psi_net *net, psi_work *work,
                            const psi_real *d_outputs, const psi_real *d_features,
                            psi_real *d_inputs)
{
    if (FREED(ctx, net, work)) return PSI_EUSAGE;
    psi_status status = PSI_OK;
    TRY(check_batch(ctx, work, net, base_max(work->forward_rows, 1)));
    if (work->forward_net != net) {
        return FAIL(ctx, PSI_EUSAGE, "a backward pass needs a forward pass of the same network");
    }
    if (d_inputs && net->arch.image) {
        return FAIL(ctx, PSI_EUNSUPPORTED, "%s has no gradient by its inputs",
                    psi_net_kind_name(net->arch.kind));
    }
    if (!d_outputs && !d_features) {
        return FAIL(ctx, PSI_EUSAGE, "a backward pass needs a gradient to start from");
    }
    backward_call call = {
        training_pass(ctx, (psi_net *)net, work, NULL, work->forward_rows, work->mode), d_outputs,
        d_features, d_inputs};
    nn_together_begin(&call.pass);
    base_team_run(call.pass.team, backward_task, &call);
    TRY(nn_together_end(&call.pass));
done:
    return status;
}

psi_status psi_work_gradient(psi_ctx *ctx, const psi_net *net, const psi_work *work, size_t tensor,
                             psi_real *out)
{
    if (FREED(ctx, net, work)) return PSI_EUSAGE;
    psi_status status = PSI_OK;
    TRY(nn_work_check(ctx, work, net));
    if (tensor >= net->n_tensors || net->tensor[tensor].kind > NN_NORM_BIAS) {
        return FAIL(ctx, PSI_EUSAGE, "tensor %zu has no gradient", tensor);
    }
    nn_tensor_export(net, tensor, work->thread[0].gradients, NULL, out);
done:
    return status;
}

typedef struct step_call {
    nn_pass pass;
    psi_adam *adam;
    const psi_labels *labels;
    double learning_rate, total_weight, loss;
} step_call;

static void adam_task(void *argument, int thread, int threads)
{
    (void)threads;
    const step_call *call = argument;
    nn_adam_update(call->adam, &call->pass, call->learning_rate, thread, false);
}

static psi_status check_adam(psi_ctx *ctx, const psi_adam *adam, const psi_net *net)
{
    if (adam->n == net->arch.n_parameters) return PSI_OK;
    return FAIL(ctx, PSI_ESHAPE, "these moments belong to another architecture");
}

psi_status psi_adam_step(psi_ctx *ctx, psi_adam *adam, psi_net *net, psi_work *work,
                         double learning_rate)
{
    if (FREED(ctx, adam, net, work)) return PSI_EUSAGE;
    psi_status status = PSI_OK;
    TRY(check_batch(ctx, work, net, base_max(work->forward_rows, 1)));
    TRY(check_adam(ctx, adam, net));
    if (work->forward_net != net) {
        return FAIL(ctx, PSI_EUSAGE, "Adam needs a backward pass of the same network");
    }
    step_call call = {.pass = training_pass(ctx, net, work, NULL, work->forward_rows, work->mode),
                      .adam = adam,
                      .learning_rate = learning_rate};
    adam->steps++;
    base_team_run(call.pass.team, adam_task, &call);
    nn_net_changed(net);
done:
    return status;
}

static void step_task(void *argument, int thread, int threads)
{
    (void)threads;
    step_call *call = argument;
    const nn_pass *pass = &call->pass;
    psi_work *work = pass->work;
    nn_prepare(pass, thread, true);
    nn_forward_trunk(pass, thread);
    nn_head_forward(pass, thread, call->labels, call->total_weight);
    nn_meet_slices(pass, thread, work->loss, sizeof *work->loss);
    double loss = 0;
    for (int slice = 0; slice < pass->slices; slice++) loss += work->loss[slice];
    if (thread == 0) call->loss = loss;
    if (!isfinite(loss) || nn_together_failed(pass)) return; // all threads see the same
    nn_head_backward(pass, thread);
    nn_backward_trunk(pass, thread, false);
    base_team_barrier(pass->team);
    if (work->together) {
        nn_gradient_sum(pass, thread);
        nn_meet_gradients(pass, thread);
        if (nn_together_failed(pass)) return;
    }
    nn_adam_update(call->adam, pass, call->learning_rate, thread, !work->together);
}

psi_status psi_net_train_step(psi_ctx *ctx, psi_net *net, psi_work *work, psi_adam *adam,
                              const void *inputs, const psi_labels *labels, size_t n,
                              double learning_rate, double *loss)
{
    if (FREED(ctx, net, work, adam)) return PSI_EUSAGE;
    psi_status status = PSI_OK;
    TRY(check_batch(ctx, work, net, n));
    TRY(check_adam(ctx, adam, net));
    TRY(nn_loss_check(ctx, &net->arch, labels, n));
    step_call call = {.pass = training_pass(ctx, net, work, inputs, n, PSI_NORM_BATCH),
                      .adam = adam,
                      .labels = labels,
                      .learning_rate = learning_rate,
                      .total_weight = nn_loss_weight(labels, n)};
    nn_head_sort(work, labels, n);
    call.pass.order = work->order;
    forward_done(work, NULL, n, PSI_NORM_BATCH);
    adam->steps++;
    nn_together_begin(&call.pass);
    base_team_run(call.pass.team, step_task, &call);
    status = nn_together_end(&call.pass);
    if (status != PSI_OK) {
        adam->steps--;
        goto done;
    }
    net->batches++;
    nn_net_changed(net);
    *loss = call.loss;
    if (!isfinite(call.loss)) {
        adam->steps--;
        status = FAIL(ctx, PSI_ENUMERIC,
                      "the loss is %g at learning rate %g: lower it, or look at the inputs' scale",
                      call.loss, learning_rate);
    }
done:
    return status;
}
