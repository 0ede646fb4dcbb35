// The backward pass. Gradients flow from reader to producer in sub-batches: as soon as the last
// reader of an output has added its part, ReLU's mask and the sums that batch norm needs are taken
// on the same rows, while they are in cache.
#include "nn/pass.h"

#include "base/checked.h"

#include <string.h>

void nn_start_sums(const psi_work *work, size_t l, int thread)
{
    const nn_layer *layer = &work->arch.layer[l];
    nn_thread_work *mine = &work->thread[thread];
    const size_t bytes = layer->conv.out_blocks * sizeof(nn_sums);
    memset(mine->layer[l].backward_sums, 0, bytes);
    if (layer->shortcut >= 0) memset(mine->layer[layer->shortcut].backward_sums, 0, bytes);
}

// d_out of these rows is complete: makes d_z of it and adds to the sums.
void nn_receive(const psi_work *work, size_t l, int thread, size_t first, size_t rows)
{
    const nn_layer *layer = &work->arch.layer[l];
    const nn_kernels *kernels = work->kernels;
    const nn_thread_work *mine = &work->thread[thread];
    const nn_layer_work *own = &mine->layer[l];
    const nn_layer_work *other = layer->shortcut >= 0 ? &mine->layer[layer->shortcut] : NULL;
    const size_t pixels = nn_out_pixels(&layer->conv), blocks = layer->conv.out_blocks;
    if (layer->after == NN_MAX_POOL) { // only the chosen pixels have a gradient
        const size_t pooled = layer->out_h * layer->out_w;
        for (size_t block = 0; block < blocks; block++) {
            const size_t at = block * pooled * own->out.plane + first * NN_BLOCK;
            kernels->gradient_sums(own->d_out.data + at, own->out.data + at,
                                   own->chosen_y.data + at, own->mean + block * NN_BLOCK,
                                   own->out.plane, pooled, rows, &own->backward_sums[block]);
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
                               pixels, rows, &own->backward_sums[block]);
        if (other) {
            kernels->gradient_sums(own->d_z.data + at, NULL, other->y.data + at, other->mean + c,
                                   own->a.plane, pixels, rows, &other->backward_sums[block]);
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
    const double count = (double)(pass->n * nn_out_pixels(&layer->conv));
    for (size_t channel = 0; channel < layer->conv.out_blocks * NN_BLOCK; channel++) {
        double first = 0, second = 0;
        for (int t = 0; t < work->threads; t++) {
            const nn_sums *sums = &work->thread[t].layer[l].backward_sums[channel / NN_BLOCK];
            first += sums->first[channel % NN_BLOCK];
            second += sums->second[channel % NN_BLOCK];
        }
        const double inverse = (double)own->inverse_std[channel];
        const double scale = (double)pass->parameters[layer->scale + channel] * inverse;
        gradients[layer->scale + channel] = thread == 0 ? (real)(second * inverse) : 0;
        gradients[layer->bias + channel] = thread == 0 ? (real)first : 0;
        a[channel] = (real)scale;
        b[channel] = c[channel] = 0;
        if (pass->mode != PSI_NORM_BATCH) continue;
        const double slope = -scale * inverse * inverse * second / count;
        b[channel] = (real)slope;
        c[channel] = (real)(-scale * first / count - slope * (double)own->mean[channel]);
    }
}

void nn_bias_gradient(const psi_work *work, size_t l, int thread)
{
    const nn_layer *layer = &work->arch.layer[l];
    nn_thread_work *mine = &work->thread[thread];
    for (size_t c = 0; c < layer->conv.out_blocks * NN_BLOCK; c++) {
        mine->gradients[layer->bias + c] =
            (real)mine->layer[l].backward_sums[c / NN_BLOCK].first[c % NN_BLOCK];
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

static void backward_layer(const nn_pass *pass, size_t l, int thread, bool adds, bool wants_inputs)
{
    const psi_work *work = pass->work;
    const nn_layer *layer = &work->arch.layer[l];
    const nn_plan *plan = &work->plan[l];
    nn_thread_work *mine = &work->thread[thread];
    const size_t rows = nn_slice_of(pass, thread).n;
    const nn_maps d_x = input_gradient(work, layer, thread, wants_inputs);
    real *d_weights = mine->gradients + layer->weights;
    // a shortcut's sums were complete when those of the layer that adds it were
    if (layer->norm && !layer->is_shortcut) base_team_barrier(pass->team);
    if (layer->norm) {
        const size_t padded = layer->conv.out_blocks * NN_BLOCK;
        norm_coefficients(pass, l, thread, mine->channels, mine->channels + padded,
                          mine->channels + 2 * padded);
    } else {
        nn_bias_gradient(work, l, thread);
    }
    const bool passes_on = layer->input >= 0 && layer->last_reader;
    if (passes_on) nn_start_sums(work, (size_t)layer->input, thread);
    for (size_t first = 0; first < rows; first += plan->sub_batch) {
        const size_t n = base_min(plan->sub_batch, rows - first);
        const nn_out_gradient d_y = output_gradient(work, l, thread, first, n);
        nn_conv_backward(plan, &mine->scratch, nn_input_rows(mine, layer, first), &d_y,
                         d_x.data ? nn_rows_from(d_x, first) : d_x, adds, d_weights, first > 0, n);
        if (passes_on) nn_receive(work, (size_t)layer->input, thread, first, n);
    }
    if (rows > 0) nn_conv_backward_finish(plan, &mine->scratch, d_weights);
}

// The caller's gradients enter: rows into maps.
static void enter(const nn_pass *pass, int thread, const real *d_rows, size_t width, nn_maps maps)
{
    const nn_slice slice = nn_slice_of(pass, thread);
    nn_rows_to_maps(d_rows + slice.first * width, width, slice.n, maps);
}

void nn_backward_trunk(const nn_pass *pass, int thread, bool wants_inputs)
{
    const nn_architecture *arch = &pass->work->arch;
    for (size_t i = arch->n_layers - 1; i-- > 0;) {
        const size_t l = arch->order[i];
        backward_layer(pass, l, thread, arch->layer[l].adds_gradient, wants_inputs);
    }
}

void nn_backward(const nn_pass *pass, int thread, const real *d_outputs, const real *d_features,
                 real *d_inputs)
{
    const psi_work *work = pass->work;
    const nn_architecture *arch = &work->arch;
    nn_thread_work *mine = &work->thread[thread];
    const nn_slice slice = nn_slice_of(pass, thread);
    const nn_layer *head = &arch->layer[arch->head];
    const nn_maps features = input_gradient(work, head, thread, d_inputs != NULL);
    if (d_features && features.data) enter(pass, thread, d_features, arch->n_features, features);
    if (d_outputs) {
        nn_start_sums(work, arch->head, thread);
        enter(pass, thread, d_outputs, arch->n_actions * arch->n_classes,
              mine->layer[arch->head].d_out);
        nn_receive(work, arch->head, thread, 0, slice.n);
        backward_layer(pass, arch->head, thread, d_features != NULL, d_inputs != NULL);
    } else {
        memset(mine->gradients + head->weights, 0,
               (arch->n_parameters - head->weights) * sizeof(real));
        if (arch->features >= 0) {
            nn_start_sums(work, (size_t)arch->features, thread);
            nn_receive(work, (size_t)arch->features, thread, 0, slice.n);
        }
    }
    nn_backward_trunk(pass, thread, d_inputs != NULL);
    if (d_inputs) {
        nn_maps_to_rows(mine->d_input, arch->in_channels, slice.n,
                        d_inputs + slice.first * arch->in_channels);
    }
}
