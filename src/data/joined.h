// Observations that lie in several places, seen as one: files that make up a data set, and of those
// the rows that this process reads.
#ifndef PSI_DATA_JOINED_H
#define PSI_DATA_JOINED_H

#include <psifold/data.h>

// Rows of one place.
typedef struct data_piece {
    const psi_observations *of;
    size_t from;     // its first row there …
    size_t first, n; // … is this one of the whole; how many follow one another
} data_piece;

// Pieces (n_pieces), in the order of their rows, of a whole of count rows; rows of no piece belong
// to other processes, and those that are here follow one another. Takes parts (n_parts, whose list
// comes from base_alloc) over, also on failure; pieces are copied.
psi_status data_join(psi_ctx *ctx, psi_observations **parts, size_t n_parts,
                     const data_piece *pieces, size_t n_pieces, size_t count,
                     psi_observations **out);

psi_status data_joined_gather(psi_ctx *ctx, const psi_observations *joined, const uint64_t *rows,
                              size_t n, void *out);

#endif
