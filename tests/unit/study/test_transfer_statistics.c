// The transfer study's statistics and claims, on scores that are made up so that the answers are
// known.
#include "support/studies.h"
#include "support/support.h"

#include "study/transfer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SEEDS = 8, N = TRANSFER_TASKS * TRANSFER_AGENTS * SEEDS };

// Agent a earns 0.1 · (a + 1) a step with seed 0 and a little more with each further one;
// pretrained did not take part in the first task.
static transfer_study made_up(psi_trial *trials)
{
    transfer_study transfer = {.seeds = SEEDS, .episodes = 2, .trials = trials};
    memset(trials, 0, N * sizeof *trials);
    for (size_t task = 0; task < TRANSFER_TASKS; task++) {
        transfer.optimum[task].reward_per_step = 2.0;
        for (size_t agent = 0; agent < TRANSFER_AGENTS; agent++) {
            for (size_t s = 0; s < SEEDS; s++) {
                psi_trial *trial = transfer_trial(&transfer, task, agent, s);
                trial->finished = task > 0 || agent != PSI_AGENT_PRETRAINED;
                trial->score.reward_per_step =
                    0.1 * (double)(agent + 1) + 0.001 * (double)s * (double)(task + 1);
            }
        }
    }
    return transfer;
}

static void means_are_those_of_the_middle_half(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_trial trials[N];
    const transfer_study transfer = made_up(trials);
    psi_interval found;
    assert_ok(ctx, study_transfer_iqm(ctx, &transfer, 1, 0, 0, false, &found));
    assert_true(fabs(found.estimate - (0.2 + 0.0035)) < 1e-12); // seeds 2 … 5 of 8
    assert_true(found.low <= found.estimate && found.estimate <= found.high);
    assert_ok(ctx, study_transfer_iqm(ctx, &transfer, 1, 1, 3, true, &found));
    assert_true(found.estimate > 0.1 && found.estimate < 0.12); // half of it: a share of 2
    psi_ctx_free(ctx);
}

static void who_always_wins_wins_with_certainty(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_trial trials[N];
    const transfer_study transfer = made_up(trials);
    psi_interval found;
    assert_ok(ctx, study_transfer_improvement(ctx, &transfer, 3, 0, 1, 3, &found));
    assert_true(found.estimate == 1.0 && found.low == 1.0);
    assert_ok(ctx, study_transfer_improvement(ctx, &transfer, 0, 3, 1, 3, &found));
    assert_true(found.estimate == 0.0 && found.high == 0.0);
    assert_ok(ctx, study_transfer_improvement(ctx, &transfer, 2, 2, 1, 1, &found));
    assert_true(fabs(found.estimate - 0.5) < 1e-12);
    psi_ctx_free(ctx);
}

static void claims_follow_from_the_scores(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_trial trials[N];
    const transfer_study transfer = made_up(trials);
    psi_study_options options = psi_study_defaults();
    study of = {.ctx = ctx, .how = &options, .results = json_pack("{s:[]}", "claims")};
    json_t *statistics = json_object(), *claim;
    size_t i, orders = 0;
    assert_ok(ctx, study_transfer_iqms(ctx, &transfer, statistics));
    assert_ok(ctx, study_transfer_profiles(ctx, &transfer, statistics));
    assert_ok(ctx, study_transfer_claims(&of, &transfer, statistics));
    assert_null(json_object_get(json_object_get(json_object_get(statistics, "iqm"), "train"),
                                "pretrained"));
    // agents with a higher number earn more: reward-predictive beats dqn and pretrained everywhere
    json_array_foreach(json_object_get(of.results, "claims"), i, claim)
    {
        const char *words = json_string_value(json_object_get(claim, "claim"));
        if (strncmp(words, "reward-predictive beats", 23) != 0) continue;
        assert_true(json_is_true(json_object_get(claim, "holds")));
        orders++;
    }
    assert_true(orders >= 6);
    json_decref(statistics);
    json_decref(of.results);
    psi_ctx_free(ctx);
}

// The gain over dqn where there is nothing to divide by: nothing is once nothing, anything is more
// than any multiple.
static void nothing_is_once_nothing(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_trial trials[N];
    const transfer_study transfer = made_up(trials);
    const size_t left_broken = TRANSFER_TASKS - 1;
    psi_study_options options = psi_study_defaults();
    bool holds;
    for (int earns = 0; earns < 2; earns++) {
        for (size_t s = 0; s < SEEDS; s++) {
            for (size_t task = 1; task < TRANSFER_TASKS; task++) {
                const double dqn = task == left_broken ? 0.0 : 0.2;
                const double ours = task == left_broken && !earns ? 0.0 : 0.2;
                transfer_trial(&transfer, task, PSI_AGENT_DQN, s)->score.reward_per_step = dqn;
                transfer_trial(&transfer, task, PSI_AGENT_REWARD_PREDICTIVE, s)
                    ->score.reward_per_step = ours;
            }
        }
        study of = test_study_begun(ctx, "", &options);
        json_t *statistics = json_object();
        assert_ok(ctx, study_transfer_claims(&of, &transfer, statistics));
        const char *ours = test_claim(of.results, "the gain over dqn is largest", &holds);
        assert_string_equal(ours,
                            earns ? "inf times dqn's there, 1.00 in swap-digits, 1.00 in "
                                    "reversed-dial; inf [inf, inf] of the largest elsewhere, 8 "
                                    "seeds"
                                  : "1.00 times dqn's there, 1.00 in swap-digits, 1.00 in "
                                    "reversed-dial; 1.00 [1.00, 1.00] of the largest elsewhere, 8 "
                                    "seeds");
        assert_true(holds == earns);
        const json_t *claims = json_object_get(statistics, "claims"),
                     *evidence = json_object_get(
                         json_array_get(claims, json_array_size(claims) - 1), "evidence");
        assert_true(test_number(evidence, "share_of_resamplings") == earns);
        json_decref(statistics);
        json_decref(of.results);
    }
    psi_ctx_free(ctx);
}

// Shares of the optimum: agent a earns (a + 1) / 20 of it, and a little more with every seed.
static void profiles_fall_from_all_to_none(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_trial trials[N];
    const transfer_study transfer = made_up(trials);
    json_t *statistics = json_object();
    assert_ok(ctx, study_transfer_profiles(ctx, &transfer, statistics));
    const json_t *profiles = json_object_get(statistics, "profiles_of_share_of_optimum"),
                 *at = json_object_get(profiles, "thresholds");
    assert_int_equal(json_array_size(at), 21);
    for (size_t agent = 0; agent < TRANSFER_AGENTS; agent++) {
        const json_t *list = json_object_get(profiles, psi_agent_kind_name((psi_agent_kind)agent));
        for (size_t i = 0; i < 21; i++) {
            size_t above = 0;
            for (size_t task = 1; task < TRANSFER_TASKS; task++) {
                for (size_t s = 0; s < SEEDS; s++) {
                    above += transfer_trial(&transfer, task, agent, s)->score.reward_per_step / 2 >
                             (double)i / 20;
                }
            }
            const double share = (double)above / (3 * SEEDS);
            assert_true(json_real_value(json_array_get(at, i)) == (double)i / 20);
            assert_true(fabs(test_number(json_array_get(list, i), "estimate") - share) < 1e-12);
        }
    }
    json_decref(statistics);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(means_are_those_of_the_middle_half),
        cmocka_unit_test(who_always_wins_wins_with_certainty),
        cmocka_unit_test(claims_follow_from_the_scores),
        cmocka_unit_test(nothing_is_once_nothing),
        cmocka_unit_test(profiles_fall_from_all_to_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
