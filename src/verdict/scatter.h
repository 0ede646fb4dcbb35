// How far a look scatters: what says whether a few that stand apart from it are its outermost.
#ifndef PSI_VERDICT_SCATTER_H
#define PSI_VERDICT_SCATTER_H

#include "verdict/judging.h"

// Of every part of the tree that stands apart, and every label: how many rows there are, and the
// scale of an exponential tail with the median of their distances from their middle. A few that do
// not belong to them move no median.
typedef struct scatter {
    int32_t *part; // (n_nodes)
    size_t n_labels;
    uint64_t *first; // (parts · labels + 1)
    double *scale;   // (parts · labels)
    double usual;    // the median of these; 0: none has rows enough
} scatter;

psi_status verdict_scatter_new(judging *run, const problem_looks *looks, scatter *out);
void verdict_scatter_free(psi_ctx *ctx, scatter *all);

// How far those of a label scatter around a row, or what looks usually scatter if that is less: a
// latent state may have several. few of them may be others; if that is half or more, what is usual.
// 0: not known.
double verdict_scale_around(const scatter *known, const problem_looks *looks, uint64_t row,
                            int32_t label, size_t few);

#endif
