// A training step multiplies with the taken action's head alone; the gradients are those of the
// pass that computes all heads.
#include "support/support.h"

#include "base/random.h"

#include <math.h>
#include <stdlib.h>

enum { INPUTS = 21, MOST_ROWS = 70 };

typedef struct batch {
    float inputs[MOST_ROWS * INPUTS];
    int32_t actions[MOST_ROWS], targets[MOST_ROWS];
    float weights[MOST_ROWS];
    float log_priors[512];
} batch;

// The last action is never taken if there are several.
static void fill(batch *b, size_t n_actions, size_t n_classes)
{
    base_random random = base_random_stream(3, (uint32_t)n_actions, n_classes);
    const size_t taken = n_actions > 2 ? n_actions - 1 : n_actions;
    for (size_t i = 0; i < MOST_ROWS * INPUTS; i++)
        b->inputs[i] = (float)base_random_normal(&random);
    for (size_t i = 0; i < MOST_ROWS; i++) {
        b->actions[i] = (int32_t)base_random_below(&random, (uint32_t)taken);
        b->targets[i] = (int32_t)base_random_below(&random, (uint32_t)n_classes);
        b->weights[i] = (float)(0.5 + base_random_uniform(&random));
    }
    for (size_t i = 0; i < n_actions * n_classes; i++)
        b->log_priors[i] = (float)-base_random_uniform(&random);
}

static void compare(psi_ctx *ctx, const psi_net *net, const psi_work *step, const psi_work *calls)
{
    for (size_t t = 0; t < psi_net_tensor_count(net); t++) {
        psi_tensor_info info;
        assert_ok(ctx, psi_net_tensor_info(ctx, net, t, &info));
        const size_t n = psi_shape_size(&info.shape);
        psi_real *got = malloc(n * sizeof *got), *wanted = malloc(n * sizeof *wanted);
        assert_ok(ctx, psi_work_gradient(ctx, net, step, t, got));
        assert_ok(ctx, psi_work_gradient(ctx, net, calls, t, wanted));
        double wrong = 0, right = 0;
        for (size_t i = 0; i < n; i++) {
            wrong += pow((double)got[i] - (double)wanted[i], 2);
            right += pow((double)wanted[i], 2);
            if (wanted[i] == 0) assert_true(got[i] == 0); // an action that nobody took
        }
        assert_true(right > 0);
        assert_true(sqrt(wrong / right) < 1e-5);
        free(got);
        free(wanted);
    }
}

static void check(int threads, size_t n_hidden, size_t n_actions, size_t n_classes, size_t rows)
{
    psi_ctx *ctx = test_ctx(threads);
    static batch b;
    fill(&b, n_actions, n_classes);
    const psi_shape shape = {1, {INPUTS}};
    psi_net_spec spec = psi_net_defaults(PSI_NET_MLP, &shape, PSI_FLOAT32, n_actions, n_classes);
    spec.n_hidden = n_hidden;
    spec.hidden[0] = 40;
    const psi_work_options options = {.size = sizeof options, .max_batch = MOST_ROWS};
    const psi_labels labels = {b.actions, b.targets, b.weights, b.log_priors};
    psi_net *net, *copy;
    psi_work *step, *calls;
    psi_adam *adam;
    assert_ok(ctx, psi_net_new(ctx, &spec, 4, &net));
    assert_ok(ctx, psi_net_clone(ctx, net, &copy));
    assert_ok(ctx, psi_work_new(ctx, net, &options, &step));
    assert_ok(ctx, psi_work_new(ctx, net, &options, &calls));
    assert_ok(ctx, psi_adam_new(ctx, net, NULL, &adam));
    psi_real *d_outputs = malloc(rows * n_actions * n_classes * sizeof *d_outputs);
    double loss, same_loss;
    // a step before, so that nothing is right because memory was fresh
    for (int i = 0; i < 2; i++) {
        assert_ok(ctx, psi_net_forward(ctx, copy, calls, b.inputs, rows, PSI_NORM_BATCH));
        assert_ok(ctx, psi_net_loss(ctx, copy, calls, &labels, d_outputs, &same_loss));
        assert_ok(ctx, psi_net_backward(ctx, copy, calls, d_outputs, NULL, NULL));
        assert_ok(ctx,
                  psi_net_train_step(ctx, net, step, adam, b.inputs, &labels, rows, 1e-20, &loss));
        assert_float_equal(loss, same_loss, 1e-5);
        compare(ctx, net, step, calls);
    }
    // what a step leaves behind is no forward pass
    assert_status(ctx, psi_net_loss(ctx, net, step, &labels, NULL, &loss), PSI_EUSAGE);
    free(d_outputs);
    psi_adam_free(ctx, adam);
    psi_work_free(ctx, step);
    psi_work_free(ctx, calls);
    psi_net_free(ctx, net);
    psi_net_free(ctx, copy);
    psi_ctx_free(ctx);
}

static void a_step_is_the_four_calls(void **state)
{
    (void)state;
    // actions inside a block, across blocks, as long as a block, larger, and many that share one
    static const size_t shapes[][2] = {{1, 5},  {2, 4},  {3, 100}, {7, 3},
                                       {5, 16}, {2, 17}, {20, 2},  {4, 60}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        for (int threads = 1; threads <= 2; threads++) {
            for (size_t hidden = 0; hidden < 2; hidden++) {
                check(threads, hidden, shapes[s][0], shapes[s][1], MOST_ROWS);
                check(threads, hidden, shapes[s][0], shapes[s][1], 5);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_step_is_the_four_calls)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
