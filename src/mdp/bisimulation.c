// The coarsest bisimulation by brute force: a state's signature is its rewards and its
// probabilities of entering each block; blocks are split by signature until none splits. It knows
// nothing of successor features, which makes it the judge of refine.c.
#include <psifold/mdp.h>

#include "base/context.h"
#include "base/random.h"
#include "mdp/csr.h"

#include <math.h>
#include <stdlib.h>

enum { WEIGHT_SEED = 0x70736966, WEIGHT_PURPOSE = 2 };

typedef struct signed_state {
    double mark; // a weighted sum of the signature: equal signatures have equal marks
    size_t state;
    int32_t block;
} signed_state;

typedef struct signatures {
    const psi_mdp *mdp;
    mdp_csr rows;      // (S·A, K) p(j|s,a)
    double tolerance;  // of probabilities
    double per_reward; // 1 / the largest reward: rewards are compared relative to it
    double window;     // marks of signatures within tolerance differ by no more
} signatures;

static int by_mark(const void *a, const void *b)
{
    const signed_state *x = a, *y = b;
    if (x->block != y->block) return x->block < y->block ? -1 : 1;
    if (x->mark != y->mark) return x->mark < y->mark ? -1 : 1;
    return (x->state > y->state) - (x->state < y->state);
}

// A weight in [−1, 1) for (action, block); blocks are counted from 1, 0 is the reward.
static double weight_of(size_t action, size_t block)
{
    uint32_t number[4];
    base_random_block(WEIGHT_SEED, WEIGHT_PURPOSE, block, (uint32_t)action, number);
    return (double)number[0] * 0x1p-31 - 1.0;
}

static double mark_of(const signatures *of, size_t state)
{
    const psi_mdp *mdp = of->mdp;
    double mark = 0.0;
    for (size_t a = 0; a < mdp->n_actions; a++) {
        const size_t row = state * mdp->n_actions + a;
        mark += mdp->reward[row] * of->per_reward * weight_of(a, 0);
        for (uint64_t i = of->rows.offsets[row]; i < of->rows.offsets[row + 1]; i++)
            mark += of->rows.value[i] * weight_of(a, 1 + (size_t)of->rows.column[i]);
    }
    return mark;
}

static bool alike(const signatures *of, size_t s, size_t t)
{
    const psi_mdp *mdp = of->mdp;
    for (size_t a = 0; a < mdp->n_actions; a++) {
        const size_t row_s = s * mdp->n_actions + a, row_t = t * mdp->n_actions + a;
        const double rewards = fabs(mdp->reward[row_s] - mdp->reward[row_t]) * of->per_reward;
        if (rewards > of->tolerance) return false;
        if (mdp_row_distance(&of->rows, row_s, &of->rows, row_t) > of->tolerance) return false;
    }
    return true;
}

// One round: *out is c with every block split by signature.
static psi_status split_by_signature(psi_ctx *ctx, signatures *of, const psi_partition *c,
                                     psi_partition **out)
{
    psi_status status = PSI_OK;
    const size_t n = c->n_states;
    signed_state *order = NULL, *leader = NULL;
    int32_t *label = NULL;
    *out = NULL;
    TRY(mdp_block_rows(ctx, of->mdp, c, &of->rows));
    TRY(base_alloc(ctx, n, sizeof *order, &order));
    TRY(base_alloc(ctx, n, sizeof *leader, &leader));
    TRY(base_alloc(ctx, n, sizeof *label, &label));
    for (size_t s = 0; s < n; s++) order[s] = (signed_state){mark_of(of, s), s, c->label[s]};
    qsort(order, n, sizeof *order, by_mark);
    size_t n_leaders = 0;
    for (size_t i = 0; i < n; i++) {
        size_t joined = n_leaders;
        for (size_t l = n_leaders; l-- > 0 && joined == n_leaders;) {
            if (leader[l].block != order[i].block) break;
            if (leader[l].mark < order[i].mark - of->window) break;
            if (alike(of, order[i].state, leader[l].state)) joined = l;
        }
        if (joined == n_leaders) leader[n_leaders++] = order[i];
        label[order[i].state] = (int32_t)joined;
    }
    TRY(psi_partition_new(ctx, n, label, out));
done:
    mdp_csr_free(ctx, &of->rows);
    base_free(ctx, label);
    base_free(ctx, leader);
    base_free(ctx, order);
    return status;
}

// What reward comparison and mark window need to know about the whole MDP.
static signatures prepare(const psi_mdp *mdp, double tolerance)
{
    double largest = 0.0;
    size_t most = 0;
    for (size_t row = 0; row < mdp->n_states * mdp->n_actions; row++)
        largest = fmax(largest, fabs(mdp->reward[row]));
    for (size_t s = 0; s < mdp->n_states; s++) {
        const size_t entries =
            mdp->offsets[(s + 1) * mdp->n_actions] - mdp->offsets[s * mdp->n_actions];
        most = entries > most ? entries : most;
    }
    return (signatures){.mdp = mdp,
                        .tolerance = tolerance,
                        .per_reward = largest > 0.0 ? 1.0 / largest : 0.0,
                        .window = (tolerance + 1e-14) * (double)(2 * most + mdp->n_actions)};
}

psi_status psi_bisimulation(psi_ctx *ctx, const psi_mdp *mdp, double tolerance, psi_partition **out)
{
    psi_status status = PSI_OK;
    psi_partition *c = NULL, *next = NULL;
    int32_t *terminal = NULL;
    *out = NULL;
    if (!(tolerance >= 0.0)) return FAIL(ctx, PSI_EUSAGE, "a tolerance of %g", tolerance);
    TRY(psi_mdp_check(ctx, mdp, true));
    signatures of = prepare(mdp, tolerance > 0.0 ? tolerance : 1e-9);
    TRY(base_alloc(ctx, mdp->n_states, sizeof *terminal, &terminal));
    for (size_t s = 0; s < mdp->n_states; s++) terminal[s] = mdp->terminal[s] != 0;
    TRY(psi_partition_new(ctx, mdp->n_states, NULL, &c));
    TRY(psi_partition_split(ctx, c, terminal));
    for (;;) {
        TRY(base_cancelled(ctx));
        TRY(split_by_signature(ctx, &of, c, &next));
        const bool stable = next->n_blocks == c->n_blocks;
        psi_partition_free(ctx, c);
        c = next;
        next = NULL;
        if (stable) break;
    }
    TRY(psi_partition_canonical(ctx, c, mdp->terminal));
    *out = c;
    c = NULL;
done:
    base_free(ctx, terminal);
    psi_partition_free(ctx, next);
    psi_partition_free(ctx, c);
    return status;
}
