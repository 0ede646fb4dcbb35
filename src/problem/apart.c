// Looks that stand apart. Where observations are a few things seen with noise, each of these is a
// clump with empty space around it, and as good as a distinct observation: no cell of a clump is
// of another latent state than the rest of it, unless what follows says so.
#include "problem/looks.h"

#include "base/checked.h"
#include "base/context.h"
#include "base/disjoint.h"
#include "base/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Rows that the clumps are found from, and numbers that are compared at most, about two seconds'
// worth: with fewer rows than FEWEST, clumps would be missed.
enum { MOST_SAMPLED = 4096, FEWEST_SAMPLED = 512 };
static const double MOST_COMPARED = 1e10;
static const double ALLOWED = 0.01; // probability of a gap where there is none
enum { APART_STREAM = 0x61706172 };

typedef struct sample {
    const cluster_problem *problem;
    const float *vectors; // (n_rows, width)
    const float *weight;  // (width) of each number; NULL: 1
    size_t width, n;
    uint64_t *row;   // (n)
    float *number;   // (width, n) side by side, so that a row is compared with all at once
    float *distance; // (n) squared, from the row that was asked last
    float *edge;     // (n) of the shortest tree through all: the step that led to a row, squared
    int32_t *near;   // (n) where that step began
} sample;

static void sample_free(psi_ctx *ctx, sample *all)
{
    base_free(ctx, all->row);
    base_free(ctx, all->number);
    base_free(ctx, all->distance);
    base_free(ctx, all->edge);
    base_free(ctx, all->near);
}

static float weight_of(const sample *all, size_t w)
{
    return all->weight ? all->weight[w] : 1.0f;
}

// One row of each of n parts of the data, so that no rhythm of episodes decides.
static psi_status sample_new(psi_ctx *ctx, const cluster_problem *problem, size_t width,
                             const float *vectors, const float *weight, size_t n, sample *out)
{
    psi_status status = PSI_OK;
    base_random random = base_random_stream(0, APART_STREAM, 0);
    *out =
        (sample){.problem = problem, .vectors = vectors, .weight = weight, .width = width, .n = n};
    TRY(base_alloc(ctx, n, sizeof *out->row, &out->row));
    TRY(base_alloc(ctx, n, width * sizeof *out->number, &out->number));
    TRY(base_alloc(ctx, n, sizeof *out->distance, &out->distance));
    TRY(base_alloc(ctx, n, sizeof *out->edge, &out->edge));
    TRY(base_alloc(ctx, n, sizeof *out->near, &out->near));
    for (size_t i = 0; i < n; i++) {
        const double at = ((double)i + base_random_uniform(&random)) / (double)n;
        out->row[i] = problem->states[(size_t)(at * (double)problem->n_states)];
        for (size_t w = 0; w < width; w++) {
            out->number[w * n + i] = vectors[out->row[i] * width + w] * weight_of(out, w);
        }
    }
done:
    return status;
}

// Squared distances of a vector from all of the sample.
static void compare(sample *all, const float *x)
{
    float *distance = all->distance;
    memset(distance, 0, all->n * sizeof *distance);
    for (size_t w = 0; w < all->width; w++) {
        const float *number = all->number + w * all->n, at = x[w] * weight_of(all, w);
        for (size_t i = 0; i < all->n; i++) {
            distance[i] += (number[i] - at) * (number[i] - at);
        }
    }
}

// Prim's algorithm.
static psi_status link(psi_ctx *ctx, sample *all)
{
    psi_status status = PSI_OK;
    uint8_t *reached = NULL;
    size_t last = 0;
    TRY(base_alloc_zero(ctx, all->n, sizeof *reached, &reached));
    for (size_t i = 0; i < all->n; i++) all->edge[i] = HUGE_VALF;
    all->edge[0] = 0.0f;
    all->near[0] = 0;
    for (size_t turn = 1; turn < all->n; turn++) {
        size_t next = 0;
        float nearest = HUGE_VALF;
        TRY(base_cancelled(ctx));
        reached[last] = 1;
        compare(all, all->vectors + all->row[last] * all->width);
        for (size_t i = 0; i < all->n; i++) {
            if (reached[i]) continue;
            if (all->distance[i] < all->edge[i]) {
                all->edge[i] = all->distance[i];
                all->near[i] = (int32_t)last;
            }
            if (all->edge[i] < nearest) nearest = all->edge[i], next = i;
        }
        last = next;
    }
done:
    base_free(ctx, reached);
    return status;
}

static int ascending(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

// Nats against the step after the i-th being so much longer by chance. Of n steps with an
// exponential tail, spacings times the number of steps beyond them are draws of one scale, so
// that the one above the i-th exceeds x times the sum of those below it, BELOW of them, with a
// probability of (1 + x)^−BELOW. Heavier tails are no more likely to, since their spacings grow.
static double nats_of_gap(const float *step, size_t n, size_t i)
{
    enum { BELOW = 32 };
    double below = 0.0;
    if (i < BELOW) return 0.0;
    for (size_t j = i; j > i - BELOW; j--) {
        below += (double)(n - j) * ((double)step[j] - (double)step[j - 1]);
    }
    const double gap = (double)(n - i - 1) * ((double)step[i + 1] - (double)step[i]);
    return gap > 0.0 ? BELOW * log1p(gap / (below + 1e-300)) : 0.0;
}

// The distance within which rows are of one clump, squared; 0: there is none. Steps within clumps
// end where a gap begins that chance does not make: the next longer ones lead to other clumps.
// Clumps of fewer than `visits` rows on average are too many.
static psi_status find_reach(psi_ctx *ctx, const sample *all, size_t visits, float *reach)
{
    psi_status status = PSI_OK;
    const size_t n = all->n - 1, most = n / visits;
    double best = log((double)most / ALLOWED);
    float *step = NULL;
    *reach = 0.0f;
    TRY(base_alloc(ctx, n, sizeof *step, &step));
    for (size_t i = 0; i < n; i++) step[i] = sqrtf(all->edge[i + 1]);
    qsort(step, n, sizeof *step, ascending);
    for (size_t i = n - most; i + 1 < n; i++) {
        const double nats = nats_of_gap(step, n, i);
        if (nats < best) continue;
        best = nats;
        *reach = 0.25f * (step[i] + step[i + 1]) * (step[i] + step[i + 1]);
    }
done:
    base_free(ctx, step);
    return status;
}

// The clump of a row, −1: it is out of reach. Clumps that a row is within reach of are one.
static int32_t clump_of(sample *all, const float *x, float reach, int32_t *to)
{
    int32_t first = -1;
    compare(all, x);
    for (size_t i = 0; i < all->n; i++) {
        if (all->distance[i] > reach) continue;
        if (first < 0) first = (int32_t)i;
        if (to[i] != to[first]) base_unite(to, (int32_t)i, first);
    }
    return first;
}

static float squared_distance(const sample *all, uint64_t row, uint64_t other)
{
    const float *x = all->vectors + row * all->width, *y = all->vectors + other * all->width;
    float sum = 0.0f;
    for (size_t w = 0; w < all->width; w++) {
        const float away = (x[w] - y[w]) * weight_of(all, w);
        sum += away * away;
    }
    return sum;
}

// Rows (m) that are out of reach of the sample are linked to whatever is within reach. leaf
// (n_rows): the number of a set, below the sample's size; to gets m more.
static void link_strangers(const sample *all, const uint64_t *stranger, size_t m, float reach,
                           int32_t *leaf, int32_t *to)
{
    const cluster_problem *problem = all->problem;
    for (size_t i = 0; i < m; i++) {
        to[all->n + i] = (int32_t)(all->n + i);
        leaf[stranger[i]] = (int32_t)(all->n + i);
    }
    for (size_t i = 0; i < m; i++) {
        for (size_t s = 0; s < problem->n_states; s++) {
            const uint64_t row = problem->states[s];
            if (leaf[row] == leaf[stranger[i]]) continue;
            if (squared_distance(all, stranger[i], row) > reach) continue;
            base_unite(to, leaf[row], leaf[stranger[i]]);
        }
    }
}

// Every row gets its clump, *n of them; 0: too many are out of reach.
static psi_status assign(psi_ctx *ctx, sample *all, float reach, int32_t *leaf, size_t *n)
{
    psi_status status = PSI_OK;
    const cluster_problem *problem = all->problem;
    const size_t most = (size_t)(MOST_COMPARED / (double)problem->n_states / (double)all->width);
    uint64_t *stranger = NULL;
    int32_t *to = NULL, *name = NULL;
    size_t m = 0;
    *n = 0;
    TRY(base_alloc(ctx, all->n, sizeof *stranger, &stranger));
    TRY(base_alloc(ctx, 2 * all->n, sizeof *to, &to));
    TRY(base_alloc(ctx, 2 * all->n, sizeof *name, &name));
    for (size_t i = 0; i < all->n; i++) to[i] = (int32_t)i;
    for (size_t i = 1; i < all->n; i++) {
        if (all->edge[i] <= reach) base_unite(to, (int32_t)i, all->near[i]);
    }
    for (size_t i = 0; i < problem->n_states; i++) {
        const uint64_t row = problem->states[i];
        if (i % 4096 == 0) TRY(base_cancelled(ctx));
        leaf[row] = clump_of(all, all->vectors + row * all->width, reach, to);
        if (leaf[row] >= 0) continue;
        if (m == all->n || m == most) goto done;
        stranger[m++] = row;
    }
    link_strangers(all, stranger, m, reach, leaf, to);
    for (size_t i = 0; i < all->n + m; i++) name[i] = -1;
    for (size_t i = 0; i < problem->n_states; i++) {
        const uint64_t row = problem->states[i];
        int32_t *of = &name[base_root(to, leaf[row])];
        if (*of < 0) *of = (int32_t)(*n)++;
        leaf[row] = *of;
    }
done:
    base_free(ctx, name);
    base_free(ctx, to);
    base_free(ctx, stranger);
    return status;
}

psi_status problem_looks_apart(psi_ctx *ctx, const cluster_problem *problem, size_t width,
                               const float *vectors, const float *weight, size_t visits,
                               problem_looks *out)
{
    psi_status status = PSI_OK;
    const double fit = MOST_COMPARED / (double)problem->n_states / (double)width;
    const size_t n = base_min(base_min(problem->n_states, MOST_SAMPLED), (size_t)fit);
    sample all = {0};
    problem_looks found = {0};
    float reach;
    *out = (problem_looks){0};
    if (n < base_min(problem->n_states, FEWEST_SAMPLED) || n < 2 * visits) return PSI_OK;
    TRY(sample_new(ctx, problem, width, vectors, weight, n, &all));
    TRY(link(ctx, &all));
    TRY(find_reach(ctx, &all, visits, &reach));
    if (reach == 0.0f) goto done;
    TRY(problem_looks_leaves_new(ctx, problem, &found));
    TRY(assign(ctx, &all, reach, found.leaf, &found.n_leaves));
    if (found.n_leaves < 2 || found.n_leaves > problem->n_states / visits) goto done;
    TRY(problem_looks_of_labels(ctx, problem, found.leaf, found.n_leaves, 0, out));
done:
    problem_looks_free(ctx, &found);
    sample_free(ctx, &all);
    return status;
}
