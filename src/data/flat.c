// D4RL and d3rlpy 1: one long table whose rows are marked where an episode ends. Neither stores the
// last observation of an episode. A terminated episode keeps its last transition all the same: its
// terminal state has no future that anybody would look at. The last row of one that was cut off
// can only serve as the observation its transitions lead to.
#include "base/checked.h"
#include "base/context.h"
#include "data/formats.h"

typedef struct flat_table {
    size_t n; // rows
    double *rewards;
    int64_t *actions;
    uint8_t *terminals, *timeouts; // timeouts may be NULL
    size_t observations;           // arrays of the source
    size_t next_observations;
    bool has_next;
} flat_table;

static psi_status check_rows(psi_ctx *ctx, const char *path, const char *field, size_t got,
                             size_t expected)
{
    if (got == expected) return PSI_OK;
    return FAIL(ctx, PSI_EDATA, "%s: %s has %zu rows, rewards has %zu", path, field, got, expected);
}

static psi_status read_flag_column(psi_ctx *ctx, data_archive *archive, const char *name,
                                   size_t expected, uint8_t **out)
{
    size_t n;
    const psi_status status = data_read_flags(archive, name, &n, out);
    return status != PSI_OK ? status : check_rows(ctx, archive->path, name, n, expected);
}

static psi_status read_table(psi_ctx *ctx, data_source *source, flat_table *table)
{
    data_archive *archive = data_source_archive(source);
    psi_status status = PSI_OK;
    size_t n;
    if (data_archive_has(archive, "discrete_action")) {
        uint8_t *discrete = NULL;
        status = data_read_flags(archive, "discrete_action", &n, &discrete);
        if (status == PSI_OK && n == 1 && !discrete[0]) {
            status = FAIL(ctx, PSI_EUNSUPPORTED,
                          "%s: actions are continuous (discrete_action is "
                          "false); psifold needs discrete ones",
                          archive->path);
        }
        base_free(ctx, discrete);
        if (status != PSI_OK) return status;
    }
    TRY(data_read_reals(archive, "rewards", &table->n, &table->rewards));
    TRY(data_read_integers(archive, "actions", &n, &table->actions));
    TRY(check_rows(ctx, archive->path, "actions", n, table->n));
    TRY(read_flag_column(ctx, archive, "terminals", table->n, &table->terminals));
    const char *ends = data_archive_has(archive, "timeouts") ? "timeouts" : "episode_terminals";
    if (data_archive_has(archive, ends)) {
        TRY(read_flag_column(ctx, archive, ends, table->n, &table->timeouts));
    }
    TRY(data_source_add_array(ctx, source, "observations", &table->observations, &n));
    TRY(check_rows(ctx, archive->path, "observations", n, table->n));
    table->has_next = data_archive_has(archive, "next_observations");
    if (table->has_next) {
        TRY(data_source_add_array(ctx, source, "next_observations", &table->next_observations, &n));
        TRY(check_rows(ctx, archive->path, "next_observations", n, table->n));
    }
done:
    return status;
}

typedef struct flat_counts {
    size_t dropped, empty, repeated; // last rows of episodes
} flat_counts;

// Rows [begin, end) of the table are one episode.
static psi_status add_episode(psi_ctx *ctx, data_set *set, data_source *source,
                              const flat_table *table, size_t begin, size_t end,
                              flat_counts *counts)
{
    const bool terminated = table->terminals[end - 1];
    const size_t rows = end - begin;
    const bool cut = !terminated && !table->has_next; // nothing follows the last row
    const size_t length = cut ? rows - 1 : rows;
    counts->dropped += cut;
    if (length == 0) {
        counts->empty++;
        return PSI_OK;
    }
    psi_status status = PSI_OK;
    TRY(data_set_append(ctx, set, length));
    const size_t e = set->view.n_episodes - 1, first = set->episode_offsets[e];
    TRY(data_set_actions(ctx, set, first, table->actions + begin, length, 0, "actions"));
    for (size_t t = 0; t < length; t++) set->rewards[first + t] = table->rewards[begin + t];
    set->terminated[e] = terminated;
    set->truncated[e] = !terminated;
    TRY(data_source_add_rows(ctx, source, table->observations, begin, rows));
    if (table->has_next) {
        TRY(data_source_add_rows(ctx, source, table->next_observations, end - 1, 1));
    } else if (terminated) {
        TRY(data_source_add_rows(ctx, source, table->observations, end - 1, 1));
        set->final_missing[e] = 1;
        counts->repeated++;
    }
done:
    return status;
}

static void tell(psi_ctx *ctx, data_set *set, const flat_counts *counts)
{
    data_tell_missing_ends(ctx, set, counts->repeated, counts->dropped);
    if (counts->empty) {
        data_finding(ctx, set, "%zu episodes of a single row have no transition and are left out.",
                     counts->empty);
    }
}

psi_status data_read_flat(psi_ctx *ctx, data_archive *archive, psi_trajectories **out)
{
    psi_status status = PSI_OK;
    data_source *source = NULL;
    data_set *set = NULL;
    flat_table table = {0};
    flat_counts counts = {0};
    *out = NULL;
    TRY(data_source_new(ctx, archive, &source));
    TRY(data_set_new(ctx, archive->path, false, &set));
    TRY(read_table(ctx, source, &table));
    for (size_t begin = 0, i = 0; i < table.n; i++) {
        const bool ends = table.terminals[i] || (table.timeouts && table.timeouts[i]);
        if (!ends && i + 1 < table.n) continue;
        TRY(add_episode(ctx, set, source, &table, begin, i + 1, &counts));
        begin = i + 1;
    }
    tell(ctx, set, &counts);
    data_set_count_actions(ctx, set);
    status = data_finish_reading(ctx, &source, &set, out);
done:
    base_free(ctx, table.rewards);
    base_free(ctx, table.actions);
    base_free(ctx, table.terminals);
    base_free(ctx, table.timeouts);
    data_set_free(ctx, set);
    data_source_free(ctx, source);
    return status;
}
