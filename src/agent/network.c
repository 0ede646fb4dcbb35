// Deep Q-learning (Mnih et al.): a Q-network, a copy of it that follows slowly and says what values
// should be, and batches from the replay memory. A frozen agent is the same on encoded rows: a
// network of one linear layer, its top layer.
#include "agent/learner.h"
#include "agent/td.h"

#include "base/context.h"
#include "base/file.h"

#include <math.h>
#include <string.h>

typedef struct network_mind {
    agent_learner learner;
    psi_net *online, *target;
    psi_adam *adam;
    psi_work *training;   // of updates
    psi_work *judging;    // target values of a batch
    psi_work *acting;     // values of one observation
    agent_replay *replay; // of rows of the encoder
    agent_batch batch;
    char *inputs;          // (batch) of the network
    psi_real *q, *d_q, *y; // (batch, A), (batch, A), (batch)
    double largest_reward;
} network_mind;

static network_mind *of(agent_learner *learner)
{
    return (network_mind *)learner;
}

psi_status agent_check_values(psi_ctx *ctx, const agent_learner *learner, double largest_value,
                              double largest_reward)
{
    enum { BEYOND = 100 };
    const double bound = fmax(largest_reward, 1) / (1 - learner->options.gamma);
    if (largest_value <= BEYOND * bound) return PSI_OK;
    return FAIL(ctx, PSI_ENUMERIC,
                "the values diverged: %g after %llu updates, where rewards add up to %g at most; "
                "try a lower learning rate than %g",
                largest_value, (unsigned long long)learner->updates, bound,
                learner->options.learning_rate);
}

// Sets a tensor of this name to zero.
static psi_status clear_tensor(psi_ctx *ctx, psi_net *net, const char *name)
{
    psi_status status = PSI_OK;
    psi_real *zeros = NULL;
    for (size_t i = 0; i < psi_net_tensor_count(net); i++) {
        psi_tensor_info info;
        TRY(psi_net_tensor_info(ctx, net, i, &info));
        if (strcmp(info.name, name) != 0) continue;
        TRY(base_alloc_zero(ctx, psi_shape_size(&info.shape), sizeof *zeros, &zeros));
        TRY(psi_net_tensor_set(ctx, net, i, zeros));
        break;
    }
done:
    base_free(ctx, zeros);
    return status;
}

static psi_status fresh_network(psi_ctx *ctx, const agent_encoder *encoder,
                                const psi_agent_options *options, size_t n_actions, psi_net **out)
{
    psi_status status = PSI_OK;
    const bool whole = encoder->view == PSI_VIEW_OBSERVATION;
    psi_net_spec spec = psi_net_defaults(whole && !encoder->numbered ? options->net : PSI_NET_MLP,
                                         &encoder->shape, encoder->dtype, n_actions, 1);
    if (!whole) spec.n_hidden = 0;
    for (size_t i = 0; i < spec.n_hidden; i++) spec.hidden[i] = options->hidden;
    TRY(psi_net_new(ctx, &spec, options->seed, out));
    // a frozen agent starts from Q = 0 everywhere: no action looks better than it is known to be
    if (!whole) TRY(clear_tensor(ctx, *out, "head.weight"));
    if (!whole) TRY(clear_tensor(ctx, *out, "head.bias"));
done:
    return status;
}

static psi_status copy_network(psi_ctx *ctx, const agent_encoder *encoder, const psi_net *start,
                               size_t n_actions, psi_net **out)
{
    if (!start) {
        return FAIL(ctx, PSI_EMISSING, "a pretrained agent needs a Q-network to start from");
    }
    const psi_net_spec *spec = psi_net_spec_of(start);
    if (spec->input_dtype != encoder->dtype ||
        psi_shape_size(&spec->input) != psi_shape_size(&encoder->shape) ||
        psi_net_n_outputs(start) != n_actions) {
        return FAIL(ctx, PSI_ESHAPE,
                    "the Q-network to start from is for %s observations of %zu numbers and %zu "
                    "actions, this task has %s, %zu and %zu",
                    psi_dtype_name(spec->input_dtype), psi_shape_size(&spec->input),
                    psi_net_n_outputs(start), psi_dtype_name(encoder->dtype),
                    psi_shape_size(&encoder->shape), n_actions);
    }
    return psi_net_clone(ctx, start, out);
}

static psi_status make_batch(psi_ctx *ctx, network_mind *self)
{
    psi_status status = PSI_OK;
    const size_t n = self->learner.options.batch, outputs = n * self->learner.n_actions;
    TRY(agent_batch_new(ctx, n, self->learner.encoder->row_bytes, &self->batch));
    TRY(base_alloc(ctx, n, agent_encoder_input_bytes(self->learner.encoder), &self->inputs));
    TRY(base_alloc(ctx, outputs, sizeof *self->q, &self->q));
    TRY(base_alloc(ctx, outputs, sizeof *self->d_q, &self->d_q));
    TRY(base_alloc(ctx, n, sizeof *self->y, &self->y));
done:
    return status;
}

static void network_free(psi_ctx *ctx, agent_learner *learner)
{
    network_mind *self = of(learner);
    if (!self) return;
    psi_net_free(ctx, self->online);
    psi_net_free(ctx, self->target);
    psi_adam_free(ctx, self->adam);
    psi_work_free(ctx, self->training);
    psi_work_free(ctx, self->judging);
    psi_work_free(ctx, self->acting);
    agent_replay_free(ctx, self->replay);
    agent_batch_free(ctx, &self->batch);
    base_free(ctx, self->inputs);
    base_free(ctx, self->q);
    base_free(ctx, self->d_q);
    base_free(ctx, self->y);
    base_free(ctx, self);
}

static psi_status network_begin(psi_ctx *ctx, agent_learner *learner, const void *row)
{
    (void)ctx;
    agent_replay_begin(of(learner)->replay, row);
    return PSI_OK;
}

static psi_status network_values(psi_ctx *ctx, agent_learner *learner, const void *row, psi_real *q)
{
    network_mind *self = of(learner);
    agent_encoder_inputs(learner->encoder, row, 1, self->inputs);
    return psi_net_predict(ctx, self->online, self->acting, self->inputs, 1, NULL, q);
}

// One update: y from the target network, a step of Adam on the loss, and the target follows.
static psi_status update(psi_ctx *ctx, network_mind *self)
{
    psi_status status = PSI_OK;
    const psi_agent_options *options = &self->learner.options;
    const size_t n = options->batch, n_actions = self->learner.n_actions;
    agent_batch *batch = &self->batch;
    base_random random =
        base_random_stream(options->seed, AGENT_STREAM_BATCH, self->learner.updates);
    agent_replay_sample(self->replay, &random, batch);
    agent_encoder_inputs(self->learner.encoder, batch->next, n, self->inputs);
    TRY(psi_net_predict(ctx, self->target, self->judging, self->inputs, n, NULL, self->q));
    const double largest = agent_td_targets(n, n_actions, batch->rewards, batch->terminated,
                                            self->q, options->gamma, self->y);
    TRY(agent_check_values(ctx, &self->learner, largest, self->largest_reward));
    agent_encoder_inputs(self->learner.encoder, batch->observations, n, self->inputs);
    TRY(psi_net_forward(ctx, self->online, self->training, self->inputs, n,
                        options->freeze_norm ? PSI_NORM_FROZEN : PSI_NORM_BATCH));
    const double loss = agent_td_loss(options->loss, n, n_actions, psi_work_outputs(self->training),
                                      batch->actions, self->y, self->d_q);
    if (!isfinite(loss)) {
        status = FAIL(ctx, PSI_ENUMERIC,
                      "the loss became %g after %llu updates; try a lower learning rate than %g",
                      loss, (unsigned long long)self->learner.updates, options->learning_rate);
        goto done;
    }
    TRY(psi_net_backward(ctx, self->online, self->training, self->d_q, NULL, NULL));
    TRY(psi_adam_step(ctx, self->adam, self->online, self->training, options->learning_rate));
    self->learner.updates++;
    self->learner.loss_sum += loss;
    self->learner.losses++;
    if (options->target_period == 0) {
        TRY(psi_net_blend(ctx, self->target, self->online, options->tau));
    } else if (self->learner.updates % options->target_period == 0) {
        TRY(psi_net_blend(ctx, self->target, self->online, 1));
    }
done:
    return status;
}

static psi_status network_learn(psi_ctx *ctx, agent_learner *learner, const agent_step *step)
{
    network_mind *self = of(learner);
    agent_replay_add(self->replay, step->action, step->reward, step->terminated, step->next);
    self->largest_reward = fmax(self->largest_reward, fabs(step->reward));
    learner->steps++;
    return agent_update_due(learner, self->replay) ? update(ctx, self) : PSI_OK;
}

// The files of a learner in its folder.
static const char *const FILES[] = {"online.safetensors", "target.safetensors", "adam.safetensors",
                                    "replay.npz"};
enum { ONLINE, TARGET, ADAM, REPLAY, N_FILES };

static psi_status paths_of(psi_ctx *ctx, const char *folder, char *paths[N_FILES])
{
    psi_status status = PSI_OK;
    for (size_t i = 0; i < N_FILES; i++) TRY(base_join(ctx, folder, FILES[i], &paths[i]));
done:
    return status;
}

static psi_status network_save(psi_ctx *ctx, const agent_learner *learner, const char *folder)
{
    psi_status status = PSI_OK;
    const network_mind *self = (const network_mind *)learner;
    char *paths[N_FILES] = {NULL};
    TRY(paths_of(ctx, folder, paths));
    TRY(psi_net_save(ctx, self->online, paths[ONLINE]));
    TRY(psi_net_save(ctx, self->target, paths[TARGET]));
    TRY(psi_adam_save(ctx, self->adam, paths[ADAM]));
    TRY(agent_replay_save(ctx, self->replay, paths[REPLAY]));
done:
    for (size_t i = 0; i < N_FILES; i++) base_free(ctx, paths[i]);
    return status;
}

static psi_status network_load(psi_ctx *ctx, agent_learner *learner, const char *folder)
{
    psi_status status = PSI_OK;
    network_mind *self = of(learner);
    char *paths[N_FILES] = {NULL};
    psi_net *online = NULL, *target = NULL;
    TRY(paths_of(ctx, folder, paths));
    TRY(psi_net_load(ctx, paths[ONLINE], &online));
    TRY(psi_net_load(ctx, paths[TARGET], &target));
    TRY(psi_net_blend(ctx, self->online, online, 1)); // refuses another architecture
    TRY(psi_net_blend(ctx, self->target, target, 1));
    TRY(psi_adam_load(ctx, self->adam, paths[ADAM]));
    TRY(agent_replay_load(ctx, self->replay, learner->n_actions, learner->encoder->n_states,
                          paths[REPLAY]));
    for (size_t i = 0; i < self->replay->rows; i++) {
        self->largest_reward = fmax(self->largest_reward, fabs((double)self->replay->rewards[i]));
    }
    // the networks as they were saved: their files carry counts that blending leaves out
    psi_net *old_online = self->online, *old_target = self->target;
    self->online = online;
    self->target = target;
    online = old_online;
    target = old_target;
done:
    for (size_t i = 0; i < N_FILES; i++) base_free(ctx, paths[i]);
    psi_net_free(ctx, online);
    psi_net_free(ctx, target);
    return status;
}

static const agent_learner_rules RULES = {network_begin, network_values, network_learn,
                                          network_save,  network_load,   network_free};

psi_status agent_network_new(psi_ctx *ctx, const agent_encoder *encoder,
                             const psi_agent_options *options, agent_learner **out)
{
    psi_status status = PSI_OK;
    network_mind *self = NULL;
    const size_t n_actions = encoder->space.n_actions;
    *out = NULL;
    TRY(base_alloc_zero(ctx, 1, sizeof *self, &self));
    self->learner = (agent_learner){
        .rules = &RULES, .options = *options, .encoder = encoder, .n_actions = n_actions};
    if (options->kind == PSI_AGENT_PRETRAINED) {
        TRY(copy_network(ctx, encoder, options->start, n_actions, &self->online));
    } else {
        TRY(fresh_network(ctx, encoder, options, n_actions, &self->online));
    }
    TRY(psi_net_clone(ctx, self->online, &self->target));
    TRY(psi_adam_new(ctx, self->online, NULL, &self->adam));
    TRY(psi_work_new(
        ctx, self->online,
        &(psi_work_options){.size = sizeof(psi_work_options), .max_batch = options->batch},
        &self->training));
    TRY(psi_work_new(ctx, self->online,
                     &(psi_work_options){.size = sizeof(psi_work_options),
                                         .max_batch = options->batch,
                                         .predict_only = true},
                     &self->judging));
    TRY(psi_work_new(
        ctx, self->online,
        &(psi_work_options){.size = sizeof(psi_work_options), .max_batch = 1, .predict_only = true},
        &self->acting));
    TRY(agent_replay_new(ctx, options->buffer, encoder->row_bytes, &self->replay));
    TRY(make_batch(ctx, self));
    *out = &self->learner;
    self = NULL;
done:
    if (self) network_free(ctx, &self->learner);
    return status;
}

const psi_net *agent_network_of(const agent_learner *learner)
{
    return ((const network_mind *)learner)->online;
}

bool agent_network_forgot(const agent_learner *learner)
{
    return agent_replay_holds_no_reward(((const network_mind *)learner)->replay);
}
