#include "run/checksums.h"

#include "base/context.h"
#include "base/file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

enum { PIECE = 1 << 18, DIGITS = 33 };

static psi_status hash_file(psi_ctx *ctx, const char *path, char out[DIGITS])
{
    psi_status status = PSI_OK;
    XXH3_state_t *hash = NULL;
    char *piece = NULL;
    uint64_t size;
    int fd;
    TRY(base_open_file(ctx, path, &fd, &size));
    TRY(base_alloc(ctx, PIECE, 1, &piece));
    hash = XXH3_createState(); // the library alone knows its size
    if (!hash) TRY(FAIL(ctx, PSI_ENOMEM, "%s: no memory for its checksum", path));
    XXH3_128bits_reset(hash);
    for (ssize_t got = 1; got > 0;) {
        TRY(base_cancelled(ctx));
        got = read(fd, piece, PIECE);
        if (got < 0) TRY(FAIL(ctx, PSI_EIO, "%s: cannot read: %s", path, strerror(errno)));
        XXH3_128bits_update(hash, piece, (size_t)got);
    }
    const XXH128_hash_t sum = XXH3_128bits_digest(hash);
    snprintf(out, DIGITS, "%016llx%016llx", (unsigned long long)sum.high64,
             (unsigned long long)sum.low64);
done:
    if (hash) XXH3_freeState(hash);
    if (fd >= 0) close(fd);
    base_free(ctx, piece);
    return status;
}

psi_status run_checksums_add(psi_ctx *ctx, json_t *sums, const char *name, const char *path)
{
    char digits[DIGITS];
    const psi_status status = hash_file(ctx, path, digits);
    if (status != PSI_OK) return status;
    if (json_object_set_new(sums, name, json_string(digits)) == 0) return PSI_OK;
    return FAIL(ctx, PSI_ENOMEM, "%s: no memory for its checksum", path);
}

static psi_status check_file(psi_ctx *ctx, const char *folder, const char *name,
                             const json_t *expected)
{
    psi_status status = PSI_OK;
    char *path = NULL, digits[DIGITS];
    TRY(base_join(ctx, folder, name, &path));
    TRY(hash_file(ctx, path, digits));
    if (!json_is_string(expected) || strcmp(json_string_value(expected), digits) != 0) {
        status = FAIL(ctx, PSI_EFORMAT, "%s was damaged or changed after the run", path);
    }
done:
    base_free(ctx, path);
    return status;
}

psi_status run_checksums_check(psi_ctx *ctx, const char *folder, const json_t *manifest, size_t *n)
{
    psi_status status = PSI_OK;
    const json_t *sums = json_object_get(manifest, "checksums");
    const char *name;
    json_t *expected;
    *n = 0;
    json_object_foreach((json_t *)sums, name, expected)
    {
        if (strchr(name, '/'))
            TRY(FAIL(ctx, PSI_EFORMAT, "%s: '%s' cannot be a file of a run", folder, name));
        TRY(check_file(ctx, folder, name, expected));
        ++*n;
    }
done:
    return status;
}
