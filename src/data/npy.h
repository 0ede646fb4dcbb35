// The header of a .npy array: "\x93NUMPY", version, length, and a dictionary as Python writes it.
#ifndef PSI_DATA_NPY_H
#define PSI_DATA_NPY_H

#include "data/array.h"

enum { DATA_NPY_START = 12, DATA_NPY_LONGEST = 1 << 16 };

// The length of the whole header, from its first 12 bytes; 0 if they are no .npy header, or one
// longer than DATA_NPY_LONGEST.
size_t data_npy_header_size(const void *start, size_t size);

// Element, rank and dimensions of the array; *fortran if the first index runs fastest. false if the
// text is not understood. text is the header from its first byte.
bool data_npy_parse(const char *text, size_t size, data_array *out, bool *fortran);

// The array's row_bytes, and the bytes of all rows. false if they do not fit size_t.
bool data_npy_extent(data_array *array, size_t *size);

// Brings an array in memory (size bytes) from Fortran order into ours.
psi_status data_npy_turn(psi_ctx *ctx, data_array *array, size_t size);

// "<f8" and the like.
const char *data_npy_descr(psi_dtype dtype);

// Writes a version 1 header, padded to a multiple of 64 bytes; returns its length, 0 if there is no
// room. descr is like "<f8".
size_t data_npy_format(char *out, size_t room, const char *descr, size_t rank, const size_t *dim);

#endif
