// What is inside each latent state: the table that a person judges the clusters by.
#include "report/page.h"

#include "base/checked.h"

#include <math.h>
#include <stdlib.h>

enum {
    PICTURE_BYTES = 2200000, // of all observations shown; the page stays below 5 MB
    ACTION_LINES = 8000,     // in all states together
    NEXT_SHOWN = 3,
};

// The actions of a state that are shown: all, or the best few where there are too many.
static size_t actions_shown(const report_page *page)
{
    const size_t most = base_max(2, ACTION_LINES / base_max(1, page->run->n_latent));
    return base_min(page->run->n_actions, base_min(most, 32));
}

static void put_next(report_page *page, size_t row)
{
    const psi_mdp *model = page->run->model;
    report_text *html = &page->html;
    const size_t begin = model->offsets[row], end = model->offsets[row + 1];
    double last = (double)INFINITY;
    size_t last_entry = end;
    for (size_t shown = 0; shown < base_min(NEXT_SHOWN, end - begin); shown++) {
        size_t best = end; // the most probable one that was not shown yet
        for (size_t i = begin; i < end; i++) {
            const double p = model->probability[i];
            const bool later = p < last || (p == last && i > last_entry);
            if (later && (best == end || p > model->probability[best])) best = i;
        }
        if (best == end || (shown > 0 && model->probability[best] < 0.005)) break;
        last = model->probability[best];
        last_entry = best;
        report_putf(html, "%s<a href=\"#s%d\">%d</a>", shown ? ", " : "", model->next[best],
                    model->next[best]);
        if (last < 0.9995) report_putf(html, " <small>%.3g %%</small>", 100.0 * last);
    }
}

static void put_action(report_page *page, size_t k, size_t action)
{
    const psi_mdp *model = page->run->model;
    report_text *html = &page->html;
    const size_t row = k * model->n_actions + action;
    const bool best = page->plan && page->plan->policy[k] == (int32_t)action;
    report_putf(html, "<tr%s><td>%zu</td>", best ? " class=\"best\"" : "", action);
    if (!psi_mdp_seen(model, k, action)) {
        report_put(html, "<td colspan=\"3\" class=\"muted\">never seen</td></tr>");
        return;
    }
    report_putf(html, "<td>%.4g</td><td>%.4g</td><td>", model->reward[row], page->plan->q[row]);
    put_next(page, row);
    report_put(html, "</td></tr>");
}

// The actions of a state by value, the best first; unseen ones last.
static void put_actions(report_page *page, size_t k)
{
    const psi_mdp *model = page->run->model;
    report_text *html = &page->html;
    const size_t shown = actions_shown(page);
    if (model->terminal[k]) {
        report_put(html, "<span class=\"muted\">the end of an episode: nothing follows</span>");
        return;
    }
    report_put(html, "<table class=\"actions\"><thead><tr><th>action</th><th>reward</th>"
                     "<th>value</th><th>leads to</th></tr></thead><tbody>");
    if (shown == model->n_actions) {
        for (size_t a = 0; a < shown; a++) put_action(page, k, a);
    } else {
        const double *q = page->plan->q + k * model->n_actions;
        double last = (double)INFINITY;
        size_t last_action = 0;
        for (size_t i = 0; i < shown; i++) {
            size_t best = model->n_actions;
            for (size_t a = 0; a < model->n_actions; a++) {
                const bool later = i == 0 || q[a] < last || (q[a] == last && a > last_action);
                if (later && (best == model->n_actions || q[a] > q[best])) best = a;
            }
            if (best == model->n_actions) break;
            last = q[best];
            last_action = best;
            put_action(page, k, best);
        }
        report_putf(html, "<tr><td colspan=\"4\" class=\"muted\">and %zu more actions</td></tr>",
                    model->n_actions - shown);
    }
    report_put(html, "</tbody></table>");
}

// The largest reward that some action earns here, for sorting and filtering.
static double best_reward(const psi_mdp *model, size_t k)
{
    double best = 0.0;
    for (size_t a = 0; a < model->n_actions; a++) {
        const double reward = model->reward[k * model->n_actions + a];
        if (fabs(reward) > fabs(best)) best = reward;
    }
    return best;
}

static void put_state(report_page *page, size_t k, size_t largest, const report_text *picture)
{
    const report_run *run = page->run;
    report_text *html = &page->html;
    const double share = (double)page->sizes[k] / (double)run->n_observations;
    const double value = page->plan ? page->plan->value[k] : 0.0;
    const double reward = run->model ? best_reward(run->model, k) : 0.0;
    const bool terminal = run->has_terminal && k == 0;
    report_putf(html,
                "<tr id=\"s%zu\" data-k=\"%zu\" data-size=\"%zu\" data-value=\"%.6g\" "
                "data-reward=\"%.6g\"><td data-name=\"Latent state\"><b>%zu</b>%s</td>",
                k, k, page->sizes[k], value, reward, k,
                terminal ? " <span class=\"tag\">terminal</span>" : "");
    report_put(html, "<td data-name=\"Size\"><span class=\"bar\"><i style=\"width:");
    report_putf(html, "%.1f%%\"></i></span>",
                100.0 * (double)page->sizes[k] / (double)base_max(1, largest));
    report_count(html, page->sizes[k]);
    report_putf(html, " <small>%.2f&nbsp;%%</small></td>", 100.0 * share);
    if (page->plan) {
        report_putf(html, "<td data-name=\"Value\">%.4g</td>", value);
        report_put(html, "<td data-name=\"By action\">");
        put_actions(page, k);
        report_put(html, "</td>");
    }
    if (page->samples) {
        report_put(html, "<td data-name=\"Observations\" class=\"look\">");
        if (picture->size > 0) {
            report_put_bytes(html, picture->bytes, picture->size);
        } else {
            report_put(html, "<span class=\"muted\">not shown</span>");
        }
        report_put(html, "</td>");
    }
    report_put(html, "</tr>\n");
}

static void put_head(report_page *page)
{
    report_text *html = &page->html;
    // rows are grids, so that those out of sight cost nothing: 2,000 of them open at once
    report_putf(html, "<table class=\"states\" id=\"states\" style=\"--columns:6rem 12.5rem%s%s\">",
                page->plan ? " 5.5rem minmax(0,1fr)" : "", page->samples ? " minmax(0,19rem)" : "");
    report_put(html, "<thead><tr><th data-sort=\"k\">Latent state</th><th data-sort=\"size\" "
                     "aria-sort=\"descending\">Size</th>");
    if (page->plan) {
        report_put(html,
                   "<th data-sort=\"value\">Value</th><th data-sort=\"reward\">By action</th>");
    }
    if (page->samples) report_put(html, "<th>Observations, at random</th>");
    report_put(html, "</tr></thead><tbody>\n");
}

static void put_explanation(report_page *page, const report_drawing *drawing)
{
    const report_run *run = page->run;
    report_text *html = &page->html;
    report_put(html,
               "<p>A latent state makes sense if its observations differ only in what does not "
               "matter. ");
    if (page->plan) {
        report_putf(
            html,
            "<em>Reward</em> is what an action earns on average, <em>leads to</em> where it "
            "goes (with probability, where it is not certain), <em>value</em> the reward to "
            "come, discounted by %g a step, under the best plan; the best action is marked. ",
            page->options->gamma);
    } else {
        report_put(html, "Rewards and values need the data, which are not there. ");
    }
    if (page->samples && drawing->first < run->n_latent) {
        report_putf(html, "Observations are shown for the %zu largest latent states only. ",
                    drawing->first);
    }
    if (page->data_trouble) {
        report_put(html, "Observations are not shown: ");
        report_escape(html, page->data_trouble);
        report_put(html, ". ");
    }
    report_put(html, "</p>\n");
}

static void put_controls(report_page *page)
{
    report_put(&page->html,
               "<div class=\"controls\" id=\"controls\" hidden><label>Find <input id=\"find\" "
               "type=\"search\" inputmode=\"numeric\" placeholder=\"number of a latent state\">"
               "</label>");
    if (page->plan) {
        report_put(&page->html, "<label><input id=\"rewarding\" type=\"checkbox\"> only where "
                                "something is earned</label>");
    }
    report_put(&page->html, "<span id=\"shown\" role=\"status\"></span></div>\n");
}

psi_status report_page_states(report_page *page)
{
    psi_status status = PSI_OK;
    const report_run *run = page->run;
    report_text *pictures = NULL;
    report_drawing drawing = {.first = run->n_latent};
    TRY(base_alloc_zero(page->ctx, run->n_latent, sizeof *pictures, &pictures));
    for (size_t k = 0; k < run->n_latent; k++) pictures[k].ctx = page->ctx;
    if (page->samples) {
        TRY(report_samples_draw(page->samples, page->order, PICTURE_BYTES, pictures, &drawing));
    }
    report_text *html = &page->html;
    report_put(html, "<section><h2 id=\"states-title\">What is inside each latent state</h2>\n");
    put_explanation(page, &drawing);
    put_controls(page);
    put_head(page);
    const size_t largest = run->n_latent > 0 ? page->sizes[page->order[0]] : 0;
    for (size_t i = 0; i < run->n_latent; i++) {
        put_state(page, page->order[i], largest, &pictures[page->order[i]]);
    }
    report_put(html, "</tbody></table>\n");
    if (page->ignored > 0) {
        report_put(html, "<p class=\"muted\">");
        report_count(html, page->ignored);
        report_put(html, " observations are in no latent state: they were ignored.</p>");
    }
    report_put(html, "</section>\n");
    status = html->status;
done:
    for (size_t k = 0; pictures && k < run->n_latent; k++) report_text_free(&pictures[k]);
    base_free(page->ctx, pictures);
    return status;
}
