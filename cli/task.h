// A built-in task from the command line: its name, a preset and its own options, as a table beside
// the command's.
#ifndef PSI_CLI_TASK_H
#define PSI_CLI_TASK_H

#include "cli/cli.h"

enum { CLI_TASK_OPTIONS = 32 };

// What the command line left: those that were given are not NULL.
typedef struct cli_task {
    const char *preset;
    const char *text[CLI_TASK_OPTIONS];
    bool flag[CLI_TASK_OPTIONS];
    psi_option rows[1 + CLI_TASK_OPTIONS]; // --preset, then the tasks' own
    psi_option_table table;
} cli_task;

// The options of all tasks as a table of this struct, which must be zero.
cli_options cli_task_options(cli_task *task);

// The task as described, checked.
psi_status cli_task_make(cli_call *cli, const char *name, const cli_task *options, psi_task *task);

#endif
