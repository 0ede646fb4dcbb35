// .npz files as archives of arrays, through libzip. Arrays that were stored without compression and
// are too large for memory are read where they lie; compressed ones that are too large are unpacked
// into a file without a name.
#include "base/checked.h"
#include "base/context.h"
#include "data/archive.h"
#include "data/npy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zip.h>

enum { MOST_SPOOLS = 8, PIECE = 1 << 20 };

typedef struct npz_archive {
    data_archive base;
    zip_t *zip;
    // libzip reads through these, which is how we learn where in the file an entry begins.
    uint64_t position, last_read;
    zip_error_t error;
    int spool[MOST_SPOOLS];
    int n_spools;
} npz_archive;

static zip_int64_t file_seek(npz_archive *self, void *data, zip_uint64_t length)
{
    const zip_int64_t to = zip_source_seek_compute_offset(self->position, self->base.file_size,
                                                          data, length, &self->error);
    if (to < 0) return -1;
    self->position = (uint64_t)to;
    return 0;
}

static zip_int64_t file_read(npz_archive *self, void *data, zip_uint64_t length)
{
    ssize_t got;
    do {
        got = pread(self->base.fd, data, (size_t)length, (off_t)self->position);
    } while (got < 0 && errno == EINTR);
    if (got < 0) {
        zip_error_set(&self->error, ZIP_ER_READ, errno);
        return -1;
    }
    self->last_read = self->position;
    self->position += (uint64_t)got;
    return got;
}

static zip_int64_t file_source(void *user, void *data, zip_uint64_t length,
                               zip_source_cmd_t command)
{
    npz_archive *self = user;
    switch (command) {
    case ZIP_SOURCE_OPEN: self->position = 0; return 0;
    case ZIP_SOURCE_CLOSE:
    case ZIP_SOURCE_FREE: return 0;
    case ZIP_SOURCE_READ: return file_read(self, data, length);
    case ZIP_SOURCE_SEEK: return file_seek(self, data, length);
    case ZIP_SOURCE_TELL: return (zip_int64_t)self->position;
    case ZIP_SOURCE_ERROR: return zip_error_to_data(&self->error, data, length);
    case ZIP_SOURCE_STAT: {
        zip_stat_t *stat = data;
        zip_stat_init(stat);
        stat->size = self->base.file_size;
        stat->valid |= ZIP_STAT_SIZE;
        return sizeof *stat;
    }
    case ZIP_SOURCE_SUPPORTS:
        return zip_source_make_command_bitmap(
            ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE, ZIP_SOURCE_STAT, ZIP_SOURCE_ERROR,
            ZIP_SOURCE_FREE, ZIP_SOURCE_SEEK, ZIP_SOURCE_TELL, ZIP_SOURCE_SUPPORTS, -1);
    default: zip_error_set(&self->error, ZIP_ER_OPNOTSUPP, 0); return -1;
    }
}

static zip_int64_t locate(npz_archive *self, const char *name)
{
    char entry[256];
    const int length = snprintf(entry, sizeof entry, "%s.npy", name);
    if (length < 0 || (size_t)length >= sizeof entry) return -1;
    return zip_name_locate(self->zip, entry, 0);
}

// An archive may have two entries of one name, of which every reader takes another.
static bool is_the_only_one(npz_archive *self, zip_int64_t index)
{
    const char *name = zip_get_name(self->zip, (zip_uint64_t)index, 0);
    const zip_int64_t n = zip_get_num_entries(self->zip, 0);
    for (zip_int64_t i = 0; name && i < n; i++) {
        const char *other = i == index ? NULL : zip_get_name(self->zip, (zip_uint64_t)i, 0);
        if (other && strcmp(name, other) == 0) return false;
    }
    return name != NULL;
}

static bool npz_has(data_archive *archive, const char *name)
{
    return locate((npz_archive *)archive, name) >= 0;
}

static psi_status fail_on(npz_archive *self, const char *name, const char *why)
{
    if (zip_error_code_zip(zip_get_error(self->zip)) == ZIP_ER_MEMORY) {
        return FAIL(self->base.ctx, PSI_ENOMEM, "%s: %s.npy: no memory for libzip", self->base.path,
                    name);
    }
    return FAIL(self->base.ctx, PSI_EFORMAT, "%s: %s.npy: %s", self->base.path, name, why);
}

static bool read_exactly(zip_file_t *entry, void *out, size_t size)
{
    char *next = out;
    while (size > 0) {
        const zip_int64_t got = zip_fread(entry, next, size);
        if (got <= 0) return false;
        next += got;
        size -= (size_t)got;
    }
    return true;
}

// Reading past the end is what makes libzip compare the checksum.
static bool ends_well(zip_file_t *entry)
{
    char past_end;
    return zip_fread(entry, &past_end, 1) == 0;
}

// A file that nobody can see, beside the archive or where temporary files go.
static int open_spool(const char *path)
{
    char folder[4096];
    snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash) {
        slash[slash == folder] = '\0';
    } else {
        snprintf(folder, sizeof folder, ".");
    }
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0) return fd;
    const char *temporary = getenv("TMPDIR");
    return open(temporary ? temporary : "/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

static psi_status unpack_to_spool(npz_archive *self, zip_file_t *entry, size_t size,
                                  data_array *array)
{
    psi_ctx *ctx = self->base.ctx;
    psi_status status = PSI_OK;
    char *piece = NULL;
    if (self->n_spools == MOST_SPOOLS) {
        return FAIL(ctx, PSI_ELIMIT, "%s: too many large compressed arrays", self->base.path);
    }
    const int fd = open_spool(self->base.path);
    if (fd < 0) {
        return FAIL(ctx, PSI_EIO, "%s: no place to unpack %s.npy: %s", self->base.path, array->name,
                    strerror(errno));
    }
    self->spool[self->n_spools++] = fd;
    TRY(base_alloc(ctx, PIECE, 1, &piece));
    for (size_t done = 0; done < size;) {
        TRY(base_cancelled(ctx));
        const size_t n = base_min(PIECE, size - done);
        if (!read_exactly(entry, piece, n)) {
            status = fail_on(self, array->name, "the compressed data are damaged");
            goto done;
        }
        const ssize_t written = pwrite(fd, piece, n, (off_t)done);
        if (written < 0 || (size_t)written != n) {
            status = FAIL(ctx, PSI_EIO, "%s: %s.npy cannot be unpacked: %s", self->base.path,
                          array->name, written < 0 ? strerror(errno) : "the disk is full");
            goto done;
        }
        done += n;
    }
    if (!ends_well(entry)) {
        status = fail_on(self, array->name, "the data are damaged");
        goto done;
    }
    array->layout = DATA_CONTIGUOUS;
    array->fd = fd;
    array->offset = 0;
done:
    base_free(ctx, piece);
    return status;
}

static psi_status unpack_to_memory(npz_archive *self, zip_file_t *entry, size_t size,
                                   data_array *array)
{
    const psi_status status = base_alloc(self->base.ctx, size, 1, &array->memory);
    if (status != PSI_OK) return status;
    if (!read_exactly(entry, array->memory, size) || !ends_well(entry)) {
        return fail_on(self, array->name, "the data are damaged");
    }
    array->layout = DATA_IN_MEMORY;
    return PSI_OK;
}

// What stays in the archive is read once, for its checksum alone.
static psi_status check_in_place(npz_archive *self, zip_file_t *entry, size_t size,
                                 const data_array *array)
{
    psi_ctx *ctx = self->base.ctx;
    psi_status status = PSI_OK;
    char *piece;
    bool good = true;
    TRY(base_alloc(ctx, PIECE, 1, &piece));
    for (size_t done = 0; good && done < size; done += PIECE) {
        TRY(base_cancelled(ctx));
        good = read_exactly(entry, piece, base_min(PIECE, size - done));
    }
    if (!good || !ends_well(entry)) status = fail_on(self, array->name, "the data are damaged");
done:
    base_free(ctx, piece);
    return status;
}

static psi_status read_header(npz_archive *self, zip_file_t *entry, data_array *array,
                              bool *fortran, size_t *header, uint64_t *where)
{
    psi_ctx *ctx = self->base.ctx;
    psi_status status = PSI_OK;
    char *text;
    TRY(base_alloc(ctx, DATA_NPY_LONGEST, 1, &text));
    if (!read_exactly(entry, text, DATA_NPY_START)) {
        status = fail_on(self, array->name, "too short for an array");
        goto done;
    }
    *where = self->last_read;
    *header = data_npy_header_size(text, DATA_NPY_START);
    if (*header < DATA_NPY_START ||
        !read_exactly(entry, text + DATA_NPY_START, *header - DATA_NPY_START) ||
        !data_npy_parse(text, *header, array, fortran)) {
        status = fail_on(self, array->name, "not an array of numbers psifold can read");
    }
done:
    base_free(ctx, text);
    return status;
}

// A stored entry is in the file byte for byte: is it really where we think?
static bool lies_at(const npz_archive *self, uint64_t where, size_t header, size_t size)
{
    char magic[6];
    return where <= self->base.file_size && header <= self->base.file_size - where &&
           size <= self->base.file_size - where - header &&
           pread(self->base.fd, magic, sizeof magic, (off_t)where) == sizeof magic &&
           memcmp(magic, "\x93NUMPY", sizeof magic) == 0;
}

static psi_status describe_entry(npz_archive *self, zip_uint64_t index, zip_file_t *entry,
                                 data_array *array)
{
    psi_ctx *ctx = self->base.ctx;
    psi_status status = PSI_OK;
    zip_stat_t stat;
    bool fortran = false;
    size_t header = 0, size;
    uint64_t where = 0;
    if (zip_stat_index(self->zip, index, 0, &stat) != 0 || !(stat.valid & ZIP_STAT_SIZE) ||
        !(stat.valid & ZIP_STAT_COMP_METHOD)) {
        return fail_on(self, array->name, "its size is not known");
    }
    TRY(read_header(self, entry, array, &fortran, &header, &where));
    if (!data_npy_extent(array, &size) || stat.size < header || size > stat.size - header) {
        return fail_on(self, array->name, "shorter than its header says");
    }
    if (size < stat.size - header) return fail_on(self, array->name, "longer than its header says");
    TRY(data_check_extent(ctx, &self->base, array->name, size));
    const bool small = size <= self->base.memory_limit;
    array->fd = self->base.fd;
    if (fortran && array->rank > 1) {
        if (!small) {
            return FAIL(ctx, PSI_EUNSUPPORTED,
                        "%s: %s.npy is in Fortran order and too large to be "
                        "turned in memory: save numpy.ascontiguousarray of it",
                        self->base.path, array->name);
        }
        TRY(unpack_to_memory(self, entry, size, array));
        TRY(data_npy_turn(ctx, array, size));
    } else if (small) {
        TRY(unpack_to_memory(self, entry, size, array));
    } else if (stat.comp_method == ZIP_CM_STORE && lies_at(self, where, header, size)) {
        TRY(check_in_place(self, entry, size, array));
        array->layout = DATA_CONTIGUOUS;
        array->offset = where + header;
    } else {
        TRY(unpack_to_spool(self, entry, size, array));
    }
done:
    return status;
}

static psi_status npz_describe(data_archive *archive, const char *name, data_array *array)
{
    npz_archive *self = (npz_archive *)archive;
    psi_status status = base_copy_text(archive->ctx, name, &array->name);
    if (status != PSI_OK) return status;
    const zip_int64_t index = locate(self, name);
    if (index < 0) {
        return FAIL(archive->ctx, PSI_EDATA, "%s: %s is missing", archive->path, name);
    }
    if (!is_the_only_one(self, index)) return fail_on(self, name, "there are two of that name");
    zip_file_t *entry = zip_fopen_index(self->zip, (zip_uint64_t)index, 0);
    if (!entry) return fail_on(self, name, zip_strerror(self->zip));
    status = describe_entry(self, (zip_uint64_t)index, entry, array);
    zip_fclose(entry);
    return status;
}

static psi_status npz_read(psi_ctx *ctx, data_archive *archive, const data_array *array,
                           size_t first, size_t n, void *out)
{
    (void)first, (void)n, (void)out;
    return FAIL(ctx, PSI_EINTERNAL, "%s: %s was not unpacked", archive->path, array->name);
}

static psi_status npz_frames(psi_ctx *ctx, data_archive *archive, const data_array *array,
                             size_t first, size_t n, data_frame *out)
{
    (void)first, (void)n, (void)out;
    return FAIL(ctx, PSI_EINTERNAL, "%s: %s has no frames", archive->path, array->name);
}

static void npz_close(data_archive *archive)
{
    npz_archive *self = (npz_archive *)archive;
    psi_ctx *ctx = archive->ctx;
    if (self->zip) zip_discard(self->zip);
    for (int i = 0; i < self->n_spools; i++) close(self->spool[i]);
    zip_error_fini(&self->error);
    data_archive_end(archive);
    base_free(ctx, self);
}

psi_status data_npz_open(psi_ctx *ctx, const char *path, size_t memory_limit, data_archive **out)
{
    static const data_archive_ops ops = {npz_has, npz_describe, npz_read, npz_frames, npz_close};
    psi_status status = PSI_OK;
    npz_archive *self;
    zip_error_t error;
    zip_error_init(&error);
    *out = NULL;
    TRY(base_alloc_zero(ctx, 1, sizeof *self, &self));
    self->base.ops = &ops;
    self->base.fd = -1;
    self->base.ctx = ctx;
    zip_error_init(&self->error);
    TRY(data_archive_start(&self->base, ctx, path, memory_limit));
    zip_source_t *source = zip_source_function_create(file_source, self, &error);
    if (source) self->zip = zip_open_from_source(source, ZIP_RDONLY, &error);
    if (!self->zip) {
        if (source) zip_source_free(source);
        const bool memory = zip_error_code_zip(&error) == ZIP_ER_MEMORY;
        status = FAIL(ctx, memory ? PSI_ENOMEM : PSI_EFORMAT,
                      "%s: not a zip file, or a damaged one: %s", path, zip_error_strerror(&error));
        goto done;
    }
    *out = &self->base;
    self = NULL;
done:
    if (self) npz_close(&self->base);
    zip_error_fini(&error);
    return status;
}
