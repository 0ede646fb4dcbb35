// What is inside each latent state: the table that a person judges the clusters by.
#include "report/page.h"

#include "base/checked.h"

#include <math.h>
#include <stdlib.h>

enum {
    PICTURE_BYTES = 1100000, // of observations at random; the page stays below 5 MB …
    EXTREME_BYTES = 300000,  // … and of the least typical and the least sure ones, each
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

static void put_action_name(report_page *page, size_t action)
{
    if (page->action_names) {
        report_escape(&page->html, page->action_names[action]);
    } else {
        report_putf(&page->html, "%zu", action);
    }
}

static void put_action(report_page *page, size_t k, size_t action)
{
    const psi_mdp *model = page->run->model;
    report_text *html = &page->html;
    const size_t row = k * model->n_actions + action;
    const bool best = page->plan && page->plan->policy[k] == (int32_t)action;
    if (page->exact && !psi_mdp_seen(model, k, action)) return; // it is not allowed here
    report_putf(html, "<tr%s><td>", best ? " class=\"best\"" : "");
    put_action_name(page, action);
    report_put(html, "</td>");
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

// The latent states that this one is closest to being joined with, and what keeps them apart.
static void put_closest(report_page *page, size_t k)
{
    report_text *html = &page->html;
    report_put(html, "<td data-name=\"Closest\">");
    if (page->closest[k * REPORT_CLOSEST].state < 0) report_put(html, "–");
    for (size_t i = 0; i < REPORT_CLOSEST; i++) {
        const report_neighbour *to = &page->closest[k * REPORT_CLOSEST + i];
        if (to->state < 0) continue;
        report_putf(html, "%s<a href=\"#s%d\">%d</a> <small>", i ? "<br>" : "", to->state,
                    to->state);
        if (isfinite(to->nats)) {
            report_putf(html, fabs(to->nats) < 100.0 ? "%.3g nats; " : "%.0f nats; ", to->nats);
        }
        if (to->action < 0) {
            report_put(html, page->exact ? "labels differ</small>"
                                         : "no action tells them apart</small>");
        } else {
            report_put(html, "action ");
            put_action_name(page, (size_t)to->action);
            report_putf(html, " %s (%.3g&nbsp;%%)</small>",
                        to->by_reward ? "earns something else" : "leads elsewhere",
                        100.0 * to->apart);
        }
    }
    report_put(html, "</td>");
}

// The labels of a block, which all its states share.
static void put_labels(report_page *page, size_t k)
{
    const psi_model *quotient = page->exact->model;
    for (size_t l = 0; l < quotient->n_labels; l++) {
        if (!quotient->labels[l].holds[k]) continue;
        report_put(&page->html, " <span class=\"tag\">");
        report_escape(&page->html, quotient->labels[l].name);
        report_put(&page->html, "</span>");
    }
}

// Observations of a kind; the others need a name.
static void put_pictures(report_text *html, const char *name, const report_text *picture)
{
    if (picture->size == 0) return;
    if (name) report_putf(html, "<div class=\"kind\">%s</div>", name);
    report_put_bytes(html, picture->bytes, picture->size);
}

typedef struct pictures {
    report_text *at_random, *least_typical, *least_sure; // (n_latent) each
} pictures;

static void put_state(report_page *page, size_t k, size_t largest, const pictures *drawn)
{
    const psi_run *run = page->run;
    report_text *html = &page->html;
    const double share = (double)page->sizes[k] / (double)run->n_observations;
    const double value = page->plan ? page->plan->value[k] : 0.0;
    const double reward = run->model ? best_reward(run->model, k) : 0.0;
    const bool terminal = run->model ? run->model->terminal[k] : run->has_terminal && k == 0;
    report_putf(html,
                "<tr id=\"s%zu\" data-k=\"%zu\" data-size=\"%zu\" data-value=\"%.6g\" "
                "data-reward=\"%.6g\" data-sure=\"%.6g\"><td data-name=\"Latent state\"><a "
                "class=\"to-graph\" "
                "href=\"#s%zu\">%zu</a>%s",
                k, k, page->sizes[k], value, reward, page->sure ? page->sure[k] : 1.0, k, k,
                terminal ? " <span class=\"tag\">terminal</span>" : "");
    if (page->exact) put_labels(page, k);
    report_put(html, "</td><td data-name=\"Size\"><span class=\"bar\"><i style=\"width:");
    report_putf(html, "%.1f%%\"></i></span>",
                100.0 * (double)page->sizes[k] / (double)base_max(1, largest));
    report_count(html, page->sizes[k]);
    report_putf(html, " <small>%.2f&nbsp;%%</small></td>", 100.0 * share);
    if (page->sure) {
        report_putf(html,
                    "<td data-name=\"Sure\">%.4g&nbsp;%% <small>lowest %.3g&nbsp;%%</small></td>",
                    100.0 * page->sure[k], 100.0 * (double)page->least[k]);
    }
    if (page->plan) {
        report_putf(html, "<td data-name=\"Value\">%.4g</td>", value);
        report_put(html, "<td data-name=\"By action\">");
        put_actions(page, k);
        report_put(html, "</td>");
        put_closest(page, k);
    }
    if (page->samples) {
        report_put(html, "<td data-name=\"Observations\" class=\"look\">");
        if (drawn->at_random[k].size > 0) {
            put_pictures(html, NULL, &drawn->at_random[k]);
        } else {
            report_put(html, "<span class=\"muted\">not shown</span>");
        }
        put_pictures(html, "least typical", &drawn->least_typical[k]);
        put_pictures(html, "least sure", &drawn->least_sure[k]);
        report_put(html, "</td>");
    }
    report_put(html, "</tr>\n");
}

static void put_head(report_page *page)
{
    report_text *html = &page->html;
    // rows are grids, so that those out of sight cost nothing: 2,000 of them open at once
    report_putf(html, "<table class=\"states\" id=\"states\" style=\"--columns:6rem 8rem%s%s%s\">",
                page->sure ? " 5.3rem" : "",
                page->plan ? " 5.2rem minmax(0,16fr) minmax(0,10fr)" : "",
                page->samples ? " minmax(0,12fr)" : "");
    report_put(html, "<thead><tr><th data-sort=\"k\">Latent state</th><th data-sort=\"size\" "
                     "aria-sort=\"descending\">Size</th>");
    if (page->sure) report_put(html, "<th data-sort=\"sure\">Sure</th>");
    if (page->plan) {
        report_put(html, "<th data-sort=\"value\">Value</th><th data-sort=\"reward\">By action</th>"
                         "<th>Closest</th>");
    }
    if (page->samples) report_put(html, "<th>Observations, at random</th>");
    report_put(html, "</tr></thead><tbody>\n");
}

static void put_explanation(report_page *page, const report_drawing *drawing)
{
    const psi_run *run = page->run;
    report_text *html = &page->html;
    report_put(html,
               "<p>A latent state makes sense if its observations differ only in what does not "
               "matter. ");
    if (page->plan) {
        report_putf(
            html,
            "<em>Reward</em> is what an action earns on average, <em>leads to</em> where it "
            "goes (with probability, where it is not certain), <em>value</em> the reward to "
            "come, discounted by %g a step, under the best plan; the best action is marked. "
            "<em>Closest</em> are the latent states that this one could most easily be joined "
            "with: how many nats of evidence there are against it, and the action by which they "
            "differ most (total variation of where it leads, or share of the range of rewards). ",
            page->options->gamma);
    } else {
        report_put(html, "Rewards and values need the data, which are not there. ");
    }
    if (page->samples && drawing->first < run->n_latent) {
        report_putf(html, "Observations are shown for the %zu largest latent states only. ",
                    drawing->first);
    }
    if (!page->data && page->options->no_data) {
        report_put(html, "Observations are not shown: ");
        report_escape(html, page->options->no_data);
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

static psi_status new_texts(report_page *page, report_text **out)
{
    const psi_status status = base_alloc_zero(page->ctx, page->run->n_latent, sizeof **out, out);
    for (size_t k = 0; status == PSI_OK && k < page->run->n_latent; k++) (*out)[k].ctx = page->ctx;
    return status;
}

static void free_texts(report_page *page, report_text *texts)
{
    for (size_t k = 0; texts && k < page->run->n_latent; k++) report_text_free(&texts[k]);
    base_free(page->ctx, texts);
}

static psi_status draw_all(report_page *page, pictures *drawn, report_drawing *drawing)
{
    psi_status status = PSI_OK;
    report_drawing other;
    TRY(new_texts(page, &drawn->at_random));
    TRY(new_texts(page, &drawn->least_typical));
    TRY(new_texts(page, &drawn->least_sure));
    if (!page->samples) goto done;
    TRY(report_samples_draw(page->samples, page->order, PICTURE_BYTES, drawn->at_random, drawing));
    if (page->least_typical) {
        TRY(report_samples_draw(page->least_typical, page->order, EXTREME_BYTES,
                                drawn->least_typical, &other));
    }
    if (page->least_sure) {
        TRY(report_samples_draw(page->least_sure, page->order, EXTREME_BYTES, drawn->least_sure,
                                &other));
    }
done:
    return status;
}

psi_status report_page_states(report_page *page)
{
    psi_status status = PSI_OK;
    const psi_run *run = page->run;
    pictures drawn = {0};
    report_drawing drawing = {.first = run->n_latent};
    TRY(draw_all(page, &drawn, &drawing));
    report_text *html = &page->html;
    report_put(html, "<section><h2 id=\"states-title\">What is inside each latent state</h2>\n");
    put_explanation(page, &drawing);
    put_controls(page);
    put_head(page);
    const size_t largest = run->n_latent > 0 ? page->sizes[page->order[0]] : 0;
    for (size_t i = 0; i < run->n_latent; i++) put_state(page, page->order[i], largest, &drawn);
    report_put(html, "</tbody></table>\n");
    if (page->ignored > 0) {
        report_put(html, "<p class=\"muted\">");
        report_count(html, page->ignored);
        report_put(html, " observations are in no latent state: they were ignored.</p>");
    }
    report_put(html, "</section>\n");
    status = html->status;
done:
    free_texts(page, drawn.at_random);
    free_texts(page, drawn.least_typical);
    free_texts(page, drawn.least_sure);
    return status;
}
