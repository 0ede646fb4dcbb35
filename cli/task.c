#include "cli/task.h"

cli_options cli_task_options(cli_task *task)
{
    size_t n;
    const psi_task_option *known = psi_task_options(&n);
    task->rows[0] = (psi_option){"preset",
                                 0,
                                 PSI_OPTION_TEXT,
                                 OPTION_FIELD(cli_task, preset),
                                 "NAME",
                                 NULL,
                                 NULL,
                                 PSI_OPTION_MAIN,
                                 "a variant of the task; 'psifold tasks' lists them"};
    for (size_t i = 0; i < n; i++) {
        const bool flag = !known[i].argument;
        task->rows[1 + i] =
            (psi_option){.name = known[i].name,
                         .kind = flag ? PSI_OPTION_FLAG : PSI_OPTION_TEXT,
                         .offset = flag ? offsetof(cli_task, flag) + i * sizeof task->flag[0]
                                        : offsetof(cli_task, text) + i * sizeof task->text[0],
                         .size = flag ? sizeof task->flag[0] : sizeof task->text[0],
                         .value = known[i].argument,
                         .group = PSI_OPTION_MORE,
                         .help = known[i].what};
    }
    task->table = (psi_option_table){task->rows, 1 + n};
    return (cli_options){&task->table, task, 0};
}

psi_status cli_task_make(cli_call *cli, const char *name, const cli_task *options, psi_task *task)
{
    size_t n;
    const psi_task_option *known = psi_task_options(&n);
    psi_status status = psi_task_defaults(cli->ctx, name, options->preset, task);
    for (size_t i = 0; status == PSI_OK && i < n; i++) {
        if (known[i].argument ? options->text[i] != NULL : options->flag[i]) {
            status = psi_task_set(cli->ctx, task, known[i].name, options->text[i]);
        }
    }
    return status == PSI_OK ? psi_task_check(cli->ctx, task) : status;
}
