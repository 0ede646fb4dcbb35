#include "data/reading.h"

#include "base/context.h"

#include <string.h>

psi_status data_reading_begin(psi_ctx *ctx, data_archive *archive, bool latent_states,
                              data_reading *reading)
{
    psi_status status = PSI_OK;
    *reading = (data_reading){.ctx = ctx, .archive = archive};
    TRY(data_source_new(ctx, archive, &reading->source));
    TRY(data_set_new(ctx, archive->path, latent_states, &reading->set));
done:
    return status;
}

void data_reading_free(data_reading *reading)
{
    data_set_free(reading->ctx, reading->set);
    data_source_free(reading->ctx, reading->source);
}

psi_status data_reading_check_rows(const data_reading *reading, const char *field, size_t rows,
                                   size_t expected, const char *of_what)
{
    if (rows == expected) return PSI_OK;
    return FAIL(reading->ctx, PSI_EDATA, "%s: %s has %zu rows, but there are %zu %s",
                reading->archive->path, field, rows, expected, of_what);
}

psi_status data_reading_steps(const data_reading *reading, const char *rewards, const char *actions,
                              data_steps *out)
{
    psi_status status = PSI_OK;
    size_t n;
    *out = (data_steps){0};
    TRY(data_read_reals(reading->archive, rewards, &out->n, &out->rewards));
    TRY(data_read_integers(reading->archive, actions, &n, &out->actions));
    TRY(data_reading_check_rows(reading, actions, n, out->n, "rewards"));
done:
    return status;
}

void data_steps_free(psi_ctx *ctx, data_steps *steps)
{
    base_free(ctx, steps->rewards);
    base_free(ctx, steps->actions);
}

psi_status data_reading_flags(const data_reading *reading, const char *field, size_t expected,
                              const char *of_what, uint8_t **out)
{
    size_t n;
    const psi_status status = data_read_flags(reading->archive, field, &n, out);
    return status == PSI_OK ? data_reading_check_rows(reading, field, n, expected, of_what)
                            : status;
}

psi_status data_reading_add(data_reading *reading, size_t length, const int64_t *actions,
                            int64_t start, const char *field, const double *rewards,
                            bool terminated, bool truncated)
{
    psi_status status = PSI_OK;
    data_set *set = reading->set;
    TRY(data_set_append(reading->ctx, set, length));
    const size_t e = set->view.n_episodes - 1, first = set->episode_offsets[e];
    TRY(data_set_actions(reading->ctx, set, first, actions, length, start, field));
    if (length > 0) memcpy(set->rewards + first, rewards, length * sizeof *rewards);
    reading->neither += !terminated && !truncated;
    set->terminated[e] = terminated;
    set->truncated[e] = truncated || !terminated;
done:
    return status;
}

psi_status data_reading_add_without_last(data_reading *reading, const data_steps *steps,
                                         size_t begin, size_t rows, const char *field, size_t array,
                                         bool terminated)
{
    psi_status status = PSI_OK;
    data_set *set = reading->set;
    const size_t length = terminated ? rows : rows - 1;
    reading->dropped += !terminated;
    if (length == 0) {
        reading->empty++;
        return PSI_OK;
    }
    TRY(data_reading_add(reading, length, steps->actions + begin, 0, field, steps->rewards + begin,
                         terminated, !terminated));
    TRY(data_source_add_rows(reading->ctx, reading->source, array, begin, rows));
    if (!terminated) goto done;
    set->final_missing[set->view.n_episodes - 1] = 1;
    reading->repeated++;
    TRY(data_source_add_rows(reading->ctx, reading->source, array, begin + rows - 1, 1));
done:
    return status;
}

psi_status data_reading_end(data_reading *reading, size_t n_actions, psi_trajectories **out)
{
    psi_ctx *ctx = reading->ctx;
    data_set *set = reading->set;
    data_source *source = reading->source;
    psi_observations *observations;
    data_tell_no_ends(ctx, set, reading->neither);
    data_tell_missing_ends(ctx, set, reading->repeated, reading->dropped);
    if (reading->empty > 0) {
        data_finding(ctx, set, "%zu episodes of a single row have no transition and are left out.",
                     reading->empty);
    }
    if (n_actions > 0) {
        set->view.n_actions = n_actions;
    } else {
        data_set_count_actions(ctx, set);
    }
    reading->source = NULL; // gone from here on, also on failure
    const psi_status status = data_source_finish(ctx, source, &observations);
    if (status != PSI_OK) return status;
    reading->set = NULL;
    return data_set_finish(ctx, set, observations, out);
}
