// A run folder read back: finished, or what there is of an interrupted run. Every file in it is
// taken to be hostile.
#include "run/run.h"

#include "base/checked.h"
#include "base/context.h"
#include "base/file.h"
#include "run/known.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { STEPS_LIMIT = 1 << 22, MAX_STEPS = 10000 }; // bytes, refinements

static psi_status is_there(psi_ctx *ctx, const char *folder, const char *name, bool *there)
{
    char *path = NULL;
    const psi_status status = base_join(ctx, folder, name, &path);
    *there = status == PSI_OK && base_is_there(path);
    base_free(ctx, path);
    return status;
}

// ---- labels -------------------------------------------------------------------------------------

const char *run_labels_name(size_t refinement, char name[RUN_NAME_SIZE])
{
    snprintf(name, RUN_NAME_SIZE, "clusters-%02zu.npy", refinement);
    return name;
}

psi_status run_labels_load(psi_ctx *ctx, const char *folder, const char *name, size_t below,
                           size_t *n, int32_t **out)
{
    psi_status status = PSI_OK;
    char *path = NULL;
    psi_shape shape;
    void *values = NULL;
    *out = NULL;
    TRY(base_join(ctx, folder, name, &path));
    TRY(psi_array_load(ctx, path, NULL, PSI_INT32, &shape, &values));
    if (*n == 0 && shape.rank == 1) *n = shape.dim[0];
    if (shape.rank != 1 || shape.dim[0] != *n || *n == 0) {
        TRY(FAIL(ctx, PSI_EDATA, "%s does not have one label for each of %zu observations", path,
                 *n));
    }
    // a cluster has at least one observation: a label beyond their number is damage, too
    const size_t most = below > 0 ? below : *n;
    const int32_t *labels = values;
    for (size_t i = 0; i < *n; i++) {
        if (labels[i] >= -1 && (labels[i] < 0 || (size_t)labels[i] < most)) continue;
        TRY(FAIL(ctx, PSI_EDATA, "%s: label %d of observation %zu is not -1 … %zu", path, labels[i],
                 i, most - 1));
    }
    *out = values;
    values = NULL;
done:
    psi_array_free(ctx, values);
    base_free(ctx, path);
    return status;
}

static psi_status load_confidence(psi_ctx *ctx, psi_run *run)
{
    psi_status status = PSI_OK;
    char *path = NULL;
    psi_shape shape;
    void *values = NULL;
    TRY(base_join(ctx, run->folder, "confidence.npy", &path));
    if (!base_is_there(path)) goto done; // the method has none
    TRY(psi_array_load(ctx, path, NULL, PSI_FLOAT32, &shape, &values));
    bool fits = shape.rank == 1 && shape.dim[0] == run->n_observations;
    for (size_t i = 0; fits && i < run->n_observations; i++) {
        const float sure = ((const float *)values)[i];
        fits = sure >= 0.0f && sure <= 1.0f;
    }
    if (!fits) TRY(FAIL(ctx, PSI_EDATA, "%s does not have a probability for each label", path));
    run->confidence = values;
    values = NULL;
done:
    psi_array_free(ctx, values);
    base_free(ctx, path);
    return status;
}

// ---- the record of the refinements --------------------------------------------------------------

static psi_status load_steps(psi_ctx *ctx, const char *folder, psi_run *run)
{
    psi_status status = PSI_OK;
    char *path = NULL, *text = NULL;
    size_t size, lines = 0;
    TRY(base_join(ctx, folder, "refinements.jsonl", &path));
    TRY(base_read_file(ctx, path, STEPS_LIMIT, &text, &size));
    for (size_t i = 0; i < size; i++) lines += text[i] == '\n';
    lines = base_min(lines, MAX_STEPS);
    TRY(base_alloc_zero(ctx, lines, sizeof *run->steps, &run->steps));
    const char *line = text;
    for (size_t i = 0; i < lines; i++) {
        const char *end = memchr(line, '\n', size - (size_t)(line - text));
        TRY(run_step_parse(ctx, path, i + 1, line, (size_t)(end - line), &run->steps[i]));
        line = end + 1;
    }
    run->n_steps = lines;
done:
    base_free(ctx, text);
    base_free(ctx, path);
    return status;
}

// ---- the latent model and the certificate -------------------------------------------------------

// An array of exactly this shape.
static psi_status load_array(psi_ctx *ctx, const char *path, const char *name, psi_dtype dtype,
                             const psi_shape *expected, void *out)
{
    psi_status status = PSI_OK;
    psi_shape shape;
    void *values = NULL;
    TRY(psi_array_load(ctx, path, name, dtype, &shape, &values));
    if (!psi_shape_equal(&shape, expected)) {
        TRY(FAIL(ctx, PSI_EDATA, "%s: the shape of %s does not fit the manifest", path, name));
    }
    memcpy(out, &values, sizeof values);
    values = NULL;
done:
    psi_array_free(ctx, values);
    return status;
}

// {w_a, M_a} from latent.npz; psi_mdp_from_entries checks that it is a model.
static psi_status load_model(psi_ctx *ctx, psi_run *run)
{
    psi_status status = PSI_OK;
    const size_t k = run->n_latent, actions = run->n_actions;
    double *w = NULL, *m = NULL, *reward = NULL, *probability = NULL;
    uint64_t *row = NULL;
    int32_t *next = NULL;
    uint8_t *terminal = NULL;
    char *path = NULL;
    size_t cells, n = 0;
    if (!base_mul(k, k, &cells) || !base_mul(cells, actions, &cells)) {
        return FAIL(ctx, PSI_ELIMIT, "%s: %zu latent states are too many", run->folder, k);
    }
    TRY(base_join(ctx, run->folder, "latent.npz", &path));
    TRY(load_array(ctx, path, "w", PSI_FLOAT64, &(psi_shape){2, {actions, k}}, &w));
    TRY(load_array(ctx, path, "M", PSI_FLOAT64, &(psi_shape){3, {actions, k, k}}, &m));
    for (size_t i = 0; i < cells; i++) n += m[i] != 0.0;
    TRY(base_alloc(ctx, n, sizeof *row, &row));
    TRY(base_alloc(ctx, n, sizeof *next, &next));
    TRY(base_alloc(ctx, n, sizeof *probability, &probability));
    TRY(base_alloc(ctx, k * actions, sizeof *reward, &reward));
    TRY(base_alloc_zero(ctx, k, sizeof *terminal, &terminal));
    terminal[0] = run->has_terminal;
    n = 0;
    for (size_t i = 0; i < cells; i++) {
        if (m[i] == 0.0) continue;
        row[n] = i / k % k * actions + i / k / k;
        next[n] = (int32_t)(i % k);
        probability[n++] = m[i];
    }
    for (size_t i = 0; i < k * actions; i++) reward[i % k * actions + i / k] = w[i];
    TRY(psi_mdp_from_entries(ctx, k, actions, n, row, next, probability, reward, terminal,
                             &run->model));
done:
    base_free(ctx, terminal);
    base_free(ctx, reward);
    base_free(ctx, probability);
    base_free(ctx, next);
    base_free(ctx, row);
    psi_array_free(ctx, m);
    psi_array_free(ctx, w);
    base_free(ctx, path);
    return status;
}

// The numbers behind the summary that the manifest has.
static psi_status load_certificate(psi_ctx *ctx, psi_run *run)
{
    psi_status status = PSI_OK;
    psi_certificate *made = run->certificate;
    const psi_shape shape = {2, {run->n_latent, run->n_actions}};
    char *path = NULL;
    if (!made) return PSI_OK;
    TRY(base_join(ctx, run->folder, "certificate.npz", &path));
    TRY(load_array(ctx, path, "visits", PSI_INT64, &shape, &made->visits));
    TRY(load_array(ctx, path, "reward_error", PSI_FLOAT64, &shape, &made->reward_error));
    TRY(load_array(ctx, path, "reward_doubt", PSI_FLOAT64, &shape, &made->reward_doubt));
    TRY(load_array(ctx, path, "sf_error", PSI_FLOAT64, &shape, &made->sf_error));
    TRY(load_array(ctx, path, "sf_doubt", PSI_FLOAT64, &shape, &made->sf_doubt));
done:
    base_free(ctx, path);
    return status;
}

static psi_status load_network(psi_ctx *ctx, psi_run *run)
{
    psi_status status = PSI_OK;
    char *path = NULL;
    if (run->approximator == PSI_APPROXIMATOR_TABLE) return PSI_OK;
    TRY(base_join(ctx, run->folder, "representation.safetensors", &path));
    if (run->failure && !base_is_there(path)) goto done; // it goes without one
    TRY(psi_net_load(ctx, path, &run->representation));
    if (psi_net_n_outputs(run->representation) != run->n_latent) {
        TRY(FAIL(ctx, PSI_EDATA, "%s tells %zu latent states apart, not %zu", path,
                 psi_net_n_outputs(run->representation), run->n_latent));
    }
done:
    base_free(ctx, path);
    return status;
}

// ---- the whole run ------------------------------------------------------------------------------

static psi_status new_run(psi_ctx *ctx, const char *folder, psi_run **out)
{
    psi_status status = PSI_OK;
    psi_run *run = NULL;
    TRY(base_alloc_zero(ctx, 1, sizeof *run, &run));
    run->options = psi_cluster_defaults();
    TRY(base_copy_text(ctx, folder, &run->folder));
    *out = run;
    run = NULL;
done:
    psi_run_free(ctx, run);
    return status;
}

psi_status psi_run_load(psi_ctx *ctx, const char *folder, psi_run **out)
{
    psi_status status = PSI_OK;
    psi_run *run = NULL;
    *out = NULL;
    TRY(run_folder_check_finished(ctx, folder));
    TRY(new_run(ctx, folder, &run));
    TRY(run_manifest_load(ctx, folder, run));
    TRY(load_steps(ctx, folder, run));
    TRY(run_labels_load(ctx, folder, "clusters.npy", run->n_latent, &run->n_observations,
                        &run->labels));
    TRY(load_confidence(ctx, run));
    TRY(load_model(ctx, run));
    TRY(load_certificate(ctx, run));
    TRY(load_network(ctx, run));
    TRY(run_known_load(ctx, run, &run->known));
    run->finished = true;
    *out = run;
    run = NULL;
done:
    psi_run_free(ctx, run);
    return status;
}

// ---- an interrupted run -------------------------------------------------------------------------

// What labels alone tell of a refinement, where its record was not written yet.
static psi_cluster_step count_step(const int32_t *labels, size_t n)
{
    psi_cluster_step step = {.looked_at = n,
                             .agreement = (double)NAN,
                             .gap = (double)NAN,
                             .epsilon = (double)NAN,
                             .held_out_error = (double)NAN,
                             .perfect = (double)NAN,
                             .seconds = (double)NAN};
    size_t ignored = 0;
    for (size_t i = 0; i < n; i++) {
        ignored += labels[i] < 0;
        if (labels[i] >= 0) step.clusters = base_max(step.clusters, (size_t)labels[i] + 1);
    }
    step.ignored = (double)ignored / (double)n;
    return step;
}

// The labels of all refinements there are, one after the other; the last stay.
static psi_status load_so_far(psi_ctx *ctx, const char *from, psi_run *run)
{
    psi_status status = PSI_OK;
    char name[RUN_NAME_SIZE];
    bool there = true, recorded;
    TRY(is_there(ctx, from, "refinements.jsonl", &recorded));
    for (size_t n = 0; there && n < MAX_STEPS; n++) {
        int32_t *labels;
        TRY(is_there(ctx, from, run_labels_name(n + 1, name), &there));
        if (!there) break;
        TRY(run_labels_load(ctx, from, name, 0, &run->n_observations, &labels));
        psi_array_free(ctx, run->labels);
        run->labels = labels;
        const psi_cluster_step step = count_step(labels, run->n_observations);
        run->n_latent = step.clusters;
        if (recorded) continue;
        TRY(base_resize(ctx, n + 1, sizeof *run->steps, &run->steps));
        run->steps[run->n_steps++] = step;
    }
    if (recorded) TRY(load_steps(ctx, from, run));
done:
    return status;
}

static psi_status load_interrupted(psi_ctx *ctx, const char *folder, psi_run **out)
{
    psi_status status = PSI_OK;
    psi_run *run = NULL;
    char *from = NULL, *start = NULL;
    TRY(base_join(ctx, folder, "checkpoint/start.json", &start));
    if (!base_is_there(start)) {
        TRY(FAIL(ctx, PSI_EMISSING,
                 "%s is not the folder of a run: it has neither a manifest nor a checkpoint",
                 folder));
    }
    TRY(run_refinements_folder(ctx, folder, &from));
    if (!from) {
        TRY(FAIL(ctx, PSI_EMISSING, "%s has no labels yet: its first refinement was not finished",
                 folder));
    }
    TRY(new_run(ctx, folder, &run));
    run->verdict = PSI_VERDICT_NOT_ASKED;
    run->accuracy = run->margin = run->seconds = (double)NAN;
    TRY(run_start_load(ctx, start, run));
    run->gamma = run->options.gamma;
    TRY(load_so_far(ctx, from, run));
    *out = run;
    run = NULL;
done:
    psi_run_free(ctx, run);
    base_free(ctx, start);
    base_free(ctx, from);
    return status;
}

psi_status psi_run_load_so_far(psi_ctx *ctx, const char *folder, psi_run **out)
{
    psi_status status = PSI_OK;
    bool finished;
    *out = NULL;
    if (!base_is_there(folder)) {
        return FAIL(ctx, PSI_EIO, "%s: there is no such folder", folder);
    }
    TRY(is_there(ctx, folder, "manifest.json", &finished));
    status = finished ? psi_run_load(ctx, folder, out) : load_interrupted(ctx, folder, out);
done:
    return status;
}
