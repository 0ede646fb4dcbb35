// A run and a data set together: the labels that the run gives to the data.
#ifndef PSI_CLI_LABELS_H
#define PSI_CLI_LABELS_H

#include "cli/cli.h"

// A network's labels, with the ends of terminated episodes as what they are known to be.
void cli_mark_terminals(const psi_trajectories *data, const psi_run_result *run, int32_t *labels);

// The run's own labels if these are the data it was made from (*own, by their fingerprint), else
// those of its representation network. key is the entry of a Dict observation to read; NULL: the
// one that the run was made from. All three belong to the caller, also on failure (NULL or
// not).
psi_status cli_load_labels(cli_call *cli, const char *run_folder, const char *data_path,
                           const char *key, psi_run_result **run, psi_trajectories **data,
                           int32_t **labels, bool *own);

#endif
