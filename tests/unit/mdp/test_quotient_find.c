// Exact quotients against brute force on random small models, and the properties they must have.
#include "support/counted.h"
#include "support/support.h"

#include "base/random.h"
#include "mdp/sparse_model.h"

#include <math.h>
#include <string.h>
#include <time.h>

// Any partition that the found one refines must lead to the found one.
static void check_start(psi_ctx *ctx, const psi_model *model, const psi_quotient_options *options,
                        const psi_partition *found, base_random *r)
{
    int32_t target[COUNTED_STATES], label[COUNTED_STATES], n = 0, name[COUNTED_STATES];
    psi_quotient_options from = *options;
    psi_partition *start;
    psi_quotient_result *again;
    bool equal;
    for (size_t k = 0; k < found->n_blocks; k++) {
        target[k] = (int32_t)base_random_below(r, 3);
        name[k] = -1;
    }
    for (size_t s = 0; s < found->n_states; s++) {
        int32_t *own = &name[target[found->label[s]]];
        if (found->n_blocks < 3) own = &name[0];
        if (*own < 0) *own = n++;
        label[s] = *own;
    }
    assert_ok(ctx, psi_partition_new(ctx, found->n_states, label, &start));
    from.start = start;
    assert_ok(ctx, psi_quotient_find(ctx, model, &from, &again));
    assert_ok(ctx, psi_partition_equal(ctx, again->partition, found, &equal));
    assert_true(equal);
    psi_quotient_free(ctx, again);
    psi_partition_free(ctx, start);
}

static void check_quotient(psi_ctx *ctx, const psi_model *model,
                           const psi_quotient_options *options, const psi_quotient_result *found)
{
    psi_quotient_result *again;
    assert_ok(ctx, psi_model_check(ctx, found->model));
    assert_ok(ctx, psi_quotient_find(ctx, found->model, options, &again));
    assert_int_equal(again->partition->n_blocks, found->model->n_states);
    assert_int_equal(again->model->n_choices, found->model->n_choices);
    assert_int_equal(again->model->n_transitions, found->model->n_transitions);
    for (size_t i = 0; i < found->model->n_transitions; i++) {
        assert_int_equal(again->model->next[i], found->model->next[i]);
        assert_true(again->model->probability[i] == found->model->probability[i]);
    }
    psi_quotient_free(ctx, again);
    (void)model;
}

static void test_brute_force(void **state)
{
    (void)state;
    psi_ctx *ctx[2] = {test_ctx(1), test_ctx(2)};
    size_t folded = 0;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        const counted m = counted_random(seed);
        base_random r = base_random_stream(seed, 903, 0);
        psi_ctx *own = ctx[seed % 8 == 0]; // threads that wait for each other take long
        for (int variant = 0; variant < 4; variant++) {
            const bool named = variant % 2 == 0, turned = variant >= 2;
            const psi_quotient_options options = {.size = sizeof options, .ignore_actions = !named};
            int32_t label[COUNTED_STATES];
            uint32_t order[COUNTED_STATES];
            psi_quotient_result *found;
            for (uint32_t s = 0; s < m.n; s++) order[s] = s;
            if (turned) base_random_shuffle(&r, order, m.n);
            psi_model *model = counted_to_model(own, &m, order, turned);
            counted_blocks(&m, named, label);
            assert_ok(own, psi_quotient_find(own, model, &options, &found));
            counted_assert_blocks(own, found->partition, label, order);
            assert_int_equal(found->n_verified, 1);
            folded += found->partition->n_blocks < m.n;
            check_quotient(own, model, &options, found);
            check_start(own, model, &options, found->partition, &r);
            psi_quotient_free(own, found);
            psi_model_free(own, model);
        }
    }
    assert_true(folded > 2000); // a test of models without anything to fold would show nothing
    psi_ctx_free(ctx[1]);
    psi_ctx_free(ctx[0]);
}

// n states one behind the other, the last with a reward: every one is a block of its own.
static psi_model *chain_of(psi_ctx *ctx, size_t n)
{
    psi_model *model;
    psi_model_reward *reward;
    assert_ok(ctx, psi_model_new(ctx, n, n, n, &model));
    assert_ok(ctx, mdp_model_add_reward(ctx, model, "gain", 4, true, false, &reward));
    for (size_t s = 0; s < n; s++) {
        model->choices[s] = model->offsets[s] = s;
        model->next[s] = (int32_t)(s + 1 < n ? s + 1 : s);
        model->probability[s] = 1.0;
        model->action[s] = 0;
    }
    model->choices[n] = model->offsets[n] = n;
    model->n_actions = 1;
    model->chain = true;
    reward->state[n - 1] = 1.0;
    return model;
}

static void test_chain(void **state)
{
    (void)state;
    enum { LENGTH = 200000 };
    psi_ctx *ctx = test_ctx(2);
    psi_model *model = chain_of(ctx, LENGTH);
    psi_quotient_result *found;
    const clock_t before = clock();
    assert_ok(ctx, psi_quotient_find(ctx, model, NULL, &found));
    assert_int_equal(found->partition->n_blocks, LENGTH);
    // naive rounds would need minutes of the processor, whoever else works on the machine
    assert_true((double)(clock() - before) / CLOCKS_PER_SEC < 20.0);
    psi_quotient_free(ctx, found);
    psi_quotient_options options = {.size = sizeof options, .rewards = ""};
    assert_ok(ctx, psi_quotient_find(ctx, model, &options, &found));
    assert_int_equal(found->partition->n_blocks, 1);
    psi_quotient_free(ctx, found);
    psi_cancel(ctx);
    assert_status(ctx, psi_quotient_find(ctx, model, NULL, &found), PSI_ECANCELLED);
    assert_null(found);
    psi_model_free(ctx, model);
    psi_ctx_free(ctx);
}

// Two copies whose probabilities differ by rounding noise, or by more.
static psi_model *noisy_pair(psi_ctx *ctx, double noise)
{
    psi_model *model;
    psi_model_reward *reward;
    static const int32_t next[] = {2, 3, 2, 3, 2, 3};
    assert_ok(ctx, psi_model_new(ctx, 4, 4, 6, &model));
    assert_ok(ctx, mdp_model_add_reward(ctx, model, "gain", 4, true, false, &reward));
    for (size_t c = 0; c <= 4; c++) {
        model->choices[c] = c;
        model->offsets[c] = c < 3 ? 2 * c : c + 2;
    }
    memcpy(model->next, next, sizeof next);
    model->probability[0] = 0.3, model->probability[1] = 0.7;
    model->probability[2] = 0.3 + noise, model->probability[3] = 0.7 - noise;
    model->probability[4] = model->probability[5] = 1.0;
    memset(model->action, 0, 4 * sizeof *model->action);
    model->n_actions = 1;
    reward->state[3] = 1.0;
    return model;
}

static void test_tolerance(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_quotient_result *found;
    for (int i = 0; i < 3; i++) {
        const double noise = i == 0 ? 1e-10 : i == 1 ? 1e-4 : 1e-2;
        psi_model *model = noisy_pair(ctx, noise);
        assert_ok(ctx, psi_quotient_find(ctx, model, NULL, &found));
        assert_int_equal(found->partition->n_blocks, 4);
        assert_true(found->defect == 0.0);
        psi_quotient_free(ctx, found);
        const psi_quotient_options options = {.size = sizeof options, .tolerance = 1e-3};
        assert_ok(ctx, psi_quotient_find(ctx, model, &options, &found));
        assert_int_equal(found->partition->n_blocks, i < 2 ? 3 : 4);
        assert_true(fabs(found->defect - (i < 2 ? noise : 0.0)) < 1e-12);
        psi_quotient_free(ctx, found);
        psi_model_free(ctx, model);
    }
    psi_ctx_free(ctx);
}

static bool has_repeated_action(const counted *m)
{
    for (size_t s = 0; s < m->n; s++)
        for (size_t c = 0; c < m->n_choices[s]; c++)
            for (size_t d = 0; d < c; d++)
                if (m->action[s][c] == m->action[s][d]) return true;
    return false;
}

// Algorithm 1 finds the same blocks by successor features, whichever actions states lack.
static void test_successor_features(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    uint32_t order[COUNTED_STATES];
    size_t compared = 0;
    for (uint32_t s = 0; s < COUNTED_STATES; s++) order[s] = s;
    for (uint64_t seed = 0; seed < 500; seed++) {
        const counted m = counted_random(seed);
        const psi_quotient_options options = {.size = sizeof options, .epsilon_sf = 1e-7};
        psi_model *model = counted_to_model(ctx, &m, order, false);
        psi_quotient_result *found;
        if (has_repeated_action(&m)) {
            assert_status(ctx, psi_quotient_find(ctx, model, &options, &found), PSI_EUNSUPPORTED);
        } else {
            int32_t label[COUNTED_STATES];
            counted_blocks(&m, true, label);
            assert_ok(ctx, psi_quotient_find(ctx, model, &options, &found));
            counted_assert_blocks(ctx, found->partition, label, order);
            assert_ok(ctx, psi_model_check(ctx, found->model));
            assert_int_equal(found->model->n_states, found->partition->n_blocks);
            assert_true(found->defect < 1e-12 && found->n_passes > 0 && found->bytes > 0);
            compared += found->partition->n_blocks < m.n;
            psi_quotient_free(ctx, found);
        }
        psi_model_free(ctx, model);
    }
    assert_true(compared > 200);
    psi_ctx_free(ctx);
}

// Within an epsilon that is too large, states come together that differ, and the defect says so.
static void test_large_epsilon(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_model *model = noisy_pair(ctx, 0.01);
    psi_quotient_result *found;
    psi_quotient_options options = {.size = sizeof options, .epsilon_sf = 0.1};
    assert_ok(ctx, psi_quotient_find(ctx, model, &options, &found));
    assert_int_equal(found->partition->n_blocks, 3);
    assert_true(fabs(found->defect - 0.01) < 1e-12);
    psi_quotient_free(ctx, found);
    options.tolerance = 0.1;
    assert_status(ctx, psi_quotient_find(ctx, model, &options, &found), PSI_EUSAGE);
    options = (psi_quotient_options){
        .size = sizeof(psi_quotient_options), .epsilon_sf = 0.1, .ignore_actions = true};
    assert_status(ctx, psi_quotient_find(ctx, model, &options, &found), PSI_EUSAGE);
    options = (psi_quotient_options){.size = sizeof(psi_quotient_options), .epsilon_sf = -1.0};
    assert_status(ctx, psi_quotient_find(ctx, model, &options, &found), PSI_EUSAGE);
    options = (psi_quotient_options){
        .size = sizeof(psi_quotient_options), .epsilon_sf = 0.1, .gamma = 1.0};
    assert_status(ctx, psi_quotient_find(ctx, model, &options, &found), PSI_EUSAGE);
    psi_model_reward *second;
    assert_ok(ctx, psi_model_add_reward(ctx, model, "loss", true, false, &second));
    options = (psi_quotient_options){.size = sizeof(psi_quotient_options), .epsilon_sf = 1e-7};
    assert_status(ctx, psi_quotient_find(ctx, model, &options, &found), PSI_EUSAGE);
    test_assert_error_says(ctx, "rewards 'gain' and 'loss'");
    options.rewards = "loss"; // all zeros: nothing to keep apart
    assert_ok(ctx, psi_quotient_find(ctx, model, &options, &found));
    assert_int_equal(found->partition->n_blocks, 1);
    psi_quotient_free(ctx, found);
    psi_model_free(ctx, model);
    psi_ctx_free(ctx);
}

// Rewards of states within a cell count in the defect, too.
static void test_reward_defect(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_model *model = noisy_pair(ctx, 0.0);
    const psi_quotient_options options = {.size = sizeof options, .tolerance = 1e-2};
    psi_quotient_result *found;
    model->rewards[0].state[1] = 1e-3;
    assert_ok(ctx, psi_quotient_find(ctx, model, &options, &found));
    assert_int_equal(found->partition->n_blocks, 3);
    assert_true(fabs(found->defect - 1e-3) < 1e-12);
    psi_quotient_free(ctx, found);
    psi_model_free(ctx, model);
    psi_ctx_free(ctx);
}

static void test_refusals(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_model *model = chain_of(ctx, 5);
    psi_quotient_result *found;
    psi_quotient_options options = {.size = sizeof options, .labels = "nowhere"};
    assert_status(ctx, psi_quotient_find(ctx, model, &options, &found), PSI_EUSAGE);
    test_assert_error_says(ctx, "no label 'nowhere'");
    options = (psi_quotient_options){.size = sizeof(psi_quotient_options), .rewards = "gain,loss"};
    assert_status(ctx, psi_quotient_find(ctx, model, &options, &found), PSI_EUSAGE);
    test_assert_error_says(ctx, "no reward 'loss'");
    options =
        (psi_quotient_options){.size = sizeof(psi_quotient_options), .tolerance = (double)NAN};
    assert_status(ctx, psi_quotient_find(ctx, model, &options, &found), PSI_EUSAGE);
    model->probability[2] = 0.5;
    assert_status(ctx, psi_quotient_find(ctx, model, NULL, &found), PSI_EDATA);
    test_assert_error_says(ctx, "state 2 sum to 0.5");
    model->probability[2] = 1.0;
    model->next[3] = 5;
    assert_status(ctx, psi_quotient_find(ctx, model, NULL, &found), PSI_EDATA);
    test_assert_error_says(ctx, "leads to state 5");
    psi_model_free(ctx, model);
    psi_ctx_free(ctx);
}

static psi_status find_in(psi_ctx *ctx, void *argument)
{
    psi_quotient_result *found;
    const psi_quotient_options options = {.size = sizeof options, .ignore_actions = true},
                               features = {.size = sizeof features, .epsilon_sf = 1e-7};
    psi_status status = psi_quotient_find(ctx, argument, NULL, &found);
    if (status == PSI_OK) psi_quotient_free(ctx, found);
    if (status == PSI_OK) status = psi_quotient_find(ctx, argument, &features, &found);
    if (status == PSI_OK) psi_quotient_free(ctx, found);
    if (status == PSI_OK) status = psi_quotient_find(ctx, argument, &options, &found);
    if (status == PSI_OK) psi_quotient_free(ctx, found);
    return status;
}

static void test_faults_everywhere(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    uint32_t order[COUNTED_STATES];
    for (uint32_t s = 0; s < COUNTED_STATES; s++) order[s] = s;
    for (uint64_t seed = 4; seed < 8; seed++) { // one of each shape
        const counted m = counted_random(seed);
        psi_model *model = counted_to_model(ctx, &m, order, false);
        assert_true(test_fault_sweep(find_in, model) > 40);
        psi_model_free(ctx, model);
    }
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_brute_force),   cmocka_unit_test(test_chain),
        cmocka_unit_test(test_tolerance),     cmocka_unit_test(test_successor_features),
        cmocka_unit_test(test_large_epsilon), cmocka_unit_test(test_reward_defect),
        cmocka_unit_test(test_refusals),      cmocka_unit_test(test_faults_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
