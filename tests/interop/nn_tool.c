// Writes the files that the interop tests hand to other people's software.
//
//     nn_tool small FOLDER
//         small.onnx, small.safetensors: one operator of each kind, known weights
//     nn_tool make KIND SHAPE ACTIONS CLASSES INPUTS FOLDER
//         a network trained for a few steps on the tensor "inputs" of a safetensors file:
//         net.safetensors, net.onnx, and its features and logits in outputs.safetensors
//     nn_tool predict NET INPUTS OUTPUTS
//         the outputs of a network read from a file
#include "nn/onnx.h"
#include "nn/safetensors.h"

#include <psifold/nn.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Element i of the k-th tensor; test_onnx.py knows the same formula.
static void fill(float *values, size_t n, size_t k)
{
    for (size_t i = 0; i < n; i++) values[i] = (float)((i * 37 + k * 11) % 101) / 101 - 0.5F;
}

enum { CHANNELS = 3, KERNELS = 4, SIDE = 9, CLASSES = 5 };

typedef struct small_net {
    float conv[KERNELS][CHANNELS][3][3], bn[4][KERNELS], dense[CLASSES][KERNELS], bias[CLASSES];
    float scale;
} small_net;

// (x · scale) → Conv → BatchNormalization → Relu → MaxPool → Add to itself → GlobalAveragePool
// → Flatten → Gemm
static psi_status build_small(nn_onnx *graph, const small_net *net)
{
    const psi_shape channels = {1, {KERNELS}}, classes = {1, {CLASSES}}, scalar = {0};
    static const char *const norms[] = {"bn.weight", "bn.bias", "bn.mean", "bn.var"};
    psi_status status = PSI_OK;
#define STEP(expression)                                                                           \
    if (status == PSI_OK) status = (expression)
    STEP(nn_onnx_input(graph, "x", PSI_UINT8, &(psi_shape){3, {CHANNELS, SIDE, SIDE}}));
    STEP(nn_onnx_tensor(graph, "scale", PSI_FLOAT32, &scalar, &net->scale));
    STEP(nn_onnx_tensor(graph, "conv.weight", PSI_FLOAT32,
                        &(psi_shape){4, {KERNELS, CHANNELS, 3, 3}}, net->conv));
    for (size_t i = 0; i < 4; i++) {
        STEP(nn_onnx_tensor(graph, norms[i], PSI_FLOAT32, &channels, net->bn[i]));
    }
    STEP(nn_onnx_tensor(graph, "fc.weight", PSI_FLOAT32, &(psi_shape){2, {CLASSES, KERNELS}},
                        net->dense));
    STEP(nn_onnx_tensor(graph, "fc.bias", PSI_FLOAT32, &classes, net->bias));

    STEP(nn_onnx_node(graph, "Cast", NN_NAMES("x"), "real",
                      NN_ATTRIBUTES(nn_onnx_int("to", nn_onnx_dtype(PSI_FLOAT32)))));
    STEP(nn_onnx_node(graph, "Mul", NN_NAMES("real", "scale"), "normal", NULL));
    STEP(nn_onnx_node(graph, "Conv", NN_NAMES("normal", "conv.weight"), "conv",
                      NN_ATTRIBUTES(nn_onnx_pair("kernel_shape", 3, 3),
                                    nn_onnx_pair("strides", 2, 2),
                                    nn_onnx_sides("pads", 1, 1, 1, 1))));
    STEP(nn_onnx_node(graph, "BatchNormalization",
                      NN_NAMES("conv", "bn.weight", "bn.bias", "bn.mean", "bn.var"), "bn",
                      NN_ATTRIBUTES(nn_onnx_float("epsilon", 1e-5F))));
    STEP(nn_onnx_node(graph, "Relu", NN_NAMES("bn"), "relu", NULL));
    STEP(nn_onnx_node(graph, "MaxPool", NN_NAMES("relu"), "pool",
                      NN_ATTRIBUTES(nn_onnx_pair("kernel_shape", 3, 3),
                                    nn_onnx_pair("strides", 2, 2),
                                    nn_onnx_sides("pads", 1, 1, 1, 1))));
    STEP(nn_onnx_node(graph, "Add", NN_NAMES("pool", "pool"), "sum", NULL));
    STEP(nn_onnx_node(graph, "GlobalAveragePool", NN_NAMES("sum"), "mean", NULL));
    STEP(nn_onnx_node(graph, "Flatten", NN_NAMES("mean"), "features",
                      NN_ATTRIBUTES(nn_onnx_int("axis", 1))));
    STEP(nn_onnx_node(graph, "Gemm", NN_NAMES("features", "fc.weight", "fc.bias"), "y",
                      NN_ATTRIBUTES(nn_onnx_int("transB", 1))));
    STEP(nn_onnx_output(graph, "y", PSI_FLOAT32, &classes));
#undef STEP
    return status;
}

static psi_status write_small(psi_ctx *ctx, const char *folder)
{
    static small_net net;
    char path[4096];
    fill(&net.conv[0][0][0][0], sizeof net.conv / sizeof(float), 0);
    for (size_t i = 0; i < 4; i++) fill(net.bn[i], KERNELS, i + 1);
    for (size_t i = 0; i < KERNELS; i++) net.bn[3][i] += 1; // a variance
    fill(&net.dense[0][0], sizeof net.dense / sizeof(float), 5);
    fill(net.bias, CLASSES, 6);
    net.scale = 1.0F / 255;

    nn_onnx *graph;
    psi_status status = nn_onnx_new(ctx, "small", &graph);
    if (status == PSI_OK) status = build_small(graph, &net);
    snprintf(path, sizeof path, "%s/small.onnx", folder);
    if (status == PSI_OK) status = nn_onnx_save(graph, path);
    nn_onnx_free(graph);
    if (status != PSI_OK) return status;

    static const int64_t counts[2] = {-1, INT64_MAX};
    static const double number = 0.1;
    static const uint8_t bytes[3] = {0, 128, 255};
    const nn_named_tensor tensors[] = {
        {"conv.weight", NN_F32, 4, {KERNELS, CHANNELS, 3, 3}, net.conv},
        {"fc.weight", NN_F32, 2, {CLASSES, KERNELS}, net.dense},
        {"counts", NN_I64, 1, {2}, counts},
        {"number", NN_F64, 0, {0}, &number},
        {"bytes", NN_U8, 2, {3, 1}, bytes},
        {"empty", NN_F32, 2, {0, 4}, NULL},
    };
    const nn_file_note notes[] = {{"format", "pt"}, {"quoted", "a \"b\" \xc3\xa4\n"}};
    snprintf(path, sizeof path, "%s/small.safetensors", folder);
    return nn_safetensors_save(ctx, path, tensors, sizeof tensors / sizeof tensors[0], notes, 2);
}

// ---- whole networks ----

// "3x28x28"
static bool parse_shape(const char *text, psi_shape *shape)
{
    shape->rank = 0;
    do {
        char *end;
        if (shape->rank == PSI_MAX_RANK) return false;
        shape->dim[shape->rank++] = (size_t)strtoull(text, &end, 10);
        if (end == text || (*end != 'x' && *end != '\0')) return false;
        text = end + (*end == 'x');
    } while (*text);
    return true;
}

// Features and logits of the inputs in a file, into another one.
static psi_status write_outputs(psi_ctx *ctx, const psi_net *net, const nn_named_tensor *inputs,
                                const char *path)
{
    const size_t n = inputs->dim[0], n_features = psi_net_n_features(net);
    const size_t n_outputs = psi_net_n_outputs(net);
    psi_work *work = NULL;
    float *features = calloc(n * n_features, sizeof *features);
    float *logits = calloc(n * n_outputs, sizeof *logits);
    const psi_work_options options = {
        .size = sizeof options, .max_batch = 64, .predict_only = true};
    psi_status status = features && logits ? PSI_OK : PSI_ENOMEM;
    if (status == PSI_OK) status = psi_work_new(ctx, net, &options, &work);
    if (status == PSI_OK) {
        status = psi_net_predict(ctx, net, work, inputs->data, n, features, logits);
    }
    const nn_named_tensor results[] = {{"features", NN_F32, 2, {n, n_features}, features},
                                       {"logits", NN_F32, 2, {n, n_outputs}, logits}};
    if (status == PSI_OK) status = nn_safetensors_save(ctx, path, results, 2, NULL, 0);
    psi_work_free(ctx, work);
    free(features);
    free(logits);
    return status;
}

// A few steps on the inputs, so that running statistics and weights are not those of the start.
static psi_status train_a_little(psi_ctx *ctx, psi_net *net, const nn_named_tensor *inputs)
{
    enum { STEPS = 5 };
    const double rate = 1e-3;
    const psi_net_spec *spec = psi_net_spec_of(net);
    const size_t n = inputs->dim[0];
    int32_t *actions = calloc(n, sizeof *actions), *targets = calloc(n, sizeof *targets);
    psi_work *work = NULL;
    psi_adam *adam = NULL;
    psi_status status = actions && targets ? PSI_OK : PSI_ENOMEM;
    if (status == PSI_OK) {
        status = psi_work_new(
            ctx, net, &(psi_work_options){.size = sizeof(psi_work_options), .max_batch = n}, &work);
    }
    if (status == PSI_OK) status = psi_adam_new(ctx, net, NULL, &adam);
    for (size_t i = 0; status == PSI_OK && i < n; i++) {
        actions[i] = (int32_t)(i % spec->n_actions);
        targets[i] = (int32_t)(i % spec->n_classes);
    }
    for (int step = 0; status == PSI_OK && step < STEPS; step++) {
        double loss;
        status = psi_net_train_step(ctx, net, work, adam, inputs->data,
                                    &(psi_labels){.actions = actions, .targets = targets}, n, rate,
                                    &loss);
    }
    psi_adam_free(ctx, adam);
    psi_work_free(ctx, work);
    free(actions);
    free(targets);
    return status;
}

static psi_status make_net(psi_ctx *ctx, char **argument, const nn_named_tensor *inputs)
{
    const char *folder = argument[5];
    char path[4096];
    psi_net *net = NULL;
    psi_net_kind kind;
    psi_shape shape;
    psi_status status = psi_net_kind_from_name(ctx, argument[0], &kind);
    if (status == PSI_OK && !parse_shape(argument[1], &shape)) status = PSI_EUSAGE;
    if (status == PSI_OK) {
        const psi_net_spec spec =
            psi_net_defaults(kind, &shape, inputs->dtype == NN_U8 ? PSI_UINT8 : PSI_FLOAT32,
                             strtoull(argument[2], NULL, 10), strtoull(argument[3], NULL, 10));
        status = psi_net_new(ctx, &spec, 7, &net);
    }
    if (status == PSI_OK) status = train_a_little(ctx, net, inputs);
    snprintf(path, sizeof path, "%s/net.safetensors", folder);
    if (status == PSI_OK) status = psi_net_save(ctx, net, path);
    snprintf(path, sizeof path, "%s/net.onnx", folder);
    if (status == PSI_OK) status = psi_net_save_onnx(ctx, net, path);
    snprintf(path, sizeof path, "%s/outputs.safetensors", folder);
    if (status == PSI_OK) status = write_outputs(ctx, net, inputs, path);
    psi_net_free(ctx, net);
    return status;
}

static psi_status predict(psi_ctx *ctx, char **argument, const nn_named_tensor *inputs)
{
    psi_net *net;
    psi_status status = psi_net_load(ctx, argument[0], &net);
    if (status == PSI_OK) status = write_outputs(ctx, net, inputs, argument[2]);
    psi_net_free(ctx, net);
    return status;
}

static psi_status with_inputs(psi_ctx *ctx, const char *path, char **argument,
                              psi_status (*work)(psi_ctx *, char **, const nn_named_tensor *))
{
    nn_safetensors *file;
    psi_status status = nn_safetensors_open(ctx, path, &file);
    const nn_named_tensor *inputs = status == PSI_OK ? nn_safetensors_find(file, "inputs") : NULL;
    if (status == PSI_OK) status = inputs ? work(ctx, argument, inputs) : PSI_EMISSING;
    nn_safetensors_free(file);
    return status;
}

int main(int argc, char **argv)
{
    psi_ctx *ctx;
    psi_status status = PSI_EUSAGE;
    if (psi_ctx_new(NULL, &ctx) != PSI_OK) return 7;
    if (argc == 3 && strcmp(argv[1], "small") == 0) {
        status = write_small(ctx, argv[2]);
    } else if (argc == 8 && strcmp(argv[1], "make") == 0) {
        status = with_inputs(ctx, argv[6], argv + 2, make_net);
    } else if (argc == 5 && strcmp(argv[1], "predict") == 0) {
        status = with_inputs(ctx, argv[3], argv + 2, predict);
    }
    if (status != PSI_OK) {
        fprintf(stderr, "nn_tool: %s: %s\n", psi_status_name(status), psi_error(ctx)->message);
    }
    psi_ctx_free(ctx);
    return psi_status_exit_code(status);
}
