// The transfer study's trials and what they come to.
#ifndef PSI_CLI_TRANSFER_H
#define PSI_CLI_TRANSFER_H

#include "cli/reproduce.h"
#include "cli/trial.h"

enum { TRANSFER_TASKS = 4, TRANSFER_AGENTS = PSI_AGENT_KINDS }; // the training task comes first
extern const char *const TRANSFER_TASK_NAMES[TRANSFER_TASKS];   // presets of the lock

typedef struct transfer_study {
    const char *digits;         // "mnist" or "drawn"
    psi_net_kind net;           // of the Q-networks
    const char *representation; // where it came from
    size_t seeds, episodes;
    psi_optimum optimum[TRANSFER_TASKS];
    cli_trial *trials; // (TRANSFER_TASKS, TRANSFER_AGENTS, seeds); those left out have no episodes
} transfer_study;

static inline cli_trial *transfer_trial(const transfer_study *transfer, size_t task, size_t agent,
                                        size_t seed)
{
    return &transfer->trials[(task * TRANSFER_AGENTS + agent) * transfer->seeds + seed];
}

static inline bool transfer_took_part(const transfer_study *transfer, size_t task, size_t agent)
{
    return transfer_trial(transfer, task, agent, 0)->finished;
}

// Scores and statistics into scores.json and curves.csv, the paper's claims into the results, too;
// and a table to read.
psi_status transfer_report(study *of, const transfer_study *transfer);

// Bars of all scores, and a figure of learning curves for every test task.
psi_status transfer_figures(study *of, const transfer_study *transfer);

#endif
