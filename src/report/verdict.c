// How sure the answer is, in words: the verdict, what is open, and what to collect.
#include "report/page.h"

#include "base/checked.h"

#include <string.h>

enum { ADVICE_SHOWN = 5 };

typedef struct wording {
    const char *verdict, *look, *title;
} wording;

static const wording WORDINGS[] = {
    {"certain", "good", "Certain"},
    {"undetermined", "warn", "Undetermined"},
    {"not-markov", "bad", "Not Markov"},
    {"no-small-answer", "bad", "No small answer"},
    {"nothing-to-predict", "warn", "Nothing to predict"},
    {"not-asked", "warn", "Not judged"},
};

static void open_box(report_text *html, const char *look, const char *title)
{
    report_putf(html, "<div class=\"verdict %s\" id=\"verdict\"><p><b>%s:</b> ", look, title);
}

// A sentence of the manifest; "certain: …" loses the word that stands before it already.
static void put_sentence(report_text *html, const char *sentence)
{
    const char *colon = strstr(sentence, ": ");
    report_escape(html, colon ? colon + 2 : sentence);
    report_put(html, ".");
}

// Runs from before there were verdicts say whether anything was hidden and whether two rounds
// agree.
static void put_older(report_page *page)
{
    const report_run *run = page->run;
    report_text *html = &page->html;
    if (json_is_true(report_run_get(run, "result", "hot"))) {
        open_box(html, "bad", "Not the whole truth yet");
        report_put(html, "something in the observations still predicts more than the latent states "
                         "do. There may be more of them.");
    } else if (!json_is_true(report_run_get(run, "result", "converged"))) {
        open_box(html, "bad", "Did not converge");
        report_put(html, "the last two refinements differ. More refinements or more data may "
                         "help.");
    } else if (!json_is_boolean(report_run_get(run, "result", "hot"))) {
        open_box(html, "warn", "Not judged");
        report_put(html, "the run came to an end, but it did not ask whether anything is left to "
                         "tell apart.");
    } else if (!page->result.trusted) {
        open_box(html, "warn", "Found only once");
        report_put(html, "nothing is left to tell apart, but no second round confirmed it.");
    } else {
        open_box(html, "good", "Confirmed");
        report_put(html, "two rounds found the same latent states, and nothing in the observations "
                         "predicts more than they do.");
    }
}

static void put_link(report_text *html, size_t k)
{
    report_putf(html, "<a class=\"state-link\" href=\"#s%zu\">%zu</a>", k, k);
}

// What a doubt is about, with links to the latent states it names.
static void put_doubt(report_text *html, const report_doubt *doubt)
{
    report_put(html, "<li>");
    if (strcmp(doubt->kind, "pair") == 0) {
        report_put(html, "Latent states ");
        put_link(html, doubt->state);
        report_put(html, " and ");
        put_link(html, doubt->other);
        report_putf(html, " may be one (%.3g nats apart): collect more of both.", doubt->nats);
    } else if (strcmp(doubt->kind, "untried") == 0) {
        report_putf(html, "Action %zu was never taken in latent state ", doubt->other);
        put_link(html, doubt->state);
        report_put(html, ": try it there.");
    } else if (strcmp(doubt->kind, "rare") == 0) {
        report_putf(html, "Action %zu was taken too rarely in some observations of latent state ",
                    doubt->other);
        put_link(html, doubt->state);
        report_put(html, ": take it there more often.");
    } else {
        report_put(html, "What came before latent state ");
        put_link(html, doubt->state);
        report_put(html, " tells what follows it");
        if (doubt->other > 1) { // older runs do not say
            report_putf(html, ": see the last %zu observations as one (<code>--stack %zu</code>)",
                        doubt->other, doubt->other);
        }
        report_put(html, ".");
    }
    report_put(html, "</li>");
}

static void put_item(report_page *page, size_t i)
{
    const json_t *advice = report_run_get(page->run, "result", "advice");
    const char *sentence = json_string_value(json_array_get(advice, i));
    report_doubt doubt;
    if (report_run_doubt(page->run, i, &doubt)) {
        put_doubt(&page->html, &doubt);
    } else if (sentence) {
        report_put(&page->html, "<li>");
        report_escape(&page->html, sentence);
        report_put(&page->html, "</li>");
    }
}

// The first few in sight, the rest behind a click.
static void put_advice(report_page *page)
{
    report_text *html = &page->html;
    const size_t n =
        base_min(base_max(json_array_size(report_run_get(page->run, "result", "advice")),
                          report_run_n_doubts(page->run)),
                 1000);
    if (n == 0) return;
    report_putf(html, "<p>What is open, and what to collect:</p><ul id=\"advice\">");
    for (size_t i = 0; i < base_min(n, ADVICE_SHOWN); i++) put_item(page, i);
    report_put(html, "</ul>");
    if (n <= ADVICE_SHOWN) return;
    report_putf(html, "<details><summary>%zu more</summary><ul>", n - ADVICE_SHOWN);
    for (size_t i = ADVICE_SHOWN; i < n; i++) put_item(page, i);
    report_put(html, "</ul></details>");
}

void report_page_verdict(report_page *page)
{
    const report_run *run = page->run;
    report_text *html = &page->html;
    const char *verdict = json_string_value(report_run_get(run, "result", "verdict"));
    const char *sentence = json_string_value(report_run_get(run, "result", "verdict_sentence"));
    const wording *found = NULL;
    for (size_t i = 0; verdict && i < sizeof WORDINGS / sizeof WORDINGS[0]; i++) {
        if (strcmp(verdict, WORDINGS[i].verdict) == 0) found = &WORDINGS[i];
    }
    if (run->exact) {
        open_box(html, "good", "Exact");
        report_put(html, "two states share a latent state if, and only if, labels, rewards and the "
                         "probabilities of what follows agree; every one was compared.");
    } else if (!run->finished) {
        open_box(html, "bad", "This run was interrupted");
        report_putf(html,
                    "it had finished %zu refinements. What follows is where it stood then, not a "
                    "result.",
                    run->n_steps);
    } else if (found && sentence && (page->result.trusted || found != &WORDINGS[0])) {
        open_box(html, found->look, found->title);
        put_sentence(html, sentence);
    } else {
        put_older(page);
    }
    report_put(html, "</p>");
    if (run->finished) put_advice(page);
    report_put(html, "</div>\n");
}
