// The best error that can be had: by the true latent states, and by episodes that are put together
// from steps as if latent states told everything. Where labels are the truth both are the same.
#include "support/block_mdp.h"
#include "support/collect.h"
#include "support/support.h"

#include <math.h>
#include <stdlib.h>

typedef struct judged {
    psi_trajectories *data;
    psi_trajectories untold; // the same without the truth
    int32_t *labels;
    psi_run run; // its model
    double error;
} judged;

// Labels are the truth, terminal states first; the model is theirs.
static judged judge(psi_ctx *ctx, psi_trajectories *data)
{
    judged j = {.data = data, .untold = *data};
    psi_counts *counts;
    psi_sequence_error error;
    size_t n_latent = 1;
    j.untold.latent_states = NULL;
    j.labels = calloc(data->n_observations, sizeof *j.labels);
    for (size_t i = 0; i < data->n_observations; i++) {
        j.labels[i] = data->latent_states[i] + 1;
        if ((size_t)j.labels[i] >= n_latent) n_latent = (size_t)j.labels[i] + 1;
    }
    for (size_t e = 0; e < data->n_episodes; e++) {
        j.run.has_terminal |= data->terminated[e] != 0;
        if (data->terminated[e]) j.labels[data->episode_offsets[e + 1] + e] = 0;
    }
    const psi_paths paths = psi_trajectories_paths(data, j.labels, n_latent, j.run.has_terminal);
    assert_ok(ctx, psi_counts_new(ctx, &paths, &counts));
    assert_ok(ctx, psi_counts_model(ctx, counts, 1.0, &j.run.model));
    assert_ok(ctx,
              psi_sequence_errors(ctx, j.run.model, &paths, NULL, PSI_ROLLOUT_SOFT, NULL, &error));
    j.error = error.mean;
    psi_counts_free(ctx, counts);
    return j;
}

static void judged_free(psi_ctx *ctx, judged *j)
{
    psi_mdp_free(ctx, j->run.model);
    psi_trajectories_free(ctx, j->data);
    free(j->labels);
}

static psi_error_floor floor_of(psi_ctx *ctx, const judged *j, const psi_trajectories *data)
{
    psi_error_floor found;
    assert_ok(ctx, psi_error_floor_of(ctx, &j->run, data, j->labels, &found));
    return found;
}

static psi_trajectories *collect_blocks(psi_ctx *ctx, bool random)
{
    const block_options how = {.latent_states = 6,
                               .actions = 2,
                               .looks = 1,
                               .dimensions = 2,
                               .stochastic = random,
                               .noisy_rewards = random,
                               .episodes = 400,
                               .length = 30,
                               .seed = 5};
    psi_trajectories *data;
    assert_ok(ctx, block_mdp_collect(ctx, &how, &data));
    return data;
}

static void where_chance_is_it_cannot_be_beaten(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(2);
    judged j = judge(ctx, collect_blocks(ctx, true));
    const psi_error_floor truth = floor_of(ctx, &j, j.data), drawn = floor_of(ctx, &j, &j.untold);
    assert_true(truth.truth && !drawn.truth);
    assert_true(j.error > 0.05);
    assert_true(fabs(truth.mean - j.error) < 1e-12);
    assert_true(fabs(drawn.mean - j.error) < 0.05 * j.error); // other chances, as many of them
    assert_true(floor_of(ctx, &j, &j.untold).mean == drawn.mean);
    judged_free(ctx, &j);
    psi_ctx_free(ctx);
}

// What labels have merged is no longer predicted, and the truth shows it.
static void merged_states_stay_above_it(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    judged j = judge(ctx, collect_blocks(ctx, false));
    assert_true(floor_of(ctx, &j, j.data).mean < 1e-12);
    assert_true(floor_of(ctx, &j, &j.untold).mean < 1e-12);
    psi_trajectories merged = *j.data;
    int32_t *other = calloc(merged.n_observations, sizeof *other);
    for (size_t i = 0; i < merged.n_observations; i++) other[i] = merged.latent_states[i] / 2;
    merged.latent_states = other;
    assert_true(floor_of(ctx, &j, &merged).mean > 0.05); // a coarser truth leaves more
    free(other);
    judged_free(ctx, &j);
    psi_ctx_free(ctx);
}

static void episodes_that_end_are_drawn_to_their_end(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    judged j = judge(ctx, test_collect(ctx, "column-world", 200, 1, NULL));
    assert_true(j.run.has_terminal);
    assert_true(floor_of(ctx, &j, j.data).mean < 1e-9);
    assert_true(floor_of(ctx, &j, &j.untold).mean < 1e-9);
    for (size_t i = 0; i < j.data->n_observations; i += 3) j.labels[i] = -1; // some are ignored
    assert_true(isfinite(floor_of(ctx, &j, &j.untold).mean));
    for (size_t i = 0; i < j.data->n_observations; i++) j.labels[i] = -1; // all are
    assert_true(isnan(floor_of(ctx, &j, &j.untold).mean));
    judged_free(ctx, &j);
    psi_ctx_free(ctx);
}

static psi_status ask(psi_ctx *ctx, void *argument)
{
    const judged *j = argument;
    psi_error_floor found;
    psi_status status = psi_error_floor_of(ctx, &j->run, j->data, j->labels, &found);
    if (status == PSI_OK) {
        status = psi_error_floor_of(ctx, &j->run, &j->untold, j->labels, &found);
    }
    return status;
}

static void every_refusal_of_memory_is_survived(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    judged j = judge(ctx, test_collect(ctx, "column-world", 5, 1, NULL));
    assert_true(test_fault_sweep(ask, &j) > 10);
    judged_free(ctx, &j);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(where_chance_is_it_cannot_be_beaten),
        cmocka_unit_test(merged_states_stay_above_it),
        cmocka_unit_test(episodes_that_end_are_drawn_to_their_end),
        cmocka_unit_test(every_refusal_of_memory_is_survived),
    };
    return cmocka_run_group_tests_name("run/floor", tests, NULL, NULL);
}
