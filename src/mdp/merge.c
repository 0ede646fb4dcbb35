// Tolerant bisimulation on the latent table: which latent states are one and the same as far as
// the counts can tell. Starts from the coarsest candidate and splits, so that what stays together
// agrees under the final merge; then joins what agrees and was parted on the way.
#include <psifold/mdp.h>

#include "base/context.h"
#include "base/options.h"
#include "mdp/csr.h"

#include <math.h>
#include <stdlib.h>

psi_merge_options psi_merge_defaults(void)
{
    return (psi_merge_options){.size = sizeof(psi_merge_options),
                               .tolerance = 0.1,
                               .slack = 2.0,
                               .reward_tolerance = 1e-6};
}

// 1/n + 1/m: the variance of a difference of two means, per unit of variance.
static double spread(double n, double m)
{
    return 1.0 / n + 1.0 / m;
}

// Total variation of two rows of counts against tolerance + slack · its standard error, where
// p̂ is the pooled row: ½ Σ|p − q| ≤ tolerance + slack · ½ Σ √(p̂ (1 − p̂) (1/n + 1/m)).
static bool rows_agree(const mdp_csr *counts, size_t row_a, size_t row_b, double n, double m,
                       const psi_merge_options *options)
{
    uint64_t i = counts->offsets[row_a], j = counts->offsets[row_b];
    const uint64_t end_a = counts->offsets[row_a + 1], end_b = counts->offsets[row_b + 1];
    double variation = 0.0, deviation = 0.0;
    while (i < end_a || j < end_b) {
        const int32_t column_a = i < end_a ? counts->column[i] : INT32_MAX;
        const int32_t column_b = j < end_b ? counts->column[j] : INT32_MAX;
        double in_a = 0.0, in_b = 0.0;
        if (column_a <= column_b) in_a = counts->value[i++];
        if (column_b <= column_a) in_b = counts->value[j++];
        const double pooled = (in_a + in_b) / (n + m);
        variation += 0.5 * fabs(in_a / n - in_b / m);
        deviation += 0.5 * sqrt(fmax(pooled * (1.0 - pooled), 0.0) * spread(n, m));
    }
    return variation <= options->tolerance + options->slack * deviation;
}

static bool rewards_agree(const psi_counts *counts, size_t row_a, size_t row_b,
                          const psi_merge_options *options)
{
    const double n = counts->rewards[row_a], m = counts->rewards[row_b];
    if (n == 0.0 || m == 0.0) return true;
    const double difference = counts->reward_sum[row_a] / n - counts->reward_sum[row_b] / m;
    const double scatter = counts->reward_scatter[row_a] + counts->reward_scatter[row_b];
    const double deviation = sqrt(scatter / (n + m) * spread(n, m));
    return fabs(difference) <= options->reward_tolerance + options->slack * deviation;
}

static bool states_agree(const psi_counts *counts, const mdp_csr *rows, size_t k, size_t l,
                         const psi_merge_options *options)
{
    for (size_t a = 0; a < counts->n_actions; a++) {
        const size_t row_k = k * counts->n_actions + a, row_l = l * counts->n_actions + a;
        const double n = counts->visits[row_k], m = counts->visits[row_l];
        if (!rewards_agree(counts, row_k, row_l, options)) return false;
        if (n > 0.0 && m > 0.0 && !rows_agree(rows, row_k, row_l, n, m, options)) return false;
    }
    return true;
}

static bool is_terminal(const psi_counts *counts, size_t k)
{
    return counts->has_terminal && k == 0;
}

typedef struct visited_state {
    double visits;
    size_t state;
} visited_state;

static int most_visited_first(const void *a, const void *b)
{
    const visited_state *x = a, *y = b;
    if (x->visits != y->visits) return x->visits > y->visits ? -1 : 1;
    return (x->state > y->state) - (x->state < y->state);
}

// The counts with next latent states named by their block.
static psi_status merged_rows(psi_ctx *ctx, const psi_counts *counts, const psi_partition *c,
                              mdp_csr *out)
{
    return mdp_csr_over_blocks(ctx, counts->n_latent * counts->n_actions, counts->offsets,
                               counts->next, counts->count, c, out);
}

// Splits every block: a state joins the most visited leader of its block that it agrees with.
static psi_status split_disagreeing(psi_ctx *ctx, const psi_counts *counts,
                                    const visited_state *order, const psi_merge_options *options,
                                    psi_partition *c)
{
    psi_status status = PSI_OK;
    mdp_csr rows = {0};
    int32_t *key = NULL;                               // (n) the leader of a state
    int32_t *first = NULL, *last = NULL, *next = NULL; // the leaders of a block, in a chain
    TRY(merged_rows(ctx, counts, c, &rows));
    TRY(base_alloc(ctx, c->n_states, sizeof *key, &key));
    TRY(base_alloc(ctx, c->n_blocks, sizeof *first, &first));
    TRY(base_alloc(ctx, c->n_blocks, sizeof *last, &last));
    TRY(base_alloc(ctx, c->n_states, sizeof *next, &next));
    for (size_t block = 0; block < c->n_blocks; block++) first[block] = last[block] = -1;
    for (size_t i = 0; i < c->n_states; i++) {
        const size_t k = order[i].state, block = (size_t)c->label[k];
        TRY(base_cancelled(ctx));
        int32_t leader = first[block];
        while (leader >= 0 && !states_agree(counts, &rows, k, (size_t)leader, options))
            leader = next[leader];
        key[k] = leader >= 0 ? leader : (int32_t)k;
        if (leader >= 0) continue;
        next[k] = -1;
        if (first[block] < 0)
            first[block] = (int32_t)k;
        else
            next[last[block]] = (int32_t)k;
        last[block] = (int32_t)k;
    }
    TRY(psi_partition_split(ctx, c, key));
done:
    base_free(ctx, next);
    base_free(ctx, last);
    base_free(ctx, first);
    base_free(ctx, key);
    mdp_csr_free(ctx, &rows);
    return status;
}

// Agreeing is not transitive: twins that both agreed with several leaders may have gone with
// different ones, and those have left them since. Blocks whose leaders agree come together.
static psi_status join_agreeing(psi_ctx *ctx, const psi_counts *counts, const visited_state *order,
                                const psi_merge_options *options, psi_partition *c)
{
    psi_status status = PSI_OK;
    mdp_csr rows = {0};
    int32_t *leader = NULL, *target = NULL; // the leaders that are left, and a block's among them
    int32_t left = 0;
    TRY(merged_rows(ctx, counts, c, &rows));
    TRY(base_alloc(ctx, c->n_blocks, sizeof *leader, &leader));
    TRY(base_alloc(ctx, c->n_blocks, sizeof *target, &target));
    for (size_t block = 0; block < c->n_blocks; block++) target[block] = -1;
    for (size_t i = 0; i < c->n_states; i++) {
        const size_t k = order[i].state, block = (size_t)c->label[k];
        if (target[block] >= 0) continue; // not the most visited of its block
        TRY(base_cancelled(ctx));
        int32_t with = 0;
        while (with < left &&
               (is_terminal(counts, k) || is_terminal(counts, (size_t)leader[with]) ||
                !states_agree(counts, &rows, k, (size_t)leader[with], options)))
            with++;
        target[block] = with;
        if (with == left) leader[left++] = (int32_t)k;
    }
    TRY(psi_partition_join(ctx, c, target));
done:
    base_free(ctx, target);
    base_free(ctx, leader);
    mdp_csr_free(ctx, &rows);
    return status;
}

psi_status psi_merge(psi_ctx *ctx, const psi_counts *counts, const psi_merge_options *options,
                     psi_partition **out)
{
    *out = NULL;
    if (FREED(ctx, counts)) return PSI_EUSAGE;
    if (options && !base_options_fit(ctx, options, sizeof *options, "psi_merge_defaults"))
        return PSI_EUSAGE;
    psi_status status = PSI_OK;
    const psi_merge_options chosen = options ? *options : psi_merge_defaults();
    const size_t n = counts->n_latent;
    psi_partition *c = NULL;
    visited_state *order = NULL;
    int32_t *terminal = NULL;
    if (!(chosen.tolerance >= 0.0) || !(chosen.slack >= 0.0) || !(chosen.reward_tolerance >= 0.0)) {
        return FAIL(ctx, PSI_EUSAGE, "tolerances of %g, %g and %g cannot be used", chosen.tolerance,
                    chosen.slack, chosen.reward_tolerance);
    }
    TRY(base_alloc(ctx, n, sizeof *order, &order));
    TRY(base_alloc(ctx, n, sizeof *terminal, &terminal));
    for (size_t k = 0; k < n; k++) {
        order[k] = (visited_state){0.0, k};
        for (size_t a = 0; a < counts->n_actions; a++)
            order[k].visits += counts->visits[k * counts->n_actions + a];
        terminal[k] = is_terminal(counts, k);
    }
    qsort(order, n, sizeof *order, most_visited_first);
    TRY(psi_partition_new(ctx, n, NULL, &c));
    TRY(psi_partition_split(ctx, c, terminal));
    for (size_t before = 0; before != c->n_blocks;) {
        before = c->n_blocks;
        TRY(split_disagreeing(ctx, counts, order, &chosen, c));
    }
    for (size_t before = 0; before != c->n_blocks;) {
        before = c->n_blocks;
        TRY(join_agreeing(ctx, counts, order, &chosen, c));
    }
    *out = c;
    c = NULL;
done:
    base_free(ctx, terminal);
    base_free(ctx, order);
    psi_partition_free(ctx, c);
    return status;
}
