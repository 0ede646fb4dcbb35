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
    const psi_merge_options bad = {.size = sizeof bad, .tolerance = -1.0};
    assert_status(ctx, psi_merge(ctx, counts, &bad, &c), PSI_EUSAGE);
    assert_null(c);
    psi_counts_free(ctx, counts);
    walk_free(&w);
    psi_mdp_free(ctx, lock);
    psi_ctx_free(ctx);
}

// States 2 and 3 are twins, but 2's rewards look like 0's and 3's like 1's, which are visited more
// and lead elsewhere: the twins part before it shows that they belong together.
static void test_parted_twins_come_together(void **state)
{
    (void)state;
    enum { EPISODES = 100 }; // of one step each
    psi_ctx *ctx = test_ctx(1);
    int32_t labels[2 * EPISODES], actions[EPISODES] = {0};
    double rewards[EPISODES];
    uint64_t offsets[EPISODES + 1];
    uint8_t terminated[EPISODES] = {0};
    for (size_t e = 0; e < EPISODES; e++) {
        const int32_t from = e < 40 ? 0 : e < 70 ? 1 : e < 90 ? 2 : 3;
        labels[2 * e] = from;
        labels[2 * e + 1] = from < 2 ? from : 2 + (int32_t)(e % 2);
        rewards[e] = (const double[]){0.0, 0.17, 0.07, 0.12}[from];
        offsets[e] = e;
    }
    offsets[EPISODES] = EPISODES;
    const psi_paths paths = {.n_episodes = EPISODES,
                             .n_transitions = EPISODES,
                             .n_actions = 1,
                             .n_latent = 4,
                             .labels = labels,
                             .actions = actions,
                             .rewards = rewards,
                             .episode_offsets = offsets,
                             .terminated = terminated};
    psi_merge_options options = psi_merge_defaults();
    options.reward_tolerance = 0.1;
    psi_counts *counts;
    psi_partition *c;
    assert_ok(ctx, psi_counts_new(ctx, &paths, &counts));
    assert_ok(ctx, psi_merge(ctx, counts, &options, &c));
    assert_int_equal(c->n_blocks, 3);
    assert_int_equal(c->label[2], c->label[3]);
    psi_partition_free(ctx, c);
    psi_counts_free(ctx, counts);
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
        cmocka_unit_test(test_parted_twins_come_together),
        cmocka_unit_test(test_faults_in_merge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
