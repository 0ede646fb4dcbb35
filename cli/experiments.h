// The agents' experiments of `psifold reproduce`: transfer and sweep, each in a file of its own.
#ifndef PSI_CLI_EXPERIMENTS_H
#define PSI_CLI_EXPERIMENTS_H

#include "cli/cli.h"

typedef enum cli_scale { CLI_QUICK, CLI_MEDIUM, CLI_PAPER } cli_scale;

// The options that experiments share.
typedef struct cli_reproduce_call {
    cli_scale scale;
    const char *scale_name; // "quick"
    const char *output;     // folder; what is in it already is not done again
    const char *run;        // run folder to take the representation from; NULL: one is made
    size_t seeds, episodes; // 0: what the scale says
    const char *digits;     // "mnist" or "drawn"
} cli_reproduce_call;

typedef psi_status cli_reproduction(cli_call *cli, const cli_reproduce_call *call);

cli_reproduction cli_reproduce_transfer; // figure 6
cli_reproduction cli_reproduce_sweep;    // table 2

#endif
