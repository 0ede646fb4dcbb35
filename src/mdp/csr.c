// Sparse rows from entries: a counting sort by row, then every row is added up in one dense line.
#include "mdp/csr.h"

#include "base/checked.h"
#include "base/context.h"
#include "base/order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Adds up the entries order[0 … n) of one row. sum and seen are zero between calls.
static size_t add_up(size_t n, const uint64_t *order, const int32_t *column, const double *value,
                     double *sum, uint8_t *seen, int32_t *columns, double *values)
{
    size_t distinct = 0;
    for (size_t i = 0; i < n; i++) {
        const int32_t j = column[order[i]];
        if (!seen[j]) {
            seen[j] = 1;
            columns[distinct++] = j;
        }
        sum[j] += value ? value[order[i]] : 1.0;
    }
    qsort(columns, distinct, sizeof *columns, base_by_index);
    for (size_t i = 0; i < distinct; i++) {
        values[i] = sum[columns[i]];
        sum[columns[i]] = 0.0;
        seen[columns[i]] = 0;
    }
    return distinct;
}

psi_status mdp_csr_build(psi_ctx *ctx, size_t n_rows, size_t n_columns, size_t n,
                         const uint64_t *row, const int32_t *column, const double *value,
                         mdp_csr *out)
{
    psi_status status = PSI_OK;
    uint64_t *start = NULL, *order = NULL;
    double *sum = NULL;
    uint8_t *seen = NULL;
    *out = (mdp_csr){.n_rows = n_rows, .n_columns = n_columns};
    size_t rows_plus;
    if (!base_add(n_rows, 2, &rows_plus)) return FAIL(ctx, PSI_ELIMIT, "%zu rows", n_rows);
    TRY(base_alloc_zero(ctx, rows_plus, sizeof *start, &start));
    TRY(base_alloc(ctx, n, sizeof *order, &order));
    TRY(base_alloc_zero(ctx, n_columns, sizeof *sum, &sum));
    TRY(base_alloc_zero(ctx, n_columns, sizeof *seen, &seen));
    TRY(base_alloc(ctx, n_rows + 1, sizeof *out->offsets, &out->offsets));
    TRY(base_alloc(ctx, n, sizeof *out->column, &out->column));
    TRY(base_alloc(ctx, n, sizeof *out->value, &out->value));

    // after the sort start[r] … start[r + 1] are the entries of row r
    for (size_t i = 0; i < n; i++) start[row[i] + 2]++;
    for (size_t r = 2; r < rows_plus; r++) start[r] += start[r - 1];
    for (size_t i = 0; i < n; i++) order[start[row[i] + 1]++] = i;

    uint64_t filled = 0;
    for (size_t r = 0; r < n_rows; r++) {
        out->offsets[r] = filled;
        filled += add_up(start[r + 1] - start[r], order + start[r], column, value, sum, seen,
                         out->column + filled, out->value + filled);
    }
    out->offsets[n_rows] = filled;
    TRY(base_resize(ctx, filled, sizeof *out->column, &out->column));
    TRY(base_resize(ctx, filled, sizeof *out->value, &out->value));
done:
    base_free(ctx, seen);
    base_free(ctx, sum);
    base_free(ctx, order);
    base_free(ctx, start);
    if (status != PSI_OK) mdp_csr_free(ctx, out);
    return status;
}

void mdp_csr_free(psi_ctx *ctx, mdp_csr *csr)
{
    base_free(ctx, csr->value);
    base_free(ctx, csr->column);
    base_free(ctx, csr->offsets);
    *csr = (mdp_csr){0};
}

psi_status mdp_check_complete(psi_ctx *ctx, const psi_partition *c, size_t n_states)
{
    if (c->n_states != n_states) {
        return FAIL(ctx, PSI_ESHAPE, "the partition is one of %zu states, the model has %zu",
                    c->n_states, n_states);
    }
    const psi_status status = psi_partition_check(ctx, c);
    if (status != PSI_OK) return status;
    for (size_t s = 0; s < n_states; s++) {
        if (c->label[s] < 0) {
            return FAIL(ctx, PSI_EDATA,
                        "state %zu is ignored; an exact model needs a label for every state", s);
        }
    }
    return PSI_OK;
}

psi_status mdp_csr_over_blocks(psi_ctx *ctx, size_t n_rows, const uint64_t *offsets,
                               const int32_t *next, const double *value, const psi_partition *c,
                               mdp_csr *out)
{
    psi_status status = PSI_OK;
    const uint64_t nnz = offsets[n_rows];
    uint64_t *row = NULL;
    int32_t *block = NULL;
    *out = (mdp_csr){0};
    TRY(base_alloc(ctx, nnz, sizeof *row, &row));
    TRY(base_alloc(ctx, nnz, sizeof *block, &block));
    for (size_t r = 0; r < n_rows; r++) {
        for (uint64_t i = offsets[r]; i < offsets[r + 1]; i++) {
            row[i] = r;
            block[i] = c->label[next[i]];
        }
    }
    TRY(mdp_csr_build(ctx, n_rows, c->n_blocks, nnz, row, block, value, out));
done:
    base_free(ctx, block);
    base_free(ctx, row);
    return status;
}

psi_status mdp_block_rows(psi_ctx *ctx, const psi_mdp *mdp, const psi_partition *c, mdp_csr *out)
{
    return mdp_csr_over_blocks(ctx, mdp->n_states * mdp->n_actions, mdp->offsets, mdp->next,
                               mdp->probability, c, out);
}

double mdp_row_distance(const mdp_csr *a, size_t row_a, const mdp_csr *b, size_t row_b)
{
    uint64_t i = a->offsets[row_a], j = b->offsets[row_b];
    const uint64_t end_a = a->offsets[row_a + 1], end_b = b->offsets[row_b + 1];
    double largest = 0.0;
    while (i < end_a || j < end_b) {
        double difference = 0.0;
        const int32_t column_a = i < end_a ? a->column[i] : INT32_MAX;
        const int32_t column_b = j < end_b ? b->column[j] : INT32_MAX;
        if (column_a <= column_b) difference += a->value[i++];
        if (column_b <= column_a) difference -= b->value[j++];
        largest = fmax(largest, fabs(difference));
    }
    return largest;
}
