// The page of a run while it is being written: what was read and computed, and the text so far.
#ifndef PSI_REPORT_PAGE_H
#define PSI_REPORT_PAGE_H

#include <psifold/report.h>

#include "base/file.h"
#include "report/closest.h"
#include "report/compare.h"
#include "report/graph.h"
#include "report/samples.h"
#include "report/text.h"

typedef struct report_page {
    psi_ctx *ctx;
    report_text html;
    const psi_run *run;
    psi_levels levels;
    const psi_quotient_result *exact; // of a model that was folded exactly: no run; or NULL
    char *const *action_names;        // (n_actions) hostile words; NULL: actions are numbers
    report_comparison *comparison;    // with options->other; NULL: there is none
    const psi_report_options *options;
    const char *data_path;         // where the data are; NULL: where the run says
    const psi_trajectories *data;  // NULL if they are gone
    report_samples *samples;       // at random …
    report_samples *least_typical; // … and others worth a look; NULL: none
    report_samples *least_sure;
    psi_run_errors *errors;
    psi_plan *plan;            // NULL without a model
    size_t *sizes;             // (n_latent) observations of every latent state …
    size_t ignored;            // … and of none
    size_t *order;             // (n_latent) largest first
    double *sure;              // (n_latent) mean confidence …
    float *least;              // … and the lowest; NULL: nothing says
    report_neighbour *closest; // (n_latent, REPORT_CLOSEST); NULL without a model
    char *figures;             // the folder they are drawn in …
    base_output *kept;         // … if it is to stay
    size_t n_figures;
    psi_report_result result;
    bool best_by_truth; // of result.best_error
} report_page;

// The sections, in order.
void report_page_verdict(report_page *page);        // how sure it is, and what to collect
void report_page_explorer(report_page *page);       // the place of the graph, and its data
psi_status report_page_episodes(report_page *page); // … and of the scrubber
psi_status report_page_beside(report_page *page);   // another run of the same data
void report_page_asked(report_page *page);
void report_page_found(report_page *page);
psi_status report_page_history(report_page *page); // how it got there
psi_status report_page_states(report_page *page);  // what is inside each latent state

// What the page's script needs: the stages of the refinement and a sample of points.
psi_status report_page_stages(report_page *page);

// A figure that stands in the figures folder as name.svg and name-dark.svg, over the whole width of
// the page if it is wide. alt and caption are our own words.
psi_status report_page_figure(report_page *page, const char *name, bool wide, const char *alt,
                              const char *caption);

// The style, the script and the licences of the libraries in it, as bytes (src/report/web).
extern const char REPORT_PAGE_CSS[], REPORT_PAGE_JS[], REPORT_LICENCES[];
extern const size_t REPORT_PAGE_CSS_SIZE, REPORT_PAGE_JS_SIZE, REPORT_LICENCES_SIZE;

#endif
