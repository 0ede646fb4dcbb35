// How fast observations come: in order from a file larger than we want to hold, and at random from
// memory.
#include "cli/bench.h"

#include "base/context.h"
#include "base/file.h"
#include "base/progress.h"
#include "base/random.h"

#include <stdio.h>
#include <string.h>

enum {
    IMAGE_BYTES = 3 * 28 * 28,
    LENGTH = 146,    // steps of an episode: the mean of the combination lock
    EPISODES = 5800, // 2.0 GB
    BATCH = 256,
    IN_MEMORY = 300, // episodes
    RANDOM_BATCHES = 4000,
};

static const psi_episode_spec SPEC = {
    .observation_dtype = PSI_UINT8,
    .observation_shape = {.rank = 3, .dim = {3, 28, 28}},
    .observation_high = 255,
    .n_actions = 5,
    .name = "bench-v0",
};

typedef struct bench_episode {
    uint8_t images[(LENGTH + 1) * IMAGE_BYTES];
    int32_t actions[LENGTH];
    double rewards[LENGTH];
} bench_episode;

static psi_episode make_episode(bench_episode *memory, size_t number)
{
    // A few bytes of every image name its episode and step; the rest is noise from the first one.
    if (number == 0) {
        base_random random = base_random_stream(1, 0, 0);
        for (size_t i = 0; i < sizeof memory->images; i++) {
            memory->images[i] = (uint8_t)base_random_u32(&random);
        }
    }
    for (size_t t = 0; t <= LENGTH; t++) {
        const uint64_t mark = number * (LENGTH + 1) + t;
        memcpy(memory->images + t * IMAGE_BYTES, &mark, sizeof mark);
    }
    for (size_t t = 0; t < LENGTH; t++) {
        memory->actions[t] = (int32_t)(t % 5);
        memory->rewards[t] = t + 1 == LENGTH;
    }
    return (psi_episode){.length = LENGTH,
                         .observations = memory->images,
                         .actions = memory->actions,
                         .rewards = memory->rewards,
                         .terminated = true};
}

static psi_status write_file(psi_ctx *ctx, const char *path, bench_episode *memory)
{
    psi_status status = PSI_OK;
    psi_writer *writer = NULL;
    TRY(psi_writer_open(ctx, path, &SPEC, true, &writer));
    base_progress progress = base_progress_start(ctx, "writing", EPISODES);
    for (size_t e = 0; e < EPISODES; e++) {
        const psi_episode episode = make_episode(memory, e);
        TRY(psi_writer_add(writer, &episode));
        TRY(base_progress_at(&progress, e + 1));
    }
    status = psi_writer_commit(writer);
    writer = NULL;
done:
    psi_writer_discard(writer);
    return status;
}

static size_t resident_bytes(void)
{
    size_t kilobytes = 0;
    char line[128];
    FILE *file = fopen("/proc/self/status", "re");
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "VmRSS: %zu", &kilobytes) == 1) break;
    }
    if (file) fclose(file);
    return kilobytes * 1024;
}

// Reads every batch in order; every image must carry its mark.
static psi_status read_in_order(psi_ctx *ctx, const psi_observations *source, uint8_t *batch,
                                double *seconds, size_t *resident)
{
    uint64_t rows[BATCH];
    const size_t count = psi_observations_count(source);
    *seconds = 0;
    *resident = 0;
    for (size_t first = 0; first < count; first += BATCH) {
        const size_t n = first + BATCH < count ? BATCH : count - first;
        for (size_t i = 0; i < n; i++) rows[i] = first + i;
        const double started = base_seconds();
        const psi_status status = psi_observations_gather(ctx, source, rows, n, batch);
        *seconds += base_seconds() - started;
        if (status != PSI_OK) return status;
        for (size_t i = 0; i < n; i++) {
            uint64_t mark;
            memcpy(&mark, batch + i * IMAGE_BYTES, sizeof mark);
            if (mark != first + i) {
                return FAIL(ctx, PSI_EINTERNAL, "image %zu is number %llu", first + i,
                            (unsigned long long)mark);
            }
        }
        if (first / BATCH % 256 == 0 && resident_bytes() > *resident) *resident = resident_bytes();
    }
    return PSI_OK;
}

static psi_status bench_file(psi_ctx *ctx, const char *folder, bench_episode *memory,
                             uint8_t *batch, json_t *results)
{
    psi_status status = PSI_OK;
    psi_trajectories *data = NULL;
    char *path = NULL;
    double seconds, opening;
    size_t most;
    TRY(base_join(ctx, folder, "bench-data", &path));
    TRY(write_file(ctx, path, memory));
    const size_t before = resident_bytes();
    const double started = base_seconds();
    TRY(psi_trajectories_read(
        ctx, path, &(psi_read_options){.size = sizeof(psi_read_options), .memory_limit = 1},
        &data));
    opening = base_seconds() - started;
    TRY(read_in_order(ctx, data->observations, batch, &seconds, &most)); // fills the page cache
    TRY(read_in_order(ctx, data->observations, batch, &seconds, &most));
    const double bytes = (double)data->n_observations * IMAGE_BYTES;
    const double grown = most > before ? (double)(most - before) : 0;
    json_object_set_new(results, "open_minari_s", json_real(opening));
    json_object_set_new(results, "read_minari_gb_per_s", json_real(bytes / seconds / 1e9));
    json_object_set_new(results, "streaming_rss_mb", json_real(grown / 1e6));
done:
    psi_trajectories_free(ctx, data);
    if (path) base_remove(path);
    base_free(ctx, path);
    return status;
}

static psi_status bench_memory(psi_ctx *ctx, bench_episode *memory, uint8_t *batch, json_t *results)
{
    psi_status status = PSI_OK;
    psi_collector *collector = NULL;
    psi_trajectories *data = NULL;
    TRY(psi_collector_new(ctx, &SPEC, &collector));
    for (size_t e = 0; e < IN_MEMORY; e++) {
        const psi_episode episode = make_episode(memory, e);
        TRY(psi_collector_add(collector, &episode));
    }
    status = psi_collector_finish(collector, &data);
    collector = NULL;
    if (status != PSI_OK) goto done;
    base_random random = base_random_stream(2, 0, 0);
    double seconds = 0;
    for (int b = 0; b < RANDOM_BATCHES; b++) {
        uint64_t rows[BATCH];
        for (size_t i = 0; i < BATCH; i++) {
            rows[i] = base_random_below(&random, (uint32_t)data->n_observations);
        }
        const double started = base_seconds();
        TRY(psi_observations_gather(ctx, data->observations, rows, BATCH, batch));
        seconds += base_seconds() - started;
    }
    json_object_set_new(results, "random_batches_images_per_s",
                        json_real((double)RANDOM_BATCHES * BATCH / seconds));
done:
    psi_collector_discard(collector);
    psi_trajectories_free(ctx, data);
    return status;
}

psi_status bench_data(psi_ctx *ctx, const char *folder, json_t *results)
{
    psi_status status = PSI_OK;
    bench_episode *memory = NULL;
    uint8_t *batch = NULL;
    TRY(base_alloc(ctx, 1, sizeof *memory, &memory));
    TRY(base_alloc(ctx, BATCH, IMAGE_BYTES, &batch));
    TRY(bench_file(ctx, folder, memory, batch, results));
    TRY(bench_memory(ctx, memory, batch, results));
done:
    base_free(ctx, batch);
    base_free(ctx, memory);
    return status;
}
