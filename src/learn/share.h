// Learning by several processes: each brings what it has of a batch, and all have what was learnt.
#ifndef PSI_LEARN_SHARE_H
#define PSI_LEARN_SHARE_H

#include "problem/observe.h"
#include "problem/problem.h"

#include <psifold/nn.h>

// Every process has made the same network; its numbers become those of rank 0.
psi_status learn_share_net(psi_ctx *ctx, psi_net *net);

// Observations of all processes, by their number in the data.
typedef struct learn_rows {
    problem_inputs *inputs; // of this process
    size_t *first;          // (ranks + 1) where the rows of each begin
} learn_rows;

psi_status learn_rows_new(psi_ctx *ctx, const cluster_problem *problem, problem_inputs *inputs,
                          learn_rows *out);
void learn_rows_free(psi_ctx *ctx, learn_rows *all);

// Rows as psi_batch_source has it; all processes ask for the same.
psi_status learn_rows_gather(void *rows, psi_ctx *ctx, const uint64_t *numbers, size_t n,
                             void *out);

#endif
