#include "problem/distinct.h"

#include "base/checked.h"
#include "base/comm.h"
#include "base/context.h"
#include "base/progress.h"

#include <xxhash.h>

#include <stdlib.h>
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

// ---- observations -------------------------------------------------------------------------------

// PSI_ELIMIT, once there are more than most.
static psi_status check_most(psi_ctx *ctx, size_t n, size_t most)
{
    if (n <= most) return PSI_OK;
    return FAIL(ctx, PSI_ELIMIT, "there are more than %zu different observations", most);
}

// Of this process: the n rows of a list (NULL: the first).
static psi_status add_own(psi_ctx *ctx, problem_distinct *set, const psi_observations *observations,
                          const uint64_t *rows, size_t n, size_t most, uint32_t *numbers)
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
        for (size_t i = 0; i < count; i++) {
            chosen[i] = rows ? rows[begin + i] : begin + i;
        }
        TRY(psi_observations_gather(ctx, observations, chosen, count, block));
        for (size_t i = 0; i < count; i++) {
            TRY(problem_distinct_add(ctx, set, block + i * set->row_bytes, &numbers[begin + i]));
            TRY(check_most(ctx, set->n, most));
        }
    }
    base_progress_end(&progress, n);
done:
    base_free(ctx, chosen);
    base_free(ctx, block);
    return status;
}

static int by_digest(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(XXH128_canonical_t));
}

// Whether all processes together know more than most: rows travel only if they do not. What each
// has found by itself may tell; else digests of their rows are counted.
static psi_status are_too_many(psi_ctx *ctx, const problem_distinct *own, size_t most, bool *out)
{
    psi_status status = PSI_OK;
    int64_t largest = (int64_t)own->n, sum = (int64_t)own->n;
    XXH128_canonical_t *digest = NULL, *all = NULL;
    size_t bytes, n = 0;
    TRY(base_maximum(ctx, &largest, 1));
    TRY(base_sum(ctx, &sum, 1));
    *out = (size_t)largest > most;
    if (*out || (size_t)sum <= most) goto done;
    TRY(base_alloc(ctx, own->n, sizeof *digest, &digest));
    for (size_t i = 0; i < own->n; i++) {
        XXH128_canonicalFromHash(&digest[i],
                                 XXH3_128bits(own->known + i * own->row_bytes, own->row_bytes));
    }
    TRY(base_gather_parts(ctx, digest, own->n * sizeof *digest, &all, &bytes));
    qsort(all, bytes / sizeof *all, sizeof *all, by_digest);
    for (size_t i = 0; i < bytes / sizeof *all; i++) n += i == 0 || by_digest(all + i - 1, all + i);
    *out = n > most;
done:
    base_free(ctx, all);
    base_free(ctx, digest);
    return status;
}

// The numbers that one process would give: the rows of all, in the order of the processes, which is
// that of the observations. name (own->n): of each of the own.
static psi_status name_together(psi_ctx *ctx, const problem_distinct *own, size_t most,
                                problem_distinct *set, uint32_t *name)
{
    psi_status status = PSI_OK;
    unsigned char *all = NULL;
    size_t bytes;
    uint32_t number;
    TRY(base_gather_parts(ctx, own->known, own->n * own->row_bytes, &all, &bytes));
    for (size_t at = 0; at < bytes; at += own->row_bytes) {
        TRY(problem_distinct_add(ctx, set, all + at, &number));
    }
    TRY(check_most(ctx, set->n, most));
    for (size_t i = 0; i < own->n; i++) {
        name[i] = problem_distinct_find(set, own->known + i * own->row_bytes);
    }
done:
    base_free(ctx, all);
    return status;
}

// Each process looks at its own observations; then all of them have the same names.
psi_status problem_distinct_observations(psi_ctx *ctx, problem_distinct *set,
                                         const psi_observations *observations, const uint64_t *rows,
                                         size_t n, size_t most, uint32_t *numbers)
{
    psi_status status = PSI_OK;
    problem_distinct own = {0};
    uint32_t *name = NULL;
    bool many;
    if (base_ranks(ctx) == 1) return add_own(ctx, set, observations, rows, n, most, numbers);
    TRY(problem_distinct_new(ctx, set->row_bytes, &own));
    status = add_own(ctx, &own, observations, rows, n, most, numbers);
    if (status != PSI_ELIMIT) TRY(status); // which all have to know
    TRY(are_too_many(ctx, &own, most, &many));
    if (many) TRY(check_most(ctx, most + 1, most));
    TRY(base_alloc(ctx, own.n, sizeof *name, &name));
    TRY(name_together(ctx, &own, most, set, name));
    for (size_t i = 0; i < n; i++) numbers[i] = name[numbers[i]];
done:
    base_free(ctx, name);
    problem_distinct_free(ctx, &own);
    return status;
}
