// Rows out of contiguous and chunked arrays by positioned reads. A mapping would give the same
// bytes, but its pages would count as resident memory while a large file is streamed, and a file
// that is shortened meanwhile would end the process instead of giving a status.
#include "data/array.h"

#include "base/checked.h"
#include "base/context.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

void data_array_free(psi_ctx *ctx, data_array *array)
{
    base_free(ctx, array->memory);
    base_free(ctx, array->address);
    base_free(ctx, array->name);
    *array = (data_array){0};
}

size_t data_array_rows(const data_array *array)
{
    return array->rank ? array->dim[0] : 1;
}

const char *data_kind_name(data_kind kind)
{
    switch (kind) {
    case DATA_UNSIGNED: return "unsigned integers";
    case DATA_SIGNED: return "integers";
    case DATA_FLOAT: return "floating-point numbers";
    case DATA_BOOL: return "truth values";
    case DATA_FRAMES: return "image files";
    case DATA_OTHER: break;
    }
    return "text or records";
}

bool data_element_dtype(const data_element *element, psi_dtype *dtype)
{
    const size_t size = element->size;
    switch (element->kind) {
    case DATA_BOOL: *dtype = PSI_UINT8; return size == 1;
    case DATA_UNSIGNED:
        *dtype = size == 1 ? PSI_UINT8 : size == 2 ? PSI_INT32 : PSI_INT64;
        return size == 1 || size == 2 || size == 4 || size == 8;
    case DATA_SIGNED:
        *dtype = size == 8 ? PSI_INT64 : PSI_INT32;
        return size == 1 || size == 2 || size == 4 || size == 8;
    case DATA_FLOAT:
        *dtype = size == 8 ? PSI_FLOAT64 : PSI_FLOAT32;
        return size == 2 || size == 4 || size == 8;
    case DATA_FRAMES: *dtype = PSI_UINT8; return true;
    case DATA_OTHER: break;
    }
    return false;
}

bool data_element_is_native(const data_element *element)
{
    if (element->size == 1) return element->kind != DATA_SIGNED;
    if (element->swapped) return false;
    return (element->kind == DATA_SIGNED || element->kind == DATA_FLOAT) && element->size >= 4;
}

static double half_to_double(uint16_t bits)
{
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double value;
    if (exponent == 31) {
        value = fraction ? (double)NAN : (double)INFINITY;
    } else if (exponent == 0) {
        value = ldexp(fraction, -24);
    } else {
        value = ldexp(fraction + 1024, exponent - 25);
    }
    return bits >> 15 ? -value : value;
}

// One element in this machine's byte order, in the low bytes of a word.
static uint64_t load_bits(const data_element *element, const char *at)
{
    uint64_t bits = 0;
    if (!element->swapped) {
        memcpy(&bits, at, element->size);
        return bits;
    }
    for (size_t i = 0; i < element->size; i++) bits = bits << 8 | (unsigned char)at[i];
    return bits;
}

static double load_double(const data_element *element, const char *at)
{
    const uint64_t bits = load_bits(element, at);
    switch (element->kind) {
    case DATA_FLOAT:
        if (element->size == 2) return half_to_double((uint16_t)bits);
        if (element->size == 4) {
            const uint32_t low = (uint32_t)bits;
            float value;
            memcpy(&value, &low, sizeof value);
            return (double)value;
        } else {
            double value;
            memcpy(&value, &bits, sizeof value);
            return value;
        }
    case DATA_SIGNED: {
        const unsigned shift = (unsigned)(64 - 8 * element->size);
        return (double)((int64_t)(bits << shift) >> shift);
    }
    default: return (double)bits;
    }
}

void data_to_double(const data_element *element, const void *from, size_t n, double *to)
{
    const char *at = from;
    for (size_t i = 0; i < n; i++) to[i] = load_double(element, at + i * element->size);
}

size_t data_to_integer(const data_element *element, const void *from, size_t n, int64_t *to)
{
    const char *at = from;
    for (size_t i = 0; i < n; i++, at += element->size) {
        if (element->kind == DATA_FLOAT) {
            const double value = load_double(element, at);
            if (!(fabs(value) < 0x1p62) || value != floor(value)) return i;
            to[i] = (int64_t)value;
        } else {
            const uint64_t bits = load_bits(element, at);
            const unsigned shift = (unsigned)(64 - 8 * element->size);
            if (element->kind == DATA_SIGNED) {
                to[i] = (int64_t)(bits << shift) >> shift;
            } else if (bits > INT64_MAX) {
                return i;
            } else {
                to[i] = (int64_t)bits;
            }
        }
    }
    return n;
}

bool data_convert(const data_element *element, const void *from, size_t n, void *to)
{
    if (data_element_is_native(element)) {
        memcpy(to, from, n * element->size);
        return true;
    }
    const char *at = from;
    psi_dtype dtype;
    if (!data_element_dtype(element, &dtype)) return false;
    for (size_t i = 0; i < n; i++, at += element->size) {
        if (dtype == PSI_FLOAT32) {
            ((float *)to)[i] = (float)load_double(element, at);
        } else if (dtype == PSI_FLOAT64) {
            ((double *)to)[i] = load_double(element, at);
        } else {
            int64_t value;
            if (data_to_integer(element, at, 1, &value) != 1) return false;
            if (dtype == PSI_INT32) {
                ((int32_t *)to)[i] = (int32_t)value;
            } else {
                ((int64_t *)to)[i] = value;
            }
        }
    }
    return true;
}

psi_status data_pread(psi_ctx *ctx, int fd, uint64_t offset, void *out, size_t size,
                      const char *name)
{
    char *next = out;
    while (size > 0) {
        const ssize_t got = pread(fd, next, size, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            return FAIL(ctx, PSI_EIO, "%s: cannot read: %s", name, strerror(errno));
        }
        if (got == 0) return FAIL(ctx, PSI_EIO, "%s: the file ends too early", name);
        next += got;
        offset += (uint64_t)got;
        size -= (size_t)got;
    }
    return PSI_OK;
}

// Bytes of one row inside one chunk.
static size_t slab_bytes(const data_array *array)
{
    size_t bytes = array->element.size;
    for (size_t d = 1; d < array->rank; d++) bytes *= array->chunk[d];
    return bytes;
}

static bool chunks_hold_whole_rows(const data_array *array)
{
    for (size_t d = 1; d < array->rank; d++) {
        if (array->chunk[d] != array->dim[d]) return false;
    }
    return true;
}

size_t data_array_scratch(const data_array *array)
{
    if (array->layout != DATA_CHUNKED || chunks_hold_whole_rows(array)) return 0;
    return slab_bytes(array);
}

// How the part of a row that lies in one tile goes to its place in the whole row: four loops, of
// which the last copies a line. Missing dimensions count once.
typedef struct tile_plan {
    size_t extent[3], line; // line and strides in bytes
    size_t from[3], to[3];  // strides in the tile and in the row
    size_t start;           // of the tile in the row
} tile_plan;

static tile_plan plan_tile(const data_array *array, const size_t *tile)
{
    tile_plan plan = {.extent = {1, 1, 1}};
    size_t from = array->element.size, to = from;
    for (size_t d = array->rank - 1, slot = 3; d >= 1; d--, slot--) {
        const size_t first = tile[d] * array->chunk[d];
        const size_t extent = base_min(array->chunk[d], array->dim[d] - first);
        if (slot == 3) {
            plan.line = extent * array->element.size;
        } else {
            plan.extent[slot] = extent;
            plan.from[slot] = from;
            plan.to[slot] = to;
        }
        plan.start += first * to;
        from *= array->chunk[d];
        to *= array->dim[d];
    }
    return plan;
}

// Lines are often a few pixels: two overlapping words are quicker than a call.
static inline void copy_line(char *to, const char *from, size_t n)
{
    if (n >= 8 && n <= 16) {
        uint64_t head, tail;
        memcpy(&head, from, 8);
        memcpy(&tail, from + n - 8, 8);
        memcpy(to, &head, 8);
        memcpy(to + n - 8, &tail, 8);
    } else {
        memcpy(to, from, n);
    }
}

static void place_tile(const tile_plan *plan, const char *slab, char *row)
{
    for (size_t a = 0; a < plan->extent[0]; a++) {
        for (size_t b = 0; b < plan->extent[1]; b++) {
            const char *from = slab + a * plan->from[0] + b * plan->from[1];
            char *to = row + plan->start + a * plan->to[0] + b * plan->to[1];
            for (size_t c = 0; c < plan->extent[2]; c++) {
                copy_line(to, from, plan->line);
                from += plan->from[2];
                to += plan->to[2];
            }
        }
    }
}

// Rows that lie in one row of chunks: the part in every tile is one stretch of the file.
static psi_status read_tiles(psi_ctx *ctx, const data_array *array, size_t first, size_t n,
                             char *out, char *scratch, size_t scratch_bytes)
{
    const size_t slab = slab_bytes(array), within = first % array->chunk[0];
    size_t tiles = 1;
    for (size_t d = 1; d < array->rank; d++) tiles *= array->grid[d];
    const uint64_t *address = array->address + first / array->chunk[0] * tiles;
    if (chunks_hold_whole_rows(array)) {
        return data_pread(ctx, array->fd, address[0] + within * slab, out, n * slab, array->name);
    }
    const size_t at_once = scratch_bytes / slab;
    for (size_t t = 0; t < tiles; t++) {
        size_t tile[DATA_MAX_RANK] = {0}, rest = t;
        for (size_t d = array->rank - 1; d >= 1; d--) {
            tile[d] = rest % array->grid[d];
            rest /= array->grid[d];
        }
        const tile_plan plan = plan_tile(array, tile);
        for (size_t r = 0; r < n; r += at_once) {
            const size_t rows = base_min(at_once, n - r);
            const psi_status status = data_pread(ctx, array->fd, address[t] + (within + r) * slab,
                                                 scratch, rows * slab, array->name);
            if (status != PSI_OK) return status;
            for (size_t i = 0; i < rows; i++) {
                place_tile(&plan, scratch + i * slab, out + (r + i) * array->row_bytes);
            }
        }
    }
    return PSI_OK;
}

psi_status data_array_read(psi_ctx *ctx, const data_array *array, size_t first, size_t n, void *out,
                           void *scratch, size_t scratch_bytes)
{
    switch (array->layout) {
    case DATA_CONTIGUOUS:
        return data_pread(ctx, array->fd, array->offset + first * array->row_bytes, out,
                          n * array->row_bytes, array->name);
    case DATA_IN_MEMORY:
        memcpy(out, array->memory + first * array->row_bytes, n * array->row_bytes);
        return PSI_OK;
    case DATA_CHUNKED:
        for (char *next = out; n > 0;) {
            const size_t rows = base_min(n, array->chunk[0] - first % array->chunk[0]);
            const psi_status status =
                read_tiles(ctx, array, first, rows, next, scratch, scratch_bytes);
            if (status != PSI_OK) return status;
            next += rows * array->row_bytes;
            first += rows;
            n -= rows;
        }
        return PSI_OK;
    case DATA_THROUGH_LIBRARY: break;
    }
    return FAIL(ctx, PSI_EINTERNAL, "%s: not readable without its library", array->name);
}
