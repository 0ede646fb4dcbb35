#include "report/graph.h"

#include "base/checked.h"

#include <math.h>

enum { MOST_STATES = 5000, MOST_PAIRS = 200000, MOST_ENTRIES = 60000 };

bool report_graph_fits(const psi_run *run)
{
    return run->model && run->n_latent <= MOST_STATES &&
           run->n_latent * run->n_actions <= MOST_PAIRS;
}

static void put_sizes(report_text *html, const char *name, const size_t *values, size_t n)
{
    report_putf(html, ",\"%s\":[", name);
    for (size_t i = 0; i < n; i++) report_putf(html, "%s%zu", i ? "," : "", values[i]);
    report_put(html, "]");
}

static void put_reals(report_text *html, const char *name, const double *values, size_t n)
{
    report_putf(html, ",\"%s\":[", name);
    for (size_t i = 0; i < n; i++) {
        report_putf(html, "%s%.4g", i ? "," : "", isfinite(values[i]) ? values[i] : 0.0);
    }
    report_put(html, "]");
}

static size_t kept_entries(const psi_mdp *model, double least)
{
    const size_t n = model->offsets[model->n_states * model->n_actions];
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) kept += model->probability[i] >= least;
    return kept;
}

// Rows of (state, action) as numbers of entries, then all entries.
static void put_transitions(report_text *html, const psi_mdp *model)
{
    const size_t rows = model->n_states * model->n_actions;
    double least = 0.0;
    while (kept_entries(model, least) > MOST_ENTRIES) least = fmax(1e-4, 1.5 * least);
    report_putf(html, ",\"least\":%.3g,\"count\":[", least);
    for (size_t row = 0; row < rows; row++) {
        size_t n = 0;
        for (size_t i = model->offsets[row]; i < model->offsets[row + 1]; i++) {
            n += model->probability[i] >= least;
        }
        report_putf(html, "%s%zu", row ? "," : "", n);
    }
    for (size_t part = 0; part < 2; part++) {
        const char *comma = "";
        report_put(html, part == 0 ? "],\"next\":[" : "],\"p\":[");
        for (size_t i = 0; i < model->offsets[rows]; i++) {
            if (model->probability[i] < least) continue;
            if (part == 0) {
                report_putf(html, "%s%d", comma, model->next[i]);
            } else {
                report_putf(html, "%s%.3g", comma, model->probability[i]);
            }
            comma = ",";
        }
    }
    report_put(html, "]");
}

// Those that name a latent state.
static void put_doubts(report_text *html, const psi_run *run)
{
    const char *comma = "";
    report_put(html, ",\"doubts\":[");
    for (size_t i = 0; i < run->n_doubts; i++) {
        const psi_doubt *doubt = &run->doubts[i];
        if (doubt->state < 0) continue;
        report_putf(html, "%s{\"kind\":\"%s\",\"state\":%d,\"other\":%d,\"nats\":%.4g}", comma,
                    psi_doubt_name(doubt->kind), doubt->state, doubt->other < 0 ? 0 : doubt->other,
                    isfinite(doubt->nats) ? doubt->nats : 0.0);
        comma = ",";
    }
    report_put(html, "]");
}

void report_graph_put(const report_graph *graph, const char *id, report_text *html)
{
    const psi_run *run = graph->run;
    const psi_mdp *model = run->model;
    const size_t k = run->n_latent;
    report_putf(html, "<script type=\"application/json\" id=\"%s\">{\"states\":%zu,\"actions\":%zu",
                id, k, run->n_actions);
    report_put(html, ",\"names\":");
    if (graph->action_names) {
        report_put(html, "[");
        for (size_t a = 0; a < run->n_actions; a++) {
            if (a > 0) report_put(html, ",");
            report_json_words(html, graph->action_names[a]);
        }
        report_put(html, "]");
    } else {
        report_put(html, "null");
    }
    const char *comma = "";
    report_put(html, ",\"terminal\":[");
    for (size_t i = 0; i < k; i++) {
        if (!model->terminal[i]) continue;
        report_putf(html, "%s%zu", comma, i);
        comma = ",";
    }
    report_put(html, "]");
    put_sizes(html, "size", graph->sizes, k);
    put_reals(html, "value", graph->plan->value, k);
    put_reals(html, "reward", model->reward, k * run->n_actions);
    report_put(html, ",\"policy\":[");
    for (size_t i = 0; i < k; i++) {
        report_putf(html, "%s%d", i ? "," : "", graph->plan->policy[i]);
    }
    report_put(html, "]");
    if (graph->sure) put_reals(html, "sure", graph->sure, k);
    if (graph->compared) {
        report_put(html, ",\"compared\":[");
        for (size_t i = 0; i < k; i++) report_putf(html, "%s%d", i ? "," : "", graph->compared[i]);
        report_put(html, "]");
    }
    put_transitions(html, model);
    put_doubts(html, run);
    report_put(html, "}</script>\n");
}
