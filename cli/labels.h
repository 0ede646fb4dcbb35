// A run and a data set together, from the command line.
#ifndef PSI_CLI_LABELS_H
#define PSI_CLI_LABELS_H

#include "cli/cli.h"

// Where the data are, cli->files one a line: what a run is told of them. Belongs to the caller.
psi_status cli_paths_text(cli_call *cli, char **out);

// Reads a run and cli->files, and labels the data (psi_run_label). key is the entry of a Dict
// observation to read; NULL: the one that the run was made from. All three belong to the caller,
// also on failure (NULL or not).
psi_status cli_load_labels(cli_call *cli, const char *run_folder, const char *key,
                           double min_confidence, psi_run **run, psi_trajectories **data,
                           int32_t **labels, bool *own);

#endif
