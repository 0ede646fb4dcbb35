// The cluster functions of a run, c_0 to the final one, as labels of its observations.
#include "run/run.h"

#include "base/checked.h"
#include "base/context.h"
#include "base/file.h"

#include <string.h>

enum { MAX_LEVELS = 10000 };

psi_status run_refinements_folder(psi_ctx *ctx, const char *folder, char **out)
{
    static const char *const places[] = {".", "checkpoint", "checkpoint/result"};
    psi_status status = PSI_OK;
    char name[RUN_NAME_SIZE], *place = NULL, *path = NULL;
    *out = NULL;
    for (size_t i = 0; i < sizeof places / sizeof places[0] && !*out; i++) {
        TRY(base_join(ctx, folder, places[i], &place));
        TRY(base_join(ctx, place, run_labels_name(1, name), &path));
        if (base_is_there(path)) {
            *out = place;
            place = NULL;
        }
        base_free(ctx, path);
        base_free(ctx, place);
        path = place = NULL;
    }
done:
    base_free(ctx, path);
    base_free(ctx, place);
    return status;
}

// From the folder of refinements; NULL if they are not there.
static psi_status load(psi_ctx *ctx, const psi_run *run, const char *folder, size_t refinement,
                       int32_t **out)
{
    psi_status status = PSI_OK;
    char name[RUN_NAME_SIZE], *path = NULL;
    size_t n = run->n_observations;
    *out = NULL;
    if (!folder) return PSI_OK;
    TRY(base_join(ctx, folder, run_labels_name(refinement, name), &path));
    if (base_is_there(path)) TRY(run_labels_load(ctx, folder, name, 0, &n, out));
done:
    base_free(ctx, path);
    return status;
}

psi_status run_refinement_labels(psi_ctx *ctx, const psi_run *run, size_t refinement,
                                 int32_t **labels)
{
    psi_status status = PSI_OK;
    char *folder = NULL;
    *labels = NULL;
    if (run->folder) TRY(run_refinements_folder(ctx, run->folder, &folder));
    TRY(load(ctx, run, folder, refinement, labels));
done:
    base_free(ctx, folder);
    return status;
}

psi_status psi_run_labels(psi_ctx *ctx, const psi_run *run, size_t refinement, int32_t **labels)
{
    if (FREED(ctx, run)) return PSI_EUSAGE;
    const psi_status status = run_refinement_labels(ctx, run, refinement, labels);
    if (status != PSI_OK || *labels) return status;
    return FAIL(ctx, PSI_EMISSING, "%s has no labels of refinement %zu",
                run->folder ? run->folder : "a run that was not kept", refinement);
}

// One more level, which takes the labels over.
static psi_status add_level(psi_ctx *ctx, const psi_run *run, int32_t *labels, psi_levels *levels)
{
    psi_status status = PSI_OK;
    size_t clusters = 0;
    TRY(base_resize(ctx, levels->n + 1, sizeof *levels->labels, &levels->labels));
    TRY(base_resize(ctx, levels->n + 1, sizeof *levels->clusters, &levels->clusters));
    for (size_t i = 0; i < run->n_observations; i++) {
        if (labels[i] >= 0) clusters = base_max(clusters, (size_t)labels[i] + 1);
    }
    levels->labels[levels->n] = labels;
    levels->clusters[levels->n++] = clusters;
    labels = NULL;
done:
    psi_array_free(ctx, labels);
    return status;
}

// A copy of the final labels, or c_0, which knows no more of them than which is terminal.
static psi_status add_own(psi_ctx *ctx, const psi_run *run, bool final, psi_levels *levels)
{
    int32_t *labels = NULL;
    const psi_status status = base_alloc(ctx, run->n_observations, sizeof *labels, &labels);
    if (status != PSI_OK) return status;
    for (size_t i = 0; i < run->n_observations; i++) {
        labels[i] = final ? run->labels[i] : run->has_terminal && run->labels[i] != 0;
    }
    return add_level(ctx, run, labels, levels);
}

psi_status psi_run_levels(psi_ctx *ctx, const psi_run *run, psi_levels *out)
{
    if (FREED(ctx, run)) return PSI_EUSAGE;
    psi_status status = PSI_OK;
    char *folder = NULL;
    *out = (psi_levels){0};
    if (run->folder) TRY(run_refinements_folder(ctx, run->folder, &folder));
    TRY(add_own(ctx, run, false, out));
    for (size_t i = 1; i <= base_min(run->n_steps, MAX_LEVELS); i++) {
        int32_t *labels;
        TRY(load(ctx, run, folder, i, &labels));
        if (!labels) break;
        TRY(add_level(ctx, run, labels, out));
    }
    TRY(add_own(ctx, run, true, out));
done:
    base_free(ctx, folder);
    if (status != PSI_OK) psi_levels_free(ctx, out);
    return status;
}

void psi_levels_free(psi_ctx *ctx, psi_levels *levels)
{
    for (size_t i = 0; i < levels->n; i++) psi_array_free(ctx, levels->labels[i]);
    base_free(ctx, levels->labels);
    base_free(ctx, levels->clusters);
    *levels = (psi_levels){0};
}
