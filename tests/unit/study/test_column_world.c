// Figure 1 against what can be worked out by hand: columns, refinements, successor features.
#include "support/studies.h"
#include "support/support.h"

#include "base/file.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

enum { WIDTH = 4, CELLS = 16 };

// Successor features of moving right from each column under random actions: two of the four keep
// the column, one goes left, one goes right, as far as there is a column.
static void work_out(double right[WIDTH][WIDTH])
{
    double value[WIDTH][WIDTH] = {{0}};
    for (int turn = 0; turn < 1000; turn++) {
        double next[WIDTH][WIDTH];
        for (int c = 0; c < WIDTH; c++) {
            const int left = c > 0 ? c - 1 : c, to = c < WIDTH - 1 ? c + 1 : c;
            for (int k = 0; k < WIDTH; k++) {
                next[c][k] = (c == k) + 0.9 * (2 * value[c][k] + value[left][k] + value[to][k]) / 4;
            }
        }
        memcpy(value, next, sizeof value);
    }
    for (int c = 0; c < WIDTH; c++) {
        const int to = c < WIDTH - 1 ? c + 1 : c;
        for (int k = 0; k < WIDTH; k++) right[c][k] = (c == k) + 0.9 * value[to][k];
    }
}

static void check_features(psi_ctx *ctx, const char *folder)
{
    double expected[WIDTH][WIDTH], cells[3 * CELLS * WIDTH + 1]; // column, row, value
    work_out(expected);
    assert_int_equal(
        test_figure_numbers(ctx, folder, "successor-features.dat", 0, cells, 3 * CELLS * WIDTH + 1),
        3 * CELLS * WIDTH);
    for (size_t i = 0; i < CELLS * WIDTH; i++) {
        const size_t k = (size_t)cells[3 * i], cell = (size_t)cells[3 * i + 1];
        assert_true(fabs(cells[3 * i + 2] - expected[cell % WIDTH][k]) < 1e-4);
    }
}

// c_0 has one cluster of 16 cells, and every refinement takes a column away from the largest.
static void check_tree(psi_ctx *ctx, const char *folder)
{
    static const double sizes[] = {16, 12, 4, 8, 4, 4, 4, 4, 4, 4};
    double rows[64]; // refinement, place, cluster, observations, share
    assert_int_equal(test_figure_numbers(ctx, folder, "tree.dat", 1, rows, 64), 50);
    for (size_t i = 0; i < 10; i++) {
        assert_true(rows[5 * i + 3] == sizes[i]);
        assert_true(fabs(rows[5 * i + 4] - sizes[i] / CELLS) < 1e-6);
    }
}

// Only the right column is filled on the map; on the colouring, columns have a colour each.
static void check_maps(psi_ctx *ctx, const char *folder)
{
    double map[4 * CELLS], colours[4 * CELLS]; // column, row, colour, filled
    assert_int_equal(test_figure_numbers(ctx, folder, "map.dat", 0, map, 4 * CELLS), 4 * CELLS);
    assert_int_equal(test_figure_numbers(ctx, folder, "colouring.dat", 0, colours, 4 * CELLS),
                     4 * CELLS);
    for (size_t i = 0; i < CELLS; i++) {
        assert_true(map[4 * i + 3] == (map[4 * i] == WIDTH - 1));
        for (size_t j = 0; j < i; j++) {
            const bool column = colours[4 * i] == colours[4 * j];
            assert_true((colours[4 * i + 2] == colours[4 * j + 2]) == column);
        }
    }
}

static void check_claims(const json_t *results)
{
    static const char *const says[][2] = {
        {"Every column is one latent state", "4 latent states, each of them a column"},
        {"Clusters of c_0", "1, 2, 3, 4"},
        {"Cells of one column", "rows differ by at most "},
        {"The same from random", "4 latent states, 0 % of the observations in a wrong one"}};
    bool holds;
    for (size_t i = 0; i < COUNT(says); i++) {
        const char *ours = test_claim(results, says[i][0], &holds);
        if (strncmp(ours, says[i][1], strlen(says[i][1])) != 0) fail_msg("it says %s", ours);
        assert_true(holds);
    }
    assert_int_equal(json_array_size(json_object_get(results, "claims")), COUNT(says));
    for (size_t i = 0; i < 4; i++) {
        const json_t *levels = json_object_get(results, "clusters");
        assert_int_equal(json_integer_value(json_array_get(levels, i)), i + 1);
    }
    assert_true(test_number(results, "successor_feature_difference") < 1e-9);
    assert_true(test_number(results, "latent_states_from_data") == 4);
}

enum { EPISODES = 200 };

// Stopped while it clusters, and called again, a study comes to the labels, to the last byte, of
// one at one go.
static void what_was_stopped_goes_on(const char *whole)
{
    char *output = test_folder(), folder[1024], *labels[2];
    size_t sizes[2];
    psi_ctx *ctx = test_ctx(1);
    test_listener all = {.text = "", .cancel = ctx, .when = "refinement 2"};
    psi_study_options options = test_study_options(output, &all);
    options.episodes = EPISODES;
    test_study_refused(ctx, "column-world", &options, PSI_ECANCELLED, "stopped on request");
    snprintf(folder, sizeof folder, "%s/column-world/quick", output);
    assert_int_equal(access(test_path(folder, "data"), F_OK), 0);
    assert_int_not_equal(access(test_path(folder, "results.json"), F_OK), 0);
    assert_int_not_equal(access(test_path(folder, "index.html"), F_OK), 0);
    psi_ctx_free(ctx);
    ctx = test_ctx(1);
    all = (test_listener){.text = ""};
    test_study_run(ctx, "column-world", &options);
    for (size_t i = 0; i < 2; i++) {
        assert_ok(ctx, base_read_file(ctx, test_path(i ? whole : folder, "run/clusters.npy"),
                                      1 << 20, &labels[i], &sizes[i]));
    }
    assert_int_equal(sizes[0], sizes[1]);
    assert_memory_equal(labels[0], labels[1], sizes[0]);
    for (size_t i = 0; i < 2; i++) base_free(ctx, labels[i]);
    test_folder_free(output);
    psi_ctx_free(ctx);
}

static void the_figure_is_what_can_be_worked_out(void **state)
{
    (void)state;
    if (!psi_figures_possible()) skip();
    psi_ctx *ctx = test_ctx(1);
    char *output = test_folder(), folder[1024];
    test_listener all = {.text = ""};
    psi_study_options options = test_study_options(output, &all);
    options.episodes = EPISODES;
    test_study_run(ctx, "column-world", &options);
    snprintf(folder, sizeof folder, "%s/column-world/quick", output);
    json_t *results = test_load(ctx, folder, "results.json");
    check_claims(results);
    check_features(ctx, folder);
    check_tree(ctx, folder);
    check_maps(ctx, folder);
    test_assert_heard(&all, "\n  data: 200 trajectories");
    test_assert_heard(&all, "\n  run: 4 latent states");
    what_was_stopped_goes_on(folder);
    json_decref(results);
    test_folder_free(output);
    psi_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_figure_is_what_can_be_worked_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
