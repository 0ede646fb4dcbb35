// Two clusterings of the same observations, side by side: which latent states were split or joined.
#ifndef PSI_REPORT_COMPARE_H
#define PSI_REPORT_COMPARE_H

#include <psifold/cluster.h>

typedef struct report_overlap {
    int32_t state, other; // latent states of the first and of the second run …
    size_t n;             // … and how many observations are in both
    bool counts;          // more than a stray observation or two
} report_overlap;

typedef struct report_comparison {
    psi_ctx *ctx;
    size_t n_overlaps;
    report_overlap *overlaps;   // by state, the largest first
    int8_t *fate;               // (n_latent of the first) 1: split there, −1: joined, 0: the same
    int8_t *fate_other;         // (n_latent of the second) the same, seen from there
    size_t same, split, joined; // latent states of the first
    double agreement;           // share of the observations, in the best one-to-one matching
} report_comparison;

// PSI_EDATA unless both are of the same data. *out belongs to the caller.
psi_status report_compare(psi_ctx *ctx, const psi_run *run, const psi_run *other,
                          report_comparison **out);
void report_comparison_free(report_comparison *comparison);

#endif
