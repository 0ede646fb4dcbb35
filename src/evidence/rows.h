// What followed each node of a forest: sparse counts of outcomes, a node's the sum of its leaves'.
#ifndef PSI_EVIDENCE_ROWS_H
#define PSI_EVIDENCE_ROWS_H

#include <psifold/evidence.h>

typedef struct evidence_rows {
    size_t n_nodes, n_outcomes, n_families, n_means;
    uint64_t *begin, *end; // (n_nodes) the entries of a node
    uint32_t *outcome;     // ascending within a node, so family by family
    float *count;          // whole numbers
    double *draws;         // (n_nodes) counts in all
    uint32_t *first;       // (n_families + 1) outcomes of family f: first[f] … first[f + 1]
    uint32_t *family;      // (n_outcomes)
    double *base;          // (n_outcomes) how usual an outcome is, within its family
    double *precision, *weighted; // (n_nodes, n_means)
    double mean_variance;
} evidence_rows;

psi_status evidence_rows_new(psi_ctx *ctx, const psi_forest *forest, const psi_draws *draws,
                             evidence_rows *out);
void evidence_rows_free(psi_ctx *ctx, evidence_rows *rows);
bool evidence_is_followed(const evidence_rows *rows, size_t v); // by draws, or by means

#endif
