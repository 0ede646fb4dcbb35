// The workspace: everything a pass needs besides the network, taken once.
#ifndef PSI_NN_WORK_H
#define PSI_NN_WORK_H

#include "nn/net.h"

// Slices of a batch that is trained with: powers of two, as many as the batch has rows for. More of
// them let more threads and processes take part, and cost time: every slice makes gradients of all
// weights, which are most of a dense network's work. bench/README.md has what two, four and eight
// cost.
enum { NN_SLICES = 4, NN_TREE_DEPTH = 2, NN_TWO_SLICES_FROM = 32, NN_FOUR_SLICES_FROM = 256 };

static inline int nn_slices(const nn_architecture *arch, size_t batch)
{
    const int slices = batch < NN_TWO_SLICES_FROM ? 1 : batch < NN_FOUR_SLICES_FROM ? 2 : 4;
    return arch->image ? slices : (slices + 1) / 2;
}

// How many of so many threads, or processes, have slices.
static inline int nn_workers(int threads, int slices)
{
    int workers = 1;
    while (workers * 2 <= slices && workers * 2 <= threads) workers *= 2;
    return workers;
}

// One layer's maps for one thread's rows of the batch; names as in nn_layer.
typedef struct nn_layer_work {
    nn_maps y; // before the norm; for layers with bias the same as a
    nn_maps a, out;
    nn_maps d_out; // gradient by out; a skip shares that of the layer it leads to
    nn_maps d_z;   // by what entered ReLU (may be the same memory; none before a max pool)
    // max pool, like out: which tap won, and the y it saw there
    uint8_t *chosen;
    nn_maps chosen_y;

    // batch norm, one number for each channel: z = y · scale + bias
    real *shift, *mean, *inverse_std, *scale, *bias;
} nn_layer_work;

typedef struct nn_thread_work {
    void *memory; // everything below lies in it
    nn_scratch scratch;
    nn_maps input, d_input; // packed images, or a vector as a 1×1 map
    nn_layer_work layer[NN_MAX_LAYERS];
    real *channels;               // room for three numbers a channel
    real *gradients;              // like the parameters: of all slices of this thread
    real *partial[NN_TREE_DEPTH]; // of one layer: branches that wait for their neighbour
} nn_thread_work;

// What processes that train together need to exchange parts of a pass.
typedef struct nn_together {
    int rank, ranks;
    size_t *bytes;     // (ranks)
    void *own;         // this process's part, which is copied: it lies in what is gathered
    size_t room;       // bytes of it
    real *gradients;   // like the parameters: of a piece of them what all ranks have
    real *running;     // as it was when a pass began that others then did not take part in
    psi_status status; // of the exchanges of a pass; after one has failed, none is tried
} nn_together;

struct psi_work {
    const nn_kernels *kernels;
    nn_architecture arch;
    int threads;
    size_t max_batch;
    bool training, exact;
    size_t bytes;
    nn_plan plan[NN_MAX_LAYERS];
    nn_thread_work *thread;
    nn_sums *sums;                                                       // all of them
    nn_sums *forward_sums[NN_MAX_LAYERS], *backward_sums[NN_MAX_LAYERS]; // (slices, blocks)
    double loss[NN_SLICES];
    bool shared;              // processes train together, and …
    nn_together *together;    // … each computes a part; NULL: all of it
    real *features, *outputs; // (max_batch, …), in rows as the caller knows them
    real *ones, *zeros;       // for the largest number of channels
    uint32_t *order;          // (max_batch) the samples of a step, sorted by action
    size_t *action_start;     // (A + 1) where an action's begin

    real *folded; // parameters with batch norm folded in, of the network with this stamp
    const psi_net *folded_net;
    uint64_t folded_stamp;

    const psi_net *forward_net; // what the last forward pass was
    size_t forward_rows;
    psi_norm_mode mode;
};

// PSI_ESHAPE or PSI_EUSAGE unless this workspace can serve this network on this context.
psi_status nn_work_check(psi_ctx *ctx, const psi_work *work, const psi_net *net);

// The maps that a layer reads.
static inline nn_maps nn_input_maps(const nn_thread_work *thread, const nn_layer *layer)
{
    return layer->input == NN_OBSERVATION ? thread->input : thread->layer[layer->input].out;
}

// Rows of these maps from one on; packed images have longer rows.
static inline nn_maps nn_input_rows(const nn_thread_work *thread, const nn_layer *layer, size_t row)
{
    nn_maps maps = nn_input_maps(thread, layer);
    maps.data += row * (layer->conv.stem ? nn_stem_row(&layer->conv) : (size_t)NN_BLOCK);
    return maps;
}

// Between the caller's rows and maps of 1×1 pixels; channels that only fill a block become 0.
void nn_rows_to_maps(const real *rows, size_t width, size_t n, nn_maps maps);
void nn_maps_to_rows(nn_maps maps, size_t width, size_t n, real *rows);

// Normalises n inputs of the caller into the thread's input maps: row i is sample order[first + i],
// or first + i without an order.
void nn_read_inputs(const psi_net *net, nn_thread_work *thread, const void *inputs, size_t first,
                    const uint32_t *order, size_t n);

#endif
