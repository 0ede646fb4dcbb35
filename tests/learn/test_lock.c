// A small Combination Lock of drawn digits, default options: 25 latent states behind 125 patterns
// of images that never look the same.
#include "support/collect.h"
#include "support/support.h"

static void small_lock_is_recovered(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_trajectories *data = test_collect(
        ctx, "combination-lock", 800, 2,
        (const char *const[]){"digits-per-dial", "5", "goal", "4,4,*", "digits", "drawn", NULL});
    const psi_cluster_options options = psi_cluster_defaults();
    psi_run *found;
    assert_ok(ctx, psi_cluster(ctx, data, &options, &found));
    assert_int_equal(found->approximator, PSI_APPROXIMATOR_CNN);
    assert_int_equal(found->n_latent, 25);
    test_assert_exact(ctx, data, found);
    assert_true(found->ignored <= 5e-4);
    assert_true(found->accuracy >= 0.97);
    psi_run_free(ctx, found);
    psi_trajectories_free(ctx, data);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(small_lock_is_recovered)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
