// Temporal differences: targets by hand, and gradients by central differences, of the loss alone
// and through a network.
#include "support/support.h"

#include "agent/td.h"
#include "base/context.h"
#include "base/random.h"

#include <math.h>
#include <string.h>

static void test_targets(void **state)
{
    (void)state;
    const float rewards[] = {0, 1, -3, 0.5F};
    const uint8_t terminated[] = {0, 1, 0, 0};
    const psi_real next[] = {1, 2, 9, 9, -4, -2, 0, 0}; // the second row is not to be looked at
    psi_real y[4];
    const double largest = agent_td_targets(4, 2, rewards, terminated, next, 0.5, y);
    assert_true(y[0] == 1 && y[1] == 1 && y[2] == -4 && y[3] == 0.5F);
    assert_true(largest == 4);
    const psi_real bad[] = {1, 2, 9, 9, NAN, NAN, 0, 0};
    assert_false(agent_td_targets(4, 2, rewards, terminated, bad, 0.5, y) <= 1e30);
}

static void test_losses_by_hand(void **state)
{
    (void)state;
    const psi_real q[] = {0, 0.5F, 0, 3}, y[] = {0, 0};
    const int32_t actions[] = {1, 1};
    psi_real d[4];
    assert_true(agent_td_loss(PSI_TD_SQUARED, 2, 2, q, actions, y, d) == (0.25 + 9) / 2);
    assert_true(d[0] == 0 && d[1] == 0.5F && d[2] == 0 && d[3] == 3);
    assert_true(agent_td_loss(PSI_TD_HUBER, 2, 2, q, actions, y, d) == (0.125 + 2.5) / 2);
    assert_true(d[0] == 0 && d[1] == 0.25F && d[2] == 0 && d[3] == 0.5F);
}

enum { N = 12, A = 3 };

static void test_gradients_of_the_loss(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 5; seed++) {
        base_random random = base_random_stream(seed, 9, 0);
        psi_real q[N * A], y[N], d[N * A], scrap[N * A];
        int32_t actions[N];
        for (size_t i = 0; i < N * A; i++) q[i] = (psi_real)(2 * base_random_normal(&random));
        for (size_t i = 0; i < N; i++) {
            y[i] = (psi_real)base_random_normal(&random);
            actions[i] = (int32_t)base_random_below(&random, A);
        }
        for (int kind = PSI_TD_SQUARED; kind <= PSI_TD_HUBER; kind++) {
            agent_td_loss((psi_td_loss)kind, N, A, q, actions, y, d);
            for (size_t i = 0; i < N * A; i++) {
                const psi_real was = q[i], h = 0x1p-7F; // exact in float
                q[i] = was + h;
                const double above = agent_td_loss((psi_td_loss)kind, N, A, q, actions, y, scrap);
                q[i] = was - h;
                const double below = agent_td_loss((psi_td_loss)kind, N, A, q, actions, y, scrap);
                q[i] = was;
                // both are quadratic or linear but for Huber's joints, where slopes meet
                assert_true(fabs((above - below) / (2 * (double)h) - (double)d[i]) < 1e-3);
            }
        }
    }
}

// The loss as a function of one weight, through a forward pass.
static double loss_of(psi_ctx *ctx, psi_net *net, psi_work *work, const float *x,
                      const int32_t *actions, const psi_real *y, psi_real *d)
{
    assert_ok(ctx, psi_net_forward(ctx, net, work, x, N, PSI_NORM_FROZEN));
    return agent_td_loss(PSI_TD_SQUARED, N, A, psi_work_outputs(work), actions, y, d);
}

static void test_gradients_through_a_network(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(2);
    enum { D = 5, MOST = 200 };
    psi_net_spec spec = psi_net_defaults(PSI_NET_MLP, &(psi_shape){1, {D}}, PSI_FLOAT32, A, 1);
    spec.hidden[0] = 16;
    spec.hidden[1] = 12;
    psi_net *net;
    psi_work *work;
    float x[N * D];
    psi_real y[N], d[N * A], gradient[MOST], values[MOST], scrap[N * A];
    int32_t actions[N];
    base_random random = base_random_stream(4, 8, 0);
    assert_ok(ctx, psi_net_new(ctx, &spec, 1, &net));
    assert_ok(ctx,
              psi_work_new(ctx, net,
                           &(psi_work_options){.size = sizeof(psi_work_options), .max_batch = N},
                           &work));
    for (size_t i = 0; i < N * D; i++) x[i] = (float)base_random_normal(&random);
    for (size_t i = 0; i < N; i++) {
        y[i] = (psi_real)base_random_normal(&random);
        actions[i] = (int32_t)base_random_below(&random, A);
    }
    size_t checked = 0;
    for (size_t t = 0; t < psi_net_tensor_count(net); t++) {
        psi_tensor_info info;
        assert_ok(ctx, psi_net_tensor_info(ctx, net, t, &info));
        const size_t n = psi_shape_size(&info.shape);
        assert_true(n <= MOST);
        loss_of(ctx, net, work, x, actions, y, d);
        assert_ok(ctx, psi_net_backward(ctx, net, work, d, NULL, NULL));
        assert_ok(ctx, psi_work_gradient(ctx, net, work, t, gradient));
        assert_ok(ctx, psi_net_tensor_get(ctx, net, t, values));
        for (size_t i = 0; i < n; i += 7, checked++) {
            const psi_real was = values[i], h = 1e-3F;
            values[i] = was + h;
            assert_ok(ctx, psi_net_tensor_set(ctx, net, t, values));
            const double above = loss_of(ctx, net, work, x, actions, y, scrap);
            values[i] = was - h;
            assert_ok(ctx, psi_net_tensor_set(ctx, net, t, values));
            const double below = loss_of(ctx, net, work, x, actions, y, scrap);
            values[i] = was;
            assert_ok(ctx, psi_net_tensor_set(ctx, net, t, values));
            const double slope = (above - below) / ((double)(was + h) - (double)(was - h));
            assert_true(fabs(slope - (double)gradient[i]) < 2e-3 * fmax(1, fabs(slope)));
        }
    }
    assert_true(checked > 40);
    psi_work_free(ctx, work);
    psi_net_free(ctx, net);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_targets),
        cmocka_unit_test(test_losses_by_hand),
        cmocka_unit_test(test_gradients_of_the_loss),
        cmocka_unit_test(test_gradients_through_a_network),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
