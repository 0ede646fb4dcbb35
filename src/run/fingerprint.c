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

// Every episode's observations are hashed by themselves, and these hashes once more: how episodes
// are spread over files, or over processes, makes no difference. Observations that are not in
// memory pass through a block of a few megabytes; of those that other processes read, their hashes
// are asked for.
static psi_status add_observations(psi_ctx *ctx, const psi_trajectories *all, XXH3_state_t *hash)
{
    psi_status status = PSI_OK;
    const psi_observations *observations = all->observations;
    const size_t row_bytes = psi_observations_row_bytes(observations);
    const unsigned char *data = psi_observations_data(observations);
    const size_t block = base_max(BLOCK_BYTES / base_max(row_bytes, 1), 1);
    unsigned char *bytes = NULL;
    uint64_t *rows = NULL;
    XXH128_canonical_t *own = NULL, *every = NULL;
    size_t first, end, n = 0, total;
    psi_observations_here(observations, &first, &end);
    XXH3_state_t *episode = XXH3_createState();
    if (!episode) return FAIL(ctx, PSI_ENOMEM, "no memory for a fingerprint");
    TRY(base_alloc(ctx, all->n_episodes, sizeof *own, &own));
    if (!data) {
        TRY(base_alloc(ctx, base_min(block, end - first), row_bytes, &bytes));
        TRY(base_alloc(ctx, base_min(block, end - first), sizeof *rows, &rows));
    }
    base_progress progress = base_progress_start(ctx, "fingerprint of the data", end - first);
    size_t held = first, until = first; // rows held … until − 1 are in the block
    for (size_t e = 0; e < all->n_episodes; e++) {
        size_t at = psi_row(e, all->episode_offsets[e]);
        const size_t last = psi_row(e, all->episode_offsets[e + 1]) + 1;
        if (at < first || at >= end) continue;
        XXH3_128bits_reset(episode);
        while (at < last) {
            if (!data && at == until) {
                held = at;
                until = base_min(held + block, end);
                TRY(base_progress_at(&progress, held - first));
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
    base_progress_end(&progress, end - first);
    TRY(base_gather_parts(ctx, own, n * sizeof *own, &every, &total));
    XXH3_128bits_update(hash, every, total);
done:
    XXH3_freeState(episode);
    base_free(ctx, every);
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
    XXH3_state_t *hash = XXH3_createState(); // the library alone knows its size
    if (!hash) return FAIL(ctx, PSI_ENOMEM, "no memory for a fingerprint");
    XXH3_128bits_reset(hash);
    const psi_shape *shape = psi_observations_shape(data->observations);
    uint64_t head[4 + PSI_MAX_RANK] = {data->n_episodes, data->n_transitions, data->n_actions,
                                       (uint64_t)psi_observations_dtype(data->observations)};
    for (size_t i = 0; i < shape->rank; i++) head[4 + i] = shape->dim[i];
    const struct {
        const void *bytes;
        size_t size;
    } columns[] = {
        {head, sizeof head},
        {data->actions, data->n_transitions * sizeof *data->actions},
        {data->rewards, data->n_transitions * sizeof *data->rewards},
        {data->episode_offsets, (data->n_episodes + 1) * sizeof *data->episode_offsets},
        {data->terminated, data->n_episodes},
        {data->truncated, data->n_episodes},
        {data->final_missing, data->n_episodes},
    };
    for (size_t c = 0; c < sizeof columns / sizeof columns[0]; c++) {
        XXH3_128bits_update(hash, columns[c].bytes, columns[c].size);
    }
    TRY(add_observations(ctx, data, hash));
    const XXH128_hash_t sum = XXH3_128bits_digest(hash);
    snprintf(out->hex, sizeof out->hex, "%016llx%016llx", (unsigned long long)sum.high64,
             (unsigned long long)sum.low64);
done:
    XXH3_freeState(hash);
    return status;
}
