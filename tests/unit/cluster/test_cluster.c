// The whole method on tables, on data that cannot be clustered, and into a run folder and back.
// tests/learn has the same with networks that are trained to the end.
#include "support/collect.h"
#include "support/runs.h"
#include "support/support.h"

#include "base/context.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void column_world_as_a_table_is_exact(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_trajectories *data = test_collect(ctx, "column-world", 500, 1, NULL);
    const psi_cluster_options options = psi_cluster_defaults();
    psi_run *found;
    assert_ok(ctx, psi_cluster(ctx, data, &options, &found));
    assert_int_equal(found->approximator, PSI_APPROXIMATOR_TABLE);
    test_assert_exact(ctx, data, found);
    static const size_t counts[] = {3, 4, 4}; // c_0 is {terminal, rest}: 2, 3, 4, 4
    assert_int_equal(found->n_steps, 3);
    for (size_t i = 0; i < 3; i++) assert_int_equal(found->steps[i].clusters, counts[i]);
    psi_run_free(ctx, found);
    psi_trajectories_free(ctx, data);
    psi_ctx_free(ctx);
}

// The figures of the exact lock, from sampled trajectories: with new clusters each time, and with
// clusters that are only ever split.
static void a_lock_as_a_table_refines_as_it_should(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    static const char *const five[] = {"digits", "none", "digits-per-dial", "5", NULL};
    psi_trajectories *data = test_collect(ctx, "combination-lock", 600, 1, five);
    for (int split = 0; split < 2; split++) {
        psi_cluster_options options = psi_cluster_defaults();
        options.split = split;
        psi_run *found;
        assert_ok(ctx, psi_cluster(ctx, data, &options, &found));
        test_assert_exact(ctx, data, found);
        assert_int_equal(found->n_latent, 25);
        for (size_t i = 1; i < found->n_steps; i++) {
            assert_true(found->steps[i].clusters >= found->steps[i - 1].clusters);
        }
        psi_run_free(ctx, found);
    }
    psi_trajectories_free(ctx, data);
    psi_ctx_free(ctx);
}

// Stopped after the reward refinement, epsilon of successor features is not that of rewards.
static void one_refinement_says_what_successor_features_may_differ_by(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(2);
    psi_trajectories *data = test_collect(ctx, "column-world", 200, 1, NULL);
    psi_cluster_options options = psi_cluster_defaults();
    options.method = PSI_METHOD_SUCCESSOR_FEATURES;
    options.approximator = PSI_APPROXIMATOR_TABLE;
    options.max_refinements = 1;
    options.epsilon_reward = 0.4;
    for (int given = 0; given < 2; given++) {
        psi_run *found;
        options.epsilon_sf = given ? 0.125 : 0.0;
        assert_ok(ctx, psi_cluster(ctx, data, &options, &found));
        assert_int_equal(found->n_steps, 1);
        assert_true(found->epsilon_reward == 0.4);
        assert_true(found->gap > 0.0 && found->gap != 1.0);
        if (given) {
            assert_true(found->epsilon_sf == 0.125);
        } else {
            assert_true(found->epsilon_sf == fmin(0.75 * found->gap, 0.5));
            assert_true(found->epsilon_sf != 0.4);
        }
        psi_run_free(ctx, found);
    }
    psi_trajectories_free(ctx, data);
    psi_ctx_free(ctx);
}

static void the_same_seed_gives_the_same_labels(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(2);
    psi_trajectories *data = test_collect(ctx, "point-column-world", 120, 5, NULL);
    psi_cluster_options options = psi_cluster_defaults();
    options.hidden = 64;
    options.trunk_steps = 40;
    options.head_steps = 20;
    options.representation_steps = 50;
    psi_run *found[2];
    for (int i = 0; i < 2; i++) assert_ok(ctx, psi_cluster(ctx, data, &options, &found[i]));
    assert_int_equal(found[0]->n_latent, found[1]->n_latent);
    assert_memory_equal(found[0]->labels, found[1]->labels, data->n_observations * sizeof(int32_t));
    assert_true(found[0]->accuracy == found[1]->accuracy);
    for (int i = 0; i < 2; i++) psi_run_free(ctx, found[i]);
    psi_trajectories_free(ctx, data);
    psi_ctx_free(ctx);
}

// Without fine-tuning the representation is the features' network with new heads: nothing below
// them moves, and what it says is what the heads say.
static void heads_alone_are_a_representation(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_trajectories *data = test_collect(
        ctx, "combination-lock", 40, 5,
        (const char *const[]){"digits-per-dial", "5", "goal", "4,4,*", "digits", "drawn", NULL});
    psi_cluster_options options = psi_cluster_defaults();
    options.approximator = PSI_APPROXIMATOR_CNN;
    options.trunk_steps = 500;
    options.fine_tune = false;
    psi_run *found;
    psi_predictor *predictor;
    int32_t *labels;
    size_t right = 0, kept = 0;
    assert_ok(ctx, psi_cluster(ctx, data, &options, &found));
    assert_non_null(found->representation);
    assert_true(found->accuracy > 0.95);
    assert_ok(ctx, base_alloc(ctx, data->n_observations, sizeof *labels, &labels));
    assert_ok(ctx, psi_predictor_new(ctx, found, &predictor));
    assert_ok(ctx, psi_predict(ctx, predictor, data->observations, 0.0, labels, NULL));
    psi_predictor_free(ctx, predictor);
    for (size_t i = 0; i < data->n_observations; i++) {
        kept += found->labels[i] > 0;
        right += found->labels[i] > 0 && labels[i] == found->labels[i];
    }
    assert_true(kept > 1000 && 100 * right > 95 * kept);
    base_free(ctx, labels);
    psi_run_free(ctx, found);
    psi_trajectories_free(ctx, data);
    psi_ctx_free(ctx);
}

// A tiny data set of one number per observation.
static psi_trajectories *tiny(psi_ctx *ctx, const int64_t *observations, const double *rewards,
                              size_t length, size_t episodes, bool terminated)
{
    const psi_episode_spec spec = {
        .observation_dtype = PSI_INT64, .n_actions = 1, .observation_high = 1000.0};
    psi_collector *collector;
    psi_trajectories *data;
    int32_t actions[64] = {0};
    assert_ok(ctx, psi_collector_new(ctx, &spec, &collector));
    for (size_t e = 0; e < episodes; e++) {
        const psi_episode episode = {.length = length,
                                     .observations = observations,
                                     .actions = actions,
                                     .rewards = rewards,
                                     .terminated = terminated,
                                     .truncated = !terminated};
        assert_ok(ctx, psi_collector_add(collector, &episode));
    }
    assert_ok(ctx, psi_collector_finish(collector, &data));
    return data;
}

static void a_chain_with_one_action_counts_down(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    const int64_t observations[] = {10, 11, 12, 13, 14};
    const double rewards[] = {0.0, 0.0, 0.0, 1.0};
    psi_trajectories *data = tiny(ctx, observations, rewards, 4, 50, true);
    const psi_cluster_options options = psi_cluster_defaults();
    psi_run *found;
    assert_ok(ctx, psi_cluster(ctx, data, &options, &found));
    assert_int_equal(found->n_latent, 5); // every distance to the reward, and the end
    psi_run_free(ctx, found);
    psi_trajectories_free(ctx, data);
    psi_ctx_free(ctx);
}

static void data_that_cannot_be_clustered_say_why(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    const int64_t observations[] = {1, 2, 3, 4, 5};
    const double constant[] = {2.0, 2.0, 2.0, 2.0};
    psi_trajectories *data = tiny(ctx, observations, constant, 4, 20, false);
    psi_cluster_options options = psi_cluster_defaults();
    psi_run *found;
    assert_ok(ctx, psi_cluster(ctx, data, &options, &found));
    assert_int_equal(found->n_latent, 1);
    assert_int_equal(found->verdict, PSI_VERDICT_NOTHING_TO_PREDICT);
    psi_run_free(ctx, found);
    options.method = PSI_METHOD_SUCCESSOR_FEATURES;
    assert_status(ctx, psi_cluster(ctx, data, &options, &found), PSI_EDATA);
    test_assert_error_says(ctx, "all 80 rewards are 2");
    assert_null(found);
    options.method = PSI_METHOD_EVIDENCE;
    psi_trajectories_free(ctx, data);

    const double rising[] = {0.0, 1.0, 2.0, 3.0};
    data = tiny(ctx, observations, rising, 4, 20, false);
    options.max_latent_states = 2;
    assert_status(ctx, psi_cluster(ctx, data, &options, &found), PSI_ELIMIT);
    test_assert_error_says(ctx, "--max-latent-states");
    psi_trajectories_free(ctx, data);

    // one look for everything: nothing can be told apart, but that is an answer
    const int64_t same[] = {7, 7, 7, 7, 7};
    data = tiny(ctx, same, rising, 4, 20, false);
    options = psi_cluster_defaults();
    assert_ok(ctx, psi_cluster(ctx, data, &options, &found));
    assert_int_equal(found->n_latent, 1);
    psi_run_free(ctx, found);
    psi_trajectories_free(ctx, data);
    psi_ctx_free(ctx);
}

static psi_status cluster_a_table(psi_ctx *ctx, void *argument)
{
    const psi_cluster_options options = psi_cluster_defaults();
    psi_run *found;
    const psi_status status = psi_cluster(ctx, argument, &options, &found);
    psi_run_free(ctx, found);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    const int64_t observations[] = {1, 2, 3};
    const double rewards[] = {0.0, 1.0};
    psi_trajectories *data = tiny(ctx, observations, rewards, 2, 60, true);
    assert_in_range(test_fault_sweep(cluster_a_table, data), 50, 1000);
    psi_trajectories_free(ctx, data);
    psi_ctx_free(ctx);
}

// JSON has no infinite numbers: they are read as none.
static void assert_same_numbers(const double *one, const double *other, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        assert_true(one[i] == other[i] || (!isfinite(one[i]) && !isfinite(other[i])));
    }
}

// All that a run says, of one that was found and of one that was read.
static void assert_same_run(const psi_run *one, const psi_run *other)
{
    assert_true(one->finished && other->finished);
    assert_string_equal(one->folder, other->folder);
    assert_string_equal(one->fingerprint.hex, other->fingerprint.hex);
    assert_string_equal(one->data_path, other->data_path);
    assert_string_equal(one->when, other->when);
    const size_t sizes[] = {one->n_episodes, one->n_transitions, one->n_observations,
                            one->n_actions,  one->n_latent,      one->n_steps,
                            one->n_doubts,   one->n_phases},
                 others[] = {other->n_episodes, other->n_transitions, other->n_observations,
                             other->n_actions,  other->n_latent,      other->n_steps,
                             other->n_doubts,   other->n_phases};
    assert_memory_equal(sizes, others, sizeof sizes);
    const int words[] = {one->threads,   one->has_terminal,      (int)one->approximator,
                         one->verdict,   one->converged,         one->has_heads,
                         one->has_trunk, one->matching_condition},
              others_words[] = {other->threads,           other->has_terminal,
                                (int)other->approximator, other->verdict,
                                other->converged,         other->has_heads,
                                other->has_trunk,         other->matching_condition};
    assert_memory_equal(words, others_words, sizeof words);
    const double reals[] = {one->accuracy, one->margin,     one->doubtful,      one->past,
                            one->gamma,    one->epsilon_sf, one->gap,           one->ignored,
                            one->smoothed, one->seconds,    one->epsilon_reward},
                 other_reals[] = {other->accuracy, other->margin,        other->doubtful,
                                  other->past,     other->gamma,         other->epsilon_sf,
                                  other->gap,      other->ignored,       other->smoothed,
                                  other->seconds,  other->epsilon_reward};
    assert_same_numbers(reals, other_reals, sizeof reals / sizeof reals[0]);
    for (size_t i = 0; i < psi_cluster_option_table()->n; i++) {
        const psi_option *option = &psi_cluster_option_table()->rows[i];
        char here[PSI_OPTION_TEXT_SIZE], there[PSI_OPTION_TEXT_SIZE];
        assert_string_equal(psi_option_text(option, &one->options, here),
                            psi_option_text(option, &other->options, there));
    }
    assert_int_equal(one->options.seed, other->options.seed);
    assert_memory_equal(one->labels, other->labels, one->n_observations * sizeof *one->labels);
    for (size_t i = 0; i < one->n_doubts; i++) {
        assert_int_equal(one->doubts[i].kind, other->doubts[i].kind);
        assert_int_equal(one->doubts[i].state, other->doubts[i].state);
        assert_int_equal(one->doubts[i].other, other->doubts[i].other);
        assert_int_equal(one->doubts[i].visits, other->doubts[i].visits);
    }
    const size_t pairs = one->n_latent * one->n_actions;
    assert_memory_equal(one->model->offsets, other->model->offsets, pairs * sizeof(uint64_t));
    assert_memory_equal(one->certificate->visits, other->certificate->visits,
                        pairs * sizeof(uint64_t));
    assert_same_numbers(one->certificate->sf_error, other->certificate->sf_error, pairs);
    assert_true(one->certificate->judged == other->certificate->judged);
    for (size_t i = 0; i < one->n_steps; i++) {
        assert_int_equal(one->steps[i].clusters, other->steps[i].clusters);
        assert_same_numbers(&one->steps[i].ignored, &other->steps[i].ignored, 7);
    }
    for (size_t i = 0; i < one->n_phases; i++) {
        assert_string_equal(one->phases[i].name, other->phases[i].name);
        assert_int_equal(one->phases[i].passes, other->phases[i].passes);
    }
}

// What clustering returns is what its folder is read into: of a table and of a network.
static void a_run_that_is_read_is_the_one_that_was_found(void **state)
{
    (void)state;
    for (int network = 0; network < 2; network++) {
        psi_ctx *ctx = test_ctx(1);
        char *folder = test_folder();
        const char *path = test_path(folder, "run");
        psi_trajectories *data =
            test_collect(ctx, network ? "point-column-world" : "column-world", 30, 5, NULL);
        psi_cluster_options options = psi_cluster_defaults();
        options.hidden = 16;
        options.trunk_steps = options.representation_steps = 20;
        options.seed = 7;
        psi_run *found, *read;
        assert_ok(ctx, test_cluster_into(ctx, path, PSI_FOLDER_NEW, data, &options, &found));
        assert_ok(ctx, psi_run_load(ctx, path, &read));
        assert_same_run(found, read);
        assert_memory_equal(found->confidence, read->confidence,
                            data->n_observations * sizeof(float));
        // both say the same of observations
        int32_t *labels[2];
        psi_run *const runs[] = {found, read};
        for (size_t i = 0; i < 2; i++) {
            psi_predictor *predictor;
            assert_ok(ctx, base_alloc(ctx, data->n_observations, sizeof **labels, &labels[i]));
            assert_ok(ctx, psi_predictor_new(ctx, runs[i], &predictor));
            assert_ok(ctx, psi_predict(ctx, predictor, data->observations, 0.0, labels[i], NULL));
            psi_predictor_free(ctx, predictor);
        }
        assert_memory_equal(labels[0], labels[1], data->n_observations * sizeof **labels);
        for (size_t i = 0; i < 2; i++) base_free(ctx, labels[i]);
        psi_run_free(ctx, read);
        psi_run_free(ctx, found);
        psi_trajectories_free(ctx, data);
        test_folder_free(folder);
        psi_ctx_free(ctx);
    }
}

// c_0 knows the terminal states, the last level is the final one, and the others are the
// refinements; a run that was not kept has only those two.
static void levels_go_from_terminal_states_to_the_final_labels(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder();
    psi_trajectories *data = test_collect(ctx, "column-world", 60, 5, NULL);
    const psi_cluster_options options = psi_cluster_defaults();
    psi_run *kept, *alone;
    psi_levels levels;
    assert_ok(ctx, test_cluster_into(ctx, test_path(folder, "run"), PSI_FOLDER_NEW, data, &options,
                                     &kept));
    assert_ok(ctx, psi_run_levels(ctx, kept, &levels));
    assert_int_equal(levels.n, kept->n_steps + 2);
    assert_int_equal(levels.clusters[0], 2);
    for (size_t i = 0; i < kept->n_steps; i++) {
        assert_int_equal(levels.clusters[i + 1], kept->steps[i].clusters);
    }
    for (size_t i = 0; i < data->n_observations; i++) {
        assert_int_equal(levels.labels[0][i], kept->labels[i] != 0);
        assert_int_equal(levels.labels[levels.n - 1][i], kept->labels[i]);
    }
    psi_levels_free(ctx, &levels);
    assert_ok(ctx, psi_cluster(ctx, data, &options, &alone));
    assert_null(alone->folder);
    assert_memory_equal(alone->labels, kept->labels, data->n_observations * sizeof(int32_t));
    assert_ok(ctx, psi_run_levels(ctx, alone, &levels));
    assert_int_equal(levels.n, 2);
    psi_levels_free(ctx, &levels);
    psi_run_free(ctx, alone);
    psi_run_free(ctx, kept);
    psi_trajectories_free(ctx, data);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

// Data are the run's by their fingerprint, wherever they are.
static void a_run_knows_its_data(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder();
    test_cluster_run(ctx, folder, "column-world", 40, NULL, NULL);
    psi_run *run;
    psi_trajectories *data;
    assert_ok(ctx, psi_run_load(ctx, test_path(folder, "run"), &run));
    assert_ok(ctx, psi_run_data(ctx, run, NULL, NULL, &data));
    assert_int_equal(data->n_observations, run->n_observations);
    psi_trajectories_free(ctx, data);
    assert_int_equal(rename(test_path(folder, "data.npz"), test_path(folder, "elsewhere.npz")), 0);
    assert_status(ctx, psi_run_data(ctx, run, NULL, NULL, &data), PSI_EMISSING);
    test_assert_error_says(ctx, "no longer where they were");
    assert_ok(ctx, psi_run_data(ctx, run, test_path(folder, "elsewhere.npz"), NULL, &data));
    psi_trajectories_free(ctx, data);
    char *other = test_folder();
    test_cluster_run(ctx, other, "column-world", 41, NULL, NULL);
    assert_status(ctx, psi_run_data(ctx, run, test_path(other, "data.npz"), NULL, &data),
                  PSI_EDATA);
    assert_int_equal(rename(test_path(other, "data.npz"), test_path(folder, "data.npz")), 0);
    assert_status(ctx, psi_run_data(ctx, run, NULL, NULL, &data), PSI_EMISSING);
    test_assert_error_says(ctx, "have changed");
    test_folder_free(other);
    psi_run_free(ctx, run);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

static void a_run_folder_goes_out_and_in(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder();
    const char *path = test_path(folder, "run");
    psi_trajectories *data = test_collect(ctx, "point-column-world", 60, 5, NULL);
    psi_run *found, *read;
    psi_cluster_options options = psi_cluster_defaults();
    options.method = PSI_METHOD_SUCCESSOR_FEATURES;
    options.hidden = 64;
    options.trunk_steps = options.head_steps = options.representation_steps = 40;
    assert_ok(ctx, test_cluster_into(ctx, path, PSI_FOLDER_NEW, data, &options, &found));
    assert_ok(ctx, psi_run_load(ctx, path, &read));
    assert_same_run(found, read);
    int32_t *labels;
    assert_ok(ctx, psi_run_labels(ctx, read, 1, &labels));
    psi_array_free(ctx, labels);

    // every refinement's heads say what it would call these observations, and its model fits them
    const size_t n = data->n_observations;
    int32_t *calls;
    assert_true(read->has_heads);
    assert_ok(ctx, base_alloc(ctx, read->n_steps, n * sizeof *calls, &calls));
    assert_ok(ctx, psi_run_assign(ctx, read, data->observations, calls));
    for (size_t i = 0; i < read->n_steps; i++) {
        psi_mdp *model;
        assert_ok(ctx, psi_run_model(ctx, read, i + 1, &model));
        assert_int_equal(model->n_states, found->steps[i].clusters);
        for (size_t row = 0; row < n; row++) {
            assert_in_range(calls[i * n + row], 1, model->n_states - 1); // 0 is the end
        }
        psi_mdp_free(ctx, model);
    }
    base_free(ctx, calls);
    const psi_array lie = {"offsets", PSI_INT64, {1, {2}}, (const int64_t[]){0, 1 << 20}};
    assert_ok(ctx, psi_arrays_save(ctx, test_path(folder, "run/latent-01.npz"), &lie, 1));
    psi_mdp *none;
    assert_status(ctx, psi_run_model(ctx, read, 1, &none), PSI_EDATA);
    assert_null(none);
    psi_run_free(ctx, read);

    // damage: a label that no latent state has, and so another checksum
    found->labels[0] = (int32_t)found->n_latent;
    const psi_array array = {"x", PSI_INT32, {1, {data->n_observations}}, found->labels};
    assert_ok(ctx, psi_arrays_save(ctx, test_path(folder, "run/clusters.npy"), &array, 1));
    assert_status(ctx, psi_run_load(ctx, path, &read), PSI_EFORMAT);
    test_assert_error_says(ctx, "clusters.npy");
    assert_status(ctx, psi_run_load(ctx, folder, &read), PSI_EIO);
    psi_run_free(ctx, found);
    psi_trajectories_free(ctx, data);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(column_world_as_a_table_is_exact),
        cmocka_unit_test(a_lock_as_a_table_refines_as_it_should),
        cmocka_unit_test(a_chain_with_one_action_counts_down),
        cmocka_unit_test(data_that_cannot_be_clustered_say_why),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(heads_alone_are_a_representation),
        cmocka_unit_test(one_refinement_says_what_successor_features_may_differ_by),
        cmocka_unit_test(the_same_seed_gives_the_same_labels),
        cmocka_unit_test(a_run_folder_goes_out_and_in),
        cmocka_unit_test(a_run_that_is_read_is_the_one_that_was_found),
        cmocka_unit_test(levels_go_from_terminal_states_to_the_final_labels),
        cmocka_unit_test(a_run_knows_its_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
