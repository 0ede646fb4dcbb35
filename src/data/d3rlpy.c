// d3rlpy 2.1: observations_0, actions_0, rewards_0, terminated_0, observations_1, … Like D4RL it
// knows no last observation.
#include "base/context.h"
#include "base/progress.h"
#include "data/formats.h"

#include <stdio.h>

static psi_status read_episode(data_reading *reading, size_t e)
{
    psi_ctx *ctx = reading->ctx;
    psi_status status = PSI_OK;
    data_steps steps = {0};
    uint8_t *terminated = NULL;
    size_t n, index;
    char rewards[64], actions[64], name[64];
    snprintf(rewards, sizeof rewards, "rewards_%zu", e);
    snprintf(actions, sizeof actions, "actions_%zu", e);
    TRY(data_reading_steps(reading, rewards, actions, &steps));
    snprintf(name, sizeof name, "terminated_%zu", e);
    TRY(data_reading_flags(reading, name, 1, "flags of an episode", &terminated));
    snprintf(name, sizeof name, "observations_%zu", e);
    TRY(data_source_add_array(ctx, reading->source, name, &index, &n));
    TRY(data_reading_check_rows(reading, name, n, steps.n, "rewards"));
    if (n == 0) TRY(FAIL(ctx, PSI_EDATA, "%s: %s is empty", reading->archive->path, name));
    TRY(data_reading_add_without_last(reading, &steps, 0, n, actions, index, terminated[0]));
done:
    data_steps_free(ctx, &steps);
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
