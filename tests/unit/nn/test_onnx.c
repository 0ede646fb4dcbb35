// ONNX files, unpacked again by protobuf-c. That onnxruntime runs them is shown in tests/interop.
#include "nn/onnx.h"

#include "support/support.h"

#include <onnx.pb-c.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHANNELS = 2, SIDE = 5, CLASSES = 3 };

static float kernel[4][CHANNELS][3][3];
static float dense[CLASSES][4 * 3 * 3];
static float bias[CLASSES] = {-1, 0.5F, 2};

// x (N, 2, 5, 5) → Conv, stride 2 → Relu → Flatten → Gemm → y (N, 3)
static psi_status build(psi_ctx *ctx, nn_onnx **out)
{
    psi_status status;
    nn_onnx *graph;
    const psi_shape image = {3, {CHANNELS, SIDE, SIDE}}, classes = {1, {CLASSES}};
    status = nn_onnx_new(ctx, "small", &graph);
#define STEP(expression)                                                                           \
    if (status == PSI_OK) status = (expression)
    STEP(nn_onnx_input(graph, "x", PSI_FLOAT32, &image));
    STEP(
        nn_onnx_tensor(graph, "kernel", PSI_FLOAT32, &(psi_shape){4, {4, CHANNELS, 3, 3}}, kernel));
    STEP(nn_onnx_tensor(graph, "dense", PSI_FLOAT32, &(psi_shape){2, {CLASSES, 36}}, dense));
    STEP(nn_onnx_tensor(graph, "bias", PSI_FLOAT32, &classes, bias));
    STEP(nn_onnx_node(graph, "Conv", NN_NAMES("x", "kernel"), "conv",
                      NN_ATTRIBUTES(nn_onnx_pair("kernel_shape", 3, 3),
                                    nn_onnx_pair("strides", 2, 2),
                                    nn_onnx_sides("pads", 1, 1, 1, 1))));
    STEP(nn_onnx_node(graph, "Relu", NN_NAMES("conv"), "relu", NULL));
    STEP(nn_onnx_node(graph, "Flatten", NN_NAMES("relu"), "flat",
                      NN_ATTRIBUTES(nn_onnx_int("axis", 1))));
    STEP(nn_onnx_node(graph, "Gemm", NN_NAMES("flat", "dense", "bias"), "y",
                      NN_ATTRIBUTES(nn_onnx_int("transB", 1), nn_onnx_float("alpha", 0.5F))));
    STEP(nn_onnx_output(graph, "y", PSI_FLOAT32, &classes));
#undef STEP
    *out = graph;
    return status;
}

static Onnx__ModelProto *unpack(const char *path)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    struct stat info;
    assert_int_equal(fstat(fileno(file), &info), 0);
    const size_t size = (size_t)info.st_size;
    uint8_t *bytes = malloc(size);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, size, file), size);
    fclose(file);
    Onnx__ModelProto *model = onnx__model_proto__unpack(NULL, size, bytes);
    assert_non_null(model);
    free(bytes);
    return model;
}

static void assert_value(const Onnx__ValueInfoProto *value, const char *name, size_t rank,
                         const int64_t *dims)
{
    assert_string_equal(value->name, name);
    assert_int_equal(value->type->value_case, ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE);
    const Onnx__TypeProto__Tensor *type = value->type->tensor_type;
    assert_int_equal(type->elem_type, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT);
    assert_int_equal(type->shape->n_dim, rank + 1);
    assert_string_equal(type->shape->dim[0]->dim_param, "N");
    for (size_t i = 0; i < rank; i++) {
        assert_int_equal(type->shape->dim[i + 1]->dim_value, dims[i]);
    }
}

static void a_graph_is_written_as_it_was_built(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder();
    const char *path = test_path(folder, "small.onnx");
    for (size_t i = 0; i < sizeof kernel / sizeof(float); i++) {
        (&kernel[0][0][0][0])[i] = (float)i / 7;
    }
    nn_onnx *graph;
    assert_ok(ctx, build(ctx, &graph));
    assert_ok(ctx, nn_onnx_save(graph, path));
    nn_onnx_free(graph);

    Onnx__ModelProto *model = unpack(path);
    assert_int_equal(model->ir_version, 7);
    assert_int_equal(model->n_opset_import, 1);
    assert_int_equal(model->opset_import[0]->version, 13);
    assert_string_equal(model->producer_name, "psifold");
    assert_string_equal(model->producer_version, psi_version());

    const Onnx__GraphProto *read = model->graph;
    assert_string_equal(read->name, "small");
    assert_int_equal(read->n_input, 1);
    assert_int_equal(read->n_output, 1);
    assert_value(read->input[0], "x", 3, (int64_t[]){CHANNELS, SIDE, SIDE});
    assert_value(read->output[0], "y", 1, (int64_t[]){CLASSES});
    assert_int_equal(read->n_initializer, 3);
    const Onnx__TensorProto *tensor = read->initializer[0];
    assert_string_equal(tensor->name, "kernel");
    assert_int_equal(tensor->n_dims, 4);
    assert_int_equal(tensor->dims[1], CHANNELS);
    assert_int_equal(tensor->data_type, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT);
    assert_int_equal(tensor->raw_data.len, sizeof kernel);
    assert_memory_equal(tensor->raw_data.data, kernel, sizeof kernel);

    assert_int_equal(read->n_node, 4);
    const Onnx__NodeProto *conv = read->node[0], *gemm = read->node[3];
    assert_string_equal(conv->op_type, "Conv");
    assert_int_equal(conv->n_input, 2);
    assert_string_equal(conv->input[1], "kernel");
    assert_string_equal(conv->output[0], "conv");
    assert_int_equal(conv->n_attribute, 3);
    assert_string_equal(conv->attribute[2]->name, "pads");
    assert_int_equal(conv->attribute[2]->type, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
    assert_int_equal(conv->attribute[2]->n_ints, 4);
    assert_int_equal(read->node[1]->n_attribute, 0);
    assert_int_equal(gemm->n_input, 3);
    assert_int_equal(gemm->attribute[0]->type, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    assert_int_equal(gemm->attribute[0]->i, 1);
    assert_int_equal(gemm->attribute[1]->type, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
    assert_true(gemm->attribute[1]->f > 0.49F && gemm->attribute[1]->f < 0.51F);
    onnx__model_proto__free_unpacked(model, NULL);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

static void every_element_type_has_its_number(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder();
    const char *path = test_path(folder, "types.onnx");
    static const psi_dtype types[] = {PSI_UINT8, PSI_INT32, PSI_INT64, PSI_FLOAT32, PSI_FLOAT64};
    static const int64_t numbers[] = {2, 6, 7, 1, 11}; // from the ONNX specification
    static const double data[2] = {1, 2};
    nn_onnx *graph;
    assert_ok(ctx, nn_onnx_new(ctx, "types", &graph));
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(nn_onnx_dtype(types[i]), numbers[i]);
        const psi_shape shape = {i % 2, {2}}; // scalars as well
        assert_ok(ctx, nn_onnx_tensor(graph, "t", types[i], &shape, data));
    }
    assert_ok(ctx, nn_onnx_save(graph, path));
    nn_onnx_free(graph);
    Onnx__ModelProto *model = unpack(path);
    for (size_t i = 0; i < 5; i++) {
        const Onnx__TensorProto *tensor = model->graph->initializer[i];
        assert_int_equal(tensor->data_type, numbers[i]);
        assert_int_equal(tensor->n_dims, i % 2);
        assert_int_equal(tensor->raw_data.len, psi_dtype_size(types[i]) * (i % 2 ? 2 : 1));
        assert_memory_equal(tensor->raw_data.data, data, tensor->raw_data.len);
    }
    onnx__model_proto__free_unpacked(model, NULL);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

// Weights around the size of the buffer that gathers small pieces come through whole.
static void pieces_of_any_size_arrive(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder();
    const char *path = test_path(folder, "pieces.onnx");
    enum { MOST = 9000 };
    uint8_t *bytes = malloc(MOST);
    assert_non_null(bytes);
    for (size_t i = 0; i < MOST; i++) bytes[i] = (uint8_t)(i * 31 >> 3);
    for (size_t size = 4000; size < 4200; size += 3) {
        nn_onnx *graph;
        assert_ok(ctx, nn_onnx_new(ctx, "pieces", &graph));
        const size_t sizes[] = {size, 0, 1, MOST - size, 4096, 4097};
        for (size_t i = 0; i < 6; i++) {
            assert_ok(
                ctx, nn_onnx_tensor(graph, "t", PSI_UINT8, &(psi_shape){1, {sizes[i]}}, bytes + i));
        }
        assert_ok(ctx, nn_onnx_save(graph, path));
        nn_onnx_free(graph);
        Onnx__ModelProto *model = unpack(path);
        for (size_t i = 0; i < 6; i++) {
            const ProtobufCBinaryData *data = &model->graph->initializer[i]->raw_data;
            assert_int_equal(data->len, sizes[i]);
            if (data->len) assert_memory_equal(data->data, bytes + i, data->len);
        }
        onnx__model_proto__free_unpacked(model, NULL);
    }
    free(bytes);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

static void a_model_too_large_for_protobuf_is_refused(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder();
    const char *path = test_path(folder, "large.onnx");
    nn_onnx *graph;
    assert_ok(ctx, nn_onnx_new(ctx, "large", &graph));
    const psi_shape shape = {2, {1 << 15, 1 << 14}}; // two gigabytes that are never looked at
    assert_ok(ctx, nn_onnx_tensor(graph, "t", PSI_FLOAT32, &shape, kernel));
    assert_status(ctx, nn_onnx_save(graph, path), PSI_ELIMIT);
    assert_int_not_equal(access(path, F_OK), 0);
    nn_onnx_free(graph);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

static void a_failed_write_leaves_nothing(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder();
    const char *path = test_path(folder, "full.onnx");
    nn_onnx *graph;
    assert_ok(ctx, build(ctx, &graph));
    struct rlimit usual, tight;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &usual), 0);
    tight = usual;
    tight.rlim_cur = 100;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    const psi_status status = nn_onnx_save(graph, path);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &usual), 0);
    signal(SIGXFSZ, handler);
    assert_int_equal(status, PSI_EIO);
    nn_onnx_free(graph);
    assert_int_equal(rmdir(folder), 0);
    free(folder);
    psi_ctx_free(ctx);
}

static psi_status build_and_save(psi_ctx *ctx, void *argument)
{
    nn_onnx *graph;
    psi_status status = build(ctx, &graph);
    if (status == PSI_OK) status = nn_onnx_save(graph, argument);
    nn_onnx_free(graph);
    return status;
}

static void failing_allocations_leak_nothing(void **state)
{
    (void)state;
    char *folder = test_folder();
    char path[1024];
    snprintf(path, sizeof path, "%s", test_path(folder, "swept.onnx"));
    assert_in_range(test_fault_sweep(build_and_save, path), 10, 100);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
    free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_graph_is_written_as_it_was_built),
        cmocka_unit_test(every_element_type_has_its_number),
        cmocka_unit_test(pieces_of_any_size_arrive),
        cmocka_unit_test(a_model_too_large_for_protobuf_is_refused),
        cmocka_unit_test(a_failed_write_leaves_nothing),
        cmocka_unit_test(failing_allocations_leak_nothing),
    };
    return cmocka_run_group_tests_name("nn/onnx", tests, NULL, NULL);
}
