#ifndef PSI_CLI_PRESETS_H
#define PSI_CLI_PRESETS_H

#include "cli/cli.h"

psi_status cli_show_presets(cli_call *cli); // as text and JSON

#endif
