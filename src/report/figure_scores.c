// Figures of agents: learning curves with bands, bars with seeds as dots.
#include "report/plot.h"

#include "base/checked.h"

#include <math.h>

static void put_title(report_plot *plot, const char *words)
{
    report_text text = {.ctx = plot->ctx};
    report_plot_words(&text, words);
    if (text.status == PSI_OK) {
        report_put(&plot->script, "'");
        report_put_bytes(&plot->script, text.bytes + 1, text.size - 2);
        report_put(&plot->script, "'");
    } else {
        plot->script.status = text.status;
    }
    report_text_free(&text);
}

psi_status psi_figure_curves(psi_ctx *ctx, const psi_figure *at, size_t series, size_t n,
                             const double *x, const double *mean, const double *low,
                             const double *high, const char *const *names)
{
    psi_status status = PSI_OK;
    report_plot plot;
    TRY(report_plot_new(ctx, at, 560, 360, &plot));
    if (series == 0 || n == 0 || series > 16) {
        status = FAIL(ctx, PSI_EUSAGE, "1 to 16 curves of at least one point can be drawn");
        goto done;
    }
    report_put(&plot.data, "# x, then mean low high of every series\n");
    for (size_t i = 0; i < n; i++) {
        report_putf(&plot.data, "%.9g", x[i]);
        for (size_t s = 0; s < series; s++) {
            report_putf(&plot.data, " %.9g %.9g %.9g", mean[s * n + i], low[s * n + i],
                        high[s * n + i]);
        }
        report_put(&plot.data, "\n");
    }
    report_put(&plot.script, "    set key outside top center horizontal\n"
                             "    set grid ytics lc rgb line\n    plot ");
    for (size_t s = 0; s < series; s++) {
        report_putf(&plot.script,
                    "%s%s using 1:%zu:%zu with filledcurves fs transparent solid 0.2 lc rgb 0x%06x "
                    "notitle, \\\n         '' using 1:%zu with %s lw 2 lc rgb 0x%06x title ",
                    s ? ", \\\n         " : "", s ? "''" : "DATA", 3 * s + 3, 3 * s + 4,
                    report_colour(s), 3 * s + 2, n > 1 ? "lines" : "points pt 7", report_colour(s));
        put_title(&plot, names[s]);
    }
    report_put(&plot.script, "\n");
    TRY(report_plot_draw(&plot));
done:
    report_plot_free(&plot);
    return status;
}

psi_status psi_figure_scores(psi_ctx *ctx, const psi_figure *at, size_t groups, size_t series,
                             size_t seeds, const double *values, const char *const *group_names,
                             const char *const *series_names)
{
    psi_status status = PSI_OK;
    report_plot plot;
    const double width = 0.8 / (double)base_max(1, series);
    double highest = 0.0, lowest = 0.0;
    TRY(report_plot_new(ctx, at, base_max(480, 60 * groups * series + 120), 380, &plot));
    if (groups == 0 || series == 0 || seeds == 0 || series > 16) {
        status = FAIL(ctx, PSI_EUSAGE, "there are no scores to draw");
        goto done;
    }
    for (size_t s = 0; s < series; s++) {
        report_putf(&plot.data, "# series %zu, bars: place mean group\n", s + 1);
        for (size_t g = 0; g < groups; g++) {
            double sum = 0.0;
            size_t kept = 0;
            for (size_t i = 0; i < seeds; i++) {
                const double value = values[(g * series + s) * seeds + i];
                if (!isfinite(value)) continue;
                sum += value;
                kept++;
            }
            report_putf(&plot.data, "%.4f %.9g ",
                        (double)g + ((double)s - 0.5 * (double)(series - 1)) * width,
                        kept ? sum / (double)kept : 0.0);
            report_plot_words(&plot.data, group_names[g]);
            report_put(&plot.data, "\n");
        }
        report_putf(&plot.data, "\n\n# series %zu, seeds: place value\n", s + 1);
        for (size_t g = 0; g < groups; g++) {
            for (size_t i = 0; i < seeds; i++) {
                const double value = values[(g * series + s) * seeds + i];
                if (!isfinite(value)) continue;
                highest = fmax(highest, value);
                lowest = fmin(lowest, value);
                // dots of one bar stand beside one another
                const double aside = seeds > 1 ? (double)i / (double)(seeds - 1) - 0.5 : 0.0;
                report_putf(&plot.data, "%.4f %.9g\n",
                            (double)g +
                                ((double)s - 0.5 * (double)(series - 1) + 0.6 * aside) * width,
                            value);
            }
        }
        report_put(&plot.data, "\n\n");
    }
    report_putf(&plot.script,
                "    set key outside top center horizontal\n    set grid ytics lc rgb line\n"
                "    set xrange [-0.6:%g]\n    set yrange [%g:%g]\n    set boxwidth %g absolute\n"
                "    set xtics scale 0 (",
                (double)groups - 0.4, 1.08 * lowest, highest > 0.0 ? 1.08 * highest : 1.0,
                0.92 * width);
    for (size_t g = 0; g < groups; g++) {
        report_put(&plot.script, g ? ", " : "");
        put_title(&plot, group_names[g]);
        report_putf(&plot.script, " %zu", g);
    }
    report_put(&plot.script, ")\n    plot ");
    for (size_t s = 0; s < series; s++) {
        report_putf(&plot.script,
                    "%s%s index %zu using 1:2 with boxes fs solid 0.55 lc rgb 0x%06x title ",
                    s ? ", \\\n         " : "", s ? "''" : "DATA", 2 * s, report_colour(s));
        put_title(&plot, series_names[s]);
        report_putf(&plot.script,
                    ", \\\n         '' index %zu using 1:2 with points pt 7 ps 0.35 lc rgb "
                    "ink notitle",
                    2 * s + 1);
    }
    report_put(&plot.script, "\n");
    TRY(report_plot_draw(&plot));
done:
    report_plot_free(&plot);
    return status;
}
