// Trajectories from files, from the built-in tasks and from arrays of the caller's.
#include "flat.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct flat_data {
    psi_trajectories over;   // the caller's columns …
    psi_trajectories *owned; // … or a reader's; NULL
    char *key;               // of over
};

const psi_trajectories *flat_data_of(const flat_data *data)
{
    return data->owned ? data->owned : &data->over;
}

void flat_data_free(flat_session *session, flat_data *data)
{
    if (!data) return;
    if (data->owned) {
        psi_trajectories_free(session->ctx, data->owned);
    } else {
        psi_observations_free(session->ctx, data->over.observations);
    }
    free(data->key);
    free(data);
}

int flat_data_over(flat_session *session, const flat_columns *c, flat_data **out)
{
    *out = NULL;
    flat_data *data = calloc(1, sizeof *data);
    if (!data) return flat_fail(session, PSI_ENOMEM, "no memory for trajectories");
    if (c->observation_key) data->key = strdup(c->observation_key);
    data->over = (psi_trajectories){.n_episodes = c->n_episodes,
                                    .n_transitions = c->n_transitions,
                                    .n_observations = c->n_observations,
                                    .n_actions = c->n_actions,
                                    .actions = c->actions,
                                    .rewards = c->rewards,
                                    .episode_offsets = c->episode_offsets,
                                    .terminated = c->terminated,
                                    .truncated = c->truncated,
                                    .final_missing = c->final_missing,
                                    .latent_states = c->latent_states,
                                    .observation_key = data->key};
    psi_shape shape = {.rank = c->rank};
    memcpy(shape.dim, c->dim, sizeof shape.dim);
    psi_status status =
        psi_observations_over(session->ctx, (psi_dtype)c->dtype, &shape, c->n_observations,
                              c->observations, &data->over.observations);
    if (status == PSI_OK) status = psi_trajectories_check(session->ctx, &data->over, "arrays");
    if (status != PSI_OK) {
        flat_data_free(session, data);
        return (int)status;
    }
    *out = data;
    return PSI_OK;
}

static int keep(flat_session *session, psi_trajectories *owned, flat_data **out)
{
    *out = calloc(1, sizeof **out);
    if (*out) {
        (*out)->owned = owned;
        return PSI_OK;
    }
    psi_trajectories_free(session->ctx, owned);
    return flat_fail(session, PSI_ENOMEM, "no memory for trajectories");
}

int flat_data_read(flat_session *session, const char *const *paths, size_t n, const char *key,
                   flat_data **out)
{
    psi_trajectories *read;
    const psi_read_options how = {.size = sizeof how, .observation_key = key};
    *out = NULL;
    const psi_status status = psi_trajectories_read_all(session->ctx, paths, n, &how, &read);
    return status == PSI_OK ? keep(session, read, out) : (int)status;
}

int flat_run_data(flat_session *session, const flat_run *run, flat_data **out)
{
    psi_trajectories *read;
    *out = NULL;
    const psi_status status = psi_run_data(session->ctx, flat_run_of(run), NULL, NULL, &read);
    return status == PSI_OK ? keep(session, read, out) : (int)status;
}

// {"task": …, "preset": … or null, "options": {name: text, or true for a switch}}
static int read_task(flat_session *session, const char *text, psi_task *task)
{
    json_t *given = NULL, *options = NULL, *value;
    const char *name = NULL, *preset = NULL, *option;
    int status = flat_parse(session, text, &given);
    if (status != PSI_OK) return status;
    if (json_unpack(given, "{s:s, s?s, s?o}", "task", &name, "preset", &preset, "options",
                    &options) != 0)
        status = flat_fail(session, PSI_EUSAGE, "this does not name a task");
    if (status == PSI_OK) status = (int)psi_task_defaults(session->ctx, name, preset, task);
    json_object_foreach(options, option, value)
    {
        if (status != PSI_OK) break;
        status = (int)psi_task_set(session->ctx, task, option, json_string_value(value));
    }
    if (status == PSI_OK) status = (int)psi_task_check(session->ctx, task);
    json_decref(given);
    return status;
}

static psi_status deliver(void *user, const psi_episode *episode)
{
    return psi_collector_add(user, episode);
}

int flat_data_generate(flat_session *session, const char *text, uint64_t episodes, uint64_t seed,
                       flat_data **out)
{
    psi_ctx *ctx = session->ctx;
    psi_collector *collector = NULL;
    psi_trajectories *made = NULL;
    psi_task task;
    *out = NULL;
    if (episodes == 0) return flat_fail(session, PSI_EUSAGE, "episodes must be at least 1");
    const int made_task = read_task(session, text, &task);
    if (made_task != PSI_OK) return made_task;
    const psi_episode_spec spec = psi_collect_spec(&task);
    psi_status status = psi_collector_new(ctx, &spec, &collector);
    if (status == PSI_OK)
        status = psi_collect(ctx, &task, episodes, seed, deliver, collector, NULL);
    if (status != PSI_OK) {
        psi_collector_discard(collector);
        return (int)status;
    }
    status = psi_collector_finish(collector, &made);
    return status == PSI_OK ? keep(session, made, out) : (int)status;
}

void flat_data_columns(const flat_data *data, flat_columns *out)
{
    const psi_trajectories *t = flat_data_of(data);
    const psi_shape *shape = psi_observations_shape(t->observations);
    *out = (flat_columns){.n_episodes = t->n_episodes,
                          .n_transitions = t->n_transitions,
                          .n_observations = t->n_observations,
                          .n_actions = t->n_actions,
                          .dtype = (int32_t)psi_observations_dtype(t->observations),
                          .rank = shape->rank,
                          .observations = psi_observations_data(t->observations),
                          .actions = t->actions,
                          .rewards = t->rewards,
                          .episode_offsets = t->episode_offsets,
                          .terminated = t->terminated,
                          .truncated = t->truncated,
                          .final_missing = t->final_missing,
                          .latent_states = t->latent_states,
                          .observation_key = t->observation_key};
    memcpy(out->dim, shape->dim, sizeof out->dim);
}

int flat_data_gather(flat_session *session, const flat_data *data, const uint64_t *rows, size_t n,
                     void *out)
{
    return (int)psi_observations_gather(session->ctx, flat_data_of(data)->observations, rows, n,
                                        out);
}

int flat_data_summary(flat_session *session, const flat_data *data, char **json)
{
    psi_summary *summary;
    *json = NULL;
    const psi_status status = psi_trajectories_summary(session->ctx, flat_data_of(data), &summary);
    if (status != PSI_OK) return (int)status;
    json_t *problems = json_array(), *rewards = json_array();
    for (size_t i = 0; i < summary->n_problems; i++)
        json_array_append_new(problems, json_string(summary->problems[i]));
    for (size_t i = 0; i < summary->n_rewards; i++)
        json_array_append_new(rewards, json_pack("[f, I]", summary->rewards[i].value,
                                                 (json_int_t)summary->rewards[i].count));
    json_t *object =
        json_pack("{s:o, s:o, s:f, s:f, s:f, s:I, s:I, s:f, s:I, s:I, s:I, s:I}", "problems",
                  problems, "rewards", rewards, "reward_min", summary->reward_min, "reward_max",
                  summary->reward_max, "reward_mean", summary->reward_mean, "length_min",
                  (json_int_t)summary->length_min, "length_max", (json_int_t)summary->length_max,
                  "length_mean", summary->length_mean, "terminated",
                  (json_int_t)summary->n_terminated, "truncated", (json_int_t)summary->n_truncated,
                  "actions_never_taken", (json_int_t)summary->n_actions_never_taken, "memory_bytes",
                  (json_int_t)summary->memory_bytes);
    psi_summary_free(session->ctx, summary);
    return flat_json(session, object, json);
}

// ---- into a file --------------------------------------------------------------------------------

// The bounds of the observation space: whole numbers in memory are a Discrete space of those that
// occur, everything else is unbounded.
static void find_bounds(const psi_trajectories *t, psi_episode_spec *spec)
{
    const void *rows = psi_observations_data(t->observations);
    const int32_t *narrow = spec->observation_dtype == PSI_INT32 ? rows : NULL;
    const int64_t *wide = spec->observation_dtype == PSI_INT64 ? rows : NULL;
    const bool bytes = spec->observation_dtype == PSI_UINT8;
    spec->observation_low = bytes ? 0.0 : -(double)INFINITY;
    spec->observation_high = bytes ? 255.0 : (double)INFINITY;
    if (spec->observation_shape.rank != 0 || (!narrow && !wide)) return;
    spec->observation_low = (double)INFINITY;
    spec->observation_high = -(double)INFINITY;
    for (size_t i = 0; i < t->n_observations; i++) {
        const double x = narrow ? (double)narrow[i] : (double)wide[i];
        spec->observation_low = fmin(spec->observation_low, x);
        spec->observation_high = fmax(spec->observation_high, x);
    }
}

static psi_status write_episode(flat_session *session, const psi_trajectories *t, size_t e,
                                psi_writer *writer)
{
    const uint64_t begin = t->episode_offsets[e], end = t->episode_offsets[e + 1];
    const size_t n = (size_t)(end - begin) + 1, first = (size_t)begin + e;
    const size_t bytes = psi_observations_row_bytes(t->observations);
    char *rows = malloc(n * bytes);
    uint64_t *numbers = malloc(n * sizeof *numbers);
    psi_status status = PSI_ENOMEM;
    if (rows && numbers) {
        for (size_t i = 0; i < n; i++) numbers[i] = first + i;
        status = psi_observations_gather(session->ctx, t->observations, numbers, n, rows);
    } else {
        flat_fail(session, status, "no memory for episode %zu", e);
    }
    const psi_episode episode = {.length = n - 1,
                                 .observations = rows,
                                 .actions = t->actions + begin,
                                 .rewards = t->rewards + begin,
                                 .latent_states =
                                     t->latent_states ? t->latent_states + first : NULL,
                                 .terminated = t->terminated[e],
                                 .truncated = t->truncated[e]};
    if (status == PSI_OK) status = psi_writer_add(writer, &episode);
    free(numbers);
    free(rows);
    return status;
}

int flat_data_save(flat_session *session, const flat_data *data, const char *path, const char *name,
                   int replace)
{
    const psi_trajectories *t = flat_data_of(data);
    psi_episode_spec spec = {.observation_dtype = psi_observations_dtype(t->observations),
                             .observation_shape = *psi_observations_shape(t->observations),
                             .n_actions = t->n_actions,
                             .latent_states = t->latent_states != NULL,
                             .name = name};
    psi_writer *writer;
    for (size_t e = 0; e < t->n_episodes; e++) {
        if (t->final_missing[e] && !t->terminated[e])
            return flat_fail(session, PSI_EUNSUPPORTED,
                             "episode %zu has no last observation, and a file would need one", e);
    }
    find_bounds(t, &spec);
    psi_status status = psi_writer_open(session->ctx, path, &spec, replace != 0, &writer);
    if (status != PSI_OK) return (int)status;
    for (size_t e = 0; status == PSI_OK && e < t->n_episodes; e++)
        status = write_episode(session, t, e, writer);
    if (status == PSI_OK) return (int)psi_writer_commit(writer);
    psi_writer_discard(writer);
    return (int)status;
}
