#include "cli/labels.h"

psi_status cli_load_labels(cli_call *cli, const char *run_folder, const char *key,
                           double min_confidence, cli_labelled *out)
{
    psi_status status = PSI_OK;
    TRY(psi_run_load(cli->ctx, run_folder, &out->run));
    const psi_read_options reading = {.size = sizeof reading,
                                      .observation_key = key ? key : out->run->observation_key};
    TRY(psi_trajectories_read_all(cli->ctx, cli->files, cli->n_files, &reading, &out->data));
    TRY(base_alloc(cli->ctx, out->data->n_observations, sizeof *out->labels, &out->labels));
    TRY(psi_run_label(cli->ctx, out->run, out->data, min_confidence, out->labels, &out->own));
done:
    return status;
}

void cli_labelled_free(cli_call *cli, cli_labelled *labelled)
{
    base_free(cli->ctx, labelled->labels);
    psi_trajectories_free(cli->ctx, labelled->data);
    psi_run_free(cli->ctx, labelled->run);
}
