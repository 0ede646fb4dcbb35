// Writes networks as ONNX, which onnxruntime and others run: a graph of named operators, built node
// by node, over protobuf-c. Opset 13, IR version 7. Nothing here knows which network it is.
#ifndef PSI_NN_ONNX_H
#define PSI_NN_ONNX_H

#include <psifold/base.h>

typedef struct nn_onnx nn_onnx;

// An empty graph. Every name and attribute given to it later is copied.
psi_status nn_onnx_new(psi_ctx *ctx, const char *name, nn_onnx **out);
void nn_onnx_free(nn_onnx *graph); // NULL is fine

// What goes in and what comes out: a batch of any length, "N", of values of this shape.
psi_status nn_onnx_input(nn_onnx *graph, const char *name, psi_dtype dtype, const psi_shape *shape);
psi_status nn_onnx_output(nn_onnx *graph, const char *name, psi_dtype dtype,
                          const psi_shape *shape);

// Weights, biases and other constants in C order. The numbers are not copied: they stay the
// caller's, and must be there until the graph is saved.
psi_status nn_onnx_tensor(nn_onnx *graph, const char *name, psi_dtype dtype, const psi_shape *shape,
                          const void *data);

enum { NN_ONNX_MAX_INTS = 8 };

typedef struct nn_onnx_attribute {
    const char *name; // NULL: the end of a list
    enum { NN_ONNX_INT, NN_ONNX_FLOAT, NN_ONNX_INTS } kind;
    size_t n_ints;
    int64_t ints[NN_ONNX_MAX_INTS]; // of an int, the first
    float real;
} nn_onnx_attribute;

// One operator: inputs and attributes end with NULL (attributes may be NULL altogether), and it has
// one output. Nodes are added in the order in which they can be computed:
//
//     TRY(nn_onnx_node(graph, "Conv", NN_NAMES("x", "conv1.weight"), "conv1",
//                      NN_ATTRIBUTES(nn_onnx_pair("strides", 2, 2),
//                                    nn_onnx_sides("pads", 3, 3, 3, 3))));
psi_status nn_onnx_node(nn_onnx *graph, const char *op, const char *const *inputs,
                        const char *output, const nn_onnx_attribute *attributes);

#define NN_NAMES(...)      ((const char *const[]){__VA_ARGS__, NULL})
#define NN_ATTRIBUTES(...) ((const nn_onnx_attribute[]){__VA_ARGS__, {.name = NULL}})

nn_onnx_attribute nn_onnx_int(const char *name, int64_t value);
nn_onnx_attribute nn_onnx_float(const char *name, float value);
nn_onnx_attribute nn_onnx_pair(const char *name, int64_t height, int64_t width);
nn_onnx_attribute nn_onnx_sides(const char *name, int64_t top, int64_t left, int64_t bottom,
                                int64_t right);

// The number that ONNX has for an element type: the "to" of a Cast.
int64_t nn_onnx_dtype(psi_dtype dtype);

// Writes the model; it appears whole or not at all. The numbers go from where they are to the file.
// Returns PSI_ELIMIT for more than the two gigabytes a protobuf message can have, PSI_EIO.
psi_status nn_onnx_save(const nn_onnx *graph, const char *path);

#endif
