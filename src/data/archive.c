// What archives of both kinds share: opening the file, and reading whole columns of numbers.
#include "data/archive.h"

#include "base/checked.h"
#include "base/context.h"
#include "base/file.h"

#include <unistd.h>

psi_status data_archive_start(data_archive *archive, psi_ctx *ctx, const char *path,
                              size_t memory_limit)
{
    archive->ctx = ctx;
    archive->memory_limit = memory_limit;
    archive->fd = -1;
    const psi_status status = base_copy_text(ctx, path, &archive->path);
    if (status != PSI_OK) return status;
    return base_open_file(ctx, path, &archive->fd, &archive->file_size);
}

void data_archive_end(data_archive *archive)
{
    if (archive->fd >= 0) close(archive->fd);
    base_free(archive->ctx, archive->path);
}

void data_archive_close(data_archive *archive)
{
    if (archive) archive->ops->close(archive);
}

bool data_archive_has(data_archive *archive, const char *name)
{
    return archive->ops->has(archive, name);
}

psi_status data_archive_describe(data_archive *archive, const char *name, data_array *out)
{
    *out = (data_array){0};
    const psi_status status = archive->ops->describe(archive, name, out);
    if (status != PSI_OK) data_array_free(archive->ctx, out);
    return status;
}

psi_status data_check_extent(psi_ctx *ctx, const data_archive *archive, const char *name,
                             size_t bytes)
{
    enum { BEST_RATIO = 1100 }; // deflate never packs tighter than 1032 : 1
    if (bytes / BEST_RATIO <= archive->file_size) return PSI_OK;
    return FAIL(ctx, PSI_EFORMAT, "%s: %s claims %zu bytes, which a file of %llu bytes cannot hold",
                archive->path, name, bytes, (unsigned long long)archive->file_size);
}

psi_status data_archive_read(psi_ctx *ctx, data_archive *archive, const data_array *array,
                             size_t first, size_t n, void *out)
{
    if (n == 0) return PSI_OK;
    if (array->layout == DATA_THROUGH_LIBRARY) {
        return archive->ops->read(ctx, archive, array, first, n, out);
    }
    const size_t scratch_bytes = data_array_scratch(array);
    void *scratch;
    psi_status status = base_alloc(ctx, scratch_bytes, 1, &scratch);
    if (status == PSI_OK) {
        status = data_array_read(ctx, array, first, n, out, scratch, scratch_bytes);
    }
    base_free(ctx, scratch);
    return status;
}

typedef struct raw_column {
    data_element element;
    size_t n;
    char *bytes;
} raw_column;

static psi_status read_column(data_archive *archive, const char *name, raw_column *out)
{
    psi_ctx *ctx = archive->ctx;
    psi_status status = PSI_OK;
    data_array array;
    *out = (raw_column){0};
    TRY(data_archive_describe(archive, name, &array));
    psi_dtype dtype;
    if (array.element.kind == DATA_FRAMES || !data_element_dtype(&array.element, &dtype)) {
        status = FAIL(ctx, PSI_EDATA, "%s: %s holds %s of %zu bytes, not numbers", archive->path,
                      name, data_kind_name(array.element.kind), array.element.size);
        goto done;
    }
    if (array.rank > 2 || (array.rank == 2 && array.dim[1] != 1)) {
        status = FAIL(ctx, PSI_EDATA, "%s: %s has %zu columns, one number per step is expected",
                      archive->path, name, array.dim[array.rank - 1]);
        goto done;
    }
    out->element = array.element;
    out->n = data_array_rows(&array);
    TRY(base_alloc(ctx, out->n, array.row_bytes, &out->bytes));
    TRY(data_archive_read(ctx, archive, &array, 0, out->n, out->bytes));
done:
    data_array_free(ctx, &array);
    if (status != PSI_OK) base_free(ctx, out->bytes);
    return status;
}

psi_status data_read_reals(data_archive *archive, const char *name, size_t *n, double **out)
{
    raw_column column;
    *out = NULL;
    psi_status status = read_column(archive, name, &column);
    if (status != PSI_OK) return status;
    status = base_alloc(archive->ctx, column.n, sizeof **out, out);
    if (status == PSI_OK) data_to_double(&column.element, column.bytes, column.n, *out);
    *n = column.n;
    base_free(archive->ctx, column.bytes);
    return status;
}

psi_status data_read_integers(data_archive *archive, const char *name, size_t *n, int64_t **out)
{
    psi_ctx *ctx = archive->ctx;
    raw_column column;
    *out = NULL;
    psi_status status = read_column(archive, name, &column);
    if (status != PSI_OK) return status;
    TRY(base_alloc(ctx, column.n, sizeof **out, out));
    *n = column.n;
    const size_t bad = data_to_integer(&column.element, column.bytes, column.n, *out);
    if (bad < column.n) {
        double value;
        data_to_double(&column.element, column.bytes + bad * column.element.size, 1, &value);
        status = FAIL(ctx, PSI_EDATA, "%s: %s: %.17g at step %zu is not a whole number",
                      archive->path, name, value, bad);
    }
done:
    base_free(ctx, column.bytes);
    if (status != PSI_OK) {
        base_free(ctx, *out);
        *out = NULL;
    }
    return status;
}

psi_status data_read_flags(data_archive *archive, const char *name, size_t *n, uint8_t **out)
{
    psi_ctx *ctx = archive->ctx;
    double *values;
    *out = NULL;
    psi_status status = data_read_reals(archive, name, n, &values);
    if (status != PSI_OK) return status;
    TRY(base_alloc(ctx, *n, 1, out));
    for (size_t i = 0; i < *n; i++) {
        if (values[i] != 0.0 && values[i] != 1.0) {
            status = FAIL(ctx, PSI_EDATA, "%s: %s: %.17g at step %zu is neither 0 nor 1",
                          archive->path, name, values[i], i);
            goto done;
        }
        (*out)[i] = values[i] != 0.0;
    }
done:
    base_free(ctx, values);
    if (status != PSI_OK) {
        base_free(ctx, *out);
        *out = NULL;
    }
    return status;
}
