// A trial in its folder: trial.json (what it is), checkpoint, and in the end result.json,
// curve.csv, TensorBoard events and the network.
#ifndef PSI_STUDY_TRIAL_H
#define PSI_STUDY_TRIAL_H

#include <psifold/study.h>

// Whether the agent looks at observations through the frozen network of a clustering run.
bool study_sees_through_network(const psi_agent_options *options);

psi_status study_trial_file(psi_ctx *ctx, const psi_trial *trial, const char *name, char **out);

// The result of a trial that was finished before, if there is one. PSI_EUSAGE, naming what differs,
// if it is another trial's.
psi_status study_trial_read(psi_ctx *ctx, psi_trial *trial);

// Makes the folder this trial's from the beginning on; PSI_EUSAGE if it is another's.
psi_status study_trial_claim(psi_ctx *ctx, const psi_trial *trial);

// The Q-network that it has kept.
psi_status study_trial_network(psi_ctx *ctx, const psi_trial *trial, psi_net **out);
psi_status study_trial_write(psi_ctx *ctx, const psi_trial *trial, const psi_agent *agent);

#endif
