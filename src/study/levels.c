// The refinements of a run as tables: labels of every one, sizes of clusters, errors.
#include "study/study.h"

#include "base/file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void study_free_levels(study *of, study_levels *levels)
{
    for (size_t i = 0; levels->labels && i < levels->n; i++) {
        base_free(of->ctx, levels->labels[i]);
    }
    base_free(of->ctx, levels->labels);
    base_free(of->ctx, levels->ignored);
}

static size_t count_ignored(const int32_t *labels, size_t n)
{
    size_t ignored = 0;
    for (size_t i = 0; i < n; i++) ignored += labels[i] < 0;
    return ignored;
}

psi_status study_load_levels(study *of, const char *run_name, const psi_run_result *run,
                             const psi_trajectories *data, study_levels *out)
{
    psi_status status = PSI_OK;
    psi_ctx *ctx = of->ctx;
    const size_t n = run->n_observations;
    char *path = NULL;
    psi_cluster_step *steps = NULL;
    size_t n_steps;
    *out = (study_levels){.n = run->n_refinements + 2, .n_observations = n};
    TRY(study_path(of, run_name, &path));
    TRY(base_alloc_zero(ctx, out->n, sizeof *out->labels, &out->labels));
    TRY(base_alloc(ctx, n, sizeof **out->labels, &out->labels[0]));
    for (size_t i = 0; i < n; i++) out->labels[0][i] = run->has_terminal ? 1 : 0;
    for (size_t e = 0; e < data->n_episodes; e++) {
        if (data->terminated[e]) out->labels[0][data->episode_offsets[e + 1] + e] = 0;
    }
    TRY(base_alloc_zero(ctx, out->n, sizeof *out->ignored, &out->ignored));
    TRY(psi_run_steps(ctx, path, &n_steps, &steps));
    if (n_steps != run->n_refinements) {
        status = FAIL(ctx, PSI_EDATA, "%s has a record of %zu refinements and labels of %zu", path,
                      n_steps, run->n_refinements);
        goto done;
    }
    for (size_t i = 1; i <= run->n_refinements; i++) {
        TRY(psi_run_labels(ctx, path, i, n, &out->labels[i]));
        const psi_cluster_step *step = &steps[i - 1];
        out->ignored[i] = (size_t)llround(step->ignored * (double)step->looked_at);
    }
    TRY(base_alloc(ctx, n, sizeof **out->labels, &out->labels[out->n - 1]));
    memcpy(out->labels[out->n - 1], run->labels, n * sizeof *run->labels);
    out->ignored[out->n - 1] = count_ignored(run->labels, n);
done:
    psi_run_steps_free(ctx, steps);
    base_free(ctx, path);
    return status;
}

static psi_status save_text(study *of, const char *name, const char *text, size_t size)
{
    psi_status status = PSI_OK;
    char *path = NULL;
    base_output *output = NULL;
    TRY(study_path(of, name, &path));
    TRY(base_output_open(of->ctx, path, BASE_FILE, true, &output));
    TRY(base_output_write(output, text, size));
    base_output *whole = output;
    output = NULL;
    TRY(base_output_commit(whole));
done:
    base_output_discard(output);
    base_free(of->ctx, path);
    return status;
}

psi_status study_refinements(study *of, const study_levels *levels, const char *name)
{
    psi_status status = PSI_OK;
    psi_ctx *ctx = of->ctx;
    json_t *counts = json_array();
    char *text = NULL, file[64];
    size_t size = 0, *sizes = NULL;
    FILE *csv = open_memstream(&text, &size);
    if (!csv) return FAIL(ctx, PSI_ENOMEM, "no memory for the table of refinements");
    fprintf(csv, "stage,cluster,observations,share\n");
    for (size_t level = 0; level < levels->n; level++) {
        size_t clusters = 0, labelled = 0;
        const size_t ignored = levels->ignored[level];
        const int32_t *labels = levels->labels[level];
        for (size_t i = 0; i < levels->n_observations; i++) {
            if (labels[i] >= 0 && (size_t)labels[i] >= clusters) clusters = (size_t)labels[i] + 1;
        }
        base_free(ctx, sizes);
        sizes = NULL;
        TRY(base_alloc_zero(ctx, clusters, sizeof *sizes, &sizes));
        for (size_t i = 0; i < levels->n_observations; i++) {
            if (labels[i] < 0) continue;
            sizes[labels[i]]++;
            labelled++;
        }
        const double all = (double)(labelled + ignored); // of what it looked at
        char stage[24];
        snprintf(stage, sizeof stage, "%zu", level);
        if (level + 1 == levels->n) snprintf(stage, sizeof stage, "final");
        fprintf(csv, "%s,ignored,%zu,%.9g\n", stage, ignored, (double)ignored / all);
        for (size_t k = 0; k < clusters; k++) {
            fprintf(csv, "%s,%zu,%zu,%.9g\n", stage, k, sizes[k], (double)sizes[k] / all);
        }
        json_array_append_new(counts, json_pack("{s:s, s:I, s:f}", "stage", stage, "clusters",
                                                (json_int_t)clusters, "ignored_fraction",
                                                (double)ignored / all));
    }
    if (fflush(csv) != 0) {
        status = FAIL(ctx, PSI_ENOMEM, "no memory for the table of refinements");
        goto done;
    }
    snprintf(file, sizeof file, "%s.csv", name);
    TRY(save_text(of, file, text, size));
    TRY(study_file(of, file, "clusters of every refinement: observations in each and their share"));
    TRY(study_set(of, name, json_incref(counts)));
done:
    fclose(csv);
    free(text);
    json_decref(counts);
    base_free(ctx, sizes);
    return status;
}

psi_status study_save_errors(study *of, const char *name, size_t groups, size_t n,
                             const double *errors, const char *const *names)
{
    psi_status status = PSI_OK;
    char *text = NULL, file[64];
    size_t size = 0;
    FILE *csv = open_memstream(&text, &size);
    if (!csv) return FAIL(of->ctx, PSI_ENOMEM, "no memory for the table of errors");
    fputs("trajectory", csv);
    for (size_t g = 0; g < groups; g++) fprintf(csv, ",%s", names[g]);
    fputc('\n', csv);
    for (size_t i = 0; i < n; i++) {
        fprintf(csv, "%zu", i);
        for (size_t g = 0; g < groups; g++) fprintf(csv, ",%.9g", errors[g * n + i]);
        fputc('\n', csv);
    }
    if (fclose(csv) != 0) {
        status = FAIL(of->ctx, PSI_ENOMEM, "no memory for the table of errors");
        goto done;
    }
    snprintf(file, sizeof file, "%s.csv", name);
    TRY(save_text(of, file, text, size));
    TRY(study_file(of, file,
                   "mean absolute error of the rewards of every test trajectory, one "
                   "column for each stage"));
done:
    free(text);
    return status;
}
