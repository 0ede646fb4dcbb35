#include "problem/looks.h"

#include "base/checked.h"
#include "base/context.h"
#include "base/progress.h"
#include "problem/distinct.h"

#include <math.h>
#include <string.h>

// Observations of a cell. A cell has to be small beside what a latent state looks like, and is
// never asked alone: its neighbours in the tree speak with it (4 and 16 give the same partitions).
enum { CELL = 8, MOST_CELLS = 1 << 15 };

// The rows that are states: not terminal, and seen.
static psi_status list_leaves(psi_ctx *ctx, const cluster_problem *problem, problem_looks *out)
{
    psi_status status = PSI_OK;
    TRY(base_alloc(ctx, problem->n_rows, sizeof *out->leaf, &out->leaf));
    for (size_t i = 0; i < problem->n_rows; i++) out->leaf[i] = -1;
done:
    return status;
}

static psi_status nodes_new(psi_ctx *ctx, size_t n, bool looks, problem_looks *out)
{
    psi_status status = PSI_OK;
    TRY(base_alloc(ctx, n, sizeof *out->left, &out->left));
    TRY(base_alloc(ctx, n, sizeof *out->right, &out->right));
    TRY(base_alloc(ctx, n, sizeof *out->parent, &out->parent));
    for (size_t v = 0; v < n; v++) out->left[v] = out->right[v] = out->parent[v] = -1;
    out->forest = (psi_forest){n, out->left, out->right, looks, 0.0};
done:
    return status;
}

// ---- distinct observations ----------------------------------------------------------------------

psi_status problem_looks_distinct(psi_ctx *ctx, const cluster_problem *problem, size_t most,
                                  problem_looks *out)
{
    psi_status status = PSI_OK;
    const psi_observations *observations = problem->data->observations;
    problem_distinct distinct = {0};
    uint32_t *numbers = NULL;
    *out = (problem_looks){0};
    TRY(list_leaves(ctx, problem, out));
    TRY(base_alloc(ctx, problem->n_states, sizeof *numbers, &numbers));
    TRY(problem_distinct_new(ctx, psi_observations_row_bytes(observations), &distinct));
    TRY(problem_distinct_observations(ctx, &distinct, observations, problem->states,
                                      problem->n_states, most, numbers));
    for (size_t i = 0; i < problem->n_states; i++) {
        out->leaf[problem->states[i]] = (int32_t)numbers[i];
    }
    TRY(nodes_new(ctx, distinct.n, false, out));
    out->n_leaves = distinct.n;
done:
    problem_distinct_free(ctx, &distinct);
    base_free(ctx, numbers);
    if (status != PSI_OK) problem_looks_free(ctx, out);
    return status;
}

psi_status problem_looks_of_labels(psi_ctx *ctx, const cluster_problem *problem,
                                   const int32_t *labels, size_t n, size_t first,
                                   problem_looks *out)
{
    psi_status status = PSI_OK;
    *out = (problem_looks){0};
    TRY(list_leaves(ctx, problem, out));
    for (size_t i = 0; i < problem->n_states; i++) {
        const uint64_t row = problem->states[i];
        out->leaf[row] = labels[row] < 0 ? -1 : labels[row] - (int32_t)first;
    }
    TRY(nodes_new(ctx, n, false, out));
    out->n_leaves = n;
done:
    if (status != PSI_OK) problem_looks_free(ctx, out);
    return status;
}

// ---- a tree over vectors ------------------------------------------------------------------------

typedef struct growing {
    psi_ctx *ctx;
    size_t width;
    const float *vectors; // (n_rows, width)
    uint64_t *row;        // (n) the rows, those of a node side by side
    uint64_t *other;      // (n) room for sorting them
    uint8_t *side;        // (n)
    double *mean, *sum;   // (width)
    float *direction;     // (width)
} growing;

void problem_looks_standardise(const cluster_problem *problem, size_t width, float *vectors)
{
    for (size_t w = 0; w < width; w++) {
        double mean = 0.0, square = 0.0;
        for (size_t i = 0; i < problem->n_states; i++) {
            mean += (double)vectors[problem->states[i] * width + w];
        }
        mean /= (double)problem->n_states;
        for (size_t i = 0; i < problem->n_states; i++) {
            const double x = (double)vectors[problem->states[i] * width + w] - mean;
            square += x * x;
        }
        const double scale = square > 0.0 ? sqrt((double)problem->n_states / square) : 0.0;
        for (size_t i = 0; i < problem->n_rows; i++) {
            float *x = &vectors[i * width + w];
            *x = (float)(((double)*x - mean) * scale);
        }
    }
}

// The direction in which a set varies most, roughly: a few steps of the power method on some of it.
static bool find_direction(growing *grow, size_t begin, size_t end)
{
    enum { SAMPLE = 512, STEPS = 6 };
    const size_t width = grow->width, stride = (end - begin + SAMPLE - 1) / SAMPLE;
    size_t widest = 0;
    memset(grow->mean, 0, width * sizeof *grow->mean);
    memset(grow->sum, 0, width * sizeof *grow->sum);
    for (size_t i = begin; i < end; i++) {
        const float *x = grow->vectors + grow->row[i] * width;
        for (size_t w = 0; w < width; w++) grow->mean[w] += (double)x[w];
    }
    for (size_t w = 0; w < width; w++) grow->mean[w] /= (double)(end - begin);
    for (size_t i = begin; i < end; i += stride) {
        const float *x = grow->vectors + grow->row[i] * width;
        for (size_t w = 0; w < width; w++) {
            const double away = (double)x[w] - grow->mean[w];
            grow->sum[w] += away * away;
        }
    }
    for (size_t w = 1; w < width; w++) {
        if (grow->sum[w] > grow->sum[widest]) widest = w;
    }
    if (grow->sum[widest] <= 0.0) return false;
    for (size_t w = 0; w < width; w++) grow->direction[w] = w == widest;
    for (int step = 0; step < STEPS && width > 1; step++) {
        double norm = 0.0;
        memset(grow->sum, 0, width * sizeof *grow->sum);
        for (size_t i = begin; i < end; i += stride) {
            const float *x = grow->vectors + grow->row[i] * width;
            double along = 0.0;
            for (size_t w = 0; w < width; w++) {
                along += ((double)x[w] - grow->mean[w]) * (double)grow->direction[w];
            }
            for (size_t w = 0; w < width; w++) {
                grow->sum[w] += along * ((double)x[w] - grow->mean[w]);
            }
        }
        for (size_t w = 0; w < width; w++) norm += grow->sum[w] * grow->sum[w];
        if (norm <= 0.0) break;
        for (size_t w = 0; w < width; w++) {
            grow->direction[w] = (float)(grow->sum[w] / sqrt(norm));
        }
    }
    return true;
}

// Puts every row on its side of the plane; how many have changed sides, and how many are right.
static size_t divide(growing *grow, size_t begin, size_t end, const float *plane, size_t *right)
{
    const size_t width = grow->width;
    size_t changed = 0;
    *right = 0;
    for (size_t i = begin; i < end; i++) {
        const float *x = grow->vectors + grow->row[i] * width;
        float along = plane[width];
        for (size_t w = 0; w < width; w++) along += x[w] * plane[w];
        const uint8_t side = along > 0.0f;
        changed += side != grow->side[i];
        grow->side[i] = side;
        *right += side;
    }
    return changed;
}

// Two means of a set, started from the two halves along its direction; the plane between them.
static bool halve(growing *grow, size_t begin, size_t end, float *plane, size_t *middle)
{
    enum { TURNS = 10 };
    const size_t width = grow->width, n = end - begin;
    size_t right;
    if (!find_direction(grow, begin, end)) return false;
    plane[width] = 0.0f;
    for (size_t w = 0; w < width; w++) {
        plane[w] = grow->direction[w];
        plane[width] -= (float)grow->mean[w] * plane[w];
    }
    memset(grow->side + begin, 2, n);
    divide(grow, begin, end, plane, &right);
    for (int turn = 0; turn < TURNS && right > 0 && right < n; turn++) {
        double offset = 0.0;
        memset(grow->sum, 0, width * sizeof *grow->sum); // of those on the right
        for (size_t i = begin; i < end; i++) {
            if (!grow->side[i]) continue;
            const float *x = grow->vectors + grow->row[i] * width;
            for (size_t w = 0; w < width; w++) grow->sum[w] += (double)x[w];
        }
        for (size_t w = 0; w < width; w++) {
            const double a = grow->sum[w] / (double)right;
            const double b = (grow->mean[w] * (double)n - grow->sum[w]) / (double)(n - right);
            plane[w] = (float)(a - b);
            offset -= 0.5 * (a - b) * (a + b);
        }
        plane[width] = (float)offset;
        if (divide(grow, begin, end, plane, &right) == 0) break;
    }
    if (right == 0 || right == n) return false;
    size_t l = begin, r = begin + (n - right);
    *middle = r;
    for (size_t i = begin; i < end; i++) grow->other[grow->side[i] ? r++ : l++] = grow->row[i];
    memcpy(grow->row + begin, grow->other + begin, n * sizeof *grow->row);
    return true;
}

// How far two halves are apart along the plane's normal, in standard deviations of both: 1.3 for a
// normal distribution cut in two, 1.7 for an even one, far more for two of them.
static float gap_between(const growing *grow, size_t begin, size_t middle, size_t end,
                         const float *plane)
{
    const size_t width = grow->width, from[3] = {begin, middle, end};
    double mean[2] = {0.0, 0.0}, deviation[2] = {0.0, 0.0};
    for (size_t half = 0; half < 2; half++) {
        const double n = (double)(from[half + 1] - from[half]);
        for (size_t i = from[half]; i < from[half + 1]; i++) {
            const float *x = grow->vectors + grow->row[i] * width;
            float along = 0.0f;
            for (size_t w = 0; w < width; w++) along += x[w] * plane[w];
            mean[half] += (double)along / n;
            deviation[half] += (double)along * (double)along / n;
        }
        deviation[half] = sqrt(fmax(0.0, deviation[half] - mean[half] * mean[half]));
    }
    return (float)((mean[1] - mean[0]) / fmax(deviation[0] + deviation[1], 1e-30));
}

psi_status problem_looks_tree(psi_ctx *ctx, const cluster_problem *problem, size_t width,
                              float *vectors, problem_looks *out)
{
    psi_status status = PSI_OK;
    const size_t n = problem->n_states, cell = base_max(CELL, n / MOST_CELLS);
    growing grow = {.ctx = ctx, .width = width, .vectors = vectors};
    size_t nodes = 1, room = base_max(4 * (n / cell) + 64, 64);
    *out = (problem_looks){.width = width, .vectors = vectors};
    TRY(list_leaves(ctx, problem, out));
    TRY(nodes_new(ctx, room, true, out));
    TRY(base_alloc(ctx, room, sizeof *out->begin, &out->begin));
    TRY(base_alloc(ctx, room, sizeof *out->end, &out->end));
    TRY(base_alloc_zero(ctx, room, sizeof *out->gap, &out->gap));
    TRY(base_alloc(ctx, room, (width + 1) * sizeof *out->plane, &out->plane));
    TRY(base_alloc(ctx, n, sizeof *grow.row, &grow.row));
    TRY(base_alloc(ctx, n, sizeof *grow.other, &grow.other));
    TRY(base_alloc(ctx, n, sizeof *grow.side, &grow.side));
    TRY(base_alloc(ctx, width, sizeof *grow.mean, &grow.mean));
    TRY(base_alloc(ctx, width, sizeof *grow.sum, &grow.sum));
    TRY(base_alloc(ctx, width, sizeof *grow.direction, &grow.direction));
    memcpy(grow.row, problem->states, n * sizeof *grow.row);
    uint64_t *begin = out->begin, *end = out->end;
    begin[0] = 0;
    end[0] = n;
    base_progress progress = base_progress_start(ctx, "comparing looks", n);
    for (size_t v = 0, placed = 0; v < nodes; v++) {
        size_t middle;
        float *plane = out->plane + v * (width + 1);
        TRY(base_progress_at(&progress, placed));
        if (nodes + 2 <= room && end[v] - begin[v] > cell &&
            halve(&grow, begin[v], end[v], plane, &middle)) {
            out->gap[v] = gap_between(&grow, begin[v], middle, end[v], plane);
            out->left[v] = (int32_t)nodes;
            out->right[v] = (int32_t)nodes + 1;
            out->parent[nodes] = out->parent[nodes + 1] = (int32_t)v;
            begin[nodes] = begin[v];
            end[nodes++] = middle;
            begin[nodes] = middle;
            end[nodes++] = end[v];
            continue;
        }
        out->n_leaves++;
        placed += end[v] - begin[v];
        for (size_t i = begin[v]; i < end[v]; i++) out->leaf[grow.row[i]] = (int32_t)v;
    }
    base_progress_end(&progress, n);
    out->forest.n_nodes = nodes;
    out->row = grow.row;
    grow.row = NULL;
done:
    base_free(ctx, grow.direction);
    base_free(ctx, grow.sum);
    base_free(ctx, grow.mean);
    base_free(ctx, grow.side);
    base_free(ctx, grow.other);
    base_free(ctx, grow.row);
    if (status != PSI_OK) problem_looks_free(ctx, out);
    return status;
}

psi_status problem_looks_prototypes(psi_ctx *ctx, const cluster_problem *problem,
                                    const problem_looks *tree, size_t most, double impurity,
                                    problem_looks *out)
{
    psi_status status = PSI_OK;
    *out = (problem_looks){.width = tree->width, .vectors = tree->vectors};
    TRY(list_leaves(ctx, problem, out));
    for (size_t v = 0; v < tree->forest.n_nodes; v++) {
        const int32_t up = tree->parent[v];
        const bool small = tree->end[v] - tree->begin[v] <= most || tree->left[v] < 0;
        if (!small || (up >= 0 && tree->end[up] - tree->begin[up] <= most)) continue;
        for (uint64_t i = tree->begin[v]; i < tree->end[v]; i++) {
            out->leaf[tree->row[i]] = (int32_t)out->n_leaves;
        }
        out->n_leaves++;
    }
    TRY(nodes_new(ctx, out->n_leaves, true, out));
    out->forest.impurity = impurity;
done:
    if (status != PSI_OK) problem_looks_free(ctx, out);
    return status;
}

// The smallest branch around a row that has a few dozen others.
static int32_t branch_of(const problem_looks *looks, uint64_t row)
{
    enum { BRANCH = 48 };
    int32_t v = looks->leaf[row];
    while (looks->end[v] - looks->begin[v] < BRANCH && looks->parent[v] >= 0) v = looks->parent[v];
    return v;
}

// The nearest rows so far, nearest first.
typedef struct neighbours {
    size_t n;
    uint64_t *row;                 // (LOOKS_NEAREST)
    float distance[LOOKS_NEAREST]; // squared
} neighbours;

static float farthest(const neighbours *found)
{
    return found->n < LOOKS_NEAREST ? HUGE_VALF : found->distance[LOOKS_NEAREST - 1];
}

// Among the rows of a node.
static void nearest_below(const problem_looks *looks, int32_t v, const int32_t *labels,
                          uint64_t row, neighbours *found)
{
    const size_t width = looks->width;
    const float *x = looks->vectors + row * width;
    for (uint64_t i = looks->begin[v]; i < looks->end[v]; i++) {
        const uint64_t other = looks->row[i];
        if (other == row || (labels && labels[other] < 0)) continue;
        const float *y = looks->vectors + other * width;
        float d = 0.0f;
        for (size_t w = 0; w < width; w++) d += (x[w] - y[w]) * (x[w] - y[w]);
        if (d >= farthest(found)) continue;
        size_t at = found->n < LOOKS_NEAREST ? found->n++ : LOOKS_NEAREST - 1;
        for (; at > 0 && found->distance[at - 1] > d; at--) {
            found->distance[at] = found->distance[at - 1];
            found->row[at] = found->row[at - 1];
        }
        found->distance[at] = d;
        found->row[at] = other;
    }
}

size_t problem_looks_nearest(const problem_looks *looks, const int32_t *labels, uint64_t row,
                             uint64_t nearest[LOOKS_NEAREST])
{
    neighbours found = {.row = nearest};
    nearest_below(looks, branch_of(looks, row), labels, row, &found);
    return found.n;
}

// Below a node: the side of its plane that the row is on first, and the other only if the plane is
// nearer than the farthest neighbour so far.
static void search_below(const problem_looks *looks, int32_t v, uint64_t row, neighbours *found)
{
    const size_t width = looks->width;
    if (looks->left[v] < 0) {
        nearest_below(looks, v, NULL, row, found);
        return;
    }
    const float *x = looks->vectors + row * width;
    const float *plane = looks->plane + (size_t)v * (width + 1);
    float along = plane[width], norm = 0.0f;
    for (size_t w = 0; w < width; w++) {
        along += x[w] * plane[w];
        norm += plane[w] * plane[w];
    }
    const bool right = along > 0.0f;
    search_below(looks, right ? looks->right[v] : looks->left[v], row, found);
    if (along * along > norm * farthest(found)) return;
    search_below(looks, right ? looks->left[v] : looks->right[v], row, found);
}

size_t problem_looks_nearest_of_all(const problem_looks *looks, uint64_t row,
                                    uint64_t nearest[LOOKS_NEAREST])
{
    neighbours found = {.row = nearest};
    search_below(looks, 0, row, &found);
    return found.n;
}

size_t problem_looks_vote(const problem_looks *looks, const int32_t *labels, uint64_t row,
                          int32_t label[LOOKS_LABELS], float share[LOOKS_LABELS])
{
    const int32_t v = branch_of(looks, row);
    uint64_t nearest[LOOKS_NEAREST];
    size_t n = 0;
    bool agree = labels[row] >= 0;
    for (uint64_t i = looks->begin[v]; agree && i < looks->end[v]; i++) {
        agree = labels[looks->row[i]] == labels[row];
    }
    if (agree) {
        label[0] = labels[row];
        share[0] = 1.0f;
        return 1;
    }
    const size_t voters = problem_looks_nearest(looks, labels, row, nearest);
    const float own = labels[row] >= 0 ? 0.5f : 0.0f; // the label of its cell has half of the votes
    if (labels[row] >= 0) {
        label[n] = labels[row];
        share[n++] = own;
    }
    for (size_t i = 0; i < voters;
         i++) { // those nearest first; labels beyond the last are left out
        size_t k = 0;
        while (k < n && label[k] != labels[nearest[i]]) k++;
        if (k == n && n == LOOKS_LABELS) continue;
        if (k == n) {
            label[n] = labels[nearest[i]];
            share[n++] = 0.0f;
        }
        share[k] += (1.0f - own) / (float)voters;
    }
    return n;
}

void problem_looks_free(psi_ctx *ctx, problem_looks *looks)
{
    base_free(ctx, looks->row);
    base_free(ctx, looks->begin);
    base_free(ctx, looks->end);
    base_free(ctx, looks->gap);
    base_free(ctx, looks->left);
    base_free(ctx, looks->right);
    base_free(ctx, looks->parent);
    base_free(ctx, looks->leaf);
    base_free(ctx, looks->plane);
    *looks = (problem_looks){0};
}
