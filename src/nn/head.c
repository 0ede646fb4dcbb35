// The heads while training. Only the logits of the taken action have a loss and a gradient, so the
// samples of a batch are sorted by action: the rows of one action are then neighbours, and they
// use its own blocks of weights alone.
#include "nn/pass.h"

#include "base/checked.h"

#include <string.h>

// Rows whose logits lie in the same blocks of outputs: those of one action, or of several small
// ones.
typedef struct head_group {
    size_t first, rows; // counted from the thread's first
    size_t block, end;  // of outputs
} head_group;

void nn_head_sort(psi_work *work, const psi_labels *labels, size_t n)
{
    const size_t n_actions = work->arch.n_actions;
    size_t *start = work->action_start;
    memset(start, 0, (n_actions + 1) * sizeof *start);
    for (size_t i = 0; i < n; i++) start[(labels->actions ? labels->actions[i] : 0) + 1]++;
    for (size_t a = 0; a < n_actions; a++) start[a + 1] += start[a];
    for (size_t i = 0; i < n; i++) {
        work->order[start[labels->actions ? labels->actions[i] : 0]++] = (uint32_t)i;
    }
    // every start has moved on to the next action's
    memmove(start + 1, start, n_actions * sizeof *start);
    start[0] = 0;
}

static size_t first_block(const nn_architecture *arch, size_t action)
{
    return action * arch->n_classes / NN_BLOCK;
}

static size_t end_block(const nn_architecture *arch, size_t action)
{
    return nn_blocks((action + 1) * arch->n_classes);
}

// The next group of some of a thread's rows; *action is where to look, 0 at first. False if there
// is none left.
static bool next_group(const psi_work *work, const nn_share *share, nn_rows rows, size_t *action,
                       head_group *group)
{
    const nn_architecture *arch = &work->arch;
    const size_t begin = share->rows.first + rows.first;
    *group = (head_group){0};
    for (; *action < arch->n_actions; ++*action) {
        const size_t first = base_max(work->action_start[*action], begin);
        const size_t end = base_min(work->action_start[*action + 1], begin + rows.n);
        if (first >= end) continue;
        const size_t block = first_block(arch, *action), last = end_block(arch, *action);
        if (group->rows > 0 && (block != group->block || last != group->end)) break;
        if (group->rows == 0) *group = (head_group){first - share->rows.first, 0, block, last};
        group->rows += end - first;
    }
    return group->rows > 0;
}

// What the products of the heads are made of.
typedef struct head_maps {
    const nn_layer *layer;
    size_t in, out; // blocks
    nn_maps x, z, d_z;
} head_maps;

static head_maps maps_of(const psi_work *work, int thread)
{
    const nn_thread_work *mine = &work->thread[thread];
    const nn_layer *layer = &work->arch.layer[work->arch.head];
    return (head_maps){.layer = layer,
                       .in = layer->conv.in_blocks,
                       .out = layer->conv.out_blocks,
                       .x = nn_input_maps(mine, layer),
                       .z = mine->layer[work->arch.head].y,
                       .d_z = mine->layer[work->arch.head].d_z};
}

static void multiply_group(const nn_kernels *kernels, nn_maps from, size_t from_block,
                           size_t from_end, const real *weights, size_t step, size_t rows,
                           size_t first, real *to, size_t to_step, size_t to_blocks)
{
    enum { PART = 64 };
    for (size_t part = from_block; part < from_end; part += PART) {
        const real *a[PART], *b[PART];
        const size_t n = base_min(PART, from_end - part);
        for (size_t i = 0; i < n; i++) {
            a[i] = nn_at(from, 1, part + i, 0) + first * NN_BLOCK;
            b[i] = weights + (part + i) * NN_SQUARE;
        }
        kernels->multiply(a, b, n, rows, step, to, to_step, to_blocks, part > from_block);
    }
}

static void forward(const nn_pass *pass, int thread)
{
    const psi_work *work = pass->work;
    const head_maps head = maps_of(work, thread);
    const real *weights = pass->parameters + head.layer->weights;
    const nn_share share = nn_share_of(pass, thread);
    const nn_rows all = {0, share.rows.n};
    head_group group;
    for (size_t a = 0; next_group(work, &share, all, &a, &group);) {
        multiply_group(work->kernels, head.x, 0, head.in,
                       weights + group.block * head.in * NN_SQUARE, head.in * NN_SQUARE, group.rows,
                       group.first, nn_at(head.z, 1, group.block, 0) + group.first * NN_BLOCK,
                       head.z.plane, group.end - group.block);
    }
}

// The columns first … first + n of one row of maps of one pixel, to or from a plain row.
static void copy_columns(nn_maps maps, size_t row, size_t first, size_t n, real *plain, bool back)
{
    for (size_t k = 0; k < n;) {
        const size_t lane = (first + k) % NN_BLOCK, count = base_min(NN_BLOCK - lane, n - k);
        real *at = nn_at(maps, 1, (first + k) / NN_BLOCK, 0) + row * NN_BLOCK + lane;
        memcpy(back ? at : plain + k, back ? plain + k : at, count * sizeof *at);
        k += count;
    }
}

// The loss of a row, of sample i; its logits become their gradient.
static double loss_of(const nn_pass *pass, const head_maps *head, const psi_labels *labels,
                      double total_weight, size_t row, size_t i, real *z)
{
    const nn_architecture *arch = &pass->work->arch;
    const size_t action = labels->actions ? (size_t)labels->actions[i] : 0;
    const size_t classes = arch->n_classes, column = action * classes;
    const real *bias = pass->parameters + head->layer->bias + column;
    copy_columns(head->z, row, column, classes, z, false);
    for (size_t k = 0; k < classes; k++) z[k] += bias[k];
    const double loss = nn_loss_row(pass->work->kernels, labels, i, classes, total_weight, z);
    for (size_t b = first_block(arch, action); b < end_block(arch, action); b++) {
        memset(nn_at(head->d_z, 1, b, 0) + row * NN_BLOCK, 0, NN_BLOCK * sizeof(real));
    }
    copy_columns(head->d_z, row, column, classes, z, true);
    return loss;
}

void nn_head_forward(const nn_pass *pass, int thread, const psi_labels *labels, double total_weight)
{
    psi_work *work = pass->work;
    const nn_share share = nn_share_of(pass, thread);
    const head_maps head = maps_of(work, thread);
    const uint32_t *order = work->order + share.rows.first;
    forward(pass, thread);
    for (int slice = share.begin; slice < share.end; slice++) {
        const nn_rows rows = nn_slice_rows(pass, &share, slice);
        double loss = 0;
        for (size_t row = rows.first; row < rows.first + rows.n; row++) {
            loss += loss_of(pass, &head, labels, total_weight, row, order[row],
                            work->thread[thread].channels);
        }
        work->loss[slice] = loss;
    }
}

// Neighbouring actions may share a block; `done` counts the blocks that have a gradient so far.
static void weight_gradient(const psi_work *work, const head_maps *head, const head_group *group,
                            real *d_weights, size_t *done)
{
    const nn_kernels *kernels = work->kernels;
    enum { ROWS_IN_CACHE = 128 };
    for (size_t block = group->block; block < group->end;) {
        // blocks that were begun by an action before are a part of their own
        const size_t end = base_min(block < *done ? *done : group->end,
                                    block + base_min(kernels->wide, group->end - block));
        for (size_t part = 0; part < group->rows; part += ROWS_IN_CACHE) {
            const size_t row = group->first + part;
            const real *b = nn_at(head->d_z, 1, block, 0) + row * NN_BLOCK;
            for (size_t i = 0; i < head->in; i++) {
                const real *a = nn_at(head->x, 1, i, 0) + row * NN_BLOCK;
                kernels->multiply_transposed(
                    &a, &b, 1, base_min(ROWS_IN_CACHE, group->rows - part), NN_BLOCK, NN_BLOCK,
                    head->d_z.plane, d_weights + (block * head->in + i) * NN_SQUARE,
                    head->in * NN_SQUARE, end - block, block < *done || part > 0);
            }
        }
        block = end;
    }
    *done = base_max(*done, group->end);
}

static void backward_slice(const nn_pass *pass, int thread, const nn_share *share, int slice)
{
    const psi_work *work = pass->work;
    const nn_architecture *arch = &work->arch;
    const nn_thread_work *mine = &work->thread[thread];
    const nn_rows rows = nn_slice_rows(pass, share, slice);
    const head_maps head = maps_of(work, thread);
    const size_t row_of_weights = head.in * NN_SQUARE;
    nn_sums *sums = work->backward_sums[arch->head] + (size_t)slice * head.out;
    real *d_weights = nn_gradient_room(pass, head.layer, thread, slice);
    size_t done = 0;
    head_group group;
    nn_start_sums(work, arch->head, slice);
    for (size_t a = 0; next_group(work, share, rows, &a, &group);) {
        for (; done < group.block; done++) { // actions that nobody took
            memset(d_weights + done * row_of_weights, 0, row_of_weights * sizeof(real));
        }
        weight_gradient(work, &head, &group, d_weights, &done);
        for (size_t b = group.block; b < group.end; b++) {
            work->kernels->gradient_sums(nn_at(head.d_z, 1, b, 0) + group.first * NN_BLOCK, NULL,
                                         NULL, NULL, head.d_z.plane, 1, group.rows, &sums[b]);
        }
        if (arch->features < 0) continue;
        multiply_group(work->kernels, head.d_z, group.block, group.end,
                       work->plan[arch->head].transposed, head.out * NN_SQUARE, group.rows,
                       group.first, mine->layer[arch->features].d_out.data + group.first * NN_BLOCK,
                       mine->layer[arch->features].d_out.plane, head.in);
    }
    for (; done < head.out; done++) {
        memset(d_weights + done * row_of_weights, 0, row_of_weights * sizeof(real));
    }
    nn_bias_gradient(work, arch->head, slice, d_weights + head.layer->conv.n_weights);
    nn_gradient_done(pass, head.layer, thread, slice);
    if (arch->features < 0) return;
    nn_start_sums(work, (size_t)arch->features, slice);
    nn_receive(work, (size_t)arch->features, thread, slice, rows);
}

void nn_head_backward(const nn_pass *pass, int thread)
{
    const nn_share share = nn_share_of(pass, thread);
    for (int slice = share.begin; slice < share.end; slice++) {
        backward_slice(pass, thread, &share, slice);
    }
}
