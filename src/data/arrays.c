// Plain named arrays as numpy's files, for what a run leaves behind beside its model. They are read
// through the same code as data sets, and as little is taken on trust.
#include "base/checked.h"
#include "base/context.h"
#include "base/file.h"
#include "data/archive.h"
#include "data/npz_pack.h"

#include <psifold/data.h>

#include <math.h>
#include <string.h>

static bool ends_with(const char *path, const char *ending)
{
    const size_t length = strlen(path), n = strlen(ending);
    return length > n && strcmp(path + length - n, ending) == 0;
}

static psi_status check_name(psi_ctx *ctx, const char *path, const psi_array *arrays, size_t i)
{
    const char *name = arrays[i].name;
    if (!name || name[0] == '\0' || strlen(name) > DATA_NPZ_NAME) {
        return FAIL(ctx, PSI_EUSAGE, "%s: array %zu needs a name of 1 to %d bytes", path, i,
                    DATA_NPZ_NAME);
    }
    for (size_t k = 0; k < i; k++) {
        if (strcmp(arrays[k].name, name) == 0) {
            return FAIL(ctx, PSI_EUSAGE, "%s: two arrays are named %s", path, name);
        }
    }
    return PSI_OK;
}

static psi_status prepare(psi_ctx *ctx, const char *path, const psi_array *array,
                          data_npz_entry *out)
{
    const psi_shape *shape = &array->shape;
    size_t size = psi_dtype_size(array->dtype);
    bool good = size > 0 && shape->rank <= PSI_MAX_RANK;
    for (size_t d = 0; good && d < shape->rank; d++) good = base_mul(size, shape->dim[d], &size);
    if (!good || (size > 0 && !array->data)) {
        return FAIL(ctx, PSI_EUSAGE, "%s: %s has no type, shape or data that can be written", path,
                    array->name ? array->name : "the array");
    }
    *out = (data_npz_entry){.name = array->name, .bytes = array->data, .fd = -1, .size = size};
    out->header_size = data_npy_format(out->header, sizeof out->header,
                                       data_npy_descr(array->dtype), shape->rank, shape->dim);
    if (out->header_size == 0) {
        return FAIL(ctx, PSI_EINTERNAL, "%s: the header of an array is too long", path);
    }
    return PSI_OK;
}

psi_status psi_arrays_save(psi_ctx *ctx, const char *path, const psi_array *arrays, size_t n)
{
    psi_status status = PSI_OK;
    data_npz_entry *entries = NULL;
    base_output *output = NULL;
    if (!path) return FAIL(ctx, PSI_EUSAGE, "the path of an array file is NULL");
    const bool npy = ends_with(path, ".npy");
    if (!npy && !ends_with(path, ".npz")) {
        return FAIL(ctx, PSI_EUSAGE, "%s: the name of an array file ends in .npy or .npz", path);
    }
    if (npy ? n != 1 : n == 0) {
        return FAIL(ctx, PSI_EUSAGE, "%s: %zu arrays cannot be written to an %s", path, n,
                    npy ? ".npy, which holds one" : ".npz");
    }
    TRY(base_alloc(ctx, n, sizeof *entries, &entries));
    for (size_t i = 0; i < n; i++) {
        if (!npy) TRY(check_name(ctx, path, arrays, i));
        TRY(prepare(ctx, path, &arrays[i], &entries[i]));
    }
    TRY(base_output_open(ctx, path, BASE_FILE, true, &output));
    if (npy) {
        TRY(base_output_write(output, entries[0].header, entries[0].header_size));
        TRY(base_output_write(output, entries[0].bytes, entries[0].size));
    } else {
        TRY(data_npz_pack(ctx, path, base_output_path(output), entries, n));
    }
    status = base_output_commit(output);
    output = NULL;
done:
    base_output_discard(output);
    base_free(ctx, entries);
    return status;
}

static const char *name_of(const data_array *array)
{
    return array->name ? array->name : "the array";
}

// *header is the length of the header of an .npy file, or 0 if it does not begin like one.
static psi_status read_npy_header(psi_ctx *ctx, const data_archive *file, data_array *array,
                                  bool *fortran, size_t *header)
{
    psi_status status = PSI_OK;
    char *text = NULL;
    char start[DATA_NPY_START];
    *header = 0;
    if (file->file_size < sizeof start) goto done;
    TRY(data_pread(ctx, file->fd, 0, start, sizeof start, file->path));
    if (memcmp(start, "\x93NUMPY", 6) != 0) goto done;
    *header = data_npy_header_size(start, sizeof start);
    bool good = *header >= sizeof start && *header <= file->file_size;
    if (good) {
        TRY(base_alloc(ctx, *header, 1, &text));
        TRY(data_pread(ctx, file->fd, 0, text, *header, file->path));
        good = data_npy_parse(text, *header, array, fortran);
    }
    if (!good) {
        status = FAIL(ctx, PSI_EFORMAT, "%s: not an array of numbers psifold can read", file->path);
    }
done:
    base_free(ctx, text);
    return status;
}

static psi_status describe_npy(psi_ctx *ctx, const data_archive *file, size_t header, bool fortran,
                               data_array *array)
{
    psi_status status = PSI_OK;
    const uint64_t there = file->file_size - header;
    size_t size;
    if (!data_npy_extent(array, &size) || size != there) {
        return FAIL(ctx, PSI_EFORMAT, "%s: %llu bytes follow the header, which announces %s",
                    file->path, (unsigned long long)there,
                    data_npy_extent(array, &size) && size < there ? "fewer" : "more");
    }
    array->layout = DATA_CONTIGUOUS;
    array->fd = file->fd;
    array->offset = header;
    if (fortran && array->rank > 1) {
        TRY(base_alloc(ctx, size, 1, &array->memory));
        TRY(data_pread(ctx, file->fd, header, array->memory, size, file->path));
        array->layout = DATA_IN_MEMORY;
        TRY(data_npy_turn(ctx, array, size));
    }
done:
    return status;
}

// Element i as the type that is wanted; false if it would become another number. Floating-point
// numbers may be rounded to float32, but not become infinite.
static bool convert_one(const data_element *element, const char *from, psi_dtype wanted, void *to,
                        size_t i)
{
    const bool real = element->kind == DATA_FLOAT;
    int64_t whole = 0;
    if (!real || (wanted != PSI_FLOAT32 && wanted != PSI_FLOAT64)) {
        if (data_to_integer(element, from, 1, &whole) != 1) return false;
    }
    double value = (double)whole;
    if (real) data_to_double(element, from, 1, &value);
    const bool exact = real || (value < 0x1p63 && (int64_t)value == whole);
    switch (wanted) {
    case PSI_UINT8: ((uint8_t *)to)[i] = (uint8_t)whole; return whole >= 0 && whole <= UINT8_MAX;
    case PSI_INT32:
        ((int32_t *)to)[i] = (int32_t)whole;
        return whole >= INT32_MIN && whole <= INT32_MAX;
    case PSI_INT64: ((int64_t *)to)[i] = whole; return true;
    case PSI_FLOAT64: ((double *)to)[i] = value; return exact;
    case PSI_FLOAT32: {
        const float rounded = (float)value;
        ((float *)to)[i] = rounded;
        return real ? isinf(value) || !isinf(rounded) : exact && (double)rounded == value;
    }
    }
    return false;
}

static psi_status convert(psi_ctx *ctx, const char *path, const data_array *array, const char *from,
                          size_t n, psi_dtype wanted, void *to)
{
    for (size_t i = 0; i < n; i++) {
        const char *at = from + i * array->element.size;
        if (convert_one(&array->element, at, wanted, to, i)) continue;
        double value;
        data_to_double(&array->element, at, 1, &value);
        return FAIL(ctx, PSI_EDATA, "%s: %s: %.17g, element %zu, cannot be had as %s", path,
                    name_of(array), value, i, psi_dtype_name(wanted));
    }
    return PSI_OK;
}

static psi_status check_kind(psi_ctx *ctx, const char *path, const data_array *array)
{
    psi_dtype found;
    if (array->element.kind == DATA_FRAMES || !data_element_dtype(&array->element, &found)) {
        return FAIL(ctx, PSI_EDATA, "%s: %s holds %s of %zu bytes, not numbers psifold knows", path,
                    name_of(array), data_kind_name(array->element.kind), array->element.size);
    }
    if (array->rank > PSI_MAX_RANK) {
        return FAIL(ctx, PSI_EDATA, "%s: %s has %zu dimensions, more than %d", path, name_of(array),
                    array->rank, PSI_MAX_RANK);
    }
    return PSI_OK;
}

// Elements that are already what is wanted go to the caller without a second copy.
static psi_status fetch(psi_ctx *ctx, data_archive *archive, data_array *array, psi_dtype wanted,
                        void **out)
{
    psi_status status = PSI_OK;
    char *raw = NULL;
    void *made = NULL;
    psi_dtype found;
    TRY(check_kind(ctx, archive->path, array));
    const size_t rows = data_array_rows(array), n = rows * array->row_bytes / array->element.size;
    if (array->layout == DATA_IN_MEMORY) {
        raw = array->memory;
        array->memory = NULL;
    } else {
        TRY(base_alloc(ctx, rows, array->row_bytes, &raw));
        TRY(data_archive_read(ctx, archive, array, 0, rows, raw));
    }
    if (data_element_is_native(&array->element) && data_element_dtype(&array->element, &found) &&
        found == wanted) {
        made = raw;
        raw = NULL;
    } else {
        TRY(base_alloc(ctx, n, psi_dtype_size(wanted), &made));
        TRY(convert(ctx, archive->path, array, raw, n, wanted, made));
    }
    *out = made;
    made = NULL;
done:
    base_free(ctx, raw);
    base_free(ctx, made);
    return status;
}

psi_status psi_array_load(psi_ctx *ctx, const char *path, const char *name, psi_dtype wanted,
                          psi_shape *shape, void **data)
{
    psi_status status = PSI_OK;
    data_archive file = {.ctx = ctx, .fd = -1}, *npz = NULL;
    data_array array = {0};
    bool fortran = false;
    size_t header;
    *data = NULL;
    if (psi_dtype_size(wanted) == 0) {
        return FAIL(ctx, PSI_EUSAGE, "%s: no type that an array can have is wanted", path);
    }
    TRY(data_archive_start(&file, ctx, path, SIZE_MAX));
    if (file.file_size == 0) { // which libzip takes for an archive without entries
        status = FAIL(ctx, PSI_EFORMAT, "%s is empty", path);
        goto done;
    }
    TRY(read_npy_header(ctx, &file, &array, &fortran, &header));
    if (header > 0 && name) {
        status = FAIL(ctx, PSI_EFORMAT, "%s is a single array without a name, not an .npz with %s",
                      path, name);
        goto done;
    }
    if (header > 0) {
        TRY(describe_npy(ctx, &file, header, fortran, &array));
    } else {
        TRY(data_npz_open(ctx, path, SIZE_MAX, &npz));
        if (!name) {
            status = FAIL(ctx, PSI_EFORMAT, "%s is an .npz, not a single array", path);
            goto done;
        }
        TRY(data_archive_describe(npz, name, &array));
    }
    TRY(fetch(ctx, npz ? npz : &file, &array, wanted, data));
    *shape = (psi_shape){.rank = array.rank};
    for (size_t d = 0; d < array.rank; d++) shape->dim[d] = array.dim[d];
done:
    data_array_free(ctx, &array);
    data_archive_close(npz);
    data_archive_end(&file);
    return status;
}

void psi_array_free(psi_ctx *ctx, void *data)
{
    base_free(ctx, data);
}
