// Arrays on their way into an .npz, whether their bytes are in memory or in a file.
#ifndef PSI_DATA_NPZ_PACK_H
#define PSI_DATA_NPZ_PACK_H

#include "data/npy.h"

enum { DATA_NPZ_HEADER = 256, DATA_NPZ_NAME = 250 }; // the longest name, without ".npy"

typedef struct data_npz_entry {
    const char *name; // NULL: not there
    char header[DATA_NPZ_HEADER];
    size_t header_size;
    const char *bytes; // what follows the header: here …
    int fd;            // … or, if bytes is NULL, the beginning of this file
    uint64_t size;
    uint64_t position; // of libzip's reading
} data_npz_entry;

// Makes the archive under the name temporary, without compression and with one date for all: the
// same arrays give the same bytes. path is what a failure names.
psi_status data_npz_pack(psi_ctx *ctx, const char *path, const char *temporary,
                         data_npz_entry *entries, size_t n);

#endif
