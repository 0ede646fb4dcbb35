// Which data a run was made from: 128 bits (XXH3) over everything that clustering may look at. The
// true latent states are no part of it.
#include <psifold/cluster.h>

#include "base/checked.h"
#include "base/context.h"
#include "base/progress.h"

#include <stdio.h>
#include <xxhash.h>

enum { BLOCK_BYTES = 1 << 22 };

// Observations that are not in memory pass through a block of a few megabytes.
static psi_status add_observations(psi_ctx *ctx, const psi_observations *observations,
                                   XXH3_state_t *hash)
{
    psi_status status = PSI_OK;
    const size_t n = psi_observations_count(observations);
    const size_t row_bytes = psi_observations_row_bytes(observations);
    const unsigned char *data = psi_observations_data(observations);
    const size_t block = base_max(BLOCK_BYTES / base_max(row_bytes, 1), 1);
    unsigned char *bytes = NULL;
    uint64_t *rows = NULL;
    if (!data) {
        TRY(base_alloc(ctx, base_min(block, n), row_bytes, &bytes));
        TRY(base_alloc(ctx, base_min(block, n), sizeof *rows, &rows));
    }
    base_progress progress = base_progress_start(ctx, "fingerprint of the data", n);
    for (size_t begin = 0; begin < n; begin += block) {
        const size_t count = base_min(block, n - begin);
        TRY(base_progress_at(&progress, begin));
        for (size_t i = 0; !data && i < count; i++) rows[i] = begin + i;
        if (!data) TRY(psi_observations_gather(ctx, observations, rows, count, bytes));
        XXH3_128bits_update(hash, data ? data + begin * row_bytes : bytes, count * row_bytes);
    }
    base_progress_end(&progress, n);
done:
    base_free(ctx, rows);
    base_free(ctx, bytes);
    return status;
}

psi_status psi_fingerprint_of(psi_ctx *ctx, const psi_trajectories *data, psi_fingerprint *out)
{
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
    TRY(add_observations(ctx, data->observations, hash));
    const XXH128_hash_t sum = XXH3_128bits_digest(hash);
    snprintf(out->hex, sizeof out->hex, "%016llx%016llx", (unsigned long long)sum.high64,
             (unsigned long long)sum.low64);
done:
    XXH3_freeState(hash);
    return status;
}
