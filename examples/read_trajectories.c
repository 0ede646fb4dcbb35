// Reads a data set and walks through it: the first thing a user of the library does. Here the data
// are generated first, so that the example runs anywhere.
#include <psifold/psifold.h>

#include <stdio.h>
#include <stdlib.h>

static psi_status keep(void *writer, const psi_episode *episode)
{
    return psi_writer_add(writer, episode);
}

static psi_status generate(psi_ctx *ctx, const char *path)
{
    psi_task task;
    psi_writer *writer = NULL;
    psi_status status = psi_task_defaults(ctx, "column-world", NULL, &task);
    if (status == PSI_OK) status = psi_task_check(ctx, &task);
    if (status != PSI_OK) return status;
    const psi_episode_spec spec = psi_collect_spec(&task);
    status = psi_writer_open(ctx, path, &spec, true, &writer);
    if (status != PSI_OK) return status;
    status = psi_collect(ctx, &task, 100, 1, keep, writer, NULL);
    if (status == PSI_OK) return psi_writer_commit(writer);
    psi_writer_discard(writer);
    return status;
}

static psi_status walk(psi_ctx *ctx, const char *path)
{
    psi_trajectories *data;
    const psi_status status = psi_trajectories_read(ctx, path, NULL, &data);
    if (status != PSI_OK) return status;
    double reward = 0.0;
    for (size_t t = 0; t < data->n_transitions; t++) reward += data->rewards[t];
    printf("%zu episodes, %zu actions, reward %g\n", data->n_episodes, data->n_actions, reward);
    printf("observations are %s, one for every transition and %zu more\n",
           psi_dtype_name(psi_observations_dtype(data->observations)),
           data->n_observations - data->n_transitions);
    psi_trajectories_free(ctx, data);
    return PSI_OK;
}

int main(void)
{
    psi_ctx *ctx;
    if (psi_ctx_new(NULL, &ctx) != PSI_OK) return EXIT_FAILURE;
    psi_status status = generate(ctx, "columns.npz");
    if (status == PSI_OK) status = walk(ctx, "columns.npz");
    if (status != PSI_OK) fprintf(stderr, "%s\n", psi_error(ctx)->message);
    psi_ctx_free(ctx);
    return psi_status_exit_code(status);
}
