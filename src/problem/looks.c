#include "problem/looks.h"

#include "base/checked.h"
#include "base/comm.h"
#include "base/context.h"
#include "problem/distinct.h"

#include <math.h>
#include <string.h>

psi_status problem_looks_leaves_new(psi_ctx *ctx, const cluster_problem *problem,
                                    problem_looks *out)
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
    TRY(problem_looks_leaves_new(ctx, problem, out));
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
    TRY(problem_looks_leaves_new(ctx, problem, out));
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

// ---- parts of a tree ----------------------------------------------------------------------------

psi_status problem_looks_prototypes(psi_ctx *ctx, const cluster_problem *problem,
                                    const problem_looks *tree, size_t most, double impurity,
                                    problem_looks *out)
{
    psi_status status = PSI_OK;
    int32_t *name = NULL; // (n_nodes) the prototype that a node is in; −1: of several
    *out =
        (problem_looks){.width = tree->width, .vectors = tree->vectors, .n_rows = problem->n_rows};
    TRY(problem_looks_leaves_new(ctx, problem, out));
    TRY(base_alloc(ctx, tree->forest.n_nodes, sizeof *name, &name));
    for (size_t v = 0; v < tree->forest.n_nodes; v++) { // parents come first
        const int32_t up = tree->parent[v];
        const bool small = tree->size[v] <= most || tree->left[v] < 0;
        name[v] = up >= 0 && name[up] >= 0 ? name[up] : small ? (int32_t)out->n_leaves++ : -1;
    }
    for (size_t i = 0; i < problem->n_states; i++) {
        out->leaf[problem->states[i]] = name[tree->leaf[problem->states[i]]];
    }
    TRY(nodes_new(ctx, out->n_leaves, true, out));
    out->forest.impurity = impurity;
done:
    base_free(ctx, name);
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

// Among the rows of a node; with labels, among those that have one.
static void nearest_below(const problem_looks *looks, int32_t v, const int32_t *labels,
                          uint64_t row, neighbours *found)
{
    const size_t width = looks->width;
    const float *x = problem_looks_vector(looks, row);
    for (uint64_t i = looks->begin[v]; i < looks->end[v]; i++) {
        const uint64_t other = looks->row[i];
        if (other == row || (labels && labels[other] < 0)) continue;
        const float *y = problem_looks_vector(looks, other);
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

size_t problem_looks_nearest(const problem_looks *looks, uint64_t row,
                             uint64_t nearest[LOOKS_NEAREST])
{
    neighbours found = {.row = nearest};
    nearest_below(looks, branch_of(looks, row), NULL, row, &found);
    return found.n;
}

// Below a node: the side of its plane that the row is on first, and the other only if the plane is
// nearer than the farthest neighbour so far.
static void search_below(const problem_looks *looks, int32_t v, const int32_t *labels, uint64_t row,
                         neighbours *found)
{
    const size_t width = looks->width;
    if (looks->left[v] < 0) {
        nearest_below(looks, v, labels, row, found);
        return;
    }
    const float *x = problem_looks_vector(looks, row);
    const float *plane = looks->plane + (size_t)v * (width + 1);
    float along = plane[width], norm = 0.0f;
    for (size_t w = 0; w < width; w++) {
        along += x[w] * plane[w];
        norm += plane[w] * plane[w];
    }
    const bool right = along > 0.0f;
    search_below(looks, right ? looks->right[v] : looks->left[v], labels, row, found);
    if (along * along > norm * farthest(found)) return;
    search_below(looks, right ? looks->left[v] : looks->right[v], labels, row, found);
}

size_t problem_looks_nearest_of_all(const problem_looks *looks, uint64_t row,
                                    uint64_t nearest[LOOKS_NEAREST])
{
    neighbours found = {.row = nearest};
    search_below(looks, 0, NULL, row, &found);
    return found.n;
}

// Whether a row is far from those that share its cell: planes cut a few off from what they look
// like, and leave them among others. Further away than two standard deviations of the others, so
// that two strangers in a cell do not hide each other.
static bool is_stranger(const problem_looks *looks, uint64_t row)
{
    enum { FEWEST = 4, DEVIATIONS = 2 };
    const size_t width = looks->width;
    const float *x = problem_looks_vector(looks, row);
    int32_t v = looks->leaf[row];
    while (looks->end[v] - looks->begin[v] <= FEWEST && looks->parent[v] >= 0) v = looks->parent[v];
    double others = 0.0;
    for (uint64_t i = looks->begin[v]; i < looks->end[v]; i++) others += looks->row[i] != row;
    double away = 0.0, scatter = 0.0;
    for (size_t w = 0; w < width; w++) {
        double sum = 0.0, square = 0.0;
        for (uint64_t i = looks->begin[v]; i < looks->end[v]; i++) {
            const double y = (double)problem_looks_vector(looks, looks->row[i])[w] - (double)x[w];
            sum += y; // 0 for the row itself
            square += y * y;
        }
        away += sum * sum / (others * others);
        scatter += (square - sum * sum / others) / others;
    }
    return others > 0.0 && away > DEVIATIONS * DEVIATIONS * scatter;
}

psi_status problem_looks_fill_in(psi_ctx *ctx, const problem_looks *looks, void *values,
                                 size_t bytes)
{
    psi_status status = PSI_OK;
    char *own = NULL, *all = NULL, *const at = values;
    size_t n = 0, total;
    if (looks->foreign == 0) return PSI_OK;
    TRY(base_alloc(ctx, looks->n_references, bytes, &own));
    for (size_t i = 0; i < looks->n_references; i++) {
        const uint64_t row = looks->reference[i];
        if (row < looks->n_rows) memcpy(own + n++ * bytes, at + row * bytes, bytes);
    }
    TRY(base_gather_parts(ctx, own, n * bytes, &all, &total));
    memcpy(at + looks->n_rows * bytes, all, total);
done:
    base_free(ctx, all);
    base_free(ctx, own);
    return status;
}

psi_status problem_looks_labels(psi_ctx *ctx, const problem_looks *looks, const int32_t *labels,
                                int32_t **out)
{
    psi_status status = PSI_OK;
    TRY(base_alloc(ctx, looks->n_rows + looks->foreign, sizeof **out, out));
    memcpy(*out, labels, looks->n_rows * sizeof **out);
    TRY(problem_looks_fill_in(ctx, looks, *out, sizeof **out));
done:
    return status;
}

psi_status problem_looks_agree(psi_ctx *ctx, const cluster_problem *problem,
                               const problem_looks *looks, const int32_t *labels, int32_t *all)
{
    psi_status status = PSI_OK;
    const size_t nodes = looks->forest.n_nodes;
    int64_t *most = NULL; // (2, nodes) the largest label of a leaf, and the largest −label
    TRY(base_alloc(ctx, 2 * nodes, sizeof *most, &most));
    for (size_t v = 0; v < 2 * nodes; v++) most[v] = INT32_MIN;
    for (size_t i = 0; i < problem->n_states; i++) {
        const uint64_t row = problem->states[i];
        int64_t *const of = &most[looks->leaf[row]], label = labels[row];
        if (label > of[0]) of[0] = label;
        if (-label > of[nodes]) of[nodes] = -label;
    }
    TRY(base_maximum(ctx, most, 2 * nodes));
    for (size_t v = nodes; v-- > 0;) {
        if (looks->left[v] >= 0) {
            all[v] = all[looks->left[v]] == all[looks->right[v]] ? all[looks->left[v]] : -1;
        } else {
            all[v] = most[v] == -most[nodes + v] ? (int32_t)most[v] : -1;
        }
    }
done:
    base_free(ctx, most);
    return status;
}

size_t problem_looks_vote(const problem_looks *looks, const int32_t *labels, const int32_t *all,
                          uint64_t row, bool anywhere, int32_t label[LOOKS_LABELS],
                          float share[LOOKS_LABELS])
{
    uint64_t nearest[LOOKS_NEAREST] = {0};
    neighbours found = {.row = nearest};
    size_t n = 0;
    const bool stranger = anywhere || is_stranger(looks, row);
    const int32_t branch = branch_of(looks, row);
    if (!stranger && all[branch] >= 0) {
        label[0] = labels[row];
        share[0] = 1.0f;
        return 1;
    }
    if (stranger) {
        search_below(looks, 0, labels, row, &found);
    } else {
        nearest_below(looks, branch, labels, row, &found);
    }
    const float own = labels[row] >= 0 ? 0.5f : 0.0f; // the label of its cell has half of the votes
    if (labels[row] >= 0) {
        label[n] = labels[row];
        share[n++] = own;
    }
    for (size_t i = 0; i < found.n; i++) { // nearest first; labels beyond the last are left out
        size_t k = 0;
        while (k < n && label[k] != labels[nearest[i]]) k++;
        if (k == n && n == LOOKS_LABELS) continue;
        if (k == n) {
            label[n] = labels[nearest[i]];
            share[n++] = 0.0f;
        }
        share[k] += (1.0f - own) / (float)found.n;
    }
    return n;
}

void problem_looks_free(psi_ctx *ctx, problem_looks *looks)
{
    base_free(ctx, looks->size);
    base_free(ctx, looks->others);
    base_free(ctx, looks->reference);
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
