// The verdict in words: the same for the command, the manifest and the report.
#include <psifold/cluster.h>

#include <math.h>
#include <stdio.h>

const char *psi_verdict_name(psi_verdict verdict)
{
    static const char *const NAMES[] = {
#define X(name, text) text,
        PSI_VERDICT_TABLE(X)
#undef X
    };
    return NAMES[verdict];
}

const char *psi_doubt_name(psi_doubt_kind kind)
{
    static const char *const NAMES[] = {
#define X(name, text) text,
        PSI_DOUBT_TABLE(X)
#undef X
    };
    return NAMES[kind];
}

void psi_verdict_sentence(const psi_run *c, char *text, size_t size)
{
    if (c->failure && c->verdict == PSI_VERDICT_UNDETERMINED) {
        snprintf(text, size, "undetermined: not everything was asked and learnt: %s", c->failure);
        return;
    }
    if (c->stopped && c->verdict == PSI_VERDICT_UNDETERMINED) {
        snprintf(text, size, "undetermined: the budget ended before %s; --resume goes on",
                 c->converged ? "everything was asked and learnt"
                              : "refinements did, and there may be more latent states");
        return;
    }
    switch (c->verdict) {
    case PSI_VERDICT_CERTAIN:
        if (isfinite(c->margin)) {
            snprintf(text, size,
                     "certain: the two most similar latent states are %.0f nats apart, and nothing "
                     "is left to tell apart",
                     c->margin);
        } else {
            snprintf(text, size, "certain: nothing is left to tell apart");
        }
        return;
    case PSI_VERDICT_UNDETERMINED:
        if (c->doubtful > 0.0) {
            snprintf(text, size,
                     "undetermined: the data leave open what %.3g %% of the observations are%s",
                     100.0 * c->doubtful,
                     c->n_doubts > 0 ? "; see what to collect"
                     : c->converged  ? ""
                                     : ", and refinements went in circles");
        } else if (c->n_doubts == 0 && c->converged && c->has_trunk &&
                   c->approximator == PSI_APPROXIMATOR_MLP) {
            // in_vectors.c: the answer of the vectors stands, but what they were certain of, the
            // features were not
            snprintf(text, size,
                     "undetermined: compared as they are, observations leave nothing open, but "
                     "features that were learnt of them do");
        } else {
            snprintf(text, size, "undetermined: %s",
                     c->n_doubts > 0 ? "every observation has its latent state, but the data leave "
                                       "something open; see what to collect"
                     : c->converged  ? "the data leave something open"
                                     : "refinements went in circles");
        }
        return;
    case PSI_VERDICT_NOT_MARKOV:
        for (size_t i = 0; i < c->n_doubts; i++) {
            if (c->doubts[i].kind != PSI_DOUBT_CLOCK) continue;
            snprintf(
                text, size,
                "not Markov: episodes end by a clock that no observation shows; see what to do");
            return;
        }
        snprintf(text, size,
                 "not Markov: for %.3g %% of the transitions, what came before tells more than the "
                 "observation does; --stack %zu may help",
                 100.0 * c->past, c->options.stack + 1);
        return;
    case PSI_VERDICT_NO_SMALL_ANSWER:
        snprintf(text, size,
                 "no small answer: latent states grow with the data, %zu in a quarter, %zu in half "
                 "and %zu in all of them; no small set of them predicts the rewards",
                 c->growth[0], c->growth[1], c->growth[2]);
        return;
    case PSI_VERDICT_NOTHING_TO_PREDICT:
        snprintf(text, size,
                 "nothing to predict: all rewards are the same, and no episode ends by itself");
        return;
    case PSI_VERDICT_NOT_ASKED: break;
    }
    snprintf(text, size, "whether anything is left to tell apart was not asked by this method");
}

// To two digits.
static uint64_t round_up(uint64_t n)
{
    uint64_t unit = 1;
    while (n / unit >= 100) unit *= 10;
    return (n + unit - 1) / unit * unit;
}

void psi_doubt_sentence(const psi_doubt *doubt, char *text, size_t size)
{
    char times[32] = "once", enough[64] = "";
    if (doubt->visits != 1) {
        snprintf(times, sizeof times, "%llu times", (unsigned long long)doubt->visits);
    }
    switch (doubt->kind) {
    case PSI_DOUBT_PAIR:
        if (doubt->nats == 0.0) {
            snprintf(text, size,
                     "latent states %d and %d were not clearly apart when they were first told "
                     "apart: collect more of both",
                     doubt->state, doubt->other);
            return;
        }
        snprintf(text, size,
                 "latent states %d and %d are only %.1f nats apart: collect more of both",
                 doubt->state, doubt->other, doubt->nats);
        return;
    case PSI_DOUBT_UNTRIED:
        if (doubt->state < 0) {
            snprintf(text, size, "action %d was never taken: what it does is not known",
                     doubt->other);
            return;
        }
        snprintf(text, size, "action %d was never taken in latent state %d: try it there",
                 doubt->other, doubt->state);
        return;
    case PSI_DOUBT_RARE:
        if (doubt->enough > 1) {
            snprintf(enough, sizeof enough, " (about %llu visits are enough)",
                     (unsigned long long)round_up(doubt->enough));
        }
        if (doubt->visits == 0) {
            snprintf(text, size,
                     "action %d was never taken in some observations of latent state %d: try it "
                     "there%s",
                     doubt->other, doubt->state, enough);
            return;
        }
        snprintf(text, size,
                 "action %d was taken only %s in some observations of latent state %d: take it "
                 "there more often%s",
                 doubt->other, times, doubt->state, enough);
        return;
    case PSI_DOUBT_LOOKS:
        if (doubt->state < 0) {
            snprintf(text, size,
                     "what observations look like tells what follows, beyond their latent states: "
                     "some may be several");
            return;
        }
        snprintf(text, size,
                 "what observations of latent state %d look like tells what follows: it may be "
                 "several",
                 doubt->state);
        return;
    case PSI_DOUBT_GROWTH:
        snprintf(text, size,
                 "take the labels as cells of a grid, no more: fewer numbers or coarser ones, or "
                 "rewards that depend on less, may have a small answer");
        return;
    case PSI_DOUBT_SELDOM:
        snprintf(text, size,
                 "something that followed action %d in latent state %d was seen %s only, too few "
                 "to tell what leads there: collect more of it",
                 doubt->other, doubt->state, times);
        return;
    case PSI_DOUBT_TAILS:
        snprintf(text, size,
                 "a few rewards outweigh all others, as if they had no mean: collect more, or clip "
                 "them");
        return;
    case PSI_DOUBT_CLOCK:
        snprintf(text, size,
                 "how long an episode has lasted tells when it ends, after %llu steps most of all: "
                 "if that is a time limit, mark these episodes truncated instead of terminated",
                 (unsigned long long)doubt->visits);
        return;
    case PSI_DOUBT_CHANCE:
        snprintf(text, size,
                 "too little of what is left to chance was seen to show that nothing else tells "
                 "it: collect more (about %llu transitions in all are enough)",
                 (unsigned long long)round_up(doubt->enough));
        return;
    case PSI_DOUBT_UNTOLD:
        snprintf(text, size,
                 "%llu %% of the held-out observations (100 %% where there are none) look like "
                 "another latent state's, so that features may have memorised the others: "
                 "collect more episodes, ten at least",
                 (unsigned long long)doubt->visits);
        return;
    case PSI_DOUBT_PAST: break;
    }
    if (doubt->state < 0) {
        snprintf(text, size,
                 "what came before tells what follows, in many latent states: see the last %d "
                 "observations as one (--stack %d)",
                 doubt->other, doubt->other);
        return;
    }
    snprintf(text, size,
             "what came before latent state %d tells what follows it: see the last %d observations "
             "as one (--stack %d)",
             doubt->state, doubt->other, doubt->other);
}
