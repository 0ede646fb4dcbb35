// What the questions of a verdict share (verdict.c), and the longest of them (rare.c).
#ifndef PSI_VERDICT_JUDGING_H
#define PSI_VERDICT_JUDGING_H

#include "refine/by_evidence.h"

// Observations that may be doubtful in an answer that is certain: half as many as may be misplaced
// in an exact one (1e-4), since as many again may be misplaced without having been noticed.
#define VERDICT_DOUBTFUL 5e-5

// The smallest difference that `certain` vouches for: in the probability of anything that may
// follow, and in the mean of rewards that are numbers, in their standard deviations.
#define VERDICT_DIFFERENCE 0.05

// The probability of a suspicion where there is nothing: it costs an answer that could have been
// certain, while one that is missed makes a wrong answer certain.
#define VERDICT_SUSPECT 0.05

typedef struct judging {
    psi_ctx *ctx;
    const cluster_problem *problem;
    const problem_looks *looks;
    const outcome_rewards *rewards;
    const by_evidence *found;
    psi_run *result;
    int32_t *labels;  // of rows and references, of a tree; NULL: of anything else
    uint64_t *visits; // (K, A)
    uint8_t *taken;   // (A) anywhere
} judging;

// Adds one thing that is left open, once; beyond the first 64 nothing is added.
psi_status verdict_doubt(judging *run, psi_doubt what);

// Actions that were never taken in a latent state, though elsewhere, each as a doubt; and those
// that were never taken at all, if that matters. several (n_groups): latent states of several
// observations, which such an action might tell apart; NULL: any may be.
psi_status verdict_ask_for_actions(judging *run, const uint8_t *several);

// Rows whose looks were seen too rarely to show that they follow another law than their latent
// state's, of what was compared, each as a doubt; and of the vectors that features were learnt
// from.
psi_status verdict_ask_for_visits(judging *run, size_t *doubtful);
psi_status verdict_ask_vectors(judging *run, const problem_looks *vectors, size_t *doubtful);

// Visits that are needed, as a doubt says so: a whole number, or 0 where no number is enough.
uint64_t verdict_enough(double needed);

// What was seen too seldom to tell which observations of a latent state it follows, each as a
// doubt.
psi_status verdict_ask_seldom(judging *run, size_t n_leaves);

// Whether n draws beside m others would have shown a difference, in units of the standard deviation
// of a draw.
bool verdict_is_noticed(double difference, double n, double m);

// Whether half of a latent state may be another one because little was seen, as doubts.
psi_status verdict_ask_halves(judging *run);

// Whether too little of what is left to chance was seen to show that something else tells it, as a
// doubt.
psi_status verdict_ask_for_chance(judging *run);

// The share of observations that may lie on the other side of a border, for all that the nearest
// ones, and what came before and after, tell. Of some of them where all would take long.
psi_status verdict_ask_borders(judging *run, double *share);

// Whether how long an episode has lasted tells its end, though its latent state does not, as a
// doubt. allowed: how probable that is where it does not.
psi_status verdict_ask_the_clock(judging *run, double allowed, bool *told);

// Whether a few rewards outweigh all others, as a doubt.
psi_status verdict_ask_tails(judging *run);

// part (n_nodes) of the *n parts of the looks that every node is in: distinct observations, or what
// stands apart by gaps.
psi_status verdict_find_parts(psi_ctx *ctx, const problem_looks *looks, int32_t **part, size_t *n);
// The same, by smaller gaps: what somebody who remembers might tell apart.
psi_status verdict_find_memorable_parts(psi_ctx *ctx, const problem_looks *looks, int32_t **part,
                                        size_t *n);

#endif
