// The transfer study's trials and what they come to.
#ifndef PSI_CLI_TRANSFER_H
#define PSI_CLI_TRANSFER_H

#include "cli/trial.h"

enum { TRANSFER_TASKS = 4, TRANSFER_AGENTS = PSI_AGENT_KINDS }; // the training task comes first
extern const char *const TRANSFER_TASK_NAMES[TRANSFER_TASKS];   // presets of the lock

typedef struct transfer_study {
    const char *scale, *net, *representation; // the last: where it came from
    size_t seeds, episodes;
    psi_optimum optimum[TRANSFER_TASKS];
    cli_trial *trials; // (TRANSFER_TASKS, TRANSFER_AGENTS, seeds); those left out have no episodes
} transfer_study;

static inline cli_trial *transfer_trial(const transfer_study *study, size_t task, size_t agent,
                                        size_t seed)
{
    return &study->trials[(task * TRANSFER_AGENTS + agent) * study->seeds + seed];
}

// Scores, statistics and the paper's claims into scores.json and curves.csv of the folder, as the
// command's result, and as a table.
psi_status transfer_report(cli_call *cli, const transfer_study *study, const char *folder);

#endif
