// HDF5 through libhdf5. The library tells where the bytes are; wherever they lie there unpacked,
// rows are then read around it, by all threads. It reads the rest itself, under one lock. What is
// known to lead libhdf5 1.10 astray is checked before it gets there; but its reading of damaged
// metadata and of broken compressed chunks is not memory-safe, and nothing outside it can change
// that (tests/fuzz/README.md).
#include "data/hdf5.h"

#include "base/checked.h"
#include "base/context.h"
#include "base/memory.h"

#include <pthread.h>
#include <string.h>

enum { OPEN_ARRAYS = 4, LARGEST_CACHE = 1 << 25, NAME_BYTES = 512 };

typedef struct hdf5_archive {
    data_archive base;
    hid_t file, access; // access: how datasets are opened
    bool raw;           // the library's addresses are offsets in the file, of 8 bytes
    struct {
        uint64_t array; // its id
        hid_t dataset;
        uint64_t used;
    } open[OPEN_ARRAYS]; // those read through the library last, with their chunk caches
    uint64_t clock, ids;
} hdf5_archive;

static pthread_mutex_t library_lock = PTHREAD_MUTEX_INITIALIZER;

data_hdf5_quiet data_hdf5_enter(void)
{
    data_hdf5_quiet quiet;
    pthread_mutex_lock(&library_lock);
    H5Eget_auto2(H5E_DEFAULT, &quiet.function, &quiet.data);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    return quiet;
}

void data_hdf5_leave(data_hdf5_quiet quiet)
{
    H5Eclear2(H5E_DEFAULT);
    H5Eset_auto2(H5E_DEFAULT, quiet.function, quiet.data);
    pthread_mutex_unlock(&library_lock);
}

psi_status data_hdf5_room(psi_ctx *ctx, const char *path)
{
    enum { ROOM = LARGEST_CACHE / 2 }; // its caches of metadata, and half of a cache of chunks
    if (base_memory_fits(ROOM)) return PSI_OK;
    return FAIL(ctx, PSI_ENOMEM, "%s: no memory for libhdf5, which needs %d MiB", path, ROOM >> 20);
}

// A link to another file could name any file of this machine: it is not followed.
static herr_t refuse_external_link(const char *parent_file, const char *parent_group,
                                   const char *child_file, const char *child_object,
                                   unsigned *flags, hid_t access, void *user)
{
    (void)parent_file, (void)parent_group, (void)child_file, (void)child_object;
    (void)flags, (void)access, (void)user;
    return -1;
}

static void hdf5_close(data_archive *archive)
{
    hdf5_archive *self = (hdf5_archive *)archive;
    psi_ctx *ctx = archive->ctx;
    const data_hdf5_quiet quiet = data_hdf5_enter();
    for (int i = 0; i < OPEN_ARRAYS; i++) {
        if (self->open[i].dataset > 0) H5Dclose(self->open[i].dataset);
    }
    if (self->access > 0) H5Pclose(self->access);
    if (self->file > 0) H5Fclose(self->file);
    data_hdf5_leave(quiet);
    data_archive_end(archive);
    base_free(ctx, self);
}

// H5Lexists wants every step of the way to exist.
static bool path_exists(hid_t file, const char *name)
{
    char part[NAME_BYTES];
    const size_t length = strlen(name);
    if (length >= sizeof part) return false;
    for (size_t i = 1; i <= length; i++) {
        if (name[i] != '/' && name[i] != '\0') continue;
        memcpy(part, name, i);
        part[i] = '\0';
        if (H5Lexists(file, part, H5P_DEFAULT) <= 0) return false;
    }
    return length > 0;
}

data_node data_hdf5_node(data_archive *archive, const char *name)
{
    hdf5_archive *self = (hdf5_archive *)archive;
    data_node node = DATA_NO_NODE;
    const data_hdf5_quiet quiet = data_hdf5_enter();
    const hid_t object = H5Oopen(self->file, name, self->access);
    const H5I_type_t type = object > 0 ? H5Iget_type(object) : H5I_BADID;
    if (type == H5I_DATASET) node = DATA_ARRAY;
    if (type == H5I_GROUP) node = DATA_GROUP;
    if (object > 0) H5Oclose(object);
    data_hdf5_leave(quiet);
    return node;
}

static bool hdf5_has(data_archive *archive, const char *name)
{
    return data_hdf5_node(archive, name) == DATA_ARRAY;
}

typedef struct list_job {
    bool (*visit)(void *user, const char *name);
    void *user;
} list_job;

static herr_t list_link(hid_t group, const char *name, const H5L_info_t *info, void *user)
{
    (void)group, (void)info;
    const list_job *job = user;
    return job->visit(job->user, name) ? 0 : 1;
}

psi_status data_hdf5_list(data_archive *archive, const char *group,
                          bool (*visit)(void *user, const char *name), void *user)
{
    hdf5_archive *self = (hdf5_archive *)archive;
    list_job job = {visit, user};
    const psi_status status = data_hdf5_room(archive->ctx, archive->path);
    if (status != PSI_OK) return status;
    const data_hdf5_quiet quiet = data_hdf5_enter();
    const herr_t failed = H5Literate_by_name(self->file, group, H5_INDEX_NAME, H5_ITER_INC, NULL,
                                             list_link, &job, self->access);
    data_hdf5_leave(quiet);
    if (failed >= 0) return PSI_OK;
    return FAIL(archive->ctx, PSI_EFORMAT, "%s: the group %s is damaged", archive->path, group);
}

static data_element element_of(hid_t type)
{
    data_element element = {.kind = DATA_OTHER, .size = H5Tget_size(type)};
    const H5T_class_t class = H5Tget_class(type);
    const bool swapped = H5Tget_order(type) == H5T_ORDER_BE;
    element.swapped = swapped && element.size > 1;
    switch (class) {
    case H5T_INTEGER:
        // Integers that use only some of their bits are nothing the field writes.
        if (H5Tget_precision(type) == 8 * element.size && element.size <= 8) {
            element.kind = H5Tget_sign(type) == H5T_SGN_NONE ? DATA_UNSIGNED : DATA_SIGNED;
        }
        break;
    case H5T_FLOAT:
        if (H5Tget_precision(type) == 8 * element.size) element.kind = DATA_FLOAT;
        break;
    case H5T_ENUM: // h5py's truth values: an enumeration FALSE, TRUE of one byte
    case H5T_BITFIELD:
        if (element.size == 1) element.kind = DATA_BOOL;
        break;
    case H5T_VLEN: {
        const hid_t inner = H5Tget_super(type);
        if (inner > 0 && H5Tget_class(inner) == H5T_INTEGER && H5Tget_size(inner) == 1) {
            element.kind = DATA_FRAMES;
        }
        if (inner > 0) H5Tclose(inner);
        break;
    }
    default: break;
    }
    return element;
}

// The places of all chunks, if every one of them is there, unpacked, and inside the file.
static psi_status find_chunks(hdf5_archive *self, hid_t dataset, hid_t creation, data_array *array)
{
    hsize_t chunk[DATA_MAX_RANK];
    if (H5Pget_chunk(creation, DATA_MAX_RANK, chunk) != (int)array->rank) return PSI_OK;
    size_t bytes = array->element.size, count = 1, total;
    for (size_t d = 0; d < array->rank; d++) {
        array->chunk[d] = (size_t)chunk[d];
        if (chunk[d] == 0 || !base_mul(bytes, array->chunk[d], &bytes)) return PSI_OK;
        array->grid[d] = (array->dim[d] - 1) / array->chunk[d] + 1;
        if (!base_mul(count, array->grid[d], &count)) return PSI_OK;
    }
    if (!base_mul(bytes, count, &total) || total > self->base.file_size) return PSI_OK;
    const psi_status status =
        base_alloc(self->base.ctx, count, sizeof *array->address, &array->address);
    if (status != PSI_OK) return status;
    hsize_t corner[DATA_MAX_RANK] = {0};
    for (size_t i = 0; i < count; i++) {
        unsigned mask;
        haddr_t address;
        hsize_t size;
        if (H5Dget_chunk_info_by_coord(dataset, corner, &mask, &address, &size) < 0 ||
            address == HADDR_UNDEF || size != bytes || address > self->base.file_size - bytes) {
            return PSI_OK;
        }
        array->address[i] = address;
        for (size_t d = array->rank; d-- > 0;) {
            corner[d] += chunk[d];
            if (corner[d] < array->dim[d]) break;
            corner[d] = 0;
        }
    }
    array->layout = DATA_CHUNKED;
    return PSI_OK;
}

static psi_status find_layout(hdf5_archive *self, hid_t dataset, hid_t creation, data_array *array,
                              size_t total)
{
    data_archive *archive = &self->base;
    array->layout = DATA_THROUGH_LIBRARY;
    if (H5Pget_external_count(creation) > 0 || H5Pget_layout(creation) == H5D_VIRTUAL) {
        return FAIL(archive->ctx, PSI_EUNSUPPORTED, "%s: %s lies in other files", archive->path,
                    array->name);
    }
    const psi_status status = data_check_extent(archive->ctx, archive, array->name, total);
    if (status != PSI_OK) return status;
    // libhdf5 1.10 believes the shape and reads past the end of a compact array that is shorter.
    if (H5Pget_layout(creation) == H5D_COMPACT && H5Dget_storage_size(dataset) < total) {
        return FAIL(archive->ctx, PSI_EFORMAT, "%s: %s is shorter than its shape says",
                    archive->path, array->name);
    }
    if (!self->raw || total == 0 || array->element.kind == DATA_OTHER) return PSI_OK;
    if (H5Pget_layout(creation) == H5D_CHUNKED && H5Pget_nfilters(creation) == 0) {
        return find_chunks(self, dataset, creation, array);
    }
    if (H5Pget_layout(creation) == H5D_CONTIGUOUS) {
        const haddr_t offset = H5Dget_offset(dataset);
        if (offset == HADDR_UNDEF) return PSI_OK;
        if (total > archive->file_size || offset > archive->file_size - total) {
            return FAIL(archive->ctx, PSI_EFORMAT, "%s: the file ends before %s does",
                        archive->path, array->name);
        }
        array->layout = DATA_CONTIGUOUS;
        array->offset = offset;
    }
    return PSI_OK;
}

static psi_status describe_dataset(hdf5_archive *self, hid_t dataset, data_array *array)
{
    psi_ctx *ctx = self->base.ctx;
    psi_status status = PSI_OK;
    const hid_t type = H5Dget_type(dataset), space = H5Dget_space(dataset);
    const hid_t creation = H5Dget_create_plist(dataset);
    hsize_t dims[H5S_MAX_RANK];
    const int rank = space > 0 ? H5Sget_simple_extent_dims(space, dims, NULL) : -1;
    if (type <= 0 || creation <= 0 || rank < 0 || H5Sget_simple_extent_type(space) == H5S_NULL) {
        status = FAIL(ctx, PSI_EFORMAT, "%s: %s is damaged or empty", self->base.path, array->name);
        goto done;
    }
    if (rank > DATA_MAX_RANK) {
        status = FAIL(ctx, PSI_EUNSUPPORTED, "%s: %s has %d dimensions, %d at most are supported",
                      self->base.path, array->name, rank, DATA_MAX_RANK);
        goto done;
    }
    array->element = element_of(type);
    array->rank = (size_t)rank;
    array->fd = self->base.fd;
    array->id = ++self->ids;
    size_t total = 0, row = array->element.size;
    bool fits = row > 0;
    for (size_t d = 0; d < array->rank; d++) {
        array->dim[d] = (size_t)dims[d];
        if (d > 0) fits = fits && base_mul(row, array->dim[d], &row);
    }
    fits = fits && base_mul(row, data_array_rows(array), &total);
    if (!fits) {
        status = FAIL(ctx, PSI_EFORMAT, "%s: the size of %s cannot be right", self->base.path,
                      array->name);
        goto done;
    }
    array->row_bytes = row;
    status = find_layout(self, dataset, creation, array, total);
    if (array->element.kind == DATA_FRAMES) {
        array->frames = array->layout;
        array->layout = DATA_THROUGH_LIBRARY;
    }
done:
    if (type > 0) H5Tclose(type);
    if (space > 0) H5Sclose(space);
    if (creation > 0) H5Pclose(creation);
    return status;
}

static psi_status hdf5_describe(data_archive *archive, const char *name, data_array *array)
{
    hdf5_archive *self = (hdf5_archive *)archive;
    psi_status status = base_copy_text(archive->ctx, name, &array->name);
    if (status == PSI_OK) status = data_hdf5_room(archive->ctx, archive->path);
    if (status != PSI_OK) return status;
    const data_hdf5_quiet quiet = data_hdf5_enter();
    const hid_t dataset = H5Dopen2(self->file, name, self->access);
    if (dataset > 0) {
        status = describe_dataset(self, dataset, array);
        H5Dclose(dataset);
    } else {
        const bool there = path_exists(self->file, name);
        status = FAIL(archive->ctx, there ? PSI_EFORMAT : PSI_EDATA, "%s: %s %s", archive->path,
                      name, there ? "cannot be opened as an array" : "is missing");
    }
    data_hdf5_leave(quiet);
    return status;
}

// A dataset with a cache that holds a few of its chunks: neighbouring rows are unpacked once.
static hid_t open_cached(hdf5_archive *self, const data_array *array)
{
    int oldest = 0;
    for (int i = 0; i < OPEN_ARRAYS; i++) {
        if (self->open[i].dataset > 0 && self->open[i].array == array->id) {
            self->open[i].used = ++self->clock;
            return self->open[i].dataset;
        }
        if (self->open[i].used < self->open[oldest].used) oldest = i;
    }
    if (self->open[oldest].dataset > 0) H5Dclose(self->open[oldest].dataset);
    self->open[oldest].dataset = 0;
    const hid_t access = H5Pcopy(self->access);
    if (access <= 0) return -1;
    H5Pset_chunk_cache(access, 521, LARGEST_CACHE, 1.0);
    const hid_t dataset = H5Dopen2(self->file, array->name, access);
    H5Pclose(access);
    if (dataset <= 0) return -1;
    self->open[oldest].dataset = dataset;
    self->open[oldest].array = array->id;
    self->open[oldest].used = ++self->clock;
    return dataset;
}

// Rows [first, first + n) as memory_type.
static bool read_rows(hid_t dataset, const data_array *array, hid_t memory_type, size_t first,
                      size_t n, void *out)
{
    hsize_t start[DATA_MAX_RANK] = {0}, count[DATA_MAX_RANK];
    start[0] = first;
    for (size_t d = 0; d < array->rank; d++) count[d] = array->dim[d];
    count[0] = n;
    const hid_t space = H5Dget_space(dataset);
    const hid_t memory = H5Screate_simple((int)array->rank, count, NULL);
    bool good = space > 0 && memory > 0;
    if (array->rank > 0) {
        good = good && H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) >= 0;
    }
    good = good && H5Dread(dataset, memory_type, memory, space, H5P_DEFAULT, out) >= 0;
    if (memory > 0) H5Sclose(memory);
    if (space > 0) H5Sclose(space);
    return good;
}

static psi_status hdf5_read(psi_ctx *ctx, data_archive *archive, const data_array *array,
                            size_t first, size_t n, void *out)
{
    hdf5_archive *self = (hdf5_archive *)archive;
    const psi_status status = data_hdf5_room(ctx, archive->path);
    if (status != PSI_OK) return status;
    const data_hdf5_quiet quiet = data_hdf5_enter();
    const hid_t dataset = open_cached(self, array);
    const hid_t type = dataset > 0 ? H5Dget_type(dataset) : -1;
    const bool good = type > 0 && read_rows(dataset, array, type, first, n, out);
    if (type > 0) H5Tclose(type);
    data_hdf5_leave(quiet);
    if (good) return PSI_OK;
    return FAIL(ctx, PSI_EFORMAT, "%s: rows %zu … %zu of %s cannot be read", archive->path, first,
                first + n - 1, array->name);
}

static uint64_t little_endian(const unsigned char *bytes, int n)
{
    uint64_t value = 0;
    while (n-- > 0) value = value << 8 | bytes[n];
    return value;
}

// Strings of bytes lie in heaps ("GCOL"): objects one after the other, each with its length. A
// damaged length of 0 keeps libhdf5 1.10 in an endless loop, so heaps are walked before it does.
static psi_status check_heap(psi_ctx *ctx, const data_archive *archive, uint64_t address)
{
    enum { HEAD = 16, UNIT = 8 };
    unsigned char head[HEAD];
    psi_status status = PSI_OK;
    unsigned char *heap = NULL;
    const uint64_t file = archive->file_size;
    uint64_t size = 0;
    if (address < file && file - address >= HEAD) {
        TRY(data_pread(ctx, archive->fd, address, head, HEAD, archive->path));
        if (memcmp(head, "GCOL", 4) == 0) size = little_endian(head + 8, 8);
    }
    bool good = size >= HEAD && size <= file - address;
    if (good) {
        TRY(base_alloc(ctx, size, 1, &heap));
        TRY(data_pread(ctx, archive->fd, address, heap, size, archive->path));
    }
    for (uint64_t at = HEAD; good && size - at >= HEAD;) {
        const bool used = little_endian(heap + at, 2) != 0; // object 0 is the free space
        const uint64_t bytes = little_endian(heap + at + 8, 8);
        good = bytes <= size - at && (used || bytes >= HEAD);
        const uint64_t step = used ? HEAD + (bytes + UNIT - 1) / UNIT * UNIT : bytes;
        good = good && step <= size - at;
        at += good ? step : 0;
    }
    if (!good) {
        status = FAIL(ctx, PSI_EFORMAT, "%s: the heap at %llu is damaged", archive->path,
                      (unsigned long long)address);
    }
done:
    base_free(ctx, heap);
    return status;
}

// The heaps of rows first … first + n − 1: a reference is a length, an address and an index.
static psi_status check_heaps(psi_ctx *ctx, data_archive *archive, const data_array *array,
                              size_t first, size_t n)
{
    enum { REFERENCE = 16 };
    psi_status status = PSI_OK;
    unsigned char *references = NULL;
    data_array placed = *array;
    placed.layout = array->frames;
    if (placed.layout == DATA_THROUGH_LIBRARY || array->row_bytes != REFERENCE) {
        return FAIL(ctx, PSI_EUNSUPPORTED, "%s: %s is compressed twice: frames and their places",
                    archive->path, array->name);
    }
    TRY(base_alloc(ctx, n, REFERENCE, &references));
    TRY(data_archive_read(ctx, archive, &placed, first, n, references));
    uint64_t last = UINT64_MAX;
    for (size_t i = 0; i < n; i++) {
        const unsigned char *reference = references + i * REFERENCE;
        const uint64_t length = little_endian(reference, 4);
        const uint64_t address = little_endian(reference + 4, 8);
        if (length == 0 || address == last) continue;
        if (length > archive->file_size) {
            status = FAIL(ctx, PSI_EFORMAT, "%s: row %zu of %s is longer than the file",
                          archive->path, first + i, array->name);
            goto done;
        }
        TRY(check_heap(ctx, archive, address));
        last = address;
    }
done:
    base_free(ctx, references);
    return status;
}

static psi_status hdf5_frames(psi_ctx *ctx, data_archive *archive, const data_array *array,
                              size_t first, size_t n, data_frame *out)
{
    hdf5_archive *self = (hdf5_archive *)archive;
    psi_status status = PSI_OK;
    hvl_t *frames = NULL;
    TRY(check_heaps(ctx, archive, array, first, n));
    TRY(base_alloc_zero(ctx, n, sizeof *frames, &frames));
    TRY(data_hdf5_room(ctx, archive->path));
    const data_hdf5_quiet quiet = data_hdf5_enter();
    const hid_t dataset = open_cached(self, array);
    const hid_t type = H5Tvlen_create(H5T_NATIVE_UINT8);
    const bool good = dataset > 0 && type > 0 && read_rows(dataset, array, type, first, n, frames);
    if (!good) {
        status = FAIL(ctx, PSI_EFORMAT, "%s: rows %zu … %zu of %s cannot be read", archive->path,
                      first, first + n - 1, array->name);
    }
    for (size_t i = 0; i < n && status == PSI_OK; i++) {
        status = base_alloc(ctx, frames[i].len, 1, &out[i].bytes);
        if (status != PSI_OK) break;
        out[i].size = frames[i].len;
        if (frames[i].len) memcpy(out[i].bytes, frames[i].p, frames[i].len);
    }
    for (size_t i = 0; good && i < n; i++) H5free_memory(frames[i].p);
    if (type > 0) H5Tclose(type);
    data_hdf5_leave(quiet);
done:
    for (size_t i = 0; status != PSI_OK && i < n; i++) {
        base_free(ctx, out[i].bytes);
        out[i] = (data_frame){0};
    }
    base_free(ctx, frames);
    return status;
}

psi_status data_hdf5_open(psi_ctx *ctx, const char *path, size_t memory_limit, data_archive **out)
{
    static const data_archive_ops ops = {hdf5_has, hdf5_describe, hdf5_read, hdf5_frames,
                                         hdf5_close};
    psi_status status = PSI_OK;
    hdf5_archive *self;
    *out = NULL;
    TRY(base_alloc_zero(ctx, 1, sizeof *self, &self));
    self->base.ops = &ops;
    self->base.fd = -1;
    self->base.ctx = ctx;
    TRY(data_archive_start(&self->base, ctx, path, memory_limit));
    TRY(data_hdf5_room(ctx, path));
    const data_hdf5_quiet quiet = data_hdf5_enter();
    const hid_t how = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_file_locking(how, 0, 1); // a file on a read-only or shared disk can be read, too
    self->file = H5Fopen(path, H5F_ACC_RDONLY, how);
    H5Pclose(how);
    self->access = H5Pcreate(H5P_DATASET_ACCESS);
    if (self->access > 0) H5Pset_elink_cb(self->access, refuse_external_link, NULL);
    if (self->file > 0) {
        hsize_t user_block = 1;
        size_t address_bytes = 0, size_bytes = 0;
        const hid_t creation = H5Fget_create_plist(self->file);
        if (creation > 0) {
            H5Pget_userblock(creation, &user_block);
            H5Pget_sizes(creation, &address_bytes, &size_bytes);
            H5Pclose(creation);
        }
        self->raw = user_block == 0 && address_bytes == 8 && size_bytes == 8;
    }
    data_hdf5_leave(quiet);
    if (self->file <= 0 || self->access <= 0) {
        status = FAIL(ctx, PSI_EFORMAT, "%s: not an HDF5 file, or a damaged one", path);
        goto done;
    }
    *out = &self->base;
    self = NULL;
done:
    if (self) hdf5_close(&self->base);
    return status;
}
