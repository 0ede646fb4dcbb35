// What a network is made of: layers in PyTorch's order, and one slab of parameters.
#ifndef PSI_NN_NET_H
#define PSI_NN_NET_H

#include "nn/conv.h"

enum { NN_MAX_LAYERS = 28, NN_OBSERVATION = -1, NN_NONE = -2 };

typedef enum nn_after { NN_NOTHING, NN_MAX_POOL, NN_AVERAGE } nn_after;

// A convolution and what follows it:
//     y = conv(x)   z = norm(y) or y + bias   a = relu(z + skip)   out = pool or average of a
typedef struct nn_layer {
    char name[32], norm_name[32];
    nn_conv conv;
    int input;    // the layer whose output it reads, or NN_OBSERVATION
    int skip;     // the layer whose output is added as it is, or NN_NONE
    int shortcut; // the layer whose normalised y is added, or NN_NONE
    bool norm, relu;
    bool is_shortcut; // its z is only ever added to another layer's
    nn_after after;
    size_t out_h, out_w; // of out
    bool dense;          // a Linear for PyTorch: weights of rank 2, with bias
    double init_std;     // normal with this deviation; 0: uniform ± 1/√fan_in

    // places in the slabs
    size_t weights, scale, bias; // parameters
    size_t running;              // mean, then variance
    size_t dead;                 // weights that never matter

    // the backward pass: who adds to the gradient of `input`, and who is last
    bool adds_gradient, last_reader;
} nn_layer;

// Parameters whose gradients are sums over rows of products: weights, and the bias that follows
// them where there is no norm.
static inline size_t nn_layer_gradients(const nn_layer *layer)
{
    return layer->conv.n_weights + (layer->norm ? 0 : layer->conv.out_blocks * NN_BLOCK);
}

// The part of a network that does not depend on numbers.
typedef struct nn_architecture {
    psi_net_kind kind;
    psi_shape input;
    psi_dtype input_dtype;
    size_t n_actions, n_classes;
    bool image;         // the input is packed for a stem, else it is a vector
    size_t in_channels; // C, or D of a vector
    size_t n_layers;
    nn_layer layer[NN_MAX_LAYERS];
    size_t order[NN_MAX_LAYERS]; // in which layers are computed
    int features;                // the layer whose output they are, or NN_OBSERVATION
    size_t n_features;
    size_t head; // the last layer
    size_t n_parameters, n_running, n_dead;
} nn_architecture;

typedef enum nn_tensor_kind {
    NN_WEIGHT,
    NN_BIAS,
    NN_NORM_SCALE,
    NN_NORM_BIAS,
    NN_RUNNING_MEAN,
    NN_RUNNING_VAR,
    NN_BATCHES,
} nn_tensor_kind;

typedef struct nn_tensor {
    nn_tensor_kind kind;
    size_t layer;
} nn_tensor;

struct psi_net {
    psi_net_spec spec; // mean and scale point to normalisation
    nn_architecture arch;
    float *normalisation; // (2, C) mean, scale
    real *parameters;     // all that Adam sees
    real *running;        // running means and variances
    real *dead;
    uint64_t batches; // seen in training
    uint64_t stamp;   // when the numbers last changed; no two changes have the same
    size_t n_tensors;
    nn_tensor tensor[NN_MAX_LAYERS * 6];
};

#define NN_EPSILON  1e-5 // batch norm's, as in PyTorch
#define NN_MOMENTUM 0.1

psi_status nn_architecture_init(psi_ctx *ctx, const psi_net_spec *spec, nn_architecture *arch);
bool nn_architecture_same(const nn_architecture *a, const nn_architecture *b);

// One tensor from a slab laid out like the parameters (or running statistics), in PyTorch's layout.
void nn_tensor_export(const psi_net *net, size_t index, const real *parameters, const real *dead,
                      real *out);
size_t nn_tensor_size(const psi_net *net, size_t index);

// A network without weights: zero, batch norm neutral.
psi_status nn_net_empty(psi_ctx *ctx, const psi_net_spec *spec, psi_net **out);

void nn_net_changed(psi_net *net); // takes a new stamp

#endif
