// Reward classes: lines 2 and 3 of Algorithm 1. Distinct values where there are few; a mixture of
// normal distributions where few values are seen through noise; quantiles where rewards are spread
// out for good.
#ifndef PSI_PROBLEM_REWARDS_H
#define PSI_PROBLEM_REWARDS_H

#include <psifold/base.h>

typedef enum reward_kind { REWARD_DISTINCT, REWARD_MIXTURE, REWARD_QUANTILES } reward_kind;

typedef struct reward_classes {
    reward_kind kind;
    size_t n;         // classes
    double *value;    // (n) w_r: the mean reward of each class, ascending
    int32_t *of;      // (transitions) i(r): the class of every transition's reward
    double spacing;   // the smallest difference of two values; 0 if there is one class only
    double deviation; // the largest standard deviation inside a class
} reward_classes;

enum { REWARD_MAX_CLASSES = 16 };

// O(transitions · log transitions), of all processes together, of which each gives its own. The
// arrays belong to the caller. PSI_EDATA if there is no
// transition, or a reward is not finite.
psi_status problem_reward_classes(psi_ctx *ctx, const double *rewards, size_t n,
                                  reward_classes *out);
void problem_reward_classes_free(psi_ctx *ctx, reward_classes *classes);

#endif
