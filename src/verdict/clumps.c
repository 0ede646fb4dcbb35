// A few observations that look alike, and unlike all others. Too few to be called a part of the
// looks, they are put into some latent state by what followed them, which may be next to nothing.
#include "verdict/scatter.h"
#include "verdict/units.h"

#include "base/checked.h"
#include "base/context.h"
#include "base/tally.h"

#include <math.h>

// Clumps that are compared with all rows, further ones with those of their branch.
enum { MOST_SEARCHED = 4096, MOST_SCANNED = 64 };
enum { NEIGHBOURS = 64 }; // rows of a branch in which clumps are looked for

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
    const float *x = problem_looks_vector(looks, row);
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
        const float *x = problem_looks_vector(looks, out->row[i]);
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

// The row that is nearest to a clump, and how far it is. One that is farther from the first of the
// clump by more than the extent is no nearer to the rest.
static double find_nearest(const problem_looks *looks, const clump *around, uint64_t *nearest)
{
    const float *first = problem_looks_vector(looks, around->row[0]);
    double gap = HUGE_VAL;
    for (size_t i = 0; i < looks->n_references; i++) {
        const uint64_t row = looks->reference[i];
        const float *x = problem_looks_vector(looks, row);
        if (sqrt(squared_distance(looks, first, row)) - around->extent >= gap) continue;
        if (is_member(around, row)) continue;
        for (size_t j = 0; j < around->m; j++) {
            const double away = sqrt(squared_distance(looks, x, around->row[j]));
            if (away < gap) gap = away, *nearest = row;
        }
    }
    return gap;
}

// The same for one with fewer rows than are found near a row, so that one of those is another.
static double search_nearest(const problem_looks *looks, const clump *around, uint64_t *nearest)
{
    double gap = HUGE_VAL;
    for (size_t j = 0; j < around->m; j++) {
        uint64_t near[LOOKS_NEAREST];
        const size_t n = problem_looks_nearest_of_all(looks, around->row[j], near);
        const float *x = problem_looks_vector(looks, around->row[j]);
        size_t i = 0;
        while (i < n && is_member(around, near[i])) i++;
        if (i == n) continue;
        const double away = sqrt(squared_distance(looks, x, near[i]));
        if (away < gap) gap = away, *nearest = near[i];
    }
    return gap;
}

// ---- what is asked of a clump -------------------------------------------------------------------

typedef struct clumps {
    judging *run;
    const problem_looks *looks;
    const double *needed;
    uint64_t *rows;     // (K) references
    size_t sides;       // of a transition: where it led and, if rewards are classes, what it paid
    int32_t *taken;     // (rows and references) the action; −1: none. NULL: not asked yet
    uint64_t *after[2]; // (rows and references) each side of what followed
    base_times *followed[2]; // (kinds) how often each side is that of a transition
    size_t kinds[2];
    scatter scatter;
    double safe;
    size_t searched, scanned, doubtful;
} clumps;

// Whether all rows have one label, which others have, too: the label, or −1.
static int32_t label_of(const clumps *all, const clump *of)
{
    const int32_t *labels = all->run->labels, label = labels[of->row[0]];
    for (size_t i = 0; i < of->m; i++) {
        if (labels[of->row[i]] != label) return -1;
    }
    return label >= 0 && all->rows[label] > of->m ? label : -1;
}

// How often an action was taken in a clump.
static uint64_t visits_of(const clumps *all, const clump *of, size_t action)
{
    uint64_t n = 0;
    for (size_t i = 0; i < of->m; i++) n += all->taken[of->row[i]] == (int32_t)action;
    return n;
}

// One side of what followed a transition, with its latent state and action, as a number.
static uint64_t outcome_of(const clumps *all, uint64_t t, size_t side)
{
    const judging *run = all->run;
    const psi_trajectories *data = run->problem->data;
    const int32_t *labels = run->result->labels;
    const uint64_t row = run->problem->row[t], k = run->result->n_latent + 1;
    const uint64_t pair =
        (uint64_t)(labels[row] + 1) * data->n_actions + (uint64_t)data->actions[t];
    if (side == 0) return pair * k + (uint64_t)(labels[row + 1] + 1);
    return pair * run->rewards->n + (uint64_t)run->rewards->of[t];
}

// How many of all transitions have this on a side.
static uint64_t count_outcome(const clumps *all, size_t side, uint64_t outcome)
{
    const base_times *times = all->followed[side];
    size_t low = 0;
    for (size_t high = all->kinds[side]; low + 1 < high;) {
        const size_t middle = low + (high - low) / 2;
        if (times[middle].key <= outcome) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return times[low].key == outcome ? times[low].n : 0;
}

// What followed every row, and how often the same followed any.
static psi_status find_outcomes(clumps *all)
{
    psi_status status = PSI_OK;
    psi_ctx *ctx = all->run->ctx;
    const cluster_problem *problem = all->run->problem;
    const problem_looks *looks = all->looks;
    const size_t n = problem->data->n_transitions, rows = looks->n_rows + looks->foreign;
    uint64_t *keys = NULL;
    if (all->taken) return PSI_OK;
    TRY(base_alloc(ctx, rows, sizeof *all->taken, &all->taken));
    for (size_t i = 0; i < rows; i++) all->taken[i] = -1;
    for (size_t t = 0; t < n; t++) all->taken[problem->row[t]] = problem->data->actions[t];
    TRY(problem_looks_fill_in(ctx, looks, all->taken, sizeof *all->taken));
    TRY(base_alloc(ctx, n, sizeof *keys, &keys));
    for (size_t side = 0; side < all->sides; side++) {
        TRY(base_alloc_zero(ctx, rows, sizeof **all->after, &all->after[side]));
        for (size_t t = 0; t < n; t++) {
            all->after[side][problem->row[t]] = keys[t] = outcome_of(all, t, side);
        }
        TRY(problem_looks_fill_in(ctx, looks, all->after[side], sizeof **all->after));
        TRY(base_tally(ctx, keys, n, &all->followed[side], &all->kinds[side]));
    }
done:
    base_free(ctx, keys);
    return status;
}

// Whether a side of what followed a row is that of no other but some of the clump.
static bool is_alone(const clumps *all, const clump *of, uint64_t row, size_t side)
{
    const uint64_t outcome = all->after[side][row];
    size_t here = 0;
    for (size_t i = 0; i < of->m; i++) {
        const uint64_t other = of->row[i];
        here += all->taken[other] >= 0 && all->after[side][other] == outcome;
    }
    return count_outcome(all, side, outcome) == here;
}

// Nats by which something followed an action in a clump that never followed it in the n others of
// its latent state: what comes next is new with a probability of 1/(n + 1).
static double nats_of_oddity(const clumps *all, const clump *of, int32_t label, size_t action)
{
    const judging *run = all->run;
    const uint64_t visits = run->visits[(size_t)label * run->problem->data->n_actions + action];
    const double others = (double)(visits - visits_of(all, of, action));
    for (size_t i = 0; i < of->m; i++) {
        if (all->taken[of->row[i]] != (int32_t)action) continue;
        for (size_t side = 0; side < all->sides; side++) {
            if (is_alone(all, of, of->row[i], side)) return log1p(others);
        }
    }
    return 0.0;
}

// The gap between a clump and all other rows. Planes of the tree may have cut some of the clump
// off: those of its label that are nearer than it is wide are of it. Where too many clumps were
// asked, the gap to those of its branch.
static double complete(clumps *all, int32_t label, clump *of, double gap)
{
    const problem_looks *looks = all->looks;
    const size_t most = base_min(UNITS_FEW + 2 * looks->width, NEIGHBOURS);
    for (;;) {
        uint64_t nearest = UINT64_MAX;
        if (of->m < LOOKS_NEAREST && all->searched++ < MOST_SEARCHED) {
            gap = search_nearest(looks, of, &nearest);
        } else if (of->m >= LOOKS_NEAREST && all->scanned++ < MOST_SCANNED) {
            gap = find_nearest(looks, of, &nearest);
        }
        if (nearest == UINT64_MAX || gap >= of->extent || of->m + 1 >= most) return gap;
        if (all->run->labels[nearest] != label) return gap;
        const float *x = problem_looks_vector(looks, nearest);
        for (size_t i = 0; i < of->m; i++) {
            of->extent = fmax(of->extent, sqrt(squared_distance(looks, x, of->row[i])));
        }
        of->row[of->m++] = nearest;
    }
}

// States that a reference of a clump stands for: 1, unless only some of the states are references.
static double states_each(const clumps *all, const clump *of)
{
    const problem_looks *looks = all->looks;
    const size_t leaf = (size_t)looks->leaf[of->row[0]];
    return (double)looks->size[leaf] / (double)(looks->end[leaf] - looks->begin[leaf]);
}

// How many actions a clump leaves open that stands apart by so many nats: those that were taken too
// rarely, and those after which something odd came, which makes it stand apart, too. Each is a
// doubt, where it is to be reported.
static psi_status find_open(clumps *all, const clump *of, int32_t label, double nats, bool report,
                            size_t *open)
{
    psi_status status = PSI_OK;
    judging *run = all->run;
    const size_t actions = run->problem->data->n_actions;
    const size_t g = (size_t)label - (run->result->has_terminal ? 1 : 0);
    *open = 0;
    for (size_t a = 0; a < actions; a++) {
        const uint64_t n = (uint64_t)(states_each(all, of) * (double)visits_of(all, of, a));
        const double odd = nats_of_oddity(all, of, label, a);
        if (!run->taken[a] || nats + odd < all->safe) continue;
        if ((double)n >= all->needed[g * actions + a] && odd == 0.0) continue;
        ++*open;
        if (!report) continue;
        const double needed = all->needed[g * actions + a];
        TRY(verdict_doubt(run,
                          (psi_doubt){.kind = PSI_DOUBT_RARE,
                                      .state = label,
                                      .other = (int32_t)a,
                                      .visits = n,
                                      .enough = (double)n < needed ? verdict_enough(needed) : 0}));
    }
done:
    return status;
}

// With the gap to the rest of its branch first, which is no less than that to all others.
static psi_status ask(clumps *all, const clump *part, double gap)
{
    psi_status status = PSI_OK;
    clump of = *part;
    const int32_t label = label_of(all, &of), first = all->run->result->has_terminal ? 1 : 0;
    const double most = log1p((double)all->run->problem->whole.n_transitions); // of what is odd
    size_t open;
    if (label < first) return PSI_OK;
    const double scale = verdict_scale_around(&all->scatter, all->looks, of.row[0], label, of.m);
    double nats = nats_of_gap(of.m, of.extent, gap, scale);
    if (nats == 0.0 || nats + most < all->safe) return PSI_OK;
    TRY(base_cancelled(all->run->ctx));
    TRY(find_outcomes(all));
    TRY(find_open(all, &of, label, nats, false, &open));
    if (open == 0) goto done;
    gap = complete(all, label, &of, gap);
    if (of.m >= all->rows[label]) goto done; // they are all of it
    nats = nats_of_gap(of.m, of.extent, gap, scale);
    TRY(find_open(all, &of, label, nats, true, &open));
    if (open > 0) all->doubtful += (size_t)(states_each(all, &of) * (double)of.m);
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
        const float *x = problem_looks_vector(looks, looks->row[i]);
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
    clumps all = {
        .run = run, .looks = looks, .needed = needed, .sides = run->rewards->n > 1 ? 2 : 1};
    linkage *branch = NULL;
    *doubtful = 0;
    TRY(base_alloc(run->ctx, 1, sizeof *branch, &branch));
    TRY(verdict_scatter_new(run, looks, &all.scatter));
    TRY(base_alloc_zero(run->ctx, run->result->n_latent, sizeof *all.rows, &all.rows));
    for (size_t i = 0; i < looks->n_references; i++) {
        const int32_t label = run->labels[looks->reference[i]];
        if (label >= 0) all.rows[label]++;
    }
    all.safe = refine_safe_nats((double)looks->n_references); // a cluster for every one
    for (size_t v = 1; v < looks->forest.n_nodes; v++) {
        const size_t up = looks->parent[v] < 0 ? v : (size_t)looks->parent[v];
        if (looks->end[v] - looks->begin[v] > NEIGHBOURS) continue;
        if (up != v && looks->end[up] - looks->begin[up] <= NEIGHBOURS) continue;
        link_branch(looks, v, branch);
        TRY(ask_branch(&all, v, branch));
    }
    *doubtful = all.doubtful;
done:
    for (size_t side = 0; side < 2; side++) {
        base_free(run->ctx, all.followed[side]);
        base_free(run->ctx, all.after[side]);
    }
    base_free(run->ctx, all.taken);
    base_free(run->ctx, all.rows);
    verdict_scatter_free(run->ctx, &all.scatter);
    base_free(run->ctx, branch);
    return status;
}
