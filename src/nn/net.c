// Networks: making them, and reaching their numbers by PyTorch's names.
#include "nn/net.h"

#include "nn/memory.h"

#include "base/checked.h"
#include "base/context.h"
#include "base/options.h"
#include "base/random.h"
#include "base/threads.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { RANDOM_WEIGHTS = 0x6e6e01 }; // purpose of the random streams

const char *psi_net_kind_name(psi_net_kind kind)
{
    switch (kind) {
#define X(name, text)                                                                              \
    case PSI_NET_##name: return text;
        PSI_NET_TABLE(X)
#undef X
    }
    return "unknown";
}

psi_status psi_net_kind_from_name(psi_ctx *ctx, const char *name, psi_net_kind *out)
{
    if (!name) name = "";
#define X(kind, text)                                                                              \
    if (strcmp(name, text) == 0) {                                                                 \
        *out = PSI_NET_##kind;                                                                     \
        return PSI_OK;                                                                             \
    }
    PSI_NET_TABLE(X)
#undef X
    return FAIL(ctx, PSI_EUSAGE, "there is no network '%s': it is mlp, cnn or resnet18", name);
}

psi_net_spec psi_net_defaults(psi_net_kind kind, const psi_shape *input, psi_dtype dtype,
                              size_t n_actions, size_t n_classes)
{
    psi_net_spec spec = {.size = sizeof spec,
                         .kind = kind,
                         .input = *input,
                         .input_dtype = dtype,
                         .n_actions = n_actions,
                         .n_classes = n_classes};
    if (kind == PSI_NET_MLP) {
        spec.n_hidden = 2;
        spec.hidden[0] = spec.hidden[1] = 1000;
    }
    return spec;
}

void nn_net_changed(psi_net *net)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const uint64_t stamp = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    net->stamp = stamp > net->stamp ? stamp : net->stamp + 1;
}

static void list_tensors(psi_net *net)
{
    for (size_t l = 0; l < net->arch.n_layers; l++) {
        static const nn_tensor_kind with_norm[] = {NN_WEIGHT,       NN_NORM_SCALE,  NN_NORM_BIAS,
                                                   NN_RUNNING_MEAN, NN_RUNNING_VAR, NN_BATCHES};
        static const nn_tensor_kind with_bias[] = {NN_WEIGHT, NN_BIAS};
        const bool norm = net->arch.layer[l].norm;
        for (size_t i = 0; i < (norm ? 6 : 2); i++) {
            net->tensor[net->n_tensors++] = (nn_tensor){norm ? with_norm[i] : with_bias[i], l};
        }
    }
}

// Copies the normalisation, or writes the usual one.
static psi_status set_normalisation(psi_ctx *ctx, const psi_net_spec *spec, psi_net *net)
{
    const size_t n = net->arch.in_channels;
    psi_status status = PSI_OK;
    TRY(base_alloc_zero(ctx, 2 * n, sizeof(float), &net->normalisation));
    float *mean = net->normalisation, *scale = mean + n;
    for (size_t c = 0; c < n; c++) {
        if (spec->mean) mean[c] = spec->mean[c];
        if (spec->scale)
            scale[c] = spec->scale[c];
        else
            scale[c] = spec->input_dtype == PSI_UINT8 ? 1.0f / 255 : 1.0f;
        if (!isfinite(mean[c]) || !isfinite(scale[c])) {
            status = FAIL(ctx, PSI_EUSAGE,
                          "channel %zu is normalised by numbers that are not finite", c);
            goto done;
        }
    }
    net->spec.mean = mean;
    net->spec.scale = scale;
done:
    return status;
}

psi_status nn_net_empty(psi_ctx *ctx, const psi_net_spec *spec, psi_net **out)
{
    *out = NULL;
    psi_net *net = NULL;
    psi_status status = PSI_OK;
    TRY(base_alloc_zero(ctx, 1, sizeof *net, &net));
    TRY(nn_architecture_init(ctx, spec, &net->arch));
    net->spec = *spec;
    TRY(set_normalisation(ctx, spec, net));
    const nn_architecture *arch = &net->arch;
    TRY(nn_alloc_large(ctx, arch->n_parameters, sizeof(real), &net->parameters));
    TRY(base_alloc_zero(ctx, arch->n_running, sizeof(real), &net->running));
    TRY(base_alloc_zero(ctx, arch->n_dead, sizeof(real), &net->dead));
    list_tensors(net);
    for (size_t l = 0; l < arch->n_layers; l++) {
        const nn_layer *layer = &arch->layer[l];
        if (!layer->norm) continue;
        for (size_t c = 0; c < layer->conv.out_channels; c++) {
            net->parameters[layer->scale + c] = 1;
            net->running[layer->running + layer->conv.out_blocks * NN_BLOCK + c] = 1;
        }
    }
    *out = net;
    net = NULL;
done:
    psi_net_free(ctx, net);
    return status;
}

typedef struct random_tensor {
    const psi_net *net;
    size_t index;
    uint64_t seed;
    real *values;
} random_tensor;

// The rows (output channels) of a tensor have streams of their own, so that threads can share it.
static void fill_rows(void *argument, int thread, int threads)
{
    const random_tensor *task = argument;
    const nn_tensor *tensor = &task->net->tensor[task->index];
    const nn_layer *layer = &task->net->arch.layer[tensor->layer];
    const nn_conv *conv = &layer->conv;
    const size_t fan_in = conv->in_channels * conv->kernel_h * conv->kernel_w;
    const size_t width = tensor->kind == NN_WEIGHT ? fan_in : 1;
    const double bound = 1 / sqrt((double)fan_in);
    size_t first, end;
    base_slice(conv->out_channels, thread, threads, &first, &end);
    for (size_t row = first; row < end; row++) {
        base_random stream =
            base_random_stream(task->seed, RANDOM_WEIGHTS, (uint64_t)task->index << 32 | row);
        for (size_t i = 0; i < width; i++) {
            task->values[row * width + i] =
                (real)(layer->init_std > 0 ? base_random_normal(&stream) * layer->init_std
                                           : (2 * base_random_uniform(&stream) - 1) * bound);
        }
    }
}

psi_status psi_net_new(psi_ctx *ctx, const psi_net_spec *spec, uint64_t seed, psi_net **out)
{
    *out = NULL;
    if (!base_options_fit(ctx, spec, sizeof *spec, "psi_net_defaults")) return PSI_EUSAGE;
    psi_net *net = NULL;
    real *values = NULL;
    psi_status status = PSI_OK;
    TRY(nn_net_empty(ctx, spec, &net));
    size_t largest = 0;
    for (size_t i = 0; i < net->n_tensors; i++) largest = base_max(largest, nn_tensor_size(net, i));
    TRY(base_alloc(ctx, largest, sizeof *values, &values));
    for (size_t i = 0; i < net->n_tensors; i++) {
        if (net->tensor[i].kind != NN_WEIGHT && net->tensor[i].kind != NN_BIAS) continue;
        random_tensor task = {net, i, seed, values};
        base_team_run(base_ctx_team(ctx), fill_rows, &task);
        TRY(psi_net_tensor_set(ctx, net, i, values));
    }
    *out = net;
    net = NULL;
done:
    base_free(ctx, values);
    psi_net_free(ctx, net);
    return status;
}

psi_status psi_net_clone(psi_ctx *ctx, const psi_net *net, psi_net **out)
{
    *out = NULL;
    if (FREED(ctx, net)) return PSI_EUSAGE;
    psi_status status = PSI_OK;
    TRY(nn_net_empty(ctx, &net->spec, out));
    memcpy((*out)->dead, net->dead, net->arch.n_dead * sizeof(real));
    TRY(psi_net_blend(ctx, *out, net, 1));
    (*out)->batches = net->batches;
done:
    return status;
}

void psi_net_free(psi_ctx *ctx, psi_net *net)
{
    if (!net || FREED(ctx, net)) return;
    base_free(ctx, net->normalisation);
    base_free(ctx, net->parameters);
    base_free(ctx, net->running);
    base_free(ctx, net->dead);
    base_retire(ctx, net);
}

const psi_net_spec *psi_net_spec_of(const psi_net *net)
{
    if (FREED(NULL, net)) return NULL;
    return &net->spec;
}
size_t psi_net_n_features(const psi_net *net)
{
    if (FREED(NULL, net)) return 0;
    return net->arch.n_features;
}
size_t psi_net_n_outputs(const psi_net *net)
{
    if (FREED(NULL, net)) return 0;
    return net->arch.n_actions * net->arch.n_classes;
}

size_t psi_net_n_parameters(const psi_net *net)
{
    if (FREED(NULL, net)) return 0;
    size_t n = 0;
    for (size_t i = 0; i < net->n_tensors; i++) {
        if (net->tensor[i].kind <= NN_NORM_BIAS) n += nn_tensor_size(net, i);
    }
    return n;
}

// Forward, gradient by the weights and gradient by the input cost the same; the first layer has no
// use for the last.
double psi_net_flops(const psi_net *net)
{
    if (FREED(NULL, net)) return 0.0;
    double flops = 0;
    for (size_t l = 0; l < net->arch.n_layers; l++) {
        const nn_layer *layer = &net->arch.layer[l];
        flops += (layer->input == NN_OBSERVATION ? 4 : 6) * nn_conv_useful(&layer->conv);
    }
    return flops;
}

size_t psi_net_tensor_count(const psi_net *net)
{
    if (FREED(NULL, net)) return 0;
    return net->n_tensors;
}

size_t nn_tensor_size(const psi_net *net, size_t index)
{
    const nn_tensor *tensor = &net->tensor[index];
    const nn_conv *conv = &net->arch.layer[tensor->layer].conv;
    switch (tensor->kind) {
    case NN_WEIGHT: return conv->out_channels * conv->in_channels * conv->kernel_h * conv->kernel_w;
    case NN_BATCHES: return 1;
    default: return conv->out_channels;
    }
}

static psi_status check_index(psi_ctx *ctx, const psi_net *net, size_t index)
{
    if (index < net->n_tensors) return PSI_OK;
    return FAIL(ctx, PSI_EUSAGE, "tensor %zu of a network that has %zu", index, net->n_tensors);
}

psi_status psi_net_tensor_info(psi_ctx *ctx, const psi_net *net, size_t index, psi_tensor_info *out)
{
    if (FREED(ctx, net)) return PSI_EUSAGE;
    static const char *const suffix[] = {
        "weight", "bias", "weight", "bias", "running_mean", "running_var", "num_batches_tracked"};
    psi_status status = PSI_OK;
    TRY(check_index(ctx, net, index));
    const nn_tensor *tensor = &net->tensor[index];
    const nn_layer *layer = &net->arch.layer[tensor->layer];
    const nn_conv *conv = &layer->conv;
    *out = (psi_tensor_info){.trained = tensor->kind <= NN_NORM_BIAS};
    snprintf(out->name, sizeof out->name, "%.31s.%s",
             tensor->kind >= NN_NORM_SCALE ? layer->norm_name : layer->name, suffix[tensor->kind]);
    if (tensor->kind == NN_WEIGHT && layer->dense) {
        out->shape = (psi_shape){
            2, {conv->out_channels, conv->in_channels * conv->kernel_h * conv->kernel_w}};
    } else if (tensor->kind == NN_WEIGHT) {
        out->shape =
            (psi_shape){4, {conv->out_channels, conv->in_channels, conv->kernel_h, conv->kernel_w}};
    } else if (tensor->kind != NN_BATCHES) {
        out->shape = (psi_shape){1, {conv->out_channels}};
    }
done:
    return status;
}

// Where a vector of one number for each channel lies.
static real *channel_numbers(const psi_net *net, const nn_tensor *tensor, const real *parameters)
{
    const nn_layer *layer = &net->arch.layer[tensor->layer];
    const size_t padded = layer->conv.out_blocks * NN_BLOCK;
    switch (tensor->kind) {
    case NN_NORM_SCALE: return (real *)parameters + layer->scale;
    case NN_RUNNING_MEAN: return net->running + layer->running;
    case NN_RUNNING_VAR: return net->running + layer->running + padded;
    default: return (real *)parameters + layer->bias;
    }
}

void nn_tensor_export(const psi_net *net, size_t index, const real *parameters, const real *dead,
                      real *out)
{
    const nn_tensor *tensor = &net->tensor[index];
    const nn_layer *layer = &net->arch.layer[tensor->layer];
    if (tensor->kind == NN_WEIGHT) {
        nn_conv_export(&layer->conv, parameters + layer->weights, dead ? dead + layer->dead : NULL,
                       out);
    } else if (tensor->kind == NN_BATCHES) {
        *out = (real)net->batches;
    } else {
        memcpy(out, channel_numbers(net, tensor, parameters),
               layer->conv.out_channels * sizeof(real));
    }
}

psi_status psi_net_tensor_get(psi_ctx *ctx, const psi_net *net, size_t index, psi_real *out)
{
    if (FREED(ctx, net)) return PSI_EUSAGE;
    psi_status status = PSI_OK;
    TRY(check_index(ctx, net, index));
    nn_tensor_export(net, index, net->parameters, net->dead, out);
done:
    return status;
}

psi_status psi_net_tensor_set(psi_ctx *ctx, psi_net *net, size_t index, const psi_real *values)
{
    if (FREED(ctx, net)) return PSI_EUSAGE;
    psi_status status = PSI_OK;
    TRY(check_index(ctx, net, index));
    const nn_tensor *tensor = &net->tensor[index];
    const nn_layer *layer = &net->arch.layer[tensor->layer];
    if (tensor->kind == NN_WEIGHT) {
        nn_conv_import(&layer->conv, values, net->parameters + layer->weights,
                       net->dead + layer->dead);
    } else if (tensor->kind == NN_BATCHES) {
        net->batches = *values >= 0 ? (uint64_t)*values : 0;
    } else {
        memcpy(channel_numbers(net, tensor, net->parameters), values,
               layer->conv.out_channels * sizeof(real));
    }
    nn_net_changed(net);
done:
    return status;
}

static void blend(real *target, const real *source, size_t n, double tau)
{
    const real keep = (real)(1 - tau), take = (real)tau;
    for (size_t i = 0; i < n; i++) target[i] = keep * target[i] + take * source[i];
}

psi_status psi_net_blend(psi_ctx *ctx, psi_net *target, const psi_net *source, double tau)
{
    if (FREED(ctx, target, source)) return PSI_EUSAGE;
    if (!nn_architecture_same(&target->arch, &source->arch)) {
        return FAIL(ctx, PSI_ESHAPE, "only networks of one architecture can be blended");
    }
    if (!(tau >= 0 && tau <= 1)) {
        return FAIL(ctx, PSI_EUSAGE, "networks are blended by a share of 0 to 1, not %g", tau);
    }
    if (tau == 1) {
        memcpy(target->parameters, source->parameters, source->arch.n_parameters * sizeof(real));
        memcpy(target->running, source->running, source->arch.n_running * sizeof(real));
    } else {
        blend(target->parameters, source->parameters, source->arch.n_parameters, tau);
        blend(target->running, source->running, source->arch.n_running, tau);
    }
    nn_net_changed(target);
    return PSI_OK;
}

psi_status psi_net_head(psi_ctx *ctx, const psi_net *net, size_t n_actions, size_t n_classes,
                        uint64_t seed, psi_net **out)
{
    *out = NULL;
    if (FREED(ctx, net)) return PSI_EUSAGE;
    const psi_net_spec spec = {.size = sizeof spec,
                               .kind = PSI_NET_MLP,
                               .input = {1, {net->arch.n_features}},
                               .input_dtype = PSI_FLOAT32,
                               .n_actions = n_actions,
                               .n_classes = n_classes};
    psi_status status = PSI_OK;
    TRY(psi_net_new(ctx, &spec, seed, out));
    if (n_actions == net->arch.n_actions && n_classes == net->arch.n_classes) {
        // both heads are dense layers of one shape, and the head is last in the slab
        const nn_layer *from = &net->arch.layer[net->arch.head];
        memcpy((*out)->parameters, net->parameters + from->weights,
               (*out)->arch.n_parameters * sizeof(real));
        nn_net_changed(*out);
    }
done:
    return status;
}

psi_status psi_net_set_head(psi_ctx *ctx, psi_net *net, const psi_net *head)
{
    if (FREED(ctx, net, head)) return PSI_EUSAGE;
    const nn_layer *to = &net->arch.layer[net->arch.head];
    if (head->arch.n_layers != 1 || head->arch.in_channels != net->arch.n_features ||
        head->arch.n_actions != net->arch.n_actions ||
        head->arch.n_classes != net->arch.n_classes) {
        return FAIL(ctx, PSI_ESHAPE,
                    "the heads are %zu × %zu on %zu features, the network has %zu × %zu on %zu",
                    head->arch.n_actions, head->arch.n_classes, head->arch.in_channels,
                    net->arch.n_actions, net->arch.n_classes, net->arch.n_features);
    }
    memcpy(net->parameters + to->weights, head->parameters, head->arch.n_parameters * sizeof(real));
    nn_net_changed(net);
    return PSI_OK;
}
