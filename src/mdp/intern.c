// The table behind mdp_intern: open addressing, at most half full.
#include "mdp/intern.h"

#include "base/context.h"

#include <string.h>

enum { SMALLEST = 64 };

psi_status mdp_intern_reset(psi_ctx *ctx, mdp_intern *table, size_t expected)
{
    size_t wanted = SMALLEST;
    while (wanted / 2 < expected) wanted *= 2;
    if (wanted > table->room) {
        base_free(ctx, table->slots);
        *table = (mdp_intern){0};
        const psi_status status = base_alloc(ctx, wanted, sizeof *table->slots, &table->slots);
        if (status != PSI_OK) return status;
        table->room = wanted;
    }
    table->mask = wanted - 1;
    table->n = 0;
    memset(table->slots, 0, wanted * sizeof *table->slots);
    return PSI_OK;
}

psi_status mdp_intern_grow(psi_ctx *ctx, mdp_intern *table)
{
    mdp_intern larger = {0};
    const psi_status status = mdp_intern_reset(ctx, &larger, 2 * (table->mask + 1));
    if (status != PSI_OK) return status;
    for (size_t i = 0; table->slots && i <= table->mask; i++) {
        if (table->slots[i].id == 0) continue;
        size_t at = mdp_intern_place(&larger, table->slots[i].a, table->slots[i].r);
        while (larger.slots[at].id != 0) at = (at + 1) & larger.mask;
        larger.slots[at] = table->slots[i];
    }
    larger.n = table->n;
    base_free(ctx, table->slots);
    *table = larger;
    return PSI_OK;
}

void mdp_intern_free(psi_ctx *ctx, mdp_intern *table)
{
    base_free(ctx, table->slots);
    *table = (mdp_intern){0};
}
