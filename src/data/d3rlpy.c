// d3rlpy 2.1: observations_0, actions_0, rewards_0, terminated_0, observations_1, … Like D4RL it
// knows no last observation.
#include "base/context.h"
#include "base/progress.h"
#include "data/formats.h"

#include <stdio.h>

static psi_status read_episode(data_reading *reading, size_t e)
{
    psi_ctx *ctx = reading->ctx;
    data_archive *archive = reading->archive;
    psi_status status = PSI_OK;
    double *rewards = NULL;
    int64_t *actions = NULL;
    uint8_t *terminated = NULL;
    size_t rows, n, index;
    char name[64], field[64];
    snprintf(name, sizeof name, "rewards_%zu", e);
    TRY(data_read_reals(archive, name, &rows, &rewards));
    snprintf(name, sizeof name, "terminated_%zu", e);
    TRY(data_read_flags(archive, name, &n, &terminated));
    if (n != 1) {
        status = FAIL(ctx, PSI_EDATA, "%s: episode %zu, %s: %zu values, one is expected",
                      archive->path, e, name, n);
        goto done;
    }
    snprintf(field, sizeof field, "actions_%zu", e);
    TRY(data_read_integers(archive, field, &n, &actions));
    if (n != rows) {
        status = FAIL(ctx, PSI_EDATA, "%s: episode %zu, %s: %zu rows, the rewards have %zu",
                      archive->path, e, field, n, rows);
        goto done;
    }
    snprintf(name, sizeof name, "observations_%zu", e);
    TRY(data_source_add_array(ctx, reading->source, name, &index, &n));
    if (n != rows || rows == 0) {
        status = FAIL(ctx, PSI_EDATA, "%s: episode %zu, %s: %zu rows, the rewards have %zu",
                      archive->path, e, name, n, rows);
        goto done;
    }
    const size_t length = terminated[0] ? rows : rows - 1;
    reading->dropped += !terminated[0];
    if (length == 0) {
        reading->empty++;
        goto done;
    }
    TRY(data_reading_add(reading, length, actions, 0, field, rewards, terminated[0],
                         !terminated[0]));
    TRY(data_source_add_rows(ctx, reading->source, index, 0, rows));
    if (terminated[0]) TRY(data_reading_repeat(reading, index, rows - 1));
done:
    base_free(ctx, rewards);
    base_free(ctx, actions);
    base_free(ctx, terminated);
    return status;
}

psi_status data_read_d3rlpy(psi_ctx *ctx, data_archive *archive, psi_trajectories **out)
{
    psi_status status = PSI_OK;
    data_reading reading;
    int64_t *episodes = NULL;
    size_t n;
    *out = NULL;
    TRY(data_reading_begin(ctx, archive, false, &reading));
    TRY(data_read_integers(archive, "num_episodes", &n, &episodes));
    if (n != 1 || episodes[0] < 1) {
        status =
            FAIL(ctx, PSI_EDATA, "%s: num_episodes does not count any episodes", archive->path);
        goto done;
    }
    base_progress progress = base_progress_start(ctx, "reading", (uint64_t)episodes[0]);
    for (size_t e = 0; e < (size_t)episodes[0]; e++) {
        TRY(read_episode(&reading, e));
        TRY(base_progress_at(&progress, e + 1));
    }
    status = data_reading_end(&reading, 0, out);
done:
    base_free(ctx, episodes);
    data_reading_free(&reading);
    return status;
}
