// A run and a data set together, from the command line.
#ifndef PSI_CLI_LABELS_H
#define PSI_CLI_LABELS_H

#include "cli/cli.h"

typedef struct cli_labelled {
    psi_run *run;
    psi_trajectories *data;
    int32_t *labels; // (n_observations)
    bool own;        // the data are those that the run was made from
} cli_labelled;

// Reads a run and cli->files, and labels the data (psi_run_label). key is the entry of a Dict
// observation to read; NULL: the one that the run was made from. out is zeros before, and to be
// freed also after a failure.
psi_status cli_load_labels(cli_call *cli, const char *run_folder, const char *key,
                           double min_confidence, cli_labelled *out);
void cli_labelled_free(cli_call *cli, cli_labelled *labelled);

#define CLI_KEY(field)                                                                             \
    {                                                                                              \
        "key", 0, PSI_OPTION_TEXT, field, "NAME", NULL, NULL, PSI_OPTION_MAIN,                     \
            "which entry of a Dict observation, if not the run's"                                  \
    }

#endif
