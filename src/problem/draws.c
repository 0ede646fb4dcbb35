#include "problem/draws.h"

#include "base/comm.h"
#include "base/context.h"
#include "base/tally.h"

#include <string.h>

psi_status problem_draws_new(psi_ctx *ctx, size_t room, problem_draws *out)
{
    psi_status status = PSI_OK;
    *out = (problem_draws){0};
    TRY(base_alloc(ctx, room, sizeof *out->node, &out->node));
    TRY(base_alloc(ctx, room, sizeof *out->outcome, &out->outcome));
done:
    return status;
}

void problem_draws_free(psi_ctx *ctx, problem_draws *draws)
{
    base_free(ctx, draws->node);
    base_free(ctx, draws->outcome);
    base_free(ctx, draws->times);
    *draws = (problem_draws){0};
}

psi_status problem_draws_together(psi_ctx *ctx, problem_draws *draws)
{
    psi_status status = PSI_OK;
    uint64_t *keys = NULL;
    base_times *all = NULL;
    size_t n;
    if (base_ranks(ctx) == 1) return PSI_OK;
    TRY(base_alloc(ctx, draws->n, sizeof *keys, &keys));
    for (size_t i = 0; i < draws->n; i++) {
        keys[i] = (uint64_t)draws->node[i] << 32 | draws->outcome[i];
    }
    n = draws->n;
    problem_draws_free(ctx, draws); // there is less to come, and room for the keys is needed
    TRY(base_tally(ctx, keys, n, &all, &n));
    TRY(problem_draws_new(ctx, n, draws));
    TRY(base_alloc(ctx, n, sizeof *draws->times, &draws->times));
    for (size_t i = 0; i < n; i++) {
        if (all[i].n > UINT32_MAX) TRY(FAIL(ctx, PSI_ELIMIT, "one thing followed 2^32 times"));
        draws->times[i] = (uint32_t)all[i].n;
        problem_draws_add(draws, (size_t)(all[i].key >> 32), (size_t)(uint32_t)all[i].key);
    }
done:
    base_free(ctx, all);
    base_free(ctx, keys);
    return status;
}

void problem_draws_number(problem_draws *draws, size_t n_families, size_t wide, uint32_t *number,
                          uint32_t *first)
{
    uint32_t used = 0;
    memset(number, 0, n_families * wide * sizeof *number);
    for (size_t i = 0; i < draws->n; i++) number[draws->outcome[i]] = 1;
    for (size_t i = 0; i < n_families * wide; i++) {
        if (i % wide == 0) first[i / wide] = used;
        const uint32_t occurs = number[i];
        number[i] = used;
        used += occurs;
    }
    first[n_families] = used;
    for (size_t i = 0; i < draws->n; i++) draws->outcome[i] = number[draws->outcome[i]];
}
