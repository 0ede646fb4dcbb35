// Observations that a person should look at twice: the least typical ones of a latent state, and
// those whose label is the least sure.
#ifndef PSI_REPORT_EXTREMES_H
#define PSI_REPORT_EXTREMES_H

#include "report/samples.h"

enum { REPORT_EXTREMES = 3 }; // of each latent state

// The farthest from the mean of their latent state, dimensions counted in standard deviations,
// among a random sample. *out is NULL where that makes no sense, as for single numbers.
psi_status report_least_typical(const report_samples *like, const int32_t *labels, uint64_t seed,
                                report_samples **out);

// Those with the lowest confidence (n_observations); of latent states in which every label is
// certain, none.
psi_status report_least_sure(const report_samples *like, const int32_t *labels,
                             const float *confidence, report_samples **out);

#endif
