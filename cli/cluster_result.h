// What a clustering found, as text and as JSON.
#ifndef PSI_CLI_CLUSTER_RESULT_H
#define PSI_CLI_CLUSTER_RESULT_H

#include "cli/cli.h"

void cli_print_clustering(cli_call *cli, const char *output, const psi_clustering *found);
psi_status cli_set_clustering(cli_call *cli, const psi_clustering *found, double seconds);

#endif
