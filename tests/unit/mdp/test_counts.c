// Counts and the model made from them: a plain recount, the conventions, and hostile paths.
#include "paths.h"

// Two episodes by hand: 1 –0→ 2 –1→ 0 (terminated), 1 –0→ −1 –0→ 2 –1→ 1 (cut off).
static const int32_t labels[] = {1, 2, 0, 1, -1, 2, 1}, actions[] = {0, 1, 0, 0, 1};
static const double rewards[] = {0.5, 1.0, 1.5, 7.0, 3.0};
static const uint64_t offsets[] = {0, 2, 5};
static const uint8_t terminated[] = {1, 0};
static const psi_paths by_hand = {2, 5, 2, 3, true, labels, actions, rewards, offsets, terminated};

static void test_by_hand(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_counts *counts;
    psi_mdp *model;
    assert_ok(ctx, psi_counts_new(ctx, &by_hand, &counts));
    assert_memory_equal(counts->visits, ((double[]){0, 0, 1, 0, 0, 2}), 6 * sizeof(double));
    assert_memory_equal(counts->rewards, ((double[]){0, 0, 2, 0, 0, 2}), 6 * sizeof(double));
    assert_ok(ctx, psi_counts_model(ctx, counts, 0.0, &model));
    assert_ok(ctx, psi_mdp_check(ctx, model, false));
    assert_memory_equal(model->reward, ((double[]){0, 0, 1, 0, 0, 2}), 6 * sizeof(double));
    assert_memory_equal(counts->reward_scatter, ((double[]){0, 0, 0.5, 0, 0, 2}),
                        6 * sizeof(double));
    assert_memory_equal(model->terminal, ((uint8_t[]){1, 0, 0}), 3);
    double m[9];
    psi_mdp_dense(model, 0, m);
    assert_memory_equal(m, ((double[]){0, 0, 0, 0, 0, 1, 0, 0, 0}), sizeof m);
    psi_mdp_dense(model, 1, m);
    assert_memory_equal(m, ((double[]){0, 0, 0, 0, 0, 0, 0.5, 0.5, 0}), sizeof m);
    assert_false(psi_mdp_seen(model, 1, 1));
    psi_mdp_free(ctx, model);
    assert_ok(ctx, psi_counts_model(ctx, counts, 2.0, &model)); // one visit is not enough
    assert_false(psi_mdp_seen(model, 1, 0));
    assert_true(psi_mdp_seen(model, 2, 1));
    psi_mdp_free(ctx, model);
    psi_counts_free(ctx, counts);
    psi_ctx_free(ctx);
}

static void test_recount(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    for (uint64_t seed = 0; seed < 60; seed++) {
        planted_model planted = random_planted(ctx, seed);
        const psi_mdp *mdp = planted.small;
        if (mdp->n_states == 1 && mdp->terminal[0]) {
            planted_free(ctx, &planted);
            continue;
        }
        walk w = random_walk(mdp, 30, 20, seed);
        if (mdp->n_states > 2) spoil(&w, 0.2, 0.1, seed);
        psi_counts *counts;
        assert_ok(ctx, psi_counts_new(ctx, &w.paths, &counts));
        double table[10][3][10] = {{{0}}}, total = 0.0, expected = 0.0;
        for (size_t e = 0; e < 30; e++) {
            for (uint64_t t = w.offsets[e]; t < w.offsets[e + 1]; t++) {
                if (w.labels[t + e] < 0 || w.labels[t + e + 1] < 0) continue;
                table[w.labels[t + e]][w.actions[t]][w.labels[t + e + 1]] += 1.0;
                expected += 1.0;
            }
        }
        for (size_t row = 0; row < mdp->n_states * mdp->n_actions; row++) {
            for (uint64_t i = counts->offsets[row]; i < counts->offsets[row + 1]; i++) {
                assert_true(counts->count[i] ==
                            table[row / mdp->n_actions][row % mdp->n_actions][counts->next[i]]);
                total += counts->count[i];
            }
        }
        assert_true(total == expected);
        psi_counts_free(ctx, counts);
        walk_free(&w);
        planted_free(ctx, &planted);
    }
    psi_ctx_free(ctx);
}

static void test_hostile_paths(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_counts *counts;
    psi_paths p = by_hand;
    p.n_latent = 2;
    assert_status(ctx, psi_counts_new(ctx, &p, &counts), PSI_EDATA);
    assert_null(counts);
    p = by_hand;
    p.n_actions = 1;
    assert_status(ctx, psi_counts_new(ctx, &p, &counts), PSI_EDATA);
    test_assert_error_says(ctx, "action");
    p = by_hand;
    p.episode_offsets = (uint64_t[]){0, 6, 5};
    assert_status(ctx, psi_counts_new(ctx, &p, &counts), PSI_EDATA);
    p.episode_offsets = (uint64_t[]){0, 2, 4};
    assert_status(ctx, psi_counts_new(ctx, &p, &counts), PSI_EDATA);
    p = by_hand;
    p.terminated = (uint8_t[]){0, 0}; // latent state 0 at the end of an episode that was cut off
    assert_status(ctx, psi_counts_new(ctx, &p, &counts), PSI_EDATA);
    p.terminated = (uint8_t[]){1, 1}; // another latent state at the end of a terminated one
    assert_status(ctx, psi_counts_new(ctx, &p, &counts), PSI_EDATA);
    test_assert_error_says(ctx, "episode 1");
    p = by_hand;
    p.rewards = (double[]){0, 0, 0, 0, (double)NAN};
    assert_status(ctx, psi_counts_new(ctx, &p, &counts), PSI_EDATA);
    p = by_hand;
    p.labels = (int32_t[]){1, 2, 0, 1, -2, 2, 1};
    assert_status(ctx, psi_counts_new(ctx, &p, &counts), PSI_EDATA);
    p = by_hand;
    p.has_terminal = false; // then 0 is a latent state like any other
    assert_ok(ctx, psi_counts_new(ctx, &p, &counts));
    psi_counts_free(ctx, counts);
    psi_ctx_free(ctx);
}

static psi_status sweep(psi_ctx *ctx, void *argument)
{
    (void)argument;
    psi_counts *counts;
    psi_mdp *model = NULL;
    psi_status status = psi_counts_new(ctx, &by_hand, &counts);
    if (!status) status = psi_counts_model(ctx, counts, 0.0, &model);
    psi_mdp_free(ctx, model);
    psi_counts_free(ctx, counts);
    return status;
}

static void test_faults_in_counts(void **state)
{
    (void)state;
    assert_true(test_fault_sweep(sweep, NULL) > 15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_recount),
        cmocka_unit_test(test_hostile_paths),
        cmocka_unit_test(test_faults_in_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
