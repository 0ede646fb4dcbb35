// Observations that look alike, put together: distinct observations where they repeat, else cells
// of a tree. The tree halves a set of vectors by two means, and the halves again, down to cells of
// a few observations each; who looks like whom is who shares a branch.
//
// The tree grows from references: all states, or, where there are very many, some of them. They are
// what others are compared with, so that every process has those of all: rows from n_rows on are
// references that other processes have seen.
#ifndef PSI_PROBLEM_LOOKS_H
#define PSI_PROBLEM_LOOKS_H

#include "problem/problem.h"

#include <psifold/evidence.h>

typedef struct problem_looks {
    psi_forest forest; // left and right belong to it
    int32_t *left, *right, *parent;
    int32_t *leaf; // (n_rows + foreign) the leaf of every row; −1: terminal, or never seen
    size_t n_leaves;
    size_t width; // numbers of a vector; 0: distinct observations
    float *plane; // (n_nodes, width + 1) a vector goes right if its product with the plane, whose
                  // last number is added, is above 0; in standardised numbers
    float *gap;   // (n_nodes) how far the halves of a node are apart, in their standard deviations
    size_t *size; // (n_nodes) states below a node, of all processes
    const float *vectors;   // (n_rows, width) standardised; the caller's
    float *others;          // (foreign, width) of all references; NULL: of one process
    size_t n_rows, foreign; // of a tree; foreign: n_references, or 0 of one process
    uint64_t *reference;    // (n_references) their rows, in the order of the data: the i-th one
                            // is n_rows + i if another process has seen it
    size_t n_references;
    uint64_t *row;         // (n_references) those of a node side by side: …
    uint64_t *begin, *end; // (n_nodes) … row[begin] … row[end − 1]
} problem_looks;

static inline const float *problem_looks_vector(const problem_looks *looks, uint64_t row)
{
    return row < looks->n_rows ? looks->vectors + row * looks->width
                               : looks->others + (row - looks->n_rows) * looks->width;
}

// leaf (n_rows), of no row yet.
psi_status problem_looks_leaves_new(psi_ctx *ctx, const cluster_problem *problem,
                                    problem_looks *out);

// Distinct observations, numbered. PSI_ELIMIT if there are more than most.
psi_status problem_looks_distinct(psi_ctx *ctx, const cluster_problem *problem, size_t most,
                                  problem_looks *out);

// Labels (n_rows), first … first + n − 1, as if they were distinct observations.
psi_status problem_looks_of_labels(psi_ctx *ctx, const cluster_problem *problem,
                                   const int32_t *labels, size_t n, size_t first,
                                   problem_looks *out);

// Clumps of vectors (n_rows, width) with empty space around them, as if they were distinct
// observations. n_leaves = 0: none stand apart, or they have fewer than `visits` rows on average.
// weight (width) of each number; NULL: 1. by_means: distances are those of means of clumps, not of
// their nearest rows. O(n_states · 4,096 · width).
psi_status problem_looks_apart(psi_ctx *ctx, const cluster_problem *problem, size_t width,
                               const float *vectors, const float *weight, bool by_means,
                               size_t visits, problem_looks *out);

// Every number of the vectors gets mean 0 and variance 1 over the states. deviation (width; NULL:
// not asked) gets what it was.
psi_status problem_looks_standardise(psi_ctx *ctx, const cluster_problem *problem, size_t width,
                                     float *vectors, float *deviation);

// A tree over vectors (n_rows, width), one for each observation, which must outlive it.
psi_status problem_looks_tree(psi_ctx *ctx, const cluster_problem *problem, size_t width,
                              float *vectors, problem_looks *out);

// Whether the tree has grown from a part of the observations, so that its cells are larger than
// they need to be.
bool problem_looks_are_sampled(const cluster_problem *problem, const problem_looks *looks);

// Divides the cells of such a tree further at borders between groups (n_nodes; of the leaves, −1:
// none).
psi_status problem_looks_deepen(psi_ctx *ctx, const cluster_problem *problem, const int32_t *group,
                                problem_looks *looks);

// Branches of a tree of at most so many observations, each by itself: prototypes, which mix latent
// states everywhere, by as much as the impurity says (psi_forest).
psi_status problem_looks_prototypes(psi_ctx *ctx, const cluster_problem *problem,
                                    const problem_looks *tree, size_t most, double impurity,
                                    problem_looks *out);

// values (n_rows + foreign) of so many bytes each: this process knows those of its own rows, and
// gets those of the references of others.
psi_status problem_looks_fill_in(psi_ctx *ctx, const problem_looks *looks, void *values,
                                 size_t bytes);
// The same of labels (n_rows), which are copied.
psi_status problem_looks_labels(psi_ctx *ctx, const problem_looks *looks, const int32_t *labels,
                                int32_t **out);

// all (n_nodes): the label of all states below a node; −1: they differ, or one has none.
psi_status problem_looks_agree(psi_ctx *ctx, const cluster_problem *problem,
                               const problem_looks *looks, const int32_t *labels, int32_t *all);

// What the looks of a row say of its label: the votes of its nearest neighbours among the labelled
// references on its branch, or anywhere if it is a stranger there or that is asked for, and of its
// own cell, which has half of them. At most LOOKS_LABELS labels, with the share of the votes of
// each; returns how many. A row amid others of its own label has that one only (all, by
// problem_looks_agree). labels (n_rows + foreign).
enum { LOOKS_LABELS = 4 };
size_t problem_looks_vote(const problem_looks *looks, const int32_t *labels, const int32_t *all,
                          uint64_t row, bool anywhere, int32_t label[LOOKS_LABELS],
                          float share[LOOKS_LABELS]);

// The references that look most like a row, on its branch: up to LOOKS_NEAREST, nearest first.
enum { LOOKS_NEAREST = 9 };
size_t problem_looks_nearest(const problem_looks *looks, uint64_t row,
                             uint64_t nearest[LOOKS_NEAREST]);
// Among all of them, on whichever branch. O(n_references · width).
size_t problem_looks_nearest_of_all(const problem_looks *looks, uint64_t row,
                                    uint64_t nearest[LOOKS_NEAREST]);

void problem_looks_free(psi_ctx *ctx, problem_looks *looks);

#endif
