// Grouping leaves by evidence. A few passes, each of which cuts the forest into cells that fit one
// group, founds groups for cells that fit none, joins groups that are one, gives up groups that are
// mixtures of others, and learns how random the world is.
#include "base/checked.h"
#include "base/context.h"
#include "base/disjoint.h"
#include "evidence/blend.h"
#include "evidence/check.h"
#include "evidence/groups.h"
#include "evidence/law.h"
#include "evidence/share.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PASSES = 8 };

// Nats by which a group has to beat every mixture of others to be a state of its own. Cells on the
// border of two states are mixtures whose proportions vary, which no single mixture explains fully:
// 10 nats leave some of their groups standing, 20 and 40 give the same partitions (docs/notebook).
static const double BLEND_MARGIN = 20.0;

// Nobody asks for more: that is one in 10²¹.
static const double LARGE_MARGIN = 50.0;

// What a node of the forest is: a cell of a group (≥ 0), or one of these.
enum { SPLIT = -2, NOVEL = -1, BLEND = -3 };

typedef struct cell {
    uint32_t node;
    int32_t group; // or NOVEL, BLEND
} cell;

typedef struct search {
    psi_ctx *ctx;
    const psi_forest *forest;
    double caution; // as in the draws
    evidence_rows rows;
    evidence_groups groups;
    blend_work *blend;
    double *value;   // (n_nodes) evidence of the best cut below a node
    int32_t *choice; // (n_nodes) a group, SPLIT, NOVEL or BLEND
    int32_t *label;  // (n_nodes) the group that all leaves of a node were in; SPLIT: several
    uint8_t *mixed;  // (n_nodes) was a cell of a group that is a mixture: founds none again
    cell *cells;     // (n_nodes)
    size_t n_cells;
    size_t blends;
    bool shared; // among processes
} search;

static bool is_leaf(const search *run, size_t v)
{
    return run->forest->left[v] < 0;
}

// ---- cutting the forest into cells --------------------------------------------------------------

static blend_row row_of(const search *run, size_t v)
{
    const evidence_rows *rows = &run->rows;
    return (blend_row){.n = rows->end[v] - rows->begin[v],
                       .outcome = rows->outcome + rows->begin[v],
                       .count = rows->count + rows->begin[v],
                       .precision = rows->precision + v * rows->n_means,
                       .weighted = rows->weighted + v * rows->n_means};
}

// The group that explains node v best, if any does so better than limit; its fit. except: one that
// is not asked.
static size_t best_group(search *run, size_t v, size_t except, double limit, double *fit)
{
    evidence_groups *groups = &run->groups;
    const int32_t before = run->label[v];
    const bool own = before >= 0 && (size_t)before != except;
    const double others = evidence_candidates(groups, v);
    size_t best = groups->n;
    *fit = limit;
    if (own && groups->cells[before]) { // the group it was in comes first
        const double now = evidence_fit(groups, (size_t)before, v, true, *fit);
        if (now > *fit) *fit = now, best = (size_t)before;
    }
    for (size_t listed = 2; listed-- > 0;) { // candidates first, then the others
        if (!listed && others <= *fit) break;
        for (size_t g = 0; g < groups->n; g++) {
            const bool candidate = groups->seen[g] == groups->mark;
            if (candidate != (listed == 1) || groups->cells[g] == 0) continue;
            if (g == except || (own && (int32_t)g == before)) continue;
            const double now = evidence_fit(groups, g, v, false, *fit);
            if (now > *fit) *fit = now, best = g;
        }
    }
    return best;
}

// How well a state of its own explains node v, where group g explains it best. An observation may
// be a state that shares most laws with g; a cell that does so is on the border of g, and has to be
// more than that. That n observations are in g, and this one is not, has odds of one to n.
static double novel(const search *run, size_t g, size_t v, double alone)
{
    const bool own = run->label[v] == (int32_t)g;
    const double others = (double)run->groups.cells[g] - (own ? 1.0 : 0.0);
    if (run->forest->impurity > 0.0) return alone - log(fmax(others, 1.0)) - run->caution;
    if (run->forest->looks) return alone - run->caution;
    return fmax(alone, evidence_novel(&run->groups, g, v, own)) - log(fmax(others, 1.0)) -
           run->caution;
}

// Nats by which a cell fits its group better than any other, which *nearest gets (n: none is near);
// a cell that is a group by itself, by which it is a state of its own.
static double margin_of(search *run, const cell *c, size_t *nearest)
{
    const evidence_groups *groups = &run->groups;
    const size_t own = (size_t)c->group;
    const bool single = groups->cells[own] == 1;
    const double fit = single ? evidence_novel(groups, groups->n, c->node, false)
                              : evidence_fit(groups, own, c->node, true, -HUGE_VAL);
    double other;
    *nearest = best_group(run, c->node, own, fit - LARGE_MARGIN, &other);
    if (*nearest == groups->n) return LARGE_MARGIN;
    return (single ? novel(run, *nearest, c->node, fit) + run->caution : fit) - other;
}

// A fit below that is worse than a state of its own, whatever is shared.
static double least_fit(const search *run, double alone)
{
    return alone - M_LN2 * (double)(run->rows.n_families + run->rows.n_means) - run->caution;
}

// From the leaves up: is a node best explained as a cell of one group, as one that founds a group,
// as a mixture (leaves only: other nodes can be cut further), or by cutting it?
static psi_status cut(search *run, bool first)
{
    psi_status status = PSI_OK;
    const size_t n = run->rows.n_nodes;
    size_t end;
    const size_t begin = evidence_own_part(run->ctx, run->shared, n, &end);
    const size_t live = evidence_groups_live(&run->groups);
    const double naming = log((double)live + 1.0) + M_LN2; // which group, and that it is not cut
    for (size_t v = end; v-- > begin;) {
        const bool leaf = is_leaf(run, v);
        double alone = evidence_novel(&run->groups, run->groups.n, v, false);
        double value = alone, fit;
        int32_t choice = NOVEL;
        const double least = least_fit(run, alone);
        const size_t g = best_group(run, v, SIZE_MAX, least, &fit);
        if (g < run->groups.n) {
            value = novel(run, g, v, alone);
            if (fit >= value || run->mixed[v]) value = fit, choice = (int32_t)g;
        } else if (run->mixed[v]) {
            value = -HUGE_VAL;
        }
        value -= naming;
        if (!first && run->forest->looks && run->forest->impurity == 0.0 &&
            (leaf || run->mixed[v]) && live > 1) {
            const blend_row row = row_of(run, v);
            const double blend =
                evidence_blend(run->blend, &run->groups, &row, run->groups.n, value + M_LN2);
            if (blend - M_LN2 > value) value = blend - M_LN2, choice = BLEND;
        }
        if (!leaf) {
            const double below =
                run->value[run->forest->left[v]] + run->value[run->forest->right[v]] - M_LN2;
            if (below > value) value = below, choice = SPLIT;
        }
        if (!isfinite(value)) choice = BLEND; // a leaf that nothing explains
        run->value[v] = value;
        run->choice[v] = choice;
    }
    TRY(evidence_fill_in(run->ctx, run->shared, run->value, sizeof *run->value, n));
    TRY(evidence_fill_in(run->ctx, run->shared, run->choice, sizeof *run->choice, n));
done:
    return status;
}

static int larger_first(const void *a, const void *b, void *user)
{
    const double *draws = user;
    const uint32_t x = ((const cell *)a)->node, y = ((const cell *)b)->node;
    if (draws[x] != draws[y]) return draws[x] < draws[y] ? 1 : -1;
    return x < y ? -1 : 1;
}

// The cells of the best cut, those with the most draws first.
static void list_cells(search *run)
{
    const psi_forest *forest = run->forest;
    run->n_cells = 0;
    // a node is reached if its parent was and is cut; children come after their parents
    for (size_t v = 0; v < run->rows.n_nodes; v++) run->label[v] = 0; // 1: below a cell
    for (size_t v = 0; v < run->rows.n_nodes; v++) {
        const bool covered = run->label[v] != 0, split = run->choice[v] == SPLIT;
        if (!is_leaf(run, v)) {
            run->label[forest->left[v]] = run->label[forest->right[v]] = covered || !split;
        }
        if (!covered && !split) {
            run->cells[run->n_cells++] = (cell){(uint32_t)v, run->choice[v]};
        }
    }
    qsort_r(run->cells, run->n_cells, sizeof *run->cells, larger_first, run->rows.draws);
}

// ---- groups from cells --------------------------------------------------------------------------

// Cells that fit no group found new ones, or join one that a larger cell has just founded.
static psi_status found_groups(search *run)
{
    psi_status status = PSI_OK;
    evidence_groups_clear(&run->groups);
    for (size_t i = 0; i < run->n_cells; i++) {
        const cell *c = &run->cells[i];
        if (c->group >= 0) {
            TRY(evidence_groups_add(run->ctx, &run->groups, (size_t)c->group, c->node));
        }
        run->label[c->node] = SPLIT; // in no group yet: nothing to be left out of its fit
    }
    for (size_t i = 0; i < run->n_cells; i++) {
        cell *c = &run->cells[i];
        if (c->group != NOVEL) continue;
        if (!evidence_is_followed(&run->rows, c->node)) {
            c->group = BLEND;
            continue;
        }
        const double alone = evidence_novel(&run->groups, run->groups.n, c->node, false);
        const double least = least_fit(run, alone);
        double fit;
        size_t g = best_group(run, c->node, SIZE_MAX, least, &fit);
        if (g == run->groups.n || fit < novel(run, g, c->node, alone)) {
            TRY(evidence_groups_slot(run->ctx, &run->groups, &g));
        }
        TRY(evidence_groups_add(run->ctx, &run->groups, g, c->node));
        c->group = (int32_t)g;
        TRY(base_cancelled(run->ctx));
    }
done:
    return status;
}

// Joins groups that are more probable as one state than as two, until none are.
static psi_status join_groups(search *run)
{
    psi_status status = PSI_OK;
    evidence_groups *groups = &run->groups;
    evidence_index index = {0};
    int32_t *into = NULL;
    TRY(evidence_index_new(run->ctx, groups, &index));
    TRY(base_alloc(run->ctx, groups->n, sizeof *into, &into));
    for (size_t g = 0; g < groups->n; g++) into[g] = (int32_t)g;
    for (bool joined = true; joined;) {
        joined = false;
        for (size_t g = 0; g < groups->n; g++) {
            for (size_t h = g + 1; groups->cells[g] && h < groups->n; h++) {
                if (groups->cells[h] == 0 ||
                    evidence_pair(groups, &index, g, h, -run->caution) < -run->caution) {
                    continue;
                }
                TRY(evidence_groups_join(run->ctx, groups, g, h));
                TRY(evidence_index_join(run->ctx, &index, g, h));
                into[h] = (int32_t)g;
                joined = true;
            }
        }
    }
    for (size_t i = 0; i < run->n_cells; i++) {
        int32_t *g = &run->cells[i].group;
        while (*g >= 0 && into[*g] != *g) *g = into[*g];
    }
done:
    base_free(run->ctx, into);
    evidence_index_free(run->ctx, &index);
    return status;
}

static double draws_of(const evidence_groups *groups, size_t g)
{
    double sum = 0.0;
    for (size_t f = 0; f < groups->rows->n_families; f++) {
        sum += groups->total[g * groups->rows->n_families + f];
    }
    return sum;
}

// Gives up groups that a mixture of others explains as well, the smallest first: cells that mix
// looks of several states, not a state. Their cells have to be cut further.
static psi_status give_up_blends(search *run)
{
    psi_status status = PSI_OK;
    evidence_groups *groups = &run->groups;
    const size_t outcomes = groups->rows->n_outcomes, means = groups->rows->n_means;
    uint32_t *outcome = NULL;
    float *count = NULL;
    uint8_t *asked = NULL;
    TRY(base_alloc(run->ctx, outcomes, sizeof *outcome, &outcome));
    TRY(base_alloc(run->ctx, outcomes, sizeof *count, &count));
    TRY(base_alloc_zero(run->ctx, groups->n, sizeof *asked, &asked));
    TRY(evidence_blend_prepare(run->ctx, run->blend, groups));
    for (size_t live = evidence_groups_live(groups), turn = live; turn > 0 && live > 2; turn--) {
        size_t g = groups->n, n = 0;
        for (size_t h = 0; h < groups->n; h++) {
            if (groups->cells[h] && !asked[h] &&
                (g == groups->n || draws_of(groups, h) < draws_of(groups, g))) {
                g = h;
            }
        }
        asked[g] = 1;
        for (uint32_t o = 0; o < outcomes; o++) {
            if (groups->count[g * outcomes + o] <= 0.0f) continue;
            outcome[n] = o;
            count[n++] = groups->count[g * outcomes + o];
        }
        const blend_row row = {n, outcome, count, groups->precision + g * means,
                               groups->weighted + g * means};
        const double own = evidence_of_group(groups, g) - BLEND_MARGIN;
        if (evidence_blend(run->blend, groups, &row, g, own) < own) continue;
        for (size_t i = 0; i < run->n_cells; i++) {
            if (run->cells[i].group != (int32_t)g) continue;
            run->cells[i].group = BLEND;
            run->mixed[run->cells[i].node] = 1;
        }
        evidence_groups_empty(groups, g);
        run->blends++;
        live--;
    }
done:
    base_free(run->ctx, asked);
    base_free(run->ctx, count);
    base_free(run->ctx, outcome);
    return status;
}

// Tells every node the group of its cell, and nodes above cells what their children agree on.
// Returns whether any leaf has changed its group since `before` (n_nodes) was written, anew.
static bool label_nodes(search *run, int32_t *before)
{
    const psi_forest *forest = run->forest;
    bool changed = false;
    for (size_t v = 0; v < run->rows.n_nodes; v++) run->label[v] = INT32_MIN;
    for (size_t i = 0; i < run->n_cells; i++) run->label[run->cells[i].node] = run->cells[i].group;
    for (size_t v = 0; v < run->rows.n_nodes; v++) {
        if (is_leaf(run, v)) {
            changed |= before[v] != run->label[v];
            before[v] = run->label[v];
        } else if (run->label[v] != INT32_MIN) {
            run->label[forest->left[v]] = run->label[forest->right[v]] = run->label[v];
        }
    }
    for (size_t v = run->rows.n_nodes; v-- > 0;) {
        if (run->label[v] != INT32_MIN) continue;
        const int32_t l = run->label[forest->left[v]], r = run->label[forest->right[v]];
        run->label[v] = l == r ? l : SPLIT;
    }
    return changed;
}

// ---- the result ---------------------------------------------------------------------------------

// Whether all that followed a group followed node v.
static bool is_all_of(const search *run, size_t v, size_t g)
{
    const evidence_groups *groups = &run->groups;
    const size_t means = run->rows.n_means;
    if (run->rows.draws[v] < draws_of(groups, g)) return false;
    for (size_t m = 0; m < means; m++) { // sums of real numbers, in another order
        const double all = groups->precision[g * means + m];
        if (run->rows.precision[v * means + m] < (1.0 - 1e-9) * all) return false;
    }
    return true;
}

// The two groups that are kept apart by least, and which are not clearly apart: linked (groups->n).
static psi_status find_weakest(search *run, double clear, int32_t *linked, psi_grouping *out)
{
    psi_status status = PSI_OK;
    const evidence_groups *groups = &run->groups;
    evidence_index index = {0};
    TRY(evidence_index_new(run->ctx, groups, &index));
    out->weakest = HUGE_VAL;
    for (size_t g = 0; g < groups->n; g++) linked[g] = (int32_t)g;
    for (size_t g = 0; g < groups->n; g++) {
        for (size_t h = g + 1; groups->cells[g] && h < groups->n; h++) {
            if (groups->cells[h] == 0) continue;
            const double limit = fmax(out->weakest, clear);
            const double apart = -evidence_pair(groups, &index, g, h, -limit);
            if (apart < clear) base_unite(linked, (int32_t)g, (int32_t)h);
            if (apart >= out->weakest) continue;
            out->weakest = apart;
            out->weakest_pair[0] = g;
            out->weakest_pair[1] = h;
        }
    }
    for (size_t g = 0; g < groups->n; g++) linked[g] = base_root(linked, (int32_t)g);
done:
    evidence_index_free(run->ctx, &index);
    return status;
}

// How clearly each cell is of its group, and which is the next one, by its name.
static psi_status find_margins(search *run, const int32_t *name, psi_grouping *out)
{
    psi_status status = PSI_OK;
    const size_t n = run->groups.n;
    float *margin = NULL; // (n_cells)
    int32_t *next = NULL;
    size_t end;
    TRY(base_alloc(run->ctx, run->n_cells, sizeof *margin, &margin));
    TRY(base_alloc(run->ctx, run->n_cells, sizeof *next, &next));
    for (size_t i = evidence_own_part(run->ctx, run->shared, run->n_cells, &end); i < end; i++) {
        size_t nearest = n;
        const cell *c = &run->cells[i];
        margin[i] = c->group < 0 ? 0.0f : (float)margin_of(run, c, &nearest);
        next[i] = nearest < n ? name[nearest] : -1;
    }
    TRY(evidence_fill_in(run->ctx, run->shared, margin, sizeof *margin, run->n_cells));
    TRY(evidence_fill_in(run->ctx, run->shared, next, sizeof *next, run->n_cells));
    for (size_t i = 0; i < run->n_cells; i++) {
        out->margin[run->cells[i].node] = margin[i];
        out->next[run->cells[i].node] = next[i];
    }
done:
    base_free(run->ctx, next);
    base_free(run->ctx, margin);
    return status;
}

static psi_status report(search *run, double clear, psi_grouping *out)
{
    psi_status status = PSI_OK;
    const evidence_groups *groups = &run->groups;
    const size_t n = run->rows.n_nodes, outcomes = run->rows.n_outcomes;
    int32_t *name = NULL, *linked = NULL;
    TRY(base_alloc(run->ctx, groups->n + 1, sizeof *name, &name));
    TRY(base_alloc(run->ctx, groups->n + 1, sizeof *linked, &linked));
    TRY(base_alloc(run->ctx, n, sizeof *out->group, &out->group));
    TRY(base_alloc_zero(run->ctx, n, sizeof *out->margin, &out->margin));
    TRY(base_alloc_zero(run->ctx, n, sizeof *out->next, &out->next));
    TRY(base_alloc_zero(run->ctx, n, sizeof *out->same, &out->same));
    TRY(base_alloc_zero(run->ctx, n, sizeof *out->against, &out->against));
    TRY(base_alloc(run->ctx, run->rows.n_families, sizeof(double), &out->concentration));
    memcpy(out->concentration, groups->concentration, run->rows.n_families * sizeof(double));
    out->n_families = run->rows.n_families;
    out->n_outcomes = outcomes;
    TRY(base_alloc(run->ctx, out->n_families + 1, sizeof *out->family, &out->family));
    memcpy(out->family, run->rows.first, (out->n_families + 1) * sizeof *out->family);
    TRY(find_weakest(run, clear, linked, out));
    for (size_t g = 0; g < groups->n; g++) {
        name[g] = groups->cells[g] ? (int32_t)out->n_groups++ : -1;
    }
    TRY(base_alloc(run->ctx, out->n_groups, sizeof *out->linked, &out->linked));
    for (size_t g = 0; g < groups->n; g++) {
        if (groups->cells[g]) out->linked[name[g]] = name[linked[g]];
    }
    for (size_t i = 0; out->weakest < HUGE_VAL && i < 2; i++) {
        out->weakest_pair[i] = (size_t)name[out->weakest_pair[i]];
    }
    TRY(base_alloc(run->ctx, out->n_groups, outcomes * sizeof *out->counts, &out->counts));
    for (size_t g = 0; g < groups->n; g++) {
        for (size_t o = 0; groups->cells[g] && o < outcomes; o++) {
            out->counts[(size_t)name[g] * outcomes + o] = (double)groups->count[g * outcomes + o];
        }
    }
    TRY(find_margins(run, name, out));
    for (size_t v = 0; v < n; v++) { // cells come before what is below them
        if (!is_leaf(run, v)) {
            const float margin = out->margin[v];
            if (run->choice[v] != SPLIT) {
                out->margin[run->forest->left[v]] = out->margin[run->forest->right[v]] = margin;
                out->next[run->forest->left[v]] = out->next[run->forest->right[v]] = out->next[v];
            }
            out->group[v] = -1;
        } else {
            out->group[v] = run->label[v] < 0 ? -1 : name[run->label[v]];
        }
    }
    size_t end;
    for (size_t v = evidence_own_part(run->ctx, run->shared, n, &end); v < end; v++) {
        const int32_t g = run->label[v];
        if (g < 0) continue;
        const bool all = is_all_of(run, v, (size_t)g);
        out->same[v] = all ? HUGE_VALF
                           : (float)(evidence_fit(groups, (size_t)g, v, true, -HUGE_VAL) -
                                     evidence_novel(groups, groups->n, v, false));
        if (!run->forest->looks) out->against[v] = (float)evidence_against(groups, (size_t)g, v);
    }
    TRY(evidence_fill_in(run->ctx, run->shared, out->same, sizeof *out->same, n));
    TRY(evidence_fill_in(run->ctx, run->shared, out->against, sizeof *out->against, n));
    out->blends = run->blends;
done:
    base_free(run->ctx, linked);
    base_free(run->ctx, name);
    return status;
}

psi_status psi_group(psi_ctx *ctx, const psi_forest *forest, const psi_draws *draws,
                     size_t max_groups, psi_grouping **out)
{
    psi_status status = PSI_OK;
    const size_t n = forest->n_nodes;
    search run = {.ctx = ctx, .forest = forest, .caution = draws->caution};
    run.shared = evidence_is_shared(ctx, forest, draws);
    const bool blended = forest->looks && forest->impurity == 0.0; // cells may mix latent states
    psi_grouping *made = NULL;
    int32_t *before = NULL;
    *out = NULL;
    TRY(evidence_check(ctx, forest, draws));
    TRY(evidence_rows_new(ctx, forest, draws, &run.rows));
    TRY(evidence_groups_new(ctx, &run.rows, &run.groups));
    run.groups.exact = !forest->looks;
    run.groups.impurity = forest->impurity;
    TRY(evidence_blend_new(ctx, &run.groups, &run.blend));
    TRY(base_alloc(ctx, n, sizeof *run.value, &run.value));
    TRY(base_alloc(ctx, n, sizeof *run.choice, &run.choice));
    TRY(base_alloc(ctx, n, sizeof *run.label, &run.label));
    TRY(base_alloc_zero(ctx, n, sizeof *run.mixed, &run.mixed));
    TRY(base_alloc(ctx, n, sizeof *run.cells, &run.cells));
    TRY(base_alloc(ctx, n, sizeof *before, &before));
    for (size_t v = 0; v < n; v++) run.label[v] = before[v] = SPLIT;
    for (size_t pass = 0; pass < MOST_PASSES; pass++) {
        TRY(cut(&run, pass == 0));
        list_cells(&run);
        TRY(found_groups(&run));
        if (forest->impurity == 0.0) TRY(join_groups(&run));
        if (evidence_groups_live(&run.groups) > max_groups) {
            status =
                FAIL(ctx, PSI_ELIMIT, "there are more than %zu latent states (--max-latent-states)",
                     max_groups);
            goto done;
        }
        run.blends = 0;
        if (blended) TRY(give_up_blends(&run));
        const bool changed = label_nodes(&run, before);
        if (!changed && pass > 1) break;
        TRY(evidence_learn_concentration(ctx, &run.groups));
        if (blended) TRY(evidence_blend_prepare(ctx, run.blend, &run.groups));
    }
    TRY(base_alloc_zero(ctx, 1, sizeof *made, &made));
    TRY(report(&run, draws->clear, made));
    *out = made;
    made = NULL;
done:
    psi_grouping_free(ctx, made);
    base_free(ctx, before);
    base_free(ctx, run.cells);
    base_free(ctx, run.mixed);
    base_free(ctx, run.label);
    base_free(ctx, run.choice);
    base_free(ctx, run.value);
    evidence_blend_free(ctx, run.blend);
    evidence_groups_free(ctx, &run.groups);
    evidence_rows_free(ctx, &run.rows);
    return status;
}

void psi_grouping_free(psi_ctx *ctx, psi_grouping *grouping)
{
    if (!grouping || FREED(ctx, grouping)) return;
    base_free(ctx, grouping->group);
    base_free(ctx, grouping->margin);
    base_free(ctx, grouping->next);
    base_free(ctx, grouping->linked);
    base_free(ctx, grouping->same);
    base_free(ctx, grouping->against);
    base_free(ctx, grouping->family);
    base_free(ctx, grouping->counts);
    base_free(ctx, grouping->concentration);
    base_retire(ctx, grouping);
}
