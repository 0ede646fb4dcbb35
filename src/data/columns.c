// Our own .npz layout: all observations of all episodes in one array, L + 1 for an episode of L.
#include "base/checked.h"
#include "base/context.h"
#include "data/formats.h"

typedef struct columns {
    size_t n, episodes; // N transitions, E episodes
    double *rewards;
    int64_t *actions, *lengths, *latent_states;
    uint8_t *terminated, *truncated;
} columns;

static psi_status check_length(psi_ctx *ctx, const char *path, const char *field, size_t got,
                               size_t expected, const char *why)
{
    if (got == expected) return PSI_OK;
    return FAIL(ctx, PSI_EDATA, "%s: %s has %zu rows, but there are %zu %s", path, field, got,
                expected, why);
}

static psi_status read_all(psi_ctx *ctx, data_archive *archive, columns *all)
{
    const char *path = archive->path;
    psi_status status = PSI_OK;
    size_t n;
    TRY(data_read_integers(archive, "episode_lengths", &all->episodes, &all->lengths));
    TRY(data_read_reals(archive, "rewards", &all->n, &all->rewards));
    TRY(data_read_integers(archive, "actions", &n, &all->actions));
    TRY(check_length(ctx, path, "actions", n, all->n, "rewards"));
    size_t sum = 0;
    for (size_t e = 0; e < all->episodes; e++) {
        const int64_t length = all->lengths[e];
        if (length < 1 || (size_t)length > all->n) {
            status = FAIL(ctx, PSI_EDATA, "%s: episode %zu, episode_lengths: %lld steps of %zu",
                          path, e, (long long)length, all->n);
            goto done;
        }
        sum += (size_t)length; // at most E · N, and both are arrays in memory
        if (sum > all->n) break;
    }
    if (sum != all->n) {
        status = FAIL(ctx, PSI_EDATA,
                      "%s: episode_lengths: the lengths sum to %s%zu, but there are "
                      "%zu rewards",
                      path, sum > all->n ? "at least " : "", sum, all->n);
        goto done;
    }
    TRY(data_read_flags(archive, "terminated", &n, &all->terminated));
    TRY(check_length(ctx, path, "terminated", n, all->episodes, "episodes"));
    if (data_archive_has(archive, "truncated")) {
        TRY(data_read_flags(archive, "truncated", &n, &all->truncated));
        TRY(check_length(ctx, path, "truncated", n, all->episodes, "episodes"));
    }
    if (data_archive_has(archive, "latent_states")) {
        TRY(data_read_integers(archive, "latent_states", &n, &all->latent_states));
        TRY(check_length(ctx, path, "latent_states", n, all->n + all->episodes,
                         "states (steps and episodes)"));
    }
done:
    return status;
}

static psi_status read_action_count(psi_ctx *ctx, data_archive *archive, data_set *set)
{
    if (!data_archive_has(archive, "n_actions")) {
        data_set_count_actions(ctx, set);
        return PSI_OK;
    }
    int64_t *count;
    size_t n;
    psi_status status = data_read_integers(archive, "n_actions", &n, &count);
    if (status != PSI_OK) return status;
    if (n == 1 && count[0] > 0 && count[0] <= PSI_MAX_ACTIONS) {
        set->view.n_actions = (size_t)count[0];
    } else {
        status = FAIL(ctx, PSI_EDATA, "%s: n_actions is not a number of actions", archive->path);
    }
    base_free(ctx, count);
    return status;
}

psi_status data_read_columns(psi_ctx *ctx, data_archive *archive, psi_trajectories **out)
{
    psi_status status = PSI_OK;
    data_source *source = NULL;
    data_set *set = NULL;
    columns all = {0};
    size_t index, rows, neither = 0;
    *out = NULL;
    TRY(data_source_new(ctx, archive, &source));
    TRY(data_set_new(ctx, archive->path, data_archive_has(archive, "latent_states"), &set));
    TRY(read_all(ctx, archive, &all));
    for (size_t e = 0, first = 0; e < all.episodes; e++) {
        const size_t length = (size_t)all.lengths[e];
        TRY(data_set_append(ctx, set, length));
        TRY(data_set_actions(ctx, set, first, all.actions + first, length, 0, "actions"));
        for (size_t t = 0; t < length; t++) set->rewards[first + t] = all.rewards[first + t];
        if (all.latent_states) {
            TRY(data_set_latent(ctx, set, psi_row(e, first), all.latent_states + psi_row(e, first),
                                length + 1, "latent_states"));
        }
        set->terminated[e] = all.terminated[e];
        set->truncated[e] = all.truncated ? all.truncated[e] : !all.terminated[e];
        if (!set->terminated[e] && !set->truncated[e]) {
            set->truncated[e] = 1;
            neither++;
        }
        first += length;
    }
    data_tell_no_ends(ctx, set, neither);
    TRY(read_action_count(ctx, archive, set));
    TRY(data_source_add_array(ctx, source, "observations", &index, &rows));
    if (rows == all.n) {
        status = FAIL(ctx, PSI_EDATA,
                      "%s: observations has a row per step, %zu; the last "
                      "observation of every episode is missing (%zu rows are expected)",
                      archive->path, rows, all.n + all.episodes);
        goto done;
    }
    TRY(check_length(ctx, archive->path, "observations", rows, all.n + all.episodes,
                     "states (steps and episodes)"));
    TRY(data_source_add_rows(ctx, source, index, 0, rows));
    status = data_finish_reading(ctx, &source, &set, out);
done:
    base_free(ctx, all.rewards);
    base_free(ctx, all.actions);
    base_free(ctx, all.lengths);
    base_free(ctx, all.latent_states);
    base_free(ctx, all.terminated);
    base_free(ctx, all.truncated);
    data_set_free(ctx, set);
    data_source_free(ctx, source);
    return status;
}
