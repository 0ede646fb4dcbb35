// Whether the number of latent states grows with the data: the mark of a task that no small set of
// them explains, be it because its states are continuous, or because there are too many for these
// data.
#ifndef PSI_VERDICT_GROWTH_H
#define PSI_VERDICT_GROWTH_H

#include "refine/by_evidence.h"

// Latent states that are found in a quarter of the episodes and in half of them, which has that
// quarter in it, by vectors (n_rows, width) as they are; zeros where there are fewer than eight
// episodes. About three quarters of what it took to find them in all. how is that of the whole, and
// means whether its rewards were numbers.
psi_status verdict_growth(psi_ctx *ctx, const cluster_problem *problem, size_t width,
                          const float *vectors, bool means, uint64_t seed,
                          const by_evidence_options *how, size_t n_latent[2]);

// Latent states in a quarter, half and all of the data: whether there is no end in sight. There are
// more than chance adds to a count, the second doubling finds no fewer new ones than the first, and
// growth is nearer to being in proportion to the data (four times as many) than to none. Nothing
// grows faster than the data for long: what does so is a set of latent states that comes into
// sight.
bool verdict_keeps_growing(const size_t n_latent[3]);

#endif
