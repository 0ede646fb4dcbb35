// Takes a finished run to data that it has never seen: which latent state is each observation? The
// run is made first, of points in a grid whose columns matter; psifold cluster leaves the same.
#include <psifold/psifold.h>

#include <stdio.h>
#include <stdlib.h>

static psi_status keep(void *collector, const psi_episode *episode)
{
    return psi_collector_add(collector, episode);
}

static psi_status collect(psi_ctx *ctx, uint64_t seed, psi_trajectories **out)
{
    psi_task task;
    psi_collector *collector = NULL;
    psi_status status = psi_task_defaults(ctx, "point-column-world", NULL, &task);
    if (status == PSI_OK) status = psi_task_check(ctx, &task);
    if (status != PSI_OK) return status;
    const psi_episode_spec spec = psi_collect_spec(&task);
    status = psi_collector_new(ctx, &spec, &collector);
    if (status != PSI_OK) return status;
    status = psi_collect(ctx, &task, 300, seed, keep, collector, NULL);
    if (status == PSI_OK) return psi_collector_finish(collector, out);
    psi_collector_discard(collector);
    return status;
}

static psi_status make_run(psi_ctx *ctx, const char *path)
{
    psi_trajectories *data = NULL;
    psi_run_folder *folder = NULL;
    psi_run *run = NULL;
    psi_cluster_options options = psi_cluster_defaults();
    options.hidden = 64; // smaller than usual: an example should not take long
    options.trunk_steps = 400;
    psi_status status = collect(ctx, 1, &data);
    if (status == PSI_OK) status = psi_run_folder_open(ctx, path, PSI_FOLDER_REPLACE, &folder);
    if (status == PSI_OK) status = psi_cluster_into(folder, NULL, 0, data, &options, &run);
    psi_run_free(ctx, run);
    psi_trajectories_free(ctx, data);
    return status;
}

static psi_status assign(psi_ctx *ctx, const char *folder)
{
    psi_run *run = NULL;
    psi_trajectories *fresh = NULL;
    psi_purity purity;
    int32_t *labels = NULL;
    bool own;
    psi_status status = psi_run_load(ctx, folder, &run);
    if (status == PSI_OK) status = collect(ctx, 2, &fresh);
    if (status == PSI_OK) labels = malloc(fresh->n_observations * sizeof *labels);
    if (labels) status = psi_run_label(ctx, run, fresh, 0.0, labels, &own);
    if (labels && status == PSI_OK) {
        printf("%zu latent states; the data are the run's own: %s\n", run->n_latent,
               own ? "yes" : "no");
        // generated data know their true latent states: how many points are in the right one?
        status = psi_purity_of(ctx, fresh, labels, run->n_latent, &purity);
        if (status == PSI_OK) {
            printf("19 of 20 points are where they belong: %s\n",
                   purity.accuracy > 0.95 ? "yes" : "no");
        }
    }
    free(labels);
    psi_trajectories_free(ctx, fresh);
    psi_run_free(ctx, run);
    return status;
}

int main(void)
{
    psi_ctx *ctx;
    if (psi_ctx_new(NULL, &ctx) != PSI_OK) return 1;
    psi_status status = make_run(ctx, "points-run");
    if (status == PSI_OK) status = assign(ctx, "points-run");
    if (status != PSI_OK) fprintf(stderr, "%s\n", psi_error(ctx)->message);
    psi_ctx_free(ctx);
    return psi_status_exit_code(status);
}
