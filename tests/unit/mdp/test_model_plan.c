// Planning on sparse models: known probabilities, end components, and bounds that hold.
#include "models.h"

#include "base/context.h"

// A walk on 0 … 10 that goes up with probability p: gambler's ruin, 10 is "rich".
static psi_model *ruin(psi_ctx *ctx, double p)
{
    psi_model *model;
    uint8_t *rich;
    assert_ok(ctx, psi_model_new(ctx, 11, 9, 18, &model));
    assert_ok(ctx, psi_model_add_label(ctx, model, "rich", &rich));
    rich[10] = 1;
    model->n_actions = 1;
    model->initial[5] = 1;
    model->choices[0] = 0;
    for (size_t s = 0; s < 11; s++) {
        const bool inside = s > 0 && s < 10;
        model->choices[s + 1] = model->choices[s] + inside;
        if (!inside) continue;
        model->action[s - 1] = 0;
        model->offsets[s - 1] = 2 * (s - 1);
        model->next[2 * s - 2] = (int32_t)s + 1, model->probability[2 * s - 2] = p;
        model->next[2 * s - 1] = (int32_t)s - 1, model->probability[2 * s - 1] = 1.0 - p;
    }
    model->offsets[9] = 18;
    return model;
}

static void test_ruin(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    for (int i = 0; i < 4; i++) {
        const double p = i < 2 ? 0.5 : 0.4, odds = (1.0 - p) / p;
        psi_model *model = ruin(ctx, p);
        psi_model_plan_options how = psi_model_plan_defaults();
        psi_model_plan *plan;
        how.target = "rich";
        how.minimise = i % 2;
        assert_ok(ctx, psi_model_plan_find(ctx, model, &how, &plan));
        assert_true(plan->converged);
        for (int s = 0; s < 11; s++) {
            const double truth = p == 0.5 ? s / 10.0 : (pow(odds, s) - 1.0) / (pow(odds, 10) - 1.0);
            assert_true(plan->lower[s] <= truth + 1e-12 && truth <= plan->upper[s] + 1e-12);
            assert_true(plan->upper[s] - plan->lower[s] <= 1e-6);
        }
        psi_model_plan_free(ctx, plan);
        psi_model_free(ctx, model);
    }
    psi_ctx_free(ctx);
}

// States 0 and 1 can stay with each other for ever; 0 may gamble for 2 with probability .3, 1 for
// .7. From above, values that stay would never come down without looking for ways out.
static void test_end_component(void **state)
{
    (void)state;
    static const uint64_t choices[] = {0, 2, 4, 4, 4}, offsets[] = {0, 1, 3, 4, 6};
    static const int32_t next[] = {1, 2, 3, 0, 2, 3}, action[] = {0, 1, 0, 1};
    static const double probability[] = {1.0, 0.3, 0.7, 1.0, 0.7, 0.3};
    psi_ctx *ctx = test_ctx(1);
    psi_model *model;
    psi_model_plan *plan;
    uint8_t *goal;
    assert_ok(ctx, psi_model_new(ctx, 4, 4, 6, &model));
    assert_ok(ctx, psi_model_add_label(ctx, model, "goal", &goal));
    goal[2] = 1;
    model->n_actions = 2;
    memcpy(model->choices, choices, sizeof choices);
    memcpy(model->offsets, offsets, sizeof offsets);
    memcpy(model->next, next, sizeof next);
    memcpy(model->action, action, sizeof action);
    memcpy(model->probability, probability, sizeof probability);
    psi_model_plan_options how = psi_model_plan_defaults();
    how.target = "goal";
    assert_ok(ctx, psi_model_plan_find(ctx, model, &how, &plan));
    assert_true(plan->converged && plan->sweeps < 10);
    assert_true(fabs(plan->lower[0] - 0.7) < 1e-6 && fabs(plan->upper[1] - 0.7) < 1e-6);
    assert_int_equal(plan->choice[0], 0); // over to 1 …
    assert_int_equal(plan->choice[1], 1); // … and from there
    psi_model_plan_free(ctx, plan);
    how.minimise = true;
    assert_ok(ctx, psi_model_plan_find(ctx, model, &how, &plan));
    assert_true(plan->upper[0] == 0.0 && plan->upper[1] == 0.0); // by staying
    psi_model_plan_free(ctx, plan);
    psi_model_free(ctx, model);
    psi_ctx_free(ctx);
}

// Discounted rewards: the values of value iteration lie between the bounds, and those of the
// quotient are those of its states.
static void test_discounted(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(2);
    for (uint64_t seed = 0; seed < 60; seed++) {
        planted_model planted = random_planted(ctx, seed);
        psi_model *model;
        psi_plan *truth;
        psi_model_plan *plan, *small;
        psi_quotient_result *found;
        const psi_quotient_options exactly = {.size = sizeof exactly, .tolerance = 1e-9};
        assert_ok(ctx, psi_model_from_mdp(ctx, planted.large, &model));
        assert_ok(ctx, psi_value_iteration(ctx, planted.large, NULL, &truth));
        assert_ok(ctx, psi_model_plan_find(ctx, model, NULL, &plan));
        assert_ok(ctx, psi_quotient_find(ctx, model, &exactly, &found));
        assert_ok(ctx, psi_model_plan_find(ctx, found->model, NULL, &small));
        assert_true(plan->converged && small->converged);
        for (size_t s = 0; s < model->n_states; s++) {
            const int32_t k = found->partition->label[s];
            assert_true(plan->lower[s] <= truth->value[s] + 1e-8);
            assert_true(truth->value[s] <= plan->upper[s] + 1e-8);
            assert_true(fabs(plan->lower[s] - small->lower[k]) < 1e-4);
        }
        psi_model_plan_free(ctx, small);
        psi_quotient_free(ctx, found);
        psi_model_plan_free(ctx, plan);
        psi_plan_free(ctx, truth);
        psi_model_free(ctx, model);
        planted_free(ctx, &planted);
    }
    psi_ctx_free(ctx);
}

static psi_status plan_in(psi_ctx *ctx, void *argument)
{
    psi_model_plan_options how = psi_model_plan_defaults();
    psi_model_plan *plan;
    how.target = "rich";
    const psi_status status = psi_model_plan_find(ctx, argument, &how, &plan);
    psi_model_plan_free(ctx, plan);
    return status;
}

static void test_refusals_and_faults(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_model *model = ruin(ctx, 0.5);
    psi_model_plan *plan;
    psi_model_plan_options how = psi_model_plan_defaults();
    assert_status(ctx, psi_model_plan_find(ctx, model, &how, &plan), PSI_EUSAGE);
    test_assert_error_says(ctx, "no reward");
    how.target = "poor";
    assert_status(ctx, psi_model_plan_find(ctx, model, &how, &plan), PSI_EUSAGE);
    test_assert_error_says(ctx, "no label 'poor'");
    how.gamma = 1.0;
    assert_status(ctx, psi_model_plan_find(ctx, model, &how, &plan), PSI_EUSAGE);
    assert_true(test_fault_sweep(plan_in, model) > 10);
    psi_model_free(ctx, model);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ruin),
        cmocka_unit_test(test_end_component),
        cmocka_unit_test(test_discounted),
        cmocka_unit_test(test_refusals_and_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
