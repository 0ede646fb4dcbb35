// What a run writes into its folder.
#ifndef PSI_CLUSTER_RUN_H
#define PSI_CLUSTER_RUN_H

#include "cluster/folder.h"

// Says, or checks, what the run is started with: version, threads, seed, options and the data's
// fingerprint.
psi_status cluster_run_start(psi_run *run, const psi_trajectories *data,
                             const psi_cluster_options *options);

#endif
