// The transfer study's trials and what they come to.
#ifndef PSI_STUDY_TRANSFER_H
#define PSI_STUDY_TRANSFER_H

#include "study/study.h"

enum { TRANSFER_TASKS = 4, TRANSFER_AGENTS = PSI_AGENT_KINDS };     // the training task comes first
extern const char *const STUDY_TRANSFER_TASK_NAMES[TRANSFER_TASKS]; // presets of the lock

typedef struct transfer_study {
    const char *digits;         // "mnist" or "drawn"
    psi_net_kind net;           // of the Q-networks
    const char *representation; // where it came from
    size_t seeds, episodes;
    psi_optimum optimum[TRANSFER_TASKS];
    psi_trial *trials; // (TRANSFER_TASKS, TRANSFER_AGENTS, seeds); those left out have no episodes
} transfer_study;

static inline psi_trial *transfer_trial(const transfer_study *transfer, size_t task, size_t agent,
                                        size_t seed)
{
    return &transfer->trials[(task * TRANSFER_AGENTS + agent) * transfer->seeds + seed];
}

static inline bool transfer_took_part(const transfer_study *transfer, size_t task, size_t agent)
{
    return transfer_trial(transfer, task, agent, 0)->finished;
}

// The interquartile mean of an agent's scores in tasks first … last, as shares of the optimum where
// asked; and how probably a run of x beats one of y there.
psi_status study_transfer_iqm(psi_ctx *ctx, const transfer_study *transfer, size_t agent,
                              size_t first, size_t last, bool share, psi_interval *out);
psi_status study_transfer_improvement(psi_ctx *ctx, const transfer_study *transfer, size_t x,
                                      size_t y, size_t first, size_t last, psi_interval *out);

// All of these, and performance profiles, into a JSON object; the claims into the results, too.
psi_status study_transfer_iqms(psi_ctx *ctx, const transfer_study *transfer, json_t *into);
psi_status study_transfer_profiles(psi_ctx *ctx, const transfer_study *transfer, json_t *into);
psi_status study_transfer_claims(study *of, const transfer_study *transfer, json_t *into);

// Scores and statistics into scores.json and curves.csv, the paper's claims into the results, too;
// and a table to read.
psi_status study_transfer_report(study *of, const transfer_study *transfer);

// Bars of all scores, and a figure of learning curves for every test task.
psi_status study_transfer_figures(study *of, const transfer_study *transfer);

#endif
