#include "verdict/units.h"

#include "base/checked.h"
#include "base/comm.h"
#include "base/context.h"
#include "base/disjoint.h"

#include <math.h>
#include <string.h>

// Halves of a branch that are so many standard deviations apart look different; with fewer rows
// than UNITS_FEW and two for every dimension in either, chance makes such gaps.
static const double GAP = 3.0;
enum { LARGE = 512 };

// ---- parts --------------------------------------------------------------------------------------

// Whether the halves of a node are so many standard deviations apart, beyond chance.
static bool is_gap(const problem_looks *looks, size_t v, double gap)
{
    if (looks->left[v] < 0 || (double)looks->gap[v] <= gap) return false;
    const size_t l = (size_t)looks->left[v], r = (size_t)looks->right[v];
    const size_t n = base_min(looks->end[l] - looks->begin[l], looks->end[r] - looks->begin[r]);
    // the widest direction of n points in d dimensions is that much wider than it should be
    const double chance = 1.0 + sqrt((double)looks->width / (double)n);
    return n >= UNITS_FEW + 2 * looks->width && (double)looks->gap[v] > gap * chance * chance;
}

static psi_status find_parts(psi_ctx *ctx, const problem_looks *looks, double gap, int32_t **part,
                             size_t *n)
{
    psi_status status = PSI_OK;
    *n = 0;
    TRY(base_alloc(ctx, looks->forest.n_nodes, sizeof **part, part));
    for (size_t v = 0; v < looks->forest.n_nodes; v++) { // parents come first
        const int32_t up = looks->parent[v];
        (*part)[v] = up < 0 || is_gap(looks, (size_t)up, gap) ? (int32_t)(*n)++ : (*part)[up];
    }
done:
    return status;
}

psi_status verdict_find_parts(psi_ctx *ctx, const problem_looks *looks, int32_t **part, size_t *n)
{
    return find_parts(ctx, looks, GAP, part, n);
}

// An even distribution that is cut in two has a gap of √3. What is remembered may be told apart by
// less than what claims to be one thing: too fine a memory foretells nothing, and is asked in vain.
psi_status verdict_find_memorable_parts(psi_ctx *ctx, const problem_looks *looks, int32_t **part,
                                        size_t *n)
{
    return find_parts(ctx, looks, 2.0, part, n);
}

// ---- units --------------------------------------------------------------------------------------

void verdict_units_free(psi_ctx *ctx, units *all)
{
    base_free(ctx, all->of);
    base_free(ctx, all->group);
    base_free(ctx, all->visits);
    base_free(ctx, all->rows);
    base_free(ctx, all->same);
    base_free(ctx, all->against);
}

// Branches of the tree whose leaves are all of one group, and have no gap between them.
static psi_status find_branches(judging *run, int32_t *branch)
{
    psi_status status = PSI_OK;
    const problem_looks *looks = run->looks;
    const size_t nodes = looks->forest.n_nodes;
    int32_t *label = NULL;
    TRY(base_alloc(run->ctx, nodes, sizeof *label, &label));
    for (size_t v = nodes; v-- > 0;) {
        label[v] = run->found->grouping->group[v];
        if (looks->left[v] < 0) continue;
        const int32_t l = label[looks->left[v]], r = label[looks->right[v]];
        label[v] = l == r && !is_gap(looks, v, GAP) ? l : -1;
    }
    for (size_t v = 0; v < nodes; v++) { // −1: nodes above branches, and leaves that mix groups
        const int32_t up = looks->parent[v];
        branch[v] = label[v] < 0 ? -1 : up >= 0 && branch[up] >= 0 ? branch[up] : (int32_t)v;
    }
done:
    base_free(run->ctx, label);
    return status;
}

// References that look most alike and have one label are of one unit, so that borders between
// planes of the tree, and cells that mix latent states, part nothing.
static psi_status link_rows(judging *run, const int32_t *branch, int32_t *to)
{
    psi_status status = PSI_OK;
    const problem_looks *looks = run->looks;
    const int32_t *labels = run->labels;
    const int32_t first = run->result->has_terminal ? 1 : 0;
    for (size_t v = 0; v < looks->forest.n_nodes; v++) {
        int32_t one = -1;
        if (branch[v] != (int32_t)v) continue;
        const int32_t label = run->found->grouping->group[looks->leaf[looks->row[looks->begin[v]]]];
        for (uint64_t i = looks->begin[v]; i < looks->end[v]; i++) {
            if (labels[looks->row[i]] != label + first) continue;
            if (one < 0) one = (int32_t)looks->row[i];
            base_unite(to, one, (int32_t)looks->row[i]);
        }
    }
    for (size_t i = 0; i < looks->n_references; i++) {
        const uint64_t row = looks->reference[i];
        const int32_t v = branch[looks->leaf[row]];
        uint64_t nearest[LOOKS_NEAREST];
        if (labels[row] < 0 || (v >= 0 && looks->end[v] - looks->begin[v] > LARGE)) continue;
        if (i % 4096 == 0) TRY(base_cancelled(run->ctx));
        const size_t n = problem_looks_nearest(looks, row, nearest);
        for (size_t j = 0; j < n; j++) {
            if (labels[nearest[j]] == labels[row])
                base_unite(to, (int32_t)row, (int32_t)nearest[j]);
        }
    }
done:
    return status;
}

// The planes of the tree may cut a few rows off from those that they look most like: rows of small
// units are compared with all others. Where very many are small, none of them is.
static psi_status link_small_units(judging *run, int32_t *to)
{
    psi_status status = PSI_OK;
    enum { MOST_ROWS = 2048 };
    const problem_looks *looks = run->looks;
    const int32_t *labels = run->labels;
    uint64_t nearest[LOOKS_NEAREST], small[MOST_ROWS];
    uint32_t *size = NULL;
    size_t n = 0;
    TRY(base_alloc_zero(run->ctx, looks->n_rows + looks->foreign, sizeof *size, &size));
    for (size_t i = 0; i < looks->n_references; i++) {
        size[base_root(to, (int32_t)looks->reference[i])]++;
    }
    for (size_t i = 0; i < looks->n_references && n < MOST_ROWS; i++) {
        const uint64_t row = looks->reference[i];
        if (labels[row] >= 0 && size[base_root(to, (int32_t)row)] < UNITS_FEW) small[n++] = row;
    }
    for (size_t i = 0; n < MOST_ROWS && i < n; i++) {
        TRY(base_cancelled(run->ctx));
        const size_t found = problem_looks_nearest_of_all(looks, small[i], nearest);
        for (size_t j = 0; j < found; j++) {
            if (labels[nearest[j]] != labels[small[i]]) continue;
            base_unite(to, (int32_t)small[i], (int32_t)nearest[j]);
        }
    }
done:
    base_free(run->ctx, size);
    return status;
}

// The unit of a row that is no reference: that of the nearest one of its label, if there is one
// among the nearest of all; else −1.
static int32_t unit_of(const judging *run, const units *out, uint64_t row)
{
    uint64_t nearest[LOOKS_NEAREST];
    for (size_t turn = 0; turn < 2; turn++) {
        const size_t n = turn == 0 ? problem_looks_nearest(run->looks, row, nearest)
                                   : problem_looks_nearest_of_all(run->looks, row, nearest);
        for (size_t i = 0; i < n; i++) {
            if (run->labels[nearest[i]] == run->labels[row]) return out->of[nearest[i]];
        }
    }
    return -1;
}

// Where only some rows are references, the others are of their units, or of one each: those come
// last, in the order of the data.
static psi_status add_rows(judging *run, units *out)
{
    psi_status status = PSI_OK;
    const cluster_problem *problem = run->problem;
    const int32_t first = run->result->has_terminal ? 1 : 0;
    int32_t *own = NULL, *all = NULL; // groups of units of one row
    size_t n = 0, next, bytes;
    TRY(base_alloc(run->ctx, problem->n_states, sizeof *own, &own));
    for (size_t i = 0; i < problem->n_states; i++) {
        const uint64_t row = problem->states[i];
        if (out->of[row] >= 0) continue;
        if (i % 4096 == 0) TRY(base_cancelled(run->ctx));
        out->of[row] = unit_of(run, out, row);
        if (out->of[row] >= 0) continue;
        own[n++] = run->labels[row] < 0 ? -1 : run->labels[row] - first;
    }
    TRY(base_gather_parts(run->ctx, own, n * sizeof *own, &all, &bytes));
    TRY(base_sum_before(run->ctx, n, &next));
    next += out->n;
    for (size_t i = 0; i < problem->n_states; i++) {
        int32_t *of = &out->of[problem->states[i]];
        if (*of < 0) *of = (int32_t)next++;
    }
    TRY(base_resize(run->ctx, out->n + bytes / sizeof *all, sizeof *out->group, &out->group));
    memcpy(out->group + out->n, all, bytes);
    out->n += bytes / sizeof *all;
done:
    base_free(run->ctx, all);
    base_free(run->ctx, own);
    return status;
}

static psi_status count_rows(judging *run, units *out)
{
    psi_status status = PSI_OK;
    const cluster_problem *problem = run->problem;
    const psi_trajectories *data = problem->data;
    TRY(base_alloc_zero(run->ctx, out->n * data->n_actions, sizeof *out->visits, &out->visits));
    TRY(base_alloc_zero(run->ctx, out->n, sizeof *out->rows, &out->rows));
    for (size_t i = 0; i < problem->n_states; i++) out->rows[out->of[problem->states[i]]]++;
    for (size_t t = 0; t < data->n_transitions; t++) {
        const size_t unit = (size_t)out->of[problem->row[t]];
        out->visits[unit * data->n_actions + (size_t)data->actions[t]]++;
    }
    TRY(base_sum_sizes(run->ctx, out->rows, out->n));
    TRY(base_sum_u32(run->ctx, out->visits, out->n * data->n_actions));
done:
    return status;
}

// Of a table every leaf is one, named in the order in which they were first seen.
static psi_status units_of_table(judging *run, units *out)
{
    psi_status status = PSI_OK;
    const cluster_problem *problem = run->problem;
    const size_t nodes = run->looks->forest.n_nodes;
    const int32_t first = run->result->has_terminal ? 1 : 0;
    int32_t *name = NULL; // (nodes)
    TRY(base_alloc(run->ctx, nodes, sizeof *name, &name));
    TRY(base_alloc_zero(run->ctx, nodes, sizeof *out->group, &out->group));
    for (size_t v = 0; v < nodes; v++) name[v] = -1;
    const base_block turn[] = {{name, nodes * sizeof *name},
                               {out->group, nodes * sizeof *out->group},
                               {&out->n, sizeof out->n}};
    TRY(base_take_turn_with(run->ctx, turn, 3));
    for (size_t i = 0; i < problem->n_states; i++) {
        const uint64_t row = problem->states[i];
        const int32_t leaf = run->looks->leaf[row], label = run->result->labels[row];
        if (name[leaf] < 0) {
            out->group[out->n] = label < 0 ? -1 : label - first;
            name[leaf] = (int32_t)out->n++;
        }
        out->of[row] = name[leaf];
    }
    TRY(base_end_turn_with(run->ctx, turn, 3));
    TRY(count_rows(run, out));
    TRY(base_alloc_zero(run->ctx, out->n, sizeof *out->same, &out->same));
    TRY(base_alloc_zero(run->ctx, out->n, sizeof *out->against, &out->against));
    for (size_t v = 0; v < nodes; v++) {
        if (name[v] >= 0) out->against[name[v]] = (double)run->found->grouping->against[v];
    }
done:
    base_free(run->ctx, name);
    return status;
}

static psi_status units_of_looks(judging *run, units *out)
{
    psi_status status = PSI_OK;
    const problem_looks *looks = run->looks;
    const psi_grouping *groups = run->found->grouping;
    const size_t rows = looks->n_rows + looks->foreign, nodes = looks->forest.n_nodes;
    const int32_t first = run->result->has_terminal ? 1 : 0;
    int32_t *to = NULL, *branch = NULL;
    TRY(base_alloc(run->ctx, rows, sizeof *to, &to));
    TRY(base_alloc(run->ctx, nodes, sizeof *branch, &branch));
    TRY(base_alloc(run->ctx, looks->n_references, sizeof *out->group, &out->group));
    for (size_t i = 0; i < rows; i++) to[i] = (int32_t)i;
    TRY(find_branches(run, branch));
    TRY(link_rows(run, branch, to));
    TRY(link_small_units(run, to));
    for (size_t i = 0; i < looks->n_references; i++) {
        const uint64_t row = looks->reference[i];
        int32_t *name = &out->of[base_root(to, (int32_t)row)]; // that of its first row
        if (*name < 0) {
            const int32_t label = run->labels[row];
            out->group[out->n] = label < 0 ? -1 : label - first;
            *name = (int32_t)out->n++;
        }
        out->of[row] = *name;
    }
    if (problem_looks_are_sampled(run->problem, looks)) TRY(add_rows(run, out));
    TRY(count_rows(run, out));
    TRY(base_alloc_zero(run->ctx, out->n, sizeof *out->same, &out->same));
    TRY(base_alloc_zero(run->ctx, out->n, sizeof *out->against, &out->against));
    for (size_t v = 0; v < nodes; v++) {
        if (branch[v] != (int32_t)v) continue;
        // trajectories may have labelled some rows of a branch otherwise: what it says is not of
        // them
        const int32_t g = groups->group[looks->leaf[looks->row[looks->begin[v]]]];
        uint64_t i = looks->begin[v];
        while (i < looks->end[v] && run->labels[looks->row[i]] != g + first) i++;
        if (i < looks->end[v]) out->same[out->of[looks->row[i]]] += (double)groups->same[v];
    }
done:
    base_free(run->ctx, branch);
    base_free(run->ctx, to);
    return status;
}

psi_status verdict_units_new(judging *run, units *out)
{
    psi_status status = PSI_OK;
    const size_t rows = run->problem->n_rows + run->looks->foreign;
    TRY(base_alloc(run->ctx, rows, sizeof *out->of, &out->of));
    for (size_t i = 0; i < rows; i++) out->of[i] = -1;
    TRY(run->looks->forest.looks ? units_of_looks(run, out) : units_of_table(run, out));
done:
    return status;
}
