// Quotients: of the coarsest bisimulation they are exact, and a quotient has no smaller one.
#include "models.h"

static void test_quotient_of_quotient(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    for (uint64_t seed = 0; seed < 200; seed++) {
        planted_model model = random_planted(ctx, seed);
        psi_partition *c, *again;
        psi_mdp *quotient, *second;
        double defect;
        assert_ok(ctx, psi_bisimulation(ctx, model.large, 0.0, &c));
        assert_ok(ctx, psi_quotient(ctx, model.large, c, &quotient, &defect));
        assert_ok(ctx, psi_mdp_check(ctx, quotient, true));
        assert_true(defect < 1e-14);
        assert_int_equal(quotient->n_states, c->n_blocks);
        assert_ok(ctx, psi_bisimulation(ctx, quotient, 0.0, &again));
        assert_int_equal(again->n_blocks, again->n_states);
        // canonical numbering keeps the order of first appearance: the same model, byte by byte
        assert_ok(ctx, psi_quotient(ctx, quotient, again, &second, &defect));
        assert_true(defect == 0.0);
        const size_t rows = quotient->n_states * quotient->n_actions;
        assert_memory_equal(quotient->offsets, second->offsets, (rows + 1) * sizeof(uint64_t));
        assert_memory_equal(quotient->next, second->next,
                            quotient->offsets[rows] * sizeof(int32_t));
        assert_memory_equal(quotient->probability, second->probability,
                            quotient->offsets[rows] * sizeof(double));
        assert_memory_equal(quotient->reward, second->reward, rows * sizeof(double));
        psi_mdp_free(ctx, second);
        psi_partition_free(ctx, again);
        psi_mdp_free(ctx, quotient);
        psi_partition_free(ctx, c);
        planted_free(ctx, &model);
    }
    psi_ctx_free(ctx);
}

static void test_planted_fault_is_seen(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_mdp *mdp = column_world(ctx), *quotient;
    psi_partition *c;
    double defect, reward_error, sf_error;
    // all in one block: rewards differ by 3/4 from the mean, nothing else does
    assert_ok(ctx, psi_partition_new(ctx, 16, NULL, &c));
    assert_ok(ctx, psi_quotient(ctx, mdp, c, &quotient, &defect));
    assert_true(fabs(defect - 0.75) < 1e-12);
    psi_mdp_free(ctx, quotient);
    assert_ok(ctx, psi_reward_predictive_error(ctx, mdp, c, 0.9, &reward_error, &sf_error));
    assert_true(fabs(reward_error - 0.75) < 1e-12);
    assert_true(sf_error < 1e-12);
    psi_partition_free(ctx, c);
    // the reward refinement alone: rewards are right, successor features are not
    int32_t label[16];
    for (size_t s = 0; s < 16; s++) label[s] = s % 4 == 3;
    assert_ok(ctx, psi_partition_new(ctx, 16, label, &c));
    assert_ok(ctx, psi_reward_predictive_error(ctx, mdp, c, 0.9, &reward_error, &sf_error));
    assert_true(reward_error == 0.0);
    assert_true(sf_error > 0.1);
    psi_partition_free(ctx, c);
    // states without a label, and too few of them
    label[3] = -1;
    assert_ok(ctx, psi_partition_new(ctx, 16, label, &c));
    assert_status(ctx, psi_quotient(ctx, mdp, c, &quotient, NULL), PSI_EDATA);
    psi_partition_free(ctx, c);
    assert_ok(ctx, psi_partition_new(ctx, 15, NULL, &c));
    assert_status(ctx, psi_quotient(ctx, mdp, c, &quotient, NULL), PSI_ESHAPE);
    assert_null(quotient);
    psi_partition_free(ctx, c);
    psi_mdp_free(ctx, mdp);
    mdp = combination_lock(ctx);
    assert_ok(ctx, psi_partition_new(ctx, 1000, NULL, &c));
    assert_status(ctx, psi_quotient(ctx, mdp, c, &quotient, NULL), PSI_EDATA);
    test_assert_error_says(ctx, "terminal");
    psi_partition_free(ctx, c);
    psi_mdp_free(ctx, mdp);
    psi_ctx_free(ctx);
}

static psi_status sweep(psi_ctx *ctx, void *argument)
{
    const planted_model *model = argument;
    psi_mdp *quotient;
    double defect, reward_error, sf_error;
    psi_status status = psi_quotient(ctx, model->large, model->planted, &quotient, &defect);
    psi_mdp_free(ctx, quotient);
    if (!status)
        status = psi_reward_predictive_error(ctx, model->large, model->planted, 0.5, &reward_error,
                                             &sf_error);
    return status;
}

static void test_faults_in_quotient(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    planted_model model = random_planted(ctx, 3);
    assert_true(test_fault_sweep(sweep, &model) > 30);
    planted_free(ctx, &model);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quotient_of_quotient),
        cmocka_unit_test(test_planted_fault_is_seen),
        cmocka_unit_test(test_faults_in_quotient),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
