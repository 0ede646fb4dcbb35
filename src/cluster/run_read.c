// The run folder read back. Every file in it is taken to be hostile.
#include "cluster/checksums.h"
#include "cluster/folder.h"

#include "base/checked.h"
#include "base/context.h"
#include "base/file.h"

#include <stdio.h>
#include <string.h>

enum { MANIFEST_LIMIT = 1 << 24, MAX_LATENT = 1 << 20 };

static psi_status manifest_number(psi_ctx *ctx, const char *path, const json_t *object,
                                  const char *key, size_t most, size_t *out)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        (uint64_t)json_integer_value(value) > most) {
        return FAIL(ctx, PSI_EFORMAT, "%s: '%s' is not a number from 0 to %zu", path, key, most);
    }
    *out = (size_t)json_integer_value(value);
    return PSI_OK;
}

static psi_status load_labels(psi_ctx *ctx, const char *folder, const char *name, size_t n,
                              int32_t **out)
{
    psi_status status = PSI_OK;
    char *path = NULL;
    psi_shape shape;
    void *labels = NULL;
    *out = NULL;
    TRY(base_join(ctx, folder, name, &path));
    TRY(psi_array_load(ctx, path, NULL, PSI_INT32, &shape, &labels));
    if (shape.rank != 1 || shape.dim[0] != n) {
        status = FAIL(ctx, PSI_EDATA, "%s does not have one label for each of %zu observations",
                      path, n);
        goto done;
    }
    *out = labels;
    labels = NULL;
done:
    psi_array_free(ctx, labels);
    base_free(ctx, path);
    return status;
}

psi_status psi_run_labels(psi_ctx *ctx, const char *folder, size_t refinement,
                          size_t n_observations, int32_t **labels)
{
    char name[32];
    snprintf(name, sizeof name, "clusters-%02zu.npy", refinement);
    return load_labels(ctx, folder, name, n_observations, labels);
}

static psi_status load_manifest(psi_ctx *ctx, const char *folder, psi_run_result *out,
                                bool *has_network)
{
    psi_status status = PSI_OK;
    char *path = NULL;
    json_t *manifest = NULL;
    TRY(base_join(ctx, folder, "manifest.json", &path));
    TRY(base_json_load(ctx, path, MANIFEST_LIMIT, &manifest));
    size_t compared;
    TRY(cluster_checksums_check(ctx, folder, manifest, &compared));
    const json_t *data = json_object_get(manifest, "data");
    const json_t *found = json_object_get(manifest, "result");
    const char *fingerprint = json_string_value(json_object_get(data, "fingerprint"));
    const char *approximator = json_string_value(json_object_get(found, "approximator"));
    if (!fingerprint || !approximator || strspn(fingerprint, "0123456789abcdef") != 32 ||
        fingerprint[32] != '\0') {
        status = FAIL(ctx, PSI_EFORMAT, "%s is not the manifest of a run", path);
        goto done;
    }
    memcpy(out->fingerprint.hex, fingerprint, sizeof out->fingerprint.hex);
    const char *key = json_string_value(json_object_get(data, "observation_key"));
    if (key) TRY(base_copy_text(ctx, key, &out->observation_key));
    const json_t *stack = json_object_get(json_object_get(manifest, "options"), "stack");
    out->stack = stack ? (size_t)json_integer_value(stack) : 1; // older runs do not say
    if (out->stack < 1 || out->stack > PSI_MAX_FRAMES) {
        status =
            FAIL(ctx, PSI_EFORMAT, "%s: %zu observations cannot be seen as one", path, out->stack);
        goto done;
    }
    out->gamma = json_number_value(json_object_get(found, "gamma"));
    out->epsilon_reward = json_number_value(json_object_get(found, "epsilon_reward"));
    out->epsilon_sf = json_number_value(json_object_get(found, "epsilon_sf"));
    if (!(out->gamma >= 0.0 && out->gamma < 1.0)) {
        status = FAIL(ctx, PSI_EFORMAT, "%s: gamma %g is not below 1", path, out->gamma);
        goto done;
    }
    const json_t *files = json_object_get(manifest, "files");
    for (size_t i = 0; i < json_array_size(files); i++) {
        const char *name = json_string_value(json_array_get(files, i));
        out->has_heads |= name && strcmp(name, "heads-01.safetensors") == 0;
    }
    out->has_terminal = json_is_true(json_object_get(found, "has_terminal"));
    *has_network = strcmp(approximator, "table") != 0;
    TRY(manifest_number(ctx, path, found, "latent_states", MAX_LATENT, &out->n_latent));
    TRY(manifest_number(ctx, path, data, "n_actions", MAX_LATENT, &out->n_actions));
    if (out->n_latent == 0 || out->n_actions == 0) {
        status = FAIL(ctx, PSI_EFORMAT, "%s tells of no latent state or no action", path);
        goto done;
    }
    TRY(manifest_number(ctx, path, data, "observations", SIZE_MAX / 64, &out->n_observations));
done:
    json_decref(manifest);
    base_free(ctx, path);
    return status;
}

// Refinements are the lines of refinements.jsonl.
static psi_status count_refinements(psi_ctx *ctx, const char *folder, size_t *n)
{
    psi_status status = PSI_OK;
    char *path = NULL, *text = NULL;
    size_t size;
    *n = 0;
    TRY(base_join(ctx, folder, "refinements.jsonl", &path));
    TRY(base_read_file(ctx, path, MANIFEST_LIMIT, &text, &size));
    for (size_t i = 0; i < size; i++) *n += text[i] == '\n';
done:
    base_free(ctx, text);
    base_free(ctx, path);
    return status;
}

// An array of latent.npz with exactly this shape.
static psi_status load_latent(psi_ctx *ctx, const char *path, const char *name,
                              const psi_shape *expected, double **out)
{
    psi_status status = PSI_OK;
    psi_shape shape;
    void *values = NULL;
    *out = NULL;
    TRY(psi_array_load(ctx, path, name, PSI_FLOAT64, &shape, &values));
    bool same = shape.rank == expected->rank;
    for (size_t i = 0; i < expected->rank; i++) same = same && shape.dim[i] == expected->dim[i];
    if (!same) {
        status = FAIL(ctx, PSI_EDATA, "%s: the shape of %s does not fit the manifest", path, name);
        goto done;
    }
    *out = values;
    values = NULL;
done:
    psi_array_free(ctx, values);
    return status;
}

// {w_a, M_a} from latent.npz; psi_mdp_from_entries checks that it is a model.
static psi_status load_model(psi_ctx *ctx, const char *folder, psi_run_result *run)
{
    psi_status status = PSI_OK;
    const size_t k = run->n_latent, actions = run->n_actions;
    double *w = NULL, *m = NULL, *reward = NULL, *probability = NULL;
    uint64_t *row = NULL;
    int32_t *next = NULL;
    uint8_t *terminal = NULL;
    char *path = NULL;
    size_t cells, n = 0;
    if (k == 0 || !base_mul(k, k, &cells) || !base_mul(cells, actions, &cells)) {
        return FAIL(ctx, PSI_ELIMIT, "%s: %zu latent states are too many", folder, k);
    }
    TRY(base_join(ctx, folder, "latent.npz", &path));
    TRY(load_latent(ctx, path, "w", &(psi_shape){2, {actions, k}}, &w));
    TRY(load_latent(ctx, path, "M", &(psi_shape){3, {actions, k, k}}, &m));
    for (size_t i = 0; i < cells; i++) n += m[i] != 0.0;
    TRY(base_alloc(ctx, n, sizeof *row, &row));
    TRY(base_alloc(ctx, n, sizeof *next, &next));
    TRY(base_alloc(ctx, n, sizeof *probability, &probability));
    TRY(base_alloc(ctx, k * actions, sizeof *reward, &reward));
    TRY(base_alloc_zero(ctx, k, sizeof *terminal, &terminal));
    if (run->has_terminal && k > 0) terminal[0] = 1;
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

psi_status psi_run_load(psi_ctx *ctx, const char *folder, psi_run_result **out)
{
    psi_status status = PSI_OK;
    psi_run_result *result = NULL;
    char *path = NULL;
    bool has_network = false;
    *out = NULL;
    TRY(cluster_folder_check_finished(ctx, folder));
    TRY(base_alloc_zero(ctx, 1, sizeof *result, &result));
    TRY(base_copy_text(ctx, folder, &result->folder));
    TRY(load_manifest(ctx, folder, result, &has_network));
    TRY(count_refinements(ctx, folder, &result->n_refinements));
    TRY(load_labels(ctx, folder, "clusters.npy", result->n_observations, &result->labels));
    for (size_t i = 0; i < result->n_observations; i++) {
        if (result->labels[i] < -1 || result->labels[i] >= (int32_t)result->n_latent) {
            status =
                FAIL(ctx, PSI_EDATA, "%s/clusters.npy: label %d of observation %zu is not -1 … %zu",
                     folder, result->labels[i], i, result->n_latent - 1);
            goto done;
        }
    }
    TRY(load_model(ctx, folder, result));
    if (has_network) {
        TRY(base_join(ctx, folder, "representation.safetensors", &path));
        TRY(psi_net_load(ctx, path, &result->representation));
        if (psi_net_n_outputs(result->representation) != result->n_latent) {
            status = FAIL(ctx, PSI_EDATA, "%s tells %zu latent states apart, not %zu", path,
                          psi_net_n_outputs(result->representation), result->n_latent);
            goto done;
        }
    }
    *out = result;
    result = NULL;
done:
    base_free(ctx, path);
    psi_run_result_free(ctx, result);
    return status;
}

void psi_run_result_free(psi_ctx *ctx, psi_run_result *result)
{
    if (!result) return;
    base_free(ctx, result->folder);
    base_free(ctx, result->observation_key);
    psi_array_free(ctx, result->labels);
    psi_mdp_free(ctx, result->model);
    psi_net_free(ctx, result->representation);
    base_free(ctx, result);
}

// ---- the record of the refinements --------------------------------------------------------------

enum { STEPS_LIMIT = 1 << 22, MAX_STEPS = 10000 }; // bytes, refinements

static psi_status step_from_line(psi_ctx *ctx, const char *path, size_t number, const char *line,
                                 size_t size, psi_cluster_step *step)
{
    json_t *object = NULL;
    const psi_status status = base_json_parse(ctx, path, line, size, &object);
    if (status != PSI_OK) return status;
    const json_t *clusters = json_object_get(object, "clusters");
    const json_t *looked_at = json_object_get(object, "looked_at");
    const double ignored = json_number_value(json_object_get(object, "ignored_fraction"));
    const bool good = json_is_integer(clusters) && json_integer_value(clusters) >= 0 &&
                      json_is_integer(looked_at) && json_integer_value(looked_at) >= 0 &&
                      ignored >= 0.0 && ignored <= 1.0;
    if (good) {
        *step = (psi_cluster_step){
            .clusters = (size_t)json_integer_value(clusters),
            .looked_at = (size_t)json_integer_value(looked_at),
            .ignored = ignored,
            .agreement = json_number_value(json_object_get(object, "agreement")),
            .gap = json_number_value(json_object_get(object, "gap")),
            .epsilon = json_number_value(json_object_get(object, "epsilon")),
            .held_out_error = json_number_value(json_object_get(object, "held_out_error")),
            .perfect = json_number_value(json_object_get(object, "perfect")),
            .seconds = json_number_value(json_object_get(object, "seconds"))};
    }
    json_decref(object);
    return good ? PSI_OK
                : FAIL(ctx, PSI_EFORMAT,
                       "%s: refinement %zu does not say how many clusters it has, how many "
                       "states it looked at and which share of them it ignored",
                       path, number);
}

psi_status psi_run_steps(psi_ctx *ctx, const char *folder, size_t *n, psi_cluster_step **out)
{
    psi_status status = PSI_OK;
    char *path = NULL, *text = NULL;
    psi_cluster_step *steps = NULL;
    size_t size, lines = 0;
    *n = 0;
    *out = NULL;
    TRY(base_join(ctx, folder, "refinements.jsonl", &path));
    TRY(base_read_file(ctx, path, STEPS_LIMIT, &text, &size));
    for (size_t i = 0; i < size; i++) lines += text[i] == '\n';
    lines = base_min(lines, MAX_STEPS);
    TRY(base_alloc_zero(ctx, lines, sizeof *steps, &steps));
    const char *line = text;
    for (size_t i = 0; i < lines; i++) {
        const char *end = memchr(line, '\n', size - (size_t)(line - text));
        TRY(step_from_line(ctx, path, i + 1, line, (size_t)(end - line), &steps[i]));
        line = end + 1;
    }
    *n = lines;
    *out = steps;
    steps = NULL;
done:
    base_free(ctx, steps);
    base_free(ctx, text);
    base_free(ctx, path);
    return status;
}

void psi_run_steps_free(psi_ctx *ctx, psi_cluster_step *steps)
{
    base_free(ctx, steps);
}
