#include "learn/paper.h"

#include "base/checked.h"
#include "base/context.h"
#include "base/file.h"
#include "base/vector.h"
#include "learn/representation.h"

#include <stdio.h>
#include <unistd.h>

enum { PREDICT_ROWS = 512 };

typedef struct paper_state {
    problem_inputs *inputs;
    const paper_options *options;
    psi_net *first; // untrained
    psi_net *last;  // trained last: the next one takes over its lower layers
    char *kept;     // the file that keeps the training under way, or the last one
} paper_state;

static psi_status remember(psi_ctx *ctx, paper_state *state, const psi_net *net)
{
    psi_net *copy;
    const psi_status status = psi_net_clone(ctx, net, &copy);
    if (status != PSI_OK) return status;
    psi_net_free(ctx, state->last);
    state->last = copy;
    return PSI_OK;
}

// A name of its own for what is kept of each training. That of the one before is removed: its
// refinement is in the checkpoint by now.
static psi_status keep_in(psi_ctx *ctx, paper_state *state, uint64_t seed)
{
    psi_status status = PSI_OK;
    char name[64];
    if (!state->options->checkpoint) return PSI_OK;
    if (state->kept) (void)unlink(state->kept);
    base_free(ctx, state->kept);
    state->kept = NULL;
    snprintf(name, sizeof name, "fit-%016llx.safetensors", (unsigned long long)seed);
    TRY(base_join(ctx, state->options->checkpoint, name, &state->kept));
done:
    return status;
}

static psi_status fit_network(void *self, psi_ctx *ctx, const learn_samples *samples,
                              const learn_fit *start, const int32_t *parent, uint64_t seed,
                              learn_fit **out)
{
    (void)start, (void)parent;
    psi_status status = PSI_OK;
    paper_state *state = self;
    const paper_options *options = state->options;
    learn_fit *fit = NULL;
    *out = NULL;
    if (samples->n == 0) return FAIL(ctx, PSI_EDATA, "there is no transition left to learn from");
    TRY(base_alloc_zero(ctx, 1, sizeof *fit, &fit));
    fit->n_actions = samples->n_actions;
    fit->n_classes = samples->n_classes;
    TRY(learn_with_new_head(ctx, state->last ? state->last : state->first, samples->n_actions,
                            samples->n_classes, seed, &fit->net));
    TRY(psi_work_new(ctx, fit->net,
                     &(psi_work_options){.size = sizeof(psi_work_options),
                                         .max_batch = base_max(options->batch, PREDICT_ROWS)},
                     &fit->work));
    const psi_samples all = {.source = {state->inputs, problem_inputs_gather},
                             .n = samples->n,
                             .rows = samples->rows,
                             .actions = samples->actions,
                             .targets = samples->targets};
    const psi_train_options how = {.size = sizeof how,
                                   .batch = base_min(options->batch, samples->n),
                                   .epochs =
                                       state->last ? options->sf_epochs : options->reward_epochs,
                                   .schedule = {PSI_CONSTANT, options->learning_rate, 0, 0.0},
                                   .phase = samples->phase,
                                   .seed = seed};
    TRY(keep_in(ctx, state, seed));
    TRY(learn_train(ctx, fit->net, fit->work, &all, &how, state->kept, state->inputs));
    TRY(remember(ctx, state, fit->net));
    *out = fit;
    fit = NULL;
done:
    learn_fit_free(ctx, fit);
    return status;
}

static psi_status predict(void *self, psi_ctx *ctx, const learn_fit *fit, const uint64_t *rows,
                          size_t n, float *p)
{
    const paper_state *state = self;
    const psi_batch_source source = {state->inputs, problem_inputs_gather};
    const psi_status status =
        psi_net_predict_all(ctx, fit->net, fit->work, &source, rows, n, NULL, NULL, p);
    if (status != PSI_OK) return status;
    for (size_t i = 0; i < n * fit->n_actions; i++) {
        float *row = p + i * fit->n_classes;
        base_softmax(row, fit->n_classes, row);
    }
    return PSI_OK;
}

// A network from a file, if it takes these observations.
static psi_status check_net(psi_ctx *ctx, const paper_state *state, const psi_net *net,
                            size_t n_actions, size_t n_classes)
{
    const psi_net_spec *spec = psi_net_spec_of(net), *wanted = psi_net_spec_of(state->first);
    const bool same = learn_same_trunk(spec, wanted) && spec->n_actions == n_actions &&
                      spec->n_classes == n_classes;
    if (same) return PSI_OK;
    return FAIL(ctx, PSI_EDATA, "the checkpoint's network is not one for these observations");
}

static psi_status load(void *self, psi_ctx *ctx, const char *path, size_t n_actions,
                       size_t n_classes, learn_fit **out)
{
    psi_status status = PSI_OK;
    paper_state *state = self;
    learn_fit *fit = NULL;
    *out = NULL;
    TRY(base_alloc_zero(ctx, 1, sizeof *fit, &fit));
    TRY(psi_net_load(ctx, path, &fit->net));
    TRY(check_net(ctx, state, fit->net, n_actions, n_classes));
    fit->n_actions = n_actions;
    fit->n_classes = n_classes;
    TRY(psi_work_new(
        ctx, fit->net,
        &(psi_work_options){.size = sizeof(psi_work_options), .max_batch = PREDICT_ROWS},
        &fit->work));
    TRY(remember(ctx, state, fit->net));
    *out = fit;
    fit = NULL;
done:
    learn_fit_free(ctx, fit);
    return status;
}

static void paper_free(void *self, psi_ctx *ctx)
{
    paper_state *state = self;
    if (!state) return;
    psi_net_free(ctx, state->first);
    psi_net_free(ctx, state->last);
    base_free(ctx, state->kept);
    base_free(ctx, state);
}

psi_status learn_paper_new(psi_ctx *ctx, const cluster_problem *problem, problem_inputs *inputs,
                           const paper_options *options, const psi_net *rewards,
                           learn_approximator *out)
{
    psi_status status = PSI_OK;
    paper_state *state = NULL;
    psi_net_spec spec = psi_net_defaults(options->kind, &inputs->shape, inputs->dtype,
                                         problem->data->n_actions, problem->rewards.n);
    spec.mean = inputs->mean;
    spec.scale = inputs->scale;
    if (options->kind == PSI_NET_MLP) {
        spec.n_hidden = 2;
        spec.hidden[0] = spec.hidden[1] = options->hidden;
    }
    *out = (learn_approximator){0};
    TRY(base_alloc_zero(ctx, 1, sizeof *state, &state));
    *state = (paper_state){.inputs = inputs, .options = options};
    TRY(psi_net_new(ctx, &spec, options->seed, &state->first));
    if (rewards) {
        TRY(check_net(ctx, state, rewards, spec.n_actions, spec.n_classes));
        TRY(remember(ctx, state, rewards));
    }
    *out = (learn_approximator){.kind = learn_kind_of(options->kind),
                                .self = state,
                                .fit = fit_network,
                                .predict = predict,
                                .load = load,
                                .free = paper_free,
                                .trained = (const psi_net *const *)&state->last};
    state = NULL;
done:
    paper_free(state, ctx);
    return status;
}
