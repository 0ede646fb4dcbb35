// The phases of a clustering, by cluster and by the studies.
#ifndef PSI_CLI_PHASES_H
#define PSI_CLI_PHASES_H

#include "cli/cli.h"

// [{"phase", "seconds", "passes"}, …]; NULL without memory.
json_t *cli_phases_json(const psi_clustering *found);

#endif
