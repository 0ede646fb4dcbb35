// How far two partitions agree: the best one-to-one matching of their blocks. The table of common
// states is sparse, so the assignment problem is solved by shortest augmenting paths over its
// entries; all numbers are whole and below 2^53, so the answer is exact.
#include <psifold/mdp.h>

#include "base/context.h"
#include "mdp/csr.h"

#include <math.h>
#include <string.h>

typedef struct heap_entry {
    double distance;
    int32_t column, row; // reached from this row
} heap_entry;

// Minimises Σ cost over matchings in which a row may also stay alone at cost 0. The cost of an
// entry is −weight; duals keep cost − row_dual − column_dual ≥ 0, with 0 on matched entries.
typedef struct matching {
    const mdp_csr *weight;
    int32_t *column_of_row, *row_of_column; // −1: alone
    double *row_dual, *column_dual;
    double *distance;   // of a column in the current search; < 0: not settled
    double *tentative;  // the shortest way to a column found so far
    int32_t *came_from; // the row from which a settled column was reached
    int32_t *settled;   // columns in the order in which they were settled
    heap_entry *heap;
    size_t heap_size;
} matching;

static void heap_push(matching *m, heap_entry entry)
{
    size_t i = m->heap_size++;
    while (i > 0 && m->heap[(i - 1) / 2].distance > entry.distance) {
        m->heap[i] = m->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    m->heap[i] = entry;
}

static heap_entry heap_pop(matching *m)
{
    const heap_entry top = m->heap[0], last = m->heap[--m->heap_size];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= m->heap_size) break;
        if (child + 1 < m->heap_size && m->heap[child + 1].distance < m->heap[child].distance)
            child++;
        if (m->heap[child].distance >= last.distance) break;
        m->heap[i] = m->heap[child];
        i = child;
    }
    m->heap[i] = last;
    return top;
}

// Dijkstra from an unmatched row to the nearest unmatched column, or to the nearest row that is
// better left alone; then the duals move and the path is flipped.
static void augment(matching *m, int32_t root)
{
    const mdp_csr *weight = m->weight;
    size_t n_settled = 0;
    m->heap_size = 0;
    for (size_t j = 0; j < weight->n_columns; j++) m->tentative[j] = HUGE_VAL;
    int32_t row = root, end_column = -1, alone = root;
    double at = 0.0, best_alone = -m->row_dual[root];
    for (;;) {
        for (uint64_t i = weight->offsets[row]; i < weight->offsets[row + 1]; i++) {
            const int32_t column = weight->column[i];
            if (m->distance[column] >= 0.0) continue;
            const double slack = -weight->value[i] - m->row_dual[row] - m->column_dual[column];
            if (at + slack >= m->tentative[column] || at + slack >= best_alone) continue;
            m->tentative[column] = at + slack;
            heap_push(m, (heap_entry){at + slack, column, row});
        }
        heap_entry next = {HUGE_VAL, -1, -1};
        while (m->heap_size > 0) {
            next = heap_pop(m);
            if (m->distance[next.column] < 0.0) break;
            next.distance = HUGE_VAL;
        }
        if (next.distance >= best_alone) {
            at = best_alone;
            break;
        }
        at = next.distance;
        m->distance[next.column] = at;
        m->came_from[next.column] = next.row;
        m->settled[n_settled++] = next.column;
        if (m->row_of_column[next.column] < 0) {
            end_column = next.column;
            break;
        }
        row = m->row_of_column[next.column];
        if (at - m->row_dual[row] < best_alone) {
            best_alone = at - m->row_dual[row];
            alone = row;
        }
    }
    m->row_dual[root] += at;
    for (size_t i = 0; i < n_settled; i++) {
        const int32_t column = m->settled[i];
        const double shift = at - m->distance[column];
        m->column_dual[column] -= shift;
        if (m->row_of_column[column] >= 0) m->row_dual[m->row_of_column[column]] += shift;
        m->distance[column] = -1.0;
    }
    // flip: the end is a column that becomes matched, or a row that gives its column up
    int32_t column = end_column;
    if (end_column < 0) {
        column = m->column_of_row[alone];
        m->column_of_row[alone] = -1;
    }
    while (column >= 0) {
        const int32_t from = m->came_from[column], previous = m->column_of_row[from];
        m->row_of_column[column] = from;
        m->column_of_row[from] = column;
        column = from == root ? -1 : previous;
    }
}

// Rows take their heaviest column while it is free: near-equal partitions are done here.
static void start_greedily(matching *m)
{
    for (size_t row = 0; row < m->weight->n_rows; row++) {
        int32_t best = -1;
        double heaviest = 0.0;
        for (uint64_t i = m->weight->offsets[row]; i < m->weight->offsets[row + 1]; i++) {
            if (m->weight->value[i] <= heaviest) continue;
            heaviest = m->weight->value[i];
            best = m->weight->column[i];
        }
        m->row_dual[row] = -heaviest;
        if (best < 0 || m->row_of_column[best] >= 0) continue;
        m->column_of_row[row] = best;
        m->row_of_column[best] = (int32_t)row;
    }
}

static double matched_weight(const matching *m)
{
    double total = 0.0;
    for (size_t row = 0; row < m->weight->n_rows; row++) {
        for (uint64_t i = m->weight->offsets[row]; i < m->weight->offsets[row + 1]; i++) {
            if (m->weight->column[i] == m->column_of_row[row]) total += m->weight->value[i];
        }
    }
    return total;
}

static psi_status best_matching(psi_ctx *ctx, const mdp_csr *weight, double *total)
{
    psi_status status = PSI_OK;
    matching m = {.weight = weight};
    const size_t rows = weight->n_rows, columns = weight->n_columns;
    TRY(base_alloc(ctx, rows, sizeof *m.column_of_row, &m.column_of_row));
    TRY(base_alloc(ctx, columns, sizeof *m.row_of_column, &m.row_of_column));
    TRY(base_alloc_zero(ctx, rows, sizeof *m.row_dual, &m.row_dual));
    TRY(base_alloc_zero(ctx, columns, sizeof *m.column_dual, &m.column_dual));
    TRY(base_alloc(ctx, columns, sizeof *m.distance, &m.distance));
    TRY(base_alloc(ctx, columns, sizeof *m.tentative, &m.tentative));
    TRY(base_alloc(ctx, columns, sizeof *m.came_from, &m.came_from));
    TRY(base_alloc(ctx, columns, sizeof *m.settled, &m.settled));
    TRY(base_alloc(ctx, weight->offsets[rows] + 1, sizeof *m.heap, &m.heap));
    for (size_t i = 0; i < rows; i++) m.column_of_row[i] = -1;
    for (size_t j = 0; j < columns; j++) m.row_of_column[j] = -1;
    for (size_t j = 0; j < columns; j++) m.distance[j] = -1.0;
    start_greedily(&m);
    for (size_t row = 0; row < rows; row++) {
        if (m.column_of_row[row] >= 0) continue;
        TRY(base_cancelled(ctx));
        augment(&m, (int32_t)row);
    }
    *total = matched_weight(&m);
done:
    base_free(ctx, m.heap);
    base_free(ctx, m.settled);
    base_free(ctx, m.came_from);
    base_free(ctx, m.tentative);
    base_free(ctx, m.distance);
    base_free(ctx, m.column_dual);
    base_free(ctx, m.row_dual);
    base_free(ctx, m.row_of_column);
    base_free(ctx, m.column_of_row);
    return status;
}

psi_status psi_partition_agreement(psi_ctx *ctx, const psi_partition *a, const psi_partition *b,
                                   double *share)
{
    if (FREED(ctx, a, b)) return PSI_EUSAGE;
    psi_status status = PSI_OK;
    uint64_t *row = NULL;
    int32_t *column = NULL;
    mdp_csr common = {0};
    *share = 0.0;
    if (a->n_states != b->n_states) {
        return FAIL(ctx, PSI_ESHAPE, "two partitions of different sets: %zu and %zu states",
                    a->n_states, b->n_states);
    }
    size_t judged = 0, both = 0;
    TRY(base_alloc(ctx, a->n_states, sizeof *row, &row));
    TRY(base_alloc(ctx, a->n_states, sizeof *column, &column));
    for (size_t s = 0; s < a->n_states; s++) {
        judged += a->label[s] >= 0 || b->label[s] >= 0;
        if (a->label[s] < 0 || b->label[s] < 0) continue;
        row[both] = (uint64_t)a->label[s];
        column[both++] = b->label[s];
    }
    if (judged == 0) {
        *share = 1.0;
        goto done;
    }
    double agreeing = 0.0;
    TRY(mdp_csr_build(ctx, a->n_blocks, b->n_blocks, both, row, column, NULL, &common));
    TRY(best_matching(ctx, &common, &agreeing));
    *share = agreeing / (double)judged;
done:
    mdp_csr_free(ctx, &common);
    base_free(ctx, column);
    base_free(ctx, row);
    return status;
}

psi_status psi_agreement_of_counts(psi_ctx *ctx, const size_t *common, size_t n_a, size_t n_b,
                                   double *share)
{
    psi_status status = PSI_OK;
    mdp_csr both = {.n_rows = n_a, .n_columns = n_b};
    double judged = 0.0, agreeing;
    size_t n = 0;
    *share = 1.0;
    for (size_t i = 0; i < n_a * n_b; i++) {
        judged += (double)common[i];
        n += common[i] > 0;
    }
    if (judged == 0.0) return PSI_OK;
    TRY(base_alloc(ctx, n_a + 1, sizeof *both.offsets, &both.offsets));
    TRY(base_alloc(ctx, n, sizeof *both.column, &both.column));
    TRY(base_alloc(ctx, n, sizeof *both.value, &both.value));
    n = 0;
    for (size_t a = 0; a < n_a; a++) {
        both.offsets[a] = n;
        for (size_t b = 0; b < n_b; b++) {
            if (common[a * n_b + b] == 0) continue;
            both.column[n] = (int32_t)b;
            both.value[n++] = (double)common[a * n_b + b];
        }
    }
    both.offsets[n_a] = n;
    TRY(best_matching(ctx, &both, &agreeing));
    *share = agreeing / judged;
done:
    mdp_csr_free(ctx, &both);
    return status;
}
