// The inside of an observation source.
#ifndef PSI_DATA_OBSERVATIONS_H
#define PSI_DATA_OBSERVATIONS_H

#include <psifold/data.h>

struct data_source;

struct psi_observations {
    psi_dtype dtype;
    psi_shape shape;
    size_t count, row_bytes;
    const char *data;               // all rows, if they are in memory
    char *owned;                    // the same, if it is ours to free
    struct data_source *source;     // the file they are read from otherwise
    const psi_observations *frames; // … or what they are stacked from (stack.c)
    size_t n_frames;
    uint8_t *earlier; // (count) how many frames of its episode come before each, below n_frames
    psi_observations **parts; // … or what they are joined from (joined.c)
    size_t n_parts;
    struct data_piece *piece; // (n_pieces)
    size_t n_pieces;
};

// Checks dtype, shape and that count rows can be addressed. row_bytes is set, data is not.
psi_status data_observations_new(psi_ctx *ctx, psi_dtype dtype, const psi_shape *shape,
                                 size_t count, psi_observations **out);

#endif
