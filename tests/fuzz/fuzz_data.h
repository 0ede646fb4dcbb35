// One input as a data set: read in memory and from the file, every row touched, summarised, freed.
#ifndef PSI_TESTS_FUZZ_DATA_H
#define PSI_TESTS_FUZZ_DATA_H

#include <psifold/psifold.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void touch(psi_ctx *ctx, const psi_trajectories *data)
{
    const size_t row_bytes = psi_observations_row_bytes(data->observations);
    if (row_bytes > 1 << 24) return;
    void *row = malloc(row_bytes);
    psi_summary *summary;
    for (uint64_t i = 0; row && i < data->n_observations && i < 4096; i++) {
        if (psi_observations_gather(ctx, data->observations, &i, 1, row) != PSI_OK) break;
    }
    free(row);
    if (psi_trajectories_summary(ctx, data, &summary) == PSI_OK) psi_summary_free(ctx, summary);
}

// FNV-1a: the same number for the same input.
static uint32_t fuzz_choice(const uint8_t *bytes, size_t size)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * 16777619u;
    return hash;
}

// also may look at the file in another way, of which the input chooses one; or NULL.
static void fuzz_data_set(const uint8_t *bytes, size_t size,
                          void (*also)(psi_ctx *ctx, const char *path, uint32_t choice))
{
    psi_ctx *ctx;
    char path[64];
    // A file with a name: libhdf5 looks at what a path resolves to, and finds no anonymous one.
    snprintf(path, sizeof path, "%s/psifold-fuzz-%ld",
             access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm", (long)getpid());
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, bytes, size) != (ssize_t)size) abort();
    close(fd);
    if (psi_ctx_new(&(psi_options){.size = sizeof(psi_options), .threads = 1}, &ctx) != PSI_OK)
        abort();
    for (int i = 0; i < 2; i++) {
        const psi_read_options options = {.size = sizeof options,
                                          .memory_limit = i == 0 ? 1 : 1 << 26};
        psi_trajectories *data;
        if (psi_trajectories_read(ctx, path, &options, &data) == PSI_OK) {
            touch(ctx, data);
            psi_trajectories_free(ctx, data);
        } else if (data || psi_error(ctx)->status == PSI_EINTERNAL) {
            abort();
        }
    }
    if (also) also(ctx, path, fuzz_choice(bytes, size));
    psi_ctx_free(ctx);
    unlink(path);
}

#endif
