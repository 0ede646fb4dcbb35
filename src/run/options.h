#ifndef PSI_RUN_OPTIONS_H
#define PSI_RUN_OPTIONS_H

#include <psifold/cluster.h>

// PSI_EUSAGE, naming the option, unless they make sense together.
psi_status run_options_check(psi_ctx *ctx, const psi_cluster_options *options);

#endif
