// Two locks that others have defined, in a small size: exact and certain with default options.
#include "support/collect.h"
#include "support/support.h"

static psi_run *cluster(psi_ctx *ctx, const psi_trajectories *data)
{
    psi_cluster_options options = psi_cluster_defaults();
    psi_run *found;
    options.representation_steps = 20;
    assert_ok(ctx, psi_cluster(ctx, data, &options, &found));
    return found;
}

// Eight bits of 512 matter, and all others vary as much. Vectors as they are leave something open.
static void test_bits_that_flip_by_themselves(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    const char *const options[] = {"states", "8", "bits", "512", "instance", "2", NULL};
    psi_trajectories *data = test_collect(ctx, "bit-lock", 10, 1, options);
    psi_run *found = cluster(ctx, data);
    test_assert_exact(ctx, data, found);
    assert_int_equal(found->n_latent, 8);
    assert_true(found->has_trunk); // what vectors leave open was asked of features
    psi_run_free(ctx, found);
    psi_trajectories_free(ctx, data);
    psi_ctx_free(ctx);
}

// Both good states of a step are one latent state where the same action is right: of the others
// each was tried some eighty times, which does not show a difference of 5 %.
static void test_rotated_noise(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    const char *const options[] = {"preset", "occupancy", "horizon", "4", NULL};
    psi_trajectories *data = test_collect(ctx, "rich-lock", 6000, 1, options);
    psi_run *found = cluster(ctx, data);
    test_assert_partition(ctx, data, found);
    assert_int_equal(found->verdict, PSI_VERDICT_UNDETERMINED);
    psi_run_free(ctx, found);
    psi_trajectories_free(ctx, data);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits_that_flip_by_themselves),
        cmocka_unit_test(test_rotated_noise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
