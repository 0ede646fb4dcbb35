// How sure the answer is, in words: the verdict, what is open, and what to collect.
#include "report/page.h"

#include "base/checked.h"

#include <ctype.h>
#include <string.h>

enum { ADVICE_SHOWN = 5 };

static const struct wording {
    const char *look, *title;
} WORDINGS[] = {
    [PSI_VERDICT_CERTAIN] = {"good", "Certain"},
    [PSI_VERDICT_UNDETERMINED] = {"warn", "Undetermined"},
    [PSI_VERDICT_NOT_MARKOV] = {"bad", "Not Markov"},
    [PSI_VERDICT_NO_SMALL_ANSWER] = {"bad", "No small answer"},
    [PSI_VERDICT_NOTHING_TO_PREDICT] = {"warn", "Nothing to predict"},
};

static void open_box(report_text *html, const char *look, const char *title)
{
    report_putf(html, "<div class=\"verdict %s\" id=\"verdict\"><p><b>%s:</b> ", look, title);
}

// "certain: …" loses the word that stands before it already.
static void put_sentence(report_text *html, const char *sentence)
{
    const char *colon = strstr(sentence, ": ");
    report_escape(html, colon ? colon + 2 : sentence);
    report_put(html, ".");
}

// Runs by successor features do not ask how sure they are.
static void put_not_asked(report_page *page)
{
    report_text *html = &page->html;
    if (!page->run->converged) {
        open_box(html, "bad", "Did not converge");
        report_put(html, "the last two refinements differ. More refinements or more data may "
                         "help.");
    } else {
        open_box(html, "warn", "Not judged");
        report_put(html, "the run came to an end, but it did not ask whether anything is left to "
                         "tell apart.");
    }
}

static void put_link(report_text *html, int32_t k)
{
    report_putf(html, "<a class=\"state-link\" href=\"#s%d\">%d</a>", k, k);
}

// What names no latent state: as the command has it, as a sentence of its own.
static void put_general(report_text *html, const psi_doubt *doubt)
{
    char sentence[256];
    psi_doubt_sentence(doubt, sentence, sizeof sentence);
    sentence[0] = (char)toupper((unsigned char)sentence[0]);
    report_escape(html, sentence);
    report_put(html, ".");
}

// What names latent states, with links to them.
static void put_particular(report_text *html, const psi_doubt *doubt)
{
    switch (doubt->kind) {
    case PSI_DOUBT_PAIR:
        report_put(html, "Latent states ");
        put_link(html, doubt->state);
        report_put(html, " and ");
        put_link(html, doubt->other);
        if (doubt->nats == 0.0) {
            report_put(html, " were not clearly apart when they were first told apart");
        } else {
            report_putf(html, " may be one (%.3g nats apart)", doubt->nats);
        }
        report_put(html, ": collect more of both.");
        break;
    case PSI_DOUBT_UNTRIED:
        report_putf(html, "Action %d was never taken in latent state ", doubt->other);
        put_link(html, doubt->state);
        report_put(html, ": try it there.");
        break;
    case PSI_DOUBT_RARE:
        report_putf(html, "Action %d was taken too rarely in some observations of latent state ",
                    doubt->other);
        put_link(html, doubt->state);
        report_put(html, ": take it there more often");
        if (doubt->enough > 1) {
            report_putf(html, " (about %llu visits are enough)", (unsigned long long)doubt->enough);
        }
        report_put(html, ".");
        break;
    case PSI_DOUBT_LOOKS:
        report_put(html, "Latent state ");
        put_link(html, doubt->state);
        report_put(html, " may be several: what its observations look like tells what follows.");
        break;
    case PSI_DOUBT_PAST:
        report_put(html, "What came before latent state ");
        put_link(html, doubt->state);
        report_putf(html,
                    " tells what follows it: see the last %d observations as one "
                    "(<code>--stack %d</code>).",
                    doubt->other, doubt->other);
        break;
    case PSI_DOUBT_SELDOM:
        report_putf(html, "Something that followed action %d in latent state ", doubt->other);
        put_link(html, doubt->state);
        if (doubt->visits == 1) {
            report_put(html, " was seen once only");
        } else {
            report_putf(html, " was seen %llu times only", (unsigned long long)doubt->visits);
        }
        report_put(html, ", too few to tell what leads there: collect more of it.");
        break;
    case PSI_DOUBT_TAILS:
    case PSI_DOUBT_CLOCK:
    case PSI_DOUBT_CHANCE:
    case PSI_DOUBT_UNTOLD:
    case PSI_DOUBT_GROWTH: break; // name none
    }
}

static void put_doubt(report_text *html, const psi_doubt *doubt)
{
    report_put(html, "<li>");
    if (doubt->state < 0) {
        put_general(html, doubt);
    } else {
        put_particular(html, doubt);
    }
    report_put(html, "</li>");
}

// The first few in sight, the rest behind a click.
static void put_advice(report_page *page)
{
    const psi_run *run = page->run;
    report_text *html = &page->html;
    if (run->n_doubts == 0) return;
    report_put(html, "<p>What is open, and what to collect:</p><ul id=\"advice\">");
    for (size_t i = 0; i < base_min(run->n_doubts, ADVICE_SHOWN); i++) {
        put_doubt(html, &run->doubts[i]);
    }
    report_put(html, "</ul>");
    if (run->n_doubts <= ADVICE_SHOWN) return;
    report_putf(html, "<details><summary>%zu more</summary><ul>", run->n_doubts - ADVICE_SHOWN);
    for (size_t i = ADVICE_SHOWN; i < run->n_doubts; i++) put_doubt(html, &run->doubts[i]);
    report_put(html, "</ul></details>");
}

void report_page_verdict(report_page *page)
{
    const psi_run *run = page->run;
    report_text *html = &page->html;
    char sentence[256];
    if (page->exact) {
        open_box(html, "good", "Exact");
        report_put(html, "two states share a latent state if, and only if, labels, rewards and the "
                         "probabilities of what follows agree; every one was compared.");
    } else if (!run->finished) {
        open_box(html, "bad", "This run was interrupted");
        report_putf(html,
                    "it had finished %zu refinements. What follows is where it stood then, not a "
                    "result.",
                    run->n_steps);
    } else if (run->verdict == PSI_VERDICT_NOT_ASKED ||
               (run->verdict == PSI_VERDICT_CERTAIN && !page->result.trusted)) {
        put_not_asked(page);
    } else {
        open_box(html, WORDINGS[run->verdict].look, WORDINGS[run->verdict].title);
        psi_verdict_sentence(run, sentence, sizeof sentence);
        put_sentence(html, sentence);
    }
    report_put(html, "</p>");
    put_advice(page);
    report_put(html, "</div>\n");
}
