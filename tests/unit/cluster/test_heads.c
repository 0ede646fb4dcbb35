// A representation that is not trained any more: a lock of drawn digits, of which heads on learnt
// features tell the latent states. It is a program of its own because it takes long under
// sanitizers, where every other test of networks asks the same of its memory.
#include "support/collect.h"
#include "support/support.h"

#include "base/context.h"

// Without fine-tuning the representation is the features' network with new heads: nothing below
// them moves, and what it says is what the heads say.
static void heads_alone_are_a_representation(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_trajectories *data = test_collect(
        ctx, "combination-lock", 40, 5,
        (const char *const[]){"digits-per-dial", "5", "goal", "4,4,*", "digits", "drawn", NULL});
    psi_cluster_options options = psi_cluster_defaults();
    options.approximator = PSI_APPROXIMATOR_CNN;
    options.trunk_steps = 100;
    options.fine_tune = false;
    psi_run *found;
    psi_predictor *predictor;
    int32_t *labels;
    size_t right = 0, kept = 0;
    assert_ok(ctx, psi_cluster(ctx, data, &options, &found));
    assert_non_null(found->representation);
    assert_true(found->accuracy > 0.95);
    assert_ok(ctx, base_alloc(ctx, data->n_observations, sizeof *labels, &labels));
    assert_ok(ctx, psi_predictor_new(ctx, found, &predictor));
    assert_ok(ctx, psi_predict(ctx, predictor, data->observations, 0.0, labels, NULL));
    psi_predictor_free(ctx, predictor);
    for (size_t i = 0; i < data->n_observations; i++) {
        kept += found->labels[i] > 0;
        right += found->labels[i] > 0 && labels[i] == found->labels[i];
    }
    assert_true(kept > 1000 && 100 * right > 95 * kept);
    base_free(ctx, labels);
    psi_run_free(ctx, found);
    psi_trajectories_free(ctx, data);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_alone_are_a_representation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
