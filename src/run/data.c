// A run and a data set together: the data that it was made from, and its labels of others.
#include <psifold/cluster.h>

#include "base/comm.h"
#include "base/context.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void psi_mark_terminals(const psi_trajectories *data, int32_t *labels)
{
    for (size_t e = 0; e < data->n_episodes; e++) {
        const uint64_t begin = data->episode_offsets[e] + e, end = data->episode_offsets[e + 1] + e;
        for (uint64_t row = begin; row < end; row++) {
            if (labels[row] == 0) labels[row] = -1; // the episode went on: it was not terminal
        }
        if (data->terminated[e]) labels[end] = 0;
    }
}

// By their fingerprint; one that was not kept is not known by it.
static psi_status is_own(psi_ctx *ctx, const psi_run *run, const psi_trajectories *data, bool *own)
{
    psi_fingerprint fingerprint;
    size_t n = data->n_observations;
    *own = false;
    const psi_status counted = base_sum_sizes(ctx, &n, 1);
    if (counted != PSI_OK || n != run->n_observations) return counted;
    const psi_status status = psi_fingerprint_of(ctx, data, &fingerprint);
    *own = status == PSI_OK && strcmp(fingerprint.hex, run->fingerprint.hex) == 0;
    return status;
}

psi_status psi_run_observe(psi_ctx *ctx, const psi_run *run, const psi_trajectories *data,
                           psi_observations **out)
{
    *out = NULL;
    if (FREED(ctx, run, data)) return PSI_EUSAGE;
    return psi_observations_stack(ctx, data->observations, run->options.stack, data->n_episodes,
                                  data->episode_offsets, out);
}

// Labels that are less probable than asked for are forgotten; where an episode is known to end, it
// ends.
static void forget(const psi_trajectories *data, const int32_t *predicted, int32_t *labels)
{
    for (size_t e = 0; e < data->n_episodes; e++) {
        const uint64_t end = data->episode_offsets[e + 1] + e;
        for (uint64_t row = data->episode_offsets[e] + e; row <= end; row++) {
            const bool known = row == end && data->terminated[e];
            if (predicted[row] < 0 && !known) labels[row] = -1;
        }
    }
}

psi_status psi_run_label(psi_ctx *ctx, const psi_run *run, const psi_trajectories *data,
                         double min_confidence, int32_t *labels, bool *own)
{
    if (FREED(ctx, run, data)) return PSI_EUSAGE;
    psi_status status = PSI_OK;
    psi_predictor *predictor = NULL;
    psi_observations *observations = NULL;
    int32_t *predicted = NULL;
    const size_t n = data->n_observations;
    size_t first; // of all observations
    bool same;
    if (data->n_actions != run->n_actions) {
        return FAIL(ctx, PSI_ESHAPE, "the run knows %zu actions, the data have %zu", run->n_actions,
                    data->n_actions);
    }
    TRY(is_own(ctx, run, data, &same));
    if (own) *own = same;
    TRY(base_sum_before(ctx, n, &first));
    if (same) memcpy(labels, run->labels + first, n * sizeof *labels);
    if (same && min_confidence <= 0.0) goto done;
    TRY(base_alloc(ctx, n, sizeof *predicted, &predicted));
    TRY(psi_predictor_new(ctx, run, &predictor));
    TRY(psi_run_observe(ctx, run, data, &observations));
    TRY(psi_predict(ctx, predictor, observations, min_confidence, predicted, NULL));
    if (same) {
        forget(data, predicted, labels);
    } else {
        memcpy(labels, predicted, n * sizeof *labels);
        if (run->has_terminal) psi_mark_terminals(data, labels);
    }
done:
    psi_observations_free(ctx, observations);
    psi_predictor_free(ctx, predictor);
    base_free(ctx, predicted);
    return status;
}

// A path that a manifest has is hostile: it must lead to a file or a folder.
static bool is_readable(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && access(path, R_OK) == 0 &&
           (S_ISREG(info.st_mode) || S_ISDIR(info.st_mode));
}

psi_status psi_run_data(psi_ctx *ctx, const psi_run *run, const char *path, const char *key,
                        psi_trajectories **out)
{
    *out = NULL;
    if (FREED(ctx, run)) return PSI_EUSAGE;
    psi_status status = PSI_OK;
    const char *const *paths = path ? &path : (const char *const *)run->data_paths;
    const size_t n = path ? 1 : run->n_data_paths;
    psi_trajectories *data = NULL;
    bool own;
    if (n == 0) {
        return FAIL(ctx, PSI_EMISSING,
                    "nothing says where the data are; name them to see observations");
    }
    for (size_t i = 0; !path && i < n; i++) {
        if (is_readable(paths[i])) continue;
        TRY(FAIL(ctx, PSI_EMISSING,
                 "the data are no longer where they were when the run was made"));
    }
    const psi_read_options reading = {.size = sizeof reading,
                                      .observation_key = key ? key : run->observation_key};
    status = psi_trajectories_read_all(ctx, paths, n, &reading, &data);
    if (!path && status != PSI_OK && status != PSI_ENOMEM && status != PSI_ECANCELLED) {
        status = FAIL(ctx, PSI_EMISSING, "the data cannot be read any more");
    }
    TRY(status);
    TRY(is_own(ctx, run, data, &own));
    if (!own && !path) {
        TRY(FAIL(ctx, PSI_EMISSING, "the data have changed since the run was made"));
    }
    if (!own) {
        TRY(FAIL(ctx, PSI_EDATA, "%s is not the data set that %s was made from", path,
                 run->folder ? run->folder : "the run"));
    }
    *out = data;
    data = NULL;
done:
    psi_trajectories_free(ctx, data);
    return status;
}

psi_status psi_run_attach(psi_ctx *ctx, psi_run *run, const psi_trajectories *data)
{
    if (FREED(ctx, run, data)) return PSI_EUSAGE;
    psi_status status = PSI_OK;
    psi_counts *counts = NULL;
    psi_mdp *model = NULL;
    bool terminal = false;
    if (run->finished) return PSI_OK;
    if (data->n_observations != run->n_observations) {
        return FAIL(ctx, PSI_ESHAPE, "the run has labels of %zu observations, the data have %zu",
                    run->n_observations, data->n_observations);
    }
    for (size_t e = 0; e < data->n_episodes; e++) terminal |= data->terminated[e] != 0;
    const psi_paths paths = psi_trajectories_paths(data, run->labels, run->n_latent, terminal);
    TRY(psi_counts_new(ctx, &paths, &counts));
    TRY(psi_counts_model(ctx, counts, 1.0, &model));
    psi_mdp_free(ctx, run->model);
    run->model = model;
    run->n_actions = data->n_actions;
    run->n_episodes = data->n_episodes;
    run->n_transitions = data->n_transitions;
    run->has_terminal = terminal;
done:
    psi_counts_free(ctx, counts);
    return status;
}
