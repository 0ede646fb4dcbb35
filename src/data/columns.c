// Our own .npz layout: all observations of all episodes in one array, L + 1 for an episode of L.
#include "base/checked.h"
#include "base/context.h"
#include "data/formats.h"

typedef struct columns {
    data_steps steps; // N of them
    size_t episodes;  // E
    int64_t *lengths, *latent_states;
    uint8_t *terminated, *truncated;
} columns;

static psi_status read_all(const data_reading *reading, columns *all)
{
    psi_ctx *ctx = reading->ctx;
    data_archive *archive = reading->archive;
    const char *path = archive->path;
    psi_status status = PSI_OK;
    size_t n;
    TRY(data_read_integers(archive, "episode_lengths", &all->episodes, &all->lengths));
    TRY(data_reading_steps(reading, "rewards", "actions", &all->steps));
    size_t sum = 0;
    for (size_t e = 0; e < all->episodes; e++) {
        const int64_t length = all->lengths[e];
        if (length < 1 || (size_t)length > all->steps.n) {
            status = FAIL(ctx, PSI_EDATA, "%s: episode %zu, episode_lengths: %lld steps of %zu",
                          path, e, (long long)length, all->steps.n);
            goto done;
        }
        sum += (size_t)length; // at most E · N, and both are arrays in memory
        if (sum > all->steps.n) break;
    }
    if (sum != all->steps.n) {
        status = FAIL(ctx, PSI_EDATA,
                      "%s: episode_lengths: the lengths sum to %s%zu, but there are "
                      "%zu rewards",
                      path, sum > all->steps.n ? "at least " : "", sum, all->steps.n);
        goto done;
    }
    TRY(data_reading_flags(reading, "terminated", all->episodes, "episodes", &all->terminated));
    if (data_archive_has(archive, "truncated")) {
        TRY(data_reading_flags(reading, "truncated", all->episodes, "episodes", &all->truncated));
    }
    if (data_archive_has(archive, "latent_states")) {
        TRY(data_read_integers(archive, "latent_states", &n, &all->latent_states));
        TRY(data_reading_check_rows(reading, "latent_states", n, all->steps.n + all->episodes,
                                    "states (steps and episodes)"));
    }
done:
    return status;
}

// 0 where the file does not say.
static psi_status read_action_count(const data_reading *reading, size_t *out)
{
    data_archive *archive = reading->archive;
    int64_t *count;
    size_t n;
    *out = 0;
    if (!data_archive_has(archive, "n_actions")) return PSI_OK;
    psi_status status = data_read_integers(archive, "n_actions", &n, &count);
    if (status != PSI_OK) return status;
    if (n == 1 && count[0] > 0 && count[0] <= PSI_MAX_ACTIONS) {
        *out = (size_t)count[0];
    } else {
        status = FAIL(reading->ctx, PSI_EDATA, "%s: n_actions is not a number of actions",
                      archive->path);
    }
    base_free(reading->ctx, count);
    return status;
}

psi_status data_read_columns(psi_ctx *ctx, data_archive *archive, psi_trajectories **out)
{
    psi_status status = PSI_OK;
    data_reading reading;
    columns all = {0};
    size_t index, rows, n_actions;
    *out = NULL;
    TRY(data_reading_begin(ctx, archive, data_archive_has(archive, "latent_states"), &reading));
    TRY(read_all(&reading, &all));
    for (size_t e = 0, first = 0; e < all.episodes; e++) {
        const size_t length = (size_t)all.lengths[e];
        const bool truncated = all.truncated ? all.truncated[e] : !all.terminated[e];
        TRY(data_reading_add(&reading, length, all.steps.actions + first, 0, "actions",
                             all.steps.rewards + first, all.terminated[e], truncated));
        if (all.latent_states) {
            TRY(data_set_latent(ctx, reading.set, psi_row(e, first),
                                all.latent_states + psi_row(e, first), length + 1,
                                "latent_states"));
        }
        first += length;
    }
    TRY(read_action_count(&reading, &n_actions));
    TRY(data_source_add_array(ctx, reading.source, "observations", &index, &rows));
    if (rows == all.steps.n) {
        status = FAIL(ctx, PSI_EDATA,
                      "%s: observations has a row per step, %zu; the last "
                      "observation of every episode is missing (%zu rows are expected)",
                      archive->path, rows, all.steps.n + all.episodes);
        goto done;
    }
    TRY(data_reading_check_rows(&reading, "observations", rows, all.steps.n + all.episodes,
                                "states (steps and episodes)"));
    TRY(data_source_add_rows(ctx, reading.source, index, 0, rows));
    status = data_reading_end(&reading, n_actions, out);
done:
    data_steps_free(ctx, &all.steps);
    base_free(ctx, all.lengths);
    base_free(ctx, all.latent_states);
    base_free(ctx, all.terminated);
    base_free(ctx, all.truncated);
    data_reading_free(&reading);
    return status;
}
