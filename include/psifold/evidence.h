// psifold/evidence.h: is it one law or two? Every decision about latent states is made here: counts
// of what followed go in, the coarsest grouping that explains them comes out.
//
// What is grouped are the leaves of a forest: distinct observations (trees of one node), or cells
// of observations that look alike, in a tree that says which cells look alike. What followed a leaf
// are draws from families, two for each action: the next latent state, and the class of the reward.
#ifndef PSIFOLD_EVIDENCE_H
#define PSIFOLD_EVIDENCE_H

#include <psifold/base.h>

#ifdef __cplusplus
extern "C" {
#endif

// Trees by the numbers of the children, which are larger than their parent's. left[v] = −1: a leaf.
typedef struct psi_forest {
    size_t n_nodes;
    const int32_t *left, *right; // (n_nodes)
    bool looks; // cells of observations that look alike, which may mix latent states; false: every
                // leaf is one observation, pure by definition
    double impurity; // 1/κ: the law of a leaf is drawn from Dirichlet(κ · its group's law), as
                     // where every leaf mixes some of other latent states; 0: it is its group's law
} psi_forest;

// One thing that followed: leaf `node` saw `outcome`. Outcomes are numbered family by family.
typedef struct psi_draws {
    size_t n;
    const uint32_t *node, *outcome; // (n)
    const uint32_t *times;          // (n) how often each; NULL: once
    size_t n_families;
    const uint32_t *family; // (n_families + 1) outcomes of family f: family[f] … family[f + 1]
    // Means that are compared beside the laws, as for rewards that hardly repeat: of n_means sets
    // of numbers per leaf, precision Σ 1/σ² and Σ x/σ², both (n_nodes, n_means), zero for nodes
    // that are no leaf. Means vary with variance mean_variance around 0. NULL: none.
    size_t n_means;
    const double *precision, *weighted;
    double mean_variance;
    double caution; // nats by which two laws have to be better than one to be two; 0: whatever is
                    // more probable
    double clear;   // nats by which two groups are clearly apart
    bool together;  // all processes have the same draws, make this call, and share the work
} psi_draws;

// What was found: groups of leaves, and how sure that is.
typedef struct psi_grouping {
    size_t n_groups;
    int32_t *group; // (n_nodes) of every leaf; −1: it mixes groups, or nothing followed it; nodes
                    // that are no leaf have −1, too
    float *margin;  // (n_nodes) nats by which a leaf's cell fits its group better than the next one
    int32_t *next;  // (n_nodes) the next one; −1: far away, or there is none
    float *same;    // (n_nodes) nats by which all that followed a node, whose leaves are in one
                    // group, is more probable by the law of the rest of the group than by its own
    float *against; // (n_nodes) nats by which families speak against a leaf's group, added up: each
                    // as if only its law were another; 0 for cells
    size_t n_families, n_outcomes;
    uint32_t *family;      // (n_families + 1) as in the draws
    double *counts;        // (n_groups, n_outcomes)
    double *concentration; // (n_families) learnt: near 0 where the world is deterministic
    int32_t
        *linked; // (n_groups) the same for groups that are not clearly apart, or not from a third
    double weakest; // nats by which the most similar two groups are kept apart
    size_t weakest_pair[2];
    size_t blends; // groups that were given up, because they are mixtures of others
} psi_grouping;

// log Γ(x + n) − log Γ(x) for x > 0 and a whole n ≥ 0: what n draws of one kind add to the
// evidence.
PSI_API double psi_log_rising(double x, double n);

// Groups the leaves so that what followed the members of a group is more probable as draws from one
// law than from two (Dirichlet–multinomial evidence, family by family: one family that differs
// makes two groups, however many agree). O(nodes · groups · outcomes of a node) at worst.
// *out belongs to the caller. PSI_ELIMIT if there are more than max_groups.
PSI_API psi_status psi_group(psi_ctx *ctx, const psi_forest *forest, const psi_draws *draws,
                             size_t max_groups, psi_grouping **out);
// Of groups that are given: nats (n_nodes) by which what followed a leaf is more probable by a law
// of its own, which may share families with its group's, than by the law of the others in its
// group; −∞ where there are no others. same (n_nodes; NULL: not asked): nats by which it is more
// probable by that law than by an independent one; +∞ where there are no others. Nodes that are no
// leaf are in no group (−1). O(draws · families).
PSI_API psi_status psi_misfit(psi_ctx *ctx, const psi_forest *forest, const psi_draws *draws,
                              size_t n_groups, const int32_t *group, float *nats, float *same);
PSI_API void psi_grouping_free(psi_ctx *ctx, psi_grouping *grouping);

#ifdef __cplusplus
}
#endif
#endif
