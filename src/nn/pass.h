// One pass of a batch through a network, as every thread of the team sees it: a thread computes its
// own rows of all layers. Only the sums of batch norm are shared, so that statistics are those of
// the whole batch; a barrier stands where they are read.
#ifndef PSI_NN_PASS_H
#define PSI_NN_PASS_H

#include "nn/work.h"

#include "base/threads.h"

typedef struct nn_pass {
    psi_net *net;
    psi_work *work;
    base_team *team;
    const real *parameters; // the network's, or folded ones
    size_t n;               // rows of the batch
    psi_norm_mode mode;
    const void *inputs;
    const uint32_t *order;            // row i of the batch is sample order[i]; NULL: sample i
    bool keep_features, keep_outputs; // in the workspace, as rows
    bool input_gradient;              // the backward pass may be asked for it
} nn_pass;

// The rows first … first + n of the batch that belong to a thread.
typedef struct nn_slice {
    size_t first, n;
} nn_slice;

static inline nn_slice nn_slice_of(const nn_pass *pass, int thread)
{
    size_t first, end;
    base_slice(pass->n, thread, pass->work->threads, &first, &end);
    return (nn_slice){first, end - first};
}

// Weights into the form that convolutions want; ends with a barrier.
void nn_prepare(const nn_pass *pass, int thread, bool backward);

void nn_forward(const nn_pass *pass, int thread);        // with the norm in its mode
void nn_forward_trunk(const nn_pass *pass, int thread);  // up to the features
void nn_forward_folded(const nn_pass *pass, int thread); // with the norm folded into the weights

// Gradients of all parameters into the threads' slabs, from rows in the caller's memory. Either of
// d_outputs and d_features may be NULL, and so may d_inputs, which takes a result.
void nn_backward(const nn_pass *pass, int thread, const real *d_outputs, const real *d_features,
                 real *d_inputs);

void nn_backward_trunk(const nn_pass *pass, int thread, bool wants_inputs);

// Steps of a layer's backward pass: its sums begin at zero; d_out of some rows is complete and
// becomes d_z; the gradient of the bias from the sums.
void nn_start_sums(const psi_work *work, size_t layer, int thread);
void nn_receive(const psi_work *work, size_t layer, int thread, size_t first, size_t rows);
void nn_bias_gradient(const psi_work *work, size_t layer, int thread);

// The heads of a training step. The work's order sorts the samples by action, and the pass has to
// read them in it; forward leaves the thread's loss and the gradient by the logits.
void nn_head_sort(psi_work *work, const psi_labels *labels, size_t n);
void nn_head_forward(const nn_pass *pass, int thread, const psi_labels *labels,
                     double total_weight);
void nn_head_backward(const nn_pass *pass, int thread);

// Parameters with the norm folded in: w' = w γ/σ, b' = β − μ γ/σ.
void nn_fold(const psi_net *net, real *folded);

// The loss of sample i, divided by total_weight; its logits z, with room up to a multiple of 16,
// become their gradient.
double nn_loss_row(const nn_kernels *kernels, const psi_labels *labels, size_t i, size_t classes,
                   double total_weight, real *z);
// The same for n rows of outputs (n, A·K), of which the gradient may be wanted.
double nn_loss_rows(const psi_work *work, const psi_labels *labels, const real *outputs, size_t n,
                    double total_weight, real *d_outputs);
double nn_loss_weight(const psi_labels *labels, size_t n);
psi_status nn_loss_check(psi_ctx *ctx, const nn_architecture *arch, const psi_labels *labels,
                         size_t n);

struct psi_adam {
    double beta1, beta2, epsilon;
    uint64_t steps;
    size_t n;
    real *m, *v; // moments, like the parameters
};

// The thread's share of one update.
void nn_adam_update(const psi_adam *adam, psi_net *net, const psi_work *work, double learning_rate,
                    int thread);

#endif
