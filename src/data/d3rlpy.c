// d3rlpy 2.1: observations_0, actions_0, rewards_0, terminated_0, observations_1, … Like D4RL it
// knows no last observation.
#include "base/context.h"
#include "base/progress.h"
#include "data/formats.h"

#include <stdio.h>

typedef struct d3rlpy_reader {
    psi_ctx *ctx;
    data_archive *archive;
    data_source *source;
    data_set *set;
    size_t repeated, dropped;
} d3rlpy_reader;

static psi_status read_episode(d3rlpy_reader *reader, size_t e)
{
    psi_ctx *ctx = reader->ctx;
    data_archive *archive = reader->archive;
    data_set *set = reader->set;
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
    TRY(data_source_add_array(ctx, reader->source, name, &index, &n));
    if (n != rows || rows == 0) {
        status = FAIL(ctx, PSI_EDATA, "%s: episode %zu, %s: %zu rows, the rewards have %zu",
                      archive->path, e, name, n, rows);
        goto done;
    }
    const size_t length = terminated[0] ? rows : rows - 1;
    reader->dropped += !terminated[0];
    if (length == 0) goto done;
    TRY(data_set_append(ctx, set, length));
    const size_t kept = set->view.n_episodes - 1, first = set->episode_offsets[kept];
    TRY(data_set_actions(ctx, set, first, actions, length, 0, field));
    for (size_t t = 0; t < length; t++) set->rewards[first + t] = rewards[t];
    set->terminated[kept] = terminated[0];
    set->truncated[kept] = !terminated[0];
    TRY(data_source_add_rows(ctx, reader->source, index, 0, rows));
    if (terminated[0]) {
        TRY(data_source_add_rows(ctx, reader->source, index, rows - 1, 1));
        set->final_missing[kept] = 1;
        reader->repeated++;
    }
done:
    base_free(ctx, rewards);
    base_free(ctx, actions);
    base_free(ctx, terminated);
    return status;
}

psi_status data_read_d3rlpy(psi_ctx *ctx, data_archive *archive, psi_trajectories **out)
{
    psi_status status = PSI_OK;
    d3rlpy_reader reader = {.ctx = ctx, .archive = archive};
    int64_t *episodes = NULL;
    size_t n;
    *out = NULL;
    TRY(data_source_new(ctx, archive, &reader.source));
    TRY(data_set_new(ctx, archive->path, false, &reader.set));
    TRY(data_read_integers(archive, "num_episodes", &n, &episodes));
    if (n != 1 || episodes[0] < 1) {
        status =
            FAIL(ctx, PSI_EDATA, "%s: num_episodes does not count any episodes", archive->path);
        goto done;
    }
    base_progress progress = base_progress_start(ctx, "reading", (uint64_t)episodes[0]);
    for (size_t e = 0; e < (size_t)episodes[0]; e++) {
        TRY(read_episode(&reader, e));
        TRY(base_progress_at(&progress, e + 1));
    }
    data_tell_missing_ends(ctx, reader.set, reader.repeated, reader.dropped);
    data_set_count_actions(ctx, reader.set);
    status = data_finish_reading(ctx, &reader.source, &reader.set, out);
done:
    base_free(ctx, episodes);
    data_set_free(ctx, reader.set);
    data_source_free(ctx, reader.source);
    return status;
}
