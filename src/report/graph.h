// The latent MDP as data for the page's script: what the graph is drawn from.
#ifndef PSI_REPORT_GRAPH_H
#define PSI_REPORT_GRAPH_H

#include "report/text.h"

#include <psifold/cluster.h>

typedef struct report_graph {
    const psi_run *run;        // with a model
    char *const *action_names; // (n_actions) hostile words; NULL: actions are numbers
    const psi_plan *plan;
    const size_t *sizes;    // (n_latent)
    const double *sure;     // (n_latent) mean confidence; NULL: nothing says
    const int8_t *compared; // (n_latent) beside another run: 1 split there, −1 joined, 0 the same;
                            // NULL: there is no other
} report_graph;

// Is it small enough for a page?
bool report_graph_fits(const psi_run *run);

// A script element of JSON with this id. Transitions too many for a page lose the least probable.
void report_graph_put(const report_graph *graph, const char *id, report_text *html);

#endif
