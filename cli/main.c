// psifold: the command. Picks the subcommand; everything else happens there.
#include "cli/cli.h"
#include "cli/commands.h"

#include <string.h>

const cli_command CLI_COMMANDS[] = {
#define X(name, summary, function) {name, summary, function},
    CLI_COMMAND_TABLE(X)
#undef X
        {NULL, NULL, NULL},
};

static const cli_command *find(const char *name)
{
    for (const cli_command *command = CLI_COMMANDS; command->name; command++) {
        if (strcmp(command->name, name) == 0) return command;
    }
    return NULL;
}

static void overview(FILE *to)
{
    fputs("psifold folds the observations of a task into the fewest latent states that still\n"
          "predict every reward sequence.\n\n",
          to);
    for (const cli_command *command = CLI_COMMANDS; command->name; command++) {
        fprintf(to, "  psifold %-10s %s\n", command->name, command->summary);
    }
    fputs("\n'psifold COMMAND --help' explains one, with an example.\n", to);
}

static int unknown_command(const char *name)
{
    const char *known[64];
    size_t n = 0;
    for (const cli_command *command = CLI_COMMANDS; command->name; command++) {
        known[n++] = command->name;
    }
    const char *nearest = cli_nearest(name, known, n);
    if (nearest) {
        cli_complain("there is no command '%s'; did you mean %s?", name, nearest);
    } else {
        cli_complain("there is no command '%s'; 'psifold' alone lists them", name);
    }
    return psi_status_exit_code(PSI_EUSAGE);
}

// One section of the man page per command, from the same tables as --help; cmake/install.cmake puts
// them behind docs/psifold.1.in.
static int man_sections(void)
{
    for (const cli_command *command = CLI_COMMANDS; command->name; command++) {
        char *argv[] = {(char *)command->name, "--help=man", NULL};
        const int failed = cli_execute(command, 2, argv);
        if (failed) return failed;
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        overview(stdout);
        return 0;
    }
    const char *word = argv[1];
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        overview(stdout);
        return 0;
    }
    if (strcmp(word, "--version") == 0) {
        printf("psifold %s (%s)\n", psi_version(), psi_commit());
        return 0;
    }
    if (strcmp(word, "--man") == 0) return man_sections();
    if (strcmp(word, "help") == 0) {
        if (argc < 3) {
            overview(stdout);
            return 0;
        }
        char *help[] = {argv[2], "--help", NULL};
        const cli_command *command = find(argv[2]);
        return command ? cli_execute(command, 2, help) : unknown_command(argv[2]);
    }
    const cli_command *command = find(word);
    return command ? cli_execute(command, argc - 1, argv + 1) : unknown_command(word);
}
