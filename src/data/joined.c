#include "data/joined.h"

#include "base/checked.h"
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
            status = FAIL(ctx, PSI_EINTERNAL, "observation %llu is in no part",
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
