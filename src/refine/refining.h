// What the chapters of a refinement by evidence share: by_evidence.c has the loop, caution.c what
// tables ask of a split, mixed_cells.c how observations on borders are labelled.
#ifndef PSI_REFINE_REFINING_H
#define PSI_REFINE_REFINING_H

#include "problem/draws.h"
#include "refine/by_evidence.h"

// An observation that fits two groups nearly as well is in neither, for those that lead to it: nine
// to one is the least odds that speak.
#define REFINE_CLEAR 2.1972245773362196 // log 9

// Share of the observations that may change their label where nothing changes: as many as may be
// misplaced in an exact partition.
#define REFINE_SETTLED 1e-4

typedef struct refining {
    psi_ctx *ctx;
    const cluster_problem *problem;
    const problem_looks *looks;
    const outcome_rewards *rewards;
    const by_evidence_options *options;
    by_evidence *found;
    double caution, clear; // nats that latent states have to be apart, and to be clearly so
    int32_t *known;        // (n_rows) labels as far as those that lead to them may rely on them
    outcome_rewards means; // rewards that are numbers, given c_i
    problem_draws draws;   // what followed
    uint32_t *first;       // (2 · actions + 1) outcomes of each family
    uint32_t *number;      // (2 · actions · …) outcomes that occur, numbered
    size_t room;           // of number
    uint64_t *seen;        // (n_steps) a digest of every refinement
} refining;

// c_{i+1}: observations whose actions lead to the same latent states and rewards by c_i.
psi_status refine_once(refining *run);

// Whether the last six of n refinements found more latent states than the six before them, by three
// standard errors of the difference; true where there are fewer.
bool refine_still_rises(const psi_cluster_step *steps, size_t n);

// Until c_{i+1} = c_i. Refinements that go in circles are stopped at the coarsest of them.
psi_status refine_until_nothing_changes(refining *run);

// The share of the labels that are the same in an earlier partition.
psi_status refine_compare_with(refining *run, const int32_t *before, size_t n_before,
                               double *agreement);

// A table, until nothing changes: splits have to be clear.
psi_status refine_with_caution(refining *run);

// Observations on the borders of latent states, labelled by their trajectories.
psi_status refine_label_mixed_cells(refining *run);

#endif
