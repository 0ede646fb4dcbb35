// Between cli.c, options.c and help.c.
#ifndef PSI_CLI_INTERNAL_H
#define PSI_CLI_INTERNAL_H

#include "cli/cli.h"

enum { CLI_MAX_OPTIONS = 96 };

// An option that a command takes: a row, and whose it is.
typedef struct cli_row {
    const psi_option *option;
    cli_options *of;
    uint64_t bit; // in of->given
} cli_row;

typedef enum cli_help {
    CLI_NO_HELP,
    CLI_HELP,
    CLI_HELP_ALL,
    CLI_HELP_MAN,
    CLI_HELP_WORDS
} cli_help;

// All of a command's options, its own first and the common ones last, in one of the forms in which
// they are told: on a terminal, as a section of the man page, as words for completion.
void cli_show_help(cli_help form, const cli_usage *usage, const cli_row *rows, size_t n);

psi_status cli_make_ctx(cli_call *cli); // from --threads and --quiet

// Whether another process does all of this command's work.
bool cli_is_spare(const cli_call *cli, const cli_usage *usage);
// One process that cannot go on ends the job: the others would wait for it. Returns if there are
// none.
void cli_end_job(cli_call *cli, int code);

#endif
