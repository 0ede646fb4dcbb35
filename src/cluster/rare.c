// Looks that were seen too rarely: could an observation be of another latent state than the one
// that it was put into, and the data not show it?
#include "cluster/judging.h"

#include "base/checked.h"
#include "base/context.h"
#include "cluster/contexts.h"

#include <math.h>

// What may speak against an observation's latent state: odds of nine to one.
static const double LEAST_ODDS = 2.1972245773362196;

// Halves of a branch that are so many standard deviations apart look different; with fewer rows
// than FEW and two for every dimension in either, chance makes such gaps.
static const float GAP = 3.0f;
enum { FEW = 16, LARGE = 512 };

// Total variation that the law of a look that stands by itself may differ from its group's without
// being noticed, at two standard errors.
static const double RESOLUTION = 0.1;

// ---- how often is often enough? -----------------------------------------------------------------

// The least n for which n draws from a law show whether it is another, `apart` from it in total
// variation: three standard errors of the total variation of what is seen.
static double draws_needed(const double *counts, const uint32_t *first, size_t f, double apart)
{
    double total = 0.0, spread = 0.0;
    for (uint32_t o = first[f]; o < first[f + 1]; o++) total += counts[o];
    for (uint32_t o = first[f]; total > 0.0 && o < first[f + 1]; o++) {
        const double p = counts[o] / total;
        spread += 0.5 * sqrt(p * (1.0 - p));
    }
    const double n = 3.0 * spread / fmax(apart, 1e-6);
    return fmax(1.0, n * n);
}

// The laws of a grouping, without what never happened.
typedef struct laws {
    uint64_t *begin; // (n_groups + 1)
    uint32_t *outcome, *family;
    double *total; // (n_groups, n_families)
} laws;

static void laws_free(psi_ctx *ctx, laws *all)
{
    base_free(ctx, all->begin);
    base_free(ctx, all->outcome);
    base_free(ctx, all->family);
    base_free(ctx, all->total);
    *all = (laws){0};
}

static psi_status laws_new(psi_ctx *ctx, const psi_grouping *groups, laws *out)
{
    psi_status status = PSI_OK;
    const size_t outcomes = groups->n_outcomes, families = groups->n_families;
    size_t n = 0;
    *out = (laws){0};
    for (size_t i = 0; i < groups->n_groups * outcomes; i++) n += groups->counts[i] > 0.0;
    TRY(base_alloc(ctx, groups->n_groups + 1, sizeof *out->begin, &out->begin));
    TRY(base_alloc(ctx, n, sizeof *out->outcome, &out->outcome));
    TRY(base_alloc(ctx, n, sizeof *out->family, &out->family));
    TRY(base_alloc_zero(ctx, groups->n_groups * families, sizeof *out->total, &out->total));
    n = 0;
    for (size_t g = 0; g < groups->n_groups; g++) {
        out->begin[g] = n;
        for (size_t f = 0; f < families; f++) {
            for (uint32_t o = groups->family[f]; o < groups->family[f + 1]; o++) {
                const double count = groups->counts[g * outcomes + o];
                if (count <= 0.0) continue;
                out->outcome[n] = o;
                out->family[n++] = (uint32_t)f;
                out->total[g * families + f] += count;
            }
        }
    }
    out->begin[groups->n_groups] = n;
done:
    if (status != PSI_OK) laws_free(ctx, out);
    return status;
}

// The largest total variation of two groups in any family that both have, 1 − Σ_o min(p, q); the
// sum is not gone through once it is known to be least or more.
static double distance(const psi_grouping *groups, const laws *all, size_t g, size_t h,
                       double least)
{
    const double *a = groups->counts + g * groups->n_outcomes;
    const double *b = groups->counts + h * groups->n_outcomes;
    double apart = 0.0;
    for (uint64_t i = all->begin[g]; i < all->begin[g + 1] && apart < least;) {
        const uint32_t f = all->family[i];
        const double n = all->total[g * groups->n_families + f];
        const double m = all->total[h * groups->n_families + f];
        double shared = m > 0.0 ? 0.0 : 1.0;
        for (; i < all->begin[g + 1] && all->family[i] == f; i++) {
            const uint32_t o = all->outcome[i];
            if (m > 0.0) shared += fmin(a[o] / n, b[o] / m);
        }
        apart = fmax(apart, 1.0 - shared);
    }
    return apart;
}

// How far group g is from the nearest other one, where they differ most. A hidden latent state is
// taken to be no nearer than that.
static double distance_to_nearest(const psi_grouping *groups, const laws *all, size_t g)
{
    double nearest = 1.0;
    for (size_t h = 0; h < groups->n_groups; h++) {
        if (h != g) nearest = fmin(nearest, distance(groups, all, g, h, nearest));
    }
    return nearest;
}

// needed (n_groups, A): draws of each action that show whether a look has another law than its
// group.
static psi_status find_needed(judging *run, bool looks, double *needed)
{
    psi_status status = PSI_OK;
    const psi_grouping *groups = run->found->grouping;
    const size_t actions = run->problem->data->n_actions;
    laws all = {0};
    TRY(laws_new(run->ctx, groups, &all));
    for (size_t g = 0; g < groups->n_groups; g++) {
        const double *counts = groups->counts + g * groups->n_outcomes;
        double apart = distance_to_nearest(groups, &all, g);
        if (looks) apart = fmin(apart, 1.5 * RESOLUTION); // at three standard errors, not two
        for (size_t a = 0; a < actions; a++) {
            needed[g * actions + a] = fmax(draws_needed(counts, groups->family, 2 * a, apart),
                                           draws_needed(counts, groups->family, 2 * a + 1, apart));
        }
    }
done:
    laws_free(run->ctx, &all);
    return status;
}

// ---- what stands apart --------------------------------------------------------------------------

// Whether the halves of a node look different.
static bool is_gap(const cluster_looks *looks, size_t v)
{
    if (looks->left[v] < 0 || looks->gap[v] <= GAP) return false;
    const size_t l = (size_t)looks->left[v], r = (size_t)looks->right[v];
    const size_t n = base_min(looks->end[l] - looks->begin[l], looks->end[r] - looks->begin[r]);
    // the widest direction of n points in d dimensions is that much wider than it should be
    const double chance = 1.0 + sqrt((double)looks->width / (double)n);
    return n >= FEW + 2 * looks->width && (double)looks->gap[v] > (double)GAP * chance * chance;
}

psi_status judging_find_parts(psi_ctx *ctx, const cluster_looks *looks, int32_t **part, size_t *n)
{
    psi_status status = PSI_OK;
    *n = 0;
    TRY(base_alloc(ctx, looks->forest.n_nodes, sizeof **part, part));
    for (size_t v = 0; v < looks->forest.n_nodes; v++) { // parents come first
        const int32_t up = looks->parent[v];
        (*part)[v] = up < 0 || is_gap(looks, (size_t)up) ? (int32_t)(*n)++ : (*part)[up];
    }
done:
    return status;
}

// Learnt features may have learnt that a look that was seen a few times is like another. So each
// part of the tree over the vectors themselves that stands apart by gaps has to show enough of
// every action, too.
psi_status judging_ask_vectors(judging *run, const cluster_looks *vectors, size_t *doubtful)
{
    psi_status status = PSI_OK;
    const cluster_problem *problem = run->problem;
    const psi_trajectories *data = problem->data;
    const size_t actions = data->n_actions, k = run->result->n_latent;
    const int32_t first = run->result->has_terminal ? 1 : 0;
    double *needed = NULL;
    int32_t *part = NULL;
    uint32_t *visits = NULL, *labels = NULL;
    size_t *largest = NULL; // (parts) the label that most rows of a part have
    uint8_t *agrees = NULL; // (parts) what followed is clearly that latent state's law
    uint64_t *context = NULL;
    float *same = NULL;
    size_t parts;
    double share;
    int32_t worst;
    *doubtful = 0;
    TRY(base_alloc(run->ctx, run->found->grouping->n_groups * actions, sizeof *needed, &needed));
    TRY(find_needed(run, true, needed));
    TRY(judging_find_parts(run->ctx, vectors, &part, &parts));
    TRY(base_alloc_zero(run->ctx, parts * actions, sizeof *visits, &visits));
    TRY(base_alloc_zero(run->ctx, parts * k, sizeof *labels, &labels));
    TRY(base_alloc(run->ctx, parts, sizeof *largest, &largest));
    TRY(base_alloc_zero(run->ctx, parts, sizeof *agrees, &agrees));
    TRY(base_alloc(run->ctx, data->n_transitions, sizeof *context, &context));
    TRY(base_alloc_zero(run->ctx, data->n_transitions, sizeof *same, &same));
    for (size_t t = 0; t < data->n_transitions; t++) {
        const size_t of = (size_t)part[vectors->leaf[problem->row[t]]];
        const int32_t label = run->result->labels[problem->row[t]];
        visits[of * actions + (size_t)data->actions[t]]++;
        if (label >= 0) labels[of * k + (size_t)label]++;
        context[t] = of;
    }
    for (size_t p = 0; p < parts; p++) {
        largest[p] = 0;
        for (size_t i = 0; i < k; i++) {
            if (labels[p * k + i] > labels[p * k + largest[p]]) largest[p] = i;
        }
    }
    TRY(cluster_compare_contexts(run->ctx, problem, run->rewards, run->result->labels, k, context,
                                 JUDGING_ALLOWED, &share, &worst, same));
    for (size_t t = 0; t < data->n_transitions; t++) { // what the largest label of a part says
        if (run->result->labels[problem->row[t]] == (int32_t)largest[context[t]]) {
            agrees[context[t]] = (double)same[t] > judging_safe((double)parts);
        }
    }
    for (size_t p = 0; p < parts; p++) {
        const size_t g = largest[p];
        bool clear = true;
        if (labels[p * k + g] == 0 || g < (size_t)first) continue;
        for (size_t a = 0; a < actions; a++) {
            const uint32_t n = visits[p * actions + a];
            clear &= !run->taken[a] || (n > 0 && agrees[p]) ||
                     (double)n >= needed[(g - (size_t)first) * actions + a];
        }
        for (size_t i = 0; !clear && i < k; i++) *doubtful += labels[p * k + i];
    }
done:
    base_free(run->ctx, same);
    base_free(run->ctx, context);
    base_free(run->ctx, agrees);
    base_free(run->ctx, largest);
    base_free(run->ctx, labels);
    base_free(run->ctx, visits);
    base_free(run->ctx, part);
    base_free(run->ctx, needed);
    return status;
}

// ---- what looks alike ---------------------------------------------------------------------------

// Observations that have to show enough of every action together: those of one latent state that
// look alike.
typedef struct units {
    size_t n;
    int32_t *of;      // (n_rows) −1: of none
    int32_t *group;   // (n) −1: of none
    uint32_t *visits; // (n, A)
    size_t *rows;     // (n)
    double *same;     // (n) nats by which all that followed is the group's law, not one of its own
    double *against;  // (n) … and by which single families speak against it
} units;

static void units_free(psi_ctx *ctx, units *all)
{
    base_free(ctx, all->of);
    base_free(ctx, all->group);
    base_free(ctx, all->visits);
    base_free(ctx, all->rows);
    base_free(ctx, all->same);
    base_free(ctx, all->against);
}

static int32_t root_of(int32_t *to, int32_t i)
{
    while (to[i] != i) i = to[i] = to[to[i]];
    return i;
}

static void unite(int32_t *to, int32_t a, int32_t b)
{
    a = root_of(to, a);
    b = root_of(to, b);
    if (a != b) to[base_max((size_t)a, (size_t)b)] = (int32_t)base_min((size_t)a, (size_t)b);
}

// Branches of the tree whose leaves are all of one group, and have no gap between them.
static psi_status find_branches(judging *run, int32_t *branch)
{
    psi_status status = PSI_OK;
    const cluster_looks *looks = run->looks;
    const size_t nodes = looks->forest.n_nodes;
    int32_t *label = NULL;
    TRY(base_alloc(run->ctx, nodes, sizeof *label, &label));
    for (size_t v = nodes; v-- > 0;) {
        label[v] = run->found->grouping->group[v];
        if (looks->left[v] < 0) continue;
        const int32_t l = label[looks->left[v]], r = label[looks->right[v]];
        label[v] = l == r && !is_gap(looks, v) ? l : -1;
    }
    for (size_t v = 0; v < nodes; v++) { // −1: nodes above branches, and leaves that mix groups
        const int32_t up = looks->parent[v];
        branch[v] = label[v] < 0 ? -1 : up >= 0 && branch[up] >= 0 ? branch[up] : (int32_t)v;
    }
done:
    base_free(run->ctx, label);
    return status;
}

// Rows that look most alike and have one label are of one unit, so that borders between planes of
// the tree, and cells that mix latent states, part nothing.
static psi_status link_rows(judging *run, const int32_t *branch, int32_t *to)
{
    psi_status status = PSI_OK;
    const cluster_looks *looks = run->looks;
    const int32_t *labels = run->result->labels;
    const int32_t first = run->result->has_terminal ? 1 : 0;
    for (size_t v = 0; v < looks->forest.n_nodes; v++) {
        int32_t one = -1;
        if (branch[v] != (int32_t)v) continue;
        const int32_t label = run->found->grouping->group[looks->leaf[looks->row[looks->begin[v]]]];
        for (uint64_t i = looks->begin[v]; i < looks->end[v]; i++) {
            if (labels[looks->row[i]] != label + first) continue;
            if (one < 0) one = (int32_t)looks->row[i];
            unite(to, one, (int32_t)looks->row[i]);
        }
    }
    for (size_t i = 0; i < run->problem->n_states; i++) {
        const uint64_t row = run->problem->states[i];
        const int32_t v = branch[looks->leaf[row]];
        uint64_t nearest[LOOKS_NEAREST];
        if (labels[row] < 0 || (v >= 0 && looks->end[v] - looks->begin[v] > LARGE)) continue;
        if (i % 4096 == 0) TRY(base_cancelled(run->ctx));
        const size_t n = cluster_looks_nearest(looks, NULL, row, nearest);
        for (size_t j = 0; j < n; j++) {
            if (labels[nearest[j]] == labels[row]) unite(to, (int32_t)row, (int32_t)nearest[j]);
        }
    }
done:
    return status;
}

// The planes of the tree may cut a few rows off from those that they look most like: rows of small
// units are compared with all others. Where very many are small, nothing is said for any of them.
static psi_status link_small_units(judging *run, int32_t *to)
{
    psi_status status = PSI_OK;
    enum { MOST_ROWS = 2048 };
    const cluster_problem *problem = run->problem;
    const int32_t *labels = run->result->labels;
    uint64_t nearest[LOOKS_NEAREST], small[MOST_ROWS];
    uint32_t *size = NULL;
    size_t n = 0;
    TRY(base_alloc_zero(run->ctx, problem->n_rows, sizeof *size, &size));
    for (size_t i = 0; i < problem->n_states; i++) {
        size[root_of(to, (int32_t)problem->states[i])]++;
    }
    for (size_t i = 0; i < problem->n_states && n < MOST_ROWS; i++) {
        const uint64_t row = problem->states[i];
        if (labels[row] >= 0 && size[root_of(to, (int32_t)row)] < FEW) small[n++] = row;
    }
    for (size_t i = 0; n < MOST_ROWS && i < n; i++) {
        TRY(base_cancelled(run->ctx));
        const size_t found = cluster_looks_nearest_of_all(run->looks, small[i], nearest);
        for (size_t j = 0; j < found; j++) {
            if (labels[nearest[j]] != labels[small[i]]) continue;
            unite(to, (int32_t)small[i], (int32_t)nearest[j]);
        }
    }
done:
    base_free(run->ctx, size);
    return status;
}

// Leaves of a table are units as they are; of looks, connected rows of one label.
static psi_status units_new(judging *run, units *out)
{
    psi_status status = PSI_OK;
    const cluster_problem *problem = run->problem;
    const psi_trajectories *data = problem->data;
    const cluster_looks *looks = run->looks;
    const psi_grouping *groups = run->found->grouping;
    const size_t rows = problem->n_rows, nodes = looks->forest.n_nodes, actions = data->n_actions;
    const int32_t first = run->result->has_terminal ? 1 : 0;
    int32_t *to = NULL, *branch = NULL;
    TRY(base_alloc(run->ctx, rows, sizeof *to, &to));
    TRY(base_alloc(run->ctx, nodes, sizeof *branch, &branch));
    TRY(base_alloc(run->ctx, rows, sizeof *out->of, &out->of));
    TRY(base_alloc(run->ctx, problem->n_states, sizeof *out->group, &out->group));
    for (size_t i = 0; i < rows; i++) {
        to[i] = (int32_t)i;
        out->of[i] = -1;
    }
    TRY(find_branches(run, branch));
    if (looks->forest.looks) {
        TRY(link_rows(run, branch, to));
        TRY(link_small_units(run, to));
    }
    for (size_t v = 0; v < nodes; v++) branch[v] = looks->forest.looks ? branch[v] : -1;
    for (size_t i = 0; i < problem->n_states; i++) {
        const uint64_t row = problem->states[i];
        const int32_t leaf = looks->leaf[row];
        // a unit is named by its first row; of a table, by the leaf
        int32_t *name = looks->forest.looks ? &out->of[root_of(to, (int32_t)row)] : &branch[leaf];
        if (*name < 0) {
            const int32_t label = run->result->labels[row];
            out->group[out->n] = label < 0 ? -1 : label - first;
            *name = (int32_t)out->n++;
        }
        out->of[row] = *name;
    }
    TRY(base_alloc_zero(run->ctx, out->n * actions, sizeof *out->visits, &out->visits));
    TRY(base_alloc_zero(run->ctx, out->n, sizeof *out->rows, &out->rows));
    TRY(base_alloc_zero(run->ctx, out->n, sizeof *out->same, &out->same));
    TRY(base_alloc_zero(run->ctx, out->n, sizeof *out->against, &out->against));
    for (size_t i = 0; i < problem->n_states; i++) {
        const uint64_t row = problem->states[i];
        out->rows[out->of[row]]++;
        if (!looks->forest.looks) {
            out->against[out->of[row]] = (double)groups->against[looks->leaf[row]];
        }
    }
    for (size_t v = 0; looks->forest.looks && v < nodes; v++) {
        if (branch[v] != (int32_t)v) continue;
        // trajectories may have labelled some rows of a branch otherwise: what it says is not of
        // them
        const int32_t g = groups->group[looks->leaf[looks->row[looks->begin[v]]]];
        uint64_t i = looks->begin[v];
        while (i < looks->end[v] && run->result->labels[looks->row[i]] != g + first) i++;
        if (i < looks->end[v]) out->same[out->of[looks->row[i]]] += (double)groups->same[v];
    }
    for (size_t t = 0; t < data->n_transitions; t++) {
        const size_t unit = (size_t)out->of[problem->row[t]];
        out->visits[unit * actions + (size_t)data->actions[t]]++;
    }
done:
    base_free(run->ctx, branch);
    base_free(run->ctx, to);
    return status;
}

// Rows that trajectories have labelled amid looks of other latent states are units of a few rows.
// Nothing stands apart where the part of the tree that they are in has a clear unit of their latent
// state: there it is enough that trajectories are sure of them.
static psi_status ask_for_parts(judging *run, const units *all, uint8_t *clear)
{
    psi_status status = PSI_OK;
    const cluster_looks *looks = run->looks;
    const size_t groups = run->found->grouping->n_groups;
    const float *confidence = run->found->confidence;
    double isolated = 0.0; // rows
    uint8_t *has = NULL;   // (parts, groups) a clear unit
    int32_t *part = NULL;
    size_t parts;
    if (!looks->forest.looks) return PSI_OK;
    TRY(judging_find_parts(run->ctx, looks, &part, &parts));
    TRY(base_alloc_zero(run->ctx, parts * groups, sizeof *has, &has));
    for (size_t turn = 0; turn < 3; turn++) {
        for (size_t i = 0; i < run->problem->n_states; i++) {
            const uint64_t row = run->problem->states[i];
            const int32_t u = all->of[row], g = all->group[u];
            if (g < 0) continue;
            uint8_t *there = &has[(size_t)part[looks->leaf[row]] * groups + (size_t)g];
            if (turn == 0 && clear[u] == 1) *there = 1;
            if (turn == 1 && clear[u] == 0 && *there && all->rows[u] < FEW) clear[u] = 2;
            isolated += turn == 1 && clear[u] == 2;
            // their looks say otherwise: trajectories have to be sure of all of them together
            const double unsure = 1.0 - (double)confidence[row];
            if (turn == 2 && clear[u] == 2 && unsure * isolated > JUDGING_ALLOWED) clear[u] = 0;
        }
    }
done:
    base_free(run->ctx, has);
    base_free(run->ctx, part);
    return status;
}

// Whether action a was taken in unit u often enough to show another law, or, of looks, at all where
// all actions together have shown that it is the group's.
static bool is_shown(const judging *run, const units *all, size_t u, size_t a, const double *needed)
{
    const size_t actions = run->problem->data->n_actions;
    const uint32_t n = all->visits[u * actions + a];
    if (!run->taken[a] || (double)n >= needed[(size_t)all->group[u] * actions + a]) return true;
    return n > 0 && run->looks->forest.looks && all->same[u] > judging_safe((double)all->n);
}

// A unit is clear if each action was taken in it often enough to show another law, were it as far
// from the group's as the nearest other group's law is, or, of looks, if it was taken at all and
// all that followed is clearly the group's law.
psi_status judging_ask_for_visits(judging *run, size_t *doubtful)
{
    psi_status status = PSI_OK;
    const size_t actions = run->problem->data->n_actions;
    const bool looks = run->looks->forest.looks;
    const int32_t first = run->result->has_terminal ? 1 : 0;
    double *needed = NULL;
    uint8_t *clear = NULL;
    units all = {0};
    *doubtful = 0;
    TRY(base_alloc(run->ctx, run->found->grouping->n_groups * actions, sizeof *needed, &needed));
    TRY(find_needed(run, looks, needed));
    TRY(units_new(run, &all));
    TRY(base_alloc(run->ctx, all.n, sizeof *clear, &clear));
    for (size_t u = 0; u < all.n; u++) {
        clear[u] = all.group[u] >= 0 && all.against[u] <= LEAST_ODDS;
        for (size_t a = 0; clear[u] && a < actions; a++) {
            clear[u] = is_shown(run, &all, u, a, needed);
        }
    }
    TRY(ask_for_parts(run, &all, clear));
    for (size_t u = 0; u < all.n; u++) {
        const int32_t g = all.group[u];
        if (clear[u]) continue;
        *doubtful += all.rows[u];
        if (looks && (double)all.rows[u] <= JUDGING_DOUBTFUL * (double)run->problem->n_states)
            continue;
        for (size_t a = 0; g >= 0 && a < actions; a++) {
            if (is_shown(run, &all, u, a, needed)) continue;
            if (run->visits[(size_t)(g + first) * actions + a] == 0) continue; // said already
            TRY(judging_doubt(run, (psi_doubt){.kind = PSI_DOUBT_RARE,
                                               .state = g + first,
                                               .other = (int32_t)a,
                                               .visits = all.visits[u * actions + a]}));
        }
    }
done:
    units_free(run->ctx, &all);
    base_free(run->ctx, clear);
    base_free(run->ctx, needed);
    return status;
}
