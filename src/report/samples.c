#include "report/samples.h"

#include "base/checked.h"
#include "base/random.h"
#include "report/png.h"

#include <math.h>
#include <string.h>

enum {
    SAMPLES_STREAM = 0x73616d70,
    IMAGES_SHOWN = 6,
    POINTS_SHOWN = 40,
    LINES_SHOWN = 6,
    NUMBERS_SHOWN = 12,
    LARGEST_SIDE = 84, // pixels of an image on the page
    LARGEST_LINE = 64, // corners of a line
    VALUES_LIMIT = 1 << 24
};

void report_samples_free(report_samples *samples)
{
    if (!samples) return;
    base_free(samples->ctx, samples->rows);
    base_free(samples->ctx, samples->found);
    base_free(samples->ctx, samples->low);
    base_free(samples->ctx, samples->high);
    base_free(samples->ctx, samples->values);
    base_free(samples->ctx, samples);
}

// Bytes in two or three dimensions are images; which of the dimensions are rows and columns is a
// guess from their sizes.
static bool looks_like_image(const psi_observations *observations, report_samples *samples)
{
    const psi_shape *shape = psi_observations_shape(observations);
    if (psi_observations_dtype(observations) != PSI_UINT8) return false;
    samples->planes = samples->channels = 1;
    if (shape->rank == 2) {
        samples->height = shape->dim[0];
        samples->width = shape->dim[1];
    } else if (shape->rank == 3 && (shape->dim[2] == 3 || shape->dim[2] == 1)) {
        samples->height = shape->dim[0];
        samples->width = shape->dim[1];
        samples->channels = shape->dim[2];
    } else if (shape->rank == 3 && shape->dim[0] <= 16) {
        samples->planes = shape->dim[0];
        samples->height = shape->dim[1];
        samples->width = shape->dim[2];
    } else {
        return false;
    }
    return samples->height >= 2 && samples->width >= 2 && samples->height <= 4096 &&
           samples->width * samples->planes <= 4096;
}

double report_number(psi_dtype dtype, const void *row, size_t i)
{
    switch (dtype) {
    case PSI_UINT8: return (double)((const uint8_t *)row)[i];
    case PSI_INT32: return (double)((const int32_t *)row)[i];
    case PSI_INT64: return (double)((const int64_t *)row)[i];
    case PSI_FLOAT32: return (double)((const float *)row)[i];
    case PSI_FLOAT64: return ((const double *)row)[i];
    }
    return 0.0;
}

// Reservoir sampling: every observation of a latent state has the same chance.
static void choose_rows(report_samples *samples, const int32_t *labels, uint64_t seed, size_t *seen)
{
    base_random random = base_random_stream(seed, SAMPLES_STREAM, 0);
    const psi_trajectories *data = samples->data;
    for (size_t e = 0; e < data->n_episodes; e++) {
        const uint64_t begin = data->episode_offsets[e] + e, end = data->episode_offsets[e + 1] + e;
        for (uint64_t row = begin; row <= end; row++) {
            if (labels[row] < 0 || (row == end && data->final_missing[e])) continue;
            const size_t k = (size_t)labels[row];
            uint64_t *rows = samples->rows + k * samples->per_state;
            const size_t n = seen[k]++;
            if (n < samples->per_state) {
                rows[n] = row;
                samples->found[k] = n + 1;
            } else {
                const uint32_t place =
                    base_random_below(&random, (uint32_t)base_min(n + 1, UINT32_MAX));
                if (place < samples->per_state) rows[place] = row;
            }
        }
    }
}

static psi_status load_values(report_samples *samples)
{
    psi_status status = PSI_OK;
    const psi_observations *from = samples->data->observations;
    const psi_dtype dtype = psi_observations_dtype(from);
    const size_t row_bytes = psi_observations_row_bytes(from), width = samples->dimensions;
    unsigned char *bytes = NULL;
    TRY(base_alloc(samples->ctx, samples->per_state, row_bytes, &bytes));
    TRY(base_alloc(samples->ctx, samples->n_latent * samples->per_state * width, sizeof(double),
                   &samples->values));
    TRY(base_alloc(samples->ctx, width, sizeof(double), &samples->low));
    TRY(base_alloc(samples->ctx, width, sizeof(double), &samples->high));
    for (size_t i = 0; i < width; i++) {
        samples->low[i] = HUGE_VAL;
        samples->high[i] = -HUGE_VAL;
    }
    for (size_t k = 0; k < samples->n_latent; k++) {
        TRY(psi_observations_gather(samples->ctx, from, samples->rows + k * samples->per_state,
                                    samples->found[k], bytes));
        for (size_t s = 0; s < samples->found[k]; s++) {
            double *to = samples->values + (k * samples->per_state + s) * width;
            for (size_t i = 0; i < width; i++) {
                to[i] = report_number(dtype, bytes + s * row_bytes, i);
                if (!isfinite(to[i])) to[i] = 0.0;
                samples->low[i] = fmin(samples->low[i], to[i]);
                samples->high[i] = fmax(samples->high[i], to[i]);
            }
        }
    }
done:
    base_free(samples->ctx, bytes);
    return status;
}

psi_status report_samples_new(psi_ctx *ctx, const psi_trajectories *data, const int32_t *labels,
                              size_t n_latent, uint64_t seed, report_samples **out)
{
    psi_status status = PSI_OK;
    report_samples *samples = NULL;
    size_t *seen = NULL;
    *out = NULL;
    TRY(base_alloc_zero(ctx, 1, sizeof *samples, &samples));
    samples->ctx = ctx;
    samples->data = data;
    samples->n_latent = n_latent;
    samples->dimensions = psi_shape_size(psi_observations_shape(data->observations));
    if (looks_like_image(data->observations, samples)) {
        samples->look = REPORT_LOOK_IMAGE;
        samples->per_state = IMAGES_SHOWN;
    } else if (samples->dimensions == 2) {
        samples->look = REPORT_LOOK_POINT;
        samples->per_state = POINTS_SHOWN;
    } else if (samples->dimensions <= 4) {
        samples->look = REPORT_LOOK_NUMBERS;
        samples->per_state = NUMBERS_SHOWN;
    } else {
        samples->look = REPORT_LOOK_VECTOR;
        samples->per_state = LINES_SHOWN;
    }
    const size_t most = VALUES_LIMIT / base_max(1, n_latent * samples->dimensions);
    if (samples->look != REPORT_LOOK_IMAGE) {
        samples->per_state = base_max(1, base_min(samples->per_state, most));
    }
    TRY(base_alloc_zero(ctx, n_latent * samples->per_state, sizeof *samples->rows, &samples->rows));
    TRY(base_alloc_zero(ctx, n_latent, sizeof *samples->found, &samples->found));
    TRY(base_alloc_zero(ctx, n_latent, sizeof *seen, &seen));
    choose_rows(samples, labels, seed, seen);
    if (samples->look != REPORT_LOOK_IMAGE) TRY(load_values(samples));
    *out = samples;
    samples = NULL;
done:
    base_free(ctx, seen);
    report_samples_free(samples);
    return status;
}

void report_samples_describe(const report_samples *samples, report_text *text)
{
    const psi_observations *observations = samples->data->observations;
    const psi_shape *shape = psi_observations_shape(observations);
    if (shape->rank == 0) report_put(text, "one number");
    for (size_t i = 0; i < shape->rank; i++) {
        report_putf(text, "%s%zu", i ? " × " : "", shape->dim[i]);
    }
    report_putf(text, " of type %s", psi_dtype_name(psi_observations_dtype(observations)));
}

// ---- images -------------------------------------------------------------------------------------

// One sample onto a sheet of some width: planes side by side, every shrink × shrink pixels
// averaged.
static void paint(const report_samples *samples, const uint8_t *image, size_t shrink,
                  size_t sheet_width, uint8_t *to)
{
    const size_t channels = samples->channels, height = samples->height / shrink,
                 width = samples->width / shrink, area = base_max(shrink * shrink, 1);
    for (size_t p = 0; p < samples->planes; p++) {
        const uint8_t *plane = image + p * samples->height * samples->width;
        for (size_t i = 0; i < height * width * channels; i++) {
            const size_t c = i % channels, column = i / channels % width,
                         row = i / channels / width;
            unsigned sum = 0;
            for (size_t d = 0; d < area; d++) {
                const size_t from_row = row * shrink + d / shrink,
                             from_column = column * shrink + d % shrink;
                sum += plane[(from_row * samples->width + from_column) * channels + c];
            }
            to[(row * sheet_width + p * width + column) * channels + c] =
                (uint8_t)(sum / (unsigned)area);
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
    const size_t one_high = samples->height / how->shrink,
                 one_wide = samples->width / how->shrink * samples->planes;
    const size_t most = (WIDEST + SPACE) / (one_wide + SPACE);
    const size_t columns = base_max(base_min(shown, most), 1);
    const size_t lines = (shown + columns - 1) / columns;
    const size_t width = columns * (one_wide + SPACE) - SPACE,
                 height = lines * (one_high + SPACE) - SPACE,
                 row_bytes = psi_observations_row_bytes(samples->data->observations);
    uint8_t *images = NULL, *sheet = NULL, *png = NULL;
    size_t size;
    TRY(base_alloc(ctx, shown, row_bytes, &images));
    TRY(base_alloc(ctx, height * width, samples->channels, &sheet));
    memset(sheet, 128, height * width * samples->channels);
    TRY(psi_observations_gather(ctx, samples->data->observations,
                                samples->rows + k * samples->per_state, shown, images));
    for (size_t s = 0; s < shown; s++) {
        const size_t x = s % columns * (one_wide + SPACE), y = s / columns * (one_high + SPACE);
        paint(samples, images + s * row_bytes, how->shrink, width,
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
