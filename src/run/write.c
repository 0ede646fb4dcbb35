// What a run leaves in its folder: everything a plot, a paper or another program needs, as plain
// data.
#include "run/run.h"

#include "base/context.h"
#include "base/file.h"
#include "run/known.h"

#include <stdio.h>
#include <time.h>

// Files on their way into the result, and their names for the manifest.
typedef struct writing {
    psi_ctx *ctx;
    psi_run_folder *folder;
    json_t *files;
} writing;

static psi_status add_name(writing *to, const char *name)
{
    if (json_array_append_new(to->files, json_string(name)) == 0) return PSI_OK;
    return FAIL(to->ctx, PSI_ENOMEM, "no memory for the names of a run's files");
}

static psi_status path_for(writing *to, const char *name, char **out)
{
    const psi_status status = add_name(to, name);
    return status == PSI_OK ? run_folder_result(to->folder, name, out) : status;
}

static psi_status save_arrays(writing *to, const char *name, const psi_array *arrays, size_t n)
{
    psi_status status = PSI_OK;
    char *path = NULL;
    TRY(path_for(to, name, &path));
    TRY(psi_arrays_save(to->ctx, path, arrays, n));
done:
    base_free(to->ctx, path);
    return status;
}

static psi_status save_labels(writing *to, const psi_run *run)
{
    psi_status status = PSI_OK;
    const psi_shape shape = {1, {run->n_observations}};
    const psi_array labels = {"labels", PSI_INT32, shape, run->labels},
                    confidence = {"confidence", PSI_FLOAT32, shape, run->confidence};
    TRY(save_arrays(to, "clusters.npy", &labels, 1));
    if (run->confidence) TRY(save_arrays(to, "confidence.npy", &confidence, 1));
done:
    return status;
}

// The files of every refinement are there since it ended: only their names are missing.
static psi_status save_steps(writing *to, const psi_run *run)
{
    psi_status status = PSI_OK;
    char *path = NULL, name[RUN_NAME_SIZE], line[RUN_STEP_SIZE];
    base_output *file = NULL;
    size_t size;
    TRY(path_for(to, "refinements.jsonl", &path));
    TRY(base_output_open(to->ctx, path, BASE_FILE, true, &file));
    for (size_t i = 0; i < run->n_steps; i++) {
        TRY(run_step_print(to->ctx, &run->steps[i], i + 1, line, &size));
        TRY(base_output_write(file, line, size));
        TRY(base_output_write(file, "\n", 1));
        TRY(add_name(to, run_labels_name(i + 1, name)));
        if (!run->has_heads) continue;
        snprintf(name, sizeof name, "heads-%02zu.safetensors", i + 1);
        TRY(add_name(to, name));
        snprintf(name, sizeof name, "latent-%02zu.npz", i + 1);
        TRY(add_name(to, name));
    }
    status = base_output_commit(file);
    file = NULL;
done:
    base_output_discard(file);
    base_free(to->ctx, path);
    return status;
}

// w (A, K), M (A, K, K), F (K, K), F_a (A, K, K)
static psi_status save_latent(writing *to, const psi_mdp *model, double gamma)
{
    psi_status status = PSI_OK;
    psi_ctx *ctx = to->ctx;
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
    if (!certificate) return PSI_OK;
    const psi_shape shape = {2, {certificate->n_latent, certificate->n_actions}};
    const psi_array arrays[] = {{"visits", PSI_INT64, shape, certificate->visits},
                                {"reward_error", PSI_FLOAT64, shape, certificate->reward_error},
                                {"reward_doubt", PSI_FLOAT64, shape, certificate->reward_doubt},
                                {"sf_error", PSI_FLOAT64, shape, certificate->sf_error},
                                {"sf_doubt", PSI_FLOAT64, shape, certificate->sf_doubt}};
    return save_arrays(to, "certificate.npz", arrays, sizeof arrays / sizeof arrays[0]);
}

static psi_status save_networks(writing *to, const psi_run *run)
{
    psi_status status = PSI_OK;
    char *path = NULL;
    if (run->has_trunk) TRY(add_name(to, "trunk.safetensors"));
    if (!run->representation) return PSI_OK;
    TRY(path_for(to, "representation.safetensors", &path));
    TRY(psi_net_save(to->ctx, run->representation, path));
done:
    base_free(to->ctx, path);
    return status;
}

static psi_status save_seen(writing *to, const psi_run *run)
{
    psi_status status = PSI_OK;
    char *path = NULL;
    if (!run->known) return PSI_OK;
    TRY(path_for(to, "seen.npz", &path));
    TRY(run_known_save(to->ctx, run->known, run->n_latent, path));
done:
    base_free(to->ctx, path);
    return status;
}

static psi_status save_manifest(writing *to, psi_run *run)
{
    psi_status status = PSI_OK;
    char *path = NULL;
    const time_t now = time(NULL);
    struct tm utc;
    if (gmtime_r(&now, &utc)) strftime(run->when, sizeof run->when, "%Y-%m-%dT%H:%M:%SZ", &utc);
    run->seconds = run_folder_seconds(to->folder);
    TRY(run_folder_result(to->folder, "manifest.json", &path));
    TRY(run_manifest_save(to->ctx, path, run, to->files));
done:
    base_free(to->ctx, path);
    return status;
}

psi_status run_save(psi_run_folder *folder, psi_run *run)
{
    psi_status status = PSI_OK;
    writing to = {folder->ctx, folder, json_array()};
    TRY(base_json_made(to.ctx, to.files));
    TRY(save_labels(&to, run));
    TRY(save_steps(&to, run));
    TRY(save_latent(&to, run->model, run->gamma));
    TRY(save_certificate(&to, run->certificate));
    TRY(save_networks(&to, run));
    TRY(save_seen(&to, run));
    TRY(save_manifest(&to, run));
    TRY(run_folder_publish(folder));
done:
    json_decref(to.files);
    return status;
}
