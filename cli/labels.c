#include "cli/labels.h"

psi_status cli_load_labels(cli_call *cli, const char *run_folder, const char *data_path,
                           const char *key, double min_confidence, psi_run **run,
                           psi_trajectories **data, int32_t **labels, bool *own)
{
    psi_status status = PSI_OK;
    TRY(psi_run_load(cli->ctx, run_folder, run));
    const psi_read_options reading = {.observation_key = key ? key : (*run)->observation_key};
    TRY(psi_trajectories_read(cli->ctx, data_path, &reading, data));
    TRY(base_alloc(cli->ctx, (*data)->n_observations, sizeof **labels, labels));
    TRY(psi_run_label(cli->ctx, *run, *data, min_confidence, *labels, own));
done:
    return status;
}
