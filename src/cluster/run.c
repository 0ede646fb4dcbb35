// The run folder: everything a plot, a paper or another program needs, as plain data.
#include <psifold/cluster.h>

#include "base/checked.h"
#include "base/context.h"
#include "base/file.h"
#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

struct psi_run {
    psi_ctx *ctx;
    base_output *output;
    json_t *steps; // what refinements.jsonl will hold
    size_t n_observations;
};

enum { MANIFEST_LIMIT = 1 << 20, MAX_LATENT = 1 << 20 };

uint64_t psi_fingerprint(const psi_trajectories *data)
{
    const struct {
        const void *bytes;
        size_t size;
    } columns[] = {
        {data->actions, data->n_transitions * sizeof *data->actions},
        {data->rewards, data->n_transitions * sizeof *data->rewards},
        {data->episode_offsets, (data->n_episodes + 1) * sizeof *data->episode_offsets},
        {data->terminated, data->n_episodes * sizeof *data->terminated},
    };
    uint64_t hash = 0xcbf29ce484222325u; // FNV-1a
    for (size_t c = 0; c < sizeof columns / sizeof columns[0]; c++) {
        const unsigned char *bytes = columns[c].bytes;
        for (size_t i = 0; i < columns[c].size; i++) hash = (hash ^ bytes[i]) * 0x100000001b3u;
    }
    return hash;
}

psi_status psi_run_new(psi_ctx *ctx, const char *folder, bool replace, psi_run **out)
{
    psi_status status = PSI_OK;
    psi_run *run = NULL;
    *out = NULL;
    TRY(base_alloc_zero(ctx, 1, sizeof *run, &run));
    run->ctx = ctx;
    run->steps = json_array();
    TRY(base_json_made(ctx, run->steps));
    TRY(base_output_open(ctx, folder, BASE_FOLDER, replace, &run->output));
    *out = run;
    run = NULL;
done:
    psi_run_discard(run);
    return status;
}

void psi_run_discard(psi_run *run)
{
    if (!run) return;
    base_output_discard(run->output);
    json_decref(run->steps);
    base_free(run->ctx, run);
}

static psi_status save_labels(psi_run *run, const char *name, const int32_t *labels, size_t n)
{
    psi_status status = PSI_OK;
    char *path = NULL;
    const psi_array array = {name, PSI_INT32, {1, {n}}, labels};
    TRY(base_join(run->ctx, base_output_path(run->output), name, &path));
    TRY(psi_arrays_save(run->ctx, path, &array, 1));
done:
    base_free(run->ctx, path);
    return status;
}

psi_status psi_run_watch(void *user, const psi_cluster_step *step, size_t refinement,
                         size_t n_observations, const int32_t *labels)
{
    psi_run *run = user;
    char name[32];
    json_t *line = json_pack(
        "{s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "refinement", (json_int_t)refinement,
        "clusters", (json_int_t)step->clusters, "ignored_fraction", step->ignored, "agreement",
        step->agreement, "gap", step->gap, "epsilon", step->epsilon, "held_out_error",
        step->held_out_error, "perfect", step->perfect, "seconds", step->seconds);
    if (!line || json_array_append_new(run->steps, line) != 0) {
        return FAIL(run->ctx, PSI_ENOMEM, "no memory for what a refinement found");
    }
    snprintf(name, sizeof name, "clusters-%02zu.npy", refinement);
    return save_labels(run, name, labels, n_observations);
}

static psi_status save_steps(psi_run *run)
{
    psi_status status = PSI_OK;
    char *path = NULL;
    base_output *file = NULL;
    TRY(base_join(run->ctx, base_output_path(run->output), "refinements.jsonl", &path));
    TRY(base_output_open(run->ctx, path, BASE_FILE, false, &file));
    for (size_t i = 0; i < json_array_size(run->steps); i++) {
        char line[1024];
        const size_t size = json_dumpb(json_array_get(run->steps, i), line, sizeof line - 1,
                                       JSON_COMPACT | JSON_REAL_PRECISION(17));
        if (size == 0 || size >= sizeof line) {
            status = FAIL(run->ctx, PSI_EINTERNAL, "a refinement's line is too long");
            goto done;
        }
        line[size] = '\n';
        TRY(base_output_write(file, line, size + 1));
    }
    status = base_output_commit(file);
    file = NULL;
done:
    base_output_discard(file);
    base_free(run->ctx, path);
    return status;
}

// w (A, K), M (A, K, K), F (K, K), F_a (A, K, K)
static psi_status save_latent(psi_run *run, const psi_mdp *model, double gamma)
{
    psi_status status = PSI_OK;
    const size_t k = model->n_states, actions = model->n_actions;
    psi_lsfm *lsfm = NULL;
    double *w = NULL, *m = NULL, *f_a = NULL;
    char *path = NULL;
    TRY(base_alloc(run->ctx, actions * k, sizeof *w, &w));
    TRY(base_alloc_zero(run->ctx, actions * k * k, sizeof *m, &m));
    TRY(base_alloc(run->ctx, actions * k * k, sizeof *f_a, &f_a));
    TRY(psi_lsfm_new(run->ctx, model, gamma, &lsfm));
    for (size_t a = 0; a < actions; a++) {
        for (size_t i = 0; i < k; i++) w[a * k + i] = model->reward[i * actions + a];
        psi_mdp_dense(model, a, m + a * k * k);
        TRY(psi_lsfm_action(run->ctx, lsfm, model, a, f_a + a * k * k));
    }
    const psi_array arrays[] = {{"w", PSI_FLOAT64, {2, {actions, k}}, w},
                                {"M", PSI_FLOAT64, {3, {actions, k, k}}, m},
                                {"F", PSI_FLOAT64, {2, {k, k}}, lsfm->f},
                                {"F_a", PSI_FLOAT64, {3, {actions, k, k}}, f_a}};
    TRY(base_join(run->ctx, base_output_path(run->output), "latent.npz", &path));
    TRY(psi_arrays_save(run->ctx, path, arrays, sizeof arrays / sizeof arrays[0]));
done:
    base_free(run->ctx, path);
    psi_lsfm_free(run->ctx, lsfm);
    base_free(run->ctx, f_a);
    base_free(run->ctx, m);
    base_free(run->ctx, w);
    return status;
}

static json_t *real_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *manifest_options(const psi_cluster_options *options)
{
    return json_pack(
        "{s:s, s:b, s:b, s:s, s:f, s:f, s:f, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:I, "
        "s:I, s:f}",
        "approximator", psi_approximator_name(options->approximator), "split", options->split,
        "smooth", options->smooth, "norm", options->norm == PSI_L1 ? "l1" : "l2", "gamma",
        options->gamma, "epsilon_reward", options->epsilon_reward, "epsilon_sf",
        options->epsilon_sf, "filter", options->filter, "max_refinements",
        (json_int_t)options->max_refinements, "max_rounds", (json_int_t)options->max_rounds,
        "max_latent_states", (json_int_t)options->max_latent_states, "hidden",
        (json_int_t)options->hidden, "trunk_steps", (json_int_t)options->trunk_steps, "head_steps",
        (json_int_t)options->head_steps, "representation_steps",
        (json_int_t)options->representation_steps, "shift", (json_int_t)options->shift,
        "learning_rate", options->learning_rate);
}

static json_t *manifest_result(const psi_clustering *found)
{
    return json_pack(
        "{s:I, s:b, s:s, s:b, s:b, s:b, s:b, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:o, s:I}",
        "latent_states", (json_int_t)found->n_latent, "has_terminal", found->has_terminal,
        "approximator", found->approximator, "converged", found->converged, "stable", found->stable,
        "matching_condition", found->matching_condition, "hot", found->hot, "split_gain",
        found->split_gain, "ignored_fraction", found->ignored, "smoothed_fraction", found->smoothed,
        "gamma", found->gamma, "epsilon_reward", found->epsilon_reward, "epsilon_sf",
        found->epsilon_sf, "gap", found->gap, "representation_accuracy",
        real_or_null(found->accuracy), "rounds", (json_int_t)found->rounds);
}

static json_t *manifest_certificate(const psi_certificate *certificate)
{
    return json_pack(
        "{s:f, s:f, s:I, s:I, s:I, s:f, s:f, s:I}", "epsilon_reward", certificate->epsilon_reward,
        "epsilon_sf", certificate->epsilon_sf, "judged", (json_int_t)certificate->judged,
        "violating", (json_int_t)certificate->violating, "unseen_pairs",
        (json_int_t)certificate->unseen, "worst_reward_error", certificate->worst_reward,
        "worst_sf_error", certificate->worst_sf, "mergeable", (json_int_t)certificate->mergeable);
}

// visits, reward_error, sf_error and what chance explains of them, each (K, A)
static psi_status save_certificate(psi_run *run, const psi_certificate *certificate)
{
    psi_status status = PSI_OK;
    char *path = NULL;
    const psi_shape shape = {2, {certificate->n_latent, certificate->n_actions}};
    const psi_array arrays[] = {{"visits", PSI_INT64, shape, certificate->visits},
                                {"reward_error", PSI_FLOAT64, shape, certificate->reward_error},
                                {"reward_doubt", PSI_FLOAT64, shape, certificate->reward_doubt},
                                {"sf_error", PSI_FLOAT64, shape, certificate->sf_error},
                                {"sf_doubt", PSI_FLOAT64, shape, certificate->sf_doubt}};
    TRY(base_join(run->ctx, base_output_path(run->output), "certificate.npz", &path));
    TRY(psi_arrays_save(run->ctx, path, arrays, sizeof arrays / sizeof arrays[0]));
done:
    base_free(run->ctx, path);
    return status;
}

static psi_status save_manifest(psi_run *run, const char *data_path, const psi_trajectories *data,
                                const psi_cluster_options *options, const psi_clustering *found,
                                double seconds)
{
    psi_status status = PSI_OK;
    char *path = NULL, fingerprint[20], when[32] = "";
    const time_t now = time(NULL);
    struct tm utc;
    if (gmtime_r(&now, &utc)) strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &utc);
    snprintf(fingerprint, sizeof fingerprint, "%016llx", (unsigned long long)psi_fingerprint(data));
    json_t *manifest = json_pack(
        "{s:s, s:s, s:I, s:i, s:f, s:{s:s, s:s, s:I, s:I, s:I, s:I}, s:o, s:o, s:o}", "psifold",
        psi_version(), "finished", when, "seed", (json_int_t)options->seed, "threads",
        psi_threads(run->ctx), "seconds", seconds, "data", "path", data_path, "fingerprint",
        fingerprint, "episodes", (json_int_t)data->n_episodes, "transitions",
        (json_int_t)data->n_transitions, "observations", (json_int_t)data->n_observations,
        "n_actions", (json_int_t)data->n_actions, "options", manifest_options(options), "result",
        manifest_result(found), "certificate", manifest_certificate(found->certificate));
    TRY(base_json_made(run->ctx, manifest));
    TRY(base_join(run->ctx, base_output_path(run->output), "manifest.json", &path));
    TRY(base_json_save(run->ctx, path, manifest));
done:
    json_decref(manifest);
    base_free(run->ctx, path);
    return status;
}

psi_status psi_run_commit(psi_run *run, const char *data_path, const psi_trajectories *data,
                          const psi_cluster_options *options, const psi_clustering *clustering,
                          double seconds)
{
    psi_status status = PSI_OK;
    char *path = NULL;
    psi_ctx *ctx = run->ctx;
    TRY(save_labels(run, "clusters.npy", clustering->labels, clustering->n_observations));
    TRY(save_steps(run));
    TRY(save_latent(run, clustering->model, clustering->gamma));
    TRY(save_certificate(run, clustering->certificate));
    if (clustering->representation) {
        TRY(base_join(ctx, base_output_path(run->output), "representation.safetensors", &path));
        TRY(psi_net_save(ctx, clustering->representation, path));
    }
    TRY(save_manifest(run, data_path, data, options, clustering, seconds));
    base_output *output = run->output;
    run->output = NULL;
    TRY(base_output_commit(output));
done:
    base_free(ctx, path);
    psi_run_discard(run);
    return status;
}

// ---- reading it back ----------------------------------------------------------------------------

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
    const json_t *data = json_object_get(manifest, "data");
    const json_t *found = json_object_get(manifest, "result");
    const char *fingerprint = json_string_value(json_object_get(data, "fingerprint"));
    const char *approximator = json_string_value(json_object_get(found, "approximator"));
    unsigned long long number;
    char rest;
    if (!fingerprint || !approximator || sscanf(fingerprint, "%16llx%c", &number, &rest) != 1) {
        status = FAIL(ctx, PSI_EFORMAT, "%s is not the manifest of a run", path);
        goto done;
    }
    out->fingerprint = number;
    out->gamma = json_number_value(json_object_get(found, "gamma"));
    out->epsilon_reward = json_number_value(json_object_get(found, "epsilon_reward"));
    out->epsilon_sf = json_number_value(json_object_get(found, "epsilon_sf"));
    if (!(out->gamma >= 0.0 && out->gamma < 1.0)) {
        status = FAIL(ctx, PSI_EFORMAT, "%s: gamma %g is not below 1", path, out->gamma);
        goto done;
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
    TRY(base_alloc_zero(ctx, 1, sizeof *result, &result));
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
    psi_array_free(ctx, result->labels);
    psi_mdp_free(ctx, result->model);
    psi_net_free(ctx, result->representation);
    base_free(ctx, result);
}
