// The number type of the engine and the layout of everything in it.
//
// Maps lie as [C/16][pixel][row][16]: sixteen channels innermost, then the rows of the batch, so
// that every tap of a convolution is a plain matrix product over rows on 16×16 blocks of weights.
// The rows of a plane are followed by an unused one: planes whose distance is a power of two would
// fall into the same sets of the cache.
#ifndef PSI_NN_REAL_H
#define PSI_NN_REAL_H

#include <psifold/nn.h>

typedef psi_real real;

enum {
    NN_BLOCK = 16,                   // channels in a block
    NN_SQUARE = NN_BLOCK * NN_BLOCK, // weights from one block of channels to another
};

// Some rows of a stack of maps; belongs to one thread.
typedef struct nn_maps {
    real *data;   // the first row of block 0, pixel 0
    size_t plane; // from one pixel (or block of a 1×1 map) to the next
} nn_maps;

static inline size_t nn_blocks(size_t channels)
{
    return (channels + NN_BLOCK - 1) / NN_BLOCK;
}

static inline size_t nn_plane(size_t rows)
{
    return (rows + 1) * NN_BLOCK;
}

static inline real *nn_at(nn_maps maps, size_t pixels, size_t block, size_t pixel)
{
    return maps.data + (block * pixels + pixel) * maps.plane;
}

static inline nn_maps nn_rows_from(nn_maps maps, size_t row)
{
    return (nn_maps){maps.data + row * NN_BLOCK, maps.plane};
}

#endif
