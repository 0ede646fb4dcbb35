// A tree over vectors: a set is halved by two means, and the halves again, down to cells.
#include "problem/looks.h"

#include "base/checked.h"
#include "base/comm.h"
#include "base/context.h"
#include "base/progress.h"
#include "base/random.h"

#include <math.h>
#include <string.h>

// Observations of a cell. A cell has to be small beside what a latent state looks like, and is
// never asked alone: its neighbours in the tree speak with it (4 and 16 give the same partitions).
// Beyond MOST_GROWN observations the tree grows from so many of them, and the others fall into its
// cells: what a cell looks like is known long before.
enum { CELL = 8, MOST_GROWN = 1 << 18 };
enum { LOOKS_STREAM = 0x6c6f6f6b };

// ---- two means ----------------------------------------------------------------------------------

typedef struct growing {
    psi_ctx *ctx;
    size_t width;
    const problem_looks *looks;
    uint64_t *row;      // (n) the rows, those of a node side by side
    uint64_t *other;    // (n) room for sorting them
    uint8_t *side;      // (n)
    double *mean, *sum; // (width)
    float *direction;   // (width)
    base_progress progress;
    size_t placed; // rows that are in their cells
} growing;

psi_status problem_looks_standardise(psi_ctx *ctx, const cluster_problem *problem, size_t width,
                                     float *vectors, float *deviation)
{
    psi_status status = PSI_OK;
    const double n = (double)problem->whole.n_states;
    double *mean = NULL, *square = NULL; // (width)
    TRY(base_alloc_zero(ctx, width, sizeof *mean, &mean));
    TRY(base_alloc_zero(ctx, width, sizeof *square, &square));
    TRY(base_take_turn(ctx, mean, width * sizeof *mean));
    for (size_t i = 0; i < problem->n_states; i++) {
        const float *x = vectors + problem->states[i] * width;
        for (size_t w = 0; w < width; w++) mean[w] += (double)x[w];
    }
    TRY(base_end_turn(ctx, mean, width * sizeof *mean));
    for (size_t w = 0; w < width; w++) mean[w] /= n;
    TRY(base_take_turn(ctx, square, width * sizeof *square));
    for (size_t i = 0; i < problem->n_states; i++) {
        const float *x = vectors + problem->states[i] * width;
        for (size_t w = 0; w < width; w++) {
            const double away = (double)x[w] - mean[w];
            square[w] += away * away;
        }
    }
    TRY(base_end_turn(ctx, square, width * sizeof *square));
    for (size_t w = 0; w < width; w++) {
        const double scale = square[w] > 0.0 ? sqrt(n / square[w]) : 0.0;
        if (deviation) deviation[w] = square[w] > 0.0 ? (float)(1.0 / scale) : 0.0f;
        square[w] = scale;
    }
    for (size_t i = 0; i < problem->n_rows; i++) {
        float *x = vectors + i * width;
        for (size_t w = 0; w < width; w++) x[w] = (float)(((double)x[w] - mean[w]) * square[w]);
    }
done:
    base_free(ctx, square);
    base_free(ctx, mean);
    return status;
}

static const float *vector_of(const growing *grow, size_t i)
{
    return problem_looks_vector(grow->looks, grow->row[i]);
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
        const float *x = vector_of(grow, i);
        for (size_t w = 0; w < width; w++) grow->mean[w] += (double)x[w];
    }
    for (size_t w = 0; w < width; w++) grow->mean[w] /= (double)(end - begin);
    for (size_t i = begin; i < end; i += stride) {
        const float *x = vector_of(grow, i);
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
            const float *x = vector_of(grow, i);
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
        const float *x = vector_of(grow, i);
        float along = plane[width];
        for (size_t w = 0; w < width; w++) along += x[w] * plane[w];
        const uint8_t side = along > 0.0f;
        changed += side != grow->side[i];
        grow->side[i] = side;
        *right += side;
    }
    return changed;
}

// Moves the plane between two means into the widest gap of the middle half of the way from one to
// the other, so that it cuts through as few as may be of what looks alike. Where there is no empty
// bin in the middle it stays. square: of the distance between the means.
static void move_into_gap(growing *grow, size_t begin, size_t end, double square, float *plane)
{
    enum { BINS = 32 };
    const size_t width = grow->width;
    size_t count[BINS] = {0}, best = 0, best_end = 0;
    // the normal is the difference of the means, so that these are at ± square/2 along it
    const double half = 0.25 * square;
    for (size_t i = begin; i < end; i++) {
        const float *x = vector_of(grow, i);
        float along = plane[width];
        for (size_t w = 0; w < width; w++) along += x[w] * plane[w];
        const double bin = ((double)along / half + 1.0) * (0.5 * BINS);
        if (bin >= 0.0 && bin < BINS) count[(size_t)bin]++;
    }
    for (size_t b = 0, run = 0; b < BINS; b++) {
        run = count[b] ? 0 : run + 1;
        if (run > best) best = run, best_end = b + 1;
    }
    if (best == 0) return;
    const double middle = (double)best_end - 0.5 * (double)best;
    plane[width] -= (float)((middle / (0.5 * BINS) - 1.0) * half);
}

// Two means of a set, started from the two halves along its direction; the plane between them.
static bool halve(growing *grow, size_t begin, size_t end, float *plane, size_t *middle)
{
    enum { TURNS = 10 };
    const size_t width = grow->width, n = end - begin;
    double square = 0.0; // of the distance between the means
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
            const float *x = vector_of(grow, i);
            for (size_t w = 0; w < width; w++) grow->sum[w] += (double)x[w];
        }
        for (size_t w = 0; w < width; w++) {
            const double a = grow->sum[w] / (double)right;
            const double b = (grow->mean[w] * (double)n - grow->sum[w]) / (double)(n - right);
            plane[w] = (float)(a - b);
            offset -= 0.5 * (a - b) * (a + b);
        }
        plane[width] = (float)offset;
        square = 0.0;
        for (size_t w = 0; w < width; w++) square += (double)plane[w] * (double)plane[w];
        if (divide(grow, begin, end, plane, &right) == 0) break;
    }
    if (right == 0 || right == n) return false;
    if (square > 0.0) {
        move_into_gap(grow, begin, end, square, plane);
        divide(grow, begin, end, plane, &right);
        if (right == 0 || right == n) return false;
    }
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
            const float *x = vector_of(grow, i);
            float along = 0.0f;
            for (size_t w = 0; w < width; w++) along += x[w] * plane[w];
            mean[half] += (double)along / n;
            deviation[half] += (double)along * (double)along / n;
        }
        deviation[half] = sqrt(fmax(0.0, deviation[half] - mean[half] * mean[half]));
    }
    return (float)((mean[1] - mean[0]) / fmax(deviation[0] + deviation[1], 1e-30));
}

// ---- growing ------------------------------------------------------------------------------------

// One state at random of each of n parts of equal size: what repeats at a stride is not missed. row
// gets those that this process has seen; returns how many.
static size_t sample_states(const cluster_problem *problem, size_t n, uint64_t *row)
{
    base_random random = base_random_stream(0, LOOKS_STREAM, 0);
    const size_t all = problem->whole.n_states, first = problem->whole.first_state;
    size_t own = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t begin = all * i / n, end = all * (i + 1) / n;
        const size_t at = begin + base_random_below(&random, (uint32_t)(end - begin));
        if (at >= first && at - first < problem->n_states) {
            row[own++] = problem->states[at - first];
        }
    }
    return own;
}

// References are those of all processes, of which own (n) are this one's.
static psi_status refer_to(psi_ctx *ctx, const uint64_t *own, size_t n, problem_looks *looks)
{
    psi_status status = PSI_OK;
    const size_t ranks = (size_t)base_ranks(ctx), width = looks->width;
    float *vectors = NULL;
    size_t *counts = NULL, total = 0, bytes;
    base_free(ctx, looks->reference);
    base_free(ctx, looks->others);
    looks->reference = NULL;
    looks->others = NULL;
    TRY(base_alloc(ctx, ranks, sizeof *counts, &counts));
    TRY(base_gather(ctx, &n, sizeof n, counts));
    for (size_t r = 0; r < ranks; r++) total += counts[r];
    TRY(base_alloc(ctx, total, sizeof *looks->reference, &looks->reference));
    for (size_t r = 0, i = 0; r < ranks; r++) {
        for (size_t k = 0; k < counts[r]; k++, i++) {
            looks->reference[i] = r == (size_t)base_rank(ctx) ? own[k] : looks->n_rows + i;
        }
    }
    looks->n_references = total;
    looks->foreign = ranks > 1 ? total : 0;
    if (looks->foreign == 0) goto done;
    TRY(base_alloc(ctx, n, width * sizeof *vectors, &vectors));
    for (size_t k = 0; k < n; k++) {
        memcpy(vectors + k * width, looks->vectors + own[k] * width, width * sizeof *vectors);
    }
    TRY(base_gather_parts(ctx, vectors, n * width * sizeof *vectors, &looks->others, &bytes));
done:
    base_free(ctx, vectors);
    base_free(ctx, counts);
    return status;
}

static int32_t cell_of(const problem_looks *looks, uint64_t row)
{
    const size_t width = looks->width;
    const float *x = problem_looks_vector(looks, row);
    int32_t v = 0;
    while (looks->left[v] >= 0) {
        const float *plane = looks->plane + (size_t)v * (width + 1);
        float along = plane[width];
        for (size_t w = 0; w < width; w++) along += x[w] * plane[w];
        v = along > 0.0f ? looks->right[v] : looks->left[v];
    }
    return v;
}

// The references of every node side by side.
static psi_status sort_references(psi_ctx *ctx, problem_looks *looks)
{
    psi_status status = PSI_OK;
    const size_t n = looks->n_references;
    uint64_t *begin = looks->begin, *end = looks->end;
    base_free(ctx, looks->row);
    looks->row = NULL;
    TRY(base_resize(ctx, looks->n_rows + looks->foreign, sizeof *looks->leaf, &looks->leaf));
    TRY(base_alloc(ctx, n, sizeof *looks->row, &looks->row));
    for (size_t v = 0; v < looks->forest.n_nodes; v++) end[v] = 0; // how many are below it, first
    for (size_t i = 0; i < n; i++) {
        const uint64_t row = looks->reference[i];
        looks->leaf[row] = cell_of(looks, row);
        for (int32_t v = looks->leaf[row]; v >= 0; v = looks->parent[v]) end[v]++;
    }
    begin[0] = 0;
    for (size_t v = 0; v < looks->forest.n_nodes; v++) { // children come after their parents
        if (looks->left[v] < 0) continue;
        begin[looks->left[v]] = begin[v];
        begin[looks->right[v]] = begin[v] + end[looks->left[v]];
    }
    for (size_t v = 0; v < looks->forest.n_nodes; v++) {
        end[v] = looks->left[v] < 0 ? begin[v] : begin[v] + end[v];
    }
    for (size_t i = 0; i < n; i++) {
        const uint64_t row = looks->reference[i];
        looks->row[end[looks->leaf[row]]++] = row;
    }
done:
    return status;
}

// The cells of states that are no references, and how many states are below every node.
static psi_status place_states(psi_ctx *ctx, const cluster_problem *problem, problem_looks *looks)
{
    const bool sampled = problem_looks_are_sampled(problem, looks);
    const size_t nodes = looks->forest.n_nodes;
    for (size_t v = 0; v < nodes; v++) looks->size[v] = 0;
    for (size_t i = 0; i < problem->n_states; i++) {
        const uint64_t row = problem->states[i];
        if (sampled) looks->leaf[row] = cell_of(looks, row);
        looks->size[looks->leaf[row]]++;
    }
    for (size_t v = nodes; v-- > 1;) looks->size[looks->parent[v]] += looks->size[v];
    return base_sum_sizes(ctx, looks->size, nodes);
}

static psi_status growing_new(psi_ctx *ctx, size_t n, problem_looks *looks, growing *out)
{
    psi_status status = PSI_OK;
    const size_t width = looks->width;
    *out = (growing){.ctx = ctx, .width = width, .looks = looks};
    TRY(base_alloc(ctx, n, sizeof *out->other, &out->other));
    TRY(base_alloc(ctx, n, sizeof *out->side, &out->side));
    TRY(base_alloc(ctx, width, sizeof *out->mean, &out->mean));
    TRY(base_alloc(ctx, width, sizeof *out->sum, &out->sum));
    TRY(base_alloc(ctx, width, sizeof *out->direction, &out->direction));
    out->row = looks->row;
    out->progress = base_progress_start(ctx, "comparing looks", n);
done:
    return status;
}

static void growing_free(growing *grow)
{
    base_free(grow->ctx, grow->direction);
    base_free(grow->ctx, grow->sum);
    base_free(grow->ctx, grow->mean);
    base_free(grow->ctx, grow->side);
    base_free(grow->ctx, grow->other);
}

// Room for so many nodes in all.
static psi_status nodes_resize(psi_ctx *ctx, size_t room, problem_looks *looks)
{
    psi_status status = PSI_OK;
    TRY(base_resize(ctx, room, sizeof *looks->left, &looks->left));
    TRY(base_resize(ctx, room, sizeof *looks->right, &looks->right));
    TRY(base_resize(ctx, room, sizeof *looks->parent, &looks->parent));
    TRY(base_resize(ctx, room, sizeof *looks->begin, &looks->begin));
    TRY(base_resize(ctx, room, sizeof *looks->end, &looks->end));
    TRY(base_resize(ctx, room, sizeof *looks->size, &looks->size));
    TRY(base_resize(ctx, room, sizeof *looks->gap, &looks->gap));
    TRY(base_resize(ctx, room, (looks->width + 1) * sizeof *looks->plane, &looks->plane));
    looks->forest.left = looks->left;
    looks->forest.right = looks->right;
done:
    return status;
}

static void add_node(problem_looks *looks, int32_t parent, uint64_t begin, uint64_t end)
{
    const size_t v = looks->forest.n_nodes++;
    looks->left[v] = looks->right[v] = -1;
    looks->parent[v] = parent;
    looks->begin[v] = begin;
    looks->end[v] = end;
    looks->gap[v] = 0.0f;
}

// Halves a leaf, and its halves again, down to cells; nodes that are added come last.
static psi_status grow_below(growing *grow, size_t leaf, size_t room, problem_looks *looks)
{
    psi_status status = PSI_OK;
    const size_t before = looks->forest.n_nodes;
    for (size_t v = leaf; v < looks->forest.n_nodes; v = v == leaf ? before : v + 1) {
        const uint64_t begin = looks->begin[v], end = looks->end[v];
        float *plane = looks->plane + v * (looks->width + 1);
        size_t middle;
        TRY(base_progress_at(&grow->progress, grow->placed));
        if (looks->forest.n_nodes + 2 <= room && end - begin > CELL &&
            halve(grow, begin, end, plane, &middle)) {
            looks->gap[v] = gap_between(grow, begin, middle, end, plane);
            looks->left[v] = (int32_t)looks->forest.n_nodes;
            looks->right[v] = (int32_t)looks->forest.n_nodes + 1;
            add_node(looks, (int32_t)v, begin, middle);
            add_node(looks, (int32_t)v, middle, end);
            continue;
        }
        grow->placed += end - begin;
        for (uint64_t i = begin; i < end; i++) looks->leaf[grow->row[i]] = (int32_t)v;
    }
done:
    return status;
}

// When the tree has grown.
static void end_growing(growing *grow, problem_looks *looks)
{
    looks->n_leaves = 0;
    for (size_t v = 0; v < looks->forest.n_nodes; v++) looks->n_leaves += looks->left[v] < 0;
    base_progress_end(&grow->progress, grow->placed);
}

psi_status problem_looks_tree(psi_ctx *ctx, const cluster_problem *problem, size_t width,
                              float *vectors, problem_looks *out)
{
    psi_status status = PSI_OK;
    const size_t n = base_min(problem->whole.n_states, MOST_GROWN);
    const size_t room = base_max(4 * (n / CELL) + 64, 64);
    uint64_t *own = NULL;
    growing grow = {0};
    *out = (problem_looks){
        .width = width, .vectors = vectors, .n_rows = problem->n_rows, .forest = {.looks = true}};
    TRY(problem_looks_leaves_new(ctx, problem, out));
    TRY(nodes_resize(ctx, room, out));
    TRY(base_alloc(ctx, base_min(n, problem->n_states), sizeof *own, &own));
    TRY(refer_to(ctx, own, sample_states(problem, n, own), out));
    add_node(out, -1, 0, n);
    TRY(sort_references(ctx, out));
    TRY(growing_new(ctx, n, out, &grow));
    TRY(grow_below(&grow, 0, room, out));
    end_growing(&grow, out);
    TRY(place_states(ctx, problem, out));
done:
    growing_free(&grow);
    base_free(ctx, own);
    if (status != PSI_OK) problem_looks_free(ctx, out);
    return status;
}

// ---- deeper at borders --------------------------------------------------------------------------

// Leaves at borders: in no group, or with leaves of another group below their grandparent. Returns
// how many states they have.
static psi_status find_borders(psi_ctx *ctx, const problem_looks *looks, const int32_t *group,
                               uint8_t *at_border, size_t *rows)
{
    psi_status status = PSI_OK;
    enum { MIXED = -1 };
    int32_t *below = NULL; // the group of all leaves below a node
    TRY(base_alloc(ctx, looks->forest.n_nodes, sizeof *below, &below));
    for (size_t v = looks->forest.n_nodes; v-- > 0;) {
        if (looks->left[v] < 0)
            below[v] = group[v] < 0 ? MIXED : group[v];
        else
            below[v] =
                below[looks->left[v]] == below[looks->right[v]] ? below[looks->left[v]] : MIXED;
    }
    *rows = 0;
    for (size_t v = 0; v < looks->forest.n_nodes; v++) {
        int32_t up = (int32_t)v;
        for (int i = 0; i < 2 && looks->parent[up] >= 0; i++) up = looks->parent[up];
        at_border[v] = looks->left[v] < 0 && below[up] == MIXED;
        if (at_border[v]) *rows += looks->size[v];
    }
done:
    base_free(ctx, below);
    return status;
}

// The states of leaves at borders are references, too: all, or, where there are very many, each of
// so many in their order.
static psi_status refer_to_borders(psi_ctx *ctx, const cluster_problem *problem,
                                   const uint8_t *at_border, problem_looks *looks)
{
    psi_status status = PSI_OK;
    const size_t n = problem->n_states;
    uint8_t *is_reference = NULL; // (n_rows)
    uint64_t *own = NULL;
    size_t all = 0, number, kept = 0;
    TRY(base_alloc_zero(ctx, problem->n_rows, 1, &is_reference));
    TRY(base_alloc(ctx, n, sizeof *own, &own));
    for (size_t i = 0; i < looks->n_references; i++) {
        if (looks->reference[i] < looks->n_rows) is_reference[looks->reference[i]] = 1;
    }
    for (size_t i = 0; i < n; i++) {
        const uint64_t row = problem->states[i];
        all += !is_reference[row] && at_border[looks->leaf[row]];
    }
    TRY(base_sum_before(ctx, all, &number));
    TRY(base_sum_sizes(ctx, &all, 1));
    const size_t stride = 1 + all / (MOST_GROWN + 1);
    for (size_t i = 0; i < n; i++) {
        const uint64_t row = problem->states[i];
        const bool wanted = !is_reference[row] && at_border[looks->leaf[row]];
        if (is_reference[row] || (wanted && number % stride == 0)) own[kept++] = row;
        number += wanted;
    }
    TRY(refer_to(ctx, own, kept, looks));
    TRY(sort_references(ctx, looks));
done:
    base_free(ctx, own);
    base_free(ctx, is_reference);
    return status;
}

psi_status problem_looks_deepen(psi_ctx *ctx, const cluster_problem *problem, const int32_t *group,
                                problem_looks *looks)
{
    psi_status status = PSI_OK;
    const size_t before = looks->forest.n_nodes;
    size_t rows, room;
    uint8_t *at_border = NULL;
    growing grow = {0};
    TRY(base_alloc(ctx, before, sizeof *at_border, &at_border));
    TRY(find_borders(ctx, looks, group, at_border, &rows));
    TRY(refer_to_borders(ctx, problem, at_border, looks));
    room = before + 4 * (base_min(rows, MOST_GROWN) / CELL) + 64;
    TRY(nodes_resize(ctx, room, looks));
    TRY(growing_new(ctx, looks->n_references, looks, &grow));
    for (size_t v = 0; v < before; v++) {
        if (at_border[v]) TRY(grow_below(&grow, v, room, looks));
    }
    end_growing(&grow, looks);
    TRY(place_states(ctx, problem, looks));
done:
    growing_free(&grow);
    base_free(ctx, at_border);
    return status;
}

bool problem_looks_are_sampled(const cluster_problem *problem, const problem_looks *looks)
{
    return looks->plane && problem->whole.n_states > MOST_GROWN;
}
