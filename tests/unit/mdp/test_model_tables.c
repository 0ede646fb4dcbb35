// A table with a row for every pair (s, a), as a model and back.
#include "models.h"

#include "mdp/model_tables.h"

static void assert_same_table(const psi_mdp *a, const psi_mdp *b)
{
    const size_t n_rows = a->n_states * a->n_actions;
    assert_int_equal(a->n_states, b->n_states);
    assert_int_equal(a->n_actions, b->n_actions);
    assert_memory_equal(a->offsets, b->offsets, (n_rows + 1) * sizeof *a->offsets);
    assert_memory_equal(a->next, b->next, a->offsets[n_rows] * sizeof *a->next);
    assert_memory_equal(a->reward, b->reward, n_rows * sizeof *a->reward);
    assert_memory_equal(a->terminal, b->terminal, a->n_states);
    for (uint64_t i = 0; i < a->offsets[n_rows]; i++)
        assert_true(fabs(a->probability[i] - b->probability[i]) < 1e-15);
}

static void test_there_and_back(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    for (uint64_t seed = 0; seed < 100; seed++) {
        planted_model planted = random_planted(ctx, seed);
        psi_model *model;
        psi_mdp *back;
        assert_ok(ctx, psi_model_from_mdp(ctx, planted.large, &model));
        assert_ok(ctx, psi_mdp_from_model(ctx, model, seed % 2 ? "reward" : NULL, &back));
        assert_same_table(planted.large, back);
        psi_mdp_free(ctx, back);
        assert_status(ctx, psi_mdp_from_model(ctx, model, "loss", &back), PSI_EUSAGE);
        test_assert_error_says(ctx, "no reward 'loss'");
        assert_null(back);
        psi_model_free(ctx, model);
        planted_free(ctx, &planted);
    }
    psi_ctx_free(ctx);
}

// Two states of which the second has action 1 only; both go to a third, which ends. Six digits.
static psi_model *with_a_gap(psi_ctx *ctx)
{
    static const uint64_t choices[] = {0, 2, 3, 3}, offsets[] = {0, 3, 4, 5};
    static const int32_t next[] = {0, 1, 2, 2, 2}, action[] = {0, 1, 1};
    static const double probability[] = {0.333333, 0.333333, 0.333333, 1.0, 1.0};
    psi_model *model;
    psi_model_reward *gain;
    assert_ok(ctx, psi_model_new(ctx, 3, 3, 5, &model));
    memcpy(model->choices, choices, sizeof choices);
    memcpy(model->offsets, offsets, sizeof offsets);
    memcpy(model->next, next, sizeof next);
    memcpy(model->action, action, sizeof action);
    memcpy(model->probability, probability, sizeof probability);
    model->n_actions = 2;
    assert_ok(ctx, psi_model_add_reward(ctx, model, "gain", true, true, &gain));
    gain->state[0] = 1.0;
    gain->choice[1] = 0.5;
    return model;
}

static void test_missing_actions(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_model *model = with_a_gap(ctx);
    psi_mdp *table;
    assert_ok(ctx, psi_mdp_from_model(ctx, model, "gain", &table));
    assert_int_equal(table->n_states, 3);
    assert_false(psi_mdp_seen(table, 1, 0));
    assert_true(table->probability[0] == 1.0 / 3.0);
    assert_memory_equal(table->reward, ((double[]){1, 1.5, 0, 0, 0, 0}), 6 * sizeof(double));
    assert_memory_equal(table->terminal, ((uint8_t[]){0, 0, 1}), 3);
    psi_mdp_free(ctx, table);

    assert_ok(ctx, mdp_table_of(ctx, model, NULL, true, &table));
    assert_int_equal(table->n_states, 4);
    assert_ok(ctx, psi_mdp_check(ctx, table, true));
    assert_int_equal(table->next[table->offsets[2]], 3); // (1, 0) leads to the extra state
    assert_memory_equal(table->terminal, ((uint8_t[]){0, 0, 1, 1}), 4);
    psi_mdp_free(ctx, table);
    psi_model_free(ctx, model);
    psi_ctx_free(ctx);
}

static void test_refusals(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_model *model = with_a_gap(ctx);
    psi_mdp *table;
    model->action[1] = 0;
    assert_status(ctx, psi_mdp_from_model(ctx, model, NULL, &table), PSI_EUNSUPPORTED);
    test_assert_error_says(ctx, "state 0 has two choices with action 0");
    model->action[1] = 1;
    model->rewards[0].state[2] = 1.0;
    assert_status(ctx, psi_mdp_from_model(ctx, model, NULL, &table), PSI_EUNSUPPORTED);
    test_assert_error_says(ctx, "state 2 has a reward and no choice");
    model->rewards[0].state[2] = 0.0;
    model->next[4] = 3;
    assert_status(ctx, psi_mdp_from_model(ctx, model, NULL, &table), PSI_EDATA);
    assert_null(table);
    psi_model_free(ctx, model);
    psi_ctx_free(ctx);
}

static psi_status tabulate(psi_ctx *ctx, void *argument)
{
    psi_mdp *table;
    const psi_status status = mdp_table_of(ctx, argument, NULL, true, &table);
    psi_mdp_free(ctx, table);
    return status;
}

static void test_faults_everywhere(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_model *model = with_a_gap(ctx);
    assert_true(test_fault_sweep(tabulate, model) > 8);
    psi_model_free(ctx, model);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_missing_actions),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_faults_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
