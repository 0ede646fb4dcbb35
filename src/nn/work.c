// Taking the memory of a workspace. A thread's share is laid out twice by the same code: first
// counting, then for real.
#include "nn/work.h"

#include "nn/memory.h"

#include "base/checked.h"
#include "base/comm.h"
#include "base/context.h"
#include "base/options.h"
#include "base/threads.h"

#include <string.h>

typedef struct layout {
    char *base; // NULL while counting
    size_t used;
} layout;

static void *place(layout *memory, size_t count, size_t size)
{
    void *at = memory->base ? memory->base + memory->used : NULL;
    memory->used += base_round_up(count * size, 64);
    return at;
}

static nn_maps place_maps(layout *memory, size_t blocks, size_t pixels, size_t rows)
{
    nn_maps maps = {NULL, nn_plane(rows)};
    maps.data = place(memory, blocks * pixels * maps.plane, sizeof(real));
    return maps;
}

static void lay_out_layer(const psi_work *work, layout *memory, const nn_layer *layer, size_t rows,
                          nn_layer_work *own)
{
    const nn_conv *conv = &layer->conv;
    const size_t blocks = conv->out_blocks, pixels = nn_out_pixels(conv);
    const size_t channels = blocks * NN_BLOCK;
    const bool pooled = layer->after == NN_MAX_POOL;
    *own = (nn_layer_work){0};
    if (layer->norm && (work->training || pooled))
        own->y = place_maps(memory, blocks, pixels, rows);
    if (!pooled) own->a = place_maps(memory, blocks, pixels, rows);
    if (!layer->norm) own->y = own->a;
    own->out = own->a;
    if (layer->after != NN_NOTHING) {
        own->out = place_maps(memory, blocks, layer->out_h * layer->out_w, rows);
    }
    if (pooled && work->training) {
        own->chosen = place(memory, blocks * layer->out_h * layer->out_w * nn_plane(rows), 1);
        own->chosen_y = place_maps(memory, blocks, layer->out_h * layer->out_w, rows);
    }
    real **numbers[] = {&own->shift, &own->mean, &own->inverse_std, &own->scale, &own->bias};
    for (size_t i = 0; i < 5; i++) *numbers[i] = place(memory, channels, sizeof(real));
}

// Gradients live shortly: from the first reader that writes one to the layer that consumes it.
// Those that are never needed at once share memory, which then stays in cache.
typedef struct gradient_pool {
    size_t n;
    struct {
        size_t numbers;
        size_t free_below; // in use until the backward pass has reached this place in the order
    } buffer[NN_MAX_LAYERS * 2];
    size_t of_out[NN_MAX_LAYERS], of_z[NN_MAX_LAYERS]; // buffers of d_out and d_z
} gradient_pool;

// A buffer for a gradient that is written from place `from` on and read at place `to`; the backward
// pass goes from high places to low ones.
static size_t pool_take(gradient_pool *pool, size_t numbers, size_t from, size_t to)
{
    size_t i = 0;
    while (i < pool->n && pool->buffer[i].free_below <= from) i++;
    if (i == pool->n) pool->buffer[pool->n++].numbers = 0;
    pool->buffer[i].numbers = base_max(pool->buffer[i].numbers, numbers);
    pool->buffer[i].free_below = to;
    return i;
}

static void plan_gradients(const nn_architecture *arch, size_t rows, gradient_pool *pool)
{
    size_t place[NN_MAX_LAYERS];
    *pool = (gradient_pool){0};
    for (size_t i = 0; i < arch->n_layers; i++) place[arch->order[i]] = i;
    for (size_t i = arch->n_layers; i-- > 0;) {
        const size_t l = arch->order[i];
        const nn_layer *layer = &arch->layer[l];
        const size_t blocks = layer->conv.out_blocks;
        size_t written = i, user = SIZE_MAX;
        for (size_t j = 0; j < arch->n_layers; j++) {
            const nn_layer *other = &arch->layer[j];
            if (other->skip == (int)l || other->shortcut == (int)l) user = j;
            if (other->input == (int)l) written = base_max(written, place[j]);
        }
        if (user != SIZE_MAX) { // shares with the layer it is added to
            pool->of_out[l] = pool->of_z[user];
            pool->buffer[pool->of_out[l]].free_below = i;
        } else {
            const size_t pixels = layer->out_h * layer->out_w;
            pool->of_out[l] = pool_take(pool, blocks * pixels * nn_plane(rows), written, i);
        }
        pool->of_z[l] = pool->of_out[l];
        if (layer->after == NN_AVERAGE) {
            const size_t pixels = nn_out_pixels(&layer->conv);
            pool->of_z[l] = pool_take(pool, blocks * pixels * nn_plane(rows), written, i);
        }
    }
}

static void lay_out_gradients(const psi_work *work, layout *memory, size_t rows,
                              nn_thread_work *thread)
{
    const nn_architecture *arch = &work->arch;
    gradient_pool pool;
    real *buffer[NN_MAX_LAYERS * 2];
    plan_gradients(arch, rows, &pool);
    for (size_t i = 0; i < pool.n; i++) {
        buffer[i] = place(memory, pool.buffer[i].numbers, sizeof(real));
    }
    for (size_t l = 0; l < arch->n_layers; l++) {
        thread->layer[l].d_out = (nn_maps){buffer[pool.of_out[l]], nn_plane(rows)};
        thread->layer[l].d_z = (nn_maps){buffer[pool.of_z[l]], nn_plane(rows)};
    }
}

static size_t share_of(size_t n, int parts)
{
    return (n + (size_t)parts - 1) / (size_t)parts;
}

// The largest batches of one slice, two and four; the next is no larger where there are none such.
static void largest_batches(size_t max_batch, size_t rows[3])
{
    rows[0] = base_min(max_batch, NN_TWO_SLICES_FROM - 1);
    rows[1] = base_min(max_batch, NN_FOUR_SLICES_FROM - 1);
    rows[2] = max_batch;
}

// Rows that a slice has at most.
static size_t most_of_slice(const nn_architecture *arch, size_t max_batch)
{
    size_t most = 0, batch[3];
    largest_batches(max_batch, batch);
    for (int i = 0; i < 3; i++)
        most = base_max(most, share_of(batch[i], nn_slices(arch, batch[i])));
    return most;
}

// How many processes have slices of a batch.
static int learners(const psi_work *work, int slices)
{
    return work->together ? nn_workers(work->together->ranks, slices) : 1;
}

static bool has_slices(const psi_work *work, int t)
{
    const int slices = nn_slices(&work->arch, work->max_batch);
    return work->training && t < nn_workers(work->threads, slices / learners(work, slices));
}

// Rows that a thread has at most: of a batch to predict, which all threads share evenly, or of the
// slices of a training.
static size_t most_of_thread(const psi_work *work, int t)
{
    size_t most = share_of(work->max_batch, work->threads), batch[3];
    if (!work->training) return most;
    largest_batches(work->max_batch, batch);
    for (int i = 0; i < 3; i++) {
        const int slices = nn_slices(&work->arch, batch[i]), own = slices / learners(work, slices);
        const int workers = nn_workers(work->threads, own);
        const size_t each = (size_t)(own / workers) * share_of(batch[i], slices);
        if (t < workers) most = base_max(most, each);
    }
    return most;
}

static void lay_out_thread(const psi_work *work, layout *memory, int t)
{
    const nn_architecture *arch = &work->arch;
    nn_thread_work *thread = &work->thread[t];
    const size_t rows = most_of_thread(work, t);
    size_t scratch = 0, points = 0, d_output = 0, channels = 0, sub_batch = 1, weights = 0;
    for (size_t l = 0; l < arch->n_layers; l++) {
        const nn_conv *conv = &arch->layer[l].conv;
        const nn_plan *plan = &work->plan[l];
        scratch = base_max(scratch, nn_plan_scratch(plan));
        points = base_max(points, plan->n_prepared);
        sub_batch = base_max(sub_batch, plan->sub_batch);
        channels = base_max(channels, conv->out_blocks * NN_BLOCK);
        weights = base_max(weights, nn_layer_gradients(&arch->layer[l]));
        d_output =
            base_max(d_output, conv->out_blocks * nn_out_pixels(conv) * nn_plane(plan->sub_batch));
    }
    thread->scratch.v = place(memory, scratch, sizeof(real));
    thread->scratch.m = place(memory, scratch, sizeof(real));
    thread->scratch.zero = place(memory, nn_plane(sub_batch), sizeof(real));
    thread->scratch.outside = place(memory, nn_plane(sub_batch), sizeof(real));
    thread->channels = place(memory, 3 * channels, sizeof(real));
    if (arch->image) {
        const nn_conv *stem = &arch->layer[arch->order[0]].conv;
        thread->input.plane = (rows + 1) * nn_stem_row(stem);
        thread->input.data =
            place(memory, stem->in_h * thread->input.plane + NN_BLOCK, sizeof(real));
    } else {
        thread->input = place_maps(memory, nn_blocks(arch->in_channels), 1, rows);
    }
    for (size_t l = 0; l < arch->n_layers; l++) {
        lay_out_layer(work, memory, &arch->layer[l], rows, &thread->layer[l]);
    }
    if (!has_slices(work, t)) return;
    thread->scratch.points = place(memory, points, sizeof(real));
    thread->scratch.d_output.data = place(memory, d_output, sizeof(real));
    thread->gradients = place(memory, arch->n_parameters, sizeof(real));
    const int slices = nn_slices(&work->arch, work->max_batch),
              own = slices / learners(work, slices);
    for (int i = 0; nn_workers(work->threads, own) << i < own; i++) {
        thread->partial[i] = place(memory, weights, sizeof(real));
    }
    if (!arch->image) {
        thread->d_input = place_maps(memory, nn_blocks(arch->in_channels), 1, rows);
    }
    lay_out_gradients(work, memory, rows, thread);
}

// Rows of features and outputs are the most that is gathered at a time, or the sums of a layer.
static psi_status make_together(psi_ctx *ctx, psi_work *work)
{
    const nn_architecture *arch = &work->arch;
    nn_together *together;
    psi_status status = PSI_OK;
    TRY(base_alloc_zero(ctx, 1, sizeof *together, &work->together));
    together = work->together;
    together->rank = base_rank(ctx);
    together->ranks = base_ranks(ctx);
    const size_t row = base_max(arch->n_features, arch->n_actions * arch->n_classes);
    together->room = work->max_batch * row * sizeof(real);
    for (size_t l = 0; l < arch->n_layers; l++) {
        const size_t sums = NN_SLICES * arch->layer[l].conv.out_blocks;
        together->room = base_max(together->room, sums * sizeof(nn_sums));
    }
    TRY(base_alloc(ctx, (size_t)together->ranks, sizeof *together->bytes, &together->bytes));
    TRY(base_alloc(ctx, together->room, 1, &together->own));
    // pieces are even but for a block
    TRY(nn_alloc_large(ctx, arch->n_parameters + (size_t)NN_SLICES * NN_BLOCK, sizeof(real),
                       &together->gradients));
    TRY(base_alloc(ctx, arch->n_running, sizeof(real), &together->running));
    work->bytes += together->room + (arch->n_parameters + arch->n_running) * sizeof(real);
done:
    return status;
}

static void free_together(psi_ctx *ctx, nn_together *together)
{
    if (!together) return;
    base_free(ctx, together->bytes);
    base_free(ctx, together->own);
    base_free(ctx, together->gradients);
    base_free(ctx, together->running);
    base_free(ctx, together);
}

static psi_status make_threads(psi_ctx *ctx, psi_work *work)
{
    psi_status status = PSI_OK;
    TRY(base_alloc_zero(ctx, (size_t)work->threads, sizeof *work->thread, &work->thread));
    for (int t = 0; t < work->threads; t++) {
        nn_thread_work *thread = &work->thread[t];
        layout count = {0};
        lay_out_thread(work, &count, t);
        TRY(nn_alloc_large(ctx, count.used, 1, &thread->memory));
        layout placed = {.base = thread->memory};
        lay_out_thread(work, &placed, t);
        work->bytes += count.used;
    }
done:
    return status;
}

static psi_status make_sums(psi_ctx *ctx, psi_work *work)
{
    const size_t slices = (size_t)nn_slices(&work->arch, work->max_batch);
    size_t n = 0;
    psi_status status = PSI_OK;
    if (!work->training) return PSI_OK;
    for (size_t l = 0; l < work->arch.n_layers; l++) n += work->arch.layer[l].conv.out_blocks;
    TRY(base_alloc(ctx, 2 * n * slices, sizeof *work->sums, &work->sums));
    nn_sums *at = work->sums;
    for (size_t l = 0; l < work->arch.n_layers; l++) {
        const size_t blocks = work->arch.layer[l].conv.out_blocks * slices;
        work->forward_sums[l] = at;
        work->backward_sums[l] = at + blocks;
        at += 2 * blocks;
    }
done:
    return status;
}

psi_status psi_work_new(psi_ctx *ctx, const psi_net *net, const psi_work_options *options,
                        psi_work **out)
{
    *out = NULL;
    if (FREED(ctx, net)) return PSI_EUSAGE;
    if (!base_options_fit(ctx, options, sizeof *options, "{.size = sizeof(psi_work_options)}"))
        return PSI_EUSAGE;
    psi_work *work = NULL;
    psi_status status = PSI_OK;
    const nn_architecture *arch = &net->arch;
    if (options->max_batch < 1 || options->max_batch > (size_t)1 << 24) {
        return FAIL(ctx, PSI_EUSAGE, "a batch of %zu is not possible", options->max_batch);
    }
    TRY(base_alloc_zero(ctx, 1, sizeof *work, &work));
    TRY(nn_kernels_choose(ctx, options->kernels, &work->kernels));
    work->arch = *arch;
    work->threads = psi_threads(ctx);
    work->max_batch = options->max_batch;
    work->training = !options->predict_only;
    const size_t rows = work->training ? most_of_slice(&work->arch, work->max_batch)
                                       : share_of(work->max_batch, work->threads);
    work->exact = options->exact_conv;
    work->shared = options->shared && work->training && base_ranks(ctx) > 1;
    // a dense network's step is too short to be worth the talking: its weights are used once
    if (work->shared && arch->image) TRY(make_together(ctx, work));
    size_t widest = base_max(arch->n_features, arch->in_channels);
    for (size_t l = 0; l < arch->n_layers; l++) {
        const nn_conv *conv = &work->arch.layer[l].conv;
        TRY(nn_plan_init(ctx, conv, work->kernels, rows, work->exact, work->training,
                         &work->plan[l]));
        widest = base_max(widest, conv->out_blocks * NN_BLOCK);
        work->bytes += (work->plan[l].n_prepared * 2 + conv->n_weights) * sizeof(real);
    }
    TRY(make_threads(ctx, work));
    TRY(make_sums(ctx, work));
    const size_t n_outputs = psi_net_n_outputs(net);
    TRY(base_alloc_zero(ctx, work->max_batch * arch->n_features, sizeof(real), &work->features));
    TRY(base_alloc_zero(ctx, work->max_batch * n_outputs, sizeof(real), &work->outputs));
    if (work->training) {
        TRY(base_alloc(ctx, work->max_batch, sizeof *work->order, &work->order));
        TRY(base_alloc(ctx, arch->n_actions + 1, sizeof *work->action_start, &work->action_start));
    }
    TRY(base_alloc_zero(ctx, widest, sizeof(real), &work->zeros));
    TRY(base_alloc(ctx, widest, sizeof(real), &work->ones));
    for (size_t c = 0; c < widest; c++) work->ones[c] = 1;
    TRY(nn_alloc_large(ctx, arch->n_parameters, sizeof(real), &work->folded));
    work->bytes +=
        (arch->n_parameters + work->max_batch * (arch->n_features + n_outputs)) * sizeof(real);
    *out = work;
    work = NULL;
done:
    psi_work_free(ctx, work);
    return status;
}

void psi_work_free(psi_ctx *ctx, psi_work *work)
{
    if (!work || FREED(ctx, work)) return;
    for (size_t l = 0; l < work->arch.n_layers; l++) nn_plan_free(ctx, &work->plan[l]);
    for (int t = 0; work->thread && t < work->threads; t++) base_free(ctx, work->thread[t].memory);
    base_free(ctx, work->thread);
    base_free(ctx, work->sums);
    free_together(ctx, work->together);
    base_free(ctx, work->features);
    base_free(ctx, work->outputs);
    base_free(ctx, work->order);
    base_free(ctx, work->action_start);
    base_free(ctx, work->zeros);
    base_free(ctx, work->ones);
    base_free(ctx, work->folded);
    base_retire(ctx, work);
}

const char *psi_work_kernels(const psi_work *work)
{
    if (FREED(NULL, work)) return NULL;
    return work->kernels->name;
}
size_t psi_work_bytes(const psi_work *work)
{
    if (FREED(NULL, work)) return 0;
    return work->bytes;
}
const psi_real *psi_work_features(const psi_work *work)
{
    if (FREED(NULL, work)) return NULL;
    return work->features;
}
const psi_real *psi_work_outputs(const psi_work *work)
{
    if (FREED(NULL, work)) return NULL;
    return work->outputs;
}

psi_status nn_work_check(psi_ctx *ctx, const psi_work *work, const psi_net *net)
{
    if (!nn_architecture_same(&work->arch, &net->arch)) {
        return FAIL(ctx, PSI_ESHAPE, "the workspace was made for another architecture");
    }
    if (work->threads != psi_threads(ctx)) {
        return FAIL(ctx, PSI_EUSAGE, "the workspace was made for %d threads, the context has %d",
                    work->threads, psi_threads(ctx));
    }
    return PSI_OK;
}

void nn_rows_to_maps(const real *rows, size_t width, size_t n, nn_maps maps)
{
    for (size_t block = 0; block * NN_BLOCK < width; block++) {
        const size_t lanes = base_min(NN_BLOCK, width - block * NN_BLOCK);
        real *to = maps.data + block * maps.plane;
        for (size_t i = 0; i < n; i++) {
            const real *from = rows + i * width + block * NN_BLOCK;
            for (size_t j = 0; j < lanes; j++) to[i * NN_BLOCK + j] = from[j];
            for (size_t j = lanes; j < NN_BLOCK; j++)
                to[i * NN_BLOCK + j] = 0; // the memory is shared
        }
    }
}

void nn_maps_to_rows(nn_maps maps, size_t width, size_t n, real *rows)
{
    for (size_t block = 0; block * NN_BLOCK < width; block++) {
        const size_t lanes = base_min(NN_BLOCK, width - block * NN_BLOCK);
        const real *from = maps.data + block * maps.plane;
        for (size_t i = 0; i < n; i++) {
            real *to = rows + i * width + block * NN_BLOCK;
            for (size_t j = 0; j < lanes; j++) to[j] = from[i * NN_BLOCK + j];
        }
    }
}

// One channel of one image: count numbers, every step-th place of to.
static void normalise(const void *from, psi_dtype dtype, size_t count, real mean, real scale,
                      real *to, size_t step)
{
    if (dtype == PSI_UINT8) {
        const uint8_t *x = from;
        for (size_t i = 0; i < count; i++) to[i * step] = ((real)x[i] - mean) * scale;
    } else if (dtype == PSI_FLOAT32) {
        const float *x = from;
        for (size_t i = 0; i < count; i++) to[i * step] = ((real)x[i] - mean) * scale;
    } else {
        const double *x = from;
        for (size_t i = 0; i < count; i++) to[i * step] = ((real)x[i] - mean) * scale;
    }
}

// One vector into row `row` of maps. A whole block is a loop of known length.
#define READ_VECTOR(type)                                                                          \
    for (size_t block = 0, c = 0; c < width; block++, c += NN_BLOCK) {                             \
        const type *x = (const type *)inputs + sample * width + c;                                 \
        real *to = maps.data + block * maps.plane + row * NN_BLOCK;                                \
        if (width - c >= NN_BLOCK) {                                                               \
            for (size_t j = 0; j < NN_BLOCK; j++)                                                  \
                to[j] = ((real)x[j] - (real)mean[c + j]) * (real)scale[c + j];                     \
        } else {                                                                                   \
            for (size_t j = 0; j < width - c; j++)                                                 \
                to[j] = ((real)x[j] - (real)mean[c + j]) * (real)scale[c + j];                     \
        }                                                                                          \
    }

static void read_vector(const psi_net *net, nn_maps maps, size_t row, const void *inputs,
                        size_t sample)
{
    const size_t width = net->arch.in_channels;
    const float *mean = net->spec.mean, *scale = net->spec.scale;
    switch (net->arch.input_dtype) {
    case PSI_UINT8: READ_VECTOR(uint8_t); break;
    case PSI_FLOAT32: READ_VECTOR(float); break;
    default: READ_VECTOR(double); break;
    }
}

void nn_read_inputs(const psi_net *net, nn_thread_work *thread, const void *inputs, size_t first,
                    const uint32_t *order, size_t n)
{
    const nn_architecture *arch = &net->arch;
    const psi_dtype dtype = arch->input_dtype;
    const size_t size = psi_dtype_size(dtype), channels = arch->in_channels;
    const float *mean = net->spec.mean, *scale = net->spec.scale;
    if (!arch->image) {
        for (size_t i = 0; i < n; i++) {
            read_vector(net, thread->input, i, inputs, order ? order[first + i] : first + i);
        }
        return;
    }
    const nn_conv *stem = &arch->layer[arch->order[0]].conv;
    const size_t row = nn_stem_row(stem), width = stem->in_w;
    for (size_t i = 0; i < n; i++) {
        const size_t sample = order ? order[first + i] : first + i;
        const char *from = (const char *)inputs + sample * channels * stem->in_h * width * size;
        for (size_t c = 0; c < channels; c++) {
            for (size_t y = 0; y < stem->in_h; y++, from += width * size) {
                real *to = thread->input.data + y * thread->input.plane + i * row +
                           stem->pad * channels + c;
                normalise(from, dtype, width, (real)mean[c], (real)scale[c], to, channels);
            }
        }
    }
}
