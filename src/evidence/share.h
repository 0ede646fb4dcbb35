// Leaves that several processes weigh, some each, where all have the same draws
// (psi_draws.together). What a leaf is worth depends on no other leaf while groups stay as they
// are.
#ifndef PSI_EVIDENCE_SHARE_H
#define PSI_EVIDENCE_SHARE_H

#include <psifold/evidence.h>

// Whether that is worth their while: not of trees, nor of a few leaves.
bool evidence_is_shared(const psi_ctx *ctx, const psi_forest *forest, const psi_draws *draws);

// Of n leaves, those that this process weighs: from the one returned to *end − 1.
size_t evidence_own_part(const psi_ctx *ctx, bool shared, size_t n, size_t *end);
// What all of them have found: values (n, size), of which each has filled in its part.
psi_status evidence_fill_in(psi_ctx *ctx, bool shared, void *values, size_t size, size_t n);

#endif
