// The section that puts another run of the same data beside this one.
#include "report/page.h"

#include "base/checked.h"

#include <math.h>
#include <string.h>

enum { ROWS_SHOWN = 400, PAIRS_SHOWN = 20000 };

static void put_name(report_text *html, const char *folder)
{
    report_put(html, "<b>");
    report_escape(html, folder);
    report_put(html, "</b>");
}

// Seed and options in which the two differ.
static void put_differences(report_page *page)
{
    report_text *html = &page->html;
    const psi_option_table *table = psi_cluster_option_table();
    const psi_cluster_options *mine = &page->run->options, *theirs = &page->options->other->options;
    const char *comma = "";
    report_put(html, "<p>They differ in: ");
    if (mine->seed != theirs->seed) {
        report_putf(html, "seed (%llu / %llu)", (unsigned long long)mine->seed,
                    (unsigned long long)theirs->seed);
        comma = ", ";
    }
    for (size_t i = 0; i < table->n; i++) {
        const psi_option *option = &table->rows[i];
        char here[PSI_OPTION_TEXT_SIZE], there[PSI_OPTION_TEXT_SIZE];
        psi_option_text(option, mine, here);
        psi_option_text(option, theirs, there);
        if (strcmp(here, there) == 0) continue;
        report_putf(html, "%s%s (%s / %s)", comma, option->name, here, there);
        comma = ", ";
    }
    if (!*comma) report_put(html, "nothing that their manifests tell");
    report_put(html, ".</p>\n");
}

// One latent state that is not the same there, and what it is.
static size_t put_row(report_page *page, size_t at)
{
    const report_comparison *found = page->comparison;
    const int32_t k = found->overlaps[at].state;
    report_text *html = &page->html;
    size_t end = at;
    const bool shown = found->fate[k] != 0;
    if (shown) {
        report_putf(html,
                    "<tr><td><a href=\"#s%d\" class=\"state-link\">%d</a></td><td>%s</td><td>", k,
                    k, found->fate[k] > 0 ? "split" : "joined");
    }
    const char *comma = "";
    for (; end < found->n_overlaps && found->overlaps[end].state == k; end++) {
        const report_overlap *one = &found->overlaps[end];
        if (!shown || !one->counts) continue;
        report_putf(html, "%s%d <small>(", comma, one->other);
        report_count(html, one->n);
        report_put(html, ")</small>");
        comma = ", ";
    }
    if (shown) report_put(html, "</td></tr>\n");
    return end;
}

static void put_table(report_page *page)
{
    const report_comparison *found = page->comparison;
    report_text *html = &page->html;
    if (found->split + found->joined == 0) return;
    report_put(html, "<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"What "
                     "differs\"><table id=\"compared\"><thead><tr><th>latent state</th>"
                     "<th>there</th><th>is (observations in common)</th></tr></thead><tbody>\n");
    size_t rows = 0;
    for (size_t at = 0; at < found->n_overlaps && rows < ROWS_SHOWN;) {
        rows += found->fate[found->overlaps[at].state] != 0;
        at = put_row(page, at);
    }
    report_put(html, "</tbody></table></div>\n");
}

static void put_data(report_page *page)
{
    const report_comparison *found = page->comparison;
    report_text *html = &page->html;
    report_put(html, "<script type=\"application/json\" id=\"compare-data\">{\"names\":[");
    report_json_words(html, page->run->folder);
    report_put(html, ",");
    report_json_words(html, page->options->other->folder);
    report_put(html, "],\"pairs\":[");
    const char *comma = "";
    for (size_t i = 0; i < base_min(found->n_overlaps, PAIRS_SHOWN); i++) {
        const report_overlap *one = &found->overlaps[i];
        if (!one->counts) continue;
        report_putf(html, "%s[%d,%d,%zu]", comma, one->state, one->other, one->n);
        comma = ",";
    }
    report_put(html, "]}</script>\n");
}

static psi_status put_other_graph(report_page *page)
{
    psi_status status = PSI_OK;
    const psi_run *other = page->options->other;
    psi_plan *plan = NULL;
    size_t *sizes = NULL;
    psi_plan_options how = psi_plan_defaults();
    if (!report_graph_fits(other)) return PSI_OK;
    how.gamma = page->options->gamma;
    TRY(psi_value_iteration(page->ctx, other->model, &how, &plan));
    TRY(base_alloc_zero(page->ctx, other->n_latent, sizeof *sizes, &sizes));
    for (size_t i = 0; i < other->n_observations; i++) {
        if (other->labels[i] >= 0) sizes[other->labels[i]]++;
    }
    const report_graph graph = {
        .run = other, .plan = plan, .sizes = sizes, .compared = page->comparison->fate_other};
    report_graph_put(&graph, "graph-data-other", &page->html);
done:
    base_free(page->ctx, sizes);
    psi_plan_free(page->ctx, plan);
    return status;
}

psi_status report_page_beside(report_page *page)
{
    const report_comparison *found = page->comparison;
    report_text *html = &page->html;
    if (!found) return PSI_OK;
    report_put(html, "<section id=\"beside\"><h2>Beside another run</h2>\n<p>");
    put_name(html, page->run->folder);
    report_putf(html, " has %zu latent states, ", page->run->n_latent);
    put_name(html, page->options->other->folder);
    report_putf(html,
                " has %zu. <span id=\"compared-words\">%zu of the first are the same in both, %zu "
                "are split in the second, %zu are joined with others there; the two agree on "
                "%.4g&nbsp;%% of the observations.</span></p>\n",
                page->options->other->n_latent, found->same, found->split, found->joined,
                100.0 * found->agreement);
    put_differences(page);
    report_put(html, "<div id=\"compare-place\" hidden></div>\n");
    put_table(page);
    report_put(html, "</section>\n");
    put_data(page);
    const psi_status status = put_other_graph(page);
    return status != PSI_OK ? status : html->status;
}
