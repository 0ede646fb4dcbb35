// psifold tasks: what can be generated, and with which options.
#include "cli/commands.h"

static json_t *task_json(psi_task_kind kind)
{
    size_t n_presets, n_options;
    const psi_task_preset *presets = psi_task_presets(&n_presets);
    const psi_task_option *options = psi_task_options(&n_options);
    json_t *preset_list = json_array(), *option_list = json_array();
    for (size_t i = 0; i < n_presets; i++) {
        if (presets[i].kind != kind) continue;
        json_array_append_new(preset_list, json_pack("{s:s, s:s}", "name", presets[i].name,
                                                     "description", presets[i].what));
    }
    for (size_t i = 0; i < n_options; i++) {
        if (!(options[i].kinds & 1u << kind)) continue;
        json_array_append_new(option_list,
                              json_pack("{s:s, s:s?, s:s}", "name", options[i].name, "value",
                                        options[i].argument, "description", options[i].what));
    }
    return json_pack("{s:s, s:s, s:o, s:o}", "name", psi_task_name(kind), "description",
                     psi_task_what(kind), "presets", preset_list, "options", option_list);
}

static void print_task(cli_call *cli, psi_task_kind kind)
{
    size_t n;
    cli_print(cli, "%s\n    %s", psi_task_name(kind), psi_task_what(kind));
    const psi_task_preset *presets = psi_task_presets(&n);
    for (size_t i = 0; i < n; i++) {
        if (presets[i].kind == kind) {
            cli_print(cli, "    --preset %-18s %s", presets[i].name, presets[i].what);
        }
    }
    const psi_task_option *options = psi_task_options(&n);
    for (size_t i = 0; i < n; i++) {
        if (!(options[i].kinds & 1u << kind)) continue;
        char name[64];
        snprintf(name, sizeof name, "--%s %s", options[i].name,
                 options[i].argument ? options[i].argument : "");
        cli_print(cli, "    %-27s %s", name, options[i].what);
    }
    cli_print(cli, "%s", "");
}

typedef struct tasks_call {
    bool names;
} tasks_call;

static const psi_option OPTIONS[] = {
    {"names", 0, PSI_OPTION_FLAG, OPTION_FIELD(tasks_call, names), NULL, "off", NULL,
     PSI_OPTION_MAIN, "only the names, for scripts"},
};

psi_status cli_tasks(cli_call *cli, int argc, char **argv)
{
    tasks_call call = {0};
    cli_options options[] = {{CLI_TABLE(OPTIONS), &call, 0}};
    const cli_usage usage = {.name = "tasks",
                             .arguments = "",
                             .summary = "Lists the built-in tasks, their presets and their options",
                             .example = "psifold tasks",
                             .options = options,
                             .n_options = CLI_COUNT(options)};
    const char *arguments[CLI_MAX_ARGUMENTS];
    psi_status status = cli_parse(cli, &usage, argc, argv, arguments);
    if (status != PSI_OK) return status;
    json_t *tasks = json_array();
    for (int kind = 0; kind < PSI_TASK_KINDS; kind++) {
        json_array_append_new(tasks, task_json((psi_task_kind)kind));
        if (call.names) {
            cli_print(cli, "%s", psi_task_name((psi_task_kind)kind));
        } else {
            print_task(cli, (psi_task_kind)kind);
        }
    }
    return cli_set(cli, "tasks", tasks);
}
