// How observations are drawn into the page.
#include "report/samples.h"

#include "base/checked.h"
#include "report/png.h"

#include <math.h>
#include <string.h>

enum {
    LARGEST_SIDE = 84, // pixels of an image on the page
    LARGEST_LINE = 64, // corners of a line
};

// ---- images -------------------------------------------------------------------------------------

report_frame report_samples_frame(const report_samples *samples, size_t shrink)
{
    return (report_frame){samples->width / shrink * samples->planes, samples->height / shrink};
}

void report_samples_paint(const report_samples *samples, const uint8_t *image, size_t shrink,
                          size_t sheet_width, uint8_t *to)
{
    shrink = base_max(1, shrink);
    const size_t channels = samples->channels, height = samples->height / shrink,
                 width = samples->width / shrink, pixels = base_max(1, shrink * shrink);
    for (size_t p = 0; p < samples->planes; p++) {
        const uint8_t *plane = image + p * samples->height * samples->width;
        for (size_t i = 0; i < height * width * channels; i++) {
            const size_t c = i % channels, column = i / channels % width,
                         row = i / channels / width;
            size_t sum = 0;
            for (size_t d = 0; d < pixels; d++) {
                const size_t from_row = row * shrink + d / shrink,
                             from_column = column * shrink + d % shrink;
                sum += plane[(from_row * samples->width + from_column) * channels + c];
            }
            to[(row * sheet_width + p * width + column) * channels + c] = (uint8_t)(sum / pixels);
        }
    }
}

static psi_status draw_images(const report_samples *samples, size_t k, const report_drawing *how,
                              report_text *text)
{
    enum { SPACE = 3, WIDEST = 280 };
    psi_status status = PSI_OK;
    psi_ctx *ctx = samples->ctx;
    const size_t shown = base_min(how->shown, samples->found[k]);
    const report_frame one = report_samples_frame(samples, how->shrink);
    const size_t fitting = (WIDEST + SPACE) / (one.width + SPACE),
                 columns = base_max(1, base_min(shown, fitting));
    const size_t lines = (shown + columns - 1) / columns;
    const size_t width = columns * (one.width + SPACE) - SPACE,
                 height = lines * (one.height + SPACE) - SPACE,
                 row_bytes = psi_observations_row_bytes(samples->data->observations);
    uint8_t *images = NULL, *sheet = NULL, *png = NULL;
    size_t size;
    TRY(base_alloc(ctx, shown, row_bytes, &images));
    TRY(base_alloc(ctx, height * width, samples->channels, &sheet));
    memset(sheet, 128, height * width * samples->channels);
    TRY(psi_observations_gather(ctx, samples->data->observations,
                                samples->rows + k * samples->per_state, shown, images));
    for (size_t s = 0; s < shown; s++) {
        const size_t x = s % columns * (one.width + SPACE), y = s / columns * (one.height + SPACE);
        report_samples_paint(samples, images + s * row_bytes, how->shrink, width,
                             sheet + (y * width + x) * samples->channels);
    }
    TRY(report_png(ctx, width, height, samples->channels, sheet, &png, &size));
    report_putf(text,
                "<img loading=\"lazy\" width=\"%zu\" height=\"%zu\" alt=\"%zu observations of "
                "latent state %zu\" src=\"data:image/png;base64,",
                width, height, shown, k);
    report_base64(text, png, size);
    report_put(text, "\">");
    status = text->status;
done:
    base_free(ctx, png);
    base_free(ctx, sheet);
    base_free(ctx, images);
    return status;
}

// ---- numbers ------------------------------------------------------------------------------------

static double place(double value, double low, double high, double size)
{
    return high > low ? (value - low) / (high - low) * size : size / 2.0;
}

static void draw_points(const report_samples *samples, size_t k, size_t shown, report_text *text)
{
    const double *low = samples->low, *high = samples->high;
    report_putf(text,
                "<svg class=\"points\" viewBox=\"-3 -3 70 70\" role=\"img\" "
                "aria-label=\"%zu observations of latent state %zu\"><rect x=\"-2.5\" "
                "y=\"-2.5\" width=\"69\" height=\"69\"/><path d=\"",
                shown, k);
    for (size_t s = 0; s < shown; s++) {
        const double *at = samples->values + (k * samples->per_state + s) * 2;
        report_putf(text, "M%.0f %.0fh0", place(at[0], low[0], high[0], 64.0),
                    64.0 - place(at[1], low[1], high[1], 64.0));
    }
    report_put(text, "\"/></svg>");
    for (size_t s = 0; s < base_min(shown, 2); s++) {
        const double *at = samples->values + (k * samples->per_state + s) * 2;
        report_putf(text, "<span class=\"numbers\">(%.3g, %.3g)</span> ", at[0], at[1]);
    }
}

static void draw_numbers(const report_samples *samples, size_t k, size_t shown, report_text *text)
{
    const size_t width = samples->dimensions;
    const double *values = samples->values + k * samples->per_state * width;
    for (size_t s = 0; s < shown; s++) {
        bool repeated = false;
        for (size_t t = 0; t < s; t++) {
            repeated |= memcmp(values + s * width, values + t * width, width * sizeof *values) == 0;
        }
        if (repeated) continue;
        report_putf(text, "<span class=\"numbers\">%s", width > 1 ? "(" : "");
        for (size_t i = 0; i < width; i++) {
            report_putf(text, "%s%.4g", i ? ", " : "", values[s * width + i]);
        }
        report_putf(text, "%s</span> ", width > 1 ? ")" : "");
    }
}

static void draw_lines(const report_samples *samples, size_t k, size_t shown, report_text *text)
{
    const size_t width = samples->dimensions, corners = base_min(width, LARGEST_LINE);
    double low = HUGE_VAL, high = -HUGE_VAL;
    for (size_t i = 0; i < width; i++) {
        low = fmin(low, samples->low[i]);
        high = fmax(high, samples->high[i]);
    }
    report_putf(text,
                "<svg class=\"lines\" viewBox=\"-2 -2 164 44\" role=\"img\" "
                "aria-label=\"%zu observations of latent state %zu\">",
                shown, k);
    for (size_t s = 0; s < shown; s++) {
        const double *values = samples->values + (k * samples->per_state + s) * width;
        report_put(text, "<polyline points=\"");
        for (size_t i = 0; i < corners; i++) {
            const size_t at = corners > 1 ? i * (width - 1) / (corners - 1) : 0;
            report_putf(text, "%s%.0f,%.0f", i ? " " : "",
                        160.0 * (double)i / (double)(corners - 1),
                        40.0 - place(values[at], low, high, 40.0));
        }
        report_put(text, "\"/>");
    }
    report_put(text, "</svg>");
}

// ---- all of them --------------------------------------------------------------------------------

static psi_status draw_one(const report_samples *samples, size_t k, const report_drawing *how,
                           report_text *text)
{
    const size_t shown = base_min(how->shown, samples->found[k]);
    if (shown == 0) return PSI_OK;
    switch (samples->look) {
    case REPORT_LOOK_IMAGE: return draw_images(samples, k, how, text);
    case REPORT_LOOK_POINT: draw_points(samples, k, shown, text); break;
    case REPORT_LOOK_NUMBERS: draw_numbers(samples, k, shown, text); break;
    case REPORT_LOOK_VECTOR: draw_lines(samples, k, shown, text); break;
    }
    return text->status;
}

static void clear(const report_samples *samples, report_text *pictures)
{
    for (size_t k = 0; k < samples->n_latent; k++) report_text_free(&pictures[k]);
}

// Fewer samples first, then smaller ones, then pictures for the largest latent states only.
static bool draw_less(const report_samples *samples, report_drawing *drawing, size_t drawn)
{
    if (drawing->shown > 2) {
        drawing->shown = (drawing->shown + 1) / 2;
    } else if (samples->look == REPORT_LOOK_IMAGE &&
               base_min(samples->height, samples->width) / (drawing->shrink + 1) >= 14) {
        drawing->shrink++;
    } else if (drawing->shown > 1) {
        drawing->shown = 1;
    } else if (drawn > 0) {
        drawing->first = drawn;
    } else {
        return false;
    }
    return true;
}

psi_status report_samples_draw(const report_samples *samples, const size_t *order, size_t budget,
                               report_text *pictures, report_drawing *drawing)
{
    psi_status status = PSI_OK;
    const size_t side = base_max(samples->height, samples->width);
    *drawing = (report_drawing){.shown = samples->per_state,
                                .shrink = (side + LARGEST_SIDE - 1) / LARGEST_SIDE,
                                .first = samples->n_latent};
    drawing->shrink = base_max(1, drawing->shrink);
    for (;;) {
        size_t bytes = 0, drawn = 0;
        for (; drawn < drawing->first; drawn++) {
            const size_t k = order[drawn];
            TRY(base_cancelled(samples->ctx));
            TRY(draw_one(samples, k, drawing, &pictures[k]));
            if (bytes + pictures[k].size > budget) break;
            bytes += pictures[k].size;
        }
        if (drawn == drawing->first) break;
        clear(samples, pictures);
        if (!draw_less(samples, drawing, drawn)) break;
    }
done:
    if (status != PSI_OK) clear(samples, pictures);
    return status;
}
