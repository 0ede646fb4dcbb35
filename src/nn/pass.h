// One pass of a batch through a network, as every thread of the team sees it: a thread computes its
// own rows of all layers. Only the sums of batch norm are shared, so that statistics are those of
// the whole batch; a barrier stands where they are read.
//
// The sum of real numbers depends on the order of its terms, and a training must not depend on who
// has computed what. So the batch is cut into slices, as many as the workspace says and however
// many threads there are. What is summed over rows is summed within a slice; slices are then added
// up as the leaves of a binary tree, and the slices of a thread are one of its branches.
#ifndef PSI_NN_PASS_H
#define PSI_NN_PASS_H

#include "nn/work.h"

#include "base/threads.h"

typedef struct nn_pass {
    psi_ctx *ctx;
    psi_net *net;
    psi_work *work;
    base_team *team;
    const real *parameters; // the network's, or folded ones
    size_t n;               // rows of the batch
    int slices, workers;    // powers of two, but for predictions: threads beyond these are idle
    int rank, learners;     // this process, and those that have slices: a power of two
    psi_norm_mode mode;
    const void *inputs;
    const uint32_t *order;            // row i of the batch is sample order[i]; NULL: sample i
    bool keep_features, keep_outputs; // in the workspace, as rows
    bool input_gradient;              // the backward pass may be asked for it
} nn_pass;

// Some rows of the batch: first … first + n.
typedef struct nn_rows {
    size_t first, n;
} nn_rows;

// What belongs to a thread: slices begin … end, and the rows of these.
typedef struct nn_share {
    int begin, end;
    nn_rows rows;
} nn_share;

// Slices of a thread that has any.
static inline int nn_slices_each(const nn_pass *pass)
{
    return pass->slices / pass->learners / pass->workers;
}

static inline nn_share nn_share_of(const nn_pass *pass, int thread)
{
    const int each = nn_slices_each(pass);
    nn_share share = {0};
    if (thread >= pass->workers || pass->rank >= pass->learners) return share;
    size_t end;
    share.begin = (pass->rank * pass->workers + thread) * each;
    share.end = share.begin + each;
    base_slice(pass->n, share.begin, pass->slices, &share.rows.first, &end);
    base_slice(pass->n, share.end - 1, pass->slices, &(size_t){0}, &end);
    share.rows.n = end - share.rows.first;
    return share;
}

static inline bool nn_idle(const nn_share *share)
{
    return share->begin == share->end;
}

// The rows of a slice among those of the thread that has it.
static inline nn_rows nn_slice_rows(const nn_pass *pass, const nn_share *share, int slice)
{
    size_t first, end;
    base_slice(pass->n, slice, pass->slices, &first, &end);
    return (nn_rows){first - share->rows.first, end - first};
}

// A channel's sums over all slices, in their order.
static inline void nn_total_sums(const nn_pass *pass, const nn_sums *sums, size_t blocks,
                                 size_t channel, double *first, double *second)
{
    *first = *second = 0;
    for (int slice = 0; slice < pass->slices; slice++) {
        const nn_sums *of_slice = sums + (size_t)slice * blocks + channel / NN_BLOCK;
        *first += of_slice->first[channel % NN_BLOCK];
        *second += of_slice->second[channel % NN_BLOCK];
    }
}

// Where processes meet (together.c). All threads make these calls; with one process they are a
// barrier at most. Once one of them has failed, the others do nothing, and the pass goes through
// with numbers that nobody will use.
//
// From every slice a block of so many bytes: everybody has all of them afterwards.
void nn_meet_slices(const nn_pass *pass, int thread, void *blocks, size_t bytes);
// From every row of the batch: by one thread, without a barrier.
void nn_meet_rows(const nn_pass *pass, void *rows, size_t bytes);
// The gradients that the threads have added up become those of all processes.
void nn_meet_gradients(const nn_pass *pass, int thread);
// A pass of several processes begins; and what became of it: if they did not get through it
// together, the network is as it was.
void nn_together_begin(const nn_pass *pass);
psi_status nn_together_end(const nn_pass *pass);
bool nn_together_failed(const nn_pass *pass);

// Weights into the form that convolutions want; ends with a barrier.
void nn_prepare(const nn_pass *pass, int thread, bool backward);

void nn_forward(const nn_pass *pass, int thread);        // with the norm in its mode
void nn_forward_trunk(const nn_pass *pass, int thread);  // up to the features
void nn_forward_folded(const nn_pass *pass, int thread); // with the norm folded into the weights

// Gradients of all parameters into the workers' slabs, from rows in the caller's memory. Either of
// d_outputs and d_features may be NULL, and so may d_inputs, which takes a result.
void nn_backward(const nn_pass *pass, int thread, const real *d_outputs, const real *d_features,
                 real *d_inputs);

void nn_backward_trunk(const nn_pass *pass, int thread, bool wants_inputs);

// Steps of a layer's backward pass: its sums begin at zero; d_out of some rows of a slice (counted
// from the thread's first) is complete and becomes d_z.
void nn_start_sums(const psi_work *work, size_t layer, int slice);
void nn_receive(const psi_work *work, size_t layer, int thread, int slice, nn_rows rows);

// The gradients of a layer, slice by slice: there is room for weights and bias of the next slice;
// when it is complete, it is added to what it is a neighbour of in the tree of slices. After a
// thread's last slice its branch is complete, and lies in its slab.
real *nn_gradient_room(const nn_pass *pass, const nn_layer *layer, int thread, int slice);
void nn_gradient_done(const nn_pass *pass, const nn_layer *layer, int thread, int slice);

// A slice's gradient of the bias, from its sums.
void nn_bias_gradient(const psi_work *work, size_t layer, int slice, real *d_bias);

// The heads of a training step. The work's order sorts the samples by action, and the pass has to
// read them in it; forward leaves the losses of slices and the gradient by the logits.
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

// A thread's share of adding up the threads' gradients: of all slices, in the first thread's slab.
void nn_gradient_sum(const nn_pass *pass, int thread);

// Its share of one update, which may begin with that.
void nn_adam_update(const psi_adam *adam, const nn_pass *pass, double learning_rate, int thread,
                    bool sum);

#endif
