// psifold/report.h: what was found, to look at: the page of a run, and figures of plain arrays.
#ifndef PSIFOLD_REPORT_H
#define PSIFOLD_REPORT_H

#include <psifold/base.h>
#include <psifold/cluster.h>
#include <psifold/data.h>
#include <psifold/mdp.h>
#include <psifold/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

// ---- the page of a run --------------------------------------------------------------------------

// What a page shows.
typedef struct psi_report_options {
    size_t size;           // of this struct: psi_report_defaults sets it
    const char *data_path; // what the page calls the data; NULL: where the run says they are
    const char *no_data;   // why there are none, to be told on the page; NULL: nothing to tell
    const psi_run *other;  // a run of the same data to put beside it; NULL: none
    const char *figures;   // a folder that keeps data, script and picture of every figure; NULL:
                           // they are only on the page
    double gamma;          // of the values shown
    uint64_t seed;         // of the observations shown
    bool replace;          // overwrite a page that is there
} psi_report_options;
PSI_API psi_report_options psi_report_defaults(void);

// What the page says, in short.
typedef struct psi_report_result {
    bool finished;        // false: the run was interrupted
    bool trusted;         // converged, stable and nothing undetermined
    bool pictures;        // the data were there, and observations are shown
    size_t latent_states; // …
    size_t refinements;
    size_t figures;           // drawn; 0 without gnuplot
    size_t bytes;             // of the page
    double error, zero_error; // mean reward-sequence error and that of predicting zero …
    double best_error;        // … and the best possible (psi_error_floor); NaN without the data
} psi_report_result;

// Writes one self-contained page about a run. data are those that it was made from (psi_run_data),
// or NULL: the page then shows no observations. An interrupted run has been told of them before
// (psi_run_attach). PSI_EDATA for other data, or another run that is not of the same.
PSI_API psi_status psi_report_write(psi_ctx *ctx, const psi_run *run, const psi_trajectories *data,
                                    const char *page, const psi_report_options *options,
                                    psi_report_result *result);

// The same about a finite model, folded exactly (psi_quotient_find with its defaults): blocks are
// the latent states, their sizes the numbers of the model's states. name is what the page calls it.
PSI_API psi_status psi_report_model(psi_ctx *ctx, const psi_model *model, const char *name,
                                    const char *page, const psi_report_options *options,
                                    psi_report_result *result);

// ---- pages about the paper ----------------------------------------------------------------------

// One page from the results of several studies. Each folder has a results.json, {"title": …,
// "what": …, "claims": [{"claim": …, "paper": …, "ours": …, "holds": true | false | null}],
// "figures": [{"name": …, "alt": …, "caption": …, "wide": true | false}], "files": [{"name": …,
// "what": …}]}, and its figures beside it; a wide one has a row to itself. What is read there is
// escaped; PSI_EFORMAT names a file that is something else.
PSI_API psi_status psi_report_studies(psi_ctx *ctx, const char *page, const char *title, size_t n,
                                      const char *const *folders);

// ---- figures of plain arrays --------------------------------------------------------------------

// A figure leaves name.svg, name-dark.svg (for dark pages) and name.png in a folder, and beside
// them what they were made of: name.dat and the script name.gp (name.dot for a graph), to be drawn
// again or otherwise. All of them share one style and colours that colour-blind people can tell
// apart. PSI_EMISSING without gnuplot (or Graphviz), PSI_EUSAGE for arrays that cannot be drawn.
// Names and labels are only ever shown, never interpreted.
typedef struct psi_figure {
    const char *folder, *name;
    const char *x_label, *y_label; // may be NULL
} psi_figure;

PSI_API bool psi_figures_possible(void); // is gnuplot there?
PSI_API bool psi_graphs_possible(void);  // is Graphviz there?

// A grid of coloured cells, row 0 at the top: task maps and state colourings. colour (rows,
// columns) is a number of the palette, −1 for paper; text (rows, columns) may be NULL or have
// NULLs.
PSI_API psi_status psi_figure_map(psi_ctx *ctx, const psi_figure *at, size_t rows, size_t columns,
                                  const int *colour, const char *const *text);

// A matrix (rows, columns) as shades from 0 to its largest value. Names may be NULL: numbers. The
// last column can be set apart, as the ignored states of a confusion matrix are.
typedef struct psi_figure_matrix_options {
    size_t size; // sizeof(psi_figure_matrix_options)
    const char *const *row_names, *const *column_names;
    bool last_apart;
    bool show_values; // in the cells
} psi_figure_matrix_options;
PSI_API psi_status psi_figure_matrix(psi_ctx *ctx, const psi_figure *at, size_t rows,
                                     size_t columns, const double *values,
                                     const psi_figure_matrix_options *options);

// Which cluster split into which: levels of labels (n each, −1 ignored), coarsest first, the first
// of them being refinement number `first`. A line
// joins two clusters of neighbouring levels that share at least 2 % of the smaller one.
PSI_API psi_status psi_figure_tree(psi_ctx *ctx, const psi_figure *at, size_t first,
                                   size_t n_levels, size_t n, const int32_t *const *labels);

// Points (n, 2) coloured by label; −1 is grey. At most 4,000 of them, evenly chosen, are drawn.
PSI_API psi_status psi_figure_scatter(psi_ctx *ctx, const psi_figure *at, size_t n,
                                      const double *points, const int32_t *labels);

// Box plots of groups of values (groups, n), NaN left out: median, quartiles, whiskers to the last
// value within 1.5 quartile distances, values beyond as dots. A dashed line marks baseline (NaN:
// none). Names may be NULL.
PSI_API psi_status psi_figure_boxes(psi_ctx *ctx, const psi_figure *at, size_t groups, size_t n,
                                    const double *values, const char *const *names,
                                    double baseline);

// Histograms of groups of values (groups, n) on a logarithmic axis, every value as a stroke of the
// rug above them. Values below least are counted there.
PSI_API psi_status psi_figure_histogram(psi_ctx *ctx, const psi_figure *at, size_t groups, size_t n,
                                        const double *values, const char *const *names,
                                        double least);

// Sizes of n latent states, the largest first, coloured as everywhere.
PSI_API psi_status psi_figure_sizes(psi_ctx *ctx, const psi_figure *at, size_t n,
                                    const double *shares);

// The latent transition graph, by Graphviz: edges of at least .05, labelled with actions and with
// probabilities where they are below 1; thick where something is earned.
PSI_API psi_status psi_figure_graph(psi_ctx *ctx, const psi_figure *at, const psi_mdp *model);

// A dashed line with a name in the key, to compare with: what is best, or what chance gives.
typedef struct psi_figure_line {
    const char *name;
    const double *at; // one height of curves, one for every group of scores; NaN: none there
} psi_figure_line;

// Learning curves: x (n), and for every series mean, low and high (series, n) of its band. line may
// be NULL. The height begins at 0, unless something is below.
PSI_API psi_status psi_figure_curves(psi_ctx *ctx, const psi_figure *at, size_t series, size_t n,
                                     const double *x, const double *mean, const double *low,
                                     const double *high, const char *const *names,
                                     const psi_figure_line *line);

// Bars of scores, groups (tasks) × series (agents), with every seed (groups, series, seeds) as a
// dot; NaN is left out. The bar is the mean. line may be NULL.
PSI_API psi_status psi_figure_scores(psi_ctx *ctx, const psi_figure *at, size_t groups,
                                     size_t series, size_t seeds, const double *values,
                                     const char *const *group_names,
                                     const char *const *series_names, const psi_figure_line *line);

#ifdef __cplusplus
}
#endif
#endif
