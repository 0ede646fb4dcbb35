// The refinements of a run as tables: labels of every one, sizes of clusters, errors.
#include "study/study.h"

#include "base/file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

psi_status study_levels(study *of, const psi_run *run, psi_levels *out)
{
    const psi_status status = psi_run_levels(of->ctx, run, out);
    if (status != PSI_OK || out->n == run->n_steps + 2) return status;
    const size_t there = out->n - 2;
    psi_levels_free(of->ctx, out);
    return FAIL(of->ctx, PSI_EDATA, "%s has a record of %zu refinements and labels of %zu",
                run->folder, run->n_steps, there);
}

// Observations that a level looked at and put into no cluster.
static size_t count_ignored(const psi_run *run, const psi_levels *levels, size_t level)
{
    size_t ignored = 0;
    if (level > 0 && level <= run->n_steps) {
        const psi_cluster_step *step = &run->steps[level - 1];
        return (size_t)llround(step->ignored * (double)step->looked_at);
    }
    for (size_t i = 0; i < run->n_observations; i++) ignored += levels->labels[level][i] < 0;
    return ignored;
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

psi_status study_refinements(study *of, const psi_run *run, const psi_levels *levels,
                             const char *name)
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
        size_t labelled = 0;
        const size_t clusters = levels->clusters[level],
                     ignored = count_ignored(run, levels, level);
        const int32_t *labels = levels->labels[level];
        base_free(ctx, sizes);
        sizes = NULL;
        TRY(base_alloc_zero(ctx, clusters, sizeof *sizes, &sizes));
        for (size_t i = 0; i < run->n_observations; i++) {
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
