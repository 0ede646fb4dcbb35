// Between cli.c and options.c.
#ifndef PSI_CLI_INTERNAL_H
#define PSI_CLI_INTERNAL_H

#include "cli/cli.h"

psi_status cli_make_ctx(cli_call *cli); // from --threads and --quiet

#endif
