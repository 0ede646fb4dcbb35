// Figure 5 on a lock of four patterns with a run that is there already: counts, errors and claims
// are those of its labels.
#include "support/collect.h"
#include "support/studies.h"
#include "support/support.h"
#include "support/truth.h"

#include "base/file.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

enum { EPISODES = 20, FRESH = 1000, PATTERNS = 4, IGNORED = 7 };

static const char *const TASK[] = {"digits-per-dial", "2", "digits", "drawn", NULL};

// Files of a run are protected by checksums, without which it is read as well.
static void drop_checksums(psi_ctx *ctx, const char *run)
{
    json_t *manifest = test_load(ctx, run, "manifest.json");
    assert_int_equal(json_object_del(manifest, "checksums"), 0);
    assert_ok(ctx, base_json_save(ctx, test_path(run, "manifest.json"), manifest));
    json_decref(manifest);
}

// Two refinements: c_1 knows only the end from the rest, c_2 all of it.
static void add_refinements(psi_ctx *ctx, const char *run, const psi_trajectories *data)
{
    const size_t n = data->n_observations;
    int32_t *coarse;
    assert_ok(ctx, base_alloc(ctx, n, sizeof *coarse, &coarse));
    for (size_t i = 0; i < n; i++) coarse[i] = data->latent_states[i] != 0;
    const psi_array first = {"x", PSI_INT32, {1, {n}}, coarse},
                    second = {"x", PSI_INT32, {1, {n}}, (void *)data->latent_states};
    assert_ok(ctx, psi_arrays_save(ctx, test_path(run, "clusters-01.npy"), &first, 1));
    assert_ok(ctx, psi_arrays_save(ctx, test_path(run, "clusters-02.npy"), &second, 1));
    FILE *steps = fopen(test_path(run, "refinements.jsonl"), "w");
    assert_non_null(steps);
    for (int i = 1; i <= 2; i++) {
        fprintf(steps,
                "{\"refinement\":%d,\"clusters\":%d,\"looked_at\":%zu,\"ignored_fraction\":0.0,"
                "\"agreement\":1.0,\"gap\":0.0,\"epsilon\":0.0,\"held_out_error\":0.0,\"perfect\":"
                "0.0,\"seconds\":0.0}\n",
                i, 2 * i, data->n_transitions);
    }
    assert_int_equal(fclose(steps), 0);
    drop_checksums(ctx, run);
    base_free(ctx, coarse);
}

// A study folder with a run of the true latent states, but for some observations of pattern (0,0)
// that it ignores. Returns the training data.
static psi_trajectories *prepare(psi_ctx *ctx, const char *folder)
{
    char run[1100];
    psi_net *net;
    assert_ok(ctx, base_make_folders(ctx, folder));
    psi_trajectories *data = test_collect(ctx, "combination-lock", EPISODES, 0, TASK);
    assert_ok(ctx, test_truth_net(ctx, data, PSI_NET_CNN, 12, 3, &net));
    int32_t *truth, *labels = (int32_t *)data->latent_states;
    size_t left = IGNORED;
    assert_ok(ctx, base_alloc(ctx, data->n_observations, sizeof *truth, &truth));
    memcpy(truth, labels, data->n_observations * sizeof *truth);
    for (size_t i = 0; i < data->n_observations && left > 0; i++) {
        if (labels[i] == 1) left--, labels[i] = -1;
    }
    assert_int_equal(left, 0);
    snprintf(run, sizeof run, "%s/run", folder);
    assert_ok(ctx, test_truth_run(ctx, data, net, run));
    test_change_options(ctx, run, json_pack("{s:s, s:b}", "approximator", "cnn", "heads", 0));
    memcpy(labels, truth, data->n_observations * sizeof *truth);
    add_refinements(ctx, run, data);
    base_free(ctx, truth);
    return data;
}

// Rows are patterns, (0,0) … and the rewarding one last; latent states stand in their order.
static void check_confusion(psi_ctx *ctx, const char *folder, const psi_trajectories *data)
{
    enum { WIDTH = PATTERNS + 1 };
    size_t count[PATTERNS] = {0};
    double cells[3 * PATTERNS * WIDTH];
    psi_shape shape;
    int64_t *in;
    for (size_t i = 0; i < data->n_observations; i++) {
        count[(data->latent_states[i] + PATTERNS - 1) % PATTERNS]++;
    }
    assert_ok(ctx, psi_array_load(ctx, test_path(folder, "confusion.npy"), NULL, PSI_INT64, &shape,
                                  (void **)&in));
    assert_true(shape.rank == 2 && shape.dim[0] == PATTERNS && shape.dim[1] == WIDTH);
    for (size_t row = 0; row < PATTERNS; row++) {
        const size_t latent = (row + 1) % PATTERNS;
        for (size_t k = 0; k < WIDTH; k++) {
            size_t expected = 0;
            if (k == latent) expected = count[row] - (row == 0 ? IGNORED : 0);
            if (k == PATTERNS && row == 0) expected = IGNORED;
            assert_int_equal(in[row * WIDTH + k], expected);
        }
    }
    psi_array_free(ctx, in);

    // as shares on the figure: the diagonal, and those that are ignored in the last column
    const size_t n =
        test_figure_numbers(ctx, folder, "confusion.dat", 0, cells, 3 * PATTERNS * WIDTH) / 3;
    assert_int_equal(n, PATTERNS + 1);
    for (size_t i = 0; i < n; i++) {
        const size_t row = (size_t)cells[3 * i + 1];
        const double ignored = (double)IGNORED / (double)count[0];
        double expected = cells[3 * i] == (double)row ? 1.0 : 0.0;
        if (row == 0) expected = cells[3 * i] >= PATTERNS ? ignored : 1.0 - ignored;
        assert_true(fabs(cells[3 * i + 2] - expected) < 1e-4);
    }
}

// Stages are the refinements and the final labels; histograms count every trajectory once.
static void check_errors(psi_ctx *ctx, const char *folder, const json_t *results)
{
    double counts[5 * 64], mean = 0.0;
    size_t in_figure[3] = {0}, predicted = 0;
    bool holds;
    char *text = test_text(ctx, folder, "errors.csv"), *line = text;
    static const char HEAD[] = "trajectory,refinement 1,refinement 2,final\n";
    assert_memory_equal(text, HEAD, sizeof HEAD - 1);
    for (size_t i = 0; i < FRESH; i++) {
        size_t row;
        double first, second, last;
        line = strchr(line, '\n') + 1;
        assert_int_equal(sscanf(line, "%zu,%lf,%lf,%lf", &row, &first, &second, &last), 4);
        assert_int_equal(row, i);
        mean += first / FRESH;
        predicted += last < 1e-3;
    }
    const json_t *list = json_object_get(results, "sequence_errors");
    assert_int_equal(json_array_size(list), 3);
    assert_true(fabs(test_number(json_array_get(list, 0), "mean") - mean) < 1e-7);
    for (size_t i = 0; i < 3; i++) {
        assert_true(test_number(json_array_get(list, i), "judged") == FRESH);
    }
    const size_t n = test_figure_numbers(ctx, folder, "sequence-errors.dat", 0, counts, 5 * 64);
    for (size_t i = 0; i < n; i++) {
        if (i % 5 >= 2) in_figure[i % 5 - 2] += (size_t)counts[i];
    }
    for (size_t i = 0; i < 3; i++) assert_int_equal(in_figure[i], FRESH);
    base_free(ctx, text);

    // c_1 cannot know when the reward comes; the final labels can, as well as the network sees
    assert_true(mean > 0.05);
    const double after = test_number(json_array_get(list, 2), "mean");
    assert_true(after < 0.5 * mean);
    char words[128];
    const double share = test_number(results, "predicted_fraction");
    assert_true(share == (double)predicted / FRESH);
    snprintf(words, sizeof words, "%.1f %% of %d with an error below 0.001; %.2g on average",
             100.0 * share, FRESH, after);
    const char *ours = test_claim(results, "Almost all reward sequences", &holds);
    if (strncmp(ours, words, strlen(words)) != 0) fail_msg("\"%s\", not \"%s\"", ours, words);
    assert_true(holds == (share > 0.95));
}

static void check_clusters(const json_t *results, const psi_trajectories *data)
{
    const double ignored = (double)IGNORED / (double)data->n_transitions; // not of the ends
    char words[32];
    bool holds;
    assert_string_equal(test_claim(results, "As many latent states", &holds), "4 latent states");
    assert_true(holds);
    assert_string_equal(test_claim(results, "No image is in", &holds),
                        "0 % of the training images are");
    assert_true(holds);
    snprintf(words, sizeof words, "%.3g %%", 100.0 * ignored);
    assert_string_equal(test_claim(results, "Few images are ignored", &holds), words);
    assert_false(holds); // more than half a percent
    assert_true(fabs(test_number(results, "ignored_fraction") - ignored) < 1e-12);
    assert_true(test_number(results, "transitions") == (double)data->n_transitions);
    assert_string_equal(json_string_value(json_object_get(results, "digits")), "drawn");
    assert_string_equal(json_string_value(json_object_get(results, "net")), "cnn");
}

// The record of refinements is gone.
static void check_refusal(psi_ctx *ctx, const char *folder, const psi_study_options *options)
{
    assert_int_equal(remove(test_path(folder, "results.json")), 0);
    assert_int_equal(truncate(test_path(folder, "run/refinements.jsonl"), 0), 0);
    test_study_refused(ctx, "combination-lock", options, PSI_EDATA, "no refinement");
}

static void the_figure_is_that_of_the_labels(void **state)
{
    (void)state;
    if (!psi_figures_possible()) skip();
    psi_ctx *ctx = test_ctx(1);
    char *output = test_folder(), folder[1024], *text;
    test_listener all = {.text = ""};
    psi_study_options options = test_study_options(output, &all);
    options.episodes = EPISODES;
    options.digits_per_dial = 2;
    snprintf(folder, sizeof folder, "%s/combination-lock/quick", output);
    psi_trajectories *data = prepare(ctx, folder);
    test_study_run(ctx, "combination-lock", &options);
    test_assert_heard(&all, "run: clustered before");
    json_t *results = test_load(ctx, folder, "results.json");
    check_clusters(results, data);
    check_confusion(ctx, folder, data);
    check_errors(ctx, folder, results);
    text = test_text(ctx, folder, "map.dat");
    assert_non_null(strstr(text, "\"0 to 1\"\n1 0"));
    assert_non_null(strstr(text, "1 \"broken\""));
    base_free(ctx, text);
    check_refusal(ctx, folder, &options);
    json_decref(results);
    psi_trajectories_free(ctx, data);
    test_folder_free(output);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_figure_is_that_of_the_labels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
