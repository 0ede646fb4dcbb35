// A run: into a folder and back, with its data and with others.
#include "support/collect.h"
#include "support/runs.h"
#include "support/support.h"

#include "base/context.h"
#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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
    assert_int_equal(one->n_data_paths, other->n_data_paths);
    for (size_t i = 0; i < one->n_data_paths; i++) {
        assert_string_equal(one->data_paths[i], other->data_paths[i]);
    }
    assert_string_equal(one->when, other->when);
    const size_t sizes[] = {one->n_episodes, one->n_transitions, one->n_observations,
                            one->n_actions,  one->n_latent,      one->n_steps,
                            one->n_doubts,   one->n_phases},
                 others[] = {other->n_episodes, other->n_transitions, other->n_observations,
                             other->n_actions,  other->n_latent,      other->n_steps,
                             other->n_doubts,   other->n_phases};
    assert_memory_equal(sizes, others, sizeof sizes);
    const int words[] = {one->threads,      one->has_terminal,      (int)one->approximator,
                         (int)one->verdict, one->converged,         one->has_heads,
                         one->has_trunk,    one->matching_condition},
              others_words[] = {other->threads,           other->has_terminal,
                                (int)other->approximator, (int)other->verdict,
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
        assert_int_equal(one->doubts[i].enough, other->doubts[i].enough);
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

static void assert_finds_both(psi_ctx *ctx, const char *folder)
{
    psi_run *run;
    psi_trajectories *data;
    assert_ok(ctx, psi_run_load(ctx, folder, &run));
    assert_int_equal(run->n_data_paths, 2);
    assert_ok(ctx, psi_run_data(ctx, run, NULL, NULL, &data));
    assert_int_equal(data->n_episodes, 80);
    psi_trajectories_free(ctx, data);
    psi_run_free(ctx, run);
}

// Of several files, also of one whose name has two lines; and manifests of the form that was
// before.
static void a_run_knows_all_files_of_its_data(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder(), *other = test_folder(), one[512], two[512], plain[512], old[1024];
    snprintf(one, sizeof one, "%s/data.npz", folder);
    snprintf(two, sizeof two, "%s/two\nlines.npz", folder);
    snprintf(plain, sizeof plain, "%s/plain.npz", folder);
    test_cluster_run(ctx, folder, "column-world", 40, NULL, NULL);
    test_cluster_run(ctx, other, "column-world", 40, NULL, NULL);
    assert_int_equal(rename(test_path(other, "data.npz"), two), 0);
    const char *const paths[] = {one, two};
    const psi_cluster_options options = psi_cluster_defaults();
    psi_run_folder *to;
    psi_trajectories *data;
    psi_run *run;
    assert_ok(ctx, psi_trajectories_read_all(ctx, paths, 2, NULL, &data));
    const char *both = test_path(folder, "both");
    assert_ok(ctx, psi_run_folder_open(ctx, both, PSI_FOLDER_NEW, &to));
    assert_ok(ctx, psi_cluster_into(to, paths, 2, data, &options, &run));
    psi_run_free(ctx, run);
    psi_trajectories_free(ctx, data);
    assert_finds_both(ctx, both);

    const char *path = test_path(both, "manifest.json");
    json_t *manifest;
    assert_ok(ctx, base_json_load(ctx, path, 1 << 20, &manifest));
    json_t *of = json_object_get(manifest, "data"), *kept = json_object_get(of, "paths");
    assert_string_equal(json_string_value(json_array_get(kept, 1)), two);
    json_array_set_new(kept, 1, json_integer(7));
    assert_ok(ctx, base_json_save(ctx, path, manifest));
    assert_status(ctx, psi_run_load(ctx, both, &run), PSI_EFORMAT);
    json_object_del(of, "paths");
    assert_int_equal(rename(two, plain), 0);
    snprintf(old, sizeof old, "%s\n%s", one, plain);
    json_object_set_new(of, "path", json_string(old));
    assert_ok(ctx, base_json_save(ctx, path, manifest));
    json_decref(manifest);
    assert_finds_both(ctx, both);
    test_folder_free(other);
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
    assert_status(ctx, psi_run_load(ctx, folder, &read), PSI_EFORMAT);
    test_assert_error_says(ctx, "is no run");
    psi_run_free(ctx, found);
    psi_trajectories_free(ctx, data);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

// Refinements get better on the run's own data; those whose labels were removed are left out.
static void errors_fall_refinement_by_refinement(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder();
    test_cluster_run(ctx, folder, "column-world", 200, NULL, NULL);
    psi_run *run;
    psi_trajectories *data;
    psi_run_errors *errors;
    assert_ok(ctx, psi_run_load(ctx, test_path(folder, "run"), &run));
    assert_ok(ctx, psi_run_data(ctx, run, NULL, NULL, &data));
    assert_ok(ctx, psi_run_evaluate(ctx, run, data, run->labels, true, &errors));
    assert_int_equal(errors->n_stages, run->n_steps + 1);
    assert_int_equal(errors->n_episodes, data->n_episodes);
    for (size_t i = 1; i < errors->n_stages; i++) {
        assert_true(errors->summary[i].mean <= errors->summary[i - 1].mean + 1e-9);
    }
    assert_true(errors->summary[0].mean > 0.01);
    assert_true(errors->summary[errors->n_stages - 1].mean < 1e-9);
    double sum = 0.0;
    for (size_t e = 0; e < errors->n_episodes; e++) sum += errors->values[e];
    assert_true(fabs(sum / (double)errors->n_episodes - errors->summary[0].mean) < 1e-9);
    psi_run_errors_free(ctx, errors);
    assert_int_equal(unlink(test_path(folder, "run/clusters-02.npy")), 0);
    assert_ok(ctx, psi_run_evaluate(ctx, run, data, run->labels, true, &errors));
    assert_int_equal(errors->n_stages, 2); // the first, and the final model
    psi_run_errors_free(ctx, errors);
    // on other data, without heads, the final model alone
    assert_ok(ctx, psi_run_evaluate(ctx, run, data, run->labels, false, &errors));
    assert_int_equal(errors->n_stages, 1);
    psi_run_errors_free(ctx, errors);
    psi_trajectories_free(ctx, data);
    psi_run_free(ctx, run);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

static void labels_are_the_runs_own_or_predicted(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    psi_trajectories *data = test_collect(ctx, "column-world", 200, 5, NULL),
                     *other = test_collect(ctx, "column-world", 50, 6, NULL);
    const psi_cluster_options options = psi_cluster_defaults();
    psi_run *run;
    int32_t *labels;
    bool own;
    assert_ok(ctx, psi_cluster(ctx, data, &options, &run));
    assert_ok(ctx, base_alloc(ctx, data->n_observations, sizeof *labels, &labels));
    assert_ok(ctx, psi_run_label(ctx, run, data, 0.0, labels, &own));
    assert_true(own);
    assert_memory_equal(labels, run->labels, data->n_observations * sizeof *labels);
    assert_ok(ctx, psi_run_label(ctx, run, other, 0.0, labels, &own));
    assert_false(own);
    psi_purity purity;
    assert_ok(ctx, psi_purity_of(ctx, other, labels, run->n_latent, &purity));
    assert_true(purity.accuracy == 1.0);
    // nothing is as sure as this but the ends of episodes, which are known
    for (int which = 0; which < 2; which++) {
        const psi_trajectories *of = which ? other : data;
        assert_ok(ctx, psi_run_label(ctx, run, of, 1.1, labels, NULL));
        for (size_t e = 0; e < of->n_episodes; e++) {
            const uint64_t end = of->episode_offsets[e + 1] + e;
            for (uint64_t row = of->episode_offsets[e] + e; row <= end; row++) {
                assert_int_equal(labels[row], row == end && of->terminated[e] ? 0 : -1);
            }
        }
    }
    base_free(ctx, labels);
    psi_run_free(ctx, run);
    psi_trajectories_free(ctx, other);
    psi_trajectories_free(ctx, data);
    psi_ctx_free(ctx);
}

// One value of the manifest at a time, without checksums, which would notice first.
static void a_manifest_that_makes_no_sense_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *object, *key, *value, *says;
    } lies[] = {
        {"result", "approximator", "\"a crystal ball\"", "not the manifest of a run"},
        {"result", "latent_states", "0", "latent_states"},
        {"result", "latent_states", "-3", "latent_states"},
        {"result", "latent_states", "7", "does not fit the manifest"},
        {"result", "gamma", "1.5", "gamma"},
        {"data", "fingerprint", "\"none\"", "not the manifest of a run"},
        {"data", "n_actions", "0", "n_actions"},
        {"data", "observations", "12", "one label for each"},
        {"options", "gamma", "7", "gamma"},
        {"options", "cache", "[]", "cache"},
        {"options", "method", "\"guess\"", "method"},
    };
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder(), path[1024];
    snprintf(path, sizeof path, "%s/run/manifest.json", folder);
    json_t *whole;
    psi_run *run;
    test_cluster_run(ctx, folder, "column-world", 60, NULL, NULL);
    assert_ok(ctx, base_json_load(ctx, path, 1 << 20, &whole));
    (void)json_object_del(whole, "checksums");
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        json_t *manifest = json_deep_copy(whole), *value;
        assert_ok(ctx, base_json_parse(ctx, "a lie", lies[i].value, strlen(lies[i].value), &value));
        json_object_set_new(json_object_get(manifest, lies[i].object), lies[i].key, value);
        assert_ok(ctx, base_json_save(ctx, path, manifest));
        json_decref(manifest);
        const psi_status status = psi_run_load(ctx, test_path(folder, "run"), &run);
        if (status != PSI_EFORMAT && status != PSI_EDATA) {
            fail_msg("%s.%s = %s: %s", lies[i].object, lies[i].key, lies[i].value,
                     psi_status_name(status));
        }
        test_assert_error_says(ctx, lies[i].says);
        assert_null(run);
    }
    // what is only told is left out: doubts about states that there are not, words unknown here
    json_t *result = json_object_get(whole, "result"), *doubts;
    static const char text[] =
        "[{\"kind\": \"pair\", \"state\": 1, \"other\": 2, \"nats\": 1.5, \"visits\": 3},"
        " {\"kind\": \"pair\", \"state\": 1, \"other\": 4}, {\"kind\": \"omen\", \"state\": 1},"
        " {\"kind\": \"untried\", \"state\": 3, \"other\": 9}, {\"kind\": \"past\", \"state\": -1},"
        " {\"kind\": \"looks\", \"state\": 2}, {\"kind\": \"rare\", \"state\": -1}, 7]";
    assert_ok(ctx, base_json_parse(ctx, "doubts", text, sizeof text - 1, &doubts));
    json_object_set_new(result, "doubts", doubts);
    json_object_set_new(result, "verdict", json_string("perhaps"));
    assert_ok(ctx, base_json_save(ctx, path, whole));
    assert_ok(ctx, psi_run_load(ctx, test_path(folder, "run"), &run));
    assert_int_equal(run->verdict, PSI_VERDICT_NOT_ASKED);
    assert_int_equal(run->n_doubts, 3);
    assert_int_equal(run->doubts[0].other, 2);
    assert_int_equal(run->doubts[1].kind, PSI_DOUBT_PAST);
    assert_int_equal(run->doubts[2].kind, PSI_DOUBT_LOOKS);
    psi_run_free(ctx, run);
    json_decref(whole);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

static psi_status load_all(psi_ctx *ctx, void *folder)
{
    psi_run *run = NULL;
    psi_levels levels = {0};
    psi_status status = psi_run_load(ctx, folder, &run);
    if (status == PSI_OK) status = psi_run_levels(ctx, run, &levels);
    psi_levels_free(ctx, &levels);
    psi_run_free(ctx, run);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder(), run[1024];
    test_cluster_run(ctx, folder, "column-world", 30, NULL, NULL);
    snprintf(run, sizeof run, "%s/run", folder);
    assert_in_range(test_fault_sweep(load_all, run), 40, 1000);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_folder_goes_out_and_in),
        cmocka_unit_test(a_run_that_is_read_is_the_one_that_was_found),
        cmocka_unit_test(levels_go_from_terminal_states_to_the_final_labels),
        cmocka_unit_test(a_run_knows_its_data),
        cmocka_unit_test(a_run_knows_all_files_of_its_data),
        cmocka_unit_test(errors_fall_refinement_by_refinement),
        cmocka_unit_test(labels_are_the_runs_own_or_predicted),
        cmocka_unit_test(a_manifest_that_makes_no_sense_is_refused),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
