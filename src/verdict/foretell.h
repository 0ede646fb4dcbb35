// Can what is known before a transition foretell what follows it, beyond its latent state and
// action? Sums of martingale differences, which are near zero if it cannot.
#ifndef PSI_VERDICT_FORETELL_H
#define PSI_VERDICT_FORETELL_H

#include <psifold/base.h>

#define FORETELL_NONE UINT32_MAX // nothing is known

// What followed every transition of a stratum (a latent state and an action): numbers that are
// added up. Of next latent states, a one for the one that came, among the FORETELL_KINDS − 1 most
// frequent ones and the rest; of rewards, the reward.
enum { FORETELL_KINDS = 8 };
typedef struct foretell_sum {
    double sum, variance, largest, widest; // of terms; the widest x
} foretell_sum;
typedef struct foretold {
    size_t n;          // transitions that are asked: their stratum leaves something to be told
    uint32_t *at;      // (n) their numbers, ascending
    uint32_t *stratum; // (n) strata that are asked, numbered
    uint8_t *kind;     // (n) which next latent state; rewards: 0
    float *value;      // (n) 1; rewards: the reward
    size_t strata;
    uint8_t *kinds;            // (strata) numbers of each
    double *visits;            // (strata)
    double *total;             // (strata, FORETELL_KINDS)
    double *variance;          // (strata) of rewards; NULL: next latent states
    double *seen, *seen_total; // (strata), (strata, FORETELL_KINDS) so far
    // what has been learnt, by stratum and what is known
    uint64_t *key; // (slots) 0: free
    double *learnt_visits, *learnt;
    size_t slots;
    foretell_sum *each; // (strata)
} foretold;

// asked (n_transitions), stratum (n_transitions) below n_strata. next (n_transitions): the next
// latent state, or NULL: rewards are what follows.
psi_status verdict_foretold_new(psi_ctx *ctx, size_t n_transitions, const uint8_t *asked,
                                const uint32_t *stratum, size_t n_strata, const int32_t *next,
                                const double *rewards, foretold *out);
void verdict_foretold_free(psi_ctx *ctx, foretold *what);

// Each returns the nats that speak against chance; *moved gets how many transitions that amounts
// to. A number known before every transition is correlated with the one that `of` picks:
// next latent states are compared by whether the usual one (kind 0) came.
double verdict_foretell_by_number(foretold *what, const float *known, double *moved);
// The same in the stratum that speaks most, less what is due to choosing it: log(strata).
double verdict_foretell_in_a_stratum(foretold *what, const float *known, double *moved);
// How much of the data is still to come, which begin at 0 and end at `end`: whether the task itself
// changes. when (n_transitions).
double verdict_foretell_by_time(foretold *what, const uint64_t *when, size_t end, double *moved);
// Something known, FORETELL_NONE where nothing is: what it foretells is learnt on the way.
double verdict_foretell_by_context(foretold *what, const uint32_t *known, bool odds, double *moved);
// What followed the same stratum before, the more the nearer: it counts by a share of 1 − 1/scale
// less with every visit. episode (n_transitions): only within; NULL: anywhere.
double verdict_foretell_by_echo(foretold *what, const uint32_t *episode, double scale,
                                double *moved);

#endif
