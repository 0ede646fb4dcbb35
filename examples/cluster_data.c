// Reads a data set and clusters it: how many states does the task have? The data are generated
// first, so that the example runs anywhere; any Minari folder, D4RL, d3rlpy or .npz file will do.
#include <psifold/psifold.h>

#include <stdio.h>

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
    status = psi_collect(ctx, &task, 300, 1, keep, writer, NULL);
    if (status == PSI_OK) return psi_writer_commit(writer);
    psi_writer_discard(writer);
    return status;
}

// What was found is left in a run folder, as psifold cluster does.
static psi_status cluster(psi_ctx *ctx, const char *path, const char *folder)
{
    psi_trajectories *data = NULL;
    psi_run_folder *place = NULL;
    psi_run *run = NULL;
    const psi_cluster_options options = psi_cluster_defaults();
    psi_status status = psi_trajectories_read(ctx, path, NULL, &data);
    if (status == PSI_OK) {
        double reward = 0.0;
        for (size_t t = 0; t < data->n_transitions; t++) reward += data->rewards[t];
        printf("%zu episodes, %zu actions, reward %g\n", data->n_episodes, data->n_actions, reward);
        printf("observations are %s, one for every transition and %zu more\n",
               psi_dtype_name(psi_observations_dtype(data->observations)),
               data->n_observations - data->n_transitions);
    }
    if (status == PSI_OK) status = psi_run_folder_open(ctx, folder, PSI_FOLDER_REPLACE, &place);
    if (status == PSI_OK) status = psi_cluster_into(place, &path, 1, data, &options, &run);
    if (status == PSI_OK) {
        printf("%zu observations are %zu latent states, one of them terminal: %s\n",
               run->n_observations, run->n_latent, run->has_terminal ? "yes" : "no");
        printf("%s\n", psi_verdict_name(run->verdict));
    }
    psi_run_free(ctx, run);
    psi_trajectories_free(ctx, data);
    return status;
}

int main(void)
{
    psi_ctx *ctx;
    if (psi_ctx_new(NULL, &ctx) != PSI_OK) return 1;
    psi_status status = generate(ctx, "cells.npz");
    if (status == PSI_OK) status = cluster(ctx, "cells.npz", "cells-run");
    if (status != PSI_OK) fprintf(stderr, "%s\n", psi_error(ctx)->message);
    psi_ctx_free(ctx);
    return psi_status_exit_code(status);
}
