#include "run/known.h"

#include "base/checked.h"
#include "base/comm.h"
#include "base/context.h"
#include "base/file.h"
#include "base/vector.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BATCH = 256 };
enum { LOOKED_AT = 4096 }; // observations whose features are measured: a second or two

// A feature that hardly varies is measured in this share of what features usually vary by: one that
// was always 0 and is not any more tells most, and must not tell everything.
static const double LEAST_SCALE = 0.1;

void run_known_free(psi_ctx *ctx, run_known *seen)
{
    if (!seen) return;
    problem_distinct_free(ctx, &seen->observations);
    base_free(ctx, seen->labels);
    base_free(ctx, seen->confidence);
    base_free(ctx, seen->centre);
    base_free(ctx, seen->scale);
    base_free(ctx, seen);
}

// ---- distinct observations ----------------------------------------------------------------------

// How often an observation had which label. Where an episode ends is no matter of looks: an
// observation that an episode has gone on from counts there only.
typedef struct tally {
    uint32_t number;
    int32_t label;
    bool terminal;
    float confidence;
    size_t times; // that often
} tally;

static int by_observation(const void *a, const void *b)
{
    const tally *x = a, *y = b;
    if (x->number != y->number) return x->number < y->number ? -1 : 1;
    if (x->terminal != y->terminal) return x->terminal ? 1 : -1;
    if (x->label != y->label) return x->label < y->label ? -1 : 1;
    return (x->confidence > y->confidence) - (x->confidence < y->confidence);
}

// The commonest label among n rows of one observation, those where episodes end last. Confidences
// are multiples of 2^−25 where they matter, from ½ on, so that their sums are exact.
static void choose_label(const tally *rows, size_t n, int32_t *label, float *confidence)
{
    size_t best = 0, judged = 0, kinds = 0;
    for (; kinds < n && rows[kinds].terminal == rows[0].terminal; kinds++) {
        judged += rows[kinds].times;
    }
    *label = -1;
    *confidence = 0.0f;
    for (size_t begin = 0, end; begin < kinds; begin = end) {
        double sum = 0.0;
        size_t times = 0;
        for (end = begin; end < kinds && rows[end].label == rows[begin].label; end++) {
            sum += (double)rows[end].times * (double)rows[end].confidence;
            times += rows[end].times;
        }
        if (rows[begin].label < 0 || times <= best) continue;
        best = times;
        *label = rows[begin].label;
        *confidence = (float)(sum / (double)judged);
    }
}

// Equal rows become one, and those of all processes are put together, in order.
static psi_status count_rows(psi_ctx *ctx, tally **rows, size_t *n)
{
    psi_status status = PSI_OK;
    tally *own = *rows;
    size_t kinds = 0, bytes;
    qsort(own, *n, sizeof *own, by_observation);
    for (size_t i = 0; i < *n; i++) {
        if (kinds > 0 && by_observation(&own[kinds - 1], &own[i]) == 0) {
            own[kinds - 1].times += own[i].times;
        } else {
            own[kinds++] = own[i];
        }
    }
    *n = kinds;
    if (base_ranks(ctx) == 1) return PSI_OK;
    *rows = NULL;
    TRY(base_gather_parts(ctx, own, kinds * sizeof *own, rows, &bytes));
    *n = bytes / sizeof **rows;
    qsort(*rows, *n, sizeof **rows, by_observation);
done:
    base_free(ctx, own);
    return status;
}

static psi_status find_distinct(psi_ctx *ctx, const psi_trajectories *data, const psi_run *found,
                                run_known *out)
{
    psi_status status = PSI_OK;
    size_t n = data->n_observations, most = n;
    tally *rows = NULL;
    uint32_t *numbers = NULL;
    out->dtype = psi_observations_dtype(data->observations);
    out->shape = *psi_observations_shape(data->observations);
    TRY(base_sum_sizes(ctx, &most, 1));
    TRY(base_alloc(ctx, n, sizeof *rows, &rows));
    TRY(base_alloc(ctx, n, sizeof *numbers, &numbers));
    TRY(problem_distinct_new(ctx, psi_observations_row_bytes(data->observations),
                             &out->observations));
    TRY(problem_distinct_observations(ctx, &out->observations, data->observations, NULL, n, most,
                                      numbers));
    for (size_t i = 0; i < n; i++) {
        rows[i] = (tally){.number = numbers[i],
                          .label = found->labels[i],
                          .terminal = found->has_terminal && found->labels[i] == 0,
                          .confidence = found->confidence ? found->confidence[i] : 1.0f,
                          .times = 1};
    }
    TRY(count_rows(ctx, &rows, &n));
    TRY(base_alloc(ctx, out->observations.n, sizeof *out->labels, &out->labels));
    TRY(base_alloc(ctx, out->observations.n, sizeof *out->confidence, &out->confidence));
    for (size_t begin = 0, end; begin < n; begin = end) {
        const uint32_t number = rows[begin].number;
        for (end = begin; end < n && rows[end].number == number; end++) {
        }
        choose_label(rows + begin, end - begin, &out->labels[number], &out->confidence[number]);
    }
done:
    base_free(ctx, numbers);
    base_free(ctx, rows);
    return status;
}

// ---- features -----------------------------------------------------------------------------------

float run_known_distance(const run_known *seen, int32_t label, const float *features)
{
    const float *centre = seen->centre + (size_t)label * seen->width;
    double sum = 0.0;
    if (isnan(centre[0])) return 0.0f;
    for (size_t d = 0; d < seen->width; d++) {
        const double z = ((double)features[d] - (double)centre[d]) * (double)seen->scale[d];
        sum += z * z;
    }
    return (float)sqrt(sum / (double)seen->width);
}

// Where the features of each latent state are, and how they scatter around there.
static psi_status measure(psi_ctx *ctx, run_known *seen, size_t n_latent, size_t n,
                          const int32_t *labels, const float *features)
{
    psi_status status = PSI_OK;
    const size_t width = seen->width;
    double *count = NULL, *sum = NULL, *square = NULL, usual = 0.0;
    TRY(base_alloc_zero(ctx, n_latent, sizeof *count, &count));
    TRY(base_alloc_zero(ctx, n_latent, width * sizeof *sum, &sum));
    TRY(base_alloc_zero(ctx, width, sizeof *square, &square));
    for (size_t i = 0; i < n; i++) {
        count[labels[i]]++;
        double *of = sum + (size_t)labels[i] * width;
        for (size_t d = 0; d < width; d++) of[d] += (double)features[i * width + d];
    }
    for (size_t k = 0; k < n_latent; k++) {
        for (size_t d = 0; d < width; d++) {
            seen->centre[k * width + d] =
                count[k] > 0.0 ? (float)(sum[k * width + d] / count[k]) : NAN;
        }
    }
    for (size_t i = 0; i < n; i++) {
        const float *centre = seen->centre + (size_t)labels[i] * width;
        for (size_t d = 0; d < width; d++) {
            const double x = (double)features[i * width + d] - (double)centre[d];
            square[d] += x * x / (double)n;
            usual += x * x / (double)(n * width);
        }
    }
    for (size_t d = 0; d < width; d++) {
        const double deviation = fmax(sqrt(square[d]), LEAST_SCALE * sqrt(usual));
        seen->scale[d] = deviation > 0.0 ? (float)(1.0 / deviation) : 0.0f;
    }
    for (size_t i = 0; i < n; i++) {
        // seen from a centre that was found without it
        const double of = count[labels[i]], apart = of > 1.0 ? of / (of - 1.0) : 1.0;
        const float distance = run_known_distance(seen, labels[i], features + i * width);
        seen->reach = fmaxf(seen->reach, (float)apart * distance);
    }
done:
    base_free(ctx, square);
    base_free(ctx, sum);
    base_free(ctx, count);
    return status;
}

// Rows of every latent state, as many of each as there is time for, evenly from all of its own; n
// of them are this process's.
static psi_status choose_rows(psi_ctx *ctx, size_t n_rows, const psi_run *found, uint64_t *rows,
                              size_t *n)
{
    psi_status status = PSI_OK;
    const size_t each = base_max(LOOKED_AT / base_max(found->n_latent, 1), 1);
    size_t *total = NULL, *passed = NULL, all = 0;
    TRY(base_alloc_zero(ctx, found->n_latent, sizeof *total, &total));
    TRY(base_alloc_zero(ctx, found->n_latent, sizeof *passed, &passed));
    for (size_t i = 0; i < n_rows; i++) {
        if (found->labels[i] >= 0) total[found->labels[i]]++;
    }
    TRY(base_sum_sizes(ctx, total, found->n_latent));
    *n = 0;
    const base_block turn[] = {{passed, found->n_latent * sizeof *passed}, {&all, sizeof all}};
    TRY(base_take_turn_with(ctx, turn, 2));
    for (size_t i = 0; i < n_rows && all < LOOKED_AT; i++) {
        const int32_t k = found->labels[i];
        if (k < 0) continue;
        const size_t stride = (total[k] + each - 1) / each;
        if (passed[k]++ % stride != 0) continue;
        rows[(*n)++] = i;
        all++;
    }
    TRY(base_end_turn_with(ctx, turn, 2));
done:
    base_free(ctx, passed);
    base_free(ctx, total);
    return status;
}

static psi_status find_features(psi_ctx *ctx, const psi_trajectories *data, const psi_run *found,
                                run_known *out)
{
    psi_status status = PSI_OK;
    const psi_net *net = found->representation;
    const size_t k = found->n_latent;
    problem_inputs inputs = {0};
    psi_work *work = NULL;
    uint64_t *rows = NULL;
    float *features = NULL, *logits = NULL, *all_features = NULL;
    int32_t *labels = NULL, *all_labels = NULL;
    size_t n, bytes;
    out->width = psi_net_n_features(net);
    TRY(base_alloc(ctx, k, out->width * sizeof *out->centre, &out->centre));
    TRY(base_alloc(ctx, out->width, sizeof *out->scale, &out->scale));
    TRY(base_alloc(ctx, LOOKED_AT, sizeof *rows, &rows));
    TRY(choose_rows(ctx, data->n_observations, found, rows, &n));
    TRY(base_alloc(ctx, n, out->width * sizeof *features, &features));
    TRY(base_alloc(ctx, n, k * sizeof *logits, &logits));
    TRY(base_alloc(ctx, n, sizeof *labels, &labels));
    TRY(problem_inputs_new(ctx, data->observations, psi_net_spec_of(net)->input.rank == 1,
                           &inputs));
    TRY(psi_work_new(ctx, net,
                     &(psi_work_options){.size = sizeof(psi_work_options),
                                         .max_batch = BATCH,
                                         .predict_only = true},
                     &work));
    const psi_batch_source source = {&inputs, problem_inputs_gather};
    TRY(psi_net_predict_all(ctx, net, work, &source, rows, n, NULL, features, logits));
    for (size_t i = 0; i < n; i++) { // what the network calls them, as it will those to come
        labels[i] = (int32_t)base_largest(logits + i * k, 0, k);
    }
    TRY(base_gather_parts(ctx, features, n * out->width * sizeof *features, &all_features, &bytes));
    TRY(base_gather_parts(ctx, labels, n * sizeof *labels, &all_labels, &bytes));
    TRY(measure(ctx, out, k, bytes / sizeof *labels, all_labels, all_features));
done:
    base_free(ctx, all_labels);
    base_free(ctx, all_features);
    base_free(ctx, labels);
    base_free(ctx, logits);
    base_free(ctx, features);
    base_free(ctx, rows);
    psi_work_free(ctx, work);
    problem_inputs_free(ctx, &inputs);
    return status;
}

psi_status run_known_find(psi_ctx *ctx, const psi_trajectories *data, const psi_run *found,
                          run_known **out)
{
    psi_status status = PSI_OK;
    run_known *seen = NULL;
    *out = NULL;
    TRY(base_alloc_zero(ctx, 1, sizeof *seen, &seen));
    TRY(found->representation ? find_features(ctx, data, found, seen)
                              : find_distinct(ctx, data, found, seen));
    *out = seen;
    seen = NULL;
done:
    run_known_free(ctx, seen);
    return status;
}

// ---- the file -----------------------------------------------------------------------------------

psi_status run_known_save(psi_ctx *ctx, const run_known *seen, size_t n_latent, const char *path)
{
    const size_t n = seen->observations.n;
    int64_t shape[PSI_MAX_RANK];
    for (size_t i = 0; i < seen->shape.rank; i++) shape[i] = (int64_t)seen->shape.dim[i];
    const int64_t dtype = (int64_t)seen->dtype;
    const psi_array table[] = {{"observations",
                                seen->dtype,
                                {2, {n, psi_shape_size(&seen->shape)}},
                                seen->observations.known},
                               {"labels", PSI_INT32, {1, {n}}, seen->labels},
                               {"confidence", PSI_FLOAT32, {1, {n}}, seen->confidence},
                               {"shape", PSI_INT64, {1, {seen->shape.rank}}, shape},
                               {"dtype", PSI_INT64, {0, {0}}, &dtype}};
    const psi_array network[] = {
        {"centre", PSI_FLOAT32, {2, {n_latent, seen->width}}, seen->centre},
        {"scale", PSI_FLOAT32, {1, {seen->width}}, seen->scale},
        {"reach", PSI_FLOAT32, {0, {0}}, &seen->reach}};
    return seen->width > 0 ? psi_arrays_save(ctx, path, network, 3)
                           : psi_arrays_save(ctx, path, table, 5);
}

// An array with exactly so many numbers (n 0: any number, which *count says).
static psi_status load(psi_ctx *ctx, const char *path, const char *name, psi_dtype dtype, size_t n,
                       size_t *count, void *out)
{
    psi_shape shape;
    void *values = NULL;
    memcpy(out, &values, sizeof values);
    const psi_status status = psi_array_load(ctx, path, name, dtype, &shape, &values);
    if (status != PSI_OK) return status;
    const size_t size = psi_shape_size(&shape);
    if (n > 0 && size != n) {
        psi_array_free(ctx, values);
        return FAIL(ctx, PSI_EDATA, "%s: %s has %zu numbers, not %zu", path, name, size, n);
    }
    if (count) *count = size;
    memcpy(out, &values, sizeof values);
    return PSI_OK;
}

static psi_status load_network(psi_ctx *ctx, const char *path, size_t n_latent, size_t width,
                               run_known *out)
{
    psi_status status = PSI_OK;
    float *reach = NULL;
    TRY(load(ctx, path, "centre", PSI_FLOAT32, n_latent * width, NULL, &out->centre));
    TRY(load(ctx, path, "scale", PSI_FLOAT32, width, NULL, &out->scale));
    TRY(load(ctx, path, "reach", PSI_FLOAT32, 1, NULL, &reach));
    out->width = width;
    out->reach = *reach;
done:
    psi_array_free(ctx, reach);
    return status;
}

// What one observation is: its type and shape.
static psi_status load_kind(psi_ctx *ctx, const char *path, run_known *out)
{
    psi_status status = PSI_OK;
    int64_t *dtype = NULL, *dims = NULL;
    size_t rank, size = 1;
    TRY(load(ctx, path, "dtype", PSI_INT64, 1, NULL, &dtype));
    TRY(load(ctx, path, "shape", PSI_INT64, 0, &rank, &dims));
    bool good = *dtype >= PSI_UINT8 && *dtype <= PSI_FLOAT64 && rank <= PSI_MAX_RANK;
    for (size_t i = 0; good && i < rank; i++) {
        good = dims[i] > 0 && base_mul(size, (size_t)dims[i], &size) && size < SIZE_MAX / 16;
        out->shape.dim[i] = (size_t)dims[i];
    }
    if (!good)
        TRY(FAIL(ctx, PSI_EDATA, "%s: the type or shape of an observation is invalid", path));
    out->dtype = (psi_dtype)*dtype;
    out->shape.rank = rank;
done:
    psi_array_free(ctx, dims);
    psi_array_free(ctx, dtype);
    return status;
}

static psi_status load_table(psi_ctx *ctx, const char *path, size_t n_latent, run_known *out)
{
    psi_status status = PSI_OK;
    unsigned char *rows = NULL;
    size_t n, cells = 0;
    TRY(load_kind(ctx, path, out));
    const size_t numbers = psi_shape_size(&out->shape);
    const size_t row_bytes = numbers * psi_dtype_size(out->dtype);
    TRY(load(ctx, path, "labels", PSI_INT32, 0, &n, &out->labels));
    if (n == 0 || !base_mul(n, numbers, &cells))
        TRY(FAIL(ctx, PSI_EDATA, "%s: there cannot be %zu observations of this shape", path, n));
    TRY(load(ctx, path, "confidence", PSI_FLOAT32, n, NULL, &out->confidence));
    TRY(load(ctx, path, "observations", out->dtype, cells, NULL, &rows));
    TRY(problem_distinct_new(ctx, row_bytes, &out->observations));
    for (size_t i = 0; i < n; i++) {
        uint32_t number;
        if (out->labels[i] < -1 || out->labels[i] >= (int32_t)n_latent)
            TRY(FAIL(ctx, PSI_EDATA, "%s: %d is not a latent state", path, out->labels[i]));
        TRY(problem_distinct_add(ctx, &out->observations, rows + i * row_bytes, &number));
        if (number != i) TRY(FAIL(ctx, PSI_EDATA, "%s: an observation occurs twice", path));
    }
done:
    psi_array_free(ctx, rows);
    return status;
}

psi_status run_known_load(psi_ctx *ctx, const psi_run *run, run_known **out)
{
    psi_status status = PSI_OK;
    run_known *seen = NULL;
    char *path = NULL;
    *out = NULL;
    TRY(base_join(ctx, run->folder, "seen.npz", &path));
    if (access(path, F_OK) != 0) goto done;
    TRY(base_alloc_zero(ctx, 1, sizeof *seen, &seen));
    const psi_net *net = run->representation;
    TRY(net ? load_network(ctx, path, run->n_latent, psi_net_n_features(net), seen)
            : load_table(ctx, path, run->n_latent, seen));
    *out = seen;
    seen = NULL;
done:
    base_free(ctx, path);
    run_known_free(ctx, seen);
    return status;
}
