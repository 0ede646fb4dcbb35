// The engine against PyTorch: outputs, losses, every gradient, running statistics and twenty steps
// of Adam, for the fixtures that tests/fixtures/nn/generate.py made. That file says what each
// tensor of a fixture means, and how weights and inputs come from a hash.
#include "nn/safetensors.h"

#include "support/support.h"

#include <psifold/nn.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- the hash that both sides make their numbers from ----

static uint64_t hash(uint64_t seed, uint64_t tensor, uint64_t element)
{
    uint64_t z =
        seed * 0x9E3779B97F4A7C15 + tensor * 0xBF58476D1CE4E5B9 + element * 0x94D049BB133111EB;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return z ^ z >> 31;
}

static double uniform(uint64_t seed, uint64_t tensor, uint64_t element)
{
    return (double)(hash(seed, tensor, element) >> 40) * 0x1p-24;
}

enum { SKETCH = 64, STEPS = 20 };

// 64 random projections of a tensor; the length of their difference estimates that of the tensors'.
static void sketch(const psi_real *values, size_t n, uint64_t seed, uint64_t tensor,
                   double out[SKETCH])
{
    for (size_t j = 0; j < SKETCH; j++) out[j] = 0;
    for (size_t i = 0; i < n; i++) {
        const uint64_t signs = hash(seed, tensor, i);
        const double value = (double)values[i];
        if (value == 0) continue; // most weights of a deep layer on a small map
        for (size_t j = 0; j < SKETCH; j++) out[j] += signs >> j & 1 ? value : -value;
    }
    for (size_t j = 0; j < SKETCH; j++) out[j] /= 8;
}

// ---- a fixture ----

typedef struct parity_case {
    const char *name;
    double outputs; // relative error allowed in features and logits, direct convolutions
} parity_case;

// 9×13 ends in maps of one pixel: batch norm over six numbers multiplies every rounding error
static const parity_case CASES[] = {
    {"resnet18_3x28x28", 1e-5},
    {"resnet18_3x64x64", 1e-5},
    {"resnet18_1x9x13", 4e-5},
    {"cnn_3x28x28", 1e-5},
    {"cnn_4x84x84", 1e-5},
    {"cnn_1x9x13", 1e-5},
    {"mlp_2", 1e-5},
};
enum { N_CASES = sizeof CASES / sizeof CASES[0] };

typedef struct setting {
    psi_ctx *ctx;
    nn_safetensors *fixture;
    uint64_t seed, input_seed;
    size_t batch;
    psi_net *net;
    psi_work *work;
    void *inputs;
    int32_t *actions, *targets;
} setting;

static size_t note(const setting *s, const char *key)
{
    const char *text = nn_safetensors_note(s->fixture, key);
    assert_non_null(text);
    return (size_t)strtoull(text, NULL, 10);
}

// The numbers of a fixture's tensor; *n is how many. To be freed.
static double *numbers(const setting *s, const char *key, size_t *n)
{
    const nn_named_tensor *tensor = nn_safetensors_find(s->fixture, key);
    if (!tensor) fail_msg("the fixture has no %s", key);
    size_t bytes;
    assert_int_equal(tensor->dtype, NN_F64);
    assert_true(nn_named_tensor_bytes(tensor, &bytes));
    double *copy = malloc(bytes);
    assert_non_null(copy);
    memcpy(copy, tensor->data, bytes);
    *n = bytes / sizeof(double);
    return copy;
}

static double number(const setting *s, const char *key)
{
    size_t n;
    double *values = numbers(s, key, &n);
    assert_int_equal(n, 1);
    const double value = values[0];
    free(values);
    return value;
}

// Where a tensor stands in PyTorch's state_dict.
static size_t tensor_index(const setting *s, const char *name)
{
    const char *at = nn_safetensors_note(s->fixture, "state_dict");
    assert_non_null(at);
    for (size_t index = 0;; index++) {
        const size_t length = strcspn(at, ",");
        if (strlen(name) == length && memcmp(at, name, length) == 0) return index;
        if (at[length] == '\0') fail_msg("PyTorch has no tensor %s", name);
        at += length + 1;
    }
}

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

// Hashed weights. What a tensor is shows in its rank, and a bias belongs to the weight before it.
static void fill_net(const setting *s)
{
    psi_shape weight = {0};
    for (size_t i = 0; i < psi_net_tensor_count(s->net); i++) {
        psi_tensor_info info;
        assert_ok(s->ctx, psi_net_tensor_info(s->ctx, s->net, i, &info));
        if (!info.trained) continue;
        const bool bias = ends_with(info.name, ".bias");
        if (!bias) weight = info.shape;
        const size_t index = tensor_index(s, info.name), n = psi_shape_size(&info.shape);
        double fan = 1;
        for (size_t d = 1; d < weight.rank; d++) fan *= (double)weight.dim[d];
        double scale = 1 / sqrt(fan), start = 0;
        if (weight.rank == 4 && !bias) {
            scale = sqrt(6 / (fan / (double)weight.dim[1] * (double)weight.dim[0]));
        }
        if (weight.rank == 1) { // batch norm: 0.5 + u = 1 + (2u − 1)/2
            scale = bias ? 0.2 : 0.5;
            start = bias ? 0 : 1;
        }
        psi_real *values = malloc(n * sizeof *values);
        assert_non_null(values);
        for (size_t e = 0; e < n; e++) {
            const float rounded = (float)(start + (2 * uniform(s->seed, index, e) - 1) * scale);
            values[e] = rounded;
        }
        assert_ok(s->ctx, psi_net_tensor_set(s->ctx, s->net, i, values));
        free(values);
    }
}

static void fill_batch(setting *s, bool images, size_t n_actions, size_t n_classes)
{
    const size_t n = s->batch * psi_shape_size(&psi_net_spec_of(s->net)->input);
    s->inputs = malloc(n * sizeof(float));
    s->actions = malloc(s->batch * sizeof *s->actions);
    s->targets = malloc(s->batch * sizeof *s->targets);
    assert_true(s->inputs && s->actions && s->targets);
    for (size_t i = 0; i < n; i++) {
        if (images) {
            ((uint8_t *)s->inputs)[i] = (uint8_t)(hash(s->input_seed, 0, i) >> 56);
        } else {
            ((float *)s->inputs)[i] = (float)uniform(s->input_seed, 0, i);
        }
    }
    for (size_t i = 0; i < s->batch; i++) {
        s->actions[i] = (int32_t)(hash(s->input_seed, 1, i) % n_actions);
        s->targets[i] = (int32_t)(hash(s->input_seed, 2, i) % n_classes);
    }
}

static setting open_case(const parity_case *c, int threads, bool exact)
{
    setting s = {.ctx = test_ctx(threads)};
    char path[256];
    snprintf(path, sizeof path, "tests/fixtures/nn/%s.safetensors", c->name);
    assert_ok(s.ctx, nn_safetensors_open(s.ctx, path, &s.fixture));
    s.seed = note(&s, "seed");
    s.input_seed = note(&s, "input_seed");
    s.batch = note(&s, "batch");
    psi_net_kind kind;
    assert_ok(s.ctx, psi_net_kind_from_name(s.ctx, nn_safetensors_note(s.fixture, "net"), &kind));
    const bool images = kind != PSI_NET_MLP;
    psi_shape input = {3, {note(&s, "channels"), note(&s, "height"), note(&s, "width")}};
    if (!images) input = (psi_shape){1, {psi_shape_size(&input)}};
    const size_t n_actions = note(&s, "actions"), n_classes = note(&s, "classes");
    const psi_net_spec spec =
        psi_net_defaults(kind, &input, images ? PSI_UINT8 : PSI_FLOAT32, n_actions, n_classes);
    assert_ok(s.ctx, psi_net_new(s.ctx, &spec, 1, &s.net));
    const psi_work_options options = {.max_batch = s.batch, .exact_conv = exact};
    assert_ok(s.ctx, psi_work_new(s.ctx, s.net, &options, &s.work));
    fill_net(&s);
    fill_batch(&s, images, n_actions, n_classes);
    return s;
}

static void close_case(setting *s)
{
    free(s->inputs);
    free(s->actions);
    free(s->targets);
    psi_work_free(s->ctx, s->work);
    psi_net_free(s->ctx, s->net);
    nn_safetensors_free(s->fixture);
    psi_ctx_free(s->ctx);
}

// |got − want| / |want| over a whole tensor.
static double relative_error(const psi_real *got, const double *want, size_t n)
{
    double difference = 0, norm = 0;
    for (size_t i = 0; i < n; i++) {
        difference += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
        norm += want[i] * want[i];
    }
    return sqrt(difference / norm);
}

static void assert_close(const setting *s, const char *case_name, const char *key,
                         const psi_real *got, double bound)
{
    size_t n;
    double *want = numbers(s, key, &n);
    const double error = relative_error(got, want, n);
    if (!(error <= bound)) {
        fail_msg("%s: %s is off by %.2e, allowed are %.2e", case_name, key, error, bound);
    }
    free(want);
}

// ---- the comparisons ----

// The relative error of a gradient: exactly, where the fixture has all of it, else by its sketch.
static double gradient_error(const setting *s, const char *name, const psi_real *gradient, size_t n)
{
    char key[128];
    size_t n_values, n_sketch;
    snprintf(key, sizeof key, "gradient.%s.values", name);
    double *values = numbers(s, key, &n_values), error;
    if (n_values == n) {
        error = relative_error(gradient, values, n);
    } else {
        double ours[SKETCH], difference = 0;
        snprintf(key, sizeof key, "gradient.%s.sketch", name);
        double *theirs = numbers(s, key, &n_sketch);
        assert_int_equal(n_sketch, SKETCH);
        sketch(gradient, n, s->seed + 2, tensor_index(s, name), ours);
        for (size_t j = 0; j < SKETCH; j++) {
            difference += (ours[j] - theirs[j]) * (ours[j] - theirs[j]);
        }
        free(theirs);
        snprintf(key, sizeof key, "gradient.%s.norm", name);
        error = sqrt(difference) / number(s, key);
    }
    free(values);
    return error;
}

// What no input can reach has no gradient at all, not even a small one.
static void check_unreached(const setting *s, const char *case_name, const char *name,
                            const psi_real *gradient, size_t n)
{
    char key[128];
    size_t n_values;
    snprintf(key, sizeof key, "gradient.%s.values", name);
    double *values = numbers(s, key, &n_values);
    snprintf(key, sizeof key, "gradient.%s.positions", name);
    const nn_named_tensor *positions = nn_safetensors_find(s->fixture, key);
    assert_non_null(positions);
    for (size_t j = 0; j < n_values; j++) {
        int64_t at;
        memcpy(&at, (const char *)positions->data + j * sizeof at, sizeof at);
        assert_in_range(at, 0, n - 1);
        if (values[j] == 0 && gradient[at] != 0) {
            fail_msg("%s: %s[%lld] has a gradient of %g, PyTorch none", case_name, name,
                     (long long)at, (double)gradient[at]);
        }
    }
    free(values);
}

static void check_gradient(const setting *s, const char *case_name, size_t i,
                           const psi_tensor_info *info)
{
    char key[128];
    const size_t n = psi_shape_size(&info->shape);
    psi_real *gradient = malloc(n * sizeof *gradient);
    assert_non_null(gradient);
    assert_ok(s->ctx, psi_work_gradient(s->ctx, s->net, s->work, i, gradient));
    const double error = gradient_error(s, info->name, gradient, n);
    // a tensor may have rounded well by luck: twice the last place of a float counts as nothing
    snprintf(key, sizeof key, "gradient.%s.torch_error", info->name);
    const double allowed = 4 * fmax(number(s, key), 0x1p-22);
    if (!(error <= allowed)) {
        fail_msg("%s: the gradient of %s is off by %.2e, allowed are %.2e", case_name, info->name,
                 error, allowed);
    }
    check_unreached(s, case_name, info->name, gradient, n);
    free(gradient);
}

static void check_step(const parity_case *c, int threads, bool exact)
{
    setting s = open_case(c, threads, exact);
    const double bound = exact ? c->outputs : 1e-4;
    const size_t n_outputs = s.batch * psi_net_n_outputs(s.net);
    psi_real *d_outputs = malloc(n_outputs * sizeof *d_outputs);
    assert_non_null(d_outputs);
    assert_ok(s.ctx, psi_net_forward(s.ctx, s.net, s.work, s.inputs, s.batch, PSI_NORM_BATCH));
    assert_close(&s, c->name, "features", psi_work_features(s.work), bound);
    assert_close(&s, c->name, "logits", psi_work_outputs(s.work), bound);

    const psi_labels labels = {.actions = s.actions, .targets = s.targets};
    double loss;
    size_t n_losses;
    assert_ok(s.ctx, psi_net_loss(s.ctx, s.net, s.work, &labels, d_outputs, &loss));
    double *losses = numbers(&s, "losses", &n_losses);
    assert_int_equal(n_losses, STEPS);
    if (!(fabs(loss - losses[0]) <= bound * losses[0])) {
        fail_msg("%s: the loss is %.9g, PyTorch's %.9g", c->name, loss, losses[0]);
    }
    free(losses);

    assert_ok(s.ctx, psi_net_backward(s.ctx, s.net, s.work, d_outputs, NULL, NULL));
    for (size_t i = 0; i < psi_net_tensor_count(s.net); i++) {
        psi_tensor_info info;
        assert_ok(s.ctx, psi_net_tensor_info(s.ctx, s.net, i, &info));
        if (info.trained) {
            check_gradient(&s, c->name, i, &info);
        } else if (strstr(info.name, "running_")) {
            char key[128];
            psi_real *values = malloc(psi_shape_size(&info.shape) * sizeof *values);
            assert_non_null(values);
            assert_ok(s.ctx, psi_net_tensor_get(s.ctx, s.net, i, values));
            snprintf(key, sizeof key, "running.%s", info.name);
            assert_close(&s, c->name, key, values, bound);
            free(values);
        }
    }
    free(d_outputs);
    close_case(&s);
}

static void hash_running_statistics(const setting *s)
{
    for (size_t i = 0; i < psi_net_tensor_count(s->net); i++) {
        psi_tensor_info info;
        assert_ok(s->ctx, psi_net_tensor_info(s->ctx, s->net, i, &info));
        const bool mean = ends_with(info.name, "running_mean");
        if (!mean && !ends_with(info.name, "running_var")) continue;
        const size_t index = tensor_index(s, info.name), n = psi_shape_size(&info.shape);
        psi_real *values = malloc(n * sizeof *values);
        assert_non_null(values);
        for (size_t e = 0; e < n; e++) {
            const double u = uniform(s->seed + 1, index, e);
            const float rounded = (float)(mean ? (2 * u - 1) * 0.2 : 0.5 + u);
            values[e] = rounded;
        }
        assert_ok(s->ctx, psi_net_tensor_set(s->ctx, s->net, i, values));
        free(values);
    }
}

static void check_prediction(const parity_case *c, int threads, bool exact)
{
    setting s = open_case(c, threads, exact);
    const double bound = exact ? 1e-5 : 1e-4;
    psi_real *outputs = malloc(s.batch * psi_net_n_outputs(s.net) * sizeof *outputs);
    assert_non_null(outputs);
    assert_ok(s.ctx, psi_net_predict(s.ctx, s.net, s.work, s.inputs, s.batch, NULL, outputs));
    assert_close(&s, c->name, "eval.logits", outputs, bound);
    if (nn_safetensors_find(s.fixture, "eval_hashed.logits")) {
        hash_running_statistics(&s);
        assert_ok(s.ctx, psi_net_predict(s.ctx, s.net, s.work, s.inputs, s.batch, NULL, outputs));
        assert_close(&s, c->name, "eval_hashed.logits", outputs, bound);
    }
    free(outputs);
    close_case(&s);
}

// Twenty steps of Adam. Rounding errors grow from step to step, PyTorch's as well as ours: a loss
// may be as far from the exact one as a few times PyTorch's own largest distance so far.
static void check_training(const parity_case *c, bool exact, const char *key, double rate)
{
    setting s = open_case(c, 1, exact);
    const psi_labels labels = {.actions = s.actions, .targets = s.targets};
    char narrow_key[64];
    snprintf(narrow_key, sizeof narrow_key, "%s.torch", key);
    size_t n, n_narrow;
    double *want = numbers(&s, key, &n), *narrow = numbers(&s, narrow_key, &n_narrow);
    assert_true(n == STEPS && n_narrow == STEPS);
    psi_adam *adam;
    assert_ok(s.ctx, psi_adam_new(s.ctx, s.net, NULL, &adam));
    double strayed = 0;
    for (size_t step = 0; step < STEPS; step++) {
        double loss;
        assert_ok(s.ctx, psi_net_train_step(s.ctx, s.net, s.work, adam, s.inputs, &labels, s.batch,
                                            rate, &loss));
        for (size_t ahead = step; ahead < STEPS && ahead <= step + 1; ahead++) {
            strayed = fmax(strayed, fabs(narrow[ahead] - want[ahead]));
        }
        const double allowed = (exact ? 1e-5 : 1e-4) * want[0] + 8 * strayed;
        if (!(fabs(loss - want[step]) <= allowed)) {
            fail_msg("%s: %s of step %zu is %.7g, PyTorch's %.7g (±%.1e)", c->name, key, step + 1,
                     loss, want[step], allowed);
        }
    }
    psi_adam_free(s.ctx, adam);
    free(want);
    free(narrow);
    close_case(&s);
}

static void a_step_is_pytorchs(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_CASES; i++) {
        check_step(&CASES[i], 1, true);
        check_step(&CASES[i], 2, true);
    }
}

static void a_step_with_fewer_multiplications_is_pytorchs(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_CASES; i++) {
        check_step(&CASES[i], 1, false);
        check_step(&CASES[i], 2, false);
    }
}

static void prediction_is_pytorchs(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_CASES; i++) {
        for (int exact = 0; exact < 2; exact++) {
            check_prediction(&CASES[i], 1, exact);
            check_prediction(&CASES[i], 2, exact);
        }
    }
}

static void twenty_steps_of_adam_are_pytorchs(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_CASES; i++) {
        for (int exact = 0; exact < 2; exact++) {
            check_training(&CASES[i], exact, "losses", 1e-3);
            check_training(&CASES[i], exact, "losses_slow", 1e-4);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_is_pytorchs),
        cmocka_unit_test(a_step_with_fewer_multiplications_is_pytorchs),
        cmocka_unit_test(prediction_is_pytorchs),
        cmocka_unit_test(twenty_steps_of_adam_are_pytorchs),
    };
    return cmocka_run_group_tests_name("nn/parity", tests, NULL, NULL);
}
