// The forward pass, layer by layer.
#include "nn/pass.h"

#include "base/checked.h"

#include <math.h>
#include <string.h>

void nn_prepare(const nn_pass *pass, int thread, bool backward)
{
    const nn_architecture *arch = &pass->work->arch;
    for (size_t l = 0; l < arch->n_layers; l++) {
        const nn_layer *layer = &arch->layer[l];
        const bool both = backward && (layer->input >= 0 || pass->input_gradient);
        nn_plan_prepare(&pass->work->plan[l], pass->parameters + layer->weights, both, thread,
                        pass->work->threads);
    }
    base_team_barrier(pass->team);
}

// Mean and deviation of every channel, from the batch or from before, and z = y · scale + bias with
// them. Every thread does this for itself; the first one lets the running statistics follow:
//     running ← 0.9 · running + 0.1 · batch, with the unbiased variance.
static void finish_statistics(const nn_pass *pass, size_t l, int thread)
{
    const psi_work *work = pass->work;
    const nn_layer *layer = &work->arch.layer[l];
    const nn_layer_work *own = &work->thread[thread].layer[l];
    const size_t padded = layer->conv.out_blocks * NN_BLOCK;
    const double count = (double)(pass->n * nn_out_pixels(&layer->conv));
    real *running_mean = pass->net->running + layer->running, *running_var = running_mean + padded;
    for (size_t c = 0; c < padded; c++) {
        double mean = (double)own->shift[c], variance;
        if (pass->mode == PSI_NORM_FROZEN) {
            variance = (double)running_var[c];
        } else {
            double first, second;
            nn_total_sums(pass, work->forward_sums[l], padded / NN_BLOCK, c, &first, &second);
            const double offset = first / count; // sums were taken around shift
            mean += offset;
            variance = fmax(second / count - offset * offset, 0);
            if (thread == 0) {
                const double unbiased = count > 1 ? variance * count / (count - 1) : variance;
                running_mean[c] += (real)(NN_MOMENTUM * (mean - (double)running_mean[c]));
                running_var[c] += (real)(NN_MOMENTUM * (unbiased - (double)running_var[c]));
            }
        }
        const double inverse = 1 / sqrt(variance + NN_EPSILON);
        const double scale = (double)pass->parameters[layer->scale + c] * inverse;
        own->mean[c] = (real)mean;
        own->inverse_std[c] = (real)inverse;
        own->scale[c] = (real)scale;
        own->bias[c] = (real)((double)pass->parameters[layer->bias + c] - mean * scale);
    }
}

// out(q) = max(0, max over the 3×3 window of y · scale + bias)
static void max_pool(const psi_work *work, const nn_layer *layer, const nn_layer_work *own,
                     const real *scale, const real *bias, size_t rows, bool keep)
{
    const size_t h = layer->conv.out_h, w = layer->conv.out_w, pixels = layer->out_h * layer->out_w;
    for (size_t block = 0; block < layer->conv.out_blocks; block++) {
        for (size_t q = 0; q < pixels; q++) {
            nn_pool_window window = {0};
            for (uint8_t tap = 0; tap < 9; tap++) {
                const size_t y = 2 * (q / layer->out_w) + tap / 3 - 1; // wraps around when outside
                const size_t x = 2 * (q % layer->out_w) + tap % 3 - 1;
                if (y >= h || x >= w) continue;
                window.plane[window.n] = nn_at(own->y, h * w, block, y * w + x);
                window.tap[window.n++] = tap;
            }
            const size_t at = (block * pixels + q) * own->out.plane;
            work->kernels->pool(&window, scale + block * NN_BLOCK, bias + block * NN_BLOCK, rows,
                                own->out.data + at, keep ? own->chosen_y.data + at : NULL,
                                keep ? own->chosen + at : NULL);
        }
    }
}

static void average(const psi_work *work, const nn_layer *layer, const nn_layer_work *own,
                    size_t rows)
{
    const size_t pixels = nn_out_pixels(&layer->conv);
    for (size_t block = 0; block < layer->conv.out_blocks; block++) {
        work->kernels->average(nn_at(own->a, pixels, block, 0), own->a.plane, pixels, rows,
                               nn_at(own->out, 1, block, 0));
    }
}

// What is added before ReLU, with its own scale.
typedef struct skip_maps {
    nn_maps maps;
    const real *scale;
} skip_maps;

// a = relu(y · scale + bias + skip)
static void activate(const psi_work *work, const nn_layer *layer, const nn_layer_work *own,
                     const real *bias, const skip_maps *skip, size_t rows)
{
    const size_t pixels = nn_out_pixels(&layer->conv);
    for (size_t block = 0; block < layer->conv.out_blocks; block++) {
        const size_t at = block * pixels * own->y.plane, c = block * NN_BLOCK;
        work->kernels->activate(own->y.data + at, own->scale + c, bias + c,
                                skip->maps.data ? skip->maps.data + at : NULL,
                                skip->maps.data ? skip->scale + c : NULL, own->y.plane, pixels,
                                rows, layer->relu, own->a.data + at);
    }
}

static void apply_norm(const nn_pass *pass, size_t l, int thread, size_t rows)
{
    const psi_work *work = pass->work;
    const nn_layer *layer = &work->arch.layer[l];
    const nn_thread_work *mine = &work->thread[thread];
    const nn_layer_work *own = &mine->layer[l];
    skip_maps skip = {{NULL, 0}, NULL};
    const real *bias = own->bias;
    if (layer->skip >= 0) skip = (skip_maps){mine->layer[layer->skip].out, work->ones};
    if (layer->shortcut >= 0) {
        const nn_layer_work *other = &mine->layer[layer->shortcut];
        for (size_t c = 0; c < layer->conv.out_blocks * NN_BLOCK; c++) {
            mine->channels[c] = own->bias[c] + other->bias[c];
        }
        bias = mine->channels;
        skip = (skip_maps){other->y, other->scale};
    }
    if (layer->after == NN_MAX_POOL)
        max_pool(work, layer, own, own->scale, own->bias, rows, true);
    else
        activate(work, layer, own, bias, &skip, rows);
}

static void forward_layer(const nn_pass *pass, size_t l, int thread)
{
    const psi_work *work = pass->work;
    const nn_layer *layer = &work->arch.layer[l];
    const nn_plan *plan = &work->plan[l];
    const nn_thread_work *mine = &work->thread[thread];
    const nn_layer_work *own = &mine->layer[l];
    const nn_share share = nn_share_of(pass, thread);
    const size_t blocks = layer->conv.out_blocks;
    const bool sums = layer->norm && pass->mode == PSI_NORM_BATCH;
    nn_after_conv after = {.relu = layer->relu};
    if (sums) after.shift = own->shift;
    if (!layer->norm) after.bias = pass->parameters + layer->bias;
    if (layer->norm) {
        // any number near the mean will do for the shift; it keeps the sums of squares small
        memcpy(own->shift, pass->net->running + layer->running, blocks * NN_BLOCK * sizeof(real));
    }
    for (int slice = share.begin; slice < share.end; slice++) {
        const nn_rows rows = nn_slice_rows(pass, &share, slice);
        if (sums) {
            after.sums = work->forward_sums[l] + (size_t)slice * blocks;
            memset(after.sums, 0, blocks * sizeof *after.sums);
        }
        for (size_t done = 0; done < rows.n; done += plan->sub_batch) {
            nn_conv_forward(plan, &mine->scratch, pass->parameters + layer->weights,
                            nn_input_rows(mine, layer, rows.first + done),
                            nn_rows_from(own->y, rows.first + done), &after,
                            base_min(plan->sub_batch, rows.n - done));
        }
    }
    if (sums) nn_meet_slices(pass, thread, work->forward_sums[l], blocks * sizeof(nn_sums));
    if (nn_idle(&share) && thread > 0) return; // the first keeps running statistics
    if (layer->norm) {
        finish_statistics(pass, l, thread);
        if (!layer->is_shortcut) apply_norm(pass, l, thread, share.rows.n);
    }
    if (layer->after == NN_AVERAGE) average(work, layer, own, share.rows.n);
}

// Reads the thread's inputs.
static void begin(const nn_pass *pass, int thread)
{
    const nn_rows rows = nn_share_of(pass, thread).rows;
    nn_read_inputs(pass->net, &pass->work->thread[thread], pass->inputs, rows.first, pass->order,
                   rows.n);
}

// Hands out the thread's features and outputs as rows.
static void end(const nn_pass *pass, int thread)
{
    const psi_work *work = pass->work;
    const nn_architecture *arch = &work->arch;
    const nn_thread_work *mine = &work->thread[thread];
    const nn_rows rows = nn_share_of(pass, thread).rows;
    const size_t n_outputs = arch->n_actions * arch->n_classes;
    if (pass->keep_outputs) {
        nn_maps_to_rows(mine->layer[arch->head].out, n_outputs, rows.n,
                        work->outputs + rows.first * n_outputs);
    }
    if (pass->keep_features) {
        nn_maps_to_rows(nn_input_maps(mine, &arch->layer[arch->head]), arch->n_features, rows.n,
                        work->features + rows.first * arch->n_features);
    }
}

void nn_forward_trunk(const nn_pass *pass, int thread)
{
    begin(pass, thread);
    for (size_t i = 0; i + 1 < pass->work->arch.n_layers; i++) {
        forward_layer(pass, pass->work->arch.order[i], thread);
    }
}

void nn_forward(const nn_pass *pass, int thread)
{
    nn_forward_trunk(pass, thread);
    forward_layer(pass, pass->work->arch.head, thread);
    end(pass, thread);
}

static void forward_layer_folded(const nn_pass *pass, size_t l, int thread)
{
    const psi_work *work = pass->work;
    const nn_layer *layer = &work->arch.layer[l];
    const nn_plan *plan = &work->plan[l];
    const nn_thread_work *mine = &work->thread[thread];
    const nn_layer_work *own = &mine->layer[l];
    const real *bias = pass->parameters + layer->bias;
    const size_t rows = nn_share_of(pass, thread).rows.n;
    const bool pooled = layer->after == NN_MAX_POOL;
    const nn_maps y = pooled ? own->y : own->a;
    nn_maps skip = {NULL, 0};
    if (layer->skip >= 0) skip = mine->layer[layer->skip].out;
    if (layer->shortcut >= 0) skip = mine->layer[layer->shortcut].a;
    nn_after_conv after = {.bias = pooled ? NULL : bias, .relu = layer->relu};
    for (size_t first = 0; first < rows; first += plan->sub_batch) {
        if (skip.data) after.skip = nn_rows_from(skip, first);
        nn_conv_forward(plan, &mine->scratch, pass->parameters + layer->weights,
                        nn_input_rows(mine, layer, first), nn_rows_from(y, first), &after,
                        base_min(plan->sub_batch, rows - first));
    }
    if (pooled) max_pool(work, layer, own, work->ones, bias, rows, false);
    if (layer->after == NN_AVERAGE) average(work, layer, own, rows);
}

void nn_forward_folded(const nn_pass *pass, int thread)
{
    begin(pass, thread);
    for (size_t i = 0; i < pass->work->arch.n_layers; i++) {
        const size_t l = pass->work->arch.order[i];
        if (l == pass->work->arch.head && !pass->keep_outputs) continue;
        forward_layer_folded(pass, l, thread);
    }
    end(pass, thread);
}

void nn_fold(const psi_net *net, real *folded)
{
    memcpy(folded, net->parameters, net->arch.n_parameters * sizeof(real));
    for (size_t l = 0; l < net->arch.n_layers; l++) {
        const nn_layer *layer = &net->arch.layer[l];
        if (!layer->norm) continue;
        const size_t padded = layer->conv.out_blocks * NN_BLOCK;
        const real *mean = net->running + layer->running, *variance = mean + padded;
        real *scale = folded + layer->scale, *bias = folded + layer->bias;
        for (size_t c = 0; c < padded; c++) {
            scale[c] = (real)((double)scale[c] / sqrt((double)variance[c] + NN_EPSILON));
            bias[c] -= mean[c] * scale[c];
        }
        // weights come in rows of sixteen outputs, the block of outputs outermost but for the taps
        const nn_conv *conv = &layer->conv;
        const size_t sets = conv->stem ? 1 : conv->n_taps;
        const size_t depth = conv->n_weights / sets / conv->out_blocks / NN_BLOCK;
        real *w = folded + layer->weights;
        for (size_t row = 0; row < sets * conv->out_blocks * depth; row++, w += NN_BLOCK) {
            const real *factor = scale + row / depth % conv->out_blocks * NN_BLOCK;
            for (size_t j = 0; j < NN_BLOCK; j++) w[j] *= factor[j];
        }
    }
}
