// Cells of observations that look alike may mix latent states: what follows them is then a mixture
// of what follows each, in the same proportions whatever the action.
#ifndef PSI_EVIDENCE_BLEND_H
#define PSI_EVIDENCE_BLEND_H

#include "evidence/groups.h"

// Counts to be explained as a mixture: entries of a row, and means.
typedef struct blend_row {
    size_t n;
    const uint32_t *outcome; // ascending
    const float *count;
    const double *precision, *weighted; // (n_means)
} blend_row;

typedef struct blend_work blend_work; // memory for it
psi_status evidence_blend_new(psi_ctx *ctx, const evidence_groups *groups, blend_work **out);
void evidence_blend_free(psi_ctx *ctx, blend_work *work);

// Has to be called after groups have changed.
psi_status evidence_blend_prepare(psi_ctx *ctx, blend_work *work, const evidence_groups *groups);

// log P(row | the best mixture of a few groups' laws), less what it costs to say which groups and
// in which proportions; group `except` is left out (n: none). −∞ if it is known to be below limit.
double evidence_blend(blend_work *work, const evidence_groups *groups, const blend_row *row,
                      size_t except, double limit);

#endif
