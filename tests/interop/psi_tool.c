// What the Python tests drive: data sets in, data sets out.
//   psi_tool dump IN OUT [KEY] [stream]   copy a data set, summary as JSON on stdout
//   psi_tool make OUT DTYPE RANK          a small made-up data set
//   psi_tool arrays IN OUT DTYPE [NAME…]  load arrays as DTYPE and save them
#include "base/json.h"

#include <psifold/psifold.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int complain(psi_ctx *ctx)
{
    fprintf(stderr, "%s: %s\n", psi_status_name(psi_error(ctx)->status), psi_error(ctx)->message);
    return psi_status_exit_code(psi_error(ctx)->status);
}

static void print_summary(psi_ctx *ctx, const psi_trajectories *data)
{
    psi_summary *summary;
    if (psi_trajectories_summary(ctx, data, &summary) != PSI_OK) return;
    json_t *problems = json_array(), *missing = json_array(), *shape = json_array();
    for (size_t i = 0; i < summary->n_problems; i++) {
        json_array_append_new(problems, json_string(summary->problems[i]));
    }
    for (size_t e = 0; e < data->n_episodes; e++) {
        json_array_append_new(missing, json_boolean(data->final_missing[e]));
    }
    const psi_shape *dims = psi_observations_shape(data->observations);
    for (size_t d = 0; d < dims->rank; d++) {
        json_array_append_new(shape, json_integer((json_int_t)dims->dim[d]));
    }
    json_t *root = json_pack(
        "{s:I, s:I, s:I, s:s, s:o, s:b, s:o, s:o}", "episodes", (json_int_t)data->n_episodes,
        "transitions", (json_int_t)data->n_transitions, "n_actions", (json_int_t)data->n_actions,
        "dtype", psi_dtype_name(psi_observations_dtype(data->observations)), "shape", shape,
        "in_memory", (int)summary->in_memory, "final_missing", missing, "problems", problems);
    json_dumpf(root, stdout, 0);
    json_decref(root);
    psi_summary_free(ctx, summary);
}

static psi_status copy_out(psi_ctx *ctx, const psi_trajectories *data, const char *path)
{
    const psi_observations *source = data->observations;
    const psi_episode_spec spec = {.observation_dtype = psi_observations_dtype(source),
                                   .observation_shape = *psi_observations_shape(source),
                                   .observation_low = 0,
                                   .observation_high = 255,
                                   .n_actions = data->n_actions,
                                   .latent_states = data->latent_states != NULL};
    psi_writer *writer;
    psi_status status = psi_writer_open(ctx, path, &spec, true, &writer);
    if (status != PSI_OK) return status;
    for (size_t e = 0; e < data->n_episodes && status == PSI_OK; e++) {
        const size_t first = data->episode_offsets[e];
        const size_t length = data->episode_offsets[e + 1] - first;
        uint64_t *rows = malloc((length + 1) * sizeof *rows);
        void *observations = malloc((length + 1) * psi_observations_row_bytes(source));
        if (!rows || !observations) exit(7);
        for (size_t i = 0; i <= length; i++) rows[i] = psi_row(e, first + i);
        status = psi_observations_gather(ctx, source, rows, length + 1, observations);
        const psi_episode episode = {
            .length = length,
            .observations = observations,
            .actions = data->actions + first,
            .rewards = data->rewards + first,
            .latent_states = data->latent_states ? data->latent_states + psi_row(e, first) : NULL,
            .terminated = data->terminated[e],
            .truncated = data->truncated[e]};
        if (status == PSI_OK) status = psi_writer_add(writer, &episode);
        free(rows);
        free(observations);
    }
    if (status == PSI_OK) return psi_writer_commit(writer);
    psi_writer_discard(writer);
    return status;
}

static int dump(psi_ctx *ctx, int n, char **argument)
{
    psi_read_options options = {.size = sizeof options};
    for (int i = 2; i < n; i++) {
        if (strcmp(argument[i], "stream") == 0) {
            options.memory_limit = 1;
        } else {
            options.observation_key = argument[i];
        }
    }
    psi_trajectories *data;
    if (psi_trajectories_read(ctx, argument[0], &options, &data) != PSI_OK) return complain(ctx);
    const psi_status status = copy_out(ctx, data, argument[1]);
    if (status == PSI_OK) print_summary(ctx, data);
    psi_trajectories_free(ctx, data);
    return status == PSI_OK ? 0 : complain(ctx);
}

static psi_dtype dtype_named(const char *name)
{
    static const psi_dtype all[] = {PSI_UINT8, PSI_INT32, PSI_INT64, PSI_FLOAT32, PSI_FLOAT64};
    for (int i = 0; i < 5; i++) {
        if (strcmp(psi_dtype_name(all[i]), name) == 0) return all[i];
    }
    exit(2);
}

static int copy_arrays(psi_ctx *ctx, int n, char **argument)
{
    enum { MOST = 32 };
    const psi_dtype dtype = dtype_named(argument[2]);
    psi_array arrays[MOST];
    void *data[MOST];
    const int count = n > 3 ? n - 3 : 1;
    int loaded = 0;
    psi_status status = count <= MOST ? PSI_OK : PSI_ELIMIT;
    while (status == PSI_OK && loaded < count) {
        psi_array *array = &arrays[loaded];
        *array = (psi_array){.name = n > 3 ? argument[3 + loaded] : NULL, .dtype = dtype};
        status = psi_array_load(ctx, argument[0], array->name, dtype, &array->shape, &data[loaded]);
        if (status != PSI_OK) break;
        array->data = data[loaded++];
    }
    if (status == PSI_OK) status = psi_arrays_save(ctx, argument[1], arrays, (size_t)count);
    while (loaded > 0) psi_array_free(ctx, data[--loaded]);
    return status == PSI_OK ? 0 : complain(ctx);
}

// Observation i of the data set holds i, i+1, … (mod 251); the Python tests know that, too.
static int make(psi_ctx *ctx, const char *path, const char *dtype, int rank)
{
    psi_episode_spec spec = {.observation_shape = {.rank = (size_t)rank, .dim = {3, 40, 36, 2}},
                             .observation_low = 0,
                             .observation_high = 255,
                             .n_actions = 5,
                             .latent_states = true,
                             .name = "made-up-v0",
                             .task_options = "{\"answer\": 42}"};
    spec.observation_dtype = dtype_named(dtype);
    const size_t elements = psi_shape_size(&spec.observation_shape);
    psi_writer *writer;
    if (psi_writer_open(ctx, path, &spec, true, &writer) != PSI_OK) return complain(ctx);
    size_t row = 0;
    for (size_t e = 0; e < 4; e++) {
        const size_t length = 3 + 2 * e, count = (length + 1) * elements;
        int32_t actions[16], states[16];
        double rewards[16], *values = malloc(count * sizeof *values);
        if (!values) return 7;
        for (size_t i = 0; i < count; i++) {
            const size_t value = (row + i / elements + i % elements) % 251;
            switch (spec.observation_dtype) {
            case PSI_UINT8: ((uint8_t *)values)[i] = (uint8_t)value; break;
            case PSI_INT32: ((int32_t *)values)[i] = (int32_t)value; break;
            case PSI_INT64: ((int64_t *)values)[i] = (int64_t)value; break;
            case PSI_FLOAT32: ((float *)values)[i] = (float)value; break;
            case PSI_FLOAT64: values[i] = (double)value; break;
            }
        }
        for (size_t t = 0; t <= length; t++) {
            actions[t] = (int32_t)((row + t) % 4);
            rewards[t] = 0.1 * (double)(row + t);
            states[t] = (int32_t)((row + t) % 3);
        }
        const psi_episode episode = {length, values,     actions,   rewards,
                                     states, e % 2 == 0, e % 2 == 1};
        const psi_status status = psi_writer_add(writer, &episode);
        free(values);
        if (status != PSI_OK) {
            psi_writer_discard(writer);
            return complain(ctx);
        }
        row += length + 1;
    }
    return psi_writer_commit(writer) == PSI_OK ? 0 : complain(ctx);
}

int main(int n, char **argument)
{
    psi_ctx *ctx;
    if (psi_ctx_new(NULL, &ctx) != PSI_OK) return 7;
    int code = 2;
    if (n >= 4 && strcmp(argument[1], "dump") == 0) {
        code = dump(ctx, n - 2, argument + 2);
    } else if (n == 5 && strcmp(argument[1], "make") == 0) {
        code = make(ctx, argument[2], argument[3], atoi(argument[4]));
    } else if (n >= 5 && strcmp(argument[1], "arrays") == 0) {
        code = copy_arrays(ctx, n - 2, argument + 2);
    } else {
        fputs("psi_tool dump IN OUT [KEY] [stream] | make OUT DTYPE RANK | "
              "arrays IN OUT DTYPE [NAME…]\n",
              stderr);
    }
    psi_ctx_free(ctx);
    return code;
}
