#include "verdict/contexts.h"

#include "base/checked.h"
#include "base/context.h"

#include <math.h>
#include <stdlib.h>

typedef struct sorted {
    uint64_t key; // (latent state, context)
    uint32_t transition;
} sorted;

static int by_key(const void *a, const void *b)
{
    const sorted *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return (x->transition > y->transition) - (x->transition < y->transition);
}

// What followed, as psi_draws has it: a leaf for every context of every latent state.
typedef struct leaves {
    size_t n, n_draws;
    uint32_t *node, *outcome, *first, *number;
    int32_t *none, *state; // (n) no children; the latent state
    double *weight;        // (n) transitions
    float *nats, *same;    // (n) as psi_misfit has them
} leaves;

static void leaves_free(psi_ctx *ctx, leaves *all)
{
    base_free(ctx, all->node);
    base_free(ctx, all->outcome);
    base_free(ctx, all->first);
    base_free(ctx, all->number);
    base_free(ctx, all->none);
    base_free(ctx, all->state);
    base_free(ctx, all->weight);
    base_free(ctx, all->nats);
    base_free(ctx, all->same);
}

static psi_status leaves_new(psi_ctx *ctx, const cluster_problem *problem,
                             const outcome_rewards *rewards, const int32_t *of,
                             const int32_t *labels, size_t n_latent, size_t n, const sorted *order,
                             leaves *out)
{
    psi_status status = PSI_OK;
    const psi_trajectories *data = problem->data;
    const size_t actions = data->n_actions, wide = base_max(n_latent, base_max(rewards->n, 1));
    size_t cells;
    if (!base_mul(2 * actions, wide, &cells) || cells > UINT32_MAX / 2) {
        return FAIL(ctx, PSI_ELIMIT, "%zu actions with %zu latent states are too many", actions,
                    n_latent);
    }
    TRY(base_alloc(ctx, 2 * n, sizeof *out->node, &out->node));
    TRY(base_alloc(ctx, 2 * n, sizeof *out->outcome, &out->outcome));
    TRY(base_alloc(ctx, 2 * actions + 1, sizeof *out->first, &out->first));
    TRY(base_alloc_zero(ctx, cells, sizeof *out->number, &out->number));
    TRY(base_alloc(ctx, n, sizeof *out->none, &out->none));
    TRY(base_alloc(ctx, n, sizeof *out->state, &out->state));
    TRY(base_alloc(ctx, n, sizeof *out->nats, &out->nats));
    TRY(base_alloc(ctx, n, sizeof *out->same, &out->same));
    TRY(base_alloc_zero(ctx, n, sizeof *out->weight, &out->weight));
    for (size_t i = 0; i < n; i++) {
        const size_t t = order[i].transition, family = 2 * (size_t)data->actions[t];
        if (i == 0 || order[i].key != order[i - 1].key) {
            out->none[out->n] = -1;
            out->state[out->n++] = of[problem->row[t]];
        }
        out->weight[out->n - 1]++;
        for (size_t which = 0; which < (rewards->n > 1 ? 2 : 1); which++) {
            const int32_t what = which ? rewards->of[t] : labels[problem->row[t] + 1];
            out->node[out->n_draws] = (uint32_t)(out->n - 1);
            out->outcome[out->n_draws] = (uint32_t)((family + which) * wide + (size_t)what);
            out->number[out->outcome[out->n_draws++]] = 1;
        }
    }
    uint32_t used = 0;
    for (size_t i = 0; i < cells; i++) { // outcomes that occur, family by family
        if (i % wide == 0) out->first[i / wide] = used;
        const uint32_t occurs = out->number[i];
        out->number[i] = used;
        used += occurs;
    }
    out->first[2 * actions] = used;
    for (size_t i = 0; i < out->n_draws; i++) out->outcome[i] = out->number[out->outcome[i]];
done:
    return status;
}

// The transitions whose latent states are known, by `of` (n_rows) and context (NULL: all the same).
static psi_status sort_transitions(psi_ctx *ctx, const cluster_problem *problem, const int32_t *of,
                                   const int32_t *labels, const uint64_t *context, sorted **out,
                                   size_t *n)
{
    psi_status status = PSI_OK;
    const size_t transitions = problem->data->n_transitions;
    *n = 0;
    TRY(base_alloc(ctx, transitions, sizeof **out, out));
    for (size_t t = 0; t < transitions; t++) {
        const uint64_t row = problem->row[t], where = context ? context[t] : 0;
        if (where == CONTEXT_NONE || of[row] < 0 || labels[row + 1] < 0) continue;
        (*out)[(*n)++] = (sorted){((uint64_t)of[row] << 40) | where, (uint32_t)t};
    }
    qsort(*out, *n, sizeof **out, by_key);
done:
    return status;
}

// of (n_rows), below n_of: what the contexts are of.
static psi_status compare(psi_ctx *ctx, const cluster_problem *problem,
                          const outcome_rewards *rewards, const int32_t *of, size_t n_of,
                          const int32_t *labels, size_t n_latent, const uint64_t *context,
                          double allowed, double *share, int32_t *worst, float *same)
{
    psi_status status = PSI_OK;
    const psi_trajectories *data = problem->data;
    sorted *order = NULL;
    leaves all = {0};
    double *of_state = NULL;
    size_t n;
    *share = 0.0;
    *worst = -1;
    TRY(sort_transitions(ctx, problem, of, labels, context, &order, &n));
    if (n == 0) goto done;
    TRY(leaves_new(ctx, problem, rewards, of, labels, n_latent, n, order, &all));
    TRY(base_alloc_zero(ctx, n_of, sizeof *of_state, &of_state));
    const psi_forest forest = {all.n, all.none, all.none, false, 0.0};
    const psi_draws what = {.n = all.n_draws,
                            .node = all.node,
                            .outcome = all.outcome,
                            .n_families = 2 * data->n_actions,
                            .family = all.first};
    TRY(psi_misfit(ctx, &forest, &what, n_of, all.state, all.nats, all.same));
    for (size_t i = 0, v = 0; same && i < n; i++) {
        if (i > 0 && order[i].key != order[i - 1].key) v++;
        same[order[i].transition] = all.same[v];
    }
    const double clear = log((double)all.n / allowed);
    for (size_t v = 0; v < all.n; v++) {
        if ((double)all.nats[v] < clear) continue;
        of_state[all.state[v]] += all.weight[v];
        *share += all.weight[v] / (double)n;
        if (*worst < 0 || of_state[all.state[v]] > of_state[*worst]) *worst = all.state[v];
    }
done:
    base_free(ctx, of_state);
    leaves_free(ctx, &all);
    base_free(ctx, order);
    return status;
}

psi_status verdict_compare_contexts(psi_ctx *ctx, const cluster_problem *problem,
                                    const outcome_rewards *rewards, const int32_t *labels,
                                    size_t n_latent, const uint64_t *context, double allowed,
                                    double *share, int32_t *worst, float *same)
{
    return compare(ctx, problem, rewards, labels, n_latent, labels, n_latent, context, allowed,
                   share, worst, same);
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
            while (v >= 0 && looks->parent[v] >= 0 && looks->end[v] - looks->begin[v] < size) {
                v = looks->parent[v];
            }
            context[t] = v < 0 ? CONTEXT_NONE : (uint64_t)v;
        }
        TRY(compare(ctx, problem, rewards, of, n_of, labels, n_latent, context, allowed / SIZES,
                    &of_size, &state, NULL));
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
    sorted *order = NULL;
    leaves all = {0};
    size_t n;
    *margin = HUGE_VAL;
    pair[0] = pair[1] = -1;
    TRY(sort_transitions(ctx, problem, labels, labels, NULL, &order, &n));
    if (n == 0) goto done;
    TRY(leaves_new(ctx, problem, rewards, labels, labels, n_latent, n, order, &all));
    const psi_draws what = {.n = all.n_draws,
                            .node = all.node,
                            .outcome = all.outcome,
                            .n_families = 2 * problem->data->n_actions,
                            .family = all.first};
    TRY(find_most_alike(ctx, &all, &what, margin, pair));
done:
    leaves_free(ctx, &all);
    base_free(ctx, order);
    return status;
}

psi_status verdict_ask_pairs_by_means(psi_ctx *ctx, const cluster_problem *problem,
                                      const int32_t *labels, size_t n_latent, double *margin,
                                      int32_t pair[2])
{
    psi_status status = PSI_OK;
    const size_t actions = problem->data->n_actions;
    outcome_rewards means = {0};
    sorted *order = NULL;
    leaves all = {0};
    int32_t *leaf = NULL, *none = NULL; // of every row: that of its latent state
    size_t n;
    *margin = HUGE_VAL;
    pair[0] = pair[1] = -1;
    TRY(sort_transitions(ctx, problem, labels, labels, NULL, &order, &n));
    if (n == 0) goto done;
    TRY(leaves_new(ctx, problem, &means, labels, labels, n_latent, n, order, &all));
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
    const psi_draws what = {.n = all.n_draws,
                            .node = all.node,
                            .outcome = all.outcome,
                            .n_families = 2 * actions,
                            .family = all.first,
                            .n_means = actions,
                            .precision = means.precision,
                            .weighted = means.weighted,
                            .mean_variance = means.variance};
    TRY(find_most_alike(ctx, &all, &what, margin, pair));
done:
    problem_outcome_rewards_free(ctx, &means);
    base_free(ctx, none);
    base_free(ctx, leaf);
    leaves_free(ctx, &all);
    base_free(ctx, order);
    return status;
}
