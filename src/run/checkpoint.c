#include "run/checkpoint.h"

#include "base/checked.h"
#include "base/context.h"
#include "base/file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// The whole numbers of a state, in the order in which state.npz holds them.
enum { STEPS, LATENT, CONVERGED, FITS, COUNTERS };
enum { FIELDS = 9, MOST_STEPS = 1 << 20 }; // FIELDS of a step, a row of "steps"

static void step_to_row(const psi_cluster_step *step, double row[FIELDS])
{
    const double values[FIELDS] = {
        (double)step->clusters, (double)step->looked_at, step->ignored, step->agreement, step->gap,
        step->epsilon,          step->held_out_error,    step->perfect, step->seconds};
    memcpy(row, values, sizeof values);
}

static psi_cluster_step step_from_row(const double row[FIELDS])
{
    return (psi_cluster_step){.clusters = (size_t)row[0],
                              .looked_at = (size_t)row[1],
                              .ignored = row[2],
                              .agreement = row[3],
                              .gap = row[4],
                              .epsilon = row[5],
                              .held_out_error = row[6],
                              .perfect = row[7],
                              .seconds = row[8]};
}

static psi_status numbered(const psi_run_folder *folder, bool result, const char *format,
                           size_t number, char **out)
{
    char name[48];
    snprintf(name, sizeof name, format, number);
    return result ? run_folder_result(folder, name, out) : run_folder_path(folder, name, out);
}

// ---- out --------------------------------------------------------------------------------------

static void passes_to_array(const run_phases *phases, int64_t passes[PHASES])
{
    for (size_t i = 0; i < PHASES; i++) passes[i] = (int64_t)phases->passes[i];
}

psi_status run_checkpoint_labels(psi_run_folder *folder, size_t number, size_t n,
                                 const int32_t *labels)
{
    psi_status status = PSI_OK;
    char *path = NULL;
    const psi_array array = {"labels", PSI_INT32, {1, {n}}, labels};
    TRY(numbered(folder, true, "clusters-%02zu.npy", number, &path));
    TRY(psi_arrays_save(folder->ctx, path, &array, 1));
done:
    base_free(folder->ctx, path);
    return status;
}

psi_status run_checkpoint_save_phases(psi_run_folder *folder, const run_phases *phases)
{
    psi_status status = PSI_OK;
    char *path = NULL;
    int64_t passes[PHASES];
    const double spent = run_folder_seconds(folder);
    passes_to_array(phases, passes);
    const psi_array arrays[] = {{"seconds", PSI_FLOAT64, {1, {PHASES}}, phases->seconds},
                                {"passes", PSI_INT64, {1, {PHASES}}, passes},
                                {"spent", PSI_FLOAT64, {1, {1}}, &spent}};
    TRY(run_folder_path(folder, "phases.npz", &path));
    TRY(psi_arrays_save(folder->ctx, path, arrays, sizeof arrays / sizeof arrays[0]));
done:
    base_free(folder->ctx, path);
    return status;
}

static psi_status save_state(psi_run_folder *folder, const run_state *state)
{
    psi_status status = PSI_OK;
    const refinement *at = &state->refinement;
    char *path = NULL;
    double *steps = NULL;
    const int64_t counters[COUNTERS] = {[STEPS] = (int64_t)at->n_steps,
                                        [LATENT] = (int64_t)at->n_latent,
                                        [CONVERGED] = at->converged,
                                        [FITS] = (int64_t)at->fits};
    int64_t passes[PHASES];
    passes_to_array(&state->phases, passes);
    TRY(run_checkpoint_save_phases(folder, &state->phases));
    TRY(base_alloc(folder->ctx, at->n_steps, FIELDS * sizeof *steps, &steps));
    for (size_t i = 0; i < at->n_steps; i++) step_to_row(&at->steps[i], steps + i * FIELDS);
    const psi_array arrays[] = {{"counters", PSI_INT64, {1, {COUNTERS}}, counters},
                                {"steps", PSI_FLOAT64, {2, {at->n_steps, FIELDS}}, steps},
                                {"parent", PSI_INT32, {1, {at->n_latent}}, at->parent},
                                {"passes", PSI_INT64, {1, {PHASES}}, passes}};
    TRY(run_folder_path(folder, "state.npz", &path));
    TRY(psi_arrays_save(folder->ctx, path, arrays, sizeof arrays / sizeof arrays[0]));
done:
    base_free(folder->ctx, steps);
    base_free(folder->ctx, path);
    return status;
}

static psi_status save_array(const psi_run_folder *folder, const char *path, const psi_array *array)
{
    return psi_arrays_save(folder->ctx, path, array, 1);
}

psi_status run_checkpoint_refinement(psi_run_folder *folder, const cluster_problem *problem,
                                     const run_state *state)
{
    psi_status status = PSI_OK;
    const refinement *at = &state->refinement;
    const size_t actions = problem->data->n_actions;
    char *labels = NULL, *rewards = NULL, *next = NULL, *before = NULL;
    TRY(numbered(folder, true, "clusters-%02zu.npy", at->n_steps, &labels));
    TRY(save_array(folder, labels,
                   &(psi_array){"labels", PSI_INT32, {1, {problem->n_rows}}, at->labels}));
    if (at->n_steps == 1) {
        TRY(run_folder_path(folder, "rewards.npy", &rewards));
        TRY(save_array(
            folder, rewards,
            &(psi_array){"rewards", PSI_FLOAT32, {2, {problem->n_states, actions}}, at->rewards}));
    }
    TRY(numbered(folder, false, "next-%02zu.safetensors", at->n_steps, &next));
    TRY(numbered(folder, false, "next-%02zu.safetensors", at->n_steps - 1, &before));
    if (at->next && at->next->net) TRY(learn_fit_save(folder->ctx, at->next, next));
    TRY(save_state(folder, state));
    base_remove(before);
done:
    base_free(folder->ctx, before);
    base_free(folder->ctx, next);
    base_free(folder->ctx, rewards);
    base_free(folder->ctx, labels);
    return status;
}

psi_status run_checkpoint_save_trunk(psi_run_folder *folder, const psi_net *trunk)
{
    psi_status status = PSI_OK;
    char *path = NULL;
    TRY(run_folder_result(folder, "trunk.safetensors", &path));
    TRY(psi_net_save(folder->ctx, trunk, path));
done:
    base_free(folder->ctx, path);
    return status;
}

// ---- in ---------------------------------------------------------------------------------------

static psi_status damaged(const psi_run_folder *folder, const char *what)
{
    return FAIL(folder->ctx, PSI_EFORMAT,
                "%s: %s; the checkpoint is damaged, and --replace starts anew", folder->checkpoint,
                what);
}

// An array of exactly this shape.
static psi_status load_array(const psi_run_folder *folder, const char *path, const char *name,
                             psi_dtype dtype, const psi_shape *expected, void *out)
{
    psi_status status = PSI_OK;
    psi_shape shape;
    void *data = NULL;
    TRY(psi_array_load(folder->ctx, path, name, dtype, &shape, &data));
    if (!psi_shape_equal(&shape, expected)) {
        psi_array_free(folder->ctx, data);
        return damaged(folder, "an array has the wrong shape");
    }
    *(void **)out = data;
done:
    return status;
}

static bool within(const int32_t *values, size_t n, int32_t least, size_t below)
{
    for (size_t i = 0; i < n; i++) {
        if (values[i] < least || (values[i] >= 0 && (size_t)values[i] >= below)) return false;
    }
    return true;
}

static psi_status load_passes(const psi_run_folder *folder, const char *path, uint64_t out[PHASES])
{
    psi_status status = PSI_OK;
    int64_t *passes = NULL;
    TRY(load_array(folder, path, "passes", PSI_INT64, &(psi_shape){1, {PHASES}}, &passes));
    for (size_t i = 0; i < PHASES && status == PSI_OK; i++) {
        if (passes[i] < 0) status = damaged(folder, "a phase has a negative number of passes");
        out[i] = (uint64_t)passes[i];
    }
done:
    psi_array_free(folder->ctx, passes);
    return status;
}

static bool are_seconds(const double *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!(values[i] >= 0.0 && isfinite(values[i]))) return false;
    }
    return true;
}

psi_status run_checkpoint_load_phases(psi_run_folder *folder, run_phases *phases)
{
    psi_status status = PSI_OK;
    char *path = NULL, *trunk = NULL;
    double *seconds = NULL, *spent = NULL;
    uint64_t passes[PHASES];
    if (!folder->resumed) return PSI_OK;
    TRY(run_folder_path(folder, "phases.npz", &path));
    TRY(run_folder_result(folder, "trunk.safetensors", &trunk));
    if (access(path, F_OK) != 0) goto done;
    TRY(load_array(folder, path, "seconds", PSI_FLOAT64, &(psi_shape){1, {PHASES}}, &seconds));
    TRY(load_array(folder, path, "spent", PSI_FLOAT64, &(psi_shape){1, {1}}, &spent));
    TRY(load_passes(folder, path, passes));
    if (!are_seconds(seconds, PHASES) || !are_seconds(spent, 1)) {
        status = damaged(folder, "phases.npz holds invalid times");
        goto done;
    }
    folder->spent = spent[0];
    for (size_t i = 0; i < PHASES; i++) phases->seconds[i] += seconds[i];
    if (access(trunk, F_OK) == 0) phases->passes[PHASE_LEARNING] = passes[PHASE_LEARNING];
done:
    psi_array_free(folder->ctx, spent);
    psi_array_free(folder->ctx, seconds);
    base_free(folder->ctx, trunk);
    base_free(folder->ctx, path);
    return status;
}

static bool counters_make_sense(const int64_t *counters, size_t max_latent)
{
    const int64_t most = (int64_t)base_min(max_latent + 1, INT32_MAX);
    return counters[STEPS] >= 1 && counters[STEPS] <= MOST_STEPS && counters[LATENT] >= 1 &&
           counters[LATENT] <= most && counters[CONVERGED] >= 0 && counters[CONVERGED] <= 1 &&
           counters[FITS] >= 0;
}

// The refinement's own files: labels, predicted rewards, heads.
static psi_status load_refinement(psi_run_folder *folder, const cluster_problem *problem,
                                  const learn_approximator *approximator, refinement *at)
{
    psi_status status = PSI_OK;
    const size_t n = problem->n_rows, actions = problem->data->n_actions;
    const size_t classes = at->n_steps > 1 ? at->steps[at->n_steps - 2].clusters : at->n_latent;
    char *labels = NULL, *rewards = NULL, *next = NULL;
    TRY(numbered(folder, true, "clusters-%02zu.npy", at->n_steps, &labels));
    TRY(load_array(folder, labels, NULL, PSI_INT32, &(psi_shape){1, {n}}, &at->labels));
    TRY(run_folder_path(folder, "rewards.npy", &rewards));
    TRY(load_array(folder, rewards, NULL, PSI_FLOAT32,
                   &(psi_shape){2, {problem->n_states, actions}}, &at->rewards));
    if (!within(at->labels, n, -1, at->n_latent)) {
        status = damaged(folder, "a label is out of range");
        goto done;
    }
    // classes of the heads that each cluster comes from
    if (!within(at->parent, at->n_latent, -1, classes)) {
        status = damaged(folder, "a cluster has a parent that does not exist");
        goto done;
    }
    if (approximator->load && at->n_steps > 1) {
        TRY(numbered(folder, false, "next-%02zu.safetensors", at->n_steps, &next));
        TRY(approximator->load(approximator->self, folder->ctx, next, actions, classes, &at->next));
    }
done:
    base_free(folder->ctx, next);
    base_free(folder->ctx, rewards);
    base_free(folder->ctx, labels);
    return status;
}

static psi_status load_steps(psi_run_folder *folder, const char *path, const int64_t *counters,
                             size_t max_latent, size_t n_states, refinement *at)
{
    psi_status status = PSI_OK;
    double *rows = NULL;
    int32_t *parent = NULL;
    const size_t n = (size_t)counters[STEPS];
    at->n_latent = (size_t)counters[LATENT];
    at->converged = counters[CONVERGED] != 0;
    at->fits = (uint64_t)counters[FITS];
    TRY(load_array(folder, path, "steps", PSI_FLOAT64, &(psi_shape){2, {n, FIELDS}}, &rows));
    TRY(load_array(folder, path, "parent", PSI_INT32, &(psi_shape){1, {at->n_latent}}, &parent));
    TRY(base_alloc(folder->ctx, n, sizeof *at->steps, &at->steps));
    TRY(base_alloc_zero(folder->ctx, max_latent + 2, sizeof *at->parent, &at->parent));
    memcpy(at->parent, parent, at->n_latent * sizeof *parent);
    for (size_t i = 0; i < n; i++) {
        const double clusters = rows[i * FIELDS], looked_at = rows[i * FIELDS + 1];
        if (!(clusters >= 1.0 && clusters <= (double)(max_latent + 1))) {
            status = damaged(folder, "a refinement does not have a number of clusters");
            goto done;
        }
        if (!(looked_at >= 0.0 && looked_at <= (double)n_states)) {
            status = damaged(folder, "a refinement looked at more states than there are");
            goto done;
        }
        at->steps[i] = step_from_row(rows + i * FIELDS);
    }
    at->n_steps = n;
    if (at->steps[n - 1].clusters != at->n_latent) {
        status = damaged(folder, "the last refinement has another number of clusters");
    }
done:
    psi_array_free(folder->ctx, parent);
    psi_array_free(folder->ctx, rows);
    return status;
}

bool run_checkpoint_exists(const psi_run_folder *folder)
{
    char path[4096];
    const int length = snprintf(path, sizeof path, "%s/state.npz", folder->checkpoint);
    return folder->resumed && length > 0 && (size_t)length < sizeof path && access(path, F_OK) == 0;
}

psi_status run_checkpoint_load(psi_run_folder *folder, const cluster_problem *problem,
                               const learn_approximator *approximator, size_t max_latent,
                               run_state *state)
{
    psi_status status = PSI_OK;
    char *path = NULL;
    int64_t *counters = NULL;
    if (!run_checkpoint_exists(folder)) return PSI_OK;
    TRY(run_folder_path(folder, "state.npz", &path));
    TRY(load_array(folder, path, "counters", PSI_INT64, &(psi_shape){1, {COUNTERS}}, &counters));
    if (!counters_make_sense(counters, max_latent)) {
        status = damaged(folder, "state.npz makes no sense");
        goto done;
    }
    TRY(load_passes(folder, path, state->phases.passes));
    TRY(load_steps(folder, path, counters, max_latent, problem->n_states, &state->refinement));
    TRY(load_refinement(folder, problem, approximator, &state->refinement));
done:
    psi_array_free(folder->ctx, counters);
    base_free(folder->ctx, path);
    return status;
}

psi_status run_checkpoint_load_trunk(psi_run_folder *folder, psi_net **out)
{
    psi_status status = PSI_OK;
    char *path = NULL;
    *out = NULL;
    if (!folder->resumed) return PSI_OK;
    TRY(run_folder_result(folder, "trunk.safetensors", &path));
    if (access(path, F_OK) == 0) TRY(psi_net_load(folder->ctx, path, out));
done:
    base_free(folder->ctx, path);
    return status;
}
