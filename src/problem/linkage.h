// Trees over a sample of vectors, from which clumps are read: two ways to say how far sets of
// vectors are from each other.
#ifndef PSI_PROBLEM_LINKAGE_H
#define PSI_PROBLEM_LINKAGE_H

#include "base/context.h"

// Vectors whose numbers are held side by side, so that one is compared with all at once.
typedef struct linkage_points {
    size_t n, width;
    float *number;   // (width, n)
    float *distance; // (n) squared, from the vector that was asked last
} linkage_points;

psi_status problem_linkage_points_new(psi_ctx *ctx, size_t n, size_t width, linkage_points *out);
void problem_linkage_points_free(psi_ctx *ctx, linkage_points *points);

// distance[i] = ‖x − point i‖². O(n · width).
void problem_linkage_compare(linkage_points *points, const float *x); // x (width)

// Where two sets were joined: a point of either, and how far they were from each other, squared.
typedef struct linkage_step {
    float height;
    int32_t a, b;
} linkage_step;

// The shortest tree through all points: sets are as far from each other as their nearest points
// are. step (n − 1). O(n² · width).
psi_status problem_linkage_single(psi_ctx *ctx, linkage_points *points, linkage_step *step);

// Sets are as far from each other as their points are on average, ‖difference of their means‖² and
// the scatter of both. In many dimensions nearest points are the exceptions among many pairs, and
// averages have none. O(n² · width), and n² numbers.
psi_status problem_linkage_average(psi_ctx *ctx, linkage_points *points, linkage_step *step);

#endif
