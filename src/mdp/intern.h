// Small numbers for pairs (a, r) of 32 and 64 bits, in order of first appearance: exact classes.
#ifndef PSI_MDP_INTERN_H
#define PSI_MDP_INTERN_H

#include <psifold/base.h>

typedef struct mdp_slot {
    uint64_t r;
    uint32_t a, id; // id + 1; 0: free
} mdp_slot;

typedef struct mdp_intern {
    mdp_slot *slots;
    size_t room, mask; // allocated slots; those in use are 0 … mask
    uint32_t n;        // pairs so far
} mdp_intern;

// Empties the table and makes room for about so many pairs; it grows by itself beyond.
psi_status mdp_intern_reset(psi_ctx *ctx, mdp_intern *table, size_t expected);
psi_status mdp_intern_grow(psi_ctx *ctx, mdp_intern *table);
void mdp_intern_free(psi_ctx *ctx, mdp_intern *table);

// Mixes 64 bits so that each depends on all.
static inline uint64_t mdp_mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

static inline size_t mdp_intern_place(const mdp_intern *table, uint32_t a, uint64_t r)
{
    return (size_t)((r + a) * UINT64_C(0x9E3779B97F4A7C15) >> 20) & table->mask;
}

// *id of the pair; it is table->n − 1 and new if that was larger than before. PSI_ENOMEM.
static inline psi_status mdp_intern_get(psi_ctx *ctx, mdp_intern *table, uint32_t a, uint64_t r,
                                        uint32_t *id)
{
    if (2 * (size_t)table->n >= table->mask) {
        const psi_status status = mdp_intern_grow(ctx, table);
        if (status != PSI_OK) return status;
    }
    size_t at = mdp_intern_place(table, a, r);
    while (table->slots[at].id != 0) {
        if (table->slots[at].r == r && table->slots[at].a == a) {
            *id = table->slots[at].id - 1;
            return PSI_OK;
        }
        at = (at + 1) & table->mask;
    }
    *id = table->n++;
    table->slots[at] = (mdp_slot){r, a, table->n};
    return PSI_OK;
}

#endif
