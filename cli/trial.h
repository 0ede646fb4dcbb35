// Trials: one agent, one task, one seed, with a folder that says what came out and from which a
// trial that was stopped goes on. Many of them run side by side, one thread each; those that look
// through the same frozen network share a thread and let it look for all of them at once.
#ifndef PSI_CLI_TRIAL_H
#define PSI_CLI_TRIAL_H

#include "cli/cli.h"

typedef struct cli_trial {
    psi_task task;
    psi_task training;         // pretrained: what is learnt first, unless start_file is given
    const char *start_file;    // pretrained: the Q-network to start from; may be NULL
    psi_agent_options options; // seed included
    size_t episodes;
    size_t evaluation; // episodes without exploration at the end; 0: none
    char *folder;      // where its files go; NULL: nowhere
    bool keep_network; // save the Q-network there, as network.safetensors

    // what came out
    bool finished, diverged;
    psi_agent_score score, final; // while learning; of the evaluation
    uint64_t updates;
    double seconds;           // its share, if it was played together with others
    psi_agent_episode *curve; // (n_curve)
    size_t n_curve;
} cli_trial;

// Runs those that have no result yet, in order, on the context's threads; wide: one after the
// other, each on all threads. A folder with a finished trial of the same task and options is read
// instead; one that was stopped goes on. On success all are finished.
psi_status cli_trials_run(cli_call *cli, cli_trial *trials, size_t n, bool wide);
void cli_trials_free(cli_call *cli, cli_trial *trials, size_t n); // what is in them; not the array

// The scores of a trial as JSON.
json_t *cli_trial_json(const cli_trial *trial);

// Interval as {"estimate": …, "low": …, "high": …}.
json_t *cli_interval_json(const psi_interval *interval);

#endif
