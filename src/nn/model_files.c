// Networks in files: safetensors out and in, ONNX out.
#include "nn/net.h"
#include "nn/onnx.h"
#include "nn/pass.h"
#include "nn/safetensors.h"

#include "base/arena.h"
#include "base/checked.h"
#include "base/context.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Notes say what the tensors alone do not: which network it is and how inputs are normalised.
enum { NOTES = 8 };

static psi_status sizes_as_text(base_arena *arena, const size_t *sizes, size_t n, const char **out)
{
    char *text = NULL;
    psi_status status = PSI_OK;
    size_t used = 0;
    TRY(base_arena_take(arena, n + 1, 24, &text));
    for (size_t i = 0; i < n; i++) {
        used += (size_t)sprintf(text + used, "%s%zu", i ? "," : "", sizes[i]);
    }
    *out = text;
done:
    return status;
}

static psi_status floats_as_text(base_arena *arena, const float *numbers, size_t n,
                                 const char **out)
{
    char *text = NULL;
    psi_status status = PSI_OK;
    size_t used = 0;
    TRY(base_arena_take(arena, n + 1, 24, &text));
    for (size_t i = 0; i < n; i++) {
        used += (size_t)sprintf(text + used, "%s%.9g", i ? "," : "", (double)numbers[i]);
    }
    *out = text;
done:
    return status;
}

static psi_status make_notes(base_arena *arena, const psi_net *net, nn_file_note notes[NOTES])
{
    const psi_net_spec *spec = &net->spec;
    const size_t heads[] = {spec->n_actions, spec->n_classes};
    psi_status status = PSI_OK;
    notes[0] = (nn_file_note){"format", "pt"};
    notes[1] = (nn_file_note){"psifold.net", psi_net_kind_name(spec->kind)};
    notes[2] = (nn_file_note){"psifold.dtype", psi_dtype_name(spec->input_dtype)};
    notes[3].key = "psifold.input";
    TRY(sizes_as_text(arena, spec->input.dim, spec->input.rank, &notes[3].value));
    notes[4].key = "psifold.hidden";
    TRY(sizes_as_text(arena, spec->hidden, spec->n_hidden, &notes[4].value));
    notes[5].key = "psifold.heads";
    TRY(sizes_as_text(arena, heads, 2, &notes[5].value));
    notes[6].key = "psifold.mean";
    TRY(floats_as_text(arena, spec->mean, net->arch.in_channels, &notes[6].value));
    notes[7].key = "psifold.scale";
    TRY(floats_as_text(arena, spec->scale, net->arch.in_channels, &notes[7].value));
done:
    return status;
}

// A tensor as PyTorch has it: floats, or a whole number for the count of batches.
static psi_status make_tensor(psi_ctx *ctx, base_arena *arena, const psi_net *net, size_t index,
                              psi_tensor_info *info, nn_named_tensor *out)
{
    const bool counts = net->tensor[index].kind == NN_BATCHES;
    psi_status status = PSI_OK;
    TRY(psi_net_tensor_info(ctx, net, index, info));
    *out = (nn_named_tensor){
        .name = info->name, .dtype = counts ? NN_I64 : NN_F32, .rank = info->shape.rank};
    for (size_t i = 0; i < info->shape.rank; i++) out->dim[i] = info->shape.dim[i];
    if (counts) {
        int64_t *batches = NULL;
        TRY(base_arena_take(arena, 1, sizeof *batches, &batches));
        *batches = (int64_t)net->batches;
        out->data = batches;
    } else {
        real *values = NULL;
        TRY(base_arena_take(arena, nn_tensor_size(net, index), sizeof *values, &values));
        nn_tensor_export(net, index, net->parameters, net->dead, values);
        out->data = values;
    }
done:
    return status;
}

static psi_status make_tensors(psi_ctx *ctx, base_arena *arena, const psi_net *net,
                               nn_named_tensor **out)
{
    nn_named_tensor *tensors = NULL;
    psi_tensor_info *infos = NULL;
    psi_status status = PSI_OK;
    TRY(base_arena_take(arena, net->n_tensors, sizeof *tensors, &tensors));
    TRY(base_arena_take(arena, net->n_tensors, sizeof *infos, &infos));
    for (size_t i = 0; i < net->n_tensors; i++) {
        TRY(make_tensor(ctx, arena, net, i, &infos[i], &tensors[i]));
    }
    *out = tensors;
done:
    return status;
}

psi_status psi_net_save(psi_ctx *ctx, const psi_net *net, const char *path)
{
    if (FREED(ctx, net)) return PSI_EUSAGE;
    base_arena arena = {.ctx = ctx};
    nn_named_tensor *tensors;
    nn_file_note notes[NOTES];
    psi_status status = PSI_OK;
    TRY(make_tensors(ctx, &arena, net, &tensors));
    TRY(make_notes(&arena, net, notes));
    TRY(nn_safetensors_save(ctx, path, tensors, net->n_tensors, notes, NOTES));
done:
    base_arena_free(&arena);
    return status;
}

static psi_status note_of(psi_ctx *ctx, const nn_safetensors *file, const char *path,
                          const char *key, const char **out)
{
    *out = nn_safetensors_note(file, key);
    if (*out) return PSI_OK;
    return FAIL(ctx, PSI_EFORMAT, "%s was not written by psifold: it has no note '%s'", path, key);
}

// "3,28,28": at most `most` sizes. *n is how many there were.
static psi_status parse_sizes(psi_ctx *ctx, const nn_safetensors *file, const char *path,
                              const char *key, size_t most, size_t *sizes, size_t *n)
{
    const char *text;
    psi_status status = PSI_OK;
    TRY(note_of(ctx, file, path, key, &text));
    for (*n = 0; *text; ++*n) {
        char *end;
        const unsigned long long value = strtoull(text, &end, 10);
        const bool number = *text >= '0' && *text <= '9' && value <= 1u << 30;
        if (*n == most || !number || (*end != ',' && *end != '\0')) {
            return FAIL(ctx, PSI_EFORMAT, "%s: note '%s' is not a short list of sizes", path, key);
        }
        sizes[*n] = (size_t)value;
        text = *end ? end + 1 : end;
    }
done:
    return status;
}

static psi_status parse_floats(psi_ctx *ctx, base_arena *arena, const nn_safetensors *file,
                               const char *path, const char *key, size_t n, const float **out)
{
    const char *text;
    float *numbers = NULL;
    psi_status status = PSI_OK;
    TRY(note_of(ctx, file, path, key, &text));
    if (n > strlen(text)) {
        return FAIL(ctx, PSI_EFORMAT, "%s: note '%s' is too short for %zu numbers", path, key, n);
    }
    TRY(base_arena_take(arena, n, sizeof *numbers, &numbers));
    for (size_t i = 0; i < n; i++) {
        char *end;
        numbers[i] = strtof(text, &end);
        if (end == text || !isfinite(numbers[i]) || *end != (i + 1 < n ? ',' : '\0')) {
            return FAIL(ctx, PSI_EFORMAT, "%s: note '%s' is not a list of %zu numbers", path, key,
                        n);
        }
        text = end + 1;
    }
    *out = numbers;
done:
    return status;
}

static psi_status parse_spec(psi_ctx *ctx, base_arena *arena, const nn_safetensors *file,
                             const char *path, psi_net_spec *spec)
{
    const char *kind, *dtype;
    size_t heads[2], n_heads, values = 1;
    psi_status status = PSI_OK;
    *spec = (psi_net_spec){.size = sizeof(psi_net_spec)};
    TRY(note_of(ctx, file, path, "psifold.net", &kind));
    TRY(psi_net_kind_from_name(ctx, kind, &spec->kind));
    TRY(note_of(ctx, file, path, "psifold.dtype", &dtype));
    spec->input_dtype = strcmp(dtype, "uint8") == 0     ? PSI_UINT8
                        : strcmp(dtype, "float64") == 0 ? PSI_FLOAT64
                                                        : PSI_FLOAT32;
    TRY(parse_sizes(ctx, file, path, "psifold.input", PSI_MAX_RANK, spec->input.dim,
                    &spec->input.rank));
    TRY(parse_sizes(ctx, file, path, "psifold.hidden", PSI_MAX_HIDDEN, spec->hidden,
                    &spec->n_hidden));
    TRY(parse_sizes(ctx, file, path, "psifold.heads", 2, heads, &n_heads));
    if (n_heads != 2) return FAIL(ctx, PSI_EFORMAT, "%s: note 'psifold.heads' is damaged", path);
    spec->n_actions = heads[0];
    spec->n_classes = heads[1];
    for (size_t i = 0; i < spec->input.rank; i++) {
        if (!base_mul(values, spec->input.dim[i], &values)) {
            return FAIL(ctx, PSI_EFORMAT, "%s: the input's shape is damaged", path);
        }
    }
    if (spec->kind != PSI_NET_MLP && spec->input.rank > 0) values = spec->input.dim[0];
    TRY(parse_floats(ctx, arena, file, path, "psifold.mean", values, &spec->mean));
    TRY(parse_floats(ctx, arena, file, path, "psifold.scale", values, &spec->scale));
done:
    return status;
}

psi_status psi_net_load(psi_ctx *ctx, const char *path, psi_net **out)
{
    *out = NULL;
    base_arena arena = {.ctx = ctx};
    nn_safetensors *file = NULL;
    psi_net *net = NULL;
    psi_net_spec spec;
    psi_status status = PSI_OK;
    TRY(nn_safetensors_open(ctx, path, &file));
    TRY(parse_spec(ctx, &arena, file, path, &spec));
    TRY(nn_net_empty(ctx, &spec, &net));
    for (size_t i = 0; i < net->n_tensors; i++) {
        psi_tensor_info info;
        nn_named_tensor expected;
        TRY(make_tensor(ctx, &arena, net, i, &info, &expected));
        TRY(nn_safetensors_load(file, &expected, (void *)expected.data));
        if (expected.dtype == NN_I64) {
            const int64_t batches = *(const int64_t *)expected.data;
            net->batches = batches > 0 ? (uint64_t)batches : 0;
        } else {
            TRY(psi_net_tensor_set(ctx, net, i, expected.data));
        }
    }
    *out = net;
    net = NULL;
done:
    psi_net_free(ctx, net);
    nn_safetensors_free(file);
    base_arena_free(&arena);
    return status;
}

// ---- moments

enum { ADAM_TENSORS = 3 };

static void list_moments(const psi_adam *adam, const uint64_t *steps,
                         nn_named_tensor tensors[ADAM_TENSORS])
{
    tensors[0] = (nn_named_tensor){"first_moments", NN_F32, 1, {adam->n}, adam->m};
    tensors[1] = (nn_named_tensor){"second_moments", NN_F32, 1, {adam->n}, adam->v};
    tensors[2] = (nn_named_tensor){"steps", NN_U64, 0, {0}, steps};
}

psi_status psi_adam_save(psi_ctx *ctx, const psi_adam *adam, const char *path)
{
    if (FREED(ctx, adam)) return PSI_EUSAGE;
    nn_named_tensor tensors[ADAM_TENSORS];
    const nn_file_note note = {"psifold", "adam"};
    list_moments(adam, &adam->steps, tensors);
    return nn_safetensors_save(ctx, path, tensors, ADAM_TENSORS, &note, 1);
}

psi_status psi_adam_load(psi_ctx *ctx, psi_adam *adam, const char *path)
{
    if (FREED(ctx, adam)) return PSI_EUSAGE;
    nn_safetensors *file = NULL;
    real *m = NULL, *v = NULL;
    uint64_t steps;
    nn_named_tensor tensors[ADAM_TENSORS];
    psi_status status = PSI_OK;
    list_moments(adam, &steps, tensors);
    TRY(nn_safetensors_open(ctx, path, &file));
    TRY(base_alloc(ctx, adam->n, sizeof *m, &m));
    TRY(base_alloc(ctx, adam->n, sizeof *v, &v));
    TRY(nn_safetensors_load(file, &tensors[0], m));
    TRY(nn_safetensors_load(file, &tensors[1], v));
    TRY(nn_safetensors_load(file, &tensors[2], &steps));
    memcpy(adam->m, m, adam->n * sizeof *m);
    memcpy(adam->v, v, adam->n * sizeof *v);
    adam->steps = steps;
done:
    base_free(ctx, m);
    base_free(ctx, v);
    nn_safetensors_free(file);
    return status;
}

// ---- ONNX

typedef struct graph {
    psi_ctx *ctx;
    base_arena *arena;
    const psi_net *net;
    nn_onnx *onnx;
} graph;

static psi_status joined(const graph *g, const char *name, const char *suffix, const char **out)
{
    char text[96];
    snprintf(text, sizeof text, "%s%s", name, suffix);
    return base_arena_text(g->arena, text, out);
}

// The network's inputs as normalised floats, named "normalised".
static psi_status add_normalisation(const graph *g)
{
    const psi_net_spec *spec = &g->net->spec;
    const bool image = g->net->arch.image;
    const size_t channels = g->net->arch.in_channels;
    const psi_shape shape = image ? (psi_shape){3, {channels, 1, 1}} : (psi_shape){1, {channels}};
    const char *at = "observations";
    psi_status status = PSI_OK;
    TRY(nn_onnx_input(g->onnx, at, spec->input_dtype, &spec->input));
    TRY(nn_onnx_tensor(g->onnx, "input.mean", PSI_FLOAT32, &shape, spec->mean));
    TRY(nn_onnx_tensor(g->onnx, "input.scale", PSI_FLOAT32, &shape, spec->scale));
    if (spec->input_dtype != PSI_FLOAT32) {
        TRY(nn_onnx_node(g->onnx, "Cast", NN_NAMES(at), "floats",
                         NN_ATTRIBUTES(nn_onnx_int("to", nn_onnx_dtype(PSI_FLOAT32)))));
        at = "floats";
    }
    if (!image) {
        TRY(nn_onnx_node(g->onnx, "Flatten", NN_NAMES(at), "flat",
                         NN_ATTRIBUTES(nn_onnx_int("axis", 1))));
        at = "flat";
    }
    TRY(nn_onnx_node(g->onnx, "Sub", NN_NAMES(at, "input.mean"), "centred", NULL));
    TRY(nn_onnx_node(g->onnx, "Mul", NN_NAMES("centred", "input.scale"), "normalised", NULL));
done:
    return status;
}

// The value that a layer hands on is called after it.
static const char *value_of(const graph *g, int layer)
{
    if (layer == NN_OBSERVATION) return "normalised";
    return layer == g->net->arch.features ? "features" : g->net->arch.layer[layer].name;
}

static psi_status add_dense_layer(const graph *g, int l, const char *weight, const char *bias)
{
    const nn_layer *layer = &g->net->arch.layer[l];
    const bool head = (size_t)l == g->net->arch.head;
    const char *flat, *sum, *out = head ? "logits" : value_of(g, l);
    psi_status status = PSI_OK;
    TRY(joined(g, layer->name, "/flat", &flat));
    TRY(joined(g, layer->name, "/sum", &sum));
    TRY(nn_onnx_node(g->onnx, "Flatten", NN_NAMES(value_of(g, layer->input)), flat,
                     NN_ATTRIBUTES(nn_onnx_int("axis", 1))));
    TRY(nn_onnx_node(g->onnx, "Gemm", NN_NAMES(flat, weight, bias), layer->relu ? sum : out,
                     NN_ATTRIBUTES(nn_onnx_int("transB", 1))));
    if (layer->relu) TRY(nn_onnx_node(g->onnx, "Relu", NN_NAMES(sum), out, NULL));
done:
    return status;
}

static psi_status add_conv_layer(const graph *g, int l, const char *weight)
{
    const nn_layer *layer = &g->net->arch.layer[l];
    const nn_conv *conv = &layer->conv;
    const char *out = value_of(g, l), *y, *z, *sum, *a, *norm[4];
    static const char *const suffix[4] = {".weight", ".bias", ".running_mean", ".running_var"};
    psi_status status = PSI_OK;
    TRY(joined(g, layer->name, "/conv", &y));
    TRY(joined(g, layer->name, "/norm", &z));
    TRY(joined(g, layer->name, "/sum", &sum));
    TRY(joined(g, layer->name, "/relu", &a));
    for (size_t i = 0; i < 4; i++) TRY(joined(g, layer->norm_name, suffix[i], &norm[i]));
    const int64_t kernel[2] = {(int64_t)conv->kernel_h, (int64_t)conv->kernel_w};
    const int64_t stride = (int64_t)conv->stride, pad = (int64_t)conv->pad;
    TRY(nn_onnx_node(g->onnx, "Conv", NN_NAMES(value_of(g, layer->input), weight), y,
                     NN_ATTRIBUTES(nn_onnx_pair("kernel_shape", kernel[0], kernel[1]),
                                   nn_onnx_pair("strides", stride, stride),
                                   nn_onnx_sides("pads", pad, pad, pad, pad))));
    TRY(nn_onnx_node(g->onnx, "BatchNormalization", NN_NAMES(y, norm[0], norm[1], norm[2], norm[3]),
                     layer->relu ? z : out,
                     NN_ATTRIBUTES(nn_onnx_float("epsilon", (float)NN_EPSILON))));
    if (!layer->relu) goto done; // a shortcut
    if (layer->skip >= 0 || layer->shortcut >= 0) {
        const int other = layer->skip >= 0 ? layer->skip : layer->shortcut;
        TRY(nn_onnx_node(g->onnx, "Add", NN_NAMES(z, value_of(g, other)), sum, NULL));
        z = sum;
    }
    const bool features = l == g->net->arch.features; // of a 1×1 map, but features are vectors
    TRY(nn_onnx_node(g->onnx, "Relu", NN_NAMES(z),
                     layer->after == NN_NOTHING && !features ? out : a, NULL));
    if (features) {
        TRY(nn_onnx_node(g->onnx, "Flatten", NN_NAMES(a), out,
                         NN_ATTRIBUTES(nn_onnx_int("axis", 1))));
    } else if (layer->after == NN_MAX_POOL) {
        TRY(nn_onnx_node(g->onnx, "MaxPool", NN_NAMES(a), out,
                         NN_ATTRIBUTES(nn_onnx_pair("kernel_shape", 3, 3),
                                       nn_onnx_pair("strides", 2, 2),
                                       nn_onnx_sides("pads", 1, 1, 1, 1))));
    } else if (layer->after == NN_AVERAGE) {
        TRY(nn_onnx_node(g->onnx, "GlobalAveragePool", NN_NAMES(a), out, NULL));
    }
done:
    return status;
}

psi_status psi_net_save_onnx(psi_ctx *ctx, const psi_net *net, const char *path)
{
    if (FREED(ctx, net)) return PSI_EUSAGE;
    base_arena arena = {.ctx = ctx};
    nn_named_tensor *tensors;
    graph g = {ctx, &arena, net, NULL};
    const nn_architecture *arch = &net->arch;
    psi_status status = PSI_OK;
    TRY(make_tensors(ctx, &arena, net, &tensors));
    TRY(nn_onnx_new(ctx, psi_net_kind_name(arch->kind), &g.onnx));
    for (size_t i = 0; i < net->n_tensors; i++) {
        psi_shape shape = {.rank = tensors[i].rank};
        if (tensors[i].dtype != NN_F32) continue;
        for (size_t d = 0; d < shape.rank; d++) shape.dim[d] = tensors[i].dim[d];
        TRY(nn_onnx_tensor(g.onnx, tensors[i].name, PSI_FLOAT32, &shape, tensors[i].data));
    }
    TRY(add_normalisation(&g));
    for (size_t i = 0; i < arch->n_layers; i++) {
        const int l = (int)arch->order[i];
        const char *weight, *bias;
        TRY(joined(&g, arch->layer[l].name, ".weight", &weight));
        TRY(joined(&g, arch->layer[l].name, ".bias", &bias));
        TRY(arch->layer[l].dense ? add_dense_layer(&g, l, weight, bias)
                                 : add_conv_layer(&g, l, weight));
    }
    if (arch->features == NN_OBSERVATION) {
        TRY(nn_onnx_node(g.onnx, "Identity", NN_NAMES("normalised"), "features", NULL));
    }
    TRY(nn_onnx_output(g.onnx, "features", PSI_FLOAT32, &(psi_shape){1, {arch->n_features}}));
    TRY(nn_onnx_output(g.onnx, "logits", PSI_FLOAT32, &(psi_shape){1, {psi_net_n_outputs(net)}}));
    TRY(nn_onnx_save(g.onnx, path));
done:
    nn_onnx_free(g.onnx);
    base_arena_free(&arena);
    return status;
}
