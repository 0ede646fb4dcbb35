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

// From where to where the heights of a figure go: from 0, unless something is below, and with room
// above. A figure in which nothing is earned still has an axis.
typedef struct reach {
    double low, high;
} reach;

static void reach_out(reach *to, const double *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(values[i])) continue;
        to->low = fmin(to->low, values[i]);
        to->high = fmax(to->high, values[i]);
    }
}

static void put_reach(report_plot *plot, const reach *of)
{
    const bool flat = !(of->high > of->low);
    report_putf(&plot->script, "    set yrange [%.9g:%.9g]\n", 1.08 * of->low,
                flat ? of->low + 1.0 : 1.08 * fmax(of->high, 0.0));
}

// A piece of the dashed line, in the block of its own that put_line draws.
static void put_level(report_plot *plot, double from, double to, double height)
{
    if (isfinite(height)) {
        report_putf(&plot->data, "%.6g %.9g\n%.6g %.9g\n\n", from, height, to, height);
    } else {
        report_put(&plot->data, "NaN NaN\n\n");
    }
}

static void put_line(report_plot *plot, const psi_figure_line *line, size_t block)
{
    report_putf(&plot->script,
                ", \\\n         '' index %zu using 1:2 with lines dt 2 lw 1.5 lc rgb ink title ",
                block);
    put_title(plot, line->name);
}

psi_status psi_figure_curves(psi_ctx *ctx, const psi_figure *at, size_t series, size_t n,
                             const double *x, const double *mean, const double *low,
                             const double *high, const char *const *names,
                             const psi_figure_line *line)
{
    psi_status status = PSI_OK;
    report_plot plot;
    reach heights = {0.0, 0.0};
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
    // one point alone stands in the middle
    const double left = n > 1 ? x[0] : x[0] - 0.5, right = n > 1 ? x[n - 1] : x[0] + 0.5;
    reach_out(&heights, mean, series * n);
    reach_out(&heights, low, series * n);
    reach_out(&heights, high, series * n);
    if (line) {
        report_put(&plot.data, "\n\n# the line: x height\n");
        put_level(&plot, left, right, line->at[0]);
        reach_out(&heights, line->at, 1);
    }
    put_reach(&plot, &heights);
    report_putf(&plot.script, "    set xrange [%.9g:%.9g]\n", left, right);
    report_put(&plot.script, "    set key outside top center horizontal\n"
                             "    set grid ytics lc rgb line\n    plot ");
    for (size_t s = 0; s < series; s++) {
        report_putf(&plot.script,
                    "%s index 0 using 1:%zu:%zu with filledcurves fs transparent solid 0.2 lc rgb "
                    "0x%06x notitle, \\\n         ",
                    s ? "''" : "DATA", 3 * s + 3, 3 * s + 4, report_colour(s));
    }
    for (size_t s = 0; s < series; s++) { // no band lies over a line
        report_putf(&plot.script, "%s'' index 0 using 1:%zu with %s lw 2 lc rgb 0x%06x title ",
                    s ? ", \\\n         " : "", 3 * s + 2, n > 1 ? "lines" : "points pt 7",
                    report_colour(s));
        put_title(&plot, names[s]);
    }
    if (line) put_line(&plot, line, 1);
    report_put(&plot.script, "\n");
    TRY(report_plot_draw(&plot));
done:
    report_plot_free(&plot);
    return status;
}

// ---- bars ---------------------------------------------------------------------------------------

typedef struct bars {
    size_t groups, series, seeds;
    const double *values; // (groups, series, seeds)
    double width;         // of a bar; a group is 1 wide
} bars;

static double place_of(const bars *of, size_t group, size_t series)
{
    return (double)group + ((double)series - 0.5 * (double)(of->series - 1)) * of->width;
}

static void put_bars(report_plot *plot, const bars *of, size_t series, const char *const *names)
{
    report_putf(&plot->data, "# series %zu, bars: place mean group\n", series + 1);
    for (size_t g = 0; g < of->groups; g++) {
        double sum = 0.0;
        size_t kept = 0;
        for (size_t i = 0; i < of->seeds; i++) {
            const double value = of->values[(g * of->series + series) * of->seeds + i];
            if (!isfinite(value)) continue;
            sum += value;
            kept++;
        }
        report_putf(&plot->data, "%.4f ", place_of(of, g, series));
        if (kept) {
            report_putf(&plot->data, "%.9g ", sum / (double)kept);
        } else {
            report_put(&plot->data, "NaN ");
        }
        report_plot_words(&plot->data, names[g]);
        report_put(&plot->data, "\n");
    }
}

static void put_seeds(report_plot *plot, const bars *of, size_t series)
{
    size_t put = 0;
    report_putf(&plot->data, "\n\n# series %zu, seeds: place value\n", series + 1);
    for (size_t g = 0; g < of->groups; g++) {
        for (size_t i = 0; i < of->seeds; i++) {
            const double value = of->values[(g * of->series + series) * of->seeds + i];
            if (!isfinite(value)) continue;
            // dots of one bar stand beside one another
            const double aside = of->seeds > 1 ? (double)i / (double)(of->seeds - 1) - 0.5 : 0.0;
            report_putf(&plot->data, "%.4f %.9g\n",
                        place_of(of, g, series) + 0.6 * aside * of->width, value);
            put++;
        }
    }
    report_put(&plot->data, put ? "\n\n" : "NaN NaN\n\n\n"); // gnuplot wants a line in each part
}

psi_status psi_figure_scores(psi_ctx *ctx, const psi_figure *at, size_t groups, size_t series,
                             size_t seeds, const double *values, const char *const *group_names,
                             const char *const *series_names, const psi_figure_line *line)
{
    enum { NARROWEST = 480, WIDEST = 900, A_BAR = 60 };
    psi_status status = PSI_OK;
    report_plot plot;
    reach heights = {0.0, 0.0};
    const bars of = {groups, series, seeds, values, 0.8 / (double)base_max(1, series)};
    const size_t wanted = A_BAR * groups * series + 120;
    TRY(report_plot_new(ctx, at, base_min(WIDEST, base_max(NARROWEST, wanted)), 380, &plot));
    if (groups == 0 || series == 0 || seeds == 0 || series > 16) {
        status = FAIL(ctx, PSI_EUSAGE, "there are no scores to draw");
        goto done;
    }
    for (size_t s = 0; s < series; s++) {
        put_bars(&plot, &of, s, group_names);
        put_seeds(&plot, &of, s);
    }
    reach_out(&heights, values, groups * series * seeds);
    if (line) {
        report_put(&plot.data, "# the line: place height\n");
        for (size_t g = 0; g < groups; g++) {
            put_level(&plot, (double)g - 0.45, (double)g + 0.45, line->at[g]);
        }
        reach_out(&heights, line->at, groups);
    }
    put_reach(&plot, &heights);
    report_putf(&plot.script,
                "    set key outside top center horizontal\n    set grid ytics lc rgb line\n"
                "    set xrange [-0.6:%g]\n    set boxwidth %g absolute\n"
                "    set xtics scale 0 (",
                (double)groups - 0.4, 0.92 * of.width);
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
    if (line) put_line(&plot, line, 2 * series);
    report_put(&plot.script, "\n");
    TRY(report_plot_draw(&plot));
done:
    report_plot_free(&plot);
    return status;
}
