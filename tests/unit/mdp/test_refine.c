// Exact refinement: the paper's counts, and agreement of the paper's loop with brute-force
// bisimulation and with what was planted, over hundreds of random MDPs.
#include "models.h"

enum { SEEDS = 400 };

static void assert_same(psi_ctx *ctx, const psi_partition *a, const psi_partition *b, uint64_t seed,
                        const char *what)
{
    bool equal;
    assert_ok(ctx, psi_partition_equal(ctx, a, b, &equal));
    if (!equal)
        fail_msg("seed %llu: %s: %zu and %zu blocks", (unsigned long long)seed, what, a->n_blocks,
                 b->n_blocks);
}

static void assert_counts(psi_ctx *ctx, const psi_mdp *mdp, const psi_refine_options *options,
                          const size_t *expected, size_t n)
{
    psi_refinement *refinement;
    psi_partition *coarsest;
    assert_ok(ctx, psi_refine(ctx, mdp, options, &refinement));
    assert_true(refinement->converged);
    assert_int_equal(refinement->n_refinements, n);
    for (size_t i = 0; i < n; i++) assert_int_equal(refinement->clusters[i], expected[i]);
    assert_ok(ctx, psi_partition_check(ctx, refinement->partition));
    assert_ok(ctx, psi_bisimulation(ctx, mdp, 0.0, &coarsest));
    assert_same(ctx, refinement->partition, coarsest, 0, "refinement and bisimulation");
    psi_partition_free(ctx, coarsest);
    psi_refinement_free(ctx, refinement);
}

static void test_column_world(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(2);
    psi_mdp *mdp = column_world(ctx);
    const size_t expected[] = {2, 3, 4, 4};
    psi_refine_options options = psi_refine_defaults();
    for (int variant = 0; variant < 4; variant++) {
        options.norm = variant & 1 ? PSI_L1 : PSI_L2;
        options.recluster = variant & 2;
        assert_counts(ctx, mdp, &options, expected, 4);
    }
    // every cell of a column in one block
    psi_partition *c;
    assert_ok(ctx, psi_bisimulation(ctx, mdp, 0.0, &c));
    for (size_t s = 0; s < 16; s++) assert_int_equal(c->label[s], s % 4);
    psi_partition_free(ctx, c);
    psi_mdp_free(ctx, mdp);
    psi_ctx_free(ctx);
}

static void test_combination_lock(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(2);
    psi_mdp *mdp = combination_lock(ctx);
    const size_t expected[] = {4,  7,  11, 16, 22, 29, 37, 46,  56,
                               65, 73, 80, 86, 91, 95, 98, 100, 100};
    assert_counts(ctx, mdp, NULL, expected, 18);
    // the thresholds that also work for learned predictions, all states anew every time
    psi_refine_options options = psi_refine_defaults();
    options.gamma = 0.6;
    options.epsilon_sf = 0.8;
    options.epsilon_reward = 0.5;
    options.recluster = true;
    assert_counts(ctx, mdp, &options, expected, 18);
    psi_partition *c;
    assert_ok(ctx, psi_bisimulation(ctx, mdp, 0.0, &c));
    for (size_t s = 0; s < 1000; s++) {
        assert_int_equal(c->label[s] == 0, s / 10 == 99);
        assert_int_equal(c->label[s], c->label[s / 10 * 10]);
    }
    psi_partition_free(ctx, c);
    psi_mdp_free(ctx, mdp);
    psi_ctx_free(ctx);
}

// Pairwise and without cleverness: blocks are split by comparing everything with everything.
static psi_partition *naive_coarsest(psi_ctx *ctx, const psi_mdp *mdp)
{
    const size_t n = mdp->n_states, n_actions = mdp->n_actions;
    int32_t label[64], next[64];
    for (size_t s = 0; s < n; s++) label[s] = 0;
    for (bool changed = true; changed;) {
        int32_t fresh = 0;
        for (size_t s = 0; s < n; s++) {
            next[s] = -1;
            for (size_t t = 0; t < s && next[s] < 0; t++) {
                bool same = label[s] == label[t] && mdp->terminal[s] == mdp->terminal[t];
                for (size_t a = 0; a < n_actions && same; a++) {
                    double enter[64] = {0};
                    for (uint64_t i = mdp->offsets[s * n_actions + a];
                         i < mdp->offsets[s * n_actions + a + 1]; i++)
                        enter[label[mdp->next[i]]] += mdp->probability[i];
                    for (uint64_t i = mdp->offsets[t * n_actions + a];
                         i < mdp->offsets[t * n_actions + a + 1]; i++)
                        enter[label[mdp->next[i]]] -= mdp->probability[i];
                    for (size_t k = 0; k < 64; k++) same = same && fabs(enter[k]) < 1e-6;
                    same = same && fabs(mdp->reward[s * n_actions + a] -
                                        mdp->reward[t * n_actions + a]) < 1e-6;
                }
                if (same) next[s] = next[t];
            }
            if (next[s] < 0) next[s] = fresh++;
        }
        changed = memcmp(label, next, n * sizeof *label) != 0;
        memcpy(label, next, n * sizeof *label);
    }
    psi_partition *out;
    assert_ok(ctx, psi_partition_new(ctx, n, label, &out));
    return out;
}

static void test_random_models(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    size_t compressed = 0, several = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        planted_model model = random_planted(ctx, seed);
        psi_partition *coarsest, *small;
        assert_ok(ctx, psi_bisimulation(ctx, model.large, 0.0, &coarsest));
        assert_ok(ctx, psi_partition_check(ctx, coarsest));
        psi_partition *naive = naive_coarsest(ctx, model.large);
        assert_same(ctx, coarsest, naive, seed, "bisimulation and pairwise comparison");

        psi_refine_options options = psi_refine_defaults();
        for (int variant = 0; variant < 4; variant++) {
            options.norm = variant & 1 ? PSI_L1 : PSI_L2;
            options.recluster = variant & 2;
            psi_refinement *refinement;
            assert_ok(ctx, psi_refine(ctx, model.large, &options, &refinement));
            assert_true(refinement->converged);
            assert_same(ctx, refinement->partition, coarsest, seed, "refinement and bisimulation");
            for (size_t i = 1; i < refinement->n_refinements; i++)
                assert_true(refinement->clusters[i] >= refinement->clusters[i - 1]);
            psi_refinement_free(ctx, refinement);
        }
        // the planted partition, with the latent states that are themselves bisimilar joined
        assert_ok(ctx, psi_bisimulation(ctx, model.small, 0.0, &small));
        assert_ok(ctx, psi_partition_join(ctx, model.planted, small->label));
        assert_same(ctx, coarsest, model.planted, seed, "bisimulation and planted");
        compressed += coarsest->n_blocks < coarsest->n_states;
        several += coarsest->n_blocks > 3;

        psi_partition_free(ctx, small);
        psi_partition_free(ctx, naive);
        psi_partition_free(ctx, coarsest);
        planted_free(ctx, &model);
    }
    // the instances are not all trivial
    assert_true(compressed > SEEDS / 2);
    assert_true(several > SEEDS / 4);
    psi_ctx_free(ctx);
}

// Refinement never merges, whatever gamma and epsilon: each c_i is a sub-clustering of c_{i+1}.
static void test_refinement_never_merges(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    for (uint64_t seed = 0; seed < 60; seed++) {
        planted_model model = random_planted(ctx, seed);
        psi_refine_options options = psi_refine_defaults();
        options.gamma = 0.1 + 0.85 * (double)(seed % 10) / 10.0;
        options.epsilon_sf = seed % 3 ? 1e-6 : 0.3;
        psi_partition *before = NULL;
        for (options.max_refinements = 1; options.max_refinements < 8; options.max_refinements++) {
            psi_refinement *refinement;
            assert_ok(ctx, psi_refine(ctx, model.large, &options, &refinement));
            assert_ok(ctx, psi_partition_check(ctx, refinement->partition));
            bool holds = true;
            if (before)
                assert_ok(ctx, psi_partition_is_subclustering(ctx, before, refinement->partition,
                                                              &holds));
            assert_true(holds);
            psi_partition_free(ctx, before);
            assert_ok(ctx, psi_partition_new(ctx, refinement->partition->n_states,
                                             refinement->partition->label, &before));
            psi_refinement_free(ctx, refinement);
        }
        psi_partition_free(ctx, before);
        planted_free(ctx, &model);
    }
    psi_ctx_free(ctx);
}

// The same MDP with its states and actions in another order.
static psi_mdp *relabelled(psi_ctx *ctx, const psi_mdp *mdp, const uint32_t *state_order,
                           const uint32_t *action_order)
{
    model_builder b = builder_new(mdp->n_states, mdp->n_actions);
    for (size_t s = 0; s < mdp->n_states; s++) {
        b.terminal[state_order[s]] = mdp->terminal[s];
        for (size_t a = 0; a < mdp->n_actions; a++) {
            const size_t row = s * mdp->n_actions + a;
            b.reward[state_order[s] * mdp->n_actions + action_order[a]] = mdp->reward[row];
            for (uint64_t i = mdp->offsets[row]; i < mdp->offsets[row + 1]; i++)
                builder_add(&b, state_order[s], action_order[a], state_order[mdp->next[i]],
                            mdp->probability[i]);
        }
    }
    return builder_finish(ctx, &b);
}

static void test_relabelling_commutes(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    for (uint64_t seed = 0; seed < 100; seed++) {
        planted_model model = random_planted(ctx, seed);
        base_random r = base_random_stream(seed, 78, 0);
        uint32_t states[64], actions[8];
        base_random_shuffle(&r, states, model.large->n_states);
        base_random_shuffle(&r, actions, model.large->n_actions);
        psi_mdp *other = relabelled(ctx, model.large, states, actions);
        psi_refinement *a, *b;
        psi_partition *c;
        assert_ok(ctx, psi_refine(ctx, model.large, NULL, &a));
        assert_ok(ctx, psi_refine(ctx, other, NULL, &b));
        assert_ok(ctx, psi_bisimulation(ctx, other, 0.0, &c));
        assert_int_equal(a->n_refinements, b->n_refinements);
        for (size_t i = 0; i < a->n_refinements; i++)
            assert_int_equal(a->clusters[i], b->clusters[i]);
        assert_same(ctx, b->partition, c, seed, "relabelled refinement and bisimulation");
        for (size_t s = 0; s < other->n_states; s++) {
            for (size_t t = 0; t < s; t++) {
                assert_int_equal(a->partition->label[s] == a->partition->label[t],
                                 b->partition->label[states[s]] == b->partition->label[states[t]]);
            }
        }
        psi_partition_free(ctx, c);
        psi_refinement_free(ctx, a);
        psi_refinement_free(ctx, b);
        psi_mdp_free(ctx, other);
        planted_free(ctx, &model);
    }
    psi_ctx_free(ctx);
}

static void test_refused(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_mdp *mdp = column_world(ctx);
    psi_refinement *refinement;
    psi_refine_options options = psi_refine_defaults();
    options.gamma = 1.0;
    assert_status(ctx, psi_refine(ctx, mdp, &options, &refinement), PSI_EUSAGE);
    assert_null(refinement);
    options = psi_refine_defaults();
    options.epsilon_sf = 0.0;
    assert_status(ctx, psi_refine(ctx, mdp, &options, &refinement), PSI_EUSAGE);
    psi_partition *c;
    assert_status(ctx, psi_bisimulation(ctx, mdp, (double)NAN, &c), PSI_EUSAGE);
    psi_cancel(ctx);
    assert_status(ctx, psi_refine(ctx, mdp, NULL, &refinement), PSI_ECANCELLED);
    assert_status(ctx, psi_bisimulation(ctx, mdp, 0.0, &c), PSI_ECANCELLED);
    psi_mdp_free(ctx, mdp);
    psi_ctx_free(ctx);
}

static psi_status sweep_refine(psi_ctx *ctx, void *argument)
{
    psi_refinement *refinement;
    const psi_status status = psi_refine(ctx, argument, NULL, &refinement);
    psi_refinement_free(ctx, refinement);
    return status;
}

static psi_status sweep_bisimulation(psi_ctx *ctx, void *argument)
{
    psi_partition *c;
    const psi_status status = psi_bisimulation(ctx, argument, 0.0, &c);
    psi_partition_free(ctx, c);
    return status;
}

static void test_faults_in_refine(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_mdp *mdp = column_world(ctx);
    assert_true(test_fault_sweep(sweep_refine, mdp) > 50);
    assert_true(test_fault_sweep(sweep_bisimulation, mdp) > 20);
    psi_mdp_free(ctx, mdp);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_column_world),         cmocka_unit_test(test_combination_lock),
        cmocka_unit_test(test_random_models),        cmocka_unit_test(test_refinement_never_merges),
        cmocka_unit_test(test_relabelling_commutes), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_faults_in_refine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
