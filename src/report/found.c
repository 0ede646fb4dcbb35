// What was asked and what was found: the first two sections of the page.
#include "report/page.h"

#include "base/checked.h"

#include <math.h>

static void open_tile(report_text *html, const char *title)
{
    report_putf(html, "<div class=\"tile\"><h3>%s</h3><p class=\"number\">", title);
}

static void close_tile(report_text *html)
{
    report_put(html, "</p></div>\n");
}

static void put_certificate(report_page *page)
{
    const psi_certificate *made = page->run->certificate;
    report_text *html = &page->html;
    if (!made) return;
    open_tile(html, "Certificate");
    report_putf(html, "%.3g&nbsp;%%</p><p>of ",
                made->judged > 0 ? 100.0 * (double)made->violating / (double)made->judged : 0.0);
    report_count(html, made->judged);
    report_putf(
        html,
        " transitions of held-out episodes contradict the latent model (Definition 2 of the "
        "paper). Beyond chance, rewards are off by at most %.3g (allowed %.3g) and "
        "successor features by %.3g (allowed %.3g).",
        made->worst_reward, made->epsilon_reward, made->worst_sf, made->epsilon_sf);
    if (made->mergeable > 0) {
        report_putf(html, " %zu latent states could be merged with another.", made->mergeable);
    }
    if (made->unseen > 0) {
        report_putf(html, " %zu pairs of latent state and action never occur there.", made->unseen);
    }
    close_tile(html);
}

static void put_errors(report_page *page)
{
    report_text *html = &page->html;
    open_tile(html, "Reward-sequence error");
    if (!page->errors) {
        report_put(html, "–</p><p>needs the data, which are not there");
    } else {
        const double error = page->result.error, zero = page->result.zero_error;
        report_putf(html,
                    "%.2g</p><p>on average, for whole episodes predicted from their first "
                    "observation. Predicting zero every time would be off by %.2g",
                    error, zero);
        if (zero > 0.0 && error < zero) {
            report_putf(html, ": %.3g&nbsp;%% of that error remain.", 100.0 * error / zero);
        } else {
            report_put(html, ".");
        }
        if (isfinite(page->result.best_error)) {
            report_putf(html, " The best possible is %.2g, %s.", page->result.best_error,
                        page->best_by_truth ? "by the true latent states"
                                            : "if the latent states tell everything");
        }
    }
    close_tile(html);
}

static psi_status put_truth(report_page *page)
{
    psi_purity purity;
    const psi_run *run = page->run;
    report_text *html = &page->html;
    if (!page->data || !page->data->latent_states) return PSI_OK;
    const psi_status status =
        psi_purity_of(page->ctx, page->data, run->labels, run->n_latent, &purity);
    if (status != PSI_OK) return status;
    open_tile(html, "The truth");
    report_putf(html,
                "%.5g&nbsp;%%</p><p>of the observations are where they belong: this data set knows "
                "its %zu true latent states, which psifold did not look at. %.3g&nbsp;%% are in a "
                "wrong latent state, %.3g&nbsp;%% in none.",
                100.0 * purity.accuracy, purity.true_latent_states, 100.0 * purity.off_diagonal,
                100.0 * purity.ignored);
    close_tile(html);
    return PSI_OK;
}

void report_page_found(report_page *page)
{
    const psi_run *run = page->run;
    report_text *html = &page->html;
    const char *what = page->exact ? "states" : "observations";
    report_putf(html,
                "<section><h2>What was found</h2>\n<p>Two %s are the same to psifold if no "
                "sequence of actions ever earns different rewards from them. ",
                what);
    report_count(html, run->n_observations);
    report_putf(html, " %s fold into <b>%zu latent states</b>%s.</p>\n<div class=\"tiles\">\n",
                what, run->n_latent,
                run->has_terminal ? ", number 0 being the end of an episode" : "");
    open_tile(html, "Latent states");
    report_putf(html, "%zu</p><p>", run->n_latent);
    if (page->ignored > 0) {
        report_putf(html,
                    "%.3g&nbsp;%% of the observations are in none of them: they were ignored.",
                    100.0 * (double)page->ignored / (double)run->n_observations);
    } else {
        report_putf(html, "Every %s is in one of them.", page->exact ? "state" : "observation");
    }
    close_tile(html);
    if (!page->exact) put_errors(page);
    put_certificate(page);
    if (run->representation && isfinite(run->accuracy)) {
        open_tile(html, "Representation network");
        report_putf(html,
                    "%.4g&nbsp;%%</p><p>of held-out observations are recognised (%s). It tells new "
                    "observations apart, too.",
                    100.0 * run->accuracy, psi_approximator_name(run->approximator));
        close_tile(html);
    }
    const psi_status status = put_truth(page);
    if (html->status == PSI_OK) html->status = status;
    report_put(html, "</div>\n</section>\n");
}

// ---- what was asked -----------------------------------------------------------------------------

static void put_fact(report_text *html, const char *name)
{
    report_putf(html, "<dt>%s</dt><dd>", name);
}

static void put_data_facts(report_page *page)
{
    const psi_run *run = page->run;
    report_text *html = &page->html;
    put_fact(html, "data");
    if (page->data_path) report_escape(html, page->data_path);
    for (size_t i = 0; !page->data_path && i < run->n_data_paths; i++) {
        if (i > 0) report_put(html, "<br>");
        report_escape(html, run->data_paths[i]);
    }
    if (!page->data_path && run->n_data_paths == 0) report_put(html, "not known");
    if (!page->data && page->options->no_data) {
        report_put(html, " <span class=\"tag\">not shown</span> ");
        report_escape(html, page->options->no_data);
    }
    report_put(html, "</dd>");
    put_fact(html, "observations");
    report_count(html, run->n_observations);
    if (page->samples) {
        report_put(html, " of ");
        report_samples_describe(page->samples, html);
    }
    if (run->options.stack > 1) {
        report_putf(html, "; the last %zu of an episode are seen as one", run->options.stack);
    }
    report_put(html, "</dd>");
    if (run->n_episodes > 0) {
        put_fact(html, "episodes");
        report_count(html, run->n_episodes);
        report_put(html, " with ");
        report_count(html, run->n_transitions);
        report_put(html, " transitions</dd>");
    }
    if (run->n_actions > 0) {
        put_fact(html, "actions");
        report_count(html, run->n_actions);
        report_put(html, "</dd>");
    }
}

static psi_status put_rewards(report_page *page)
{
    psi_summary *summary = NULL;
    report_text *html = &page->html;
    if (!page->data) return PSI_OK;
    const psi_status status = psi_trajectories_summary(page->ctx, page->data, &summary);
    if (status != PSI_OK) return status;
    put_fact(html, "rewards");
    if (summary->n_rewards > 0 && summary->n_rewards <= 8) {
        for (size_t i = 0; i < summary->n_rewards; i++) {
            report_putf(html, "%s%.4g (%.3g&nbsp;%%)", i ? ", " : "", summary->rewards[i].value,
                        100.0 * (double)summary->rewards[i].count /
                            (double)page->data->n_transitions);
        }
    } else {
        report_putf(html, "%.4g to %.4g, %.4g on average", summary->reward_min, summary->reward_max,
                    summary->reward_mean);
    }
    report_put(html, "</dd>");
    psi_summary_free(page->ctx, summary);
    return PSI_OK;
}

static void put_options(report_page *page)
{
    const psi_option_table *table = psi_cluster_option_table();
    report_text *html = &page->html;
    report_put(html, "<details><summary>All options</summary><dl class=\"facts\">");
    for (size_t i = 0; i < table->n; i++) {
        char text[PSI_OPTION_TEXT_SIZE];
        report_putf(html, "<dt>%s</dt><dd>%s</dd>", table->rows[i].name,
                    psi_option_text(&table->rows[i], &page->run->options, text));
    }
    report_put(html, "</dl></details>\n");
}

static void put_model_facts(report_page *page)
{
    const psi_run *run = page->run;
    report_text *html = &page->html;
    put_fact(html, "model");
    report_escape(html, run->folder);
    report_put(html, "</dd>");
    put_fact(html, "states");
    report_count(html, run->n_observations);
    report_put(html, "</dd>");
    put_fact(html, "quotient");
    report_putf(html, "%zu states, %zu choices, %zu transitions</dd>", page->exact->model->n_states,
                page->exact->model->n_choices, page->exact->model->n_transitions);
    if (page->exact->model->n_rewards > 0) {
        put_fact(html, "reward");
        report_escape(html, page->exact->model->rewards[0].name);
        report_put(html, "</dd>");
    }
    put_fact(html, "took");
    report_duration(html, page->exact->seconds);
    report_put(html, "</dd>");
}

void report_page_asked(report_page *page)
{
    const psi_run *run = page->run;
    report_text *html = &page->html;
    if (page->exact) {
        report_put(html, "<section><h2>What was asked</h2>\n<dl class=\"facts\">");
        put_model_facts(page);
        report_put(html, "</dl>\n</section>\n");
        return;
    }
    report_put(html, "<section><h2>What was asked</h2>\n<dl class=\"facts\">");
    put_data_facts(page);
    const psi_status status = put_rewards(page);
    if (html->status == PSI_OK) html->status = status;
    if (run->finished) {
        put_fact(html, "successor features");
        report_putf(html,
                    "gamma %g, epsilon %.3g for rewards, %.3g for successor features (gap %.3g)",
                    run->gamma, run->epsilon_reward, run->epsilon_sf, run->gap);
        report_put(html, run->matching_condition
                             ? "; the theorem's condition holds</dd>"
                             : "; the theorem's condition on them does not hold</dd>");
        put_fact(html, "seed");
        report_putf(html, "%llu</dd>", (unsigned long long)run->options.seed);
        put_fact(html, "took");
        report_duration(html, run->seconds);
        report_putf(html, " on %d threads</dd>", run->threads);
        put_fact(html, "finished");
        report_putf(html, "%s</dd>", *run->when ? run->when : "–");
    }
    report_put(html, "</dl>\n");
    put_options(page);
    report_put(html, "</section>\n");
}
