// Steps that several studies take: which digits, trajectories, clusterings.
#include "study/study.h"

#include "base/file.h"

#include <stdio.h>
#include <string.h>

psi_status study_images(study *of, const char **images)
{
    psi_status status = PSI_OK;
    const bool choose = strcmp(of->how->digits, "auto") == 0;
    const bool drawn = choose ? !psi_mnist_present(of->ctx) : strcmp(of->how->digits, "drawn") == 0;
    *images = drawn ? "drawn" : "mnist";
    TRY(study_set(of, "digits", json_string(*images)));
    if (choose && drawn) {
        TRY(study_says(of, "MNIST was not fetched ('psifold fetch mnist'): the digits are drawn"));
    }
done:
    return status;
}

// ---- trajectories -------------------------------------------------------------------------------

static psi_status deliver(void *user, const psi_episode *episode)
{
    return psi_writer_add(user, episode);
}

static psi_status collect(study *of, const psi_task *task, size_t episodes, uint64_t seed,
                          const char *path)
{
    psi_status status = PSI_OK;
    psi_ctx *ctx = of->ctx;
    psi_writer *writer = NULL;
    char description[PSI_TASK_JSON_SIZE];
    psi_episode_spec spec = psi_collect_spec(task);
    TRY(psi_task_json(ctx, task, description));
    spec.name = psi_task_name(task->kind);
    spec.task_options = description;
    TRY(psi_writer_open(ctx, path, &spec, false, &writer));
    TRY(psi_collect(ctx, task, episodes, seed, deliver, writer, NULL));
    psi_writer *whole = writer;
    writer = NULL;
    TRY(psi_writer_commit(whole));
done:
    psi_writer_discard(writer);
    return status;
}

typedef struct comparison {
    psi_ctx *ctx;
    const psi_trajectories *data;
    bool same;
} comparison;

static psi_status compare_first(void *user, const psi_episode *episode)
{
    psi_status status = PSI_OK;
    comparison *with = user;
    const psi_trajectories *data = with->data;
    const size_t n = episode->length, bytes = psi_observations_row_bytes(data->observations);
    uint64_t *rows = NULL;
    char *seen = NULL;
    with->same = data->episode_offsets[1] == n &&
                 memcmp(data->actions, episode->actions, n * sizeof *data->actions) == 0 &&
                 memcmp(data->rewards, episode->rewards, n * sizeof *data->rewards) == 0;
    if (!with->same) goto done;
    TRY(base_alloc(with->ctx, n + 1, sizeof *rows, &rows));
    TRY(base_alloc(with->ctx, n + 1, bytes, &seen));
    for (size_t i = 0; i <= n; i++) rows[i] = i;
    TRY(psi_observations_gather(with->ctx, data->observations, rows, n + 1, seen));
    with->same = memcmp(seen, episode->observations, (n + 1) * bytes) == 0;
done:
    base_free(with->ctx, seen);
    base_free(with->ctx, rows);
    return status;
}

// Trajectories that are there must be those that would be collected: as many, the first the same.
static psi_status check_collected(study *of, const psi_task *task, size_t episodes, uint64_t seed,
                                  const char *path, const psi_trajectories *data)
{
    psi_status status = PSI_OK;
    const psi_episode_spec spec = psi_collect_spec(task);
    comparison with = {.ctx = of->ctx, .data = data};
    if (data->n_episodes == episodes &&
        psi_observations_dtype(data->observations) == spec.observation_dtype &&
        psi_shape_size(psi_observations_shape(data->observations)) ==
            psi_shape_size(&spec.observation_shape)) {
        TRY(psi_collect(of->ctx, task, 1, seed, compare_first, &with, NULL));
    }
    if (!with.same) {
        status = FAIL(of->ctx, PSI_EUSAGE,
                      "%s has other trajectories than are asked for; choose another folder or "
                      "remove it",
                      path);
    }
done:
    return status;
}

psi_status study_trajectories(study *of, const psi_task *task, size_t episodes, uint64_t seed,
                              const char *name, psi_trajectories **out)
{
    psi_status status = PSI_OK;
    char *path = NULL;
    const bool there = study_has(of, name);
    TRY(study_path(of, name, &path));
    if (!there) TRY(collect(of, task, episodes, seed, path));
    TRY(psi_trajectories_read(of->ctx, path, NULL, out));
    if (there) TRY(check_collected(of, task, episodes, seed, path, *out));
    TRY(study_says(of, "%s: %zu trajectories, %zu transitions", name, (*out)->n_episodes,
                   (*out)->n_transitions));
done:
    base_free(of->ctx, path);
    return status;
}

// ---- options ------------------------------------------------------------------------------------

psi_status study_cluster_options(const study *of, const char *task, psi_cluster_options *how)
{
    psi_status status = PSI_OK;
    *how = psi_cluster_defaults();
    if (strcmp(of->how->constants, "table-1") == 0) status = psi_cluster_paper(of->ctx, task, how);
    how->seed = of->how->seed;
    how->heads = false; // a study fits its own, on the final network's features
    return status;
}

// ---- clustering ---------------------------------------------------------------------------------

static psi_status watch(void *user, const psi_cluster_step *step, size_t refinement, size_t n,
                        const int32_t *labels)
{
    (void)n, (void)labels;
    return study_says(user, "refinement %zu: %zu latent states, %.2f %% ignored", refinement,
                      step->clusters, 100.0 * step->ignored);
}

static psi_status save_phases(study *of, const psi_run *found, const char *name)
{
    psi_status status = PSI_OK;
    char file[64], *path = NULL;
    json_t *phases = json_array();
    TRY(base_json_made(of->ctx, phases));
    for (size_t i = 0; i < found->n_phases; i++) {
        const psi_cluster_phase *phase = &found->phases[i];
        json_t *one = json_pack("{s:s, s:f, s:I}", "phase", phase->name, "seconds", phase->seconds,
                                "passes", (json_int_t)phase->passes);
        TRY(base_json_made(of->ctx, json_array_append_new(phases, one) == 0 ? phases : NULL));
    }
    snprintf(file, sizeof file, "%s-phases.json", name);
    TRY(study_path(of, file, &path));
    TRY(base_json_save(of->ctx, path, phases));
done:
    json_decref(phases);
    base_free(of->ctx, path);
    return status;
}

// Goes on where an earlier process stopped.
static psi_status cluster_now(study *of, const char *path, const char *data_path,
                              const psi_trajectories *data, const psi_cluster_options *options,
                              const char *name, psi_run **out)
{
    psi_status status = PSI_OK;
    psi_cluster_options how = *options;
    psi_run_folder *folder = NULL;
    how.watch = watch;
    how.user = of;
    TRY(psi_run_folder_open(of->ctx, path, PSI_FOLDER_RESUME, &folder));
    const bool finished = psi_run_folder_finished(folder);
    if (finished) TRY(study_says(of, "%s: clustered before", name));
    psi_run_folder *open = folder;
    folder = NULL;
    TRY(psi_cluster_into(open, &data_path, 1, data, &how, out));
done:
    psi_run_folder_close(folder);
    return status;
}

psi_status study_cluster(study *of, const char *data_name, const psi_trajectories *data,
                         const psi_cluster_options *how, const char *name, psi_run **run)
{
    psi_status status = PSI_OK;
    psi_ctx *ctx = of->ctx;
    char *path = NULL, *data_path = NULL, *page = NULL, file[64];
    TRY(study_path(of, name, &path));
    TRY(study_path(of, data_name, &data_path));
    TRY(cluster_now(of, path, data_path, data, how, name, run));
    TRY(save_phases(of, *run, name));
    snprintf(file, sizeof file, "%s.html", name);
    TRY(study_path(of, file, &page));
    psi_report_options showing = psi_report_defaults();
    showing.replace = true;
    TRY(psi_report_write(ctx, *run, data, page, &showing, NULL));
    TRY(study_says(of, "%s: %zu latent states", name, (*run)->n_latent));
done:
    base_free(ctx, page);
    base_free(ctx, data_path);
    base_free(ctx, path);
    return status;
}
