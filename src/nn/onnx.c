#include "nn/onnx.h"

#include "base/arena.h"
#include "base/checked.h"
#include "base/context.h"
#include "base/file.h"

#include <onnx.pb-c.h>

#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the file's numbers are little-endian");

enum { IR_VERSION = 7, OPSET = 13 };

// protobuf-c describes a message by plain structs that point at each other. All of them live in the
// arena; the lists of pointers grow, and are blocks of their own.
struct nn_onnx {
    psi_ctx *ctx;
    base_arena arena;
    Onnx__ModelProto model;
    Onnx__GraphProto graph;
    Onnx__OperatorSetIdProto opset, *opsets[1];
};

// ---- building ----

// The field of a message is a char * though nobody writes through it.
static psi_status copy_text(nn_onnx *graph, const char *text, char **out)
{
    const size_t size = strlen(text) + 1;
    const psi_status status = base_arena_take(&graph->arena, size, 1, out);
    if (status == PSI_OK) memcpy(*out, text, size);
    return status;
}

// Puts a message at the end of a list of n pointers, whose variable is at list.
static psi_status append(nn_onnx *graph, void *list, size_t *n, const void *message)
{
    const psi_status status = base_resize(graph->ctx, *n + 1, sizeof message, list);
    if (status != PSI_OK) return status;
    char *pointers;
    memcpy(&pointers, list, sizeof pointers);
    memcpy(pointers + *n * sizeof message, &message, sizeof message);
    ++*n;
    return PSI_OK;
}

psi_status nn_onnx_new(psi_ctx *ctx, const char *name, nn_onnx **out)
{
    psi_status status = PSI_OK;
    nn_onnx *graph = NULL;
    *out = NULL;
    TRY(base_alloc_zero(ctx, 1, sizeof *graph, &graph));
    graph->ctx = ctx;
    graph->arena.ctx = ctx;
    onnx__model_proto__init(&graph->model);
    onnx__graph_proto__init(&graph->graph);
    onnx__operator_set_id_proto__init(&graph->opset);

    graph->opset.domain = ""; // the standard operators
    graph->opset.has_version = 1;
    graph->opset.version = OPSET;
    graph->opsets[0] = &graph->opset;

    Onnx__ModelProto *model = &graph->model;
    model->has_ir_version = 1;
    model->ir_version = IR_VERSION;
    model->n_opset_import = 1;
    model->opset_import = graph->opsets;
    model->producer_name = "psifold";
    TRY(copy_text(graph, psi_version(), &model->producer_version));
    model->graph = &graph->graph;
    TRY(copy_text(graph, name, &graph->graph.name));
    *out = graph;
    graph = NULL;
done:
    nn_onnx_free(graph);
    return status;
}

void nn_onnx_free(nn_onnx *graph)
{
    if (!graph) return;
    base_free(graph->ctx, graph->graph.input);
    base_free(graph->ctx, graph->graph.output);
    base_free(graph->ctx, graph->graph.initializer);
    base_free(graph->ctx, graph->graph.node);
    base_free(graph->ctx, graph->model.metadata_props);
    base_arena_free(&graph->arena);
    base_free(graph->ctx, graph);
}

int64_t nn_onnx_dtype(psi_dtype dtype)
{
    switch (dtype) {
    case PSI_UINT8: return ONNX__TENSOR_PROTO__DATA_TYPE__UINT8;
    case PSI_INT32: return ONNX__TENSOR_PROTO__DATA_TYPE__INT32;
    case PSI_INT64: return ONNX__TENSOR_PROTO__DATA_TYPE__INT64;
    case PSI_FLOAT32: return ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
    case PSI_FLOAT64: return ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE;
    }
    return ONNX__TENSOR_PROTO__DATA_TYPE__UNDEFINED;
}

// The type "tensor of dtype, N × shape".
static psi_status make_type(nn_onnx *graph, psi_dtype dtype, const psi_shape *shape,
                            Onnx__TypeProto **out)
{
    psi_status status = PSI_OK;
    Onnx__TypeProto *type;
    Onnx__TypeProto__Tensor *tensor;
    Onnx__TensorShapeProto *dims;
    Onnx__TensorShapeProto__Dimension *dim;
    TRY(base_arena_take(&graph->arena, 1, sizeof *type, &type));
    TRY(base_arena_take(&graph->arena, 1, sizeof *tensor, &tensor));
    TRY(base_arena_take(&graph->arena, 1, sizeof *dims, &dims));
    TRY(base_arena_take(&graph->arena, shape->rank + 1, sizeof *dim, &dim));
    onnx__type_proto__init(type);
    onnx__type_proto__tensor__init(tensor);
    onnx__tensor_shape_proto__init(dims);
    TRY(base_arena_take(&graph->arena, shape->rank + 1, sizeof *dims->dim, &dims->dim));
    for (size_t i = 0; i <= shape->rank; i++) {
        onnx__tensor_shape_proto__dimension__init(&dim[i]);
        if (i == 0) {
            dim[i].value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
            dim[i].dim_param = "N";
        } else {
            dim[i].value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
            dim[i].dim_value = (int64_t)shape->dim[i - 1];
        }
        dims->dim[i] = &dim[i];
    }
    dims->n_dim = shape->rank + 1;
    tensor->has_elem_type = 1;
    tensor->elem_type = (int32_t)nn_onnx_dtype(dtype);
    tensor->shape = dims;
    type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    type->tensor_type = tensor;
    *out = type;
done:
    return status;
}

static psi_status make_value(nn_onnx *graph, const char *name, psi_dtype dtype,
                             const psi_shape *shape, Onnx__ValueInfoProto **out)
{
    psi_status status = PSI_OK;
    TRY(base_arena_take(&graph->arena, 1, sizeof **out, out));
    onnx__value_info_proto__init(*out);
    TRY(copy_text(graph, name, &(*out)->name));
    TRY(make_type(graph, dtype, shape, &(*out)->type));
done:
    return status;
}

psi_status nn_onnx_input(nn_onnx *graph, const char *name, psi_dtype dtype, const psi_shape *shape)
{
    psi_status status = PSI_OK;
    Onnx__ValueInfoProto *value;
    TRY(make_value(graph, name, dtype, shape, &value));
    TRY(append(graph, &graph->graph.input, &graph->graph.n_input, value));
done:
    return status;
}

psi_status nn_onnx_output(nn_onnx *graph, const char *name, psi_dtype dtype, const psi_shape *shape)
{
    psi_status status = PSI_OK;
    Onnx__ValueInfoProto *value;
    TRY(make_value(graph, name, dtype, shape, &value));
    TRY(append(graph, &graph->graph.output, &graph->graph.n_output, value));
done:
    return status;
}

psi_status nn_onnx_tensor(nn_onnx *graph, const char *name, psi_dtype dtype, const psi_shape *shape,
                          const void *data)
{
    psi_status status = PSI_OK;
    Onnx__TensorProto *tensor;
    TRY(base_arena_take(&graph->arena, 1, sizeof *tensor, &tensor));
    onnx__tensor_proto__init(tensor);
    TRY(copy_text(graph, name, &tensor->name));
    TRY(base_arena_take(&graph->arena, shape->rank, sizeof *tensor->dims, &tensor->dims));
    tensor->n_dims = shape->rank;
    for (size_t i = 0; i < shape->rank; i++) tensor->dims[i] = (int64_t)shape->dim[i];
    tensor->has_data_type = 1;
    tensor->data_type = (int32_t)nn_onnx_dtype(dtype);
    tensor->has_raw_data = 1;
    tensor->raw_data.len = psi_shape_size(shape) * psi_dtype_size(dtype);
    memcpy(&tensor->raw_data.data, &data, sizeof data); // read only, though the field is not const
    TRY(append(graph, &graph->graph.initializer, &graph->graph.n_initializer, tensor));
done:
    return status;
}

nn_onnx_attribute nn_onnx_int(const char *name, int64_t value)
{
    return (nn_onnx_attribute){.name = name, .kind = NN_ONNX_INT, .ints = {value}};
}

nn_onnx_attribute nn_onnx_float(const char *name, float value)
{
    return (nn_onnx_attribute){.name = name, .kind = NN_ONNX_FLOAT, .real = value};
}

nn_onnx_attribute nn_onnx_pair(const char *name, int64_t height, int64_t width)
{
    return (nn_onnx_attribute){
        .name = name, .kind = NN_ONNX_INTS, .n_ints = 2, .ints = {height, width}};
}

nn_onnx_attribute nn_onnx_sides(const char *name, int64_t top, int64_t left, int64_t bottom,
                                int64_t right)
{
    return (nn_onnx_attribute){
        .name = name, .kind = NN_ONNX_INTS, .n_ints = 4, .ints = {top, left, bottom, right}};
}

static psi_status make_attribute(nn_onnx *graph, const nn_onnx_attribute *given,
                                 Onnx__AttributeProto **out)
{
    psi_status status = PSI_OK;
    Onnx__AttributeProto *attribute;
    TRY(base_arena_take(&graph->arena, 1, sizeof *attribute, &attribute));
    onnx__attribute_proto__init(attribute);
    TRY(copy_text(graph, given->name, &attribute->name));
    attribute->has_type = 1;
    switch (given->kind) {
    case NN_ONNX_INT:
        attribute->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
        attribute->has_i = 1;
        attribute->i = given->ints[0];
        break;
    case NN_ONNX_FLOAT:
        attribute->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT;
        attribute->has_f = 1;
        attribute->f = given->real;
        break;
    case NN_ONNX_INTS:
        attribute->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
        attribute->n_ints = given->n_ints;
        TRY(base_arena_take(&graph->arena, given->n_ints, sizeof(int64_t), &attribute->ints));
        memcpy(attribute->ints, given->ints, given->n_ints * sizeof(int64_t));
        break;
    }
    *out = attribute;
done:
    return status;
}

psi_status nn_onnx_node(nn_onnx *graph, const char *op, const char *const *inputs,
                        const char *output, const nn_onnx_attribute *attributes)
{
    psi_status status = PSI_OK;
    size_t n_inputs = 0, n_attributes = 0;
    while (inputs[n_inputs]) n_inputs++;
    while (attributes && attributes[n_attributes].name) n_attributes++;
    Onnx__NodeProto *node;
    TRY(base_arena_take(&graph->arena, 1, sizeof *node, &node));
    onnx__node_proto__init(node);
    TRY(copy_text(graph, op, &node->op_type));
    TRY(copy_text(graph, output, &node->name));

    TRY(base_arena_take(&graph->arena, n_inputs, sizeof *node->input, &node->input));
    for (size_t i = 0; i < n_inputs; i++) TRY(copy_text(graph, inputs[i], &node->input[i]));
    node->n_input = n_inputs;
    TRY(base_arena_take(&graph->arena, 1, sizeof *node->output, &node->output));
    node->output[0] = node->name;
    node->n_output = 1;

    TRY(base_arena_take(&graph->arena, n_attributes, sizeof *node->attribute, &node->attribute));
    for (size_t i = 0; i < n_attributes; i++) {
        TRY(make_attribute(graph, &attributes[i], &node->attribute[i]));
    }
    node->n_attribute = n_attributes;
    TRY(append(graph, &graph->graph.node, &graph->graph.n_node, node));
done:
    return status;
}

// ---- saving ----

// protobuf-c hands out the message in many pieces: small ones are gathered, and the weights pass
// straight through. The first failure is kept, since protobuf-c cannot be stopped.
typedef struct file_sink {
    ProtobufCBuffer base; // first: protobuf-c calls append with a pointer to it
    base_output *output;
    psi_status status;
    size_t used;
    uint8_t bytes[1 << 12];
} file_sink;

static void sink_flush(file_sink *sink)
{
    if (sink->status == PSI_OK) {
        sink->status = base_output_write(sink->output, sink->bytes, sink->used);
    }
    sink->used = 0;
}

static void sink_append(ProtobufCBuffer *base, size_t size, const uint8_t *bytes)
{
    file_sink *sink = (file_sink *)base;
    if (size > sizeof sink->bytes - sink->used) sink_flush(sink);
    if (size > sizeof sink->bytes) {
        if (sink->status == PSI_OK) sink->status = base_output_write(sink->output, bytes, size);
        return;
    }
    if (size > 0) memcpy(sink->bytes + sink->used, bytes, size);
    sink->used += size;
}

psi_status nn_onnx_save(const nn_onnx *graph, const char *path)
{
    psi_status status = PSI_OK;
    file_sink sink = {.base = {sink_append}};

    // the limit is asked of the weights first: protobuf-c adds sizes up without looking
    size_t total = 0;
    for (size_t i = 0; i < graph->graph.n_initializer; i++) {
        if (!base_add(total, graph->graph.initializer[i]->raw_data.len, &total)) total = SIZE_MAX;
    }
    if (total <= INT32_MAX) total = onnx__model_proto__get_packed_size(&graph->model);
    if (total > INT32_MAX) {
        return FAIL(graph->ctx, PSI_ELIMIT, "%s: %zu bytes are more than an ONNX file can have",
                    path, total);
    }
    TRY(base_output_open(graph->ctx, path, BASE_FILE, true, &sink.output));
    onnx__model_proto__pack_to_buffer(&graph->model, &sink.base);
    sink_flush(&sink);
    TRY(sink.status);
    status = base_output_commit(sink.output);
    sink.output = NULL;
done:
    base_output_discard(sink.output);
    return status;
}
