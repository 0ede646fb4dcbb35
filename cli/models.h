// Finite models as commands take them: any file of psi_model_read, our own .npz, or a run folder.
#ifndef PSI_CLI_MODELS_H
#define PSI_CLI_MODELS_H

#include "cli/cli.h"

// A run folder gives its latent MDP.
psi_status cli_model_read(cli_call *cli, const char *path, psi_model **out);

// As what the path ends with: .npz, or what psi_model_write knows.
psi_status cli_model_write(cli_call *cli, const psi_model *model, const char *path);

#endif
