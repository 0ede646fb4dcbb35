// A batch is gathered in two stages. What only the file's library can read is fetched by the
// caller, because HDF5 and libzip are not made for several threads; then all threads read, decode
// and convert their share of the rows, straight from the file wherever its layout allows that.
#include "data/source.h"

#include "base/checked.h"
#include "base/context.h"
#include "base/threads.h"
#include "data/jpeg.h"
#include "data/observations.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

typedef struct segment {
    size_t first; // row of the source
    size_t array, row;
} segment;

struct data_source {
    data_archive *archive;
    data_array *array;
    size_t n_arrays, array_room;
    segment *segment;
    size_t n_segments, segment_room;
    size_t n_rows;
    psi_dtype dtype;
    psi_shape shape;
    size_t row_bytes; // in memory
    bool jpeg;
    bool staged;         // some array needs the first stage
    bool direct;         // no array needs scratch memory
    size_t file_row;     // the longest row in the file
    size_t tile_scratch; // the most that data_array_scratch asked for
};

psi_status data_source_new(psi_ctx *ctx, data_archive *archive, data_source **out)
{
    const psi_status status = base_alloc_zero(ctx, 1, sizeof **out, out);
    if (status != PSI_OK) {
        data_archive_close(archive);
        return status;
    }
    (*out)->archive = archive;
    (*out)->direct = true;
    return PSI_OK;
}

void data_source_free(psi_ctx *ctx, data_source *source)
{
    if (!source) return;
    for (size_t i = 0; i < source->n_arrays; i++) data_array_free(ctx, &source->array[i]);
    base_free(ctx, source->array);
    base_free(ctx, source->segment);
    data_archive_close(source->archive);
    base_free(ctx, source);
}

static psi_status make_room(psi_ctx *ctx, size_t used, size_t *room, size_t size, void *inout)
{
    if (used < *room) return PSI_OK;
    const size_t wanted = base_max(16, *room * 2);
    const psi_status status = base_resize(ctx, wanted, size, inout);
    if (status == PSI_OK) *room = wanted;
    return status;
}

static const char *shape_text(const psi_shape *shape, char text[64])
{
    size_t used = (size_t)snprintf(text, 64, "(");
    for (size_t d = 0; d < shape->rank && used < 60; d++) {
        used += (size_t)snprintf(text + used, 64 - used, d ? ", %zu" : "%zu", shape->dim[d]);
    }
    if (used < 63) snprintf(text + used, 64 - used, ")");
    return text;
}

// Frames of one length each, or bytes that begin like a JPEG file: what shape do they decode to?
static psi_status look_for_frames(psi_ctx *ctx, data_archive *archive, const data_array *array,
                                  bool *jpeg, psi_shape *shape)
{
    psi_status status = PSI_OK;
    data_frame frame = {0};
    data_jpeg_decoder *decoder = NULL;
    *jpeg = false;
    const bool bytes = array->element.kind == DATA_UNSIGNED && array->element.size == 1;
    if (data_array_rows(array) == 0) return PSI_OK;
    if (array->element.kind == DATA_FRAMES) {
        TRY(archive->ops->frames(ctx, archive, array, 0, 1, &frame));
    } else if (bytes && array->rank == 2 && array->dim[1] >= 4) {
        frame.size = array->row_bytes;
        TRY(base_alloc(ctx, 1, frame.size, &frame.bytes));
        TRY(data_archive_read(ctx, archive, array, 0, 1, frame.bytes));
        if (!data_jpeg_recognised(frame.bytes, frame.size)) goto done;
    } else {
        goto done;
    }
    TRY(data_jpeg_decoder_new(ctx, &decoder));
    status = data_jpeg_shape(ctx, decoder, archive->path, frame.bytes, frame.size, shape);
    *jpeg = status == PSI_OK;
    // A plain vector may happen to begin with these bytes; a string of bytes must be an image.
    if (status == PSI_EFORMAT && array->element.kind != DATA_FRAMES) status = PSI_OK;
done:
    data_jpeg_decoder_free(ctx, decoder);
    base_free(ctx, frame.bytes);
    return status;
}

static psi_status check_like_first(psi_ctx *ctx, data_source *source, const char *name,
                                   psi_dtype dtype, const psi_shape *shape, bool jpeg)
{
    if (source->n_arrays == 0) {
        source->dtype = dtype;
        source->shape = *shape;
        source->jpeg = jpeg;
        source->row_bytes = psi_dtype_size(dtype) * psi_shape_size(shape);
        return PSI_OK;
    }
    if (dtype == source->dtype && jpeg == source->jpeg && shape->rank == source->shape.rank &&
        memcmp(shape->dim, source->shape.dim, shape->rank * sizeof shape->dim[0]) == 0) {
        return PSI_OK;
    }
    char here[64], there[64];
    return FAIL(ctx, PSI_EDATA, "%s: %s is %s of shape %s, but the first are %s of shape %s",
                source->archive->path, name, psi_dtype_name(dtype), shape_text(shape, here),
                psi_dtype_name(source->dtype), shape_text(&source->shape, there));
}

psi_status data_source_add_array(psi_ctx *ctx, data_source *source, const char *name, size_t *index,
                                 size_t *rows)
{
    data_archive *archive = source->archive;
    psi_status status = PSI_OK;
    data_array array = {0};
    TRY(make_room(ctx, source->n_arrays, &source->array_room, sizeof array, &source->array));
    TRY(data_archive_describe(archive, name, &array));
    psi_dtype dtype;
    if (!data_element_dtype(&array.element, &dtype)) {
        status =
            FAIL(ctx, PSI_EUNSUPPORTED, "%s: %s holds %s of %zu bytes, not numbers psifold knows",
                 archive->path, name, data_kind_name(array.element.kind), array.element.size);
        goto done;
    }
    if (array.rank == 0) {
        status = FAIL(ctx, PSI_EDATA, "%s: %s is a single number, not a row per step",
                      archive->path, name);
        goto done;
    }
    psi_shape shape = {.rank = array.rank - 1};
    for (size_t d = 1; d < array.rank; d++) {
        shape.dim[d - 1] = array.dim[d];
        if (array.dim[d] == 0) {
            status = FAIL(ctx, PSI_EDATA, "%s: %s has a dimension of size 0", archive->path, name);
            goto done;
        }
    }
    bool jpeg = source->jpeg;
    // Only the first array is asked what it is: the others must be like it.
    if (source->n_arrays == 0) {
        TRY(look_for_frames(ctx, archive, &array, &jpeg, &shape));
    } else if (jpeg &&
               (array.element.kind == DATA_FRAMES || (array.rank == 2 && dtype == PSI_UINT8))) {
        shape = source->shape; // every frame is checked when it is decoded
    } else {
        jpeg = false;
    }
    TRY(check_like_first(ctx, source, name, dtype, &shape, jpeg));
    size_t bytes;
    if (!base_mul(source->row_bytes, data_array_rows(&array), &bytes)) bytes = SIZE_MAX;
    TRY(data_check_extent(ctx, archive, name, bytes));
    source->staged |= array.layout == DATA_THROUGH_LIBRARY;
    source->direct &=
        !jpeg && data_element_is_native(&array.element) && data_array_scratch(&array) == 0;
    source->file_row = base_max(source->file_row, array.row_bytes);
    source->tile_scratch = base_max(source->tile_scratch, data_array_scratch(&array));
    *rows = data_array_rows(&array);
    *index = source->n_arrays;
    source->array[source->n_arrays++] = array;
    array = (data_array){0};
done:
    data_array_free(ctx, &array);
    return status;
}

psi_status data_source_add_rows(psi_ctx *ctx, data_source *source, size_t index, size_t first,
                                size_t n)
{
    if (n == 0) return PSI_OK;
    if (source->n_segments > 0) {
        const segment *last = &source->segment[source->n_segments - 1];
        if (last->array == index && last->row + (source->n_rows - last->first) == first) {
            source->n_rows += n;
            return PSI_OK;
        }
    }
    const psi_status status = make_room(ctx, source->n_segments, &source->segment_room,
                                        sizeof(segment), &source->segment);
    if (status != PSI_OK) return status;
    source->segment[source->n_segments++] = (segment){source->n_rows, index, first};
    source->n_rows += n;
    return PSI_OK;
}

// Rows that follow one another in one array.
typedef struct stretch {
    const data_array *array;
    size_t row, n;
} stretch;

static stretch stretch_at(const data_source *source, const uint64_t *rows, size_t n)
{
    size_t low = 0, high = source->n_segments; // the last segment that starts at or before the row
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (source->segment[middle].first <= rows[0]) {
            low = middle;
        } else {
            high = middle;
        }
    }
    const segment *at = &source->segment[low];
    const size_t end = low + 1 < source->n_segments ? at[1].first : source->n_rows;
    size_t length = 1;
    while (length < n && rows[length] == rows[0] + length && rows[length] < end) length++;
    return (stretch){&source->array[at->array], at->row + (rows[0] - at->first), length};
}

enum { SCRATCH_BYTES = 1 << 18, STAGED_BYTES = 1 << 24 };

typedef struct gather_job {
    psi_ctx *ctx;
    const data_source *source;
    const uint64_t *rows;
    size_t n;
    char *out;
    char *staged;       // (n) rows of the file, where the library had to read them
    data_frame *frames; // (n) likewise
    char *scratch;      // per thread: bytes of rows, then room for tiles
    size_t raw_bytes, tile_bytes;
    data_jpeg_decoder **decoder; // per thread
    atomic_int status;
} gather_job;

static psi_status decode_rows(gather_job *job, size_t i, const stretch *rows, const char *raw,
                              int thread)
{
    const data_source *source = job->source;
    const data_array *array = rows->array;
    char *out = job->out + i * source->row_bytes;
    if (source->jpeg) {
        for (size_t k = 0; k < rows->n; k++) {
            const data_frame *frame = job->frames ? &job->frames[i + k] : NULL;
            const void *bytes =
                frame && frame->bytes ? (const char *)frame->bytes : raw + k * array->row_bytes;
            const size_t size = frame && frame->bytes ? frame->size : array->row_bytes;
            const psi_status status =
                data_jpeg_decode(job->ctx, job->decoder[thread], source->archive->path, bytes, size,
                                 &source->shape, out + k * source->row_bytes);
            if (status != PSI_OK) return status;
        }
        return PSI_OK;
    }
    const size_t elements = psi_shape_size(&source->shape) * rows->n;
    if (data_convert(&array->element, raw, elements, out)) return PSI_OK;
    return FAIL(job->ctx, PSI_EDATA, "%s: %s: a number in row %zu … %zu does not fit 64 bits",
                source->archive->path, array->name, rows->row, rows->row + rows->n - 1);
}

static psi_status gather_part(gather_job *job, size_t begin, size_t end, int thread)
{
    const data_source *source = job->source;
    char *raw = NULL, *tile = NULL;
    if (job->scratch) {
        raw = job->scratch + (size_t)thread * (job->raw_bytes + job->tile_bytes);
        tile = raw + job->raw_bytes;
    }
    for (size_t i = begin; i < end;) {
        stretch rows = stretch_at(source, job->rows + i, end - i);
        const data_array *array = rows.array;
        char *out = job->out + i * source->row_bytes;
        const bool as_is = !source->jpeg && data_element_is_native(&array->element);
        psi_status status = PSI_OK;
        if (array->layout == DATA_THROUGH_LIBRARY) {
            if (!as_is) {
                const char *staged = job->staged ? job->staged + i * source->file_row : NULL;
                rows.n = 1; // staged rows keep the distance of the longest
                status = decode_rows(job, i, &rows, staged, thread);
            }
        } else if (as_is) {
            status = data_array_read(job->ctx, array, rows.row, rows.n, out, tile, job->tile_bytes);
        } else {
            rows.n = base_min(rows.n, job->raw_bytes / array->row_bytes);
            status = data_array_read(job->ctx, array, rows.row, rows.n, raw, tile, job->tile_bytes);
            if (status == PSI_OK) status = decode_rows(job, i, &rows, raw, thread);
        }
        if (status != PSI_OK) return status;
        i += rows.n;
    }
    return PSI_OK;
}

static void gather_task(void *argument, int thread, int threads)
{
    gather_job *job = argument;
    size_t begin, end;
    base_slice(job->n, thread, threads, &begin, &end);
    const psi_status status = gather_part(job, begin, end, thread);
    if (status != PSI_OK) atomic_store(&job->status, (int)status);
}

// First stage: what the library must read.
static psi_status stage_rows(gather_job *job)
{
    const data_source *source = job->source;
    data_archive *archive = source->archive;
    for (size_t i = 0; i < job->n;) {
        const stretch rows = stretch_at(source, job->rows + i, job->n - i);
        const data_array *array = rows.array;
        psi_status status = PSI_OK;
        if (array->layout != DATA_THROUGH_LIBRARY) {
            // the second stage reads these itself
        } else if (array->element.kind == DATA_FRAMES) {
            status =
                archive->ops->frames(job->ctx, archive, array, rows.row, rows.n, job->frames + i);
        } else if (!source->jpeg && data_element_is_native(&array->element)) {
            status = archive->ops->read(job->ctx, archive, array, rows.row, rows.n,
                                        job->out + i * source->row_bytes);
        } else {
            for (size_t k = 0; k < rows.n && status == PSI_OK; k++) {
                status = archive->ops->read(job->ctx, archive, array, rows.row + k, 1,
                                            job->staged + (i + k) * source->file_row);
            }
        }
        if (status != PSI_OK) return status;
        i += rows.n;
    }
    return PSI_OK;
}

static void drop_frames(gather_job *job)
{
    for (size_t i = 0; job->frames && i < job->n; i++) {
        base_free(job->ctx, job->frames[i].bytes);
        job->frames[i] = (data_frame){0};
    }
}

psi_status data_source_gather(psi_ctx *ctx, const data_source *source, const uint64_t *rows,
                              size_t n, void *out)
{
    psi_status status = PSI_OK;
    gather_job job = {.ctx = ctx, .source = source};
    base_team *team = base_ctx_team(ctx);
    const size_t threads = (size_t)base_team_size(team);
    // Staged rows are taken piece by piece: their memory does not grow with the batch.
    const size_t longest = base_max(base_max(source->file_row, source->row_bytes), 1);
    const size_t piece = source->staged ? base_min(n, base_max(1, STAGED_BYTES / longest)) : n;
    if (!source->direct) {
        job.raw_bytes = base_max(SCRATCH_BYTES, source->file_row);
        job.tile_bytes = source->tile_scratch ? base_max(SCRATCH_BYTES, source->tile_scratch) : 0;
        TRY(base_alloc(ctx, threads, job.raw_bytes + job.tile_bytes, &job.scratch));
        if (source->staged) {
            TRY(base_alloc(ctx, piece, source->file_row, &job.staged));
            TRY(base_alloc_zero(ctx, piece, sizeof *job.frames, &job.frames));
        }
    }
    if (source->jpeg) {
        TRY(base_alloc_zero(ctx, threads, sizeof(void *), &job.decoder));
        for (size_t t = 0; t < threads; t++) TRY(data_jpeg_decoder_new(ctx, &job.decoder[t]));
    }
    for (size_t i = 0; i < n; i += piece) {
        TRY(base_cancelled(ctx));
        job.rows = rows + i;
        job.n = base_min(piece, n - i);
        job.out = (char *)out + i * source->row_bytes;
        if (source->staged) TRY(stage_rows(&job));
        base_team_run(team, gather_task, &job);
        drop_frames(&job);
        TRY((psi_status)atomic_load(&job.status));
    }
done:
    drop_frames(&job);
    for (size_t t = 0; job.decoder && t < threads; t++) data_jpeg_decoder_free(ctx, job.decoder[t]);
    base_free(ctx, job.decoder);
    base_free(ctx, job.frames);
    base_free(ctx, job.staged);
    base_free(ctx, job.scratch);
    return status;
}

// Reads everything, a batch at a time so that it can be cancelled.
static psi_status load_all(psi_ctx *ctx, const data_source *source, char *to)
{
    enum { BATCH = 4096 };
    psi_status status = PSI_OK;
    uint64_t *rows;
    TRY(base_alloc(ctx, BATCH, sizeof *rows, &rows));
    for (size_t first = 0; first < source->n_rows; first += BATCH) {
        const size_t n = base_min(BATCH, source->n_rows - first);
        for (size_t i = 0; i < n; i++) rows[i] = first + i;
        TRY(data_source_gather(ctx, source, rows, n, to + first * source->row_bytes));
    }
done:
    base_free(ctx, rows);
    return status;
}

// The one array that the rows are, unpacked in memory already; or NULL.
static data_array *whole_array(data_source *source)
{
    data_array *array = source->array;
    const bool whole = source->n_segments == 1 && source->segment[0].row == 0 && !source->jpeg &&
                       source->n_rows == data_array_rows(&array[source->segment[0].array]);
    if (!whole) return NULL;
    array += source->segment[0].array;
    return array->layout == DATA_IN_MEMORY && data_element_is_native(&array->element) ? array
                                                                                      : NULL;
}

psi_status data_source_finish(psi_ctx *ctx, data_source *source, psi_observations **out)
{
    psi_status status = PSI_OK;
    psi_observations *observations = NULL;
    *out = NULL;
    TRY(data_observations_new(ctx, source->dtype, &source->shape, source->n_rows, &observations));
    const size_t bytes = source->n_rows * source->row_bytes;
    data_array *whole = whole_array(source);
    if (whole) {
        observations->data = observations->owned = whole->memory;
        whole->memory = NULL;
    } else if (bytes <= source->archive->memory_limit) {
        TRY(base_alloc(ctx, bytes, 1, &observations->owned));
        TRY(load_all(ctx, source, observations->owned));
        observations->data = observations->owned;
    } else {
        observations->source = source;
        source = NULL;
    }
    *out = observations;
    observations = NULL;
done:
    psi_observations_free(ctx, observations);
    data_source_free(ctx, source);
    return status;
}
