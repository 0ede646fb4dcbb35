// Large blocks on large pages: maps are walked plane by plane, and with small pages the processor
// would spend its time looking up addresses.
#ifndef PSI_NN_MEMORY_H
#define PSI_NN_MEMORY_H

#include "base/context.h"

// Like base_alloc_zero.
psi_status nn_alloc_large(psi_ctx *ctx, size_t count, size_t size, void *out);

#endif
