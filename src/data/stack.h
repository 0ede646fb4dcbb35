// Observations over others: each with some that came before it.
#ifndef PSI_DATA_STACK_H
#define PSI_DATA_STACK_H

#include "data/observations.h"

// Rows exist (checked by psi_observations_gather).
psi_status data_stack_gather(psi_ctx *ctx, const psi_observations *stacked, const uint64_t *rows,
                             size_t n, void *out);

#endif
