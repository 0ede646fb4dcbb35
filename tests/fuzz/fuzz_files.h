// For targets whose readers want a folder: one of this process's own, in memory where there is such
// a place, and files in it.
#ifndef PSI_TESTS_FUZZ_FILES_H
#define PSI_TESTS_FUZZ_FILES_H

#include <psifold/psifold.h>

#include "base/context.h"
#include "base/file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

static char fuzz_folder[64];

static inline void fuzz_remove_folder(void)
{
    base_remove(fuzz_folder);
}

// True the first time, when the folder was made; it is removed at the end.
static inline bool fuzz_first_time(void)
{
    if (fuzz_folder[0]) return false;
    snprintf(fuzz_folder, sizeof fuzz_folder, "%s/psifold-fuzz-XXXXXX",
             access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    REQUIRE(mkdtemp(fuzz_folder));
    atexit(fuzz_remove_folder);
    return true;
}

static inline const char *fuzz_path(char path[256], const char *name)
{
    snprintf(path, 256, "%s/%s", fuzz_folder, name);
    return path;
}

static inline void fuzz_put(const char *name, const void *bytes, size_t size)
{
    char path[256];
    const int fd = open(fuzz_path(path, name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    REQUIRE(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
    close(fd);
}

// Where PSIFOLD_FUZZ_SEEDS names a folder, a good file is left there as an input: the byte that
// says in which place it belongs, and the file.
static inline void fuzz_seed(size_t place, const char *name, const char *bytes, size_t size)
{
    const char *folder = getenv("PSIFOLD_FUZZ_SEEDS");
    char path[512];
    if (!folder) return;
    snprintf(path, sizeof path, "%s/good-%zu-%s", folder, place, name);
    FILE *file = fopen(path, "wb");
    REQUIRE(file && fputc((int)place, file) != EOF && fwrite(bytes, 1, size, file) == size);
    REQUIRE(fclose(file) == 0);
}

static inline psi_ctx *fuzz_ctx(void)
{
    psi_ctx *ctx;
    // more than a damaged file may ask for is a finding
    REQUIRE(psi_ctx_new(&(psi_options){.size = sizeof(psi_options),
                                       .threads = 1,
                                       .max_memory = (size_t)1 << 30},
                        &ctx) == PSI_OK);
    return ctx;
}

// A reader says no with a sentence, and a defect of ours is never the reason.
static inline void fuzz_judge(psi_ctx *ctx, psi_status status)
{
    REQUIRE(status != PSI_EINTERNAL);
    REQUIRE(status == PSI_OK || psi_error(ctx)->message[0] != '\0');
}

#endif
