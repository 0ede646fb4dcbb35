// Every gradient against central differences, in double: this program is linked with the engine's
// own sources compiled with PSI_NN_DOUBLE.
//
// ReLU and max pool have kinks, and a difference across a kink says nothing. A position counts only
// if its differences with two widths agree; most must.
#include "support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct gradient_case {
    const char *name;
    psi_net_kind kind;
    psi_shape shape;
    size_t batch;
    int threads;
    bool exact;
    psi_norm_mode mode;
} gradient_case;

static const gradient_case cases[] = {
    {"mlp", PSI_NET_MLP, {1, {5}}, 7, 2, false, PSI_NORM_BATCH},
    {"cnn", PSI_NET_CNN, {3, {2, 9, 13}}, 5, 1, false, PSI_NORM_BATCH},
    {"cnn, frozen norm", PSI_NET_CNN, {3, {3, 16, 16}}, 4, 2, false, PSI_NORM_FROZEN},
    {"resnet18 on 28×28, reduced", PSI_NET_RESNET18, {3, {3, 28, 28}}, 5, 2, false, PSI_NORM_BATCH},
    {"resnet18 on 28×28, direct", PSI_NET_RESNET18, {3, {1, 28, 28}}, 4, 1, true, PSI_NORM_BATCH},
    {"resnet18, frozen norm", PSI_NET_RESNET18, {3, {1, 28, 20}}, 3, 2, false, PSI_NORM_FROZEN},
    {"resnet18 on 41×33, odd maps",
     PSI_NET_RESNET18,
     {3, {2, 41, 33}},
     3,
     1,
     false,
     PSI_NORM_BATCH},
};

enum { ACTIONS = 2, CLASSES = 3, POSITIONS = 2 };

typedef struct setting {
    psi_ctx *ctx;
    const gradient_case *c;
    psi_net *net;
    psi_work *work;
    double *inputs;
    psi_labels labels;
    psi_real *d_features; // a second loss: Σ d_features · features
} setting;

static double pseudo(uint64_t i)
{
    i = (i + 1) * 0x9E3779B97F4A7C15u;
    i ^= i >> 29;
    i *= 0xBF58476D1CE4E5B9u;
    return (double)(i >> 11) * 0x1p-53;
}

static double total_loss(const setting *s, psi_real *d_outputs)
{
    double loss;
    assert_ok(s->ctx, psi_net_forward(s->ctx, s->net, s->work, s->inputs, s->c->batch, s->c->mode));
    assert_ok(s->ctx, psi_net_loss(s->ctx, s->net, s->work, &s->labels, d_outputs, &loss));
    const size_t n = s->c->batch * psi_net_n_features(s->net);
    for (size_t i = 0; i < n; i++) loss += s->d_features[i] * psi_work_features(s->work)[i];
    return loss;
}

static double difference(const setting *s, double *number, double width, size_t tensor,
                         const psi_real *values)
{
    const double kept = *number;
    double loss[2];
    for (int side = 0; side < 2; side++) {
        *number = kept + (side ? -width : width);
        if (values) assert_ok(s->ctx, psi_net_tensor_set(s->ctx, s->net, tensor, values));
        loss[side] = total_loss(s, NULL);
    }
    *number = kept;
    if (values) assert_ok(s->ctx, psi_net_tensor_set(s->ctx, s->net, tensor, values));
    return (loss[0] - loss[1]) / (2 * width);
}

typedef struct tally {
    int checked, skipped, wrong;
} tally;

static void compare(const setting *s, double *number, size_t tensor, const psi_real *values,
                    double gradient, const char *name, tally *t)
{
    const double wide = difference(s, number, 2e-6, tensor, values);
    const double narrow = difference(s, number, 1e-6, tensor, values);
    const double scale = fmax(fabs(gradient), 1e-3);
    if (fabs(wide - narrow) > 1e-5 * scale) {
        t->skipped++;
        return;
    }
    t->checked++;
    if (fabs(narrow - gradient) <= 1e-5 * scale) return;
    print_error("%s, %s: gradient %.9g, difference %.9g\n", s->c->name, name, gradient, narrow);
    t->wrong++;
}

static void check_tensor(const setting *s, size_t tensor, tally *t)
{
    psi_tensor_info info;
    assert_ok(s->ctx, psi_net_tensor_info(s->ctx, s->net, tensor, &info));
    if (!info.trained) return;
    const size_t n = psi_shape_size(&info.shape);
    psi_real *values = malloc(n * sizeof *values), *gradient = malloc(n * sizeof *gradient);
    assert_ok(s->ctx, psi_net_tensor_get(s->ctx, s->net, tensor, values));
    assert_ok(s->ctx, psi_work_gradient(s->ctx, s->net, s->work, tensor, gradient));
    for (size_t k = 0; k < POSITIONS; k++) {
        const size_t i = (size_t)(pseudo(tensor * 100 + k) * (double)n);
        compare(s, &values[i], tensor, values, gradient[i], info.name, t);
    }
    free(values);
    free(gradient);
}

static void check_case(const gradient_case *c)
{
    setting s = {.ctx = test_ctx(c->threads), .c = c};
    psi_net_spec spec = psi_net_defaults(c->kind, &c->shape, PSI_FLOAT64, ACTIONS, CLASSES);
    spec.hidden[0] = 19;
    spec.hidden[1] = 34;
    assert_ok(s.ctx, psi_net_new(s.ctx, &spec, 3, &s.net));
    const psi_work_options options = {
        .size = sizeof options, .max_batch = c->batch, .exact_conv = c->exact};
    assert_ok(s.ctx, psi_work_new(s.ctx, s.net, &options, &s.work));
    const size_t size = psi_shape_size(&c->shape), n_features = psi_net_n_features(s.net);
    s.inputs = malloc(c->batch * size * sizeof *s.inputs);
    for (size_t i = 0; i < c->batch * size; i++) s.inputs[i] = pseudo(i) - 0.4;
    s.d_features = malloc(c->batch * n_features * sizeof *s.d_features);
    for (size_t i = 0; i < c->batch * n_features; i++) {
        s.d_features[i] = 0.01 * (pseudo(i + 77) - 0.5);
    }
    const int32_t actions[] = {0, 1, 1, 0, 1, 0, 0}, targets[] = {2, 1, 0, 0, 2, 1, 1};
    const float weights[] = {1, 0.5f, 2, 1, 1, 3, 0.25f}, priors[] = {-1, -2, -0.5f, -1, -3, -0.2f};
    s.labels = (psi_labels){actions, targets, weights, priors};

    psi_real *d_outputs = malloc(c->batch * ACTIONS * CLASSES * sizeof *d_outputs);
    psi_real *d_inputs = malloc(c->batch * size * sizeof *d_inputs);
    const bool vector = c->kind == PSI_NET_MLP;
    // off the start values, where scales are 1 and biases 0
    for (size_t t = 0; t < psi_net_tensor_count(s.net); t++) {
        psi_tensor_info info;
        assert_ok(s.ctx, psi_net_tensor_info(s.ctx, s.net, t, &info));
        if (info.shape.rank != 1) continue;
        psi_real *values = malloc(info.shape.dim[0] * sizeof *values);
        assert_ok(s.ctx, psi_net_tensor_get(s.ctx, s.net, t, values));
        for (size_t i = 0; i < info.shape.dim[0]; i++) values[i] += 0.2 * pseudo(i + t * 1000);
        assert_ok(s.ctx, psi_net_tensor_set(s.ctx, s.net, t, values));
        free(values);
    }
    total_loss(&s, d_outputs);
    assert_ok(s.ctx, psi_net_backward(s.ctx, s.net, s.work, d_outputs, s.d_features,
                                      vector ? d_inputs : NULL));
    tally t = {0};
    if (vector) {
        for (size_t i = 0; i < c->batch * size; i++) {
            compare(&s, &s.inputs[i], 0, NULL, d_inputs[i], "inputs", &t);
        }
    }
    // the gradients are read before differences disturb the workspace's forward pass
    // resnet18 has 124 tensors in groups of six: every fifth meets every kind
    const size_t step = c->kind == PSI_NET_RESNET18 ? 5 : 1;
    for (size_t tensor = 0; tensor < psi_net_tensor_count(s.net); tensor += step) {
        total_loss(&s, d_outputs);
        assert_ok(s.ctx, psi_net_backward(s.ctx, s.net, s.work, d_outputs, s.d_features, NULL));
        check_tensor(&s, tensor, &t);
    }
    free(s.inputs);
    free(s.d_features);
    free(d_outputs);
    free(d_inputs);
    psi_work_free(s.ctx, s.work);
    psi_net_free(s.ctx, s.net);
    psi_ctx_free(s.ctx);
    if (t.wrong) fail_msg("%s: %d of %d gradients are wrong", c->name, t.wrong, t.checked);
    if (t.checked < 3 * t.skipped)
        fail_msg("%s: only %d checked, %d on kinks", c->name, t.checked, t.skipped);
}

static void gradients_are_differences(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_case(&cases[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(gradients_are_differences)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
