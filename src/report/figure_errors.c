// Figures of distributions: box plots, histograms with a rug, sizes.
#include "report/plot.h"

#include "base/checked.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { OUTLIERS_SHOWN = 60, BINS_PER_DECADE = 4, RUG_SHOWN = 1000 };

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

// The finite values of a group, sorted, into sorted (n). Returns how many there are.
static size_t sort_finite(const double *values, size_t n, double *sorted)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (isfinite(values[i])) sorted[kept++] = values[i];
    }
    qsort(sorted, kept, sizeof *sorted, ascending);
    return kept;
}

// Linear interpolation between neighbours, as numpy does.
static double quantile(const double *sorted, size_t n, double q)
{
    const double at = q * (double)(n - 1);
    const size_t low = (size_t)at;
    return low + 1 < n ? sorted[low] + (at - (double)low) * (sorted[low + 1] - sorted[low])
                       : sorted[low];
}

static void put_name(report_text *text, const char *const *names, size_t i)
{
    char number[24];
    snprintf(number, sizeof number, "%zu", i + 1);
    report_plot_words(text, names ? names[i] : number);
}

static void put_box(report_text *data, const double *sorted, size_t n, size_t g,
                    const char *const *names)
{
    const double low = quantile(sorted, n, 0.25), high = quantile(sorted, n, 0.75);
    const double reach = 1.5 * (high - low);
    double least = low, most = high;
    for (size_t i = 0; i < n; i++) {
        if (sorted[i] >= low - reach) {
            least = fmin(least, sorted[i]);
            break;
        }
    }
    for (size_t i = n; i-- > 0;) {
        if (sorted[i] <= high + reach) {
            most = fmax(most, sorted[i]);
            break;
        }
    }
    report_putf(data, "%zu %.9g %.9g %.9g %.9g %.9g ", g + 1, least, low, quantile(sorted, n, 0.5),
                high, most);
    put_name(data, names, g);
    report_put(data, "\n");
}

// Values beyond the whiskers; where there are very many, evenly chosen ones.
static void put_outliers(report_text *data, const double *sorted, size_t n, size_t g)
{
    const double low = quantile(sorted, n, 0.25), high = quantile(sorted, n, 0.75);
    const double reach = 1.5 * (high - low);
    size_t below = 0, above = 0;
    while (below < n && sorted[below] < low - reach) below++;
    while (above < n - below && sorted[n - 1 - above] > high + reach) above++;
    const size_t all = below + above, shown = base_min(all, OUTLIERS_SHOWN);
    for (size_t s = 0; s < shown; s++) {
        const size_t i = s * all / shown;
        report_putf(data, "%zu %.9g\n", g + 1, i < below ? sorted[i] : sorted[n - all + i]);
    }
}

psi_status psi_figure_boxes(psi_ctx *ctx, const psi_figure *at, size_t groups, size_t n,
                            const double *values, const char *const *names, double baseline)
{
    psi_status status = PSI_OK;
    report_plot plot;
    double *sorted = NULL;
    report_text beyond = {.ctx = ctx};
    TRY(report_plot_new(ctx, at, base_max(420, 52 * groups + 110), 340, &plot));
    if (groups == 0 || n == 0) {
        status = FAIL(ctx, PSI_EUSAGE, "there are no values to draw boxes of");
        goto done;
    }
    TRY(base_alloc(ctx, n, sizeof *sorted, &sorted));
    report_put(&plot.data, "# group whisker quartile median quartile whisker name\n");
    double highest = isfinite(baseline) ? baseline : 0.0;
    for (size_t g = 0; g < groups; g++) {
        const size_t kept = sort_finite(values + g * n, n, sorted);
        if (kept == 0) continue;
        highest = fmax(highest, sorted[kept - 1]);
        put_box(&plot.data, sorted, kept, g, names);
        put_outliers(&beyond, sorted, kept, g);
    }
    // gnuplot wants at least one line in each part
    report_putf(&plot.data, "\n\n# group value beyond the whiskers\n%s%s\n\n# the baseline\n",
                beyond.size ? beyond.bytes : "NaN NaN\n", "");
    report_putf(&plot.data, "%g %.9g\n%g %.9g\n", 0.4, baseline, (double)groups + 0.6, baseline);
    if (beyond.status != PSI_OK) plot.data.status = beyond.status;
    report_putf(
        &plot.script,
        "    unset key\n    set xrange [0.4:%g]\n    set yrange [0:%.6g]\n"
        "    set boxwidth 0.5\n    set grid ytics lc rgb line\n"
        "    plot %sDATA index 1 using 1:2 with points pt 7 ps 0.3 lc rgb muted, \\\n"
        "         '' index 0 using 1:3:2:6:5:xtic(7) with candlesticks whiskerbars 0.6 fs "
        "solid 0.35 border lc rgb accent lw 1.3, \\\n"
        "         '' index 0 using 1:4:4:4:4 with candlesticks fs solid lc rgb ink lw 2.2\n",
        (double)groups + 0.6, highest > 0.0 ? 1.06 * highest : 1.0,
        isfinite(baseline) ? "DATA index 2 using 1:2 with lines dt 2 lw 1.5 lc rgb '#d55e00'"
                             ", \\\n         "
                           : "");
    TRY(report_plot_draw(&plot));
done:
    report_text_free(&beyond);
    report_plot_free(&plot);
    base_free(ctx, sorted);
    return status;
}

// ---- histograms ---------------------------------------------------------------------------------

typedef struct bins {
    double least; // log10 of the left end
    size_t n;
} bins;

static size_t bin_of(const bins *b, double value)
{
    const double at = (log10(fmax(value, 1e-300)) - b->least) * BINS_PER_DECADE;
    return at <= 0.0 ? 0 : base_min((size_t)at, b->n - 1);
}

// 1, 2 or 5 times a power of ten, at most six of which reach the top.
static size_t round_step(size_t top)
{
    static const size_t factor[] = {1, 2, 5};
    size_t power = 1;
    for (size_t i = 0; factor[i] * power * 6 < top; i = (i + 1) % 3) {
        if (i == 2) power *= 10;
        if (factor[(i + 1) % 3] * power * 6 >= top) return factor[(i + 1) % 3] * power;
    }
    return power;
}

psi_status psi_figure_histogram(psi_ctx *ctx, const psi_figure *at, size_t groups, size_t n,
                                const double *values, const char *const *names, double least)
{
    psi_status status = PSI_OK;
    report_plot plot;
    size_t *count = NULL, most = 1;
    double largest = least;
    TRY(report_plot_new(ctx, at, 620, 300 + 18 * groups, &plot));
    if (groups == 0 || n == 0 || groups > 16 || !(least > 0.0) || !isfinite(least)) {
        status = FAIL(ctx, PSI_EUSAGE,
                      "a histogram wants 1 to 16 groups of values and a positive "
                      "left end");
        goto done;
    }
    for (size_t i = 0; i < groups * n; i++) {
        if (isfinite(values[i])) largest = fmax(largest, values[i]);
    }
    const double left = floor(log10(least)), right = ceil(log10(largest) + 1e-9);
    bins b = {left, (size_t)(fmax(1.0, right - left) * BINS_PER_DECADE)};
    TRY(base_alloc_zero(ctx, groups * b.n, sizeof *count, &count));
    for (size_t i = 0; i < groups * n; i++) {
        if (!isfinite(values[i])) continue;
        const size_t c = ++count[i / n * b.n + bin_of(&b, values[i])];
        most = base_max(most, c);
    }
    report_put(&plot.data, "# from to, then for every group how many\n");
    for (size_t i = 0; i < b.n; i++) {
        report_putf(&plot.data, "%.6g %.6g", pow(10.0, left + (double)i / BINS_PER_DECADE),
                    pow(10.0, left + (double)(i + 1) / BINS_PER_DECADE));
        for (size_t g = 0; g < groups; g++) report_putf(&plot.data, " %zu", count[g * b.n + i]);
        report_put(&plot.data, "\n");
    }
    report_putf(&plot.data, "%.6g %.6g", pow(10.0, left + (double)b.n / BINS_PER_DECADE),
                pow(10.0, left + (double)b.n / BINS_PER_DECADE)); // where the last bin ends
    for (size_t g = 0; g < groups; g++) report_put(&plot.data, " 0");
    report_put(&plot.data, "\n\n\n# the rug: value height group colour\n");
    const double top = 1.05 * (double)most, stripe = 0.07 * (double)most;
    for (size_t g = 0; g < groups; g++) {
        const size_t shown = base_min(n, RUG_SHOWN);
        for (size_t s = 0; s < shown; s++) {
            const double value = values[g * n + s * n / shown];
            if (!isfinite(value)) continue;
            report_putf(&plot.data, "%.6g %.6g %zu %u\n", fmax(value, pow(10.0, left)),
                        top + stripe * (double)(groups - 1 - g), g + 1, report_colour(g));
        }
    }
    report_putf(&plot.script,
                "    set logscale x\n    set format x '%%g'\n    set xrange [%g:%g]\n"
                "    set yrange [0:%g]\n    set key outside top center horizontal\n"
                "    set ytics 0, %zu, %zu\n    set grid ytics lc rgb line\n"
                "    plot DATA index 1 using 1:2:(0):(%g):4 with vectors nohead lw 0.5 lc rgb "
                "variable notitle",
                pow(10.0, left), pow(10.0, left + (double)b.n / BINS_PER_DECADE),
                top + stripe * (double)groups, round_step(most), most, 0.8 * stripe);
    for (size_t g = 0; g < groups; g++) {
        report_text words = {.ctx = ctx};
        put_name(&words, names, g);
        if (words.status != PSI_OK) plot.script.status = words.status;
        report_putf(
            &plot.script,
            ", \\\n         '' index 0 using 1:%zu with fillsteps fs transparent solid 0.12 lc "
            "rgb 0x%06x notitle, '' index 0 using 1:%zu with steps lw 2 lc rgb 0x%06x "
            "title '%.*s'",
            g + 3, report_colour(g), g + 3, report_colour(g),
            (int)(words.size > 2 ? words.size - 2 : 0), words.bytes ? words.bytes + 1 : "");
        report_text_free(&words);
    }
    report_put(&plot.script, "\n");
    TRY(report_plot_draw(&plot));
done:
    report_plot_free(&plot);
    base_free(ctx, count);
    return status;
}

// ---- sizes --------------------------------------------------------------------------------------

typedef struct ranked {
    double share;
    size_t state;
} ranked;

static int larger_first(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->share != y->share) return x->share < y->share ? 1 : -1;
    return x->state < y->state ? -1 : x->state > y->state;
}

psi_status psi_figure_sizes(psi_ctx *ctx, const psi_figure *at, size_t n, const double *shares)
{
    psi_status status = PSI_OK;
    report_plot plot;
    ranked *order = NULL;
    TRY(report_plot_new(ctx, at, base_min(1000, base_max(420, (n <= 40 ? 24 : 8) * n + 100)), 300,
                        &plot));
    if (n == 0) {
        status = FAIL(ctx, PSI_EUSAGE, "there are no latent states to draw");
        goto done;
    }
    TRY(base_alloc(ctx, n, sizeof *order, &order));
    for (size_t k = 0; k < n; k++) order[k] = (ranked){shares[k], k};
    qsort(order, n, sizeof *order, larger_first);
    report_put(&plot.data, "# rank share latent_state colour\n");
    for (size_t i = 0; i < n; i++) {
        report_putf(&plot.data, "%zu %.9g %zu %u\n", i + 1, order[i].share, order[i].state,
                    report_colour(order[i].state));
    }
    report_putf(&plot.script,
                "    unset key\n    set xrange [0.3:%zu.7]\n    set yrange [0:*]\n"
                "    set boxwidth %g\n    set format y '%%g %%%%'\n    set grid ytics lc rgb line\n"
                "    plot DATA using 1:(100*$2):4%s with boxes lc rgb variable\n",
                n, n > 60 ? 1.0 : 0.7, n <= 40 ? ":xtic(3)" : "");
    TRY(report_plot_draw(&plot));
done:
    report_plot_free(&plot);
    base_free(ctx, order);
    return status;
}
