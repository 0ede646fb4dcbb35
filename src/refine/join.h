// The fewest of them. Latent states are observations of a table: refined once more by evidence,
// each with all that was seen of it, those that nothing tells apart are one. Cells on the borders
// of latent states can make a split that supports itself, since what leads to its halves is split
// as well; begun with what rewards tell apart, it is not found again.
#ifndef PSI_REFINE_JOIN_H
#define PSI_REFINE_JOIN_H

#include "refine/by_evidence.h"

// labels (n_rows) and *n_latent are changed in place; *joined: how many others took in.
psi_status refine_join(psi_ctx *ctx, const cluster_problem *problem, size_t max_latent_states,
                       int32_t *labels, size_t *n_latent, size_t *joined);

#endif
