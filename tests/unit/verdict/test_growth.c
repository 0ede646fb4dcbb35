// A task whose states are continuous has no small answer, and is told so; one with a few latent
// states never is, however little of it was seen.
#include "support/block_mdp.h"
#include "support/support.h"

#include "base/random.h"
#include "verdict/growth.h"

#include <math.h>
#include <string.h>

enum { LONGEST = 64 };

// A point that runs away from 0 unless it is pushed back; an episode ends when it is gone. All
// rewards are 1, so that only endings tell anything: x ↦ 1.3 x ± 0.17 never repeats.
static psi_trajectories *collect_line(psi_ctx *ctx, size_t episodes)
{
    const psi_episode_spec spec = {.observation_dtype = PSI_FLOAT32,
                                   .observation_shape = {1, {1}},
                                   .observation_low = -2.0,
                                   .observation_high = 2.0,
                                   .n_actions = 2};
    psi_collector *collector;
    psi_trajectories *data;
    base_random random = base_random_stream(1, 2, 3);
    assert_ok(ctx, psi_collector_new(ctx, &spec, &collector));
    for (size_t e = 0; e < episodes; e++) {
        float place[LONGEST + 1];
        int32_t actions[LONGEST];
        double rewards[LONGEST];
        size_t n = 0;
        place[0] = (float)(base_random_uniform(&random) - 0.5);
        for (; n < LONGEST && fabsf(place[n]) <= 1.0f; n++) {
            actions[n] = (int32_t)base_random_below(&random, 2);
            rewards[n] = 1.0;
            place[n + 1] = 1.3f * place[n] + (actions[n] ? 0.17f : -0.17f);
        }
        const psi_episode episode = {.length = n,
                                     .observations = place,
                                     .actions = actions,
                                     .rewards = rewards,
                                     .terminated = n < LONGEST,
                                     .truncated = n == LONGEST};
        assert_ok(ctx, psi_collector_add(collector, &episode));
    }
    assert_ok(ctx, psi_collector_finish(collector, &data));
    return data;
}

static void no_end_is_in_sight(void **state)
{
    (void)state;
    assert_true(verdict_keeps_growing((size_t[]){100, 180, 330}));
    assert_true(verdict_keeps_growing((size_t[]){34, 58, 103}));
    assert_false(verdict_keeps_growing((size_t[]){25, 25, 25}));
    assert_false(verdict_keeps_growing((size_t[]){24, 25, 26}));  // as steadily, but hardly
    assert_false(verdict_keeps_growing((size_t[]){12, 22, 25}));  // there is an end to it
    assert_false(verdict_keeps_growing((size_t[]){40, 20, 90}));  // to and fro
    assert_false(verdict_keeps_growing((size_t[]){1, 2, 3}));     // by chance
    assert_false(verdict_keeps_growing((size_t[]){30, 40, 180})); // they come into sight
    assert_true(verdict_keeps_growing((size_t[]){13, 30, 62}));   // twice and a bit, by chance
    assert_false(verdict_keeps_growing((size_t[]){2, 3, 18}));    // from nothing
    assert_false(verdict_keeps_growing((size_t[]){0, 0, 90}));    // not asked
}

static void what_is_continuous_has_no_small_answer(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_trajectories *data = collect_line(ctx, 600);
    psi_cluster_options how = psi_cluster_defaults();
    psi_run *found;
    char text[256];
    how.representation_steps = 1;
    assert_ok(ctx, psi_cluster(ctx, data, &how, &found));
    assert_int_equal(found->verdict, PSI_VERDICT_NO_SMALL_ANSWER);
    assert_true(verdict_keeps_growing(found->growth));
    assert_int_equal(found->growth[2], found->n_latent);
    psi_verdict_sentence(found, text, sizeof text);
    assert_non_null(strstr(text, "no small set of them predicts the rewards"));
    assert_int_equal(found->n_doubts, 1);
    psi_doubt_sentence(&found->doubts[0], text, sizeof text);
    assert_non_null(strstr(text, "may have a small answer"));
    psi_run_free(ctx, found);
    psi_trajectories_free(ctx, data);
    psi_ctx_free(ctx);
}

// From far too little to enough: more latent states come into sight, and they are few.
static void what_is_finite_may_have_one(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    for (size_t episodes = 12; episodes <= 200; episodes *= 2) {
        const block_options block = {.latent_states = 24,
                                     .actions = 2,
                                     .looks = 2,
                                     .dimensions = 4,
                                     .stochastic = true,
                                     .noisy_rewards = true,
                                     .episodes = episodes,
                                     .length = 50,
                                     .seed = 7};
        psi_cluster_options how = psi_cluster_defaults();
        psi_trajectories *data;
        psi_run *found;
        how.trunk_steps = 200;
        how.representation_steps = 1;
        assert_ok(ctx, block_mdp_collect(ctx, &block, &data));
        assert_ok(ctx, psi_cluster(ctx, data, &how, &found));
        assert_int_not_equal(found->verdict, PSI_VERDICT_NO_SMALL_ANSWER);
        psi_run_free(ctx, found);
        psi_trajectories_free(ctx, data);
    }
    psi_ctx_free(ctx);
}

typedef struct asked {
    psi_trajectories *data;
    size_t n_latent[2];
} asked;

static psi_status ask(psi_ctx *ctx, void *argument)
{
    asked *a = argument;
    const by_evidence_options how = {.max_refinements = 20, .max_latent_states = 1000};
    cluster_problem problem;
    psi_status status = problem_new(ctx, a->data, 0, &problem);
    if (status != PSI_OK) return status;
    status = verdict_growth(ctx, &problem, 1, psi_observations_data(a->data->observations), false,
                            0, &how, a->n_latent);
    problem_free(ctx, &problem);
    return status;
}

static void a_half_has_the_quarter_in_it(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    asked a = {.data = collect_line(ctx, 24)};
    assert_true(test_fault_sweep(ask, &a) > 20);
    assert_true(a.n_latent[0] >= 2 && a.n_latent[1] >= a.n_latent[0]);
    psi_trajectories_free(ctx, a.data);
    a.data = collect_line(ctx, 7); // too few to be cut into parts
    assert_ok(ctx, ask(ctx, &a));
    assert_true(a.n_latent[0] == 0 && a.n_latent[1] == 0);
    psi_trajectories_free(ctx, a.data);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_end_is_in_sight),
        cmocka_unit_test(what_is_continuous_has_no_small_answer),
        cmocka_unit_test(what_is_finite_may_have_one),
        cmocka_unit_test(a_half_has_the_quarter_in_it),
    };
    return cmocka_run_group_tests_name("verdict/growth", tests, NULL, NULL);
}
