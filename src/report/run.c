#include "report/run.h"

#include "base/checked.h"
#include "base/context.h"
#include "base/file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { JSON_LIMIT = 1 << 20, MAX_STEPS = 10000 };

void report_run_free(report_run *run)
{
    if (!run) return;
    psi_ctx *ctx = run->ctx;
    for (size_t i = 0; i < run->n_levels; i++) psi_array_free(ctx, run->levels[i]);
    base_free(ctx, run->levels);
    base_free(ctx, run->level_clusters);
    psi_run_steps_free(ctx, run->steps);
    if (!run->finished) base_free(ctx, run->labels);
    psi_run_result_free(ctx, run->result);
    psi_mdp_free(ctx, run->counted);
    json_decref(run->manifest);
    base_free(ctx, run);
}

static bool is_there(psi_ctx *ctx, const char *folder, const char *name, psi_status *status)
{
    char *path = NULL;
    *status = base_join(ctx, folder, name, &path);
    const bool there = *status == PSI_OK && base_is_there(path);
    base_free(ctx, path);
    return there;
}

const json_t *report_run_get(const report_run *run, const char *object, const char *member)
{
    return json_object_get(json_object_get(run->manifest, object), member);
}

const json_t *report_run_timing(const report_run *run, const char *member)
{
    const json_t *timing = report_run_get(run, "timings", member);
    return timing ? timing : json_object_get(run->manifest, member);
}

const char *report_run_data_path(const report_run *run)
{
    return json_string_value(report_run_get(run, "data", "path"));
}

// Labels of one refinement: any number of observations where that is not known yet.
static psi_status load_level(report_run *run, const char *folder, size_t level)
{
    psi_status status = PSI_OK;
    char name[40], *path = NULL;
    psi_shape shape;
    void *values = NULL;
    snprintf(name, sizeof name, "clusters-%02zu.npy", level + 1);
    TRY(base_join(run->ctx, folder, name, &path));
    TRY(psi_array_load(run->ctx, path, NULL, PSI_INT32, &shape, &values));
    if (run->n_observations == 0 && shape.rank == 1) run->n_observations = shape.dim[0];
    if (shape.rank != 1 || shape.dim[0] != run->n_observations || shape.dim[0] == 0) {
        status =
            FAIL(run->ctx, PSI_EDATA, "%s does not have one label for each of %zu observations",
                 path, run->n_observations);
        goto done;
    }
    const int32_t *labels = values;
    size_t clusters = 0;
    for (size_t i = 0; i < run->n_observations; i++) {
        // a cluster has at least one observation: a label beyond their number is damage
        if (labels[i] < -1 || (labels[i] >= 0 && (size_t)labels[i] >= run->n_observations)) {
            status = FAIL(run->ctx, PSI_EDATA, "%s: label %d of observation %zu makes no sense",
                          path, labels[i], i);
            goto done;
        }
        if (labels[i] >= 0) clusters = base_max(clusters, (size_t)labels[i] + 1);
    }
    run->levels[level] = values;
    run->level_clusters[level] = clusters;
    run->n_levels = level + 1;
    values = NULL;
done:
    psi_array_free(run->ctx, values);
    base_free(run->ctx, path);
    return status;
}

// All refinements whose labels are there, from the first on: those of a finished run may have been
// removed to save space.
static psi_status load_levels(report_run *run, const char *folder)
{
    psi_status status = PSI_OK;
    size_t n = 0;
    for (bool there = true; there && n < MAX_STEPS; n += there) {
        char name[40];
        snprintf(name, sizeof name, "clusters-%02zu.npy", n + 1);
        there = is_there(run->ctx, folder, name, &status);
        TRY(status);
    }
    if (run->finished) n = base_min(n, run->n_steps);
    TRY(base_alloc_zero(run->ctx, n, sizeof *run->levels, &run->levels));
    TRY(base_alloc_zero(run->ctx, n, sizeof *run->level_clusters, &run->level_clusters));
    for (size_t level = 0; level < n; level++) TRY(load_level(run, folder, level));
done:
    return status;
}

// What labels alone tell of the refinements, where their record was not written yet.
static psi_status count_steps(report_run *run)
{
    psi_status status = PSI_OK;
    TRY(base_alloc_zero(run->ctx, run->n_levels, sizeof *run->steps, &run->steps));
    for (size_t level = 0; level < run->n_levels; level++) {
        size_t ignored = 0;
        for (size_t i = 0; i < run->n_observations; i++) ignored += run->levels[level][i] < 0;
        run->steps[level] =
            (psi_cluster_step){.clusters = run->level_clusters[level],
                               .looked_at = run->n_observations,
                               .ignored = (double)ignored / (double)run->n_observations,
                               .agreement = NAN,
                               .epsilon = NAN,
                               .seconds = NAN};
    }
    run->n_steps = run->n_levels;
done:
    return status;
}

static psi_status load_finished(report_run *run)
{
    psi_status status = PSI_OK;
    TRY(psi_run_load(run->ctx, run->folder, &run->result));
    const psi_run_result *result = run->result;
    run->n_observations = result->n_observations;
    run->n_latent = result->n_latent;
    run->n_actions = result->n_actions;
    run->has_terminal = result->has_terminal;
    run->gamma = result->gamma;
    run->labels = result->labels;
    run->model = result->model;
    run->finished = true;
    TRY(psi_run_steps(run->ctx, run->folder, &run->n_steps, &run->steps));
    TRY(load_levels(run, run->folder));
done:
    return status;
}

// The discount that an interrupted run was started with: of a manifest without results, or of the
// checkpoint; the usual one where neither says.
static psi_status find_gamma(report_run *run)
{
    enum { START_LIMIT = 1 << 20 };
    psi_status status = PSI_OK;
    char *path = NULL;
    json_t *start = NULL;
    const json_t *gamma = report_run_get(run, "options", "gamma");
    TRY(base_join(run->ctx, run->folder, "checkpoint/start.json", &path));
    if (!gamma && base_is_there(path)) {
        TRY(base_json_load(run->ctx, path, START_LIMIT, &start));
        gamma = json_object_get(json_object_get(start, "options"), "gamma");
    }
    run->gamma = json_number_value(gamma);
    if (!(run->gamma > 0.0 && run->gamma < 1.0)) run->gamma = psi_cluster_defaults().gamma;
done:
    json_decref(start);
    base_free(run->ctx, path);
    return status;
}

// What an interrupted run left: in its folder, or in what is to become its result.
static psi_status load_interrupted(report_run *run)
{
    static const char *const places[] = {".", "checkpoint", "checkpoint/result"};
    psi_status status = PSI_OK;
    char *from = NULL;
    bool begun = false, labels = false;
    for (size_t i = 0; i < sizeof places / sizeof places[0] && !labels; i++) {
        base_free(run->ctx, from);
        TRY(base_join(run->ctx, run->folder, places[i], &from));
        begun |= i > 0 && base_is_there(from);
        labels = is_there(run->ctx, from, "clusters-01.npy", &status);
        TRY(status);
    }
    if (!labels) {
        status =
            begun ? FAIL(run->ctx, PSI_EMISSING,
                         "%s has no labels yet: its first refinement was not finished", run->folder)
                  : FAIL(run->ctx, PSI_EMISSING,
                         "%s is not the folder of a run: it has neither a manifest with "
                         "latent.npz nor labels",
                         run->folder);
        goto done;
    }
    TRY(find_gamma(run));
    TRY(load_levels(run, from));
    const bool recorded = is_there(run->ctx, from, "refinements.jsonl", &status);
    TRY(status);
    TRY(recorded ? psi_run_steps(run->ctx, from, &run->n_steps, &run->steps) : count_steps(run));
    const size_t last = run->n_levels - 1;
    run->n_latent = run->level_clusters[last];
    TRY(base_alloc(run->ctx, run->n_observations, sizeof *run->labels, &run->labels));
    memcpy(run->labels, run->levels[last], run->n_observations * sizeof *run->labels);
done:
    base_free(run->ctx, from);
    return status;
}

psi_status report_run_open(psi_ctx *ctx, const char *folder, report_run **out)
{
    psi_status status = PSI_OK;
    report_run *run = NULL;
    char *path = NULL;
    *out = NULL;
    if (!base_is_there(folder)) {
        return FAIL(ctx, PSI_EIO, "%s: there is no such folder", folder);
    }
    TRY(base_alloc_zero(ctx, 1, sizeof *run, &run));
    run->ctx = ctx;
    run->folder = folder;
    const bool has_manifest = is_there(ctx, folder, "manifest.json", &status);
    TRY(status);
    const bool has_model = is_there(ctx, folder, "latent.npz", &status);
    TRY(status);
    if (has_manifest) {
        TRY(base_join(ctx, folder, "manifest.json", &path));
        TRY(base_json_load(ctx, path, JSON_LIMIT, &run->manifest));
    }
    TRY(has_manifest && has_model ? load_finished(run) : load_interrupted(run));
    *out = run;
    run = NULL;
done:
    base_free(ctx, path);
    report_run_free(run);
    return status;
}

psi_status report_count_model(const report_run *run, const psi_trajectories *data,
                              const int32_t *labels, size_t n_latent, psi_mdp **out)
{
    psi_status status = PSI_OK;
    psi_counts *counts = NULL;
    const psi_paths paths = psi_trajectories_paths(data, labels, n_latent, run->has_terminal);
    *out = NULL;
    TRY(psi_counts_new(run->ctx, &paths, &counts));
    TRY(psi_counts_model(run->ctx, counts, 1.0, out));
done:
    psi_counts_free(run->ctx, counts);
    return status;
}

psi_status report_run_meet(report_run *run, const psi_trajectories *data)
{
    if (run->finished) return PSI_OK;
    run->n_actions = data->n_actions;
    run->has_terminal = false;
    for (size_t e = 0; e < data->n_episodes; e++) run->has_terminal |= data->terminated[e] != 0;
    const psi_status status =
        report_count_model(run, data, run->labels, run->n_latent, &run->counted);
    run->model = run->counted;
    return status;
}
