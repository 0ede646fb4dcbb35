// One figure in the making: data and script as text, drawn by gnuplot (or Graphviz) as a program of
// its own. Everything variable stands in the data file; the script is ours.
#ifndef PSI_REPORT_PLOT_H
#define PSI_REPORT_PLOT_H

#include <psifold/report.h>

#include "report/text.h"

typedef struct report_plot {
    psi_ctx *ctx;
    const psi_figure *at;
    size_t width, height; // pixels of the SVG
    report_text data, script;
} report_plot;

// Refuses names that are no plain file names. Freed with report_plot_free, also after a failure.
psi_status report_plot_new(psi_ctx *ctx, const psi_figure *at, size_t width, size_t height,
                           report_plot *plot);
void report_plot_free(report_plot *plot);

// Writes name.dat and name.gp and runs gnuplot, which draws the script once for every look. In the
// script, DATA is the data file, ink, paper, muted and line are the look's colours (as strings).
psi_status report_plot_draw(report_plot *plot);

// Runs a program in the figure's folder; its complaint becomes the error.
psi_status report_plot_run(report_plot *plot, const char *const *arguments);

// Words as a quoted field of a data file: what could mean something to gnuplot becomes '_'.
void report_plot_words(report_text *text, const char *words);

// Colour k of the palette as 0xRRGGBB: Okabe and Ito's first, then hues far apart.
unsigned report_colour(size_t k);

enum { REPORT_GREY = 0x8c8c8c };

#endif
