// The tolerant merge: copies of latent states come together again, different ones stay apart.
#include "paths.h"

// Walks through the large model, labelled by its states, must merge to the coarsest partition.
static void test_copies_come_together(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    size_t merged = 0, tried = 0, exact = 0;
    for (uint64_t seed = 0; seed < 150; seed++) {
        planted_model model = random_planted(ctx, seed);
        size_t ends = 0;
        for (size_t s = 0; s < model.large->n_states; s++) ends += model.large->terminal[s];
        // one terminal state at most, and it is number 0: as labels along trajectories are
        if (ends > 1 || (ends == 1 && !model.large->terminal[0]) || ends == model.large->n_states) {
            planted_free(ctx, &model);
            continue;
        }
        walk w = random_walk(model.large, 4000, 20, seed);
        psi_counts *counts;
        psi_partition *c, *coarsest;
        bool equal;
        assert_ok(ctx, psi_counts_new(ctx, &w.paths, &counts));
        psi_merge_options options = psi_merge_defaults();
        options.tolerance = 0.02;
        options.slack = 4.0;
        assert_ok(ctx, psi_merge(ctx, counts, &options, &c));
        assert_ok(ctx, psi_partition_check(ctx, c));
        assert_ok(ctx, psi_bisimulation(ctx, model.large, 0.0, &coarsest));
        assert_ok(ctx, psi_partition_equal(ctx, c, coarsest, &equal));
        tried++;
        exact += equal;
        merged += c->n_blocks < c->n_states;
        psi_partition_free(ctx, c);
        psi_partition_free(ctx, coarsest);
        psi_counts_free(ctx, counts);
        walk_free(&w);
        planted_free(ctx, &model);
    }
    print_message("%zu of %zu merged exactly, %zu were compressed\n", exact, tried, merged);
    assert_true(tried > 60 && merged > tried / 4);
    assert_int_equal(exact, tried);
    psi_ctx_free(ctx);
}

static void test_lock_stays(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_mdp *lock = lock_quotient(ctx);
    walk w = random_walk(lock, 1000, 1000, 2);
    psi_counts *counts;
    psi_partition *c;
    assert_ok(ctx, psi_counts_new(ctx, &w.paths, &counts));
    assert_ok(ctx, psi_merge(ctx, counts, NULL, &c));
    assert_int_equal(c->n_blocks, 100);
    psi_partition_free(ctx, c);
    psi_counts_free(ctx, counts);
    // every latent state but the terminal one in two copies, at random: 199 become 100 again
    for (size_t row = 0; row < walk_rows(&w); row++) {
        base_random r = base_random_stream(3, 3, row);
        if (w.labels[row] > 0 && base_random_below(&r, 3) == 0) w.labels[row] += 99;
    }
    w.paths.n_latent = 199;
    assert_ok(ctx, psi_counts_new(ctx, &w.paths, &counts));
    assert_ok(ctx, psi_merge(ctx, counts, NULL, &c));
    assert_int_equal(c->n_blocks, 100);
    for (size_t k = 1; k < 100; k++) assert_int_equal(c->label[k], c->label[k + 99]);
    psi_partition_free(ctx, c);
    const psi_merge_options bad = {.tolerance = -1.0};
    assert_status(ctx, psi_merge(ctx, counts, &bad, &c), PSI_EUSAGE);
    assert_null(c);
    psi_counts_free(ctx, counts);
    walk_free(&w);
    psi_mdp_free(ctx, lock);
    psi_ctx_free(ctx);
}

static psi_status sweep(psi_ctx *ctx, void *argument)
{
    psi_partition *c;
    const psi_status status = psi_merge(ctx, argument, NULL, &c);
    psi_partition_free(ctx, c);
    return status;
}

static void test_faults_in_merge(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_mdp *mdp = column_world(ctx);
    walk w = random_walk(mdp, 50, 50, 2);
    psi_counts *counts;
    assert_ok(ctx, psi_counts_new(ctx, &w.paths, &counts));
    assert_true(test_fault_sweep(sweep, counts) > 20);
    psi_counts_free(ctx, counts);
    walk_free(&w);
    psi_mdp_free(ctx, mdp);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies_come_together),
        cmocka_unit_test(test_lock_stays),
        cmocka_unit_test(test_faults_in_merge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
