// Learning by several processes: rank 0 learns, the others bring what they see, and all have what
// was learnt.
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

// Rank 0 asks for rows, as psi_batch_source has it, while the others serve it, until it is done.
psi_status learn_rows_gather(void *rows, psi_ctx *ctx, const uint64_t *numbers, size_t n,
                             void *out);
psi_status learn_rows_serve(psi_ctx *ctx, learn_rows *all);
psi_status learn_rows_done(psi_ctx *ctx);

#endif
