#include "cli/labels.h"

#include <string.h>

psi_status cli_paths_text(cli_call *cli, char **out)
{
    psi_status status = PSI_OK;
    size_t size = 1;
    *out = NULL;
    for (size_t i = 0; i < cli->n_files; i++) size += strlen(cli->files[i]) + 1;
    TRY(base_alloc_zero(cli->ctx, size, 1, out));
    for (size_t i = 0; i < cli->n_files; i++) {
        if (i > 0) strcat(*out, "\n");
        strcat(*out, cli->files[i]);
    }
done:
    return status;
}

psi_status cli_load_labels(cli_call *cli, const char *run_folder, const char *key,
                           double min_confidence, cli_labelled *out)
{
    psi_status status = PSI_OK;
    TRY(psi_run_load(cli->ctx, run_folder, &out->run));
    const psi_read_options reading = {.observation_key = key ? key : out->run->observation_key};
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
