// Definition 2 of the paper, asked of models whose errors are known.
#include "support/collect.h"
#include "support/support.h"

#include <math.h>
#include <string.h>

enum { EPISODES = 40, LENGTH = 3, ROWS = EPISODES * (LENGTH + 1) };

// A chain 1 → 2 → 3 → end (0), each step of which earns what its state is worth.
typedef struct chain {
    int32_t labels[ROWS], actions[EPISODES * LENGTH];
    double rewards[EPISODES * LENGTH];
    uint64_t offsets[EPISODES + 1];
    uint8_t terminated[EPISODES];
} chain;

static psi_paths make_chain(chain *c)
{
    for (size_t e = 0; e < EPISODES; e++) {
        c->offsets[e] = e * LENGTH;
        c->terminated[e] = 1;
        for (size_t t = 0; t <= LENGTH; t++) {
            c->labels[e * (LENGTH + 1) + t] = t == LENGTH ? 0 : (int32_t)t + 1;
            if (t == LENGTH) continue;
            c->actions[e * LENGTH + t] = 0;
            c->rewards[e * LENGTH + t] = (double)t;
        }
    }
    c->offsets[EPISODES] = (uint64_t)EPISODES * LENGTH;
    return (psi_paths){.n_episodes = EPISODES,
                       .n_transitions = (size_t)EPISODES * LENGTH,
                       .n_actions = 2,
                       .n_latent = 4,
                       .has_terminal = true,
                       .labels = c->labels,
                       .actions = c->actions,
                       .rewards = c->rewards,
                       .episode_offsets = c->offsets,
                       .terminated = c->terminated};
}

static psi_mdp *count_model(psi_ctx *ctx, const psi_paths *paths)
{
    psi_counts *counts;
    psi_mdp *model;
    assert_ok(ctx, psi_counts_new(ctx, paths, &counts));
    assert_ok(ctx, psi_counts_model(ctx, counts, 1.0, &model));
    psi_counts_free(ctx, counts);
    return model;
}

static void a_model_of_the_same_law_has_no_error(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    static chain c;
    const psi_paths paths = make_chain(&c);
    psi_mdp *model = count_model(ctx, &paths);
    psi_certificate *made;
    assert_ok(ctx, psi_certify(ctx, model, 0.5, &paths, 0.1, 0.1, &made));
    assert_int_equal(made->judged, EPISODES * LENGTH);
    assert_int_equal(made->violating, 0);
    assert_int_equal(made->unseen, 3); // action 1 of the states that are not terminal
    assert_true(made->worst_reward == 0.0 && made->worst_sf == 0.0);
    assert_int_equal(made->mergeable, 0);
    for (size_t k = 1; k < 4; k++) {
        assert_int_equal(made->visits[k * 2], EPISODES);
        assert_int_equal(made->visits[k * 2 + 1], 0);
    }
    psi_certificate_free(ctx, made);
    psi_mdp_free(ctx, model);
    psi_ctx_free(ctx);
}

// Rewards of one state are off by 0.3, and another leads elsewhere.
static void errors_are_where_the_model_is_wrong(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    static chain c;
    const psi_paths paths = make_chain(&c);
    psi_mdp *model = count_model(ctx, &paths);
    psi_certificate *made;
    model->reward[2 * 2] += 0.3;
    assert_ok(ctx, psi_certify(ctx, model, 0.5, &paths, 0.2, 0.2, &made));
    assert_true(fabs(made->reward_error[4] - 0.3) < 1e-12 && made->reward_error[2] == 0.0);
    assert_true(fabs(made->worst_reward - 0.3) < 1e-12);
    assert_int_equal(made->violating, EPISODES);
    psi_certificate_free(ctx, made);
    assert_ok(ctx, psi_certify(ctx, model, 0.5, &paths, 0.4, 0.2, &made));
    assert_int_equal(made->violating, 0); // as much is allowed
    psi_certificate_free(ctx, made);

    model->next[model->offsets[2]] = 3; // 1 leads to 3 instead of 2
    assert_ok(ctx, psi_certify(ctx, model, 0.5, &paths, 0.4, 0.2, &made));
    assert_true(made->sf_error[2] > 0.2 && made->sf_error[4] == 0.0);
    assert_true(made->worst_sf == made->sf_error[2]); // every draw is the same: no doubt
    assert_int_equal(made->violating, EPISODES);
    psi_certificate_free(ctx, made);
    psi_mdp_free(ctx, model);
    psi_ctx_free(ctx);
}

// Few noisy rewards may be off by chance; many may not.
static void chance_explains_what_few_draws_show(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    static chain c;
    const psi_paths paths = make_chain(&c);
    psi_mdp *model = count_model(ctx, &paths);
    psi_certificate *made;
    for (size_t e = 0; e < EPISODES; e++) c.rewards[e * LENGTH] = e % 2 ? 1.0 : -1.0;
    assert_ok(ctx, psi_certify(ctx, model, 0.5, &paths, 0.1, 0.1, &made));
    // 40 draws of ±1: a mean of 0 with a standard error of 1/√40
    assert_true(fabs(made->reward_doubt[2] - 2.0 / sqrt(EPISODES)) < 1e-12);
    assert_true(made->reward_error[2] == 0.0);
    psi_certificate_free(ctx, made);
    model->reward[2] = 0.35; // within two standard errors and epsilon
    assert_ok(ctx, psi_certify(ctx, model, 0.5, &paths, 0.1, 0.1, &made));
    assert_int_equal(made->violating, 0);
    psi_certificate_free(ctx, made);
    model->reward[2] = 0.45;
    assert_ok(ctx, psi_certify(ctx, model, 0.5, &paths, 0.1, 0.1, &made));
    assert_int_equal(made->violating, EPISODES);
    psi_certificate_free(ctx, made);
    psi_mdp_free(ctx, model);
    psi_ctx_free(ctx);
}

static psi_status certify(psi_ctx *ctx, void *argument)
{
    const psi_paths *paths = argument;
    psi_counts *counts = NULL;
    psi_mdp *model = NULL;
    psi_certificate *made = NULL;
    psi_status status = psi_counts_new(ctx, paths, &counts);
    if (status == PSI_OK) status = psi_counts_model(ctx, counts, 1.0, &model);
    if (status == PSI_OK) status = psi_certify(ctx, model, 0.5, paths, 0.1, 0.1, &made);
    psi_certificate_free(ctx, made);
    psi_mdp_free(ctx, model);
    psi_counts_free(ctx, counts);
    return status;
}

static void other_shapes_and_refused_memory(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    static chain c;
    psi_paths paths = make_chain(&c);
    assert_in_range(test_fault_sweep(certify, &paths), 10, 500);
    psi_mdp *model = count_model(ctx, &paths);
    psi_certificate *made;
    paths.n_latent = 5;
    assert_status(ctx, psi_certify(ctx, model, 0.5, &paths, 0.1, 0.1, &made), PSI_ESHAPE);
    test_assert_error_says(ctx, "4 latent states");
    assert_null(made);
    psi_mdp_free(ctx, model);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_of_the_same_law_has_no_error),
        cmocka_unit_test(errors_are_where_the_model_is_wrong),
        cmocka_unit_test(chance_explains_what_few_draws_show),
        cmocka_unit_test(other_shapes_and_refused_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
