// Partitions of states: the paper's clusterings c_0, c_1, … Made, checked, renumbered, split,
// joined and compared; how far two agree is in agreement.c.
#include <psifold/mdp.h>

#include "base/context.h"
#include "mdp/csr.h"

#include <stdlib.h>
#include <string.h>

psi_status psi_partition_new(psi_ctx *ctx, size_t n_states, const int32_t *labels,
                             psi_partition **out)
{
    psi_status status = PSI_OK;
    psi_partition *partition = NULL;
    *out = NULL;
    TRY(base_alloc_zero(ctx, 1, sizeof *partition, &partition));
    TRY(base_alloc_zero(ctx, n_states, sizeof *partition->label, &partition->label));
    partition->n_states = n_states;
    if (labels && n_states > 0) memcpy(partition->label, labels, n_states * sizeof *labels);
    for (size_t s = 0; s < n_states; s++) {
        const int32_t label = partition->label[s];
        if (label >= 0 && (size_t)label >= partition->n_blocks)
            partition->n_blocks = (size_t)label + 1;
    }
    // more blocks than states cannot all be inhabited: noticed before a table of them is made
    if (partition->n_blocks > n_states) {
        TRY(FAIL(ctx, PSI_EDATA, "%zu blocks for %zu states: some have no state",
                 partition->n_blocks, n_states));
    }
    TRY(psi_partition_check(ctx, partition));
    *out = partition;
    partition = NULL;
done:
    psi_partition_free(ctx, partition);
    return status;
}

void psi_partition_free(psi_ctx *ctx, psi_partition *partition)
{
    if (!partition || FREED(ctx, partition)) return;
    base_free(ctx, partition->label);
    base_retire(ctx, partition);
}

psi_status psi_partition_check(psi_ctx *ctx, const psi_partition *partition)
{
    if (FREED(ctx, partition)) return PSI_EUSAGE;
    psi_status status = PSI_OK;
    uint8_t *inhabited = NULL;
    TRY(base_alloc_zero(ctx, partition->n_blocks, 1, &inhabited));
    for (size_t s = 0; s < partition->n_states; s++) {
        const int32_t label = partition->label[s];
        if (label < -1 || (label >= 0 && (size_t)label >= partition->n_blocks)) {
            TRY(FAIL(ctx, PSI_EDATA, "state %zu has label %d, outside -1 ... %zu - 1", s, label,
                     partition->n_blocks));
        }
        if (label >= 0) inhabited[label] = 1;
    }
    for (size_t k = 0; k < partition->n_blocks; k++) {
        if (!inhabited[k]) TRY(FAIL(ctx, PSI_EDATA, "block %zu has no state", k));
    }
done:
    base_free(ctx, inhabited);
    return status;
}

// The block of the terminal states, or −1 if there is none.
static psi_status terminal_block(psi_ctx *ctx, const psi_partition *partition,
                                 const uint8_t *terminal, int32_t *block)
{
    *block = -1;
    for (size_t s = 0; s < partition->n_states; s++) {
        if (terminal[s] && partition->label[s] >= 0) *block = partition->label[s];
    }
    if (*block < 0) return PSI_OK;
    for (size_t s = 0; s < partition->n_states; s++) {
        const int32_t label = partition->label[s];
        if (label >= 0 && (terminal[s] != 0) != (label == *block)) {
            return FAIL(ctx, PSI_EDATA,
                        "the terminal states are not a block of their own: state "
                        "%zu is in block %d, the terminal block is %d",
                        s, label, *block);
        }
    }
    return PSI_OK;
}

psi_status psi_partition_canonical(psi_ctx *ctx, psi_partition *partition, const uint8_t *terminal)
{
    if (FREED(ctx, partition)) return PSI_EUSAGE;
    psi_status status = PSI_OK;
    int32_t *number = NULL, first = -1, fresh = 0;
    TRY(base_alloc(ctx, partition->n_blocks, sizeof *number, &number));
    for (size_t k = 0; k < partition->n_blocks; k++) number[k] = -1;
    if (terminal) TRY(terminal_block(ctx, partition, terminal, &first));
    if (first >= 0) number[first] = fresh++;
    for (size_t s = 0; s < partition->n_states; s++) {
        const int32_t label = partition->label[s];
        if (label < 0) continue;
        if (number[label] < 0) number[label] = fresh++;
        partition->label[s] = number[label];
    }
done:
    base_free(ctx, number);
    return status;
}

typedef struct keyed_state {
    int32_t label, key;
    size_t state;
} keyed_state;

static int by_label_and_key(const void *a, const void *b)
{
    const keyed_state *x = a, *y = b;
    if (x->label != y->label) return x->label < y->label ? -1 : 1;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return (x->state > y->state) - (x->state < y->state);
}

psi_status psi_partition_split(psi_ctx *ctx, psi_partition *partition, const int32_t *key)
{
    if (FREED(ctx, partition)) return PSI_EUSAGE;
    psi_status status = PSI_OK;
    keyed_state *states = NULL;
    int32_t *number = NULL;
    size_t kept = 0;
    if (partition->n_states > INT32_MAX)
        return FAIL(ctx, PSI_ELIMIT, "%zu states are too many to split", partition->n_states);
    TRY(base_alloc(ctx, partition->n_states, sizeof *states, &states));
    TRY(base_alloc(ctx, partition->n_states, sizeof *number, &number));
    for (size_t s = 0; s < partition->n_states; s++) {
        if (partition->label[s] < 0) continue;
        states[kept++] = (keyed_state){partition->label[s], key[s], s};
    }
    qsort(states, kept, sizeof *states, by_label_and_key);

    // give every (label, key) the name of its first state, then count names in order of appearance
    size_t leader = 0;
    for (size_t i = 0; i < kept; i++) {
        if (states[i].label != states[leader].label || states[i].key != states[leader].key)
            leader = i;
        number[states[i].state] = (int32_t)states[leader].state;
    }
    int32_t fresh = 0;
    for (size_t s = 0; s < partition->n_states; s++) {
        if (partition->label[s] < 0) continue;
        const size_t first = (size_t)number[s];
        partition->label[s] = first == s ? fresh++ : partition->label[first];
    }
    partition->n_blocks = (size_t)fresh;
done:
    base_free(ctx, number);
    base_free(ctx, states);
    return status;
}

psi_status psi_partition_join(psi_ctx *ctx, psi_partition *partition, const int32_t *target)
{
    if (FREED(ctx, partition)) return PSI_EUSAGE;
    psi_status status = PSI_OK;
    psi_partition *joined = NULL;
    int32_t *label = NULL;
    TRY(base_alloc(ctx, partition->n_states, sizeof *label, &label));
    for (size_t s = 0; s < partition->n_states; s++) {
        label[s] = partition->label[s] < 0 ? -1 : target[partition->label[s]];
    }
    TRY(psi_partition_new(ctx, partition->n_states, label, &joined));
    if (partition->n_states > 0)
        memcpy(partition->label, joined->label, partition->n_states * sizeof *label);
    partition->n_blocks = joined->n_blocks;
done:
    psi_partition_free(ctx, joined);
    base_free(ctx, label);
    return status;
}

static psi_status same_states(psi_ctx *ctx, const psi_partition *a, const psi_partition *b)
{
    if (a->n_states == b->n_states) return PSI_OK;
    return FAIL(ctx, PSI_ESHAPE, "two partitions of different sets: %zu and %zu states",
                a->n_states, b->n_states);
}

psi_status psi_partition_equal(psi_ctx *ctx, const psi_partition *a, const psi_partition *b,
                               bool *equal)
{
    if (FREED(ctx, a, b)) return PSI_EUSAGE;
    *equal = false;
    psi_status status = same_states(ctx, a, b);
    if (status != PSI_OK) return status;
    for (size_t s = 0; s < a->n_states; s++) {
        if ((a->label[s] < 0) != (b->label[s] < 0)) return PSI_OK;
    }
    bool coarser;
    status = psi_partition_is_subclustering(ctx, a, b, &coarser);
    if (status != PSI_OK || !coarser) return status;
    return psi_partition_is_subclustering(ctx, b, a, equal);
}

psi_status psi_partition_is_subclustering(psi_ctx *ctx, const psi_partition *c,
                                          const psi_partition *c_star, bool *holds)
{
    if (FREED(ctx, c, c_star)) return PSI_EUSAGE;
    psi_status status = PSI_OK;
    int32_t *inside = NULL; // (K*) the block of c in which a block of c* lies
    *holds = false;
    TRY(same_states(ctx, c, c_star));
    TRY(base_alloc(ctx, c_star->n_blocks, sizeof *inside, &inside));
    for (size_t k = 0; k < c_star->n_blocks; k++) inside[k] = -1;
    *holds = true;
    for (size_t s = 0; s < c->n_states && *holds; s++) {
        if (c->label[s] < 0 || c_star->label[s] < 0) continue;
        int32_t *block = &inside[c_star->label[s]];
        if (*block < 0) *block = c->label[s];
        *holds = *block == c->label[s];
    }
done:
    base_free(ctx, inside);
    return status;
}
