#include "problem/distinct.h"

#include "base/checked.h"
#include "base/context.h"
#include "base/progress.h"

#include <xxhash.h>

#include <string.h>

enum { FIRST_ROOM = 256, BLOCK = 4096 };

psi_status problem_distinct_new(psi_ctx *ctx, size_t row_bytes, problem_distinct *out)
{
    psi_status status = PSI_OK;
    *out = (problem_distinct){
        .row_bytes = row_bytes, .room = FIRST_ROOM, .slots = (size_t)4 * FIRST_ROOM};
    TRY(base_alloc(ctx, out->room, row_bytes, &out->known));
    TRY(base_alloc_zero(ctx, out->slots, sizeof *out->slot, &out->slot));
done:
    if (status != PSI_OK) problem_distinct_free(ctx, out);
    return status;
}

void problem_distinct_free(psi_ctx *ctx, problem_distinct *set)
{
    base_free(ctx, set->slot);
    base_free(ctx, set->known);
    *set = (problem_distinct){0};
}

// Where the row is, or the free slot where it belongs (open addressing).
static size_t slot_of(const problem_distinct *set, const void *row)
{
    size_t at = XXH3_64bits(row, set->row_bytes) & (set->slots - 1);
    while (set->slot[at] &&
           memcmp(set->known + (set->slot[at] - 1) * set->row_bytes, row, set->row_bytes) != 0) {
        at = (at + 1) & (set->slots - 1);
    }
    return at;
}

uint32_t problem_distinct_find(const problem_distinct *set, const void *row)
{
    const uint32_t found = set->slot[slot_of(set, row)];
    return found ? found - 1 : PROBLEM_DISTINCT_NONE;
}

// Room for twice as many rows; at most a quarter of the slots are ever taken.
static psi_status grow(psi_ctx *ctx, problem_distinct *set)
{
    psi_status status = PSI_OK;
    uint32_t *slot = NULL;
    TRY(base_alloc_zero(ctx, 2 * set->slots, sizeof *slot, &slot));
    TRY(base_resize(ctx, 2 * set->room, set->row_bytes, &set->known));
    base_free(ctx, set->slot);
    set->slot = slot;
    slot = NULL;
    set->slots *= 2;
    set->room *= 2;
    for (size_t i = 0; i < set->n; i++) {
        set->slot[slot_of(set, set->known + i * set->row_bytes)] = (uint32_t)i + 1;
    }
done:
    base_free(ctx, slot);
    return status;
}

psi_status problem_distinct_add(psi_ctx *ctx, problem_distinct *set, const void *row,
                                uint32_t *number)
{
    size_t at = slot_of(set, row);
    if (!set->slot[at]) {
        if (set->n == INT32_MAX) return FAIL(ctx, PSI_ELIMIT, "more than 2^31 different rows");
        if (set->n == set->room) {
            const psi_status status = grow(ctx, set);
            if (status != PSI_OK) return status;
            at = slot_of(set, row);
        }
        memcpy(set->known + set->n * set->row_bytes, row, set->row_bytes);
        set->slot[at] = (uint32_t)++set->n;
    }
    *number = set->slot[at] - 1;
    return PSI_OK;
}

psi_status problem_distinct_observations(psi_ctx *ctx, problem_distinct *set,
                                         const psi_observations *observations, const uint64_t *rows,
                                         size_t n, size_t most, uint32_t *numbers)
{
    psi_status status = PSI_OK;
    unsigned char *block = NULL;
    uint64_t *chosen = NULL;
    TRY(base_alloc(ctx, base_min(BLOCK, n), set->row_bytes, &block));
    TRY(base_alloc(ctx, base_min(BLOCK, n), sizeof *chosen, &chosen));
    base_progress progress = base_progress_start(ctx, "telling observations apart", n);
    for (size_t begin = 0; begin < n; begin += BLOCK) {
        const size_t count = base_min(BLOCK, n - begin);
        TRY(base_progress_at(&progress, begin));
        for (size_t i = 0; i < count; i++) chosen[i] = rows ? rows[begin + i] : begin + i;
        TRY(psi_observations_gather(ctx, observations, chosen, count, block));
        for (size_t i = 0; i < count; i++) {
            TRY(problem_distinct_add(ctx, set, block + i * set->row_bytes, &numbers[begin + i]));
            if (set->n > most) {
                TRY(FAIL(ctx, PSI_ELIMIT, "there are more than %zu different observations", most));
            }
        }
    }
    base_progress_end(&progress, n);
done:
    base_free(ctx, chosen);
    base_free(ctx, block);
    return status;
}
