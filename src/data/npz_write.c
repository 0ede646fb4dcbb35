// Our .npz: the columns grow in files beside the target, because observations may be larger than
// memory and a zip entry must be written in one go; at the end libzip copies them into the archive.
#include "base/context.h"
#include "base/file.h"
#include "data/npz_pack.h"
#include "data/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { COLUMNS = 8, BUFFER_BYTES = 1 << 18 };

enum { OBSERVATIONS, ACTIONS, REWARDS, LENGTHS, TERMINATED, TRUNCATED, N_ACTIONS, LATENT };

static const char *const NAMES[COLUMNS] = {"observations",    "actions",      "rewards",
                                           "episode_lengths", "terminated",   "truncated",
                                           "n_actions",       "latent_states"};

typedef struct buffer {
    char *bytes;
    size_t used;
} buffer;

typedef struct npz_writer {
    data_npz_entry column[COLUMNS]; // fd −1: not there
    buffer buffer[COLUMNS];
} npz_writer;

static void release(psi_writer *writer)
{
    npz_writer *self = writer->state;
    for (int i = 0; i < COLUMNS; i++) {
        if (self->column[i].fd >= 0) close(self->column[i].fd);
        base_free(writer->ctx, self->buffer[i].bytes);
    }
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

static psi_status flush(psi_writer *writer, int which)
{
    npz_writer *self = writer->state;
    buffer *waiting = &self->buffer[which];
    const psi_status status =
        write_all(writer, self->column[which].fd, waiting->bytes, waiting->used);
    waiting->used = 0;
    return status;
}

static psi_status put(psi_writer *writer, int which, const void *bytes, size_t size)
{
    npz_writer *self = writer->state;
    buffer *waiting = &self->buffer[which];
    psi_status status = PSI_OK;
    if (size > BUFFER_BYTES - waiting->used) TRY(flush(writer, which));
    if (size > BUFFER_BYTES) {
        TRY(write_all(writer, self->column[which].fd, bytes, size));
    } else {
        memcpy(waiting->bytes + waiting->used, bytes, size);
        waiting->used += size;
    }
    self->column[which].size += size;
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
    TRY(put(writer, TERMINATED, &terminated, 1));
    TRY(put(writer, TRUNCATED, &truncated, 1));
    if (episode->latent_states) {
        TRY(put(writer, LATENT, episode->latent_states,
                (length + 1) * sizeof *episode->latent_states));
    }
done:
    return status;
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
        {data_npy_descr(writer->spec.observation_dtype), shape->rank + 1, steps + episodes},
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
        data_npz_entry *column = &self->column[i];
        column->header_size = data_npy_format(column->header, sizeof column->header, form[i].descr,
                                              form[i].rank, dim);
    }
}

static psi_status finish(psi_writer *writer)
{
    npz_writer *self = writer->state;
    psi_status status = PSI_OK;
    const int64_t actions = (int64_t)writer->spec.n_actions;
    TRY(put(writer, N_ACTIONS, &actions, sizeof actions));
    for (int i = 0; i < COLUMNS; i++) {
        if (self->column[i].fd >= 0) TRY(flush(writer, i));
    }
    make_headers(writer);
    TRY(data_npz_pack(writer->ctx, writer->path, base_output_path(writer->output), self->column,
                      COLUMNS));
done:
    return status;
}

// The columns' folder is beside the output, and gone with it.
static psi_status open_columns(psi_writer *writer)
{
    psi_ctx *ctx = writer->ctx;
    npz_writer *self = writer->state;
    psi_status status = PSI_OK;
    char *path = NULL;
    for (int i = 0; i < COLUMNS; i++) self->column[i].fd = -1;
    TRY(base_output_beside(writer->output, "columns", &writer->folder));
    TRY(base_make_folders(ctx, writer->folder));
    for (int i = 0; i < COLUMNS; i++) {
        data_npz_entry *to = &self->column[i];
        if (i == LATENT && !writer->spec.latent_states) continue;
        to->name = NAMES[i];
        TRY(base_alloc(ctx, BUFFER_BYTES, 1, &self->buffer[i].bytes));
        TRY(base_join(ctx, writer->folder, NAMES[i], &path));
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

const data_writer_kind DATA_NPZ_WRITER = {.output = BASE_FILE,
                                          .state_bytes = sizeof(npz_writer),
                                          .open = open_columns,
                                          .add = add,
                                          .finish = finish,
                                          .release = release};
