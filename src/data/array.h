// An array in a file: what its elements are, and where its rows lie. Readers describe arrays; rows
// are fetched later, by any thread, wherever the bytes can be reached without the file's library.
#ifndef PSI_DATA_ARRAY_H
#define PSI_DATA_ARRAY_H

#include <psifold/base.h>

typedef enum data_kind {
    DATA_UNSIGNED,
    DATA_SIGNED,
    DATA_FLOAT,
    DATA_BOOL,
    DATA_FRAMES, // a string of bytes of its own length per row: an image file
    DATA_OTHER,  // text, records, …: nothing to be learnt from
} data_kind;

typedef struct data_element {
    data_kind kind;
    size_t size;  // bytes
    bool swapped; // the other byte order than this machine's
} data_element;

typedef enum data_layout {
    DATA_CONTIGUOUS, // at offset of fd
    DATA_CHUNKED,    // uncompressed tiles at known places of fd
    DATA_IN_MEMORY,
    DATA_THROUGH_LIBRARY, // compressed, or otherwise out of our reach
} data_layout;

enum { DATA_MAX_RANK = PSI_MAX_RANK + 1 };

typedef struct data_array {
    data_element element;
    size_t rank, dim[DATA_MAX_RANK]; // rank 0 is a single number; dim[0] counts the rows
    size_t row_bytes;                // of a row in the file
    data_layout layout;
    int fd; // borrowed from the archive
    uint64_t offset;
    char *memory; // owned
    size_t chunk[DATA_MAX_RANK], grid[DATA_MAX_RANK];
    uint64_t *address;  // owned: of every chunk, the last dimension running fastest
    char *name;         // owned
    uint64_t id;        // the archive's own mark for it
    data_layout frames; // of DATA_FRAMES: where the references to the bytes lie
} data_array;

void data_array_free(psi_ctx *ctx, data_array *array); // what it owns; the array itself stays

size_t data_array_rows(const data_array *array);
const char *data_kind_name(data_kind kind);

// The type that elements get in memory: uint8, float32 and float64 stay what they are, bool becomes
// uint8, float16 float32, other integers int32 or int64. false if there is none.
bool data_element_dtype(const data_element *element, psi_dtype *dtype);

// Whether elements in the file are already the bytes wanted in memory.
bool data_element_is_native(const data_element *element);

// n elements as they are in the file to their type in memory. false if an unsigned 64-bit integer
// does not fit.
bool data_convert(const data_element *element, const void *from, size_t n, void *to);

// n elements as doubles, or as integers. The latter gives the index of the first that is none, or
// n.
void data_to_double(const data_element *element, const void *from, size_t n, double *to);
size_t data_to_integer(const data_element *element, const void *from, size_t n, int64_t *to);

// Bytes of scratch memory that data_array_read needs for this array.
size_t data_array_scratch(const data_array *array);

// The bytes of rows first … first + n − 1, which exist. Safe on any thread; not for arrays that are
// read through their library. PSI_EIO if the file is shorter than it was.
psi_status data_array_read(psi_ctx *ctx, const data_array *array, size_t first, size_t n, void *out,
                           void *scratch, size_t scratch_bytes);

// All of [offset, offset + size) of a file, or PSI_EIO, naming name.
psi_status data_pread(psi_ctx *ctx, int fd, uint64_t offset, void *out, size_t size,
                      const char *name);

#endif
