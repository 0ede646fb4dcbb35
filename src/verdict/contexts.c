#include "verdict/contexts.h"

#include "base/checked.h"
#include "base/context.h"
#include "base/tally.h"
#include "problem/draws.h"

#include <math.h>

// What is asked of: transitions whose latent states are known, by `of` (n_rows), below n_of, and
// context (NULL: all the same).
typedef struct question {
    const cluster_problem *problem;
    const outcome_rewards *rewards;
    const int32_t *of, *labels;
    size_t n_of, n_latent;
    const uint64_t *context;
} question;

// A leaf for every context of every latent state, in this order, and what followed each.
typedef struct leaves {
    size_t n, total; // transitions in all
    base_times *key; // (n) latent state and context, with the transitions of each
    problem_draws draws;
    uint32_t *first;       // (2 · actions + 1)
    int32_t *none, *state; // (n) no children; the latent state
    float *nats, *same;    // (n) as psi_misfit has them
} leaves;

enum { KEY_BITS = 40 }; // of a context
#define KEY_NONE UINT64_MAX

static uint64_t key_of(const question *asked, size_t t)
{
    const uint64_t row = asked->problem->row[t], where = asked->context ? asked->context[t] : 0;
    if (where == CONTEXT_NONE || asked->of[row] < 0 || asked->labels[row + 1] < 0) return KEY_NONE;
    return (uint64_t)asked->of[row] << KEY_BITS | where;
}

static size_t leaf_of(const leaves *all, uint64_t key)
{
    size_t low = 0;
    for (size_t high = all->n; low + 1 < high;) {
        const size_t middle = (low + high) / 2;
        if (all->key[middle].key <= key) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

static void leaves_free(psi_ctx *ctx, leaves *all)
{
    base_free(ctx, all->key);
    problem_draws_free(ctx, &all->draws);
    base_free(ctx, all->first);
    base_free(ctx, all->none);
    base_free(ctx, all->state);
    base_free(ctx, all->nats);
    base_free(ctx, all->same);
}

static psi_status list_leaves(psi_ctx *ctx, const question *asked, leaves *out)
{
    psi_status status = PSI_OK;
    const size_t transitions = asked->problem->data->n_transitions;
    uint64_t *keys = NULL;
    size_t n = 0;
    TRY(base_alloc(ctx, transitions, sizeof *keys, &keys));
    for (size_t t = 0; t < transitions; t++) {
        keys[n] = key_of(asked, t);
        n += keys[n] != KEY_NONE;
    }
    TRY(base_tally(ctx, keys, n, &out->key, &out->n));
    TRY(base_alloc(ctx, out->n, sizeof *out->none, &out->none));
    TRY(base_alloc(ctx, out->n, sizeof *out->state, &out->state));
    TRY(base_alloc(ctx, out->n, sizeof *out->nats, &out->nats));
    TRY(base_alloc(ctx, out->n, sizeof *out->same, &out->same));
    for (size_t v = 0; v < out->n; v++) {
        out->none[v] = -1;
        out->state[v] = (int32_t)(out->key[v].key >> KEY_BITS);
        out->total += (size_t)out->key[v].n;
    }
done:
    base_free(ctx, keys);
    return status;
}

// n = 0 if nothing is asked of.
static psi_status leaves_new(psi_ctx *ctx, const question *asked, leaves *out)
{
    psi_status status = PSI_OK;
    const psi_trajectories *data = asked->problem->data;
    const outcome_rewards *rewards = asked->rewards;
    const size_t actions = data->n_actions,
                 wide = base_max(asked->n_latent, base_max(rewards->n, 1));
    uint32_t *number = NULL;
    size_t cells, room = 0;
    TRY(list_leaves(ctx, asked, out));
    if (out->n == 0) goto done;
    if (!base_mul(2 * actions, wide, &cells) || cells > UINT32_MAX / 2) {
        status = FAIL(ctx, PSI_ELIMIT, "%zu actions with %zu latent states are too many", actions,
                      asked->n_latent);
        goto done;
    }
    for (size_t t = 0; t < data->n_transitions; t++) room += key_of(asked, t) != KEY_NONE;
    TRY(problem_draws_new(ctx, 2 * room, &out->draws));
    TRY(base_alloc(ctx, cells, sizeof *number, &number));
    TRY(base_alloc(ctx, 2 * actions + 1, sizeof *out->first, &out->first));
    for (size_t t = 0; t < data->n_transitions; t++) {
        const uint64_t key = key_of(asked, t);
        if (key == KEY_NONE) continue;
        const size_t leaf = leaf_of(out, key), family = 2 * (size_t)data->actions[t];
        const int32_t next = asked->labels[asked->problem->row[t] + 1];
        problem_draws_add(&out->draws, leaf, family * wide + (size_t)next);
        if (rewards->n < 2) continue;
        problem_draws_add(&out->draws, leaf, (family + 1) * wide + (size_t)rewards->of[t]);
    }
    TRY(problem_draws_together(ctx, &out->draws));
    problem_draws_number(&out->draws, 2 * actions, wide, number, out->first);
done:
    base_free(ctx, number);
    return status;
}

static psi_draws what_followed(const leaves *all, size_t n_actions)
{
    return (psi_draws){.n = all->draws.n,
                       .node = all->draws.node,
                       .outcome = all->draws.outcome,
                       .times = all->draws.times,
                       .n_families = 2 * n_actions,
                       .family = all->first,
                       .together = true};
}

static psi_status compare(psi_ctx *ctx, const question *asked, double allowed, double *share,
                          int32_t *worst, float *same)
{
    psi_status status = PSI_OK;
    const psi_trajectories *data = asked->problem->data;
    leaves all = {0};
    double *of_state = NULL;
    *share = 0.0;
    *worst = -1;
    TRY(leaves_new(ctx, asked, &all));
    if (all.n == 0) goto done;
    TRY(base_alloc_zero(ctx, asked->n_of, sizeof *of_state, &of_state));
    const psi_forest forest = {all.n, all.none, all.none, false, 0.0};
    const psi_draws what = what_followed(&all, data->n_actions);
    TRY(psi_misfit(ctx, &forest, &what, asked->n_of, all.state, all.nats, all.same));
    for (size_t t = 0; same && t < data->n_transitions; t++) {
        const uint64_t key = key_of(asked, t);
        if (key != KEY_NONE) same[t] = all.same[leaf_of(&all, key)];
    }
    const double clear = log((double)all.n / allowed);
    for (size_t v = 0; v < all.n; v++) {
        if ((double)all.nats[v] < clear) continue;
        const double weight = (double)all.key[v].n;
        of_state[all.state[v]] += weight;
        *share += weight / (double)all.total;
        if (*worst < 0 || of_state[all.state[v]] > of_state[*worst]) *worst = all.state[v];
    }
done:
    base_free(ctx, of_state);
    leaves_free(ctx, &all);
    return status;
}

psi_status verdict_compare_contexts(psi_ctx *ctx, const cluster_problem *problem,
                                    const outcome_rewards *rewards, const int32_t *labels,
                                    size_t n_latent, const uint64_t *context, double allowed,
                                    double *share, int32_t *worst, float *same)
{
    const question asked = {problem, rewards, labels, labels, n_latent, n_latent, context};
    return compare(ctx, &asked, allowed, share, worst, same);
}

psi_status verdict_ask_looks(psi_ctx *ctx, const cluster_problem *problem,
                             const outcome_rewards *rewards, const problem_looks *looks,
                             const int32_t *of, size_t n_of, const int32_t *labels, size_t n_latent,
                             double allowed, double *share, int32_t *worst)
{
    psi_status status = PSI_OK;
    enum { SIZES = 4, SMALLEST = 16, TIMES = 8 }; // branches of 16, 128, 1,024 and 8,192 at least
    const size_t n = problem->data->n_transitions;
    uint64_t *context = NULL;
    *share = 0.0;
    *worst = -1;
    TRY(base_alloc(ctx, n, sizeof *context, &context));
    for (size_t size = SMALLEST, i = 0; i < SIZES; i++, size *= TIMES) {
        double of_size;
        int32_t state;
        for (size_t t = 0; t < n; t++) {
            int32_t v = looks->leaf[problem->row[t]];
            while (v >= 0 && looks->parent[v] >= 0 && looks->size[v] < size) v = looks->parent[v];
            context[t] = v < 0 ? CONTEXT_NONE : (uint64_t)v;
        }
        const question asked = {problem, rewards, of, labels, n_of, n_latent, context};
        TRY(compare(ctx, &asked, allowed / SIZES, &of_size, &state, NULL));
        if (of_size > *share) *share = of_size, *worst = state;
    }
done:
    base_free(ctx, context);
    return status;
}

// Which two latent states are most alike. draws: what followed all of them.
static psi_status find_most_alike(psi_ctx *ctx, const leaves *all, const psi_draws *draws,
                                  double *margin, int32_t pair[2])
{
    psi_status status = PSI_OK;
    psi_grouping *grouping = NULL;
    const psi_forest forest = {all->n, all->none, all->none, false, 0.0};
    TRY(psi_group(ctx, &forest, draws, SIZE_MAX, &grouping));
    *margin = grouping->weakest;
    for (size_t v = 0; v < all->n; v++) {
        for (size_t i = 0; i < 2; i++) {
            if (grouping->group[v] == (int32_t)grouping->weakest_pair[i]) pair[i] = all->state[v];
        }
        for (size_t u = 0; grouping->n_groups < all->n && u < v; u++) { // some are one
            if (grouping->group[u] != grouping->group[v]) continue;
            pair[0] = all->state[u];
            pair[1] = all->state[v];
            *margin = -(double)grouping->same[v];
            goto done;
        }
    }
done:
    psi_grouping_free(ctx, grouping);
    return status;
}

psi_status verdict_ask_pairs(psi_ctx *ctx, const cluster_problem *problem,
                             const outcome_rewards *rewards, const int32_t *labels, size_t n_latent,
                             double *margin, int32_t pair[2])
{
    psi_status status = PSI_OK;
    const question asked = {problem, rewards, labels, labels, n_latent, n_latent, NULL};
    leaves all = {0};
    *margin = HUGE_VAL;
    pair[0] = pair[1] = -1;
    TRY(leaves_new(ctx, &asked, &all));
    if (all.n == 0) goto done;
    const psi_draws what = what_followed(&all, problem->data->n_actions);
    TRY(find_most_alike(ctx, &all, &what, margin, pair));
done:
    leaves_free(ctx, &all);
    return status;
}

psi_status verdict_ask_pairs_by_means(psi_ctx *ctx, const cluster_problem *problem,
                                      const int32_t *labels, size_t n_latent, double *margin,
                                      int32_t pair[2])
{
    psi_status status = PSI_OK;
    outcome_rewards means = {0};
    const question asked = {problem, &means, labels, labels, n_latent, n_latent, NULL};
    leaves all = {0};
    int32_t *leaf = NULL, *none = NULL; // of every row: that of its latent state
    *margin = HUGE_VAL;
    pair[0] = pair[1] = -1;
    TRY(leaves_new(ctx, &asked, &all));
    if (all.n == 0) goto done;
    TRY(base_alloc(ctx, problem->n_rows, sizeof *leaf, &leaf));
    TRY(base_alloc(ctx, n_latent, sizeof *none, &none));
    for (size_t k = 0; k < n_latent; k++) none[k] = -1;
    for (size_t v = 0; v < all.n; v++) none[all.state[v]] = (int32_t)v;
    for (size_t i = 0; i < problem->n_rows; i++) leaf[i] = labels[i] < 0 ? -1 : none[labels[i]];
    const problem_looks states = {.forest = {all.n, all.none, all.none, false, 0.0},
                                  .left = all.none,
                                  .parent = all.none,
                                  .leaf = leaf};
    TRY(problem_mean_rewards(ctx, problem, &states, labels, &means));
    psi_draws what = what_followed(&all, problem->data->n_actions);
    what.n_means = problem->data->n_actions;
    what.precision = means.precision;
    what.weighted = means.weighted;
    what.mean_variance = means.variance;
    TRY(find_most_alike(ctx, &all, &what, margin, pair));
done:
    problem_outcome_rewards_free(ctx, &means);
    base_free(ctx, none);
    base_free(ctx, leaf);
    leaves_free(ctx, &all);
    return status;
}
