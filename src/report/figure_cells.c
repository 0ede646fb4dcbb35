// Figures made of cells: task maps, state colourings, matrices.
#include "report/plot.h"

#include "base/checked.h"
#include "base/options.h"

#include <math.h>

enum { MAX_CELLS = 1 << 20 };

psi_status psi_figure_map(psi_ctx *ctx, const psi_figure *at, size_t rows, size_t columns,
                          const int *colour, const char *const *text)
{
    psi_status status = PSI_OK;
    report_plot plot;
    const size_t cell = base_max(24, base_min(90, 640 / base_max(1, base_max(rows, columns))));
    TRY(report_plot_new(ctx, at, columns * cell + 40, rows * cell + 40, &plot));
    if (rows == 0 || columns == 0 || rows > 64 || columns > 64) {
        status = FAIL(ctx, PSI_EUSAGE, "a map has 1 to 64 rows and columns");
        goto done;
    }
    report_put(&plot.data, "# column row colour filled text\n");
    for (size_t i = 0; i < rows * columns; i++) {
        const bool filled = colour[i] >= 0;
        report_putf(&plot.data, "%zu %zu %u %d ", i % columns, rows - 1 - i / columns,
                    filled ? report_colour((size_t)colour[i]) : 0u, filled);
        report_plot_words(&plot.data, text && text[i] ? text[i] : "");
        report_put(&plot.data, "\n");
    }
    report_putf(
        &plot.script,
        "    set size ratio -1\n    unset border\n    unset tics\n    unset key\n"
        "    set xrange [-0.55:%zu.55]\n    set yrange [-0.55:%zu.55]\n"
        "    plot DATA using ($4 > 0 ? $1 : NaN):2:(0.5):(0.5):3 with boxxyerror lc rgb variable "
        "fs solid 0.8, \\\n"
        "         '' using 1:2:(0.5):(0.5) with boxxyerror lc rgb ink fs empty border lc rgb ink, "
        "\\\n"
        "         '' using 1:2:5 with labels textcolor rgb ink\n",
        columns - 1, rows - 1);
    TRY(report_plot_draw(&plot));
done:
    report_plot_free(&plot);
    return status;
}

static void put_names(report_plot *plot, const char *axis, size_t n, const char *const *names)
{
    const size_t step = names ? (n + 19) / 20 : n > 20 ? (n + 9) / 10 : 1;
    report_putf(&plot->script, "    set %stics (", axis);
    for (size_t i = 0; i < n; i += step) {
        report_put(&plot->script, i ? ", '" : "'");
        if (names) {
            report_text words = {.ctx = plot->ctx};
            report_plot_words(&words, names[i]);
            if (words.status == PSI_OK) {
                report_put_bytes(&plot->script, words.bytes + 1, words.size - 2);
            } else {
                plot->script.status = words.status;
            }
            report_text_free(&words);
        } else {
            report_putf(&plot->script, "%zu", i);
        }
        report_putf(&plot->script, "' %zu", i);
    }
    report_put(&plot->script, ") scale 0\n");
}

psi_status psi_figure_matrix(psi_ctx *ctx, const psi_figure *at, size_t rows, size_t columns,
                             const double *values, const psi_figure_matrix_options *options)
{
    if (options && !base_options_fit(ctx, options, sizeof *options,
                                     "{.size = sizeof(psi_figure_matrix_options)}"))
        return PSI_EUSAGE;
    psi_status status = PSI_OK;
    report_plot plot;
    const psi_figure_matrix_options plain = {.size = sizeof plain};
    const psi_figure_matrix_options *how = options ? options : &plain;
    const size_t cell = base_max(5, base_min(46, 560 / base_max(1, base_max(rows, columns))));
    double largest = 0.0;
    TRY(report_plot_new(ctx, at, base_max(columns * cell + (how->row_names ? 300 : 200), 360),
                        base_max(rows * cell + 110, 240), &plot));
    if (rows == 0 || columns == 0 || rows > MAX_CELLS / columns) {
        status = FAIL(ctx, PSI_EUSAGE, "a matrix of %zu by %zu cannot be drawn", rows, columns);
        goto done;
    }
    report_put(&plot.data, "# column row value; cells that are 0 are left out\n");
    for (size_t i = 0; i < rows * columns; i++) {
        if (!isfinite(values[i])) {
            status = FAIL(ctx, PSI_EUSAGE, "a matrix with a number that is not finite");
            goto done;
        }
        largest = fmax(largest, values[i]);
        if (values[i] == 0.0) continue;
        const size_t column = i % columns;
        const double x = (double)column + (how->last_apart && column + 1 == columns ? 1.0 : 0.0);
        report_putf(&plot.data, "%g %zu %.6g\n", x, i / columns, values[i]);
    }
    if (largest == 0.0) report_put(&plot.data, "0 0 0\n");
    const double right = (double)columns - 0.5 + (how->last_apart ? 1.0 : 0.0);
    put_names(&plot, "x", how->last_apart ? columns - 1 : columns, how->column_names);
    put_names(&plot, "y", rows, how->row_names);
    if (how->last_apart) {
        report_putf(&plot.script,
                    "    set xtics add ('ignored' %zu)\n    set xtics rotate by 90 right\n"
                    "    set arrow from %g, graph 0 to %g, graph 1 nohead lc rgb muted\n",
                    columns, (double)columns - 0.0 - 0.5, (double)columns - 0.5);
    } else if (how->column_names) {
        report_put(&plot.script, "    set xtics rotate by 90 right\n");
    }
    report_putf(&plot.script,
                "    unset key\n    set border 15\n    set size ratio %g\n"
                "    set xrange [-0.5:%g]\n    set yrange [%g:-0.5]\n    set cbrange [0:%g]\n"
                "    if (dark) { set palette defined (0 '#27475c', 1 '#8fd3ff') }\n"
                "    if (!dark) { set palette defined (0 '#c6dbef', 0.3 '#85b8db', 1 '#08306b') }\n"
                "    set colorbox\n    set cbtics textcolor rgb ink\n"
                "    plot DATA using 1:2:(0.5):(0.5):3 with boxxyerror fc palette",
                (double)rows / (right + 0.5), right, (double)rows - 0.5,
                largest > 0.0 ? largest : 1.0);
    if (how->show_values) {
        report_putf(
            &plot.script,
            ", \\\n         '' using 1:2:(sprintf('%%.2f', $3)):($3 > %g ? (dark ? 0x14171a : "
            "0xffffff) : (dark ? 0xe6e9ec : 0x1b1f24)) with labels tc rgb variable",
            0.5 * largest);
    }
    report_put(&plot.script, "\n");
    TRY(report_plot_draw(&plot));
done:
    report_plot_free(&plot);
    return status;
}
