// Which data a run was made from: 128 bits (XXH3) over everything that clustering may look at. The
// true latent states are no part of it.
#include <psifold/cluster.h>

#include "base/checked.h"
#include "base/comm.h"
#include "base/context.h"
#include "base/progress.h"

#include <stdio.h>
#include <xxhash.h>

enum { BLOCK_BYTES = 1 << 22 };

// Several processes hash the data of all of them one after the other, where rank 0 is.
static psi_status add_block(void *hash, const void *block, size_t bytes)
{
    XXH3_128bits_update(hash, block, bytes);
    return PSI_OK;
}

// Where the episodes of this process begin, among those of all; with the end of the last one.
static psi_status find_offsets(psi_ctx *ctx, const psi_trajectories *own, uint64_t **out, size_t *n)
{
    psi_status status = PSI_OK;
    uint64_t before = 0;
    const bool last = base_rank(ctx) + 1 == base_ranks(ctx);
    *n = own->n_episodes + (last ? 1 : 0);
    TRY(base_alloc(ctx, *n, sizeof **out, out));
    TRY(base_take_turn(ctx, &before, sizeof before));
    for (size_t e = 0; e < *n; e++) (*out)[e] = before + own->episode_offsets[e];
    before += own->n_transitions;
    TRY(base_end_turn(ctx, &before, sizeof before));
done:
    return status;
}

// Every episode's observations are hashed by themselves, and these hashes once more: how episodes
// are spread over files, or over processes, makes no difference. Observations that are not in
// memory pass through a block of a few megabytes.
static psi_status add_observations(psi_ctx *ctx, const psi_trajectories *all, XXH3_state_t *hash)
{
    psi_status status = PSI_OK;
    const psi_observations *observations = all->observations;
    const size_t row_bytes = psi_observations_row_bytes(observations);
    const unsigned char *data = psi_observations_data(observations);
    const size_t block = base_max(BLOCK_BYTES / base_max(row_bytes, 1), 1);
    unsigned char *bytes = NULL;
    uint64_t *rows = NULL;
    XXH128_canonical_t *own = NULL;
    const size_t end = all->n_observations;
    size_t n = 0;
    XXH3_state_t *episode = XXH3_createState();
    if (!episode) return FAIL(ctx, PSI_ENOMEM, "no memory for a fingerprint");
    TRY(base_alloc(ctx, all->n_episodes, sizeof *own, &own));
    if (!data) {
        TRY(base_alloc(ctx, base_min(block, end), row_bytes, &bytes));
        TRY(base_alloc(ctx, base_min(block, end), sizeof *rows, &rows));
    }
    base_progress progress = base_progress_start(ctx, "fingerprint of the data", end);
    size_t held = 0, until = 0; // rows held … until − 1 are in the block
    for (size_t e = 0; e < all->n_episodes; e++) {
        size_t at = psi_row(e, all->episode_offsets[e]);
        const size_t last = psi_row(e, all->episode_offsets[e + 1]) + 1;
        XXH3_128bits_reset(episode);
        while (at < last) {
            if (!data && at == until) {
                held = at;
                until = base_min(held + block, end);
                TRY(base_progress_at(&progress, held));
                for (size_t i = held; i < until; i++) rows[i - held] = i;
                TRY(psi_observations_gather(ctx, observations, rows, until - held, bytes));
            }
            const size_t to = data ? last : base_min(last, until);
            XXH3_128bits_update(episode,
                                data ? data + at * row_bytes : bytes + (at - held) * row_bytes,
                                (to - at) * row_bytes);
            at = to;
        }
        XXH128_canonicalFromHash(&own[n++], XXH3_128bits_digest(episode));
    }
    base_progress_end(&progress, end);
    TRY(base_pass_to_first(ctx, own, n * sizeof *own, add_block, hash));
done:
    XXH3_freeState(episode);
    base_free(ctx, own);
    base_free(ctx, rows);
    base_free(ctx, bytes);
    return status;
}

psi_status psi_fingerprint_of(psi_ctx *ctx, const psi_trajectories *data, psi_fingerprint *out)
{
    if (FREED(ctx, data)) return PSI_EUSAGE;
    psi_status status = PSI_OK;
    *out = (psi_fingerprint){""};
    size_t n[2] = {data->n_episodes, data->n_transitions}, n_offsets;
    uint64_t *offsets = NULL;
    XXH3_state_t *hash = XXH3_createState(); // the library alone knows its size
    if (!hash) return FAIL(ctx, PSI_ENOMEM, "no memory for a fingerprint");
    XXH3_128bits_reset(hash);
    const psi_shape *shape = psi_observations_shape(data->observations);
    TRY(base_sum_sizes(ctx, n, 2));
    TRY(find_offsets(ctx, data, &offsets, &n_offsets));
    uint64_t head[4 + PSI_MAX_RANK] = {n[0], n[1], data->n_actions,
                                       (uint64_t)psi_observations_dtype(data->observations)};
    for (size_t i = 0; i < shape->rank; i++) head[4 + i] = shape->dim[i];
    const struct {
        const void *bytes;
        size_t size;
    } columns[] = {
        {head, base_rank(ctx) == 0 ? sizeof head : 0},
        {data->actions, data->n_transitions * sizeof *data->actions},
        {data->rewards, data->n_transitions * sizeof *data->rewards},
        {offsets, n_offsets * sizeof *offsets},
        {data->terminated, data->n_episodes},
        {data->truncated, data->n_episodes},
        {data->final_missing, data->n_episodes},
    };
    for (size_t c = 0; c < sizeof columns / sizeof columns[0]; c++) {
        TRY(base_pass_to_first(ctx, columns[c].bytes, columns[c].size, add_block, hash));
    }
    TRY(add_observations(ctx, data, hash));
    const XXH128_hash_t sum = XXH3_128bits_digest(hash);
    snprintf(out->hex, sizeof out->hex, "%016llx%016llx", (unsigned long long)sum.high64,
             (unsigned long long)sum.low64);
    TRY(base_broadcast(ctx, out->hex, sizeof out->hex, 0));
done:
    XXH3_freeState(hash);
    base_free(ctx, offsets);
    return status;
}
