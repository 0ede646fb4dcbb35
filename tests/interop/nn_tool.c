// Writes the files that the interop tests hand to other people's software.
//
//     nn_tool small FOLDER      small.onnx, small.safetensors: one operator of each kind, known
//     weights
#include "nn/onnx.h"
#include "nn/safetensors.h"

#include <stdio.h>
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

int main(int argc, char **argv)
{
    psi_ctx *ctx;
    if (argc != 3 || strcmp(argv[1], "small") != 0) {
        fprintf(stderr, "usage: nn_tool small FOLDER\n");
        return 2;
    }
    if (psi_ctx_new(NULL, &ctx) != PSI_OK) return 7;
    const psi_status status = write_small(ctx, argv[2]);
    if (status != PSI_OK) fprintf(stderr, "nn_tool: %s\n", psi_error(ctx)->message);
    psi_ctx_free(ctx);
    return psi_status_exit_code(status);
}
