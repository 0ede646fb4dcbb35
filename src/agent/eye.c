#include "agent/eye.h"

#include "base/context.h"
#include "base/vector.h"

#include <math.h>
#include <string.h>

enum { MOST_STATES = 1 << 16 }; // of a one-hot vector

static psi_status numbered(psi_ctx *ctx, agent_eye *eye, double n)
{
    if (!(n >= 1 && n <= MOST_STATES)) {
        return FAIL(ctx, PSI_ELIMIT, "%.0f states are too many for a one-hot vector, %d can be", n,
                    MOST_STATES);
    }
    eye->numbered = true;
    eye->n_states = (size_t)n;
    eye->row_bytes = sizeof(int32_t);
    eye->shape = (psi_shape){1, {eye->n_states}};
    eye->dtype = PSI_FLOAT32;
    return PSI_OK;
}

static void as_vector(agent_eye *eye, size_t width)
{
    eye->row_bytes = width * sizeof(float);
    eye->shape = (psi_shape){1, {width}};
    eye->dtype = PSI_FLOAT32;
}

// The largest latent state of the truth, from the exact model; with a map if it is another task's.
static psi_status see_truth(psi_ctx *ctx, agent_eye *eye, const psi_task *task,
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
        TRY(base_alloc(ctx, model->n_states, sizeof *eye->truth, &eye->truth));
        memcpy(eye->truth, model->latent_states, model->n_states * sizeof *eye->truth);
    }
    int32_t largest = 0;
    for (size_t s = 0; s < model->n_states; s++) {
        if (model->latent_states[s] > largest) largest = model->latent_states[s];
    }
    status = numbered(ctx, eye, (double)largest + 1);
done:
    psi_task_model_free(ctx, own);
    psi_task_model_free(ctx, model);
    return status;
}

static psi_status see_through(psi_ctx *ctx, agent_eye *eye, const psi_net *net)
{
    psi_status status = PSI_OK;
    if (!net) {
        return FAIL(ctx, PSI_EMISSING,
                    "this agent needs the representation network of a clustering run");
    }
    const psi_net_spec *spec = psi_net_spec_of(net);
    eye->rounds = eye->space.dtype == PSI_INT64 && spec->input_dtype == PSI_FLOAT32;
    if ((spec->input_dtype != eye->space.dtype && !eye->rounds) ||
        psi_shape_size(&spec->input) != psi_shape_size(&eye->space.shape)) {
        return FAIL(ctx, PSI_ESHAPE,
                    "the representation was made for %s observations of %zu numbers, these are %s "
                    "of %zu",
                    psi_dtype_name(spec->input_dtype), psi_shape_size(&spec->input),
                    psi_dtype_name(eye->space.dtype), psi_shape_size(&eye->space.shape));
    }
    eye->net = net;
    eye->n_features = psi_net_n_features(net);
    eye->n_outputs = psi_net_n_outputs(net);
    const size_t width = eye->view == PSI_VIEW_FEATURES ? eye->n_features : eye->n_outputs;
    TRY(base_alloc(ctx, eye->most, width * sizeof *eye->seen, &eye->seen));
    TRY(base_alloc(ctx, eye->most, sizeof *eye->rounded, &eye->rounded));
    if (eye->view == PSI_VIEW_ONE_HOT) {
        status = numbered(ctx, eye, (double)eye->n_outputs);
    } else {
        as_vector(eye, width);
    }
done:
    return status;
}

psi_status agent_eye_new(psi_ctx *ctx, const psi_task *task, const psi_agent_options *options,
                         size_t most, agent_eye **out)
{
    psi_status status = PSI_OK;
    agent_eye *eye = NULL;
    *out = NULL;
    TRY(base_alloc_zero(ctx, 1, sizeof *eye, &eye));
    eye->most = most;
    eye->view = options->view;
    eye->space = psi_task_observe(task);
    if (eye->view == PSI_VIEW_TRUTH) {
        TRY(see_truth(ctx, eye, task, options->truth_of));
    } else if (eye->view != PSI_VIEW_OBSERVATION) {
        TRY(see_through(ctx, eye, options->representation));
    } else if (eye->space.dtype == PSI_INT64) {
        TRY(numbered(ctx, eye, eye->space.high + 1));
    } else {
        eye->row_bytes = eye->space.row_bytes;
        eye->shape = eye->space.shape;
        eye->dtype = eye->space.dtype;
    }
    *out = eye;
    eye = NULL;
done:
    agent_eye_free(ctx, eye);
    return status;
}

void agent_eye_free(psi_ctx *ctx, agent_eye *eye)
{
    if (!eye) return;
    base_free(ctx, eye->seen);
    base_free(ctx, eye->rounded);
    base_free(ctx, eye->truth);
    psi_work_free(ctx, eye->work);
    base_free(ctx, eye);
}

// What a network saw, as the top layer is to see it.
static void digest(const agent_eye *eye, const psi_real *x, float *row)
{
    double sum = 0;
    if (eye->view == PSI_VIEW_SOFTMAX) {
        base_softmax(x, eye->n_outputs, row);
        return;
    }
    // raw ReLU features are so large that Q-values diverge: unit root mean square instead
    for (size_t i = 0; i < eye->n_features; i++) sum += (double)x[i] * (double)x[i];
    const double scale = sum > 0 ? sqrt((double)eye->n_features / sum) : 0;
    for (size_t i = 0; i < eye->n_features; i++) row[i] = (float)((double)x[i] * scale);
}

int32_t agent_eye_truth(const agent_eye *eye, const psi_env *env)
{
    return eye->truth ? eye->truth[psi_env_ground_state(env, 0)] : psi_env_latent_state(env, 0);
}

static int64_t state_at(const void *observations, size_t i)
{
    int64_t state;
    memcpy(&state, (const char *)observations + i * sizeof state, sizeof state);
    return state;
}

static psi_status look_through(psi_ctx *ctx, agent_eye *eye, const void *observations, size_t n,
                               char *rows)
{
    psi_status status = PSI_OK;
    const bool features = eye->view == PSI_VIEW_FEATURES;
    const size_t width = features ? eye->n_features : eye->n_outputs;
    if (eye->rounds) {
        for (size_t i = 0; i < n; i++) eye->rounded[i] = (float)state_at(observations, i);
        observations = eye->rounded;
    }
    if (!eye->work) {
        const psi_work_options options = {.max_batch = eye->most, .predict_only = true};
        TRY(psi_work_new(ctx, eye->net, &options, &eye->work));
    }
    TRY(psi_net_predict(ctx, eye->net, eye->work, observations, n, features ? eye->seen : NULL,
                        features ? NULL : eye->seen));
    for (size_t i = 0; i < n; i++) {
        char *row = rows + i * eye->row_bytes;
        if (eye->numbered) {
            const int32_t number = (int32_t)base_largest(eye->seen + i * width, 0, eye->n_outputs);
            memcpy(row, &number, sizeof number);
        } else {
            digest(eye, eye->seen + i * width, (float *)(void *)row);
        }
    }
done:
    return status;
}

psi_status agent_eye_look(psi_ctx *ctx, agent_eye *eye, const void *observations,
                          const int32_t *truth, size_t n, void *rows)
{
    int32_t *number = rows;
    if (eye->view == PSI_VIEW_TRUTH) {
        memcpy(rows, truth, n * sizeof *truth);
    } else if (eye->view != PSI_VIEW_OBSERVATION) {
        return look_through(ctx, eye, observations, n, rows);
    } else if (eye->numbered) {
        for (size_t i = 0; i < n; i++) number[i] = (int32_t)state_at(observations, i);
    } else {
        memcpy(rows, observations, n * eye->row_bytes);
    }
    return PSI_OK;
}

void agent_eye_inputs(const agent_eye *eye, const void *rows, size_t n, void *inputs)
{
    if (!eye->numbered) {
        memcpy(inputs, rows, n * eye->row_bytes);
        return;
    }
    const int32_t *number = rows;
    float *x = inputs;
    memset(x, 0, n * eye->n_states * sizeof *x);
    for (size_t i = 0; i < n; i++) x[i * eye->n_states + (size_t)number[i]] = 1;
}

size_t agent_eye_input_bytes(const agent_eye *eye)
{
    return psi_shape_size(&eye->shape) * psi_dtype_size(eye->dtype);
}
