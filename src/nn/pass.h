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
    const char *inputs;
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
void nn_forward_folded(const nn_pass *pass, int thread); // with the norm folded into the weights

// Gradients of all parameters into the threads' slabs, from rows in the caller's memory. Either of
// d_outputs and d_features may be NULL, and so may d_inputs, which takes a result.
void nn_backward(const nn_pass *pass, int thread, const real *d_outputs, const real *d_features,
                 real *d_inputs);

// Parameters with the norm folded in: w' = w γ/σ, b' = β − μ γ/σ.
void nn_fold(const psi_net *net, real *folded);

// The thread's share of the loss and of its gradient, divided by total_weight.
void nn_loss_rows(const nn_architecture *arch, const psi_labels *labels, const real *outputs,
                  size_t first, size_t n, double total_weight, real *d_outputs, double *loss);
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
