// A built-in task from the command line: its name, a preset and its own options, which become part
// of the command's table.
#ifndef PSI_CLI_TASK_H
#define PSI_CLI_TASK_H

#include "cli/cli.h"

enum { CLI_TASK_OPTIONS = 32 };

// What the command line left: those that were given are not NULL.
typedef struct cli_task {
    const char *preset;
    const psi_task_option *known;
    size_t n;
    const char *text[CLI_TASK_OPTIONS];
    bool flag[CLI_TASK_OPTIONS];
} cli_task;

// Appends --preset and the tasks' options to a table with room for 1 + CLI_TASK_OPTIONS more.
// Returns how many there are then.
size_t cli_task_options(cli_task *task, cli_option *options, size_t n_options);

// The task as described, checked.
psi_status cli_task_make(cli_call *cli, const char *name, const cli_task *options, psi_task *task);

#endif
