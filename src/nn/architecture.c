// The three architectures as lists of layers, and what follows from the lists.
#include "nn/net.h"

#include "base/checked.h"
#include "base/context.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SMALLEST_SIDE = 8, LARGEST_SIDE = 128, MOST_CHANNELS = 1 << 20 };

// The size of what a layer reads.
typedef struct source {
    size_t channels, h, w;
} source;

static source source_of(const nn_architecture *arch, int input)
{
    if (input == NN_OBSERVATION) {
        if (!arch->image) return (source){arch->in_channels, 1, 1};
        return (source){arch->in_channels, arch->input.dim[1], arch->input.dim[2]};
    }
    const nn_layer *layer = &arch->layer[input];
    return (source){layer->conv.out_channels, layer->out_h, layer->out_w};
}

static int add_layer(nn_architecture *arch, const char *name, int input, size_t channels,
                     size_t kernel_h, size_t kernel_w, size_t stride, size_t pad)
{
    const source from = source_of(arch, input);
    nn_layer *layer = &arch->layer[arch->n_layers];
    *layer = (nn_layer){
        .conv = {.in_channels = from.channels,
                 .out_channels = channels,
                 .in_h = from.h,
                 .in_w = from.w,
                 .kernel_h = kernel_h,
                 .kernel_w = kernel_w,
                 .stride = stride,
                 .pad = pad,
                 .stem = arch->image && input == NN_OBSERVATION},
        .input = input,
        .skip = NN_NONE,
        .shortcut = NN_NONE,
        .relu = true,
    };
    snprintf(layer->name, sizeof layer->name, "%s", name);
    nn_conv_init(&layer->conv);
    layer->out_h = layer->conv.out_h;
    layer->out_w = layer->conv.out_w;
    arch->order[arch->n_layers] = arch->n_layers;
    return (int)arch->n_layers++;
}

static void set_norm(nn_layer *layer, const char *norm_name)
{
    layer->norm = true;
    snprintf(layer->norm_name, sizeof layer->norm_name, "%s", norm_name);
}

static int add_norm_conv(nn_architecture *arch, const char *name, const char *norm_name, int input,
                         size_t channels, size_t kernel, size_t stride, size_t pad)
{
    const int index = add_layer(arch, name, input, channels, kernel, kernel, stride, pad);
    set_norm(&arch->layer[index], norm_name);
    return index;
}

// A Linear on the flattened map: a convolution whose kernel is the whole map.
static int add_dense(nn_architecture *arch, const char *name, int input, size_t units, bool relu)
{
    const source from = source_of(arch, input);
    const int index = add_layer(arch, name, input, units, from.h, from.w, 1, 0);
    arch->layer[index].dense = true;
    arch->layer[index].relu = relu;
    return index;
}

static void build_mlp(nn_architecture *arch, const psi_net_spec *spec)
{
    int at = NN_OBSERVATION;
    for (size_t i = 0; i < spec->n_hidden; i++) {
        char name[32];
        snprintf(name, sizeof name, "fc%zu", i + 1);
        at = add_dense(arch, name, at, spec->hidden[i], true);
    }
    arch->features = at;
}

static void build_cnn(nn_architecture *arch)
{
    static const size_t channels[] = {32, 64, 128};
    int at = NN_OBSERVATION;
    source map = source_of(arch, at);
    for (size_t i = 0; i < 2 || map.h > 4 || map.w > 4; i++) {
        char name[32], norm[32];
        snprintf(name, sizeof name, "conv%zu", i + 1);
        snprintf(norm, sizeof norm, "bn%zu", i + 1);
        at = add_norm_conv(arch, name, norm, at, channels[base_min(i, 2)], 3, 2, 1);
        map = source_of(arch, at);
    }
    // A last convolution of the whole map, with a norm as well: a plain Linear lost half of its
    // units for good in the first hundred steps of a contrastive loss.
    arch->features = add_layer(arch, "fc", at, 256, map.h, map.w, 1, 0);
    set_norm(&arch->layer[arch->features], "bn_fc");
}

// He's initialisation as torchvision calls it: normal, by the fan-out.
static void init_by_fan_out(nn_architecture *arch, int index)
{
    nn_layer *layer = &arch->layer[index];
    const nn_conv *conv = &layer->conv;
    layer->init_std = sqrt(2.0 / (double)(conv->out_channels * conv->kernel_h * conv->kernel_w));
}

static int add_residual_block(nn_architecture *arch, size_t stage, size_t number, int input)
{
    const size_t channels = (size_t)64 << (stage - 1);
    const size_t stride = stage > 1 && number == 0 ? 2 : 1;
    char name[4][32];
    for (size_t i = 0; i < 4; i++) {
        static const char *const format[] = {"layer%zu.%zu.conv1", "layer%zu.%zu.bn1",
                                             "layer%zu.%zu.conv2", "layer%zu.%zu.bn2"};
        snprintf(name[i], sizeof name[i], format[i], stage, number);
    }
    const int first = add_norm_conv(arch, name[0], name[1], input, channels, 3, stride, 1);
    const int second = add_norm_conv(arch, name[2], name[3], first, channels, 3, 1, 1);
    init_by_fan_out(arch, first);
    init_by_fan_out(arch, second);
    if (stride == 1) {
        arch->layer[second].skip = input;
        return second;
    }
    snprintf(name[0], sizeof name[0], "layer%zu.%zu.downsample.0", stage, number);
    snprintf(name[1], sizeof name[1], "layer%zu.%zu.downsample.1", stage, number);
    const int shortcut = add_norm_conv(arch, name[0], name[1], input, channels, 1, 2, 0);
    init_by_fan_out(arch, shortcut);
    arch->layer[shortcut].relu = false;
    arch->layer[shortcut].is_shortcut = true;
    arch->layer[second].shortcut = shortcut;
    // computed before the layer that adds it
    arch->order[second] = (size_t)shortcut;
    arch->order[shortcut] = (size_t)second;
    return second;
}

static void build_resnet18(nn_architecture *arch)
{
    int at = add_norm_conv(arch, "conv1", "bn1", NN_OBSERVATION, 64, 7, 2, 3);
    init_by_fan_out(arch, at);
    nn_layer *stem = &arch->layer[at];
    stem->after = NN_MAX_POOL; // 3×3, stride 2, padding 1
    stem->out_h = (stem->conv.out_h - 1) / 2 + 1;
    stem->out_w = (stem->conv.out_w - 1) / 2 + 1;
    for (size_t stage = 1; stage <= 4; stage++) {
        for (size_t number = 0; number < 2; number++) {
            at = add_residual_block(arch, stage, number, at);
        }
    }
    arch->layer[at].after = NN_AVERAGE;
    arch->layer[at].out_h = arch->layer[at].out_w = 1;
    arch->features = add_dense(arch, "fc", at, 1000, true);
}

static void place_in_slabs(nn_architecture *arch)
{
    for (size_t l = 0; l < arch->n_layers; l++) {
        nn_layer *layer = &arch->layer[l];
        const size_t channels = layer->conv.out_blocks * NN_BLOCK;
        layer->weights = arch->n_parameters;
        arch->n_parameters += layer->conv.n_weights;
        layer->bias = arch->n_parameters;
        arch->n_parameters += channels;
        layer->scale = arch->n_parameters;
        arch->n_parameters += layer->norm ? channels : 0;
        layer->running = arch->n_running;
        arch->n_running += layer->norm ? 2 * channels : 0;
        layer->dead = arch->n_dead;
        arch->n_dead += nn_conv_n_dead(&layer->conv);
    }
}

// In the backward pass the readers of an output come in reverse order. All but the first add
// to its gradient (a skip counts as a reader that wrote already); the last one finishes it.
static void find_readers(nn_architecture *arch)
{
    for (size_t i = 0; i < arch->n_layers; i++) {
        nn_layer *layer = &arch->layer[arch->order[i]];
        layer->last_reader = true;
        for (size_t j = 0; j < arch->n_layers; j++) {
            const nn_layer *other = &arch->layer[arch->order[j]];
            if (other->input == layer->input && j < i) layer->last_reader = false;
            if (other->input == layer->input && j > i) layer->adds_gradient = true;
            if (other->skip == layer->input) layer->adds_gradient = true;
        }
    }
}

static psi_status check_spec(psi_ctx *ctx, const psi_net_spec *spec)
{
    const psi_shape *shape = &spec->input;
    if ((unsigned)spec->kind > PSI_NET_RESNET18) {
        return FAIL(ctx, PSI_EUSAGE, "there is no network of kind %d", (int)spec->kind);
    }
    if (spec->input_dtype != PSI_UINT8 && spec->input_dtype != PSI_FLOAT32 &&
        spec->input_dtype != PSI_FLOAT64) {
        return FAIL(ctx, PSI_EUSAGE, "networks read uint8, float32 or float64, not %s",
                    psi_dtype_name(spec->input_dtype));
    }
    if (spec->n_actions < 1 || spec->n_classes < 1 || spec->n_actions > MOST_CHANNELS ||
        spec->n_classes > MOST_CHANNELS || spec->n_actions * spec->n_classes > MOST_CHANNELS) {
        return FAIL(ctx, PSI_EUSAGE, "a network has from 1 to %d outputs, not %zu × %zu",
                    MOST_CHANNELS, spec->n_actions, spec->n_classes);
    }
    if (shape->rank > PSI_MAX_RANK) {
        return FAIL(ctx, PSI_ESHAPE, "an input of %zu dimensions is not possible", shape->rank);
    }
    size_t size = 1;
    for (size_t i = 0; i < shape->rank; i++) {
        if (shape->dim[i] < 1 || !base_mul(size, shape->dim[i], &size) || size > MOST_CHANNELS) {
            return FAIL(ctx, PSI_ESHAPE, "an input has from 1 to %d numbers", MOST_CHANNELS);
        }
    }
    if (spec->kind == PSI_NET_MLP) {
        if (spec->n_hidden > PSI_MAX_HIDDEN) {
            return FAIL(ctx, PSI_EUSAGE, "an mlp has at most %d hidden layers", PSI_MAX_HIDDEN);
        }
        for (size_t i = 0; i < spec->n_hidden; i++) {
            if (spec->hidden[i] < 1 || spec->hidden[i] > MOST_CHANNELS) {
                return FAIL(ctx, PSI_EUSAGE, "a hidden layer has from 1 to %d units",
                            MOST_CHANNELS);
            }
        }
        return PSI_OK;
    }
    if (shape->rank != 3) {
        return FAIL(ctx, PSI_ESHAPE,
                    "%s reads images (channels, height, width), not %zu dimensions",
                    psi_net_kind_name(spec->kind), shape->rank);
    }
    for (size_t i = 1; i < 3; i++) {
        if (shape->dim[i] < SMALLEST_SIDE || shape->dim[i] > LARGEST_SIDE) {
            return FAIL(ctx, PSI_ESHAPE, "images are from %d×%d to %d×%d, not %zu×%zu",
                        SMALLEST_SIDE, SMALLEST_SIDE, LARGEST_SIDE, LARGEST_SIDE, shape->dim[1],
                        shape->dim[2]);
        }
    }
    return PSI_OK;
}

psi_status nn_architecture_init(psi_ctx *ctx, const psi_net_spec *spec, nn_architecture *arch)
{
    psi_status status = PSI_OK;
    *arch = (nn_architecture){0};
    TRY(check_spec(ctx, spec));
    arch->kind = spec->kind;
    arch->input.rank = spec->input.rank;
    for (size_t i = 0; i < spec->input.rank; i++) arch->input.dim[i] = spec->input.dim[i];
    arch->input_dtype = spec->input_dtype;
    arch->n_actions = spec->n_actions;
    arch->n_classes = spec->n_classes;
    arch->image = spec->kind != PSI_NET_MLP;
    arch->in_channels = arch->image ? spec->input.dim[0] : psi_shape_size(&spec->input);
    switch (spec->kind) {
    case PSI_NET_MLP: build_mlp(arch, spec); break;
    case PSI_NET_CNN: build_cnn(arch); break;
    case PSI_NET_RESNET18: build_resnet18(arch); break;
    }
    arch->n_features = source_of(arch, arch->features).channels;
    arch->head =
        (size_t)add_dense(arch, "head", arch->features, spec->n_actions * spec->n_classes, false);
    place_in_slabs(arch);
    find_readers(arch);
done:
    return status;
}

static bool same_conv(const nn_conv *a, const nn_conv *b)
{
    return a->in_channels == b->in_channels && a->out_channels == b->out_channels &&
           a->in_h == b->in_h && a->in_w == b->in_w && a->kernel_h == b->kernel_h &&
           a->kernel_w == b->kernel_w;
}

bool nn_architecture_same(const nn_architecture *a, const nn_architecture *b)
{
    if (a->kind != b->kind || a->input_dtype != b->input_dtype || a->n_layers != b->n_layers ||
        a->n_actions != b->n_actions || a->n_classes != b->n_classes) {
        return false;
    }
    for (size_t l = 0; l < a->n_layers; l++) {
        if (!same_conv(&a->layer[l].conv, &b->layer[l].conv)) return false;
    }
    return true;
}
