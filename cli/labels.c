#include "cli/labels.h"

#include <string.h>

void cli_mark_terminals(const psi_trajectories *data, const psi_run_result *run, int32_t *labels)
{
    if (!run->has_terminal) return;
    for (size_t e = 0; e < data->n_episodes; e++) {
        const uint64_t begin = data->episode_offsets[e] + e, end = data->episode_offsets[e + 1] + e;
        for (uint64_t row = begin; row < end; row++) {
            if (labels[row] == 0) labels[row] = -1; // the episode went on: it was not terminal
        }
        if (data->terminated[e]) labels[end] = 0;
    }
}

// What the run's table or network calls observations that it was not made from.
static psi_status predict(cli_call *cli, const char *folder, const psi_run_result *run,
                          const psi_trajectories *data, int32_t *labels)
{
    psi_status status = PSI_OK;
    psi_predictor *predictor = NULL;
    TRY(psi_predictor_new(cli->ctx, folder, run, &predictor));
    TRY(psi_predict(cli->ctx, predictor, data->observations, 0.0, labels, NULL));
    cli_mark_terminals(data, run, labels);
done:
    psi_predictor_free(cli->ctx, predictor);
    return status;
}

psi_status cli_load_labels(cli_call *cli, const char *run_folder, const char *data_path,
                           const char *key, psi_run_result **run, psi_trajectories **data,
                           int32_t **labels, bool *own)
{
    psi_status status = PSI_OK;
    psi_fingerprint fingerprint;
    TRY(psi_run_load(cli->ctx, run_folder, run));
    const psi_read_options reading = {.observation_key = key ? key : (*run)->observation_key};
    TRY(psi_trajectories_read(cli->ctx, data_path, &reading, data));
    if ((*data)->n_actions != (*run)->n_actions) {
        status = FAIL(cli->ctx, PSI_ESHAPE, "the run knows %zu actions, %s has %zu",
                      (*run)->n_actions, data_path, (*data)->n_actions);
        goto done;
    }
    TRY(base_alloc(cli->ctx, (*data)->n_observations, sizeof **labels, labels));
    TRY(psi_fingerprint_of(cli->ctx, *data, &fingerprint));
    *own = strcmp(fingerprint.hex, (*run)->fingerprint.hex) == 0 &&
           (*data)->n_observations == (*run)->n_observations;
    if (*own) {
        memcpy(*labels, (*run)->labels, (*data)->n_observations * sizeof **labels);
    } else {
        status = predict(cli, run_folder, *run, *data, *labels);
    }
done:
    return status;
}
