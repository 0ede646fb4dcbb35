#include "evidence/share.h"

#include "base/comm.h"
#include "base/context.h"

#include <string.h>

enum { WORTH_SHARING = 1024 }; // leaves, which take a millisecond or more

bool evidence_is_shared(const psi_ctx *ctx, const psi_forest *forest, const psi_draws *draws)
{
    return draws->together && base_ranks(ctx) > 1 && !forest->looks &&
           forest->n_nodes >= WORTH_SHARING;
}

size_t evidence_own_part(const psi_ctx *ctx, bool shared, size_t n, size_t *end)
{
    const size_t ranks = shared ? (size_t)base_ranks(ctx) : 1;
    const size_t rank = shared ? (size_t)base_rank(ctx) : 0;
    *end = n * (rank + 1) / ranks;
    return n * rank / ranks;
}

psi_status evidence_fill_in(psi_ctx *ctx, bool shared, void *values, size_t size, size_t n)
{
    psi_status status = PSI_OK;
    char *all = NULL;
    size_t end, bytes;
    if (!shared) return PSI_OK;
    const size_t begin = evidence_own_part(ctx, shared, n, &end);
    TRY(base_gather_parts(ctx, (char *)values + begin * size, (end - begin) * size, &all, &bytes));
    memcpy(values, all, bytes);
done:
    base_free(ctx, all);
    return status;
}
