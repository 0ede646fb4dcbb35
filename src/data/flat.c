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

static psi_status read_flag_column(const data_reading *reading, const char *name, size_t expected,
                                   uint8_t **out)
{
    size_t n;
    const psi_status status = data_read_flags(reading->archive, name, &n, out);
    return status != PSI_OK ? status
                            : data_reading_check_rows(reading, name, n, expected, "rewards");
}

static psi_status read_table(const data_reading *reading, flat_table *table)
{
    psi_ctx *ctx = reading->ctx;
    data_archive *archive = reading->archive;
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
    TRY(data_reading_check_rows(reading, "actions", n, table->n, "rewards"));
    TRY(read_flag_column(reading, "terminals", table->n, &table->terminals));
    const char *ends = data_archive_has(archive, "timeouts") ? "timeouts" : "episode_terminals";
    if (data_archive_has(archive, ends)) {
        TRY(read_flag_column(reading, ends, table->n, &table->timeouts));
    }
    TRY(data_source_add_array(ctx, reading->source, "observations", &table->observations, &n));
    TRY(data_reading_check_rows(reading, "observations", n, table->n, "rewards"));
    table->has_next = data_archive_has(archive, "next_observations");
    if (table->has_next) {
        TRY(data_source_add_array(ctx, reading->source, "next_observations",
                                  &table->next_observations, &n));
        TRY(data_reading_check_rows(reading, "next_observations", n, table->n, "rewards"));
    }
done:
    return status;
}

// Rows [begin, end) of the table are one episode.
static psi_status add_episode(data_reading *reading, const flat_table *table, size_t begin,
                              size_t end)
{
    psi_status status = PSI_OK;
    const bool terminated = table->terminals[end - 1];
    const size_t rows = end - begin;
    const bool cut = !terminated && !table->has_next; // nothing follows the last row
    const size_t length = cut ? rows - 1 : rows;
    reading->dropped += cut;
    if (length == 0) {
        reading->empty++;
        return PSI_OK;
    }
    TRY(data_reading_add(reading, length, table->actions + begin, 0, "actions",
                         table->rewards + begin, terminated, !terminated));
    TRY(data_source_add_rows(reading->ctx, reading->source, table->observations, begin, rows));
    if (table->has_next) {
        TRY(data_source_add_rows(reading->ctx, reading->source, table->next_observations, end - 1,
                                 1));
    } else if (terminated) {
        TRY(data_reading_repeat(reading, table->observations, end - 1));
    }
done:
    return status;
}

psi_status data_read_flat(psi_ctx *ctx, data_archive *archive, psi_trajectories **out)
{
    psi_status status = PSI_OK;
    data_reading reading;
    flat_table table = {0};
    *out = NULL;
    TRY(data_reading_begin(ctx, archive, false, &reading));
    TRY(read_table(&reading, &table));
    for (size_t begin = 0, i = 0; i < table.n; i++) {
        const bool ends = table.terminals[i] || (table.timeouts && table.timeouts[i]);
        if (!ends && i + 1 < table.n) continue;
        TRY(add_episode(&reading, &table, begin, i + 1));
        begin = i + 1;
    }
    status = data_reading_end(&reading, 0, out);
done:
    base_free(ctx, table.rewards);
    base_free(ctx, table.actions);
    base_free(ctx, table.terminals);
    base_free(ctx, table.timeouts);
    data_reading_free(&reading);
    return status;
}
