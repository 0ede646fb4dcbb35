// What is to be grouped must fit together: a caller's numbers are positions in arrays.
#ifndef PSI_EVIDENCE_CHECK_H
#define PSI_EVIDENCE_CHECK_H

#include <psifold/evidence.h>

// PSI_ESHAPE with a sentence if children do not follow their parent, or if a draw is of a node or
// an outcome that there is not. O(nodes + draws).
psi_status evidence_check(psi_ctx *ctx, const psi_forest *forest, const psi_draws *draws);

#endif
