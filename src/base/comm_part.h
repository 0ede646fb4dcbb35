// The part of a context that knows the other processes.
#ifndef PSI_BASE_COMM_PART_H
#define PSI_BASE_COMM_PART_H

#include "base/comm.h"

typedef struct base_comm {
    int rank, ranks;              // 0 of 1
    const base_comm_table *table; // NULL: there are no others …
    bool alone;                   // … or it has parted from them
    psi_ranks_cost cost;
} base_comm;

base_comm *base_ctx_comm(psi_ctx *ctx); // that of a child is its own: it is always alone
void base_comm_finish(base_comm *comm);

#endif
