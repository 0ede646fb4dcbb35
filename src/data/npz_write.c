// Our .npz: the columns grow in files beside the target, because observations may be larger than
// memory and a zip entry must be written in one go; at the end libzip copies them into the archive.
#include "base/context.h"
#include "base/file.h"
#include "data/npy.h"
#include "data/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zip.h>

enum { COLUMNS = 8, HEADER_BYTES = 256, BUFFER_BYTES = 1 << 18 };

enum { OBSERVATIONS, ACTIONS, REWARDS, LENGTHS, TERMINATED, TRUNCATED, N_ACTIONS, LATENT };

static const char *const NAMES[COLUMNS] = {"observations",    "actions",      "rewards",
                                           "episode_lengths", "terminated",   "truncated",
                                           "n_actions",       "latent_states"};

typedef struct column {
    int fd; // −1: not there
    char *buffer;
    size_t used;
    uint64_t size; // bytes of data so far
    char header[HEADER_BYTES];
    size_t header_size;
    uint64_t position; // of libzip's reading
} column;

typedef struct npz_writer {
    base_output *output;
    char *folder; // of the columns
    column column[COLUMNS];
} npz_writer;

static void release(psi_writer *writer)
{
    npz_writer *self = writer->state;
    if (!self) return;
    for (int i = 0; i < COLUMNS; i++) {
        if (self->column[i].fd >= 0) close(self->column[i].fd);
        base_free(writer->ctx, self->column[i].buffer);
    }
    if (self->folder) base_remove(self->folder);
    base_free(writer->ctx, self->folder);
    base_output_discard(self->output);
    base_free(writer->ctx, self);
    writer->state = NULL;
}

static psi_status write_all(psi_writer *writer, int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        const ssize_t written = write(fd, bytes, size);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) {
            return FAIL(writer->ctx, PSI_EIO, "%s: cannot write: %s", writer->path,
                        strerror(errno));
        }
        bytes += written;
        size -= (size_t)written;
    }
    return PSI_OK;
}

static psi_status flush(psi_writer *writer, column *to)
{
    const psi_status status = write_all(writer, to->fd, to->buffer, to->used);
    to->used = 0;
    return status;
}

static psi_status put(psi_writer *writer, int which, const void *bytes, size_t size)
{
    column *to = &((npz_writer *)writer->state)->column[which];
    psi_status status = PSI_OK;
    if (size > BUFFER_BYTES - to->used) TRY(flush(writer, to));
    if (size > BUFFER_BYTES) {
        TRY(write_all(writer, to->fd, bytes, size));
    } else {
        memcpy(to->buffer + to->used, bytes, size);
        to->used += size;
    }
    to->size += size;
done:
    return status;
}

static psi_status add(psi_writer *writer, const psi_episode *episode)
{
    const size_t length = episode->length;
    const int64_t steps = (int64_t)length;
    const uint8_t terminated = episode->terminated, truncated = episode->truncated;
    psi_status status = PSI_OK;
    TRY(put(writer, OBSERVATIONS, episode->observations, (length + 1) * writer->row_bytes));
    TRY(put(writer, ACTIONS, episode->actions, length * sizeof *episode->actions));
    TRY(put(writer, REWARDS, episode->rewards, length * sizeof *episode->rewards));
    TRY(put(writer, LENGTHS, &steps, sizeof steps));
    TRY(put(writer, TERMINATED, &terminated, sizeof terminated));
    TRY(put(writer, TRUNCATED, &truncated, sizeof truncated));
    if (episode->latent_states) {
        TRY(put(writer, LATENT, episode->latent_states,
                (length + 1) * sizeof *episode->latent_states));
    }
done:
    return status;
}

// libzip reads a column as its header followed by its file.
static zip_int64_t column_source(void *user, void *data, zip_uint64_t length,
                                 zip_source_cmd_t command)
{
    column *from = user;
    switch (command) {
    case ZIP_SOURCE_OPEN: from->position = 0; return 0;
    case ZIP_SOURCE_CLOSE:
    case ZIP_SOURCE_FREE: return 0;
    case ZIP_SOURCE_READ: {
        if (from->position < from->header_size) {
            const size_t left = from->header_size - (size_t)from->position;
            const size_t n = length < left ? (size_t)length : left;
            memcpy(data, from->header + from->position, n);
            from->position += n;
            return (zip_int64_t)n;
        }
        const ssize_t got =
            pread(from->fd, data, (size_t)length, (off_t)(from->position - from->header_size));
        if (got > 0) from->position += (uint64_t)got;
        return got;
    }
    case ZIP_SOURCE_STAT: {
        zip_stat_t *stat = data;
        zip_stat_init(stat);
        stat->size = from->header_size + from->size;
        stat->valid |= ZIP_STAT_SIZE;
        return sizeof *stat;
    }
    case ZIP_SOURCE_ERROR: {
        zip_error_t error;
        zip_error_init_with_code(&error, ZIP_ER_READ);
        return zip_error_to_data(&error, data, length);
    }
    default: return -1;
    }
}

static const char *descr_of(psi_dtype dtype)
{
    switch (dtype) {
    case PSI_UINT8: return "|u1";
    case PSI_INT32: return "<i4";
    case PSI_INT64: return "<i8";
    case PSI_FLOAT32: return "<f4";
    case PSI_FLOAT64: return "<f8";
    }
    return "";
}

static void make_headers(psi_writer *writer)
{
    npz_writer *self = writer->state;
    const psi_shape *shape = &writer->spec.observation_shape;
    const size_t steps = writer->n_transitions, episodes = writer->n_episodes;
    const struct {
        const char *descr;
        size_t rank, rows;
    } form[COLUMNS] = {
        {descr_of(writer->spec.observation_dtype), shape->rank + 1, steps + episodes},
        {"<i4", 1, steps},
        {"<f8", 1, steps},
        {"<i8", 1, episodes},
        {"|b1", 1, episodes},
        {"|b1", 1, episodes},
        {"<i8", 0, 0},
        {"<i4", 1, steps + episodes},
    };
    for (int i = 0; i < COLUMNS; i++) {
        size_t dim[PSI_MAX_RANK + 1] = {form[i].rows};
        for (size_t d = 1; d < form[i].rank; d++) dim[d] = shape->dim[d - 1];
        self->column[i].header_size =
            data_npy_format(self->column[i].header, HEADER_BYTES, form[i].descr, form[i].rank, dim);
    }
}

static bool add_entry(zip_t *zip, column *from, const char *name)
{
    char entry[64];
    snprintf(entry, sizeof entry, "%s.npy", name);
    zip_source_t *source = zip_source_function(zip, column_source, from);
    if (!source) return false;
    const zip_int64_t index = zip_file_add(zip, entry, source, ZIP_FL_ENC_UTF_8);
    if (index < 0) {
        zip_source_free(source);
        return false;
    }
    enum { DAY_ONE = 1 << 5 | 1 }; // 1 January 1980: the same data give the same bytes
    return zip_set_file_compression(zip, (zip_uint64_t)index, ZIP_CM_STORE, 0) == 0 &&
           zip_file_set_dostime(zip, (zip_uint64_t)index, 0, DAY_ONE, 0) == 0;
}

static psi_status commit(psi_writer *writer)
{
    npz_writer *self = writer->state;
    psi_status status = PSI_OK;
    const int64_t actions = (int64_t)writer->spec.n_actions;
    TRY(put(writer, N_ACTIONS, &actions, sizeof actions));
    for (int i = 0; i < COLUMNS; i++) {
        if (self->column[i].fd >= 0) TRY(flush(writer, &self->column[i]));
    }
    make_headers(writer);
    int code;
    zip_t *zip = zip_open(base_output_path(self->output), ZIP_CREATE | ZIP_TRUNCATE, &code);
    bool good = zip != NULL;
    for (int i = 0; good && i < COLUMNS; i++) {
        if (self->column[i].fd >= 0) good = add_entry(zip, &self->column[i], NAMES[i]);
    }
    if (!good || zip_close(zip) != 0) {
        status = FAIL(writer->ctx, PSI_EIO, "%s: the archive cannot be written: %s", writer->path,
                      zip ? zip_strerror(zip) : "it cannot be created");
        if (zip) zip_discard(zip);
        goto done;
    }
    status = base_output_commit(self->output);
    self->output = NULL;
done:
    return status;
}

psi_status data_npz_writer(psi_writer *writer, bool replace)
{
    static const data_writer_ops ops = {add, commit, release};
    psi_ctx *ctx = writer->ctx;
    psi_status status = PSI_OK;
    char *path = NULL;
    npz_writer *self;
    TRY(base_alloc_zero(ctx, 1, sizeof *self, &self));
    for (int i = 0; i < COLUMNS; i++) self->column[i].fd = -1;
    writer->state = self;
    writer->ops = &ops;
    TRY(base_output_open(ctx, writer->path, BASE_FILE, replace, &self->output));
    const size_t size = strlen(base_output_path(self->output)) + sizeof "-columns";
    TRY(base_alloc(ctx, size, 1, &self->folder));
    snprintf(self->folder, size, "%s-columns", base_output_path(self->output));
    TRY(base_make_folders(ctx, self->folder));
    for (int i = 0; i < COLUMNS; i++) {
        column *to = &self->column[i];
        if (i == LATENT && !writer->spec.latent_states) continue;
        TRY(base_alloc(ctx, BUFFER_BYTES, 1, &to->buffer));
        TRY(base_join(ctx, self->folder, NAMES[i], &path));
        to->fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        if (to->fd < 0) {
            status = FAIL(ctx, PSI_EIO, "%s: cannot create: %s", path, strerror(errno));
            goto done;
        }
        base_free(ctx, path);
        path = NULL;
    }
done:
    base_free(ctx, path);
    return status;
}
