// The latent transition graph, drawn by Graphviz.
#include "report/plot.h"

#include "base/checked.h"
#include "base/context.h"
#include "base/file.h"

#include <math.h>
#include <stdio.h>

enum { MAX_STATES = 60, MAX_LISTED = 6 };

static const double LEAST = 0.05;

typedef struct look {
    const char *ending, *format, *ink, *paper, *muted;
} look;

// All actions that lead from one latent state to another share an arrow.
static void put_edge(report_text *dot, const psi_mdp *model, size_t from, size_t to,
                     const look *how)
{
    size_t listed = 0;
    double earned = 0.0;
    report_text label = {.ctx = dot->ctx};
    for (size_t a = 0; a < model->n_actions; a++) {
        const size_t row = from * model->n_actions + a;
        for (size_t i = model->offsets[row]; i < model->offsets[row + 1]; i++) {
            if ((size_t)model->next[i] != to || model->probability[i] < LEAST) continue;
            if (fabs(model->reward[row]) > fabs(earned)) earned = model->reward[row];
            if (listed++ >= MAX_LISTED) continue;
            report_putf(&label, "%s%zu", listed > 1 ? ", " : "", a);
            if (model->probability[i] < 0.995) {
                report_putf(&label, " (%.0f%%)", 100.0 * model->probability[i]);
            }
        }
    }
    if (listed > MAX_LISTED) report_put(&label, ", …");
    if (label.status != PSI_OK) dot->status = label.status;
    if (listed > 0 && label.status == PSI_OK) {
        report_putf(dot, "  s%zu -> s%zu [label=\" %s%s", from, to, label.bytes, "");
        if (fabs(earned) >= 0.005) {
            report_putf(dot,
                        "\\nreward %.3g\", penwidth=2.5, color=\"#d55e00\", fontcolor=\"%s\"];\n",
                        earned, how->ink);
        } else {
            report_put(dot, "\"];\n");
        }
    }
    report_text_free(&label);
}

static psi_status draw(report_plot *plot, const psi_mdp *model, const look *how)
{
    psi_status status = PSI_OK;
    char *path = NULL, name[80], format[16], output[80];
    report_text dot = {.ctx = plot->ctx};
    report_putf(
        &dot,
        "digraph latent {\n  rankdir=LR; bgcolor=\"%s\"; margin=0.1; nodesep=0.3;\n"
        "  node [shape=circle, style=filled, fontname=\"sans-serif\", fontsize=13, width=0.5, "
        "fixedsize=true, color=\"%s\", penwidth=1];\n"
        "  edge [fontname=\"sans-serif\", fontsize=10, color=\"%s\", fontcolor=\"%s\", "
        "arrowsize=0.7];\n",
        how->paper, how->muted, how->muted, how->ink);
    for (size_t k = 0; k < model->n_states; k++) {
        const unsigned colour = report_colour(k);
        const double light =
            0.299 * (colour >> 16) + 0.587 * (colour >> 8 & 255) + 0.114 * (colour & 255);
        report_putf(&dot, "  s%zu [label=\"%zu\", fillcolor=\"#%06x\", fontcolor=\"%s\"%s];\n", k,
                    k, colour, light > 120.0 ? "#1b1f24" : "#ffffff",
                    model->terminal[k] ? ", shape=doublecircle" : "");
    }
    for (size_t from = 0; from < model->n_states; from++) {
        for (size_t to = 0; to < model->n_states; to++) put_edge(&dot, model, from, to, how);
    }
    report_put(&dot, "}\n");
    snprintf(name, sizeof name, "%s%s.dot", plot->at->name, how->ending);
    snprintf(output, sizeof output, "%s%s.%s", plot->at->name, how->ending, how->format);
    snprintf(format, sizeof format, "-T%s", how->format);
    TRY(base_join(plot->ctx, plot->at->folder, name, &path));
    TRY(report_text_save(&dot, path, true));
    const char *const arguments[] = {"dot", format, "-Gdpi=72", "-o", output, name, NULL};
    const char *const sharp[] = {"dot", format, "-Gdpi=144", "-o", output, name, NULL};
    TRY(report_plot_run(plot, how->format[0] == 'p' ? sharp : arguments));
done:
    base_free(plot->ctx, path);
    report_text_free(&dot);
    return status;
}

psi_status psi_figure_graph(psi_ctx *ctx, const psi_figure *at, const psi_mdp *model)
{
    if (FREED(ctx, model)) return PSI_EUSAGE;
    static const look looks[] = {{"", "png", "#1b1f24", "#ffffff", "#57606a"},
                                 {"", "svg", "#1b1f24", "#ffffff", "#57606a"},
                                 {"-dark", "svg", "#e6e9ec", "#14171a", "#a4adb6"}};
    psi_status status = PSI_OK;
    report_plot plot;
    TRY(report_plot_new(ctx, at, 0, 0, &plot));
    if (model->n_states > MAX_STATES) {
        status = FAIL(ctx, PSI_EUSAGE, "a graph of more than %d latent states cannot be read",
                      MAX_STATES);
        goto done;
    }
    for (size_t i = 0; i < sizeof looks / sizeof looks[0]; i++) TRY(draw(&plot, model, &looks[i]));
done:
    report_plot_free(&plot);
    return status;
}
