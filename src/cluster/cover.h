// The epsilon-cover: gathers points that lie within epsilon of one another into clusters (the
// implication under lines 6 and 12 of Algorithm 1). Centres are chosen where the points are densest
// and moved to the mean of what they cover; every point then goes to its nearest centre.
#ifndef PSI_CLUSTER_COVER_H
#define PSI_CLUSTER_COVER_H

#include <psifold/base.h>

typedef enum cover_norm { COVER_L2, COVER_L1 } cover_norm;

// A point is a row of `groups` vectors of `width` numbers each: one vector per action. The distance
// of two points is the sum over the groups of the norm of the difference.
typedef struct cover_points {
    size_t n, groups, width;
    // Writes the points rows[0 … count) to out (count, groups, width). Called by one thread at a
    // time.
    psi_status (*fill)(void *user, psi_ctx *ctx, const uint64_t *rows, size_t count, float *out);
    void *user;
} cover_points;

typedef struct cover_options {
    double epsilon;
    cover_norm norm;
    double filter;       // clusters with a smaller share of the points are spurious
    size_t max_clusters; // PSI_ELIMIT beyond
    uint64_t seed;       // of the sample in which centres are looked for
} cover_options;

typedef struct cover_result {
    size_t n_clusters;
    float *centres;  // (n_clusters, groups, width)
    int32_t *labels; // (n) 0 … n_clusters−1, largest cluster first; −1: in a spurious cluster
    size_t *sizes;   // (n_clusters)
    size_t ignored;  // points labelled −1
    double mean_distance; // of the labelled points to their centres
} cover_result;

// O(n · clusters · groups · width) time; memory for a sample of the points and the labels. The
// result's arrays belong to the caller. Deterministic for a given number of points and seed.
psi_status cluster_cover(psi_ctx *ctx, const cover_points *points, const cover_options *options,
                         cover_result *out);
void cluster_cover_free(psi_ctx *ctx, cover_result *result);

#endif
