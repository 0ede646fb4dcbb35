// OpenBLAS and memory. Each thread that multiplies matrices needs a buffer of OpenBLAS's own, and
// where the system refuses one OpenBLAS asks again for ever. So the buffers are taken before the
// work begins, when a refusal can still become a status.
#ifndef PSI_BASE_BLAS_H
#define PSI_BASE_BLAS_H

#include <psifold/base.h>

// To be called before the first product of matrices or solution of equations in a piece of work:
// afterwards OpenBLAS has a buffer for every thread of the context and its children. PSI_ENOMEM.
psi_status base_blas_ready(psi_ctx *ctx);

// Takes as many buffers as threads and gives them back to OpenBLAS, which keeps them; false if the
// system has not that many. base_blas_ready does this once for a context.
bool base_blas_take(int threads);

#endif
