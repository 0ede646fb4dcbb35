#include "data/joined.h"

#include "base/checked.h"
#include "base/comm.h"
#include "base/context.h"
#include "data/observations.h"

#include <string.h>

psi_status data_join(psi_ctx *ctx, psi_observations **parts, size_t n_parts,
                     const data_piece *pieces, size_t n_pieces, size_t count,
                     psi_observations **out)
{
    psi_status status = PSI_OK;
    psi_observations *joined = NULL;
    *out = NULL;
    TRY(data_observations_new(ctx, parts[0]->dtype, &parts[0]->shape, count, &joined));
    TRY(base_alloc(ctx, n_pieces, sizeof *joined->piece, &joined->piece));
    memcpy(joined->piece, pieces, n_pieces * sizeof *joined->piece);
    joined->n_pieces = n_pieces;
    joined->parts = parts;
    joined->n_parts = n_parts;
    parts = NULL;
    *out = joined;
    joined = NULL;
done:
    psi_observations_free(ctx, joined);
    for (size_t i = 0; parts && i < n_parts; i++) psi_observations_free(ctx, parts[i]);
    base_free(ctx, parts);
    return status;
}

// The last piece that starts at or before the row; NULL if it is in none.
static const data_piece *piece_at(const psi_observations *joined, uint64_t row)
{
    size_t low = 0, high = joined->n_pieces;
    if (high == 0 || row < joined->piece[0].first) return NULL;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (joined->piece[middle].first <= row) {
            low = middle;
        } else {
            high = middle;
        }
    }
    const data_piece *piece = &joined->piece[low];
    return row - piece->first < piece->n ? piece : NULL;
}

psi_status data_joined_gather(psi_ctx *ctx, const psi_observations *joined, const uint64_t *rows,
                              size_t n, void *out)
{
    psi_status status = PSI_OK;
    const size_t row_bytes = joined->row_bytes;
    uint64_t *there = NULL; // the rows of a stretch that lies in one piece, as its place counts
    TRY(base_alloc(ctx, n, sizeof *there, &there));
    for (size_t begin = 0, end; begin < n; begin = end) {
        const data_piece *piece = piece_at(joined, rows[begin]);
        if (!piece) {
            status = FAIL(ctx, PSI_EINTERNAL, "observation %llu is read by another process",
                          (unsigned long long)rows[begin]);
            goto done;
        }
        for (end = begin; end < n && rows[end] - piece->first < piece->n; end++) {
            there[end] = rows[end] - piece->first + piece->from;
        }
        char *to = (char *)out + begin * row_bytes;
        const char *data = piece->of->data;
        if (!data) {
            TRY(psi_observations_gather(ctx, piece->of, there + begin, end - begin, to));
            continue;
        }
        for (size_t i = begin; i < end; i++, to += row_bytes) {
            memcpy(to, data + there[i] * row_bytes, row_bytes);
        }
    }
done:
    base_free(ctx, there);
    return status;
}

void psi_observations_here(const psi_observations *observations, size_t *begin, size_t *end)
{
    if (FREED(NULL, observations)) return;
    while (observations->frames) observations = observations->frames;
    const size_t n = observations->n_pieces;
    *begin = 0;
    *end = observations->count;
    if (!observations->parts) return;
    *begin = n ? observations->piece[0].first : 0;
    *end = n ? observations->piece[n - 1].first + observations->piece[n - 1].n : 0;
}

// Rows first … first + n − 1 of one process reach rank 0, block by block.
static psi_status collect_from(psi_ctx *ctx, const psi_observations *observations, int rank,
                               size_t first, size_t n, char *to)
{
    enum { BLOCK_BYTES = 1 << 26 };
    psi_status status = PSI_OK;
    const size_t row_bytes = observations->row_bytes;
    const size_t most = base_min(n, base_max(BLOCK_BYTES / base_max(row_bytes, 1), 1));
    const bool own = rank == base_rank(ctx);
    char *block = NULL;
    uint64_t *rows = NULL;
    if (!own && base_rank(ctx) > 0) return PSI_OK;
    TRY(base_alloc(ctx, most, own ? row_bytes : 0, &block));
    TRY(base_alloc(ctx, most, sizeof *rows, &rows));
    for (size_t begin = 0; begin < n; begin += most) {
        const size_t count = base_min(most, n - begin);
        char *at = base_rank(ctx) > 0 ? block : to + (first + begin) * row_bytes;
        for (size_t i = 0; i < count; i++) rows[i] = first + begin + i;
        if (own) TRY(psi_observations_gather(ctx, observations, rows, count, at));
        TRY(base_hand_over(ctx, at, count * row_bytes, rank, 0));
    }
done:
    base_free(ctx, rows);
    base_free(ctx, block);
    return status;
}

psi_status psi_observations_collect(psi_ctx *ctx, const psi_observations *observations,
                                    psi_observations **out)
{
    psi_status status = PSI_OK;
    const bool here = base_rank(ctx) == 0;
    psi_observations *whole = NULL;
    size_t own[2], (*each)[2] = NULL;
    *out = NULL;
    if (FREED(ctx, observations)) return PSI_EUSAGE;
    psi_observations_here(observations, &own[0], &own[1]);
    TRY(base_alloc(ctx, (size_t)base_ranks(ctx), sizeof *each, &each));
    TRY(base_gather(ctx, own, sizeof own, each));
    TRY(data_observations_new(ctx, observations->dtype, &observations->shape, observations->count,
                              &whole));
    TRY(base_alloc(ctx, here ? whole->count : 0, whole->row_bytes, &whole->owned));
    for (int r = 0; r < base_ranks(ctx); r++) {
        TRY(collect_from(ctx, observations, r, each[r][0], each[r][1] - each[r][0], whole->owned));
    }
    whole->data = whole->owned;
    if (here) {
        *out = whole;
        whole = NULL;
    }
done:
    psi_observations_free(ctx, whole);
    base_free(ctx, each);
    return status;
}
