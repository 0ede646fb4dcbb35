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

// Two laws that have the same outcomes with other shares, as where the same few things may happen
// anywhere with other odds: shares are drawn from Dirichlet(½, …, ½) over the outcomes that either
// has. Two independent laws would have to pay for each of these outcomes twice, and seem to be one.
typedef struct evidence_support {
    double kinds; // outcomes that either has
    double sum;   // of those of the second: log P by the first's law − log P by one of its own
} evidence_support;
void evidence_support_add(evidence_support *support, double first, double second);
// log P(one law) − log P(two with the same outcomes), of n and m draws in all.
double evidence_support_factor(const evidence_support *support, double n, double m);
// log P(two laws), either independent (two) or with the same outcomes, where the factor of the
// latter is against P(one law).
double evidence_two(double one, double two, double factor);

// log of the odds that n and m observations are of one group and not of two, before anything is
// known of them: log (n + m − 1)!/((n − 1)! (m − 1)!), by a partition that grows one observation at
// a time, each of which joins a group with odds of the group's size to one for a new group.
double evidence_one_group(double n, double m);

#endif
