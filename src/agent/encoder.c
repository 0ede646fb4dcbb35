#include "agent/encoder.h"

#include "base/context.h"
#include "base/vector.h"

#include <math.h>
#include <string.h>

enum { MOST_STATES = 1 << 16 }; // of a one-hot vector

static psi_status numbered(psi_ctx *ctx, agent_encoder *encoder, double n)
{
    if (!(n >= 1 && n <= MOST_STATES)) {
        return FAIL(ctx, PSI_ELIMIT,
                    "%.0f states are too many for a one-hot vector; at most %d are possible", n,
                    MOST_STATES);
    }
    encoder->numbered = true;
    encoder->n_states = (size_t)n;
    encoder->row_bytes = sizeof(int32_t);
    encoder->shape = (psi_shape){1, {encoder->n_states}};
    encoder->dtype = PSI_FLOAT32;
    return PSI_OK;
}

static void as_vector(agent_encoder *encoder, size_t width)
{
    encoder->row_bytes = width * sizeof(float);
    encoder->shape = (psi_shape){1, {width}};
    encoder->dtype = PSI_FLOAT32;
}

// The largest latent state of the truth, from the exact model; with a map if it is another task's.
static psi_status see_truth(psi_ctx *ctx, agent_encoder *encoder, const psi_task *task,
                            const psi_task *truth_of)
{
    psi_status status = PSI_OK;
    psi_task_exact *own = NULL, *model = NULL;
    TRY(psi_task_model(ctx, truth_of ? truth_of : task, &model));
    if (truth_of) {
        TRY(psi_task_model(ctx, task, &own));
        if (own->n_states != model->n_states) {
            status = FAIL(ctx, PSI_ESHAPE, "the truth of a task with %zu states, in one with %zu",
                          model->n_states, own->n_states);
            goto done;
        }
        TRY(base_alloc(ctx, model->n_states, sizeof *encoder->truth, &encoder->truth));
        memcpy(encoder->truth, model->latent_states, model->n_states * sizeof *encoder->truth);
    }
    int32_t largest = 0;
    for (size_t s = 0; s < model->n_states; s++) {
        if (model->latent_states[s] > largest) largest = model->latent_states[s];
    }
    status = numbered(ctx, encoder, (double)largest + 1);
done:
    psi_task_model_free(ctx, own);
    psi_task_model_free(ctx, model);
    return status;
}

static psi_status see_through(psi_ctx *ctx, agent_encoder *encoder, const psi_net *net)
{
    psi_status status = PSI_OK;
    if (!net) {
        return FAIL(ctx, PSI_EMISSING,
                    "this agent needs the representation network of a clustering run");
    }
    const psi_net_spec *spec = psi_net_spec_of(net);
    encoder->rounds = encoder->space.dtype == PSI_INT64 && spec->input_dtype == PSI_FLOAT32;
    if ((spec->input_dtype != encoder->space.dtype && !encoder->rounds) ||
        psi_shape_size(&spec->input) != psi_shape_size(&encoder->space.shape)) {
        return FAIL(ctx, PSI_ESHAPE,
                    "the representation was made for %s observations of %zu numbers, these are %s "
                    "of %zu",
                    psi_dtype_name(spec->input_dtype), psi_shape_size(&spec->input),
                    psi_dtype_name(encoder->space.dtype), psi_shape_size(&encoder->space.shape));
    }
    encoder->net = net;
    encoder->n_features = psi_net_n_features(net);
    encoder->n_outputs = psi_net_n_outputs(net);
    const size_t width =
        encoder->view == PSI_VIEW_FEATURES ? encoder->n_features : encoder->n_outputs;
    TRY(base_alloc(ctx, encoder->most, width * sizeof *encoder->seen, &encoder->seen));
    TRY(base_alloc(ctx, encoder->most, sizeof *encoder->rounded, &encoder->rounded));
    if (encoder->view == PSI_VIEW_ONE_HOT) {
        status = numbered(ctx, encoder, (double)encoder->n_outputs);
    } else {
        as_vector(encoder, width);
    }
done:
    return status;
}

psi_status agent_encoder_new(psi_ctx *ctx, const psi_task *task, const psi_agent_options *options,
                             size_t most, agent_encoder **out)
{
    psi_status status = PSI_OK;
    agent_encoder *encoder = NULL;
    *out = NULL;
    TRY(base_alloc_zero(ctx, 1, sizeof *encoder, &encoder));
    encoder->most = most;
    encoder->view = options->view;
    encoder->space = psi_task_observe(task);
    if (encoder->view == PSI_VIEW_TRUTH) {
        TRY(see_truth(ctx, encoder, task, options->truth_of));
    } else if (encoder->view != PSI_VIEW_OBSERVATION) {
        TRY(see_through(ctx, encoder, options->representation));
    } else if (encoder->space.dtype == PSI_INT64) {
        TRY(numbered(ctx, encoder, encoder->space.high + 1));
    } else {
        encoder->row_bytes = encoder->space.row_bytes;
        encoder->shape = encoder->space.shape;
        encoder->dtype = encoder->space.dtype;
    }
    *out = encoder;
    encoder = NULL;
done:
    agent_encoder_free(ctx, encoder);
    return status;
}

void agent_encoder_free(psi_ctx *ctx, agent_encoder *encoder)
{
    if (!encoder) return;
    base_free(ctx, encoder->seen);
    base_free(ctx, encoder->rounded);
    base_free(ctx, encoder->truth);
    psi_work_free(ctx, encoder->work);
    base_free(ctx, encoder);
}

// A network's output, as the top layer takes it.
static void digest(const agent_encoder *encoder, const psi_real *x, float *row)
{
    double sum = 0;
    if (encoder->view == PSI_VIEW_SOFTMAX) {
        base_softmax(x, encoder->n_outputs, row);
        return;
    }
    // raw ReLU features are so large that Q-values diverge: unit root mean square instead
    for (size_t i = 0; i < encoder->n_features; i++) sum += (double)x[i] * (double)x[i];
    const double scale = sum > 0 ? sqrt((double)encoder->n_features / sum) : 0;
    for (size_t i = 0; i < encoder->n_features; i++) row[i] = (float)((double)x[i] * scale);
}

int32_t agent_encoder_truth(const agent_encoder *encoder, const psi_env *env)
{
    return encoder->truth ? encoder->truth[psi_env_ground_state(env, 0)]
                          : psi_env_latent_state(env, 0);
}

static int64_t state_at(const void *observations, size_t i)
{
    int64_t state;
    memcpy(&state, (const char *)observations + i * sizeof state, sizeof state);
    return state;
}

static psi_status look_through(psi_ctx *ctx, agent_encoder *encoder, const void *observations,
                               size_t n, char *rows)
{
    psi_status status = PSI_OK;
    const bool features = encoder->view == PSI_VIEW_FEATURES;
    const size_t width = features ? encoder->n_features : encoder->n_outputs;
    if (encoder->rounds) {
        for (size_t i = 0; i < n; i++) encoder->rounded[i] = (float)state_at(observations, i);
        observations = encoder->rounded;
    }
    if (!encoder->work) {
        const psi_work_options options = {
            .size = sizeof options, .max_batch = encoder->most, .predict_only = true};
        TRY(psi_work_new(ctx, encoder->net, &options, &encoder->work));
    }
    TRY(psi_net_predict(ctx, encoder->net, encoder->work, observations, n,
                        features ? encoder->seen : NULL, features ? NULL : encoder->seen));
    for (size_t i = 0; i < n; i++) {
        char *row = rows + i * encoder->row_bytes;
        if (encoder->numbered) {
            const int32_t number =
                (int32_t)base_largest(encoder->seen + i * width, 0, encoder->n_outputs);
            memcpy(row, &number, sizeof number);
        } else {
            digest(encoder, encoder->seen + i * width, (float *)(void *)row);
        }
    }
done:
    return status;
}

psi_status agent_encoder_encode(psi_ctx *ctx, agent_encoder *encoder, const void *observations,
                                const int32_t *truth, size_t n, void *rows)
{
    int32_t *number = rows;
    if (encoder->view == PSI_VIEW_TRUTH) {
        memcpy(rows, truth, n * sizeof *truth);
    } else if (encoder->view != PSI_VIEW_OBSERVATION) {
        return look_through(ctx, encoder, observations, n, rows);
    } else if (encoder->numbered) {
        for (size_t i = 0; i < n; i++) number[i] = (int32_t)state_at(observations, i);
    } else {
        memcpy(rows, observations, n * encoder->row_bytes);
    }
    return PSI_OK;
}

void agent_encoder_inputs(const agent_encoder *encoder, const void *rows, size_t n, void *inputs)
{
    if (!encoder->numbered) {
        memcpy(inputs, rows, n * encoder->row_bytes);
        return;
    }
    const int32_t *number = rows;
    float *x = inputs;
    memset(x, 0, n * encoder->n_states * sizeof *x);
    for (size_t i = 0; i < n; i++) x[i * encoder->n_states + (size_t)number[i]] = 1;
}

size_t agent_encoder_input_bytes(const agent_encoder *encoder)
{
    return psi_shape_size(&encoder->shape) * psi_dtype_size(encoder->dtype);
}
