// Looks that were seen too rarely: could an observation be of another latent state than the one
// that it was put into, and the data not show it?
#include "verdict/judging.h"

#include "base/checked.h"
#include "base/comm.h"
#include "base/context.h"
#include "verdict/contexts.h"
#include "verdict/units.h"

#include <math.h>

// What may speak against an observation's latent state: odds of nine to one.
static const double LEAST_ODDS = 2.1972245773362196;

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

uint64_t verdict_enough(double needed)
{
    return needed < 1e15 ? (uint64_t)ceil(needed) : 0;
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

// How far group g is from the nearest other one, where they differ most. A latent state that
// was not found is taken to be no nearer than that.
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
static psi_status find_needed(judging *run, double *needed)
{
    psi_status status = PSI_OK;
    const psi_grouping *groups = run->found->grouping;
    const size_t actions = run->problem->data->n_actions;
    laws all = {0};
    TRY(laws_new(run->ctx, groups, &all));
    for (size_t g = 0; g < groups->n_groups; g++) {
        TRY(base_cancelled(run->ctx));
        const double *counts = groups->counts + g * groups->n_outcomes;
        const double nearest = distance_to_nearest(groups, &all, g);
        const double apart = fmin(nearest, 1.5 * RESOLUTION); // at three standard errors, not two
        for (size_t a = 0; a < actions; a++) {
            needed[g * actions + a] = fmax(draws_needed(counts, groups->family, 2 * a, apart),
                                           draws_needed(counts, groups->family, 2 * a + 1, apart));
        }
    }
done:
    laws_free(run->ctx, &all);
    return status;
}

// ---- what stands apart in the vectors -----------------------------------------------------------

// Learnt features may have learnt that a look that was seen a few times is like another. So each
// part of the tree over the vectors themselves that stands apart by gaps has to show enough of
// every action, too.
psi_status verdict_ask_vectors(judging *run, const problem_looks *vectors, size_t *doubtful)
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
    TRY(find_needed(run, needed));
    TRY(verdict_ask_clumps(run, vectors, needed, doubtful));
    TRY(verdict_find_parts(run->ctx, vectors, &part, &parts));
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
    TRY(base_sum_u32(run->ctx, visits, parts * actions));
    TRY(base_sum_u32(run->ctx, labels, parts * k));
    for (size_t p = 0; p < parts; p++) {
        largest[p] = 0;
        for (size_t i = 0; i < k; i++) {
            if (labels[p * k + i] > labels[p * k + largest[p]]) largest[p] = i;
        }
    }
    TRY(verdict_compare_contexts(run->ctx, problem, run->rewards, run->result->labels, k, context,
                                 REFINE_ALLOWED, &share, &worst, same));
    for (size_t t = 0; t < data->n_transitions; t++) { // what the largest label of a part says
        if (run->result->labels[problem->row[t]] == (int32_t)largest[context[t]]) {
            agrees[context[t]] = (double)same[t] > refine_safe_nats((double)parts);
        }
    }
    TRY(base_any(run->ctx, agrees, parts));
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

// ---- often enough? ------------------------------------------------------------------------------

// Rows that trajectories have labelled amid looks of other latent states are units of a few rows.
// Nothing stands apart where the part of the tree that they are in has a clear unit of their latent
// state: there it is enough that trajectories are sure of them.
static psi_status ask_for_parts(judging *run, const units *all, uint8_t *clear)
{
    psi_status status = PSI_OK;
    const problem_looks *looks = run->looks;
    const size_t groups = run->found->grouping->n_groups;
    const float *confidence = run->found->confidence;
    double isolated = 0.0; // rows
    uint8_t *has = NULL;   // (parts, groups) a clear unit
    int32_t *part = NULL;
    size_t parts;
    if (!looks->forest.looks) return PSI_OK;
    TRY(verdict_find_parts(run->ctx, looks, &part, &parts));
    TRY(base_alloc_zero(run->ctx, parts * groups, sizeof *has, &has));
    const base_block seen[] = {
        {has, parts * groups}, {clear, all->n}, {&isolated, sizeof isolated}};
    for (size_t turn = 0; turn < 3; turn++) {
        TRY(base_take_turn_with(run->ctx, seen, 3));
        for (size_t i = 0; i < run->problem->n_states; i++) {
            const uint64_t row = run->problem->states[i];
            const int32_t u = all->of[row], g = all->group[u];
            if (g < 0) continue;
            uint8_t *there = &has[(size_t)part[looks->leaf[row]] * groups + (size_t)g];
            if (turn == 0 && clear[u] == 1) *there = 1;
            if (turn == 1 && clear[u] == 0 && *there && all->rows[u] < UNITS_FEW) clear[u] = 2;
            isolated += turn == 1 && clear[u] == 2;
            // their looks say otherwise: trajectories have to be sure of all of them together
            const double unsure = 1.0 - (double)confidence[row];
            if (turn == 2 && clear[u] == 2 && unsure * isolated > REFINE_ALLOWED) clear[u] = 0;
        }
        TRY(base_end_turn_with(run->ctx, seen, 3));
    }
done:
    base_free(run->ctx, has);
    base_free(run->ctx, part);
    return status;
}

// Whether action a was taken in a unit of looks often enough to show another law, or at all where
// all actions together have shown that it is the group's.
static bool is_shown(const judging *run, const units *all, size_t u, size_t a, const double *needed)
{
    const size_t actions = run->problem->data->n_actions;
    const uint32_t n = all->visits[u * actions + a];
    if (!run->taken[a]) return true;
    if ((double)n >= needed[(size_t)all->group[u] * actions + a]) return true;
    return n > 0 && all->same[u] > refine_safe_nats((double)all->n);
}

// What is left open of the units that are not clear.
static psi_status say_what_is_rare(judging *run, const units *all, const uint8_t *clear,
                                   const double *needed)
{
    psi_status status = PSI_OK;
    const size_t actions = run->problem->data->n_actions;
    const int32_t first = run->result->has_terminal ? 1 : 0;
    const double few = VERDICT_DOUBTFUL * (double)run->problem->whole.n_states;
    for (size_t u = 0; u < all->n; u++) {
        const int32_t g = all->group[u];
        if (clear[u] || g < 0 || (double)all->rows[u] <= few) continue;
        for (size_t a = 0; a < actions; a++) {
            if (is_shown(run, all, u, a, needed)) continue;
            if (run->visits[(size_t)(g + first) * actions + a] == 0) continue; // reported already
            TRY(verdict_doubt(
                run, (psi_doubt){.kind = PSI_DOUBT_RARE,
                                 .state = g + first,
                                 .other = (int32_t)a,
                                 .visits = all->visits[u * actions + a],
                                 .enough = verdict_enough(needed[(size_t)g * actions + a])}));
        }
    }
done:
    return status;
}

// A unit of looks is clear if each action was taken in it often enough to show another law, were it
// as far from the group's as the nearest other group's law is, or at all where all that followed is
// clearly the group's law.
static psi_status ask_looks(judging *run, const units *all, uint8_t *clear, size_t *clumps)
{
    psi_status status = PSI_OK;
    const size_t actions = run->problem->data->n_actions;
    double *needed = NULL;
    TRY(base_alloc(run->ctx, run->found->grouping->n_groups * actions, sizeof *needed, &needed));
    TRY(find_needed(run, needed));
    for (size_t u = 0; u < all->n; u++) {
        for (size_t a = 0; clear[u] && a < actions; a++) {
            clear[u] = is_shown(run, all, u, a, needed);
        }
    }
    TRY(ask_for_parts(run, all, clear));
    TRY(say_what_is_rare(run, all, clear, needed));
    TRY(verdict_ask_clumps(run, run->looks, needed, clumps));
done:
    base_free(run->ctx, needed);
    return status;
}

psi_status verdict_ask_for_visits(judging *run, size_t *doubtful)
{
    psi_status status = PSI_OK;
    const bool looks = run->looks->forest.looks;
    uint8_t *clear = NULL, *several = NULL;
    units all = {0};
    size_t more; // rows
    *doubtful = 0;
    TRY(verdict_units_new(run, &all));
    TRY(base_alloc(run->ctx, all.n, sizeof *clear, &clear));
    TRY(base_alloc(run->ctx, run->found->grouping->n_groups, sizeof *several, &several));
    if (!looks) TRY(verdict_ask_merged(run, &all, several, &more));
    TRY(verdict_ask_for_actions(run, looks ? NULL : several));
    for (size_t u = 0; u < all.n; u++) {
        clear[u] = all.group[u] >= 0 && all.against[u] <= LEAST_ODDS;
    }
    if (looks) TRY(ask_looks(run, &all, clear, &more));
    for (size_t u = 0; u < all.n; u++) *doubtful += clear[u] ? 0 : all.rows[u];
    *doubtful = base_max(*doubtful, more);
done:
    verdict_units_free(run->ctx, &all);
    base_free(run->ctx, several);
    base_free(run->ctx, clear);
    return status;
}
