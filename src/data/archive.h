// A file of named arrays, whichever library opens it: HDF5 or zip. The readers of the layouts above
// (D4RL, d3rlpy, our .npz) see only this.
#ifndef PSI_DATA_ARCHIVE_H
#define PSI_DATA_ARCHIVE_H

#include "data/array.h"

typedef struct data_archive data_archive;

typedef struct data_frame {
    unsigned char *bytes; // owned by whoever asked
    size_t size;
} data_frame;

// Only the calling thread of the library uses these.
typedef struct data_archive_ops {
    bool (*has)(data_archive *archive, const char *name);
    psi_status (*describe)(data_archive *archive, const char *name, data_array *out);
    psi_status (*read)(psi_ctx *ctx, data_archive *archive, const data_array *array, size_t first,
                       size_t n, void *out);
    psi_status (*frames)(psi_ctx *ctx, data_archive *archive, const data_array *array, size_t first,
                         size_t n, data_frame *out);
    void (*close)(data_archive *archive);
} data_archive_ops;

struct data_archive {
    const data_archive_ops *ops;
    psi_ctx *ctx;
    char *path;
    int fd;
    uint64_t file_size;
    size_t memory_limit; // above it nothing is unpacked into memory
};

psi_status data_hdf5_open(psi_ctx *ctx, const char *path, size_t memory_limit, data_archive **out);
psi_status data_npz_open(psi_ctx *ctx, const char *path, size_t memory_limit, data_archive **out);
void data_archive_close(data_archive *archive); // NULL is fine

// Opens the file descriptor and notes path and size; what both libraries begin with.
psi_status data_archive_start(data_archive *archive, psi_ctx *ctx, const char *path,
                              size_t memory_limit);
void data_archive_end(data_archive *archive);

bool data_archive_has(data_archive *archive, const char *name);

// The array is the caller's, to be given back with data_array_free.
psi_status data_archive_describe(data_archive *archive, const char *name, data_array *out);

// Rows of an array of any layout.
psi_status data_archive_read(psi_ctx *ctx, data_archive *archive, const data_array *array,
                             size_t first, size_t n, void *out);

// A whole column of numbers: shape (n), (n, 1) or a single number. The values are the caller's.
// Integers may be stored as floating-point numbers if they are whole; flags are 0 or 1 of any type.
psi_status data_read_reals(data_archive *archive, const char *name, size_t *n, double **out);
psi_status data_read_integers(data_archive *archive, const char *name, size_t *n, int64_t **out);
psi_status data_read_flags(data_archive *archive, const char *name, size_t *n, uint8_t **out);

// Refuses an array that claims more than a file of this size can hold, compressed or not.
psi_status data_check_extent(psi_ctx *ctx, const data_archive *archive, const char *name,
                             size_t bytes);

#endif
