// Figures: what stands in their data files is what was given, the pictures are there, and names are
// never interpreted.
#include "support/runs.h"
#include "support/support.h"

#include "base/context.h"
#include "base/file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct bench {
    psi_ctx *ctx;
    char *folder;
} bench;

static int set_up(void **state)
{
    static bench b;
    b = (bench){test_ctx(1), test_folder()};
    *state = &b;
    return 0;
}

static int tear_down(void **state)
{
    bench *b = *state;
    test_folder_free(b->folder);
    psi_ctx_free(b->ctx);
    return 0;
}

static size_t size_of(const bench *b, const char *name, const char *ending)
{
    char file[128];
    struct stat info;
    snprintf(file, sizeof file, "%s%s", name, ending);
    return stat(test_path(b->folder, file), &info) == 0 ? (size_t)info.st_size : 0;
}

// All of a figure is there; nothing else is.
static void assert_drawn(const bench *b, const char *name)
{
    static const char *const endings[] = {".dat", ".gp", ".svg", "-dark.svg", ".png"};
    for (size_t i = 0; i < 5; i++) {
        if (size_of(b, name, endings[i]) == 0) fail_msg("%s%s is missing", name, endings[i]);
    }
    assert_true(size_of(b, name, ".svg") > 600);
    assert_int_equal(size_of(b, name, ".log"), 0);
}

static char *text_of(const bench *b, const char *name)
{
    char *text;
    size_t size;
    assert_ok(b->ctx, base_read_file(b->ctx, test_path(b->folder, name), 1 << 24, &text, &size));
    return text;
}

// Row `row` of block `block` of a data file, as numbers; names become NaN.
static size_t numbers_of(const char *text, size_t block, size_t row, double *to, size_t most)
{
    size_t at_block = 0, at_row = 0, empty = 0;
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1) {
        const size_t length = strcspn(line, "\n");
        if (length == 0) {
            if (++empty == 2) {
                at_block++;
                at_row = 0;
            }
            continue;
        }
        empty = 0;
        if (*line == '#') continue;
        if (at_block == block && at_row++ == row) {
            size_t n = 0;
            for (const char *c = line; c < line + length && n < most;) {
                char *end;
                to[n] = strtod(c, &end);
                if (end == c) {
                    to[n] = (double)NAN;
                    end = (char *)c + 1;
                    while (end < line + length && *end != ' ') end++;
                }
                n++;
                c = end + strspn(end, " ");
            }
            return n;
        }
    }
    return 0;
}

static void a_map_has_its_cells(void **state)
{
    bench *b = *state;
    const int colour[6] = {-1, 0, 1, 2, -1, 5};
    const char *text[6] = {"a", NULL, NULL, NULL, NULL, "f"};
    const psi_figure at = {.folder = b->folder, .name = "map"};
    double v[5];
    assert_ok(b->ctx, psi_figure_map(b->ctx, &at, 2, 3, colour, text));
    assert_drawn(b, "map");
    char *data = text_of(b, "map.dat");
    assert_int_equal(numbers_of(data, 0, 0, v, 5), 5);
    assert_true(v[0] == 0 && v[1] == 1 && v[3] == 0); // top left, not filled
    numbers_of(data, 0, 5, v, 5);
    assert_true(v[0] == 2 && v[1] == 0 && v[2] == 0xd55e00 && v[3] == 1);
    base_free(b->ctx, data);
    assert_status(b->ctx, psi_figure_map(b->ctx, &at, 0, 3, colour, text), PSI_EUSAGE);
}

static void a_matrix_has_its_cells_and_the_ignored_column_apart(void **state)
{
    bench *b = *state;
    const double values[6] = {1.0, 0.0, 0.0, 0.0, 0.75, 0.25};
    const char *rows[2] = {"(0,0,*)", "(0,1,*)"};
    const psi_figure at = {b->folder, "confusion", "latent state", NULL};
    const psi_figure_matrix_options how = {
        .size = sizeof how, .row_names = rows, .last_apart = true};
    double v[3];
    assert_ok(b->ctx, psi_figure_matrix(b->ctx, &at, 2, 3, values, &how));
    assert_drawn(b, "confusion");
    char *data = text_of(b, "confusion.dat"), *picture = text_of(b, "confusion.svg");
    numbers_of(data, 0, 0, v, 3);
    assert_true(v[0] == 0 && v[1] == 0 && v[2] == 1.0);
    numbers_of(data, 0, 2, v, 3);
    assert_true(v[0] == 3 && v[1] == 1 && v[2] == 0.25);
    assert_int_equal(numbers_of(data, 0, 3, v, 3), 0);
    assert_non_null(strstr(picture, "(0,1,*)"));
    assert_non_null(strstr(picture, "ignored"));
    base_free(b->ctx, picture);
    base_free(b->ctx, data);
    const double zeros[4] = {0.0}, wrong[1] = {(double)NAN};
    assert_ok(b->ctx, psi_figure_matrix(b->ctx, &at, 2, 2, zeros, NULL));
    assert_status(b->ctx, psi_figure_matrix(b->ctx, &at, 1, 1, wrong, NULL), PSI_EUSAGE);
}

static void a_tree_tells_who_came_from_whom(void **state)
{
    bench *b = *state;
    const int32_t coarse[6] = {0, 0, 0, 1, 1, 1}, fine[6] = {0, 0, 2, 1, 1, -1};
    const int32_t *levels[2] = {coarse, fine};
    const psi_figure at = {b->folder, "tree", "refinement", NULL};
    double v[5];
    assert_ok(b->ctx, psi_figure_tree(b->ctx, &at, 1, 2, 6, levels));
    assert_drawn(b, "tree");
    char *data = text_of(b, "tree.dat");
    // three edges: 0-0 (2), 0-2 (1), 1-1 (2)
    double shared = 0.0;
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(numbers_of(data, 0, i, v, 5), 5);
        assert_true(v[0] == 1 && v[2] == 2);
        shared += v[4];
    }
    assert_int_equal(numbers_of(data, 0, 3, v, 5), 0);
    assert_true(shared == 5.0);
    for (size_t i = 0; i < 5; i++) assert_int_equal(numbers_of(data, 1, i, v, 5), 5);
    assert_true(v[0] == 2 && v[2] == 2 && v[3] == 1);
    base_free(b->ctx, data);
    assert_ok(b->ctx, psi_figure_tree(b->ctx, &at, 0, 1, 6, levels));
    assert_status(b->ctx, psi_figure_tree(b->ctx, &at, 0, 0, 6, levels), PSI_EUSAGE);
}

static void a_scatter_has_its_points(void **state)
{
    bench *b = *state;
    const double points[6] = {0.5, 1.5, 2.5, 3.5, 1.0, 1.0};
    const int32_t labels[3] = {2, 0, -1};
    const psi_figure at = {b->folder, "points", "x", "y"};
    double v[4];
    assert_ok(b->ctx, psi_figure_scatter(b->ctx, &at, 3, points, labels));
    assert_drawn(b, "points");
    char *data = text_of(b, "points.dat");
    numbers_of(data, 0, 0, v, 4);
    assert_true(v[0] == 0.5 && v[1] == 1.5 && v[2] == 2 && v[3] == 0x009e73);
    numbers_of(data, 0, 2, v, 4);
    assert_true(v[2] == -1 && v[3] == 0x8c8c8c);
    base_free(b->ctx, data);
    assert_status(b->ctx, psi_figure_scatter(b->ctx, &at, 0, points, labels), PSI_EUSAGE);
}

static void boxes_have_quartiles_and_outliers(void **state)
{
    bench *b = *state;
    const double values[20] = {1, 2, 3, 4, 5,           6,           7, 8, 9, 100,
                               0, 0, 0, 0, (double)NAN, (double)NAN, 0, 0, 0, 0};
    const char *names[2] = {"first", "final"};
    const psi_figure at = {b->folder, "boxes", "refinement", "error"};
    double v[7];
    assert_ok(b->ctx, psi_figure_boxes(b->ctx, &at, 2, 10, values, names, 4.0));
    assert_drawn(b, "boxes");
    char *data = text_of(b, "boxes.dat"), *picture = text_of(b, "boxes.svg");
    assert_int_equal(numbers_of(data, 0, 0, v, 7), 7);
    assert_true(v[1] == 1.0 && v[2] == 3.25 && v[3] == 5.5 && v[4] == 7.75 && v[5] == 9.0);
    assert_int_equal(numbers_of(data, 0, 1, v, 7), 7);
    assert_true(v[1] == 0.0 && v[5] == 0.0);
    assert_int_equal(numbers_of(data, 1, 0, v, 7), 2);
    assert_true(v[0] == 1.0 && v[1] == 100.0);
    assert_int_equal(numbers_of(data, 1, 1, v, 7), 0);
    numbers_of(data, 2, 0, v, 7);
    assert_true(v[1] == 4.0);
    assert_non_null(strstr(picture, "final"));
    base_free(b->ctx, picture);
    base_free(b->ctx, data);
    assert_ok(b->ctx, psi_figure_boxes(b->ctx, &at, 1, 10, values, NULL, (double)NAN));
    assert_status(b->ctx, psi_figure_boxes(b->ctx, &at, 0, 10, values, NULL, 0.0), PSI_EUSAGE);
}

static void a_histogram_counts_everything_once(void **state)
{
    bench *b = *state;
    enum { N = 400 };
    double values[2 * N], v[8], sum[2] = {0};
    for (size_t i = 0; i < N; i++) {
        values[i] = pow(10.0, -5.0 + 4.0 * (double)i / N);
        values[N + i] = i < 100 ? 0.0 : 0.5;
    }
    const char *names[2] = {"refinement 1", "final"};
    const psi_figure at = {b->folder, "histogram", "error", "trajectories"};
    assert_ok(b->ctx, psi_figure_histogram(b->ctx, &at, 2, N, values, names, 1e-6));
    assert_drawn(b, "histogram");
    char *data = text_of(b, "histogram.dat"), *picture = text_of(b, "histogram.svg");
    for (size_t row = 0; numbers_of(data, 0, row, v, 8) == 4; row++) {
        sum[0] += v[2];
        sum[1] += v[3];
        if (row == 0) assert_true(v[3] == 100.0); // zeros stand at the left end
    }
    assert_true(sum[0] == N && sum[1] == N);
    assert_int_equal(numbers_of(data, 1, 2 * N - 1, v, 8), 4); // the rug has all of them
    assert_true(v[0] == 0.5 && v[2] == 2.0);
    assert_non_null(strstr(picture, "refinement 1"));
    base_free(b->ctx, picture);
    base_free(b->ctx, data);
    assert_status(b->ctx, psi_figure_histogram(b->ctx, &at, 2, N, values, names, 0.0), PSI_EUSAGE);
}

static void sizes_come_largest_first(void **state)
{
    bench *b = *state;
    const double shares[4] = {0.1, 0.5, 0.15, 0.25};
    const psi_figure at = {b->folder, "sizes", "latent state", "share"};
    const double expected[4] = {1, 3, 2, 0};
    double v[4];
    assert_ok(b->ctx, psi_figure_sizes(b->ctx, &at, 4, shares));
    assert_drawn(b, "sizes");
    char *data = text_of(b, "sizes.dat");
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(numbers_of(data, 0, i, v, 4), 4);
        assert_true(v[2] == expected[i] && v[1] == shares[(size_t)expected[i]]);
    }
    base_free(b->ctx, data);
}

static void curves_and_scores_keep_their_numbers(void **state)
{
    bench *b = *state;
    const double x[3] = {0, 10, 20}, mean[6] = {1, 2, 3, 3, 2, 1}, low[6] = {0, 1, 2, 2, 1, 0},
                 high[6] = {2, 3, 4, 4, 3, 2};
    const char *agents[2] = {"dqn", "reward-predictive"}, *tasks[2] = {"train", "swap-digits"};
    const psi_figure curves = {b->folder, "curves", "episodes", "steps"},
                     scores = {b->folder, "scores", NULL, "reward per step"};
    const double optimum[2] = {6.5, 2.5};
    const psi_figure_line line = {"optimum", optimum};
    double v[8];
    assert_ok(b->ctx, psi_figure_curves(b->ctx, &curves, 2, 3, x, mean, low, high, agents, &line));
    assert_drawn(b, "curves");
    char *data = text_of(b, "curves.dat"), *picture = text_of(b, "curves.svg");
    assert_int_equal(numbers_of(data, 0, 1, v, 8), 7);
    assert_true(v[0] == 10 && v[1] == 2 && v[2] == 1 && v[3] == 3 && v[4] == 2 && v[6] == 3);
    assert_non_null(strstr(picture, "reward-predictive"));
    assert_non_null(strstr(picture, "optimum"));
    for (size_t i = 0; i < 2; i++) { // from end to end, above everything
        assert_int_equal(numbers_of(data, 1, i, v, 8), 2);
        assert_true(v[0] == x[2 * i] && v[1] == 6.5);
    }
    base_free(b->ctx, picture);
    base_free(b->ctx, data);
    // (tasks, agents, seeds)
    const double values[12] = {1, 2, 3, 4, 5, 6, 0.5, (double)NAN, 1.5, 2, 2, 2};
    assert_ok(b->ctx, psi_figure_scores(b->ctx, &scores, 2, 2, 3, values, tasks, agents, &line));
    assert_drawn(b, "scores");
    data = text_of(b, "scores.dat");
    const double means[2][2] = {{2.0, 1.0}, {5.0, 2.0}}; // agent, task
    for (size_t s = 0; s < 2; s++) {
        for (size_t g = 0; g < 2; g++) {
            assert_int_equal(numbers_of(data, 2 * s, g, v, 8), 3);
            assert_true(v[1] == means[s][g]);
        }
    }
    assert_int_equal(numbers_of(data, 1, 4, v, 8), 2); // five seeds are left of dqn's six
    assert_int_equal(numbers_of(data, 1, 5, v, 8), 0);
    assert_int_equal(numbers_of(data, 4, 0, v, 8), 2);
    assert_true(v[0] < 0.0 && v[1] == 6.5);
    base_free(b->ctx, data);
}

// An agent that took no part has no bar; where nothing is earned, or there is one point alone,
// there are axes all the same.
static void scores_that_are_missing_or_nothing_are_drawn(void **state)
{
    bench *b = *state;
    const double values[4] = {0.0, (double)NAN, 0.0, (double)NAN}, zero = 0.0, one = 1.0;
    const char *agents[2] = {"dqn", "pretrained"}, *tasks[2] = {"train", "swap-digits"};
    const psi_figure at = {b->folder, "nothing", NULL, "reward per step"};
    double v[4];
    assert_ok(b->ctx, psi_figure_scores(b->ctx, &at, 2, 2, 1, values, tasks, agents, NULL));
    assert_drawn(b, "nothing");
    char *data = text_of(b, "nothing.dat"), *script = text_of(b, "nothing.gp");
    assert_true(numbers_of(data, 2, 0, v, 4) >= 2 && isnan(v[1]));
    assert_non_null(strstr(script, "set yrange [0:1]"));
    base_free(b->ctx, data);
    base_free(b->ctx, script);
    assert_ok(b->ctx,
              psi_figure_curves(b->ctx, &at, 1, 1, &one, &zero, &zero, &zero, agents, NULL));
    assert_drawn(b, "nothing");
    script = text_of(b, "nothing.gp");
    assert_non_null(strstr(script, "set yrange [0:1]"));
    assert_non_null(strstr(script, "set xrange [0.5:1.5]"));
    base_free(b->ctx, script);
}

static psi_mdp *ring(psi_ctx *ctx, size_t n)
{
    uint64_t row[64];
    int32_t next[64];
    double probability[64], reward[64] = {0};
    psi_mdp *mdp;
    for (size_t k = 0; k < n; k++) {
        row[k] = k;
        next[k] = (int32_t)((k + 1) % n);
        probability[k] = 1.0;
    }
    reward[n - 1] = 1.0;
    assert_ok(ctx, psi_mdp_from_entries(ctx, n, 1, n, row, next, probability, reward, NULL, &mdp));
    return mdp;
}

static void a_graph_has_an_arrow_for_every_edge(void **state)
{
    bench *b = *state;
    psi_mdp *mdp = ring(b->ctx, 5), *large = ring(b->ctx, 61);
    const psi_figure at = {.folder = b->folder, .name = "graph"};
    assert_ok(b->ctx, psi_figure_graph(b->ctx, &at, mdp));
    char *dot = text_of(b, "graph.dot");
    for (size_t k = 0; k < 5; k++) {
        char words[32];
        snprintf(words, sizeof words, "s%zu -> s%zu ", k, (k + 1) % 5);
        assert_non_null(strstr(dot, words));
    }
    assert_non_null(strstr(dot, "reward 1"));
    assert_true(size_of(b, "graph", ".svg") > 600 && size_of(b, "graph", "-dark.svg") > 600 &&
                size_of(b, "graph", ".png") > 600);
    base_free(b->ctx, dot);
    assert_status(b->ctx, psi_figure_graph(b->ctx, &at, large), PSI_EUSAGE);
    psi_mdp_free(b->ctx, large);
    psi_mdp_free(b->ctx, mdp);
}

// ---- names --------------------------------------------------------------------------------------

static void names_are_shown_and_never_run(void **state)
{
    bench *b = *state;
    const double values[2] = {1, 2};
    const char *evil[1] = {"`touch pwned`'; system('touch pwned')\"$(touch pwned) %s"};
    const psi_figure at = {b->folder, "evil", "'; !touch pwned\n`touch pwned`", evil[0]};
    const psi_figure_line line = {evil[0], values};
    assert_ok(b->ctx, psi_figure_boxes(b->ctx, &at, 1, 2, values, evil, (double)NAN));
    assert_ok(b->ctx, psi_figure_histogram(b->ctx, &at, 1, 2, values, evil, 0.1));
    assert_ok(b->ctx, psi_figure_scores(b->ctx, &at, 1, 1, 2, values, evil, evil, &line));
    assert_ok(b->ctx,
              psi_figure_curves(b->ctx, &at, 1, 2, values, values, values, values, evil, &line));
    const psi_figure_matrix_options how = {.size = sizeof how, .row_names = evil};
    assert_ok(b->ctx, psi_figure_matrix(b->ctx, &at, 1, 2, values, &how));
    const int colour = 1;
    assert_ok(b->ctx, psi_figure_map(b->ctx, &at, 1, 1, &colour, evil));
    assert_int_equal(size_of(b, "pwned", ""), 0);
    assert_int_not_equal(access(test_path(b->folder, "pwned"), F_OK), 0);
    const char *const wrong[] = {"", "../x", "a b", "x;y", "X", NULL};
    for (size_t i = 0; wrong[i]; i++) {
        const psi_figure named = {.folder = b->folder, .name = wrong[i]};
        assert_status(b->ctx, psi_figure_sizes(b->ctx, &named, 2, values), PSI_EUSAGE);
    }
}

static void without_gnuplot_there_is_a_sentence(void **state)
{
    bench *b = *state;
    const double shares[2] = {0.5, 0.5};
    char path[4096];
    snprintf(path, sizeof path, "%s", getenv("PATH"));
    assert_int_equal(setenv("PATH", b->folder, 1), 0);
    assert_false(psi_figures_possible());
    const psi_figure at = {.folder = b->folder, .name = "sizes"};
    assert_status(b->ctx, psi_figure_sizes(b->ctx, &at, 2, shares), PSI_EMISSING);
    test_assert_error_says(b->ctx, "gnuplot is not installed");
    // a gnuplot that fails
    FILE *file = fopen(test_path(b->folder, "gnuplot"), "w");
    fputs("#!/bin/sh\necho no terminal here >&2\nexit 1\n", file);
    fclose(file);
    assert_int_equal(chmod(test_path(b->folder, "gnuplot"), 0755), 0);
    assert_status(b->ctx, psi_figure_sizes(b->ctx, &at, 2, shares), PSI_EINTERNAL);
    test_assert_error_says(b->ctx, "no terminal here");
    assert_int_equal(setenv("PATH", path, 1), 0);
}

static psi_status draw(psi_ctx *ctx, void *argument)
{
    const bench *b = argument;
    const double values[4] = {1, 2, 3, 4};
    const char *names[2] = {"one", "two"};
    const psi_figure at = {b->folder, "sweep", "x", "y"};
    return psi_figure_histogram(ctx, &at, 2, 2, values, names, 0.1);
}

static void every_allocation_may_fail(void **state)
{
    assert_in_range(test_fault_sweep(draw, *state), 8, 200);
}

// ---- the figures of a page ----------------------------------------------------------------------

static void figures_of_a_page_say_what_the_run_folder_says(void **state)
{
    bench *b = *state;
    psi_ctx *ctx = b->ctx;
    psi_report_options how = psi_report_defaults();
    psi_report_result result;
    char figures[1024];
    double v[8];
    snprintf(figures, sizeof figures, "%s/figures", b->folder);
    how.figures = figures;
    test_cluster_run(ctx, b->folder, "column-world", 100, NULL, NULL);
    assert_ok(ctx, test_report(ctx, test_path(b->folder, "run"), NULL,
                               test_path(b->folder, "page.html"), how, &result));
    assert_int_equal(result.figures, psi_graphs_possible() ? 5 : 4);
    psi_run *run;
    psi_trajectories *data;
    assert_ok(ctx, psi_run_load(ctx, test_path(b->folder, "run"), &run));
    assert_ok(ctx, psi_trajectories_read(ctx, test_path(b->folder, "data.npz"), NULL, &data));
    // sizes
    char *text = text_of(b, "figures/sizes.dat");
    for (size_t i = 0; i < run->n_latent; i++) {
        size_t n = 0;
        assert_int_equal(numbers_of(text, 0, i, v, 8), 4);
        for (size_t row = 0; row < run->n_observations; row++) n += run->labels[row] == (int)v[2];
        assert_true(fabs(v[1] - (double)n / (double)run->n_observations) < 1e-8);
    }
    base_free(ctx, text);
    // the tree's clusters
    text = text_of(b, "figures/tree.dat");
    size_t node = 0;
    for (size_t r = 1; r <= run->n_steps; r++) {
        int32_t *labels, clusters = 0;
        assert_ok(ctx, psi_run_labels(ctx, run, r, &labels));
        for (size_t i = 0; i < run->n_observations; i++) {
            if (labels[i] >= clusters) clusters = labels[i] + 1;
        }
        for (int32_t k = 0; k < clusters; k++) {
            size_t n = 0;
            for (size_t i = 0; i < run->n_observations; i++) n += labels[i] == k;
            assert_int_equal(numbers_of(text, 1, node++, v, 8), 5);
            assert_true(v[0] == (double)r && v[2] == (double)k && v[3] == (double)n);
        }
        psi_array_free(ctx, labels);
    }
    assert_int_equal(numbers_of(text, 1, node, v, 8), 0);
    base_free(ctx, text);
    // successor features: F of latent.npz
    psi_shape shape;
    void *f;
    assert_ok(ctx, psi_array_load(ctx, test_path(b->folder, "run/latent.npz"), "F", PSI_FLOAT64,
                                  &shape, &f));
    text = text_of(b, "figures/successor-features.dat");
    size_t cells = 0;
    for (; numbers_of(text, 0, cells, v, 8) == 3; cells++) {
        const double expected = ((double *)f)[(size_t)v[1] * run->n_latent + (size_t)v[0]];
        assert_true(fabs(v[2] - expected) < 1e-5 * (1.0 + fabs(expected)));
    }
    assert_true(cells >= run->n_latent);
    psi_array_free(ctx, f);
    base_free(ctx, text);
    // the last box: errors of the final model, all zero here
    text = text_of(b, "figures/errors.dat");
    assert_int_equal(numbers_of(text, 0, run->n_steps, v, 8), 7);
    assert_true(fabs(v[3]) < 1e-9 && fabs(v[5]) < 1e-9);
    assert_true(fabs(result.error) < 1e-9);
    numbers_of(text, 2, 0, v, 8);
    assert_true(fabs(v[1] - result.zero_error) < 1e-8);
    base_free(ctx, text);
    psi_trajectories_free(ctx, data);
    psi_run_free(ctx, run);
}

int main(void)
{
#define FIGURE_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        FIGURE_TEST(a_map_has_its_cells),
        FIGURE_TEST(a_matrix_has_its_cells_and_the_ignored_column_apart),
        FIGURE_TEST(a_tree_tells_who_came_from_whom),
        FIGURE_TEST(a_scatter_has_its_points),
        FIGURE_TEST(boxes_have_quartiles_and_outliers),
        FIGURE_TEST(a_histogram_counts_everything_once),
        FIGURE_TEST(sizes_come_largest_first),
        FIGURE_TEST(curves_and_scores_keep_their_numbers),
        FIGURE_TEST(scores_that_are_missing_or_nothing_are_drawn),
        FIGURE_TEST(a_graph_has_an_arrow_for_every_edge),
        FIGURE_TEST(names_are_shown_and_never_run),
        FIGURE_TEST(without_gnuplot_there_is_a_sentence),
        FIGURE_TEST(every_allocation_may_fail),
        FIGURE_TEST(figures_of_a_page_say_what_the_run_folder_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
