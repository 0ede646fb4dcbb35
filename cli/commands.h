// The table of subcommands: X(name, function, summary). One file per command.
#ifndef PSI_CLI_COMMANDS_H
#define PSI_CLI_COMMANDS_H

#include "cli/cli.h"

#define CLI_COMMAND_TABLE(X)                                                                       \
    X("tasks", "what can be generated", cli_tasks)                                                 \
    X("generate", "trajectories of a built-in task", cli_generate)                                 \
    X("fetch", "the MNIST digits, into the cache folder", cli_fetch)                               \
    X("inspect", "what is in a data set, and what is wrong with it", cli_inspect)                  \
    X("bench", "the measured figures, on this machine", cli_bench)

#define X(name, summary, function) cli_run function;
CLI_COMMAND_TABLE(X)
#undef X

#endif
