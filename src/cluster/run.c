// What a run leaves in its folder: everything a plot, a paper or another program needs, as plain
// data.
#include "cluster/run.h"

#include "base/context.h"
#include "base/file.h"
#include "base/options.h"
#include "cluster/known.h"

#include <stdio.h>
#include <time.h>

// Files on their way into the result, and their names for the manifest.
typedef struct writing {
    psi_run *run;
    json_t *files;
} writing;

static psi_status add_name(writing *to, const char *name)
{
    if (json_array_append_new(to->files, json_string(name)) == 0) return PSI_OK;
    return FAIL(to->run->ctx, PSI_ENOMEM, "no memory for the names of a run's files");
}

static psi_status path_for(writing *to, const char *name, char **out)
{
    const psi_status status = add_name(to, name);
    return status == PSI_OK ? cluster_folder_result(to->run, name, out) : status;
}

static psi_status save_arrays(writing *to, const char *name, const psi_array *arrays, size_t n)
{
    psi_status status = PSI_OK;
    char *path = NULL;
    TRY(path_for(to, name, &path));
    TRY(psi_arrays_save(to->run->ctx, path, arrays, n));
done:
    base_free(to->run->ctx, path);
    return status;
}

// ---- refinements ------------------------------------------------------------------------------

static psi_status write_step(psi_ctx *ctx, base_output *file, const psi_cluster_step *step,
                             size_t refinement)
{
    psi_status status = PSI_OK;
    char line[1024];
    json_t *object = json_pack(
        "{s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "refinement", (json_int_t)refinement,
        "clusters", (json_int_t)step->clusters, "looked_at", (json_int_t)step->looked_at,
        "ignored_fraction", base_json_real(step->ignored), "agreement",
        base_json_real(step->agreement), "gap", base_json_real(step->gap), "epsilon",
        base_json_real(step->epsilon), "held_out_error", base_json_real(step->held_out_error),
        "perfect", base_json_real(step->perfect), "seconds", base_json_real(step->seconds));
    TRY(base_json_made(ctx, object));
    const size_t size =
        json_dumpb(object, line, sizeof line - 1, JSON_COMPACT | JSON_REAL_PRECISION(17));
    if (size == 0 || size >= sizeof line) {
        status = FAIL(ctx, PSI_EINTERNAL, "a refinement's line is too long");
        goto done;
    }
    line[size] = '\n';
    TRY(base_output_write(file, line, size + 1));
done:
    json_decref(object);
    return status;
}

static psi_status save_steps(writing *to, const psi_clustering *found)
{
    psi_status status = PSI_OK;
    psi_ctx *ctx = to->run->ctx;
    char *path = NULL, name[48];
    base_output *file = NULL;
    TRY(path_for(to, "refinements.jsonl", &path));
    TRY(base_output_open(ctx, path, BASE_FILE, true, &file));
    for (size_t i = 0; i < found->n_steps; i++) {
        TRY(write_step(ctx, file, &found->steps[i], i + 1));
        snprintf(name, sizeof name, "clusters-%02zu.npy", i + 1); // there since that refinement
        TRY(add_name(to, name));
        if (!found->has_heads) continue;
        snprintf(name, sizeof name, "heads-%02zu.safetensors", i + 1); // likewise
        TRY(add_name(to, name));
        snprintf(name, sizeof name, "latent-%02zu.npz", i + 1);
        TRY(add_name(to, name));
    }
    status = base_output_commit(file);
    file = NULL;
done:
    base_output_discard(file);
    base_free(ctx, path);
    return status;
}

// ---- the latent model, the certificate, the network -------------------------------------------

// w (A, K), M (A, K, K), F (K, K), F_a (A, K, K)
static psi_status save_latent(writing *to, const psi_mdp *model, double gamma)
{
    psi_status status = PSI_OK;
    psi_ctx *ctx = to->run->ctx;
    const size_t k = model->n_states, actions = model->n_actions;
    psi_lsfm *lsfm = NULL;
    double *w = NULL, *m = NULL, *f_a = NULL;
    TRY(base_alloc(ctx, actions * k, sizeof *w, &w));
    TRY(base_alloc_zero(ctx, actions * k * k, sizeof *m, &m));
    TRY(base_alloc(ctx, actions * k * k, sizeof *f_a, &f_a));
    TRY(psi_lsfm_new(ctx, model, gamma, &lsfm));
    for (size_t a = 0; a < actions; a++) {
        for (size_t i = 0; i < k; i++) w[a * k + i] = model->reward[i * actions + a];
        psi_mdp_dense(model, a, m + a * k * k);
        TRY(psi_lsfm_action(ctx, lsfm, model, a, f_a + a * k * k));
    }
    const psi_array arrays[] = {{"w", PSI_FLOAT64, {2, {actions, k}}, w},
                                {"M", PSI_FLOAT64, {3, {actions, k, k}}, m},
                                {"F", PSI_FLOAT64, {2, {k, k}}, lsfm->f},
                                {"F_a", PSI_FLOAT64, {3, {actions, k, k}}, f_a}};
    TRY(save_arrays(to, "latent.npz", arrays, sizeof arrays / sizeof arrays[0]));
done:
    psi_lsfm_free(ctx, lsfm);
    base_free(ctx, f_a);
    base_free(ctx, m);
    base_free(ctx, w);
    return status;
}

// visits, reward_error, sf_error and what chance explains of them, each (K, A)
static psi_status save_certificate(writing *to, const psi_certificate *certificate)
{
    const psi_shape shape = {2, {certificate->n_latent, certificate->n_actions}};
    const psi_array arrays[] = {{"visits", PSI_INT64, shape, certificate->visits},
                                {"reward_error", PSI_FLOAT64, shape, certificate->reward_error},
                                {"reward_doubt", PSI_FLOAT64, shape, certificate->reward_doubt},
                                {"sf_error", PSI_FLOAT64, shape, certificate->sf_error},
                                {"sf_doubt", PSI_FLOAT64, shape, certificate->sf_doubt}};
    return save_arrays(to, "certificate.npz", arrays, sizeof arrays / sizeof arrays[0]);
}

static psi_status save_networks(writing *to, const psi_clustering *found)
{
    psi_status status = PSI_OK;
    char *path = NULL;
    if (!found->representation) return PSI_OK;
    TRY(path_for(to, "representation.safetensors", &path));
    TRY(psi_net_save(to->run->ctx, found->representation, path));
    if (!found->confidence || found->has_trunk) TRY(add_name(to, "trunk.safetensors"));
done:
    base_free(to->run->ctx, path);
    return status;
}

static psi_status save_seen(writing *to, const psi_trajectories *data, const psi_clustering *found)
{
    psi_status status = PSI_OK;
    psi_ctx *ctx = to->run->ctx;
    char *path = NULL;
    psi_trajectories stacked = *data;
    cluster_known seen = {0};
    stacked.observations = NULL;
    TRY(path_for(to, "seen.npz", &path));
    TRY(psi_observations_stack(ctx, data->observations, found->stack, data->n_episodes,
                               data->episode_offsets, &stacked.observations));
    TRY(cluster_known_find(ctx, &stacked, found, &seen));
    TRY(cluster_known_save(ctx, &seen, found->n_latent, path));
done:
    cluster_known_free(ctx, &seen);
    psi_observations_free(ctx, stacked.observations);
    base_free(ctx, path);
    return status;
}

// ---- the manifest -----------------------------------------------------------------------------

static json_t *manifest_advice(const psi_clustering *found)
{
    json_t *advice = json_array();
    for (size_t i = 0; i < found->n_doubts; i++) {
        char text[256];
        psi_doubt_sentence(&found->doubts[i], text, sizeof text);
        if (json_array_append_new(advice, json_string(text)) == 0) continue;
        json_decref(advice);
        return NULL;
    }
    return advice;
}

// The same as data, for whoever wants to point at the latent states.
static json_t *manifest_doubts(const psi_clustering *found)
{
    static const char *const kinds[] = {"pair", "untried", "rare", "past", "looks"};
    json_t *doubts = json_array();
    for (size_t i = 0; i < found->n_doubts; i++) {
        const psi_doubt *doubt = &found->doubts[i];
        json_t *made = json_pack("{s:s, s:i, s:i, s:o, s:I}", "kind", kinds[doubt->kind], "state",
                                 doubt->state, "other", doubt->other, "nats",
                                 base_json_real(doubt->nats), "visits", (json_int_t)doubt->visits);
        if (json_array_append_new(doubts, made) == 0) continue;
        json_decref(doubts);
        return NULL;
    }
    return doubts;
}

static json_t *manifest_result(const psi_clustering *found)
{
    char sentence[256];
    psi_verdict_sentence(found, sentence, sizeof sentence);
    return json_pack(
        "{s:b, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:I, s:b, s:s, s:b, s:b, s:b, s:o, s:o, s:o, "
        "s:o, s:o, s:o, s:o, s:o, s:o, s:I}",
        "stopped", found->stopped, "verdict", psi_verdict_name(found->verdict), "verdict_sentence",
        sentence, "margin", base_json_real(found->margin), "doubtful_fraction",
        base_json_real(found->doubtful), "past_fraction", base_json_real(found->past), "advice",
        manifest_advice(found), "doubts", manifest_doubts(found), "latent_states",
        (json_int_t)found->n_latent, "has_terminal", found->has_terminal, "approximator",
        found->approximator, "converged", found->converged, "stable", found->stable,
        "matching_condition", found->matching_condition, "hot",
        found->judged ? json_boolean(found->hot) : json_null(), "split_gain",
        base_json_real(found->split_gain), "ignored_fraction", base_json_real(found->ignored),
        "smoothed_fraction", base_json_real(found->smoothed), "gamma", base_json_real(found->gamma),
        "epsilon_reward", base_json_real(found->epsilon_reward), "epsilon_sf",
        base_json_real(found->epsilon_sf), "gap", base_json_real(found->gap),
        "representation_accuracy", base_json_real(found->accuracy), "rounds",
        (json_int_t)found->rounds);
}

static json_t *manifest_certificate(const psi_certificate *certificate)
{
    return json_pack(
        "{s:o, s:o, s:I, s:I, s:I, s:o, s:o, s:I}", "epsilon_reward",
        base_json_real(certificate->epsilon_reward), "epsilon_sf",
        base_json_real(certificate->epsilon_sf), "judged", (json_int_t)certificate->judged,
        "violating", (json_int_t)certificate->violating, "unseen_pairs",
        (json_int_t)certificate->unseen, "worst_reward_error",
        base_json_real(certificate->worst_reward), "worst_sf_error",
        base_json_real(certificate->worst_sf), "mergeable", (json_int_t)certificate->mergeable);
}

static json_t *manifest_shape(const psi_shape *shape)
{
    json_t *sizes = json_array();
    for (size_t i = 0; i < shape->rank; i++) {
        if (json_array_append_new(sizes, json_integer((json_int_t)shape->dim[i])) == 0) continue;
        json_decref(sizes);
        return NULL;
    }
    return sizes;
}

static json_t *manifest_data(const char *path, const psi_trajectories *data,
                             const psi_fingerprint *fingerprint)
{
    const psi_observations *observations = data->observations;
    return json_pack("{s:s*, s:s*, s:s, s:I, s:I, s:I, s:I, s:s, s:o}", "path", path,
                     "observation_key", data->observation_key, "fingerprint", fingerprint->hex,
                     "episodes", (json_int_t)data->n_episodes, "transitions",
                     (json_int_t)data->n_transitions, "observations",
                     (json_int_t)data->n_observations, "n_actions", (json_int_t)data->n_actions,
                     "observation_dtype", psi_dtype_name(psi_observations_dtype(observations)),
                     "observation_shape", manifest_shape(psi_observations_shape(observations)));
}

static json_t *manifest_phases(const psi_clustering *found)
{
    json_t *phases = json_array();
    for (size_t i = 0; i < found->n_phases; i++) {
        const psi_cluster_phase *phase = &found->phases[i];
        if (json_array_append_new(phases, json_pack("{s:s, s:I}", "phase", phase->name, "passes",
                                                    (json_int_t)phase->passes)) == 0) {
            continue;
        }
        json_decref(phases);
        return NULL;
    }
    return phases;
}

static json_t *phase_seconds(const psi_clustering *found)
{
    json_t *seconds = json_object();
    for (size_t i = 0; i < found->n_phases; i++) {
        const psi_cluster_phase *phase = &found->phases[i];
        if (json_object_set_new(seconds, phase->name, base_json_real(phase->seconds)) == 0)
            continue;
        json_decref(seconds);
        return NULL;
    }
    return seconds;
}

// All that differs between two runs of the same thing.
static json_t *manifest_timings(const psi_run *run, const psi_clustering *found)
{
    char when[32] = "";
    const time_t now = time(NULL);
    struct tm utc;
    if (gmtime_r(&now, &utc)) strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &utc);
    return json_pack("{s:s, s:f, s:o}", "finished", when, "seconds", psi_run_seconds(run), "phases",
                     phase_seconds(found));
}

static psi_status save_manifest(writing *to, const char *data_path, const psi_trajectories *data,
                                const psi_cluster_options *options, const psi_clustering *found)
{
    psi_status status = PSI_OK;
    psi_ctx *ctx = to->run->ctx;
    char *path = NULL;
    json_t *manifest = NULL, *chosen = NULL;
    psi_fingerprint fingerprint;
    TRY(psi_fingerprint_of(ctx, data, &fingerprint));
    TRY(base_options_json(ctx, psi_cluster_option_table(), options, false, &chosen));
    manifest = json_pack(
        "{s:s, s:s, s:I, s:i, s:o, s:O, s:o, s:o, s:o, s:O, s:o}", "psifold", psi_version(),
        "commit", psi_commit(), "seed", (json_int_t)options->seed, "threads", psi_threads(ctx),
        "data", manifest_data(data_path, data, &fingerprint), "options", chosen, "result",
        manifest_result(found), "certificate", manifest_certificate(found->certificate), "phases",
        manifest_phases(found), "files", to->files, "timings", manifest_timings(to->run, found));
    TRY(base_json_made(ctx, manifest));
    TRY(cluster_folder_result(to->run, "manifest.json", &path));
    TRY(base_json_save(ctx, path, manifest));
done:
    json_decref(chosen);
    json_decref(manifest);
    base_free(ctx, path);
    return status;
}

psi_status cluster_run_start(psi_run *run, const psi_trajectories *data,
                             const psi_cluster_options *options)
{
    psi_status status = PSI_OK;
    json_t *start = NULL, *chosen = NULL;
    psi_fingerprint fingerprint;
    TRY(psi_fingerprint_of(run->ctx, data, &fingerprint));
    TRY(base_options_json(run->ctx, psi_cluster_option_table(), options, true, &chosen));
    start = json_pack("{s:s, s:s, s:i, s:I, s:O}", "psifold", psi_version(), "data",
                      fingerprint.hex, "threads", psi_threads(run->ctx), "seed",
                      (json_int_t)options->seed, "options", chosen);
    TRY(cluster_folder_start(run, start));
done:
    json_decref(chosen);
    json_decref(start);
    return status;
}

psi_status psi_run_commit(psi_run *run, const char *data_path, const psi_trajectories *data,
                          const psi_cluster_options *options, const psi_clustering *clustering)
{
    psi_status status = PSI_OK;
    writing to = {run, json_array()};
    const psi_array labels = {
        "labels", PSI_INT32, {1, {clustering->n_observations}}, clustering->labels};
    TRY(base_json_made(run->ctx, to.files));
    TRY(cluster_folder_begin(run));
    const psi_array confidence = {
        "confidence", PSI_FLOAT32, {1, {clustering->n_observations}}, clustering->confidence};
    TRY(save_arrays(&to, "clusters.npy", &labels, 1));
    if (clustering->confidence) TRY(save_arrays(&to, "confidence.npy", &confidence, 1));
    TRY(save_steps(&to, clustering));
    TRY(save_latent(&to, clustering->model, clustering->gamma));
    TRY(save_certificate(&to, clustering->certificate));
    TRY(save_networks(&to, clustering));
    TRY(save_seen(&to, data, clustering));
    TRY(save_manifest(&to, data_path, data, options, clustering));
    TRY(cluster_folder_publish(run));
done:
    json_decref(to.files);
    psi_run_suspend(run);
    return status;
}
