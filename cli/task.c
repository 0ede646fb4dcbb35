#include "cli/task.h"

size_t cli_task_options(cli_task *task, cli_option *options, size_t n_options)
{
    options[n_options++] =
        (cli_option){"preset",      0,
                     "NAME",        CLI_TEXT,
                     &task->preset, "a variant of the task; 'psifold tasks' lists them"};
    task->known = psi_task_options(&task->n);
    for (size_t i = 0; i < task->n; i++) {
        const psi_task_option *known = &task->known[i];
        void *into = known->argument ? (void *)&task->text[i] : (void *)&task->flag[i];
        options[n_options++] = (cli_option){
            known->name, 0,          known->argument, known->argument ? CLI_TEXT : CLI_FLAG,
            into,        known->what};
    }
    return n_options;
}

psi_status cli_task_make(cli_call *cli, const char *name, const cli_task *options, psi_task *task)
{
    psi_status status = psi_task_defaults(cli->ctx, name, options->preset, task);
    for (size_t i = 0; status == PSI_OK && i < options->n; i++) {
        const psi_task_option *option = &options->known[i];
        if (option->argument && options->text[i]) {
            status = psi_task_set(cli->ctx, task, option->name, options->text[i]);
        } else if (!option->argument && options->flag[i]) {
            status = psi_task_set(cli->ctx, task, option->name, NULL);
        }
    }
    return status == PSI_OK ? psi_task_check(cli->ctx, task) : status;
}
