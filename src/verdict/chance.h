// What latent states and actions leave to chance, and how much of it has to be seen to notice that
// a law is another.
#ifndef PSI_VERDICT_CHANCE_H
#define PSI_VERDICT_CHANCE_H

#include "verdict/judging.h"

// What may follow: a next latent state, and a reward, by its class or as a number.
enum { CHANCE_NEXT, CHANCE_CLASS, CHANCE_NUMBER, CHANCES };

// What one latent state and action leaves to chance.
typedef struct chance {
    // The largest variance of whether something follows, were that 5 % more or less probable; of
    // numbers, their own, in parts of that of all. 0: the action leaves nothing to chance, in any
    // latent state.
    double variance[CHANCES];
    double unusual[CHANCES]; // draws that were not the most frequent one; of numbers, all that vary
} chance;

// out (K, A). misplaced: the share of the labels that may be wrong, each of which makes two
// transitions unusual: an action that leaves no more than these to chance leaves nothing to it.
// Several processes add up what each has.
psi_status verdict_chances_new(judging *run, double misplaced, chance **out);

// Whether n draws beside m others would have shown a difference of 5 %.
bool verdict_shows(const chance *of, double n, double m);

// The fewest n for which verdict_shows(of, n, max(n, others)); 0: no number is enough.
uint64_t verdict_draws_that_show(const chance *of, double others);

#endif
