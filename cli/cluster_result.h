// What a clustering found, as text and as JSON.
#ifndef PSI_CLI_CLUSTER_RESULT_H
#define PSI_CLI_CLUSTER_RESULT_H

#include "cli/cli.h"

void cli_print_run(cli_call *cli, const psi_run *run);
psi_status cli_set_run(cli_call *cli, const psi_run *run);

#endif
