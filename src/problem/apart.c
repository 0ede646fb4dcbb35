// Looks that stand apart. Where observations are a few things seen with noise, each of these is a
// clump with empty space around it, and as good as a distinct observation: no cell of a clump is
// of another latent state than the rest of it, unless what follows says so.
#include "problem/looks.h"

#include "base/checked.h"
#include "base/comm.h"
#include "base/context.h"
#include "base/disjoint.h"
#include "base/random.h"
#include "problem/linkage.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Rows that the clumps are found from, and numbers that are compared at most, about two seconds'
// worth: with fewer rows than FEWEST, clumps would be missed.
enum { MOST_SAMPLED = 4096, FEWEST_SAMPLED = 512 };
static const double MOST_COMPARED = 1e10;
static const double ALLOWED = 0.01; // probability of a gap where there is none

// Share of the rows of two clumps that may lie in the middle third of the way between their
// centres, where space should be empty. Of normal clumps one in half a million is then nearer to
// the wrong centre; rows that lie evenly, and were cut in two, are a third.
static const double BETWEEN = 1e-3;
enum { APART_STREAM = 0x61706172 };

typedef struct apart {
    psi_ctx *ctx;
    const cluster_problem *problem;
    const float *vectors; // (n_rows, width)
    const float *weight;  // (width) of each number; NULL: 1
    size_t width, visits;
    linkage_points points; // rows of a sample
    linkage_step *step;    // (points.n − 1)
    float reach;           // what is nearer than that, squared, is of one clump
    linkage_points marks;  // what rows are compared with: points, or centres of clumps
    float *scatter;        // (marks) of what a centre stands for: ‖x − centre‖² on average
    float *third;          // (marks, marks) of their squared distance; NULL: marks are points
    uint32_t *between;     // (marks, marks) rows that lie between two centres; of one, all its rows
    int32_t *to;           // (marks, and strangers) disjoint sets
    float *x;              // (width) a row, weighed
} apart;

static void apart_free(apart *run)
{
    problem_linkage_points_free(run->ctx, &run->points);
    problem_linkage_points_free(run->ctx, &run->marks);
    base_free(run->ctx, run->step);
    base_free(run->ctx, run->scatter);
    base_free(run->ctx, run->third);
    base_free(run->ctx, run->between);
    base_free(run->ctx, run->to);
    base_free(run->ctx, run->x);
}

static const float *weighed(apart *run, uint64_t row)
{
    const float *from = run->vectors + row * run->width;
    for (size_t w = 0; w < run->width; w++) {
        run->x[w] = run->weight ? from[w] * run->weight[w] : from[w];
    }
    return run->x;
}

// ---- the gap ------------------------------------------------------------------------------------

// One row of each of n parts of the data, so that no rhythm of episodes decides.
static psi_status draw_sample(apart *run, size_t n)
{
    psi_status status = PSI_OK;
    const cluster_problem *problem = run->problem;
    const size_t all = problem->whole.n_states, first = problem->whole.first_state;
    base_random random = base_random_stream(0, APART_STREAM, 0);
    float *own = NULL, *drawn = NULL; // (n, width)
    size_t m = 0, bytes;
    TRY(problem_linkage_points_new(run->ctx, n, run->width, &run->points));
    TRY(base_alloc(run->ctx, n, sizeof *run->step, &run->step));
    TRY(base_alloc(run->ctx, n, run->width * sizeof *own, &own));
    for (size_t i = 0; i < n; i++) {
        const double part = ((double)i + base_random_uniform(&random)) / (double)n;
        const size_t at = (size_t)(part * (double)all);
        if (at < first || at - first >= problem->n_states) continue; // another process's
        memcpy(own + m++ * run->width, weighed(run, problem->states[at - first]),
               run->width * sizeof *own);
    }
    TRY(base_gather_parts(run->ctx, own, m * run->width * sizeof *own, &drawn, &bytes));
    for (size_t i = 0; i < n; i++) {
        for (size_t w = 0; w < run->width; w++) {
            run->points.number[w * n + i] = drawn[i * run->width + w];
        }
    }
done:
    base_free(run->ctx, drawn);
    base_free(run->ctx, own);
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
static psi_status find_reach(apart *run)
{
    psi_status status = PSI_OK;
    const size_t n = run->points.n - 1, most = n / run->visits;
    double best = log((double)most / ALLOWED);
    float *step = NULL;
    run->reach = 0.0f;
    TRY(base_alloc(run->ctx, n, sizeof *step, &step));
    for (size_t i = 0; i < n; i++) step[i] = sqrtf(run->step[i].height);
    qsort(step, n, sizeof *step, ascending);
    for (size_t i = n - most; i + 1 < n; i++) {
        const double nats = nats_of_gap(step, n, i);
        if (nats < best) continue;
        best = nats;
        run->reach = 0.25f * (step[i] + step[i + 1]) * (step[i] + step[i + 1]);
    }
done:
    base_free(run->ctx, step);
    return status;
}

// ---- marks --------------------------------------------------------------------------------------

static psi_status marks_new(apart *run, size_t n)
{
    psi_status status = PSI_OK;
    TRY(problem_linkage_points_new(run->ctx, n, run->width, &run->marks));
    TRY(base_alloc_zero(run->ctx, n, sizeof *run->scatter, &run->scatter));
    TRY(base_alloc(run->ctx, n + run->points.n, sizeof *run->to, &run->to));
    for (size_t i = 0; i < n; i++) run->to[i] = (int32_t)i;
done:
    return status;
}

// Rows of the sample within reach of each other become one; to (points).
static void unite_points(const apart *run, int32_t *to)
{
    for (size_t i = 0; i + 1 < run->points.n; i++) {
        const linkage_step *step = &run->step[i];
        if (step->height <= run->reach) base_unite(to, step->a, step->b);
    }
}

// The rows of the sample.
static psi_status mark_points(apart *run)
{
    psi_status status = PSI_OK;
    const size_t n = run->points.n;
    TRY(marks_new(run, n));
    memcpy(run->marks.number, run->points.number, n * run->width * sizeof *run->marks.number);
    unite_points(run, run->to);
done:
    return status;
}

// The clumps of the sample are numbered: of (points), *k of them.
static psi_status number_clumps(apart *run, int32_t *of, size_t *k)
{
    psi_status status = PSI_OK;
    const size_t n = run->points.n;
    int32_t *to = NULL;
    TRY(base_alloc(run->ctx, n, sizeof *to, &to));
    *k = 0;
    for (size_t i = 0; i < n; i++) to[i] = (int32_t)i;
    unite_points(run, to);
    for (size_t i = 0; i < n; i++) { // a root is the smallest of its set
        const size_t root = (size_t)base_root(to, (int32_t)i);
        of[i] = root == i ? (int32_t)(*k)++ : of[root];
    }
done:
    base_free(run->ctx, to);
    return status;
}

// The centres of clumps.
static psi_status mark_centres(apart *run)
{
    psi_status status = PSI_OK;
    const size_t n = run->points.n;
    int32_t *of = NULL;
    uint32_t *size = NULL;
    size_t k;
    TRY(base_alloc(run->ctx, n, sizeof *of, &of));
    TRY(number_clumps(run, of, &k));
    TRY(marks_new(run, k));
    TRY(base_alloc_zero(run->ctx, k, sizeof *size, &size));
    TRY(base_alloc(run->ctx, k, k * sizeof *run->third, &run->third));
    TRY(base_alloc_zero(run->ctx, k, k * sizeof *run->between, &run->between));
    memset(run->marks.number, 0, k * run->width * sizeof *run->marks.number);
    for (size_t i = 0; i < n; i++) size[of[i]]++;
    for (size_t w = 0; w < run->width; w++) {
        const float *number = run->points.number + w * n;
        float *centre = run->marks.number + w * k;
        for (size_t i = 0; i < n; i++) centre[of[i]] += number[i] / (float)size[of[i]];
        for (size_t i = 0; i < n; i++) {
            const float away = number[i] - centre[of[i]];
            run->scatter[of[i]] += away * away / (float)size[of[i]];
        }
    }
    for (size_t i = 0; i < k; i++) {
        for (size_t w = 0; w < run->width; w++) run->x[w] = run->marks.number[w * k + i];
        problem_linkage_compare(&run->marks, run->x);
        for (size_t j = 0; j < k; j++) run->third[i * k + j] = run->marks.distance[j] / 3.0f;
    }
done:
    base_free(run->ctx, size);
    base_free(run->ctx, of);
    return status;
}

// ---- all rows -----------------------------------------------------------------------------------

// The mark of a row, −1: it is out of reach of all. Points within reach of it are one.
static int32_t mark_of(apart *run, uint64_t row)
{
    const size_t n = run->marks.n;
    const float *distance = run->marks.distance;
    size_t nearest = 0;
    problem_linkage_compare(&run->marks, weighed(run, row));
    for (size_t i = 1; i < n; i++) {
        if (distance[i] < distance[nearest]) nearest = i;
    }
    if (distance[nearest] + run->scatter[nearest] > run->reach) return -1;
    for (size_t i = 0; i < n && run->third; i++) {
        const float third = run->third[nearest * n + i];
        run->between[nearest * n + i] += distance[i] - distance[nearest] <= third;
    }
    for (size_t i = 0; i < n && !run->third; i++) {
        if (distance[i] <= run->reach && run->to[i] != run->to[nearest]) {
            base_unite(run->to, (int32_t)i, (int32_t)nearest);
        }
    }
    return (int32_t)nearest;
}

// Centres are one if the space between them is not empty. Returns whether most of them are clumps:
// else the gap that made them was there by chance.
static bool unite_centres(apart *run)
{
    const size_t n = run->marks.n;
    size_t clumps = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < i; j++) {
            const uint32_t *to = run->between;
            const double both = (double)to[i * n + i] + (double)to[j * n + j];
            if ((double)to[i * n + j] + (double)to[j * n + i] > BETWEEN * both) {
                base_unite(run->to, (int32_t)i, (int32_t)j);
            }
        }
    }
    for (size_t i = 0; i < n; i++) clumps += run->to[i] == (int32_t)i;
    return 2 * clumps > n;
}

static float squared_distance(const apart *run, const float *x, uint64_t other)
{
    const float *y = run->vectors + other * run->width;
    float sum = 0.0f;
    for (size_t w = 0; w < run->width; w++) {
        const float away = (x[w] - y[w]) * (run->weight ? run->weight[w] : 1.0f);
        sum += away * away;
    }
    return sum;
}

// What any process has united is one for all: the sets of the first n.
static psi_status unite_together(apart *run, size_t n)
{
    psi_status status = PSI_OK;
    int32_t *all = NULL; // (ranks, n)
    const size_t ranks = (size_t)base_ranks(run->ctx);
    if (ranks == 1) return PSI_OK;
    TRY(base_alloc(run->ctx, ranks, n * sizeof *all, &all));
    TRY(base_gather(run->ctx, run->to, n * sizeof *all, all));
    for (size_t i = 0; i < ranks * n; i++) base_unite(run->to, (int32_t)(i % n), all[i]);
done:
    base_free(run->ctx, all);
    return status;
}

// Rows (m, width) that are out of reach of all marks, of all processes, are linked to whatever is
// within reach. leaf (n_rows): the number of a set.
static psi_status link_strangers(apart *run, const float *stranger, size_t m, const int32_t *leaf)
{
    const cluster_problem *problem = run->problem;
    for (size_t i = 0; i < m; i++) {
        const int32_t number = (int32_t)(run->marks.n + i);
        for (size_t s = 0; s < problem->n_states; s++) {
            const uint64_t row = problem->states[s];
            if (leaf[row] == number) continue;
            if (squared_distance(run, stranger + i * run->width, row) > run->reach) continue;
            base_unite(run->to, leaf[row], number);
        }
    }
    return unite_together(run, run->marks.n + m);
}

// Sets are numbered in the order in which their rows are seen; *n of them.
static psi_status name_clumps(apart *run, size_t sets, int32_t *leaf, size_t *n)
{
    psi_status status = PSI_OK;
    const cluster_problem *problem = run->problem;
    int32_t *name = NULL; // (sets), then how many there are
    TRY(base_alloc(run->ctx, sets + 1, sizeof *name, &name));
    for (size_t i = 0; i < sets; i++) name[i] = -1;
    name[sets] = 0;
    TRY(base_take_turn(run->ctx, name, (sets + 1) * sizeof *name));
    for (size_t i = 0; i < problem->n_states; i++) {
        const uint64_t row = problem->states[i];
        int32_t *of = &name[base_root(run->to, leaf[row])];
        if (*of < 0) *of = name[sets]++;
        leaf[row] = *of;
    }
    TRY(base_end_turn(run->ctx, name, (sets + 1) * sizeof *name));
    *n = (size_t)name[sets];
done:
    base_free(run->ctx, name);
    return status;
}

// Every row gets its clump, *n of them; 0: too many are out of reach.
static psi_status assign(apart *run, int32_t *leaf, size_t *n)
{
    psi_status status = PSI_OK;
    const cluster_problem *problem = run->problem;
    const double fit = MOST_COMPARED / (double)problem->whole.n_states / (double)run->width;
    const size_t most = base_min(run->points.n, (size_t)fit), width = run->width;
    float *own = NULL, *stranger = NULL; // (strangers, width)
    size_t m = 0, number = 0, all, bytes;
    *n = 0;
    TRY(base_alloc(run->ctx, most, width * sizeof *own, &own));
    for (size_t i = 0; i < problem->n_states && m <= most; i++) {
        const uint64_t row = problem->states[i];
        if (i % 4096 == 0) TRY(base_cancelled(run->ctx));
        leaf[row] = mark_of(run, row);
        if (leaf[row] >= 0 || m++ == most) continue;
        memcpy(own + (m - 1) * width, run->vectors + row * width, width * sizeof *own);
    }
    all = m;
    TRY(base_sum_sizes(run->ctx, &all, 1));
    if (all > most) goto done;
    TRY(unite_together(run, run->marks.n));
    if (run->third) {
        TRY(base_sum_u32(run->ctx, run->between, run->marks.n * run->marks.n));
        if (!unite_centres(run)) goto done;
    }
    TRY(base_gather_parts(run->ctx, own, m * width * sizeof *own, &stranger, &bytes));
    TRY(base_take_turn(run->ctx, &number, sizeof number));
    for (size_t i = 0; i < problem->n_states; i++) {
        int32_t *of = &leaf[problem->states[i]];
        if (*of < 0) *of = (int32_t)(run->marks.n + number++);
    }
    TRY(base_end_turn(run->ctx, &number, sizeof number));
    for (size_t i = 0; i < all; i++) {
        run->to[run->marks.n + i] = (int32_t)(run->marks.n + i);
    }
    TRY(link_strangers(run, stranger, all, leaf));
    TRY(name_clumps(run, run->marks.n + all, leaf, n));
done:
    base_free(run->ctx, stranger);
    base_free(run->ctx, own);
    return status;
}

// Clumps by the distances of means, or of nearest rows. out->n_leaves = 0: there are none.
static psi_status find_clumps(apart *run, bool by_means, size_t n, problem_looks *out)
{
    psi_status status = PSI_OK;
    const cluster_problem *problem = run->problem;
    const size_t states = problem->whole.n_states;
    const double fit = MOST_COMPARED / (double)states / (double)run->width;
    problem_looks found = {0};
    TRY(base_alloc(run->ctx, run->width, sizeof *run->x, &run->x));
    TRY(draw_sample(run, n));
    TRY(by_means ? problem_linkage_average(run->ctx, &run->points, run->step)
                 : problem_linkage_single(run->ctx, &run->points, run->step));
    TRY(find_reach(run));
    if (run->reach == 0.0f) goto done;
    TRY(by_means ? mark_centres(run) : mark_points(run));
    if ((double)run->marks.n > fit) goto done;
    TRY(problem_looks_leaves_new(run->ctx, problem, &found));
    TRY(assign(run, found.leaf, &found.n_leaves));
    if (found.n_leaves < 2 || found.n_leaves > states / run->visits) goto done;
    TRY(problem_looks_of_labels(run->ctx, problem, found.leaf, found.n_leaves, 0, out));
done:
    problem_looks_free(run->ctx, &found);
    apart_free(run);
    return status;
}

psi_status problem_looks_apart(psi_ctx *ctx, const cluster_problem *problem, size_t width,
                               const float *vectors, const float *weight, bool by_means,
                               size_t visits, problem_looks *out)
{
    psi_status status = PSI_OK;
    const double fit = MOST_COMPARED / (double)width;
    const double rows = by_means ? sqrt(fit) : fit / (double)problem->whole.n_states;
    const size_t most = base_min(problem->whole.n_states, MOST_SAMPLED);
    const size_t n = base_min(most, (size_t)rows);
    apart run = {.ctx = ctx,
                 .problem = problem,
                 .vectors = vectors,
                 .weight = weight,
                 .width = width,
                 .visits = visits};
    *out = (problem_looks){0};
    if (n < base_max(base_min(most, FEWEST_SAMPLED), 2 * visits)) return PSI_OK;
    TRY(find_clumps(&run, by_means, n, out));
done:
    return status;
}
