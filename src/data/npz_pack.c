// A zip entry must be written in one go: libzip asks for its bytes while the archive is closed.
#include "data/npz_pack.h"

#include "base/context.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zip.h>

// libzip reads an entry as its header followed by its bytes.
static zip_int64_t read_entry(data_npz_entry *from, void *data, uint64_t length)
{
    const bool in_header = from->position < from->header_size;
    const uint64_t offset = in_header ? from->position : from->position - from->header_size;
    const uint64_t left = (in_header ? from->header_size : from->size) - offset;
    const size_t n = (size_t)(length < left ? length : left);
    if (n == 0) return 0;
    ssize_t got = (ssize_t)n;
    if (in_header) {
        memcpy(data, from->header + offset, n);
    } else if (from->bytes) {
        memcpy(data, from->bytes + offset, n);
    } else {
        got = pread(from->fd, data, n, (off_t)offset);
    }
    if (got > 0) from->position += (uint64_t)got;
    return got;
}

static zip_int64_t entry_source(void *user, void *data, zip_uint64_t length,
                                zip_source_cmd_t command)
{
    data_npz_entry *from = user;
    switch (command) {
    case ZIP_SOURCE_OPEN: from->position = 0; return 0;
    case ZIP_SOURCE_CLOSE:
    case ZIP_SOURCE_FREE: return 0;
    case ZIP_SOURCE_READ: return read_entry(from, data, length);
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

static bool add_entry(zip_t *zip, data_npz_entry *from)
{
    char name[DATA_NPZ_NAME + sizeof ".npy"];
    const int size = snprintf(name, sizeof name, "%s.npy", from->name);
    if (size < 0 || (size_t)size >= sizeof name) return false;
    zip_source_t *source = zip_source_function(zip, entry_source, from);
    if (!source) return false;
    const zip_int64_t index = zip_file_add(zip, name, source, ZIP_FL_ENC_UTF_8);
    if (index < 0) {
        zip_source_free(source);
        return false;
    }
    enum { DAY_ONE = 1 << 5 | 1 }; // 1 January 1980: the same data give the same bytes
    return zip_set_file_compression(zip, (zip_uint64_t)index, ZIP_CM_STORE, 0) == 0 &&
           zip_file_set_dostime(zip, (zip_uint64_t)index, 0, DAY_ONE, 0) == 0;
}

psi_status data_npz_pack(psi_ctx *ctx, const char *path, const char *temporary,
                         data_npz_entry *entries, size_t n)
{
    psi_status status = PSI_OK;
    int code;
    zip_t *zip = zip_open(temporary, ZIP_CREATE | ZIP_TRUNCATE, &code);
    bool good = zip != NULL;
    for (size_t i = 0; good && i < n; i++) {
        if (!entries[i].name) continue;
        good = add_entry(zip, &entries[i]);
        if (!good && zip_error_code_zip(zip_get_error(zip)) == ZIP_ER_INVAL) {
            status = FAIL(ctx, PSI_EUSAGE, "%s: the name of array %zu is not UTF-8", path, i);
            goto done;
        }
    }
    if (!good || zip_close(zip) != 0) {
        const bool memory =
            zip ? zip_error_code_zip(zip_get_error(zip)) == ZIP_ER_MEMORY : code == ZIP_ER_MEMORY;
        status = FAIL(ctx, memory ? PSI_ENOMEM : PSI_EIO, "%s: the archive cannot be written: %s",
                      path, zip ? zip_strerror(zip) : "it cannot be created");
        goto done;
    }
    zip = NULL;
done:
    if (zip) zip_discard(zip);
    return status;
}
