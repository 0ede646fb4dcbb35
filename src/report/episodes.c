// Sample episodes for the scrubber: what was seen, what the latent model predicted, and what came.
#include "report/page.h"

#include "base/checked.h"
#include "report/png.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    EPISODES_SHOWN = 12,    // a third each: the most surprising, the best paid, and evenly chosen
    STEPS_SHOWN = 250,      // of each
    PICTURE_BYTES = 900000, // of all images together, before they become text
    NUMBERS_SHOWN = 60000,  // of all vectors together
    CORNERS = 48,           // numbers of one vector
    LARGEST_SIDE = 84,      // pixels of an image
    SHEET_COLUMNS = 16,
};

static const double IMPROBABLE = 0.05; // as the page's script has it

typedef struct chosen {
    size_t episode;
    const char *why;
} chosen;

typedef struct recital {
    report_page *page;
    size_t n;
    chosen episodes[EPISODES_SHOWN];
    double *predicted; // (STEPS_SHOWN)
    double *belief;    // (n_latent)
    size_t bytes_left, numbers_left;
} recital;

static size_t length_of(const psi_trajectories *data, size_t e)
{
    return data->episode_offsets[e + 1] - data->episode_offsets[e];
}

// ---- which ones ---------------------------------------------------------------------------------

static void choose(recital *all, size_t episode, const char *why)
{
    const psi_trajectories *data = all->page->data;
    if (all->n == EPISODES_SHOWN || episode >= data->n_episodes) return;
    if (length_of(data, episode) == 0) return;
    for (size_t i = 0; i < all->n; i++) {
        if (all->episodes[i].episode == episode) return;
    }
    all->episodes[all->n++] = (chosen){episode, why};
}

typedef struct keyed {
    double key;
    size_t episode;
} keyed;

static int by_key(const void *a, const void *b)
{
    const keyed *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? 1 : -1;
    return x->episode < y->episode ? -1 : x->episode > y->episode;
}

// The probability of the latent state that came at a step; −1 where the model cannot say.
static double probability_of(const report_page *page, size_t e, uint64_t t)
{
    const psi_mdp *model = page->run->model;
    const int32_t k = page->run->labels[t + e], next = page->run->labels[t + e + 1];
    const size_t a = (size_t)page->data->actions[t];
    if (k < 0 || next < 0 || !psi_mdp_seen(model, (size_t)k, a)) return -1.0;
    const size_t row = (size_t)k * model->n_actions + a;
    for (size_t i = model->offsets[row]; i < model->offsets[row + 1]; i++) {
        if (model->next[i] == next) return model->probability[i];
    }
    return 0.0;
}

// How surprising an episode is: its reward-sequence error, and the share of its steps that lead
// where the model hardly ever does.
static double surprise_of(const report_page *page, size_t e, double error)
{
    const psi_trajectories *data = page->data;
    const uint64_t begin = data->episode_offsets[e], end = data->episode_offsets[e + 1];
    double found = isfinite(error) ? error : 0.0;
    for (uint64_t t = begin; t < end; t++) {
        const double p = probability_of(page, e, t);
        if (p >= 0.0 && p < IMPROBABLE) found += 1.0 / (double)(end - begin);
    }
    return found;
}

static psi_status choose_all(recital *all)
{
    psi_status status = PSI_OK;
    const report_page *page = all->page;
    const psi_trajectories *data = page->data;
    const psi_run_errors *errors = page->errors;
    const double *off = errors->values + (errors->n_stages - 1) * errors->n_episodes;
    keyed *sorted = NULL;
    TRY(base_alloc(page->ctx, data->n_episodes, sizeof *sorted, &sorted));
    for (size_t e = 0; e < data->n_episodes; e++) {
        sorted[e] = (keyed){surprise_of(page, e, off[e]), e};
    }
    qsort(sorted, data->n_episodes, sizeof *sorted, by_key);
    const size_t third = EPISODES_SHOWN / 3;
    for (size_t i = 0; i < data->n_episodes && all->n < third && sorted[i].key > 1e-9; i++) {
        choose(all, sorted[i].episode, "most surprising");
    }
    for (size_t e = 0; e < data->n_episodes; e++) {
        sorted[e] = (keyed){0.0, e};
        for (uint64_t t = data->episode_offsets[e]; t < data->episode_offsets[e + 1]; t++) {
            sorted[e].key += data->rewards[t];
        }
    }
    qsort(sorted, data->n_episodes, sizeof *sorted, by_key);
    const size_t paid = all->n + third;
    for (size_t i = 0; i < data->n_episodes && all->n < paid; i++) {
        choose(all, sorted[i].episode, "highest return");
    }
    const size_t left = EPISODES_SHOWN - all->n;
    for (size_t i = 0; i < left; i++) {
        choose(all, (2 * i + 1) * data->n_episodes / (2 * left), "evenly chosen");
    }
done:
    base_free(page->ctx, sorted);
    return status;
}

// ---- what was predicted -------------------------------------------------------------------------

static void put_predictions(recital *all, size_t e, size_t steps)
{
    report_page *page = all->page;
    const psi_run *run = page->run;
    const psi_trajectories *data = page->data;
    const psi_mdp *model = run->model;
    report_text *html = &page->html;
    const uint64_t first = data->episode_offsets[e];
    const int32_t *labels = run->labels + first + e;
    report_put(html, ",\"one\":["); // a step ahead, from the latent state as it was
    for (size_t t = 0; t < steps; t++) {
        const int32_t k = labels[t];
        const size_t a = (size_t)data->actions[first + t];
        if (t > 0) report_put(html, ",");
        if (k < 0 || !psi_mdp_seen(model, (size_t)k, a)) {
            report_put(html, "null");
        } else {
            report_putf(html, "%.4g", model->reward[(size_t)k * model->n_actions + a]);
        }
    }
    report_put(html, "],\"p\":["); // of the latent state that came
    for (size_t t = 0; t < steps; t++) {
        const double p = probability_of(page, e, first + t);
        if (t > 0) report_put(html, ",");
        if (p < 0.0) {
            report_put(html, "null");
        } else {
            report_putf(html, "%.3g", p);
        }
    }
    report_put(html, "]");
}

// The whole episode from its first observation alone, as the errors are measured.
static psi_status put_rollout(recital *all, size_t e, size_t steps)
{
    psi_status status = PSI_OK;
    report_page *page = all->page;
    const psi_run *run = page->run;
    const uint64_t first = page->data->episode_offsets[e];
    const int32_t start = run->labels[first + e];
    if (start < 0) return PSI_OK;
    for (size_t k = 0; k < run->n_latent; k++) all->belief[k] = k == (size_t)start ? 1.0 : 0.0;
    TRY(psi_rollout(page->ctx, run->model, all->belief, steps, page->data->actions + first,
                    PSI_ROLLOUT_SOFT, all->predicted));
    report_put(&page->html, ",\"ahead\":[");
    for (size_t t = 0; t < steps; t++) {
        report_putf(&page->html, "%s%.4g", t ? "," : "", all->predicted[t]);
    }
    report_put(&page->html, "]");
done:
    return status;
}

// ---- what was seen ------------------------------------------------------------------------------

// All observations on one sheet, row by row, as a picture in a text.
static psi_status put_images(recital *all, uint64_t first, size_t n)
{
    psi_status status = PSI_OK;
    report_page *page = all->page;
    const report_samples *how = page->samples;
    const size_t side = base_max(how->height, how->width);
    const size_t shrink = base_max(1, (side + LARGEST_SIDE - 1) / LARGEST_SIDE);
    const size_t columns = base_min(n, SHEET_COLUMNS);
    const report_frame frame = report_samples_frame(how, shrink);
    const size_t width = columns * frame.width, height = (n + columns - 1) / columns * frame.height,
                 row_bytes = psi_observations_row_bytes(page->data->observations);
    uint8_t *image = NULL, *sheet = NULL, *png = NULL;
    size_t size;
    TRY(base_alloc(page->ctx, 1, row_bytes, &image));
    TRY(base_alloc_zero(page->ctx, height * width, how->channels, &sheet));
    for (size_t i = 0; i < n; i++) {
        const uint64_t row = first + i;
        const size_t x = i % columns * frame.width, y = i / columns * frame.height;
        TRY(psi_observations_gather(page->ctx, page->data->observations, &row, 1, image));
        report_samples_paint(how, image, shrink, width, sheet + (y * width + x) * how->channels);
    }
    TRY(report_png(page->ctx, width, height, how->channels, sheet, &png, &size));
    if (size > all->bytes_left) {
        all->bytes_left = 0; // the others are told without pictures
        goto done;
    }
    all->bytes_left -= size;
    report_putf(&page->html, ",\"columns\":%zu,\"wide\":%zu,\"high\":%zu,\"sheet\":\"", columns,
                frame.width, frame.height);
    report_put(&page->html, "data:image/png;base64,");
    report_base64(&page->html, png, size);
    report_put(&page->html, "\"");
done:
    base_free(page->ctx, png);
    base_free(page->ctx, sheet);
    base_free(page->ctx, image);
    return status;
}

static psi_status put_numbers(recital *all, uint64_t first, size_t n)
{
    psi_status status = PSI_OK;
    report_page *page = all->page;
    const psi_observations *from = page->data->observations;
    const psi_dtype dtype = psi_observations_dtype(from);
    const size_t width = page->samples->dimensions, corners = base_min(width, CORNERS);
    unsigned char *bytes = NULL;
    TRY(base_alloc(page->ctx, 1, psi_observations_row_bytes(from), &bytes));
    if (n * corners > all->numbers_left) {
        all->numbers_left = 0;
        goto done;
    }
    all->numbers_left -= n * corners;
    report_put(&page->html, ",\"values\":[");
    for (size_t i = 0; i < n; i++) {
        const uint64_t row = first + i;
        TRY(psi_observations_gather(page->ctx, from, &row, 1, bytes));
        for (size_t c = 0; c < corners; c++) {
            const size_t d = corners > 1 ? c * (width - 1) / (corners - 1) : 0;
            const double value = report_number(dtype, bytes, d);
            report_putf(&page->html, "%s%.4g", i + c ? "," : "", isfinite(value) ? value : 0.0);
        }
    }
    report_put(&page->html, "]");
done:
    base_free(page->ctx, bytes);
    return status;
}

// ---- all of it ----------------------------------------------------------------------------------

static psi_status put_episode(recital *all, const chosen *which)
{
    psi_status status = PSI_OK;
    report_page *page = all->page;
    const psi_run *run = page->run;
    const psi_trajectories *data = page->data;
    report_text *html = &page->html;
    const size_t e = which->episode, length = length_of(data, e),
                 steps = base_min(length, STEPS_SHOWN);
    const uint64_t first = data->episode_offsets[e], row = first + e;
    const bool whole = steps == length && !data->final_missing[e];
    const size_t seen = steps + (whole || steps < length ? 1 : 0); // observations there are
    report_putf(html, "{\"number\":%zu,\"why\":\"%s\",\"length\":%zu,\"ended\":%s,\"seen\":%zu", e,
                which->why, length, data->terminated[e] ? "true" : "false", seen);
    report_put(html, ",\"labels\":[");
    for (size_t t = 0; t <= steps; t++) {
        report_putf(html, "%s%d", t ? "," : "", run->labels[row + t]);
    }
    report_put(html, "],\"actions\":[");
    for (size_t t = 0; t < steps; t++) {
        report_putf(html, "%s%d", t ? "," : "", data->actions[first + t]);
    }
    report_put(html, "],\"rewards\":[");
    for (size_t t = 0; t < steps; t++) {
        report_putf(html, "%s%.4g", t ? "," : "", data->rewards[first + t]);
    }
    report_put(html, "]");
    if (run->confidence) {
        report_put(html, ",\"sure\":[");
        for (size_t t = 0; t <= steps; t++) {
            report_putf(html, "%s%.3g", t ? "," : "", (double)run->confidence[row + t]);
        }
        report_put(html, "]");
    }
    put_predictions(all, e, steps);
    TRY(put_rollout(all, e, steps));
    if (page->samples->look == REPORT_LOOK_IMAGE) {
        if (all->bytes_left > 0) TRY(put_images(all, row, seen));
    } else if (all->numbers_left > 0) {
        TRY(put_numbers(all, row, seen));
    }
    report_put(html, "}");
done:
    return status;
}

static void put_place(report_page *page)
{
    report_put(
        &page->html,
        "<section id=\"episodes\" aria-labelledby=\"episodes-title\"><h2 "
        "id=\"episodes-title\">Episodes, step by step</h2>\n<p>What was seen, which latent "
        "state that is, what the latent model predicted and what came. A step is a "
        "<em>surprise</em> if its reward is further from the prediction than allowed, or if "
        "it leads where the model hardly ever does.</p>\n<p class=\"static-note\">Going through "
        "episodes needs JavaScript; how well they are predicted is below, under "
        "<em>Reward-sequence error</em>.</p>\n<div id=\"episode-place\" "
        "class=\"episode\" hidden></div>\n</section>\n");
}

psi_status report_page_episodes(report_page *page)
{
    static const char *const looks[] = {"image", "point", "numbers", "vector"};
    psi_status status = PSI_OK;
    report_text *html = &page->html;
    recital all = {.page = page, .bytes_left = PICTURE_BYTES, .numbers_left = NUMBERS_SHOWN};
    if (!page->data || !page->run->model || page->data->n_episodes == 0) return PSI_OK;
    TRY(choose_all(&all));
    if (all.n == 0) goto done;
    TRY(base_alloc(page->ctx, STEPS_SHOWN, sizeof *all.predicted, &all.predicted));
    TRY(base_alloc(page->ctx, page->run->n_latent, sizeof *all.belief, &all.belief));
    put_place(page);
    const double allowed = page->run->epsilon_reward;
    const report_samples *samples = page->samples;
    const size_t corners = base_min(samples->dimensions, CORNERS);
    report_putf(html,
                "<script type=\"application/json\" id=\"episode-data\">{\"look\":\"%s\","
                "\"width\":%zu,\"allowed\":%.4g,\"range\":[",
                looks[samples->look], corners, isfinite(allowed) ? allowed : 0.0);
    for (size_t c = 0; samples->look != REPORT_LOOK_IMAGE && c < corners; c++) {
        const size_t d = corners > 1 ? c * (samples->dimensions - 1) / (corners - 1) : 0;
        const bool known = samples->low[d] <= samples->high[d];
        report_putf(html, "%s[%.4g,%.4g]", c ? "," : "", known ? samples->low[d] : 0.0,
                    known ? samples->high[d] : 0.0);
    }
    report_put(html, "],\"episodes\":[");
    for (size_t i = 0; i < all.n; i++) {
        if (i > 0) report_put(html, ",\n");
        TRY(base_cancelled(page->ctx));
        TRY(put_episode(&all, &all.episodes[i]));
    }
    report_put(html, "]}</script>\n");
    status = html->status;
done:
    base_free(page->ctx, all.belief);
    base_free(page->ctx, all.predicted);
    return status;
}
