// The engine against PyTorch: forward passes, every gradient, running statistics and the losses of
// Adam steps, for the fixtures that tests/fixtures/nn/generate.py made. How weights and inputs are
// hashed, and what a fixture holds, is documented there.
#include "support/support.h"

#include "nn/safetensors.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t hashed(uint64_t seed, uint64_t tensor, uint64_t element)
{
    uint64_t z =
        seed * 0x9E3779B97F4A7C15u + tensor * 0xBF58476D1CE4E5B9u + element * 0x94D049BB133111EBu;
    z ^= z >> 30;
    z *= 0xBF58476D1CE4E5B9u;
    z ^= z >> 27;
    z *= 0x94D049BB133111EBu;
    z ^= z >> 31;
    return z;
}

static double uniform(uint64_t seed, uint64_t tensor, uint64_t element)
{
    return (double)(hashed(seed, tensor, element) >> 40) * 0x1p-24;
}

typedef struct parity {
    psi_ctx *ctx;
    nn_safetensors *file;
    uint64_t seed, input_seed;
    size_t batch;
    psi_net *net;
    psi_work *work;
    void *inputs;
    int32_t *actions, *targets;
} parity;

static uint64_t note(const parity *p, const char *key)
{
    const char *text = nn_safetensors_note(p->file, key);
    assert_non_null(text);
    return strtoull(text, NULL, 10);
}

static const double *numbers(const parity *p, const char *name)
{
    const nn_named_tensor *tensor = nn_safetensors_find(p->file, name);
    if (!tensor) fail_msg("the fixture has no %s", name);
    assert_int_equal(tensor->dtype, NN_F64);
    return tensor->data;
}

static double number(const parity *p, const char *name)
{
    return *numbers(p, name);
}

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

// The law of a tensor's elements at the start, the same on both sides: from a hashed u in [0, 1),
// offset + u · width + (2 u − 1) · scale / divisor, where one of the two parts is zero.
typedef struct start_law {
    uint64_t seed;
    double offset, width, scale, divisor;
} start_law;

static start_law law_of(const parity *p, const psi_tensor_info *info, size_t tensor,
                        bool hash_statistics)
{
    start_law law = {.seed = p->seed, .divisor = 1};
    const bool norm = strstr(info->name, "bn") || strstr(info->name, "downsample.1");
    const bool mean = ends_with(info->name, "running_mean");
    const bool variance = ends_with(info->name, "running_var");
    if (ends_with(info->name, "tracked")) return law;
    if (mean || variance) {
        law.seed += hash_statistics;
        if (mean) law.scale = hash_statistics ? 0.2 : 0;
        if (variance) law.offset = hash_statistics ? 0.5 : 1;
        if (variance) law.width = hash_statistics ? 1 : 0;
    } else if (norm && ends_with(info->name, "weight")) {
        law.offset = 0.5;
        law.width = 1;
    } else if (norm) {
        law.scale = 0.2;
    } else if (info->shape.rank == 4) {
        const size_t *dim = info->shape.dim;
        law.scale = sqrt(6.0 / (double)(dim[0] * dim[2] * dim[3]));
    } else {
        psi_tensor_info weight = *info; // of a bias, it is the tensor before it
        if (info->shape.rank == 1) {
            assert_ok(p->ctx, psi_net_tensor_info(p->ctx, p->net, tensor - 1, &weight));
        }
        law.scale = 1;
        law.divisor = sqrt((double)weight.shape.dim[1]);
    }
    return law;
}

static void set_tensors(parity *p, bool hash_statistics)
{
    for (size_t t = 0; t < psi_net_tensor_count(p->net); t++) {
        psi_tensor_info info;
        assert_ok(p->ctx, psi_net_tensor_info(p->ctx, p->net, t, &info));
        const size_t n = psi_shape_size(&info.shape);
        const start_law law = law_of(p, &info, t, hash_statistics);
        psi_real *values = malloc(n * sizeof *values);
        for (size_t i = 0; i < n; i++) {
            const double u = uniform(law.seed, t, i);
            values[i] = (psi_real)(float)(law.offset + u * law.width +
                                          (2 * u - 1) * law.scale / law.divisor);
        }
        assert_ok(p->ctx, psi_net_tensor_set(p->ctx, p->net, t, values));
        free(values);
    }
}

static parity open_case(const char *name, int threads, bool exact, const char *kernels)
{
    parity p = {.ctx = test_ctx(threads)};
    char path[128];
    snprintf(path, sizeof path, "tests/fixtures/nn/%s.safetensors", name);
    assert_ok(p.ctx, nn_safetensors_open(p.ctx, path, &p.file));
    p.seed = note(&p, "seed");
    p.input_seed = note(&p, "input_seed");
    p.batch = note(&p, "batch");
    psi_net_kind kind;
    assert_ok(p.ctx, psi_net_kind_from_name(p.ctx, nn_safetensors_note(p.file, "net"), &kind));
    psi_shape shape = {3, {note(&p, "channels"), note(&p, "height"), note(&p, "width")}};
    const bool vector = kind == PSI_NET_MLP;
    if (vector) shape = (psi_shape){1, {shape.dim[0] * shape.dim[1] * shape.dim[2]}};
    const size_t n_actions = note(&p, "actions"), n_classes = note(&p, "classes");
    const psi_net_spec spec =
        psi_net_defaults(kind, &shape, vector ? PSI_FLOAT32 : PSI_UINT8, n_actions, n_classes);
    assert_ok(p.ctx, psi_net_new(p.ctx, &spec, 0, &p.net));
    set_tensors(&p, false);
    const psi_work_options options = {
        .size = sizeof options, .max_batch = p.batch, .exact_conv = exact, .kernels = kernels};
    assert_ok(p.ctx, psi_work_new(p.ctx, p.net, &options, &p.work));
    const size_t count = p.batch * psi_shape_size(&shape);
    p.inputs = malloc(count * sizeof(float));
    for (size_t i = 0; i < count; i++) {
        if (vector)
            ((float *)p.inputs)[i] = (float)uniform(p.input_seed, 0, i);
        else
            ((uint8_t *)p.inputs)[i] = (uint8_t)(hashed(p.input_seed, 0, i) >> 56);
    }
    p.actions = malloc(p.batch * sizeof *p.actions);
    p.targets = malloc(p.batch * sizeof *p.targets);
    for (size_t i = 0; i < p.batch; i++) {
        p.actions[i] = (int32_t)(hashed(p.input_seed, 1, i) % n_actions);
        p.targets[i] = (int32_t)(hashed(p.input_seed, 2, i) % n_classes);
    }
    return p;
}

static void close_case(parity *p)
{
    psi_work_free(p->ctx, p->work);
    psi_net_free(p->ctx, p->net);
    nn_safetensors_free(p->file);
    free(p->inputs);
    free(p->actions);
    free(p->targets);
    psi_ctx_free(p->ctx);
}

static double relative_error(const psi_real *got, const double *exact, size_t n)
{
    double wrong = 0, right = 0;
    for (size_t i = 0; i < n; i++) {
        wrong += ((double)got[i] - exact[i]) * ((double)got[i] - exact[i]);
        right += exact[i] * exact[i];
    }
    return sqrt(wrong / right);
}

// Every failure is reported before the test fails.
static void expect(int *failures, const char *what, double error, double bound)
{
    if (error <= bound) return;
    print_error("%s: error %.2e, allowed %.2e\n", what, error, bound);
    ++*failures;
}

static double torch_error(const parity *p, const char *name)
{
    char key[128];
    snprintf(key, sizeof key, "%.100s.torch_error", name);
    return number(p, key);
}

// Every element goes into all 64 sums, with the signs of the bits of its hash: eight at a time.
static void sketch_of(uint64_t seed, uint64_t tensor, const psi_real *got, size_t n, double *sums)
{
    double signs[256][8];
    for (size_t byte = 0; byte < 256; byte++) {
        for (size_t j = 0; j < 8; j++) signs[byte][j] = byte >> j & 1 ? 1 : -1;
    }
    for (size_t j = 0; j < 64; j++) sums[j] = 0;
    for (size_t i = 0; i < n; i++) {
        if (got[i] == 0) continue;
        const uint64_t hash = hashed(seed, tensor, i);
        for (size_t j = 0; j < 64; j += 8) {
            const double *sign = signs[hash >> j & 255];
            for (size_t k = 0; k < 8; k++) sums[j + k] += sign[k] * (double)got[i];
        }
    }
}

// |got − exact| / |exact| over the whole tensor, as its sketch estimates it: to 9 % (one standard
// deviation).
static double sketched_error(const parity *p, size_t tensor, const char *name, const psi_real *got,
                             size_t n)
{
    char key[128];
    double sketch[64], difference = 0;
    sketch_of(p->seed + 2, tensor, got, n, sketch);
    snprintf(key, sizeof key, "%.100s.sketch", name);
    const double *exact = numbers(p, key);
    for (size_t j = 0; j < 64; j++) {
        difference += (sketch[j] / 8 - exact[j]) * (sketch[j] / 8 - exact[j]);
    }
    snprintf(key, sizeof key, "%.100s.norm", name);
    return sqrt(difference) / number(p, key);
}

// A small tensor is in the fixture as a whole; of a large one, some elements and a sketch.
static void check_gradient(const parity *p, size_t tensor, const psi_tensor_info *info,
                           int *failures)
{
    char name[96], key[128];
    const size_t n = psi_shape_size(&info->shape);
    psi_real *got = malloc(n * sizeof *got);
    assert_ok(p->ctx, psi_work_gradient(p->ctx, p->net, p->work, tensor, got));
    snprintf(name, sizeof name, "gradient.%s", info->name);
    const double allowed = 4 * torch_error(p, name) + 1e-7;
    snprintf(key, sizeof key, "%s.positions", name);
    const nn_named_tensor *positions = nn_safetensors_find(p->file, key);
    snprintf(key, sizeof key, "%s.values", name);
    const double *values = numbers(p, key);
    if (positions->dim[0] == n) {
        expect(failures, name, relative_error(got, values, n), allowed);
    } else {
        // three standard deviations of the estimate are allowed for
        expect(failures, name, sketched_error(p, tensor, name, got, n), 1.27 * allowed);
    }
    snprintf(key, sizeof key, "%s.norm", name);
    const double norm = number(p, key);
    for (size_t i = 0; i < positions->dim[0]; i++) {
        const int64_t at = ((const int64_t *)positions->data)[i];
        if (values[i] == 0) assert_true(got[at] == 0); // a dead weight has no gradient at all
        expect(failures, name, fabs((double)got[at] - values[i]), (allowed + 1e-6) * norm);
    }
    free(got);
}

static void check_statistics(const parity *p, size_t tensor, const psi_tensor_info *info,
                             double bound, int *failures)
{
    char name[96];
    const size_t n = psi_shape_size(&info->shape);
    psi_real *got = malloc(n * sizeof *got);
    assert_ok(p->ctx, psi_net_tensor_get(p->ctx, p->net, tensor, got));
    snprintf(name, sizeof name, "running.%s", info->name);
    expect(failures, name, relative_error(got, numbers(p, name), n),
           fmax(4 * torch_error(p, name), bound / 10));
    free(got);
}

static void check_first_step(parity *p, double output_bound, int *failures)
{
    const size_t n_outputs = psi_net_n_outputs(p->net);
    const size_t n_features = psi_net_n_features(p->net);
    const psi_labels labels = {.actions = p->actions, .targets = p->targets};
    psi_real *d_outputs = malloc(p->batch * n_outputs * sizeof *d_outputs);
    double loss;
    assert_ok(p->ctx,
              psi_net_forward(p->ctx, p->net, p->work, p->inputs, p->batch, PSI_NORM_BATCH));
    expect(
        failures, "features",
        relative_error(psi_work_features(p->work), numbers(p, "features"), p->batch * n_features),
        fmax(output_bound, 4 * number(p, "features.torch_error")));
    expect(failures, "logits",
           relative_error(psi_work_outputs(p->work), numbers(p, "logits"), p->batch * n_outputs),
           fmax(output_bound, 4 * number(p, "logits.torch_error")));
    assert_ok(p->ctx, psi_net_loss(p->ctx, p->net, p->work, &labels, d_outputs, &loss));
    expect(failures, "loss", fabs(loss / numbers(p, "losses")[0] - 1), output_bound);
    assert_ok(p->ctx, psi_net_backward(p->ctx, p->net, p->work, d_outputs, NULL, NULL));
    for (size_t t = 0; t < psi_net_tensor_count(p->net); t++) {
        psi_tensor_info info;
        assert_ok(p->ctx, psi_net_tensor_info(p->ctx, p->net, t, &info));
        if (info.trained)
            check_gradient(p, t, &info, failures);
        else if (!ends_with(info.name, "tracked"))
            check_statistics(p, t, &info, output_bound, failures);
    }
    free(d_outputs);
}

static void check_predictions(parity *p, double bound, int *failures)
{
    const size_t n = p->batch * psi_net_n_outputs(p->net);
    psi_real *got = malloc(n * sizeof *got);
    set_tensors(p, false);
    assert_ok(p->ctx, psi_net_predict(p->ctx, p->net, p->work, p->inputs, p->batch, NULL, got));
    expect(failures, "eval.logits", relative_error(got, numbers(p, "eval.logits"), n), bound);
    if (nn_safetensors_find(p->file, "eval_hashed.logits")) {
        set_tensors(p, true);
        assert_ok(p->ctx, psi_net_predict(p->ctx, p->net, p->work, p->inputs, p->batch, NULL, got));
        expect(failures, "eval_hashed.logits",
               relative_error(got, numbers(p, "eval_hashed.logits"), n), bound);
    }
    free(got);
}

// Losses drift apart because Adam's first steps have the size of the learning rate whatever the
// gradient's: PyTorch's own float32 runs say how far.
static void check_losses(parity *p, const char *name, double rate, int *failures)
{
    char key[32];
    snprintf(key, sizeof key, "%s.drift", name);
    const double *exact = numbers(p, name), *drift = numbers(p, key);
    const psi_labels labels = {.actions = p->actions, .targets = p->targets};
    psi_adam *adam;
    set_tensors(p, false);
    assert_ok(p->ctx, psi_adam_new(p->ctx, p->net, NULL, &adam));
    double farthest = 0;
    for (size_t step = 0; step < note(p, "steps"); step++) {
        double loss;
        assert_ok(p->ctx, psi_net_train_step(p->ctx, p->net, p->work, adam, p->inputs, &labels,
                                             p->batch, rate, &loss));
        farthest = fmax(farthest, drift[step]);
        char what[64];
        snprintf(what, sizeof what, "%s, step %zu (%.6f, exactly %.6f)", name, step, loss,
                 exact[step]);
        expect(failures, what, fabs(loss - exact[step]), 4 * farthest + 1e-4 * exact[0]);
    }
    psi_adam_free(p->ctx, adam);
}

static void check_case(const char *name, int threads, bool exact, const char *kernels)
{
    parity p = open_case(name, threads, exact, kernels);
    int failures = 0;
    const double bound = exact ? 1e-5 : 1e-4;
    check_first_step(&p, bound, &failures);
    check_predictions(&p, bound, &failures);
    check_losses(&p, "losses", 1e-3, &failures);
    check_losses(&p, "losses_slow", 1e-4, &failures);
    close_case(&p);
    if (failures)
        fail_msg("%s (threads %d, exact %d): %d checks failed", name, threads, exact, failures);
}

#define CASE(name)                                                                                 \
    static void name##_direct(void **state)                                                        \
    {                                                                                              \
        (void)state;                                                                               \
        check_case(#name, 1, true, NULL);                                                          \
    }                                                                                              \
    static void name##_reduced(void **state)                                                       \
    {                                                                                              \
        (void)state;                                                                               \
        check_case(#name, 2, false, NULL);                                                         \
    }                                                                                              \
    static void name##_portable(void **state)                                                      \
    {                                                                                              \
        (void)state;                                                                               \
        check_case(#name, 2, true, "portable");                                                    \
    }
#define CASES(X)                                                                                   \
    X(mlp_2)                                                                                       \
    X(cnn_3x28x28)                                                                                 \
    X(cnn_4x84x84) X(cnn_1x9x13) X(resnet18_3x28x28) X(resnet18_3x64x64) X(resnet18_1x9x13)
CASES(CASE)

int main(void)
{
#define TESTS(name)                                                                                \
    cmocka_unit_test(name##_direct), cmocka_unit_test(name##_reduced),                             \
        cmocka_unit_test(name##_portable),
    const struct CMUnitTest tests[] = {CASES(TESTS)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
