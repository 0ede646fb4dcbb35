// How a certificate is shown, by cluster and by verify.
#ifndef PSI_CLI_CERTIFICATE_H
#define PSI_CLI_CERTIFICATE_H

#include "cli/cli.h"

void cli_print_certificate(cli_call *cli, const psi_certificate *certificate);
json_t *cli_certificate_json(const psi_certificate *certificate);

#endif
