// The backward pass. Gradients flow from reader to producer in sub-batches: as soon as the last
// reader of an output has added its part, ReLU's mask and the sums that batch norm needs are taken
// on the same rows, while they are in cache.
#include "nn/pass.h"

#include "base/checked.h"

#include <string.h>

static nn_sums *sums_of(const psi_work *work, size_t l, int slice)
{
    return work->backward_sums[l] + (size_t)slice * work->arch.layer[l].conv.out_blocks;
}

void nn_start_sums(const psi_work *work, size_t l, int slice)
{
    const nn_layer *layer = &work->arch.layer[l];
    const size_t bytes = layer->conv.out_blocks * sizeof(nn_sums);
    memset(sums_of(work, l, slice), 0, bytes);
    if (layer->shortcut >= 0) memset(sums_of(work, (size_t)layer->shortcut, slice), 0, bytes);
}

void nn_receive(const psi_work *work, size_t l, int thread, int slice, nn_rows range)
{
    const nn_layer *layer = &work->arch.layer[l];
    const nn_kernels *kernels = work->kernels;
    const nn_thread_work *mine = &work->thread[thread];
    const nn_layer_work *own = &mine->layer[l];
    const nn_layer_work *other = layer->shortcut >= 0 ? &mine->layer[layer->shortcut] : NULL;
    nn_sums *sums = sums_of(work, l, slice);
    nn_sums *other_sums = other ? sums_of(work, (size_t)layer->shortcut, slice) : NULL;
    const size_t pixels = nn_out_pixels(&layer->conv), blocks = layer->conv.out_blocks;
    const size_t first = range.first, rows = range.n;
    if (layer->after == NN_MAX_POOL) { // only the chosen pixels have a gradient
        const size_t pooled = layer->out_h * layer->out_w;
        for (size_t block = 0; block < blocks; block++) {
            const size_t at = block * pooled * own->out.plane + first * NN_BLOCK;
            kernels->gradient_sums(own->d_out.data + at, own->out.data + at,
                                   own->chosen_y.data + at, own->mean + block * NN_BLOCK,
                                   own->out.plane, pooled, rows, &sums[block]);
        }
        return;
    }
    for (size_t block = 0; block < blocks; block++) {
        const size_t at = block * pixels * own->a.plane + first * NN_BLOCK, c = block * NN_BLOCK;
        if (layer->after == NN_AVERAGE) {
            kernels->average_backward(nn_at(own->d_out, 1, block, 0) + first * NN_BLOCK,
                                      own->d_z.plane, pixels, rows, own->d_z.data + at);
        }
        kernels->gradient_sums(own->d_z.data + at, layer->relu ? own->a.data + at : NULL,
                               layer->norm ? own->y.data + at : NULL, own->mean + c, own->a.plane,
                               pixels, rows, &sums[block]);
        if (other) {
            kernels->gradient_sums(own->d_z.data + at, NULL, other->y.data + at, other->mean + c,
                                   own->a.plane, pixels, rows, &other_sums[block]);
        }
    }
}

// d_y = d_z · a + y · b + c for each channel: the gradient through the norm,
//     d_y = γ/σ · (d_z − mean(d_z) − (y − μ)/σ² · mean(d_z · (y − μ))),
// without the means where the statistics were not the batch's. Also the gradients of γ and β.
static void norm_coefficients(const nn_pass *pass, size_t l, int thread, real *a, real *b, real *c)
{
    const psi_work *work = pass->work;
    const nn_layer *layer = &work->arch.layer[l];
    const nn_layer_work *own = &work->thread[thread].layer[l];
    real *gradients = work->thread[thread].gradients;
    const bool first_of_all = thread == 0 && pass->rank == 0;
    const double count = (double)(pass->n * nn_out_pixels(&layer->conv));
    for (size_t channel = 0; channel < layer->conv.out_blocks * NN_BLOCK; channel++) {
        double first, second;
        nn_total_sums(pass, work->backward_sums[l], layer->conv.out_blocks, channel, &first,
                      &second);
        const double inverse = (double)own->inverse_std[channel];
        const double scale = (double)pass->parameters[layer->scale + channel] * inverse;
        gradients[layer->scale + channel] = first_of_all ? (real)(second * inverse) : 0;
        gradients[layer->bias + channel] = first_of_all ? (real)first : 0;
        a[channel] = (real)scale;
        b[channel] = c[channel] = 0;
        if (pass->mode != PSI_NORM_BATCH) continue;
        const double slope = -scale * inverse * inverse * second / count;
        b[channel] = (real)slope;
        c[channel] = (real)(-scale * first / count - slope * (double)own->mean[channel]);
    }
}

void nn_bias_gradient(const psi_work *work, size_t l, int slice, real *d_bias)
{
    const nn_sums *sums = sums_of(work, l, slice);
    for (size_t c = 0; c < work->arch.layer[l].conv.out_blocks * NN_BLOCK; c++) {
        d_bias[c] = (real)sums[c / NN_BLOCK].first[c % NN_BLOCK];
    }
}

// A branch of the tree of slices lies at the level of how many branches were complete before it:
// of a thread's slices 0 to 3, slice 1 at level 1, and then it is added to slice 0 at level 0;
// slice 2 at level 1, slice 3 at level 2, which is added to level 1, and that to level 0. These
// are the digits of the slice's number as counting by twos has them.
static real *level_of(const psi_work *work, const nn_layer *layer, int thread, int level)
{
    const nn_thread_work *mine = &work->thread[thread];
    return level == 0 ? mine->gradients + layer->weights : mine->partial[level - 1];
}

static int number_of(const nn_pass *pass, int slice)
{
    return slice % nn_slices_each(pass);
}

real *nn_gradient_room(const nn_pass *pass, const nn_layer *layer, int thread, int slice)
{
    const int level = __builtin_popcount((unsigned)number_of(pass, slice));
    return level_of(pass->work, layer, thread, level);
}

void nn_gradient_done(const nn_pass *pass, const nn_layer *layer, int thread, int slice)
{
    const psi_work *work = pass->work;
    const int number = number_of(pass, slice);
    int level = __builtin_popcount((unsigned)number);
    for (int digit = 1; number & digit; digit *= 2, level--) {
        work->kernels->add(level_of(work, layer, thread, level), nn_layer_gradients(layer),
                           level_of(work, layer, thread, level - 1));
    }
}

// Where the gradient by a layer's input goes; data is NULL if nobody wants it.
static nn_maps input_gradient(const psi_work *work, const nn_layer *layer, int thread,
                              bool wants_inputs)
{
    const nn_thread_work *mine = &work->thread[thread];
    if (layer->input >= 0) return mine->layer[layer->input].d_out;
    return wants_inputs && !layer->conv.stem ? mine->d_input : (nn_maps){NULL, 0};
}

// The gradient by the y of a max pool, through the norm: a pixel has what the windows that chose it
// have.
static nn_maps pooled_gradient(const psi_work *work, size_t l, int thread, size_t first,
                               size_t rows, const nn_out_gradient *through)
{
    const nn_layer *layer = &work->arch.layer[l];
    const nn_layer_work *own = &work->thread[thread].layer[l];
    const nn_maps d_y = {work->thread[thread].scratch.d_output.data, nn_plane(rows)};
    const size_t h = layer->conv.out_h, w = layer->conv.out_w, pixels = layer->out_h * layer->out_w;
    for (size_t place = 0; place < layer->conv.out_blocks * h * w; place++) {
        const size_t block = place / (h * w), p = place % (h * w), c = block * NN_BLOCK;
        nn_pool_sources sources = {0};
        for (uint8_t tap = 0; tap < 9; tap++) {
            const size_t y = p / w + 1 - tap / 3, x = p % w + 1 - tap % 3; // twice the window's
            if (y % 2 || x % 2 || y / 2 >= layer->out_h || x / 2 >= layer->out_w) continue;
            const size_t q = y / 2 * layer->out_w + x / 2;
            const size_t at = (block * pixels + q) * own->d_out.plane + first * NN_BLOCK;
            sources.gradient[sources.n] = own->d_out.data + at;
            sources.chosen[sources.n] = own->chosen + at;
            sources.tap[sources.n++] = tap;
        }
        work->kernels->pool_backward(
            &sources, own->y.data + place * own->y.plane + first * NN_BLOCK, through->a + c,
            through->b + c, through->c + c, rows, d_y.data + place * d_y.plane);
    }
    return d_y;
}

// The gradient by y of some rows.
static nn_out_gradient output_gradient(const psi_work *work, size_t l, int thread, size_t first,
                                       size_t rows)
{
    const nn_layer *layer = &work->arch.layer[l];
    const nn_thread_work *mine = &work->thread[thread];
    const nn_layer_work *own = &mine->layer[l];
    if (!layer->norm) return (nn_out_gradient){.g = nn_rows_from(own->d_z, first)};
    const size_t padded = layer->conv.out_blocks * NN_BLOCK;
    const nn_out_gradient through = {nn_rows_from(own->d_z, first), nn_rows_from(own->y, first),
                                     mine->channels, mine->channels + padded,
                                     mine->channels + 2 * padded};
    if (layer->after != NN_MAX_POOL) return through;
    return (nn_out_gradient){.g = pooled_gradient(work, l, thread, first, rows, &through)};
}

// The part of one slice.
static void backward_slice(const nn_pass *pass, size_t l, int thread, int slice, bool adds,
                           nn_maps d_x)
{
    const psi_work *work = pass->work;
    const nn_layer *layer = &work->arch.layer[l];
    const nn_plan *plan = &work->plan[l];
    const nn_thread_work *mine = &work->thread[thread];
    const nn_share share = nn_share_of(pass, thread);
    const nn_rows rows = nn_slice_rows(pass, &share, slice);
    const bool passes_on = layer->input >= 0 && layer->last_reader;
    real *d_weights = nn_gradient_room(pass, layer, thread, slice);
    if (!layer->norm) nn_bias_gradient(work, l, slice, d_weights + layer->conv.n_weights);
    if (passes_on) nn_start_sums(work, (size_t)layer->input, slice);
    for (size_t done = 0; done < rows.n; done += plan->sub_batch) {
        const nn_rows part = {rows.first + done, base_min(plan->sub_batch, rows.n - done)};
        const nn_out_gradient d_y = output_gradient(work, l, thread, part.first, part.n);
        nn_conv_backward(plan, &mine->scratch, nn_input_rows(mine, layer, part.first), &d_y,
                         d_x.data ? nn_rows_from(d_x, part.first) : d_x, adds, d_weights, done > 0,
                         part.n);
        if (passes_on) nn_receive(work, (size_t)layer->input, thread, slice, part);
    }
    if (rows.n > 0)
        nn_conv_backward_finish(plan, &mine->scratch, d_weights);
    else
        memset(d_weights, 0, layer->conv.n_weights * sizeof *d_weights);
    nn_gradient_done(pass, layer, thread, slice);
}

static void backward_layer(const nn_pass *pass, size_t l, int thread, bool adds, bool wants_inputs)
{
    const psi_work *work = pass->work;
    const nn_layer *layer = &work->arch.layer[l];
    const nn_thread_work *mine = &work->thread[thread];
    const nn_share share = nn_share_of(pass, thread);
    const nn_maps d_x = input_gradient(work, layer, thread, wants_inputs);
    // a shortcut's sums were complete when those of the layer that adds it were
    if (layer->norm && !layer->is_shortcut) {
        const size_t bytes = layer->conv.out_blocks * sizeof(nn_sums);
        nn_meet_slices(pass, thread, work->backward_sums[l], bytes);
        if (layer->shortcut >= 0) {
            nn_meet_slices(pass, thread, work->backward_sums[layer->shortcut], bytes);
        }
    }
    if (nn_idle(&share)) return;
    if (layer->norm) {
        const size_t padded = layer->conv.out_blocks * NN_BLOCK;
        norm_coefficients(pass, l, thread, mine->channels, mine->channels + padded,
                          mine->channels + 2 * padded);
    }
    for (int slice = share.begin; slice < share.end; slice++) {
        backward_slice(pass, l, thread, slice, adds, d_x);
    }
}

// The caller's gradients enter: rows into maps.
static void enter(const nn_pass *pass, int thread, const real *d_rows, size_t width, nn_maps maps)
{
    const nn_rows rows = nn_share_of(pass, thread).rows;
    if (rows.n == 0) return; // and perhaps no maps
    nn_rows_to_maps(d_rows + rows.first * width, width, rows.n, maps);
}

void nn_backward_trunk(const nn_pass *pass, int thread, bool wants_inputs)
{
    const nn_architecture *arch = &pass->work->arch;
    for (size_t i = arch->n_layers - 1; i-- > 0;) {
        const size_t l = arch->order[i];
        backward_layer(pass, l, thread, arch->layer[l].adds_gradient, wants_inputs);
    }
}

// d_out of a layer is complete, for all rows of a thread.
static void receive_all(const nn_pass *pass, size_t l, int thread)
{
    const nn_share share = nn_share_of(pass, thread);
    for (int slice = share.begin; slice < share.end; slice++) {
        nn_start_sums(pass->work, l, slice);
        nn_receive(pass->work, l, thread, slice, nn_slice_rows(pass, &share, slice));
    }
}

void nn_backward(const nn_pass *pass, int thread, const real *d_outputs, const real *d_features,
                 real *d_inputs)
{
    const psi_work *work = pass->work;
    const nn_architecture *arch = &work->arch;
    const nn_thread_work *mine = &work->thread[thread];
    const nn_share share = nn_share_of(pass, thread);
    const nn_layer *head = &arch->layer[arch->head];
    const nn_maps features = input_gradient(work, head, thread, d_inputs != NULL);
    if (d_features && features.data) enter(pass, thread, d_features, arch->n_features, features);
    if (d_outputs) {
        enter(pass, thread, d_outputs, arch->n_actions * arch->n_classes,
              mine->layer[arch->head].d_out);
        receive_all(pass, arch->head, thread);
        backward_layer(pass, arch->head, thread, d_features != NULL, d_inputs != NULL);
    } else if (!nn_idle(&share)) {
        memset(mine->gradients + head->weights, 0,
               (arch->n_parameters - head->weights) * sizeof(real));
        if (arch->features >= 0) receive_all(pass, (size_t)arch->features, thread);
    }
    nn_backward_trunk(pass, thread, d_inputs != NULL);
    if (d_inputs && share.rows.n > 0) {
        nn_maps_to_rows(mine->d_input, arch->in_channels, share.rows.n,
                        d_inputs + share.rows.first * arch->in_channels);
    }
}
