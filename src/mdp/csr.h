// Sparse rows: how counts, probabilities and tables of common states are put together.
#ifndef PSI_MDP_CSR_H
#define PSI_MDP_CSR_H

#include <psifold/mdp.h>

typedef struct mdp_csr {
    size_t n_rows, n_columns;
    uint64_t *offsets; // (n_rows + 1)
    int32_t *column;   // (nnz) ascending within a row
    double *value;     // (nnz)
} mdp_csr;

// From entries in any order; equal ones add up in the order in which they stand. value NULL: ones.
// Rows and columns must be in range. O(n + n_rows + n_columns), plus sorting within rows.
psi_status mdp_csr_build(psi_ctx *ctx, size_t n_rows, size_t n_columns, size_t n,
                         const uint64_t *row, const int32_t *column, const double *value,
                         mdp_csr *out);
void mdp_csr_free(psi_ctx *ctx, mdp_csr *csr); // leaves it empty

// p(j|s,a) = Σ_{s': c(s')=j} p(s'|s,a): rows of probabilities, or of counts, over the blocks of a
// partition that ignores no state. offsets (n_rows + 1), next and value (nnz).
psi_status mdp_csr_over_blocks(psi_ctx *ctx, size_t n_rows, const uint64_t *offsets,
                               const int32_t *next, const double *value, const psi_partition *c,
                               mdp_csr *out);
psi_status mdp_block_rows(psi_ctx *ctx, const psi_mdp *mdp, const psi_partition *c, mdp_csr *out);

// The largest difference between the numbers of two rows.
double mdp_row_distance(const mdp_csr *a, size_t row_a, const mdp_csr *b, size_t row_b);

// PSI_ESHAPE unless c has a label for each of the n states, PSI_EDATA if it ignores one.
psi_status mdp_check_complete(psi_ctx *ctx, const psi_partition *c, size_t n_states);

#endif
