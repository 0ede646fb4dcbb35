#include "report/figures.h"

#include "base/checked.h"

#include <math.h>
#include <stdio.h>

enum { TREE_CLUSTERS = 120, MATRIX_STATES = 128, GRAPH_STATES = 26, STAGES_SHOWN = 26, BARS = 500 };

// The last of the stages where there are too many for one figure.
static psi_status draw_errors(report_page *page)
{
    psi_status status = PSI_OK;
    const psi_run_errors *errors = page->errors;
    const psi_figure at = {page->figures, "errors", "refinement", "error per step of an episode"};
    const size_t shown = base_min(errors->n_stages, STAGES_SHOWN), first = errors->n_stages - shown;
    char numbers[STAGES_SHOWN][24];
    const char *names[STAGES_SHOWN];
    for (size_t i = 0; i < shown; i++) {
        snprintf(numbers[i], sizeof numbers[i], "%zu", first + i + 1);
        names[i] = first + i + 1 == errors->n_stages ? "final" : numbers[i];
    }
    TRY(psi_figure_boxes(page->ctx, &at, shown, errors->n_episodes,
                         errors->values + first * errors->n_episodes, names,
                         page->result.zero_error));
    TRY(report_page_figure(page, "errors", shown > 9,
                           "Box plots of reward-sequence errors per refinement",
                           "Reward-sequence errors of all episodes, refinement by refinement. The "
                           "dashed line is the mean error of predicting zero."));
done:
    return status;
}

static psi_status draw_tree(report_page *page)
{
    psi_status status = PSI_OK;
    const psi_levels *levels = &page->levels;
    const size_t n = levels->n - 2; // the refinements
    const psi_figure at = {page->figures, "tree", "refinement", NULL};
    size_t widest = 0;
    for (size_t i = 1; i <= n; i++) widest = base_max(widest, levels->clusters[i]);
    if (n < 2 || n > STAGES_SHOWN || widest > TREE_CLUSTERS) return PSI_OK;
    TRY(psi_figure_tree(page->ctx, &at, 1, n, page->run->n_observations,
                        (const int32_t *const *)levels->labels + 1));
    TRY(report_page_figure(page, "tree", widest > 12, "Which cluster split into which",
                           "Which cluster split into which, before the final clean-up: a dot is a "
                           "cluster (larger if it holds more), a line joins clusters that share "
                           "observations."));
done:
    return status;
}

static psi_status draw_sizes(report_page *page)
{
    psi_status status = PSI_OK;
    const psi_run *run = page->run;
    if (run->n_latent > BARS && !page->options->figures) return PSI_OK;
    const psi_figure at = {page->figures, "sizes",
                           run->n_latent <= 40 ? "latent state" : "latent states, largest first",
                           "share of the observations"};
    double *shares = NULL;
    TRY(base_alloc(page->ctx, run->n_latent, sizeof *shares, &shares));
    for (size_t k = 0; k < run->n_latent; k++) {
        shares[k] = (double)page->sizes[k] / (double)run->n_observations;
    }
    TRY(psi_figure_sizes(page->ctx, &at, run->n_latent, shares));
    if (run->n_latent > BARS) goto done; // a picture of so many bars is larger than the table
    TRY(report_page_figure(page, "sizes", run->n_latent > 16, "Sizes of the latent states",
                           "How the observations are spread over the latent states."));
done:
    base_free(page->ctx, shares);
    return status;
}

static psi_status draw_graph(report_page *page)
{
    psi_status status = PSI_OK;
    const psi_figure at = {.folder = page->figures, .name = "graph"};
    if (!page->run->model || page->run->n_latent > GRAPH_STATES || !psi_graphs_possible()) {
        return PSI_OK;
    }
    TRY(psi_figure_graph(page->ctx, &at, page->run->model));
    TRY(report_page_figure(page, "graph", page->run->n_latent > 8, "The latent transition graph",
                           "Where actions lead: an arrow carries the numbers of its actions (and "
                           "how often they lead there, where not always); a thick one earns "
                           "something. The double circle is the end of an episode."));
done:
    return status;
}

static psi_status draw_features(report_page *page)
{
    psi_status status = PSI_OK;
    const psi_run *run = page->run;
    const psi_figure at = {page->figures, "successor-features", "latent state to come",
                           "latent state"};
    const psi_figure_matrix_options how = {.size = sizeof how, .show_values = run->n_latent <= 10};
    psi_lsfm *lsfm = NULL;
    if (!run->model || run->n_latent > MATRIX_STATES) return PSI_OK;
    TRY(psi_lsfm_new(page->ctx, run->model, run->gamma, &lsfm));
    TRY(psi_figure_matrix(page->ctx, &at, run->n_latent, run->n_latent, lsfm->f, &how));
    TRY(report_page_figure(page, "successor-features", false, "Matrix of successor features",
                           "Successor features: how often each latent state is visited from each "
                           "other one under random actions, later visits counting less. Latent "
                           "states with equal rows would be one."));
done:
    psi_lsfm_free(page->ctx, lsfm);
    return status;
}

static psi_status draw_points(report_page *page)
{
    psi_status status = PSI_OK;
    const psi_run *run = page->run;
    const psi_figure at = {page->figures, "points", "first number", "second number"};
    double *points = NULL;
    int32_t *labels = NULL;
    uint64_t *rows = NULL;
    unsigned char *bytes = NULL;
    if (!page->samples || page->samples->look != REPORT_LOOK_POINT) return PSI_OK;
    const psi_observations *from = page->data->observations;
    const size_t n = base_min(run->n_observations, 2500),
                 row_bytes = psi_observations_row_bytes(from);
    TRY(base_alloc(page->ctx, 2 * n, sizeof *points, &points));
    TRY(base_alloc(page->ctx, n, sizeof *labels, &labels));
    TRY(base_alloc(page->ctx, n, sizeof *rows, &rows));
    TRY(base_alloc(page->ctx, n, row_bytes, &bytes));
    for (size_t i = 0; i < n; i++) rows[i] = i * run->n_observations / n;
    TRY(psi_observations_gather(page->ctx, from, rows, n, bytes));
    for (size_t i = 0; i < n; i++) {
        labels[i] = run->labels[rows[i]];
        for (size_t d = 0; d < 2; d++) {
            points[2 * i + d] =
                report_number(psi_observations_dtype(from), bytes + i * row_bytes, d);
        }
    }
    TRY(psi_figure_scatter(page->ctx, &at, n, points, labels));
    TRY(report_page_figure(page, "points", false, "Observations coloured by latent state",
                           "Observations as points, coloured by their latent state; grey ones are "
                           "ignored."));
done:
    base_free(page->ctx, bytes);
    base_free(page->ctx, rows);
    base_free(page->ctx, labels);
    base_free(page->ctx, points);
    return status;
}

psi_status report_page_pictures(report_page *page)
{
    psi_status status = PSI_OK;
    report_text *html = &page->html;
    if (!psi_figures_possible()) {
        report_put(html,
                   "<p class=\"muted\">Figures are left out: gnuplot is not installed.</p>\n");
        return html->status;
    }
    report_put(html, "<div class=\"figures\">\n");
    TRY(draw_points(page));
    if (page->errors) TRY(draw_errors(page));
    TRY(draw_tree(page));
    TRY(draw_graph(page));
    TRY(draw_features(page));
    TRY(draw_sizes(page));
    report_put(html, "</div>\n");
    status = html->status;
done:
    return status;
}
