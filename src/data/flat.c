// D4RL and d3rlpy 1: one long table whose rows are marked where an episode ends. The last
// observation of an episode is there only if there are next_observations.
#include "base/checked.h"
#include "base/context.h"
#include "data/formats.h"

typedef struct flat_table {
    data_steps steps;              // rows
    uint8_t *terminals, *timeouts; // timeouts may be NULL
    size_t observations;           // arrays of the source
    size_t next_observations;
    bool has_next;
} flat_table;

static psi_status check_actions(const data_reading *reading)
{
    uint8_t *discrete = NULL;
    size_t n;
    if (!data_archive_has(reading->archive, "discrete_action")) return PSI_OK;
    psi_status status = data_read_flags(reading->archive, "discrete_action", &n, &discrete);
    if (status == PSI_OK && n == 1 && !discrete[0]) {
        status = FAIL(reading->ctx, PSI_EUNSUPPORTED,
                      "%s: actions are continuous (discrete_action is false); psifold needs "
                      "discrete ones",
                      reading->archive->path);
    }
    base_free(reading->ctx, discrete);
    return status;
}

static psi_status read_table(const data_reading *reading, flat_table *table)
{
    psi_ctx *ctx = reading->ctx;
    data_archive *archive = reading->archive;
    psi_status status = PSI_OK;
    size_t n;
    TRY(check_actions(reading));
    TRY(data_reading_steps(reading, "rewards", "actions", &table->steps));
    const size_t rows = table->steps.n;
    TRY(data_reading_flags(reading, "terminals", rows, "rewards", &table->terminals));
    const char *ends = data_archive_has(archive, "timeouts") ? "timeouts" : "episode_terminals";
    if (data_archive_has(archive, ends)) {
        TRY(data_reading_flags(reading, ends, rows, "rewards", &table->timeouts));
    }
    TRY(data_source_add_array(ctx, reading->source, "observations", &table->observations, &n));
    TRY(data_reading_check_rows(reading, "observations", n, rows, "rewards"));
    table->has_next = data_archive_has(archive, "next_observations");
    if (table->has_next) {
        TRY(data_source_add_array(ctx, reading->source, "next_observations",
                                  &table->next_observations, &n));
        TRY(data_reading_check_rows(reading, "next_observations", n, rows, "rewards"));
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
    const size_t length = end - begin;
    if (!table->has_next) {
        return data_reading_add_without_last(reading, &table->steps, begin, length, "actions",
                                             table->observations, terminated);
    }
    TRY(data_reading_add(reading, length, table->steps.actions + begin, 0, "actions",
                         table->steps.rewards + begin, terminated, !terminated));
    TRY(data_source_add_rows(reading->ctx, reading->source, table->observations, begin, length));
    TRY(data_source_add_rows(reading->ctx, reading->source, table->next_observations, end - 1, 1));
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
    for (size_t begin = 0, i = 0; i < table.steps.n; i++) {
        const bool ends = table.terminals[i] || (table.timeouts && table.timeouts[i]);
        if (!ends && i + 1 < table.steps.n) continue;
        TRY(add_episode(&reading, &table, begin, i + 1));
        begin = i + 1;
    }
    status = data_reading_end(&reading, 0, out);
done:
    data_steps_free(ctx, &table.steps);
    base_free(ctx, table.terminals);
    base_free(ctx, table.timeouts);
    data_reading_free(&reading);
    return status;
}
