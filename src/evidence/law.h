// How probable draws are if they come from one law, and how much more or less than from two.
#ifndef PSI_EVIDENCE_LAW_H
#define PSI_EVIDENCE_LAW_H

#include <psifold/evidence.h>

// Evidence that one more mean belongs to others: precision p and weighted sum q of each side, for
// means that vary with variance v around 0. log ∫ N(x | μ, 1/p) N(μ | 0, v) dμ up to what does not
// depend on the grouping.
double evidence_of_mean(double p, double q, double v);

// log P(same state) − log P(two states) of one family, for the Bayes factor (in nats) of one law
// against two: two states share the law of any one family with probability ½, so that agreement
// counts for at most log 2, and a conflict for all it is worth.
double evidence_same(double bayes_factor);

// log(½ eᵃ + ½ eᵇ): a family of a new state, whose law is shared with another's, or its own.
double evidence_either(double a, double b);

#endif
