// How the run got there: the table of refinements, and what the slider over them needs.
#include "report/page.h"

#include "base/checked.h"
#include "base/random.h"

#include <math.h>
#include <stdio.h>

enum {
    POINTS_STREAM = 0x706f696e,
    POINTS_SHOWN = 1500,
    STAGE_NUMBERS = 120000 // of sizes and parents in all stages together
};

static double widest(const psi_run *run)
{
    size_t most = 1;
    for (size_t i = 0; i < run->n_steps; i++) most = base_max(most, run->steps[i].clusters);
    return (double)most;
}

// A number, or a dash where it is not known.
static void put_number(report_text *html, const char *format, double value)
{
    report_put(html, "<td>");
    if (isfinite(value)) {
        report_putf(html, format, value);
    } else {
        report_put(html, "–");
    }
    report_put(html, "</td>");
}

static void put_step(report_page *page, size_t i)
{
    const psi_cluster_step *step = &page->run->steps[i];
    report_text *html = &page->html;
    report_putf(html,
                "<tr><td>%zu</td><td><span class=\"bar\"><i style=\"width:%.1f%%\"></i></span>%zu"
                "</td>",
                i + 1, 100.0 * (double)step->clusters / widest(page->run), step->clusters);
    put_number(html, "%.2f&nbsp;%%", 100.0 * step->ignored);
    put_number(html, "%.2f&nbsp;%%", i == 0 ? (double)NAN : 100.0 * step->agreement);
    put_number(html, "%.3g", step->epsilon);
    if (page->errors) {
        put_number(html, "%.6f",
                   i + 1 < page->errors->n_stages ? page->errors->summary[i].mean : (double)NAN);
    }
    report_put(html, "<td>");
    if (isfinite(step->seconds)) report_duration(html, step->seconds);
    report_put(html, "</td></tr>\n");
}

static void put_final(report_page *page)
{
    const psi_run *run = page->run;
    report_text *html = &page->html;
    if (!run->finished) return;
    report_putf(
        html,
        "<tr class=\"final\"><td>final</td><td><span class=\"bar\"><i "
        "style=\"width:%.1f%%\"></i></span>%zu</td><td>%.2f&nbsp;%%</td><td>–</td><td>–</td>",
        100.0 * fmin(1.0, (double)run->n_latent / widest(run)), run->n_latent,
        100.0 * (double)page->ignored / (double)run->n_observations);
    if (page->errors) report_putf(html, "<td>%.6f</td>", page->result.error);
    report_put(html, "<td></td></tr>\n");
}

static void put_phases(report_page *page)
{
    const psi_run *run = page->run;
    report_text *html = &page->html;
    if (run->n_phases == 0) return;
    report_put(html, "<h3>Time and passes per phase</h3><div class=\"wide\" role=\"region\" "
                     "tabindex=\"0\" aria-label=\"Phases\"><table><thead>"
                     "<tr><th>phase</th><th>time</th><th>observations passed through a "
                     "network</th></tr></thead><tbody>");
    for (size_t i = 0; i < run->n_phases; i++) {
        const psi_cluster_phase *phase = &run->phases[i];
        report_putf(html, "<tr><td>%s</td><td>", phase->name);
        if (isfinite(phase->seconds)) {
            report_duration(html, phase->seconds);
        } else {
            report_put(html, "–");
        }
        report_put(html, "</td><td>");
        report_count(html, phase->passes);
        report_put(html, "</td></tr>");
    }
    report_put(html, "</tbody></table></div>\n");
}

psi_status report_page_history(report_page *page)
{
    const psi_run *run = page->run;
    report_text *html = &page->html;
    report_put(html, "<section><h2>How it got there</h2>\n<p>");
    report_put(html, page->exact ? "States" : "Observations");
    report_put(html, " are first grouped by the rewards that follow at once, then split by where "
                     "they lead, refinement by refinement, until two of them agree");
    if (run->finished && !page->exact &&
        run->n_latent != (run->n_steps ? run->steps[run->n_steps - 1].clusters : run->n_latent)) {
        report_put(html, "; at the end, clusters that trajectories show to be one are joined, and "
                         "states of doubtful clusters go where their trajectories want them");
    }
    report_put(
        html,
        ".</p>\n<div id=\"stages\" hidden></div>\n<div id=\"tree\" hidden></div>\n<div "
        "class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"Refinements\"><table "
        "class=\"steps\"><thead><tr><th>refinement</th><th>latent states</th>"
        "<th>ignored</th><th title=\"with the refinement before\">agreement</th><th>epsilon</th>");
    if (page->errors) report_put(html, "<th>mean error</th>");
    report_put(html, "<th>time</th></tr></thead><tbody>\n");
    for (size_t i = 0; i < run->n_steps; i++) put_step(page, i);
    put_final(page);
    report_put(html, "</tbody></table></div>\n");
    put_phases(page);
    return html->status;
}

// ---- the slider's data --------------------------------------------------------------------------

// For every cluster of a labelling: which cluster of another labelling most of its observations are
// in, of those that are in one; −1 if none is. A vote per observation, counted in a table that is
// sparse in practice: the candidate is found by Boyer and Moore's majority, which is right whenever
// there is a majority at all.
static void majority(size_t n, const int32_t *labels, const int32_t *other, size_t clusters,
                     int32_t *candidate, size_t *weight)
{
    for (size_t k = 0; k < clusters; k++) {
        candidate[k] = -1;
        weight[k] = 0;
    }
    for (size_t i = 0; i < n; i++) {
        if (labels[i] < 0 || other[i] < 0) continue;
        const size_t k = (size_t)labels[i];
        if (weight[k] == 0) candidate[k] = other[i];
        if (candidate[k] == other[i]) {
            weight[k]++;
        } else {
            weight[k]--;
        }
    }
}

static psi_status put_stage(report_page *page, const int32_t *labels, const int32_t *before,
                            size_t clusters, const char *name, const psi_cluster_step *step)
{
    psi_status status = PSI_OK;
    const psi_run *run = page->run;
    report_text *html = &page->html;
    int32_t *parent = NULL, *end = NULL;
    size_t *weight = NULL, *sizes = NULL, ignored = 0;
    TRY(base_alloc(page->ctx, clusters, sizeof *parent, &parent));
    TRY(base_alloc(page->ctx, clusters, sizeof *end, &end));
    TRY(base_alloc(page->ctx, clusters, sizeof *weight, &weight));
    TRY(base_alloc_zero(page->ctx, clusters, sizeof *sizes, &sizes));
    if (before) majority(run->n_observations, labels, before, clusters, parent, weight);
    majority(run->n_observations, labels, run->labels, clusters, end, weight);
    for (size_t i = 0; i < run->n_observations; i++) {
        if (labels[i] < 0) {
            ignored++;
        } else {
            sizes[labels[i]]++;
        }
    }
    size_t looked_at = run->n_observations;
    if (step && step->looked_at < looked_at) { // labels do not tell who was not looked at
        looked_at = step->looked_at;
        ignored = (size_t)llround(step->ignored * (double)looked_at);
    }
    report_putf(html, "{\"name\":\"%s\",\"looked_at\":%zu,\"ignored\":%zu,\"sizes\":[", name,
                looked_at, ignored);
    for (size_t k = 0; k < clusters; k++) report_putf(html, "%s%zu", k ? "," : "", sizes[k]);
    report_put(html, "],\"from\":[");
    for (size_t k = 0; before && k < clusters; k++) {
        report_putf(html, "%s%d", k ? "," : "", parent[k]);
    }
    report_put(html, "],\"to\":[");
    for (size_t k = 0; k < clusters; k++) report_putf(html, "%s%d", k ? "," : "", end[k]);
    report_put(html, "]}");
    status = html->status;
done:
    base_free(page->ctx, sizes);
    base_free(page->ctx, weight);
    base_free(page->ctx, end);
    base_free(page->ctx, parent);
    return status;
}

// Points in the plane can be coloured anew at every stage.
static psi_status put_points(report_page *page)
{
    psi_status status = PSI_OK;
    const psi_run *run = page->run;
    report_text *html = &page->html;
    uint64_t *rows = NULL;
    unsigned char *bytes = NULL;
    if (!page->samples || page->samples->look != REPORT_LOOK_POINT) return PSI_OK;
    const size_t n = base_min(POINTS_SHOWN, run->n_observations);
    const psi_observations *from = page->data->observations;
    const size_t row_bytes = psi_observations_row_bytes(from);
    const psi_dtype dtype = psi_observations_dtype(from);
    TRY(base_alloc(page->ctx, n, sizeof *rows, &rows));
    TRY(base_alloc(page->ctx, n, row_bytes, &bytes));
    base_random random = base_random_stream(page->options->seed, POINTS_STREAM, 0);
    for (size_t i = 0; i < n; i++) { // one from each of n equal parts
        const size_t begin = i * run->n_observations / n, end = (i + 1) * run->n_observations / n;
        rows[i] = begin + base_random_below(&random, (uint32_t)base_min(end - begin, UINT32_MAX));
    }
    TRY(psi_observations_gather(page->ctx, from, rows, n, bytes));
    report_put(html, ",\"points\":[");
    for (size_t i = 0; i < n; i++) {
        report_putf(html, "%s%.4g,%.4g", i ? "," : "",
                    report_number(dtype, bytes + i * row_bytes, 0),
                    report_number(dtype, bytes + i * row_bytes, 1));
    }
    report_put(html, "],\"labels\":[");
    for (size_t level = 1; level < page->levels.n; level++) {
        const int32_t *labels = page->levels.labels[level];
        report_put(html, level > 1 ? ",[" : "[");
        for (size_t i = 0; i < n; i++) report_putf(html, "%s%d", i ? "," : "", labels[rows[i]]);
        report_put(html, "]");
    }
    report_put(html, "]");
    status = html->status;
done:
    base_free(page->ctx, bytes);
    base_free(page->ctx, rows);
    return status;
}

psi_status report_page_stages(report_page *page)
{
    psi_status status = PSI_OK;
    const psi_run *run = page->run;
    const psi_levels *levels = &page->levels;
    const size_t last = levels->n - 1; // the final labels
    report_text *html = &page->html;
    size_t numbers = 0;
    for (size_t i = 1; i < last; i++) numbers += 3 * levels->clusters[i];
    if (last < 3 || numbers > STAGE_NUMBERS) return PSI_OK;
    report_putf(html,
                "<script type=\"application/json\" id=\"refinement-data\">{\"n\":%zu,"
                "\"terminal\":%s,\"stages\":[",
                run->n_observations, run->has_terminal ? "true" : "false");
    for (size_t i = 1; i <= last; i++) {
        char name[40];
        snprintf(name, sizeof name, "refinement %zu", i);
        if (i == last) snprintf(name, sizeof name, "%s", run->finished ? "final" : "last");
        if (i > 1) report_put(html, ",\n");
        TRY(put_stage(page, levels->labels[i], i > 1 ? levels->labels[i - 1] : NULL,
                      i == last ? run->n_latent : levels->clusters[i], name,
                      i < last && i <= run->n_steps ? &run->steps[i - 1] : NULL));
    }
    report_put(html, "]");
    TRY(put_points(page));
    report_put(html, "}</script>\n");
    status = html->status;
done:
    return status;
}
