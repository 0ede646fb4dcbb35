// A few observations that look alike, and unlike all others. Too few to be called a part of the
// looks, they are put into some latent state by what followed them, which may be next to nothing.
#include "verdict/units.h"

#include "base/checked.h"
#include "base/context.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Clumps that are compared with all rows, further ones with those of their branch.
enum { MOST_SEARCHED = 4096, MOST_SCANNED = 64 };
enum { NEIGHBOURS = 64 }; // rows of a branch in which clumps are looked for
enum { SAMPLE = 1001 };   // rows that tell how far a look scatters

// The single-linkage clusters of a branch: what is within ever larger distances of each other.
typedef struct linkage {
    size_t n;
    uint64_t row[NEIGHBOURS];
    double distance[NEIGHBOURS][NEIGHBOURS];
    size_t near[NEIGHBOURS]; // the shortest tree: each row's neighbour on it, and how far that is
    double edge[NEIGHBOURS];
    size_t of[NEIGHBOURS]; // the cluster of every row
} linkage;

static double squared_distance(const problem_looks *looks, const float *from, uint64_t row)
{
    const float *x = looks->vectors + row * looks->width;
    double sum = 0.0;
    for (size_t i = 0; i < looks->width; i++) {
        const double away = (double)x[i] - (double)from[i];
        sum += away * away;
    }
    return sum;
}

// Nats against m rows within an extent, at a gap of all others, being the last m of a tail. Between
// the k outermost draws of an exponential tail and the next one lies E/k, E exponential of the
// tail's scale: the gap is so wide with a probability of exp(−m · gap/scale). Where the scale is
// not known (0), of Π 1/(1 + m · gap/(k · extent)), k < m, of at least three: two may be equal by
// rounding. A gap narrower than the clump is wide says nothing: in many dimensions all distances
// are alike.
static double nats_of_gap(size_t m, double extent, double gap, double scale)
{
    double nats = 0.0;
    if (gap < extent) return 0.0;
    for (size_t k = 1; m > 2 && k < m; k++) {
        nats += log1p((double)m * gap / ((double)k * extent + 1e-300));
    }
    return scale > 0.0 ? fmax(nats, (double)m * gap / scale) : nats;
}

// Prim's algorithm.
static void link_branch(const problem_looks *looks, size_t v, linkage *out)
{
    bool reached[NEIGHBOURS] = {true};
    out->n = looks->end[v] - looks->begin[v];
    for (size_t i = 0; i < out->n; i++) {
        out->row[i] = looks->row[looks->begin[v] + i];
        const float *x = looks->vectors + out->row[i] * looks->width;
        for (size_t j = 0; j <= i; j++) {
            const double away = sqrt(squared_distance(looks, x, out->row[j]));
            out->distance[i][j] = out->distance[j][i] = away;
        }
        out->of[i] = i;
        out->near[i] = 0;
        out->edge[i] = out->distance[i][0];
    }
    for (size_t turn = 1; turn < out->n; turn++) {
        size_t next = 0;
        for (size_t i = 1; i < out->n; i++) {
            if (!reached[i] && (next == 0 || out->edge[i] < out->edge[next])) next = i;
        }
        reached[next] = true;
        for (size_t i = 1; i < out->n; i++) {
            if (reached[i] || out->distance[next][i] >= out->edge[i]) continue;
            out->edge[i] = out->distance[next][i];
            out->near[i] = next;
        }
    }
}

// A cluster: its rows, and the largest distance between two of them.
typedef struct clump {
    size_t m;
    uint64_t row[NEIGHBOURS];
    double extent;
} clump;

static void collect(const linkage *all, size_t of, clump *out)
{
    size_t member[NEIGHBOURS];
    *out = (clump){0};
    for (size_t i = 0; i < all->n; i++) {
        if (all->of[i] != of) continue;
        member[out->m] = i;
        out->row[out->m++] = all->row[i];
        for (size_t j = 0; j < out->m; j++) {
            out->extent = fmax(out->extent, all->distance[i][member[j]]);
        }
    }
}

static bool is_member(const clump *of, uint64_t row)
{
    size_t i = 0;
    while (i < of->m && of->row[i] != row) i++;
    return i < of->m;
}

// The distance between a clump and all other rows. One that is farther from the first of the clump
// by more than the extent is no nearer to the rest.
static double gap_by_scan(const cluster_problem *problem, const problem_looks *looks,
                          const clump *around)
{
    const float *first = looks->vectors + around->row[0] * looks->width;
    double nearest = HUGE_VAL;
    for (size_t i = 0; i < problem->n_states; i++) {
        const uint64_t row = problem->states[i];
        const float *x = looks->vectors + row * looks->width;
        if (sqrt(squared_distance(looks, first, row)) - around->extent >= nearest) continue;
        if (is_member(around, row)) continue;
        for (size_t j = 0; j < around->m; j++) {
            nearest = fmin(nearest, sqrt(squared_distance(looks, x, around->row[j])));
        }
    }
    return nearest;
}

// The same for one with fewer rows than are found near a row, so that one of those is another.
static double gap_by_search(const problem_looks *looks, const clump *around)
{
    double nearest = HUGE_VAL;
    for (size_t j = 0; j < around->m; j++) {
        uint64_t near[LOOKS_NEAREST];
        const size_t n = problem_looks_nearest_of_all(looks, around->row[j], near);
        const float *x = looks->vectors + around->row[j] * looks->width;
        size_t i = 0;
        while (i < n && is_member(around, near[i])) i++;
        if (i < n) nearest = fmin(nearest, sqrt(squared_distance(looks, x, near[i])));
    }
    return nearest;
}

// ---- how far a look scatters --------------------------------------------------------------------

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

static void scatter_free(psi_ctx *ctx, scatter *all)
{
    base_free(ctx, all->scale);
    base_free(ctx, all->first);
    base_free(ctx, all->part);
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *value, size_t n)
{
    qsort(value, n, sizeof *value, ascending);
    return 0.5 * (value[(n - 1) / 2] + value[n / 2]);
}

// Of rows (n), with room for SAMPLE numbers and for the middle (width).
static double scale_of(const problem_looks *looks, const uint64_t *row, size_t n, double *value,
                       float *middle)
{
    const size_t stride = (n + SAMPLE - 1) / SAMPLE;
    size_t count = 0;
    for (size_t w = 0; w < looks->width; w++) {
        count = 0;
        for (size_t i = 0; i < n; i += stride) {
            value[count++] = (double)looks->vectors[row[i] * looks->width + w];
        }
        middle[w] = (float)median(value, count);
    }
    for (size_t i = 0; i < count; i++) {
        value[i] = sqrt(squared_distance(looks, middle, row[i * stride]));
    }
    return median(value, count) / log(2.0);
}

// The rows of every kind side by side, where first says.
static void sort_rows(judging *run, const problem_looks *looks, size_t kinds, scatter *out,
                      uint64_t *at, uint64_t *row)
{
    const cluster_problem *problem = run->problem;
    const int32_t *labels = run->result->labels;
    for (size_t turn = 0; turn < 2; turn++) { // counted first
        for (size_t i = 0; i < problem->n_states; i++) {
            const uint64_t one = problem->states[i];
            if (labels[one] < 0) continue;
            const size_t part = (size_t)out->part[looks->leaf[one]];
            const size_t kind = part * out->n_labels + (size_t)labels[one];
            if (turn == 0) {
                out->first[kind + 1]++;
            } else {
                row[at[kind]++] = one;
            }
        }
        for (size_t i = 0; turn == 0 && i < kinds; i++) {
            at[i] = out->first[i];
            out->first[i + 1] += out->first[i];
        }
    }
}

static psi_status scatter_new(judging *run, const problem_looks *looks, scatter *out)
{
    psi_status status = PSI_OK;
    const size_t n = run->problem->n_states, k = run->result->n_latent;
    uint64_t *row = NULL, *at = NULL;
    double *value = NULL, *all = NULL;
    float *middle = NULL;
    size_t parts, kinds, known = 0;
    *out = (scatter){.n_labels = k};
    TRY(verdict_find_parts(run->ctx, looks, &out->part, &parts));
    if (parts > n / k) { // that many are hardly of several labels: all are one then
        memset(out->part, 0, looks->forest.n_nodes * sizeof *out->part);
        parts = 1;
    }
    kinds = parts * k;
    TRY(base_alloc_zero(run->ctx, kinds + 1, sizeof *out->first, &out->first));
    TRY(base_alloc_zero(run->ctx, kinds, sizeof *out->scale, &out->scale));
    TRY(base_alloc(run->ctx, kinds, sizeof *at, &at));
    TRY(base_alloc(run->ctx, n, sizeof *row, &row));
    TRY(base_alloc(run->ctx, SAMPLE, sizeof *value, &value));
    TRY(base_alloc(run->ctx, looks->width, sizeof *middle, &middle));
    TRY(base_alloc(run->ctx, kinds, sizeof *all, &all));
    sort_rows(run, looks, kinds, out, at, row);
    for (size_t i = 0; i < kinds; i++) {
        const size_t rows = out->first[i + 1] - out->first[i];
        if (rows == 0) continue;
        out->scale[i] = scale_of(looks, row + out->first[i], rows, value, middle);
        if (rows >= UNITS_FEW) all[known++] = out->scale[i];
    }
    if (known > 0) out->usual = median(all, known);
done:
    base_free(run->ctx, all);
    base_free(run->ctx, middle);
    base_free(run->ctx, value);
    base_free(run->ctx, row);
    base_free(run->ctx, at);
    if (status != PSI_OK) scatter_free(run->ctx, out);
    return status;
}

// ---- what is asked of a clump -------------------------------------------------------------------

typedef struct clumps {
    judging *run;
    const problem_looks *looks;
    const double *needed;
    uint64_t *rows;       // (K)
    uint64_t *transition; // (n_rows) the one that begins there
    scatter scatter;
    double safe;
    size_t searched, scanned, doubtful;
} clumps;

// Whether all rows have one label, which others have, too: the label, or −1.
static int32_t label_of(const clumps *all, const clump *of)
{
    const int32_t *labels = all->run->result->labels, label = labels[of->row[0]];
    for (size_t i = 0; i < of->m; i++) {
        if (labels[of->row[i]] != label) return -1;
    }
    return label >= 0 && all->rows[label] > of->m ? label : -1;
}

// How far those scatter that a clump would belong to, or what looks usually scatter if that is
// less: a latent state may have several. 0: not known.
static double scale_around(const clumps *all, const clump *of, int32_t label)
{
    const scatter *known = &all->scatter;
    const size_t part = (size_t)known->part[all->looks->leaf[of->row[0]]];
    const size_t kind = part * known->n_labels + (size_t)label;
    const bool few = known->first[kind + 1] - known->first[kind] <= 2 * of->m;
    if (few || known->usual == 0.0) return few ? known->usual : known->scale[kind];
    return fmin(known->scale[kind], known->usual);
}

// How often an action was taken in a clump.
static uint64_t visits_of(const clumps *all, const clump *of, size_t action)
{
    const psi_trajectories *data = all->run->problem->data;
    uint64_t n = 0;
    for (size_t i = 0; i < of->m; i++) {
        const uint64_t t = all->transition[of->row[i]];
        n += t < data->n_transitions && (size_t)data->actions[t] == action;
    }
    return n;
}

static psi_status ask(clumps *all, const clump *of, double gap)
{
    psi_status status = PSI_OK;
    judging *run = all->run;
    const size_t actions = run->problem->data->n_actions;
    const int32_t label = label_of(all, of), first = run->result->has_terminal ? 1 : 0;
    size_t open = 0; // actions
    if (label < first) return PSI_OK;
    const double scale = scale_around(all, of, label);
    const double *needed = all->needed + (size_t)(label - first) * actions;
    if (nats_of_gap(of->m, of->extent, gap, scale) < all->safe) return PSI_OK;
    TRY(base_cancelled(run->ctx));
    for (size_t a = 0; a < actions; a++) {
        open += run->taken[a] && (double)visits_of(all, of, a) < needed[a];
    }
    if (open == 0) goto done;
    if (of->m < LOOKS_NEAREST && all->searched++ < MOST_SEARCHED) {
        gap = gap_by_search(all->looks, of);
    } else if (of->m >= LOOKS_NEAREST && all->scanned++ < MOST_SCANNED) {
        gap = gap_by_scan(run->problem, all->looks, of);
    }
    if (nats_of_gap(of->m, of->extent, gap, scale) < all->safe) goto done;
    for (size_t a = 0; a < actions; a++) {
        const uint64_t n = visits_of(all, of, a);
        if (!run->taken[a] || (double)n >= needed[a]) continue;
        TRY(verdict_doubt(
            run,
            (psi_doubt){.kind = PSI_DOUBT_RARE, .state = label, .other = (int32_t)a, .visits = n}));
    }
    all->doubtful += of->m;
done:
    return status;
}

// At least as far as from the rows of a branch to all others: to some of those beside it.
static double gap_beside(const clumps *all, size_t v, const clump *of)
{
    const problem_looks *looks = all->looks;
    const size_t up = (size_t)looks->parent[v];
    const int32_t left = looks->left[up];
    const size_t beside = (size_t)(left == (int32_t)v ? looks->right[up] : left);
    const uint64_t end = base_min(looks->end[beside], looks->begin[beside] + NEIGHBOURS);
    double nearest = HUGE_VAL;
    for (uint64_t i = looks->begin[beside]; i < end; i++) {
        const float *x = looks->vectors + looks->row[i] * looks->width;
        for (size_t j = 0; j < of->m; j++) {
            nearest = fmin(nearest, sqrt(squared_distance(looks, x, of->row[j])));
        }
    }
    return nearest;
}

// From the shortest edge on, both ends of an edge are clusters that stand apart by its length; in
// the end, the whole branch is one.
static psi_status ask_branch(clumps *all, size_t v, linkage *branch)
{
    psi_status status = PSI_OK;
    const size_t most = base_min(UNITS_FEW + 2 * all->looks->width, NEIGHBOURS);
    bool used[NEIGHBOURS] = {true};
    for (size_t turn = 1; turn < branch->n; turn++) {
        size_t i = 0;
        for (size_t j = 1; j < branch->n; j++) {
            if (!used[j] && (i == 0 || branch->edge[j] < branch->edge[i])) i = j;
        }
        used[i] = true;
        const size_t ends[] = {branch->of[i], branch->of[branch->near[i]]};
        for (size_t e = 0; e < 2; e++) {
            clump one;
            collect(branch, ends[e], &one);
            if (one.m < most) TRY(ask(all, &one, branch->edge[i]));
        }
        for (size_t j = 0; j < branch->n; j++) {
            if (branch->of[j] == ends[0]) branch->of[j] = ends[1];
        }
    }
    if (branch->n < most && all->looks->parent[v] >= 0) {
        clump whole;
        collect(branch, branch->of[0], &whole);
        TRY(ask(all, &whole, gap_beside(all, v, &whole)));
    }
done:
    return status;
}

psi_status verdict_ask_clumps(judging *run, const problem_looks *looks, const double *needed,
                              size_t *doubtful)
{
    psi_status status = PSI_OK;
    const cluster_problem *problem = run->problem;
    clumps all = {.run = run, .looks = looks, .needed = needed};
    linkage *branch = NULL;
    *doubtful = 0;
    TRY(base_alloc(run->ctx, 1, sizeof *branch, &branch));
    TRY(scatter_new(run, looks, &all.scatter));
    TRY(base_alloc_zero(run->ctx, run->result->n_latent, sizeof *all.rows, &all.rows));
    TRY(base_alloc(run->ctx, problem->n_rows, sizeof *all.transition, &all.transition));
    for (size_t i = 0; i < problem->n_rows; i++) all.transition[i] = UINT64_MAX;
    for (size_t t = 0; t < problem->data->n_transitions; t++) all.transition[problem->row[t]] = t;
    for (size_t i = 0; i < problem->n_states; i++) {
        const int32_t label = run->result->labels[problem->states[i]];
        if (label >= 0) all.rows[label]++;
    }
    all.safe = refine_safe_nats((double)problem->n_states); // a cluster for every row
    for (size_t v = 1; v < looks->forest.n_nodes; v++) {
        const size_t up = looks->parent[v] < 0 ? v : (size_t)looks->parent[v];
        if (looks->end[v] - looks->begin[v] > NEIGHBOURS) continue;
        if (up != v && looks->end[up] - looks->begin[up] <= NEIGHBOURS) continue;
        link_branch(looks, v, branch);
        TRY(ask_branch(&all, v, branch));
    }
    *doubtful = all.doubtful;
done:
    base_free(run->ctx, all.transition);
    base_free(run->ctx, all.rows);
    scatter_free(run->ctx, &all.scatter);
    base_free(run->ctx, branch);
    return status;
}
