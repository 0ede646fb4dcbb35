// Features that are kept as halves are those that are kept whole, to eight bits.
#include "support/collect.h"
#include "support/support.h"

#include "learn/features.h"

#include <math.h>

enum { D = 24 };

static void halves_are_floats_to_eight_bits(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(2);
    psi_trajectories *data = test_collect(ctx, "point-column-world", 60, 3, NULL);
    cluster_problem problem;
    problem_inputs inputs;
    psi_net *net;
    feature_cache full, half, chosen;
    assert_ok(ctx, problem_new(ctx, data, 0, &problem));
    assert_ok(ctx, problem_inputs_new(ctx, data->observations, false, &inputs));
    psi_net_spec spec = psi_net_defaults(PSI_NET_MLP, &inputs.shape, inputs.dtype, 2, 2);
    spec.n_hidden = 1;
    spec.hidden[0] = D;
    assert_ok(ctx, psi_net_new(ctx, &spec, 1, &net));
    assert_ok(ctx, learn_features_new(ctx, &problem, &inputs, net, PSI_CACHE_FULL, &full));
    assert_ok(ctx, learn_features_new(ctx, &problem, &inputs, net, PSI_CACHE_HALF, &half));
    assert_ok(ctx, learn_features_new(ctx, &problem, &inputs, net, PSI_CACHE_AUTO, &chosen));
    assert_non_null(chosen.full); // as few as these fit
    assert_null(half.full);
    assert_int_equal(full.n, data->n_observations);
    assert_int_equal(full.d, D);

    const uint64_t rows[] = {5, 0, 5, data->n_observations - 1, 17};
    float a[5 * D], b[5 * D];
    double square = 0.0;
    learn_features_gather(ctx, &full, rows, 5, a);
    learn_features_gather(ctx, &half, rows, 5, b);
    for (size_t i = 0; i < 5 * D; i++) {
        assert_true(fabsf(a[i] - b[i]) <= ldexpf(fabsf(a[i]), -8));
        square += (double)(b[i] * b[i]);
    }
    assert_true(square > 0.0);
    assert_memory_equal(a, a + 2 * D, D * sizeof *a); // the same observation twice
    assert_memory_equal(a + 4 * D, full.full + 17 * D, D * sizeof *a);
    assert_true(fabsf(full.scale[0] / half.scale[0] - 1.0f) < 0.004f);

    learn_features_free(ctx, &chosen);
    learn_features_free(ctx, &half);
    learn_features_free(ctx, &full);
    psi_net_free(ctx, net);
    problem_inputs_free(ctx, &inputs);
    problem_free(ctx, &problem);
    psi_trajectories_free(ctx, data);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(halves_are_floats_to_eight_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
