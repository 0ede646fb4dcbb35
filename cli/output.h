// A file that a command writes when its work is done. Its name is claimed before the work begins:
// without --replace a name that is taken is refused at once, and one that somebody takes meanwhile
// at the end, when nothing was overwritten either.
#ifndef PSI_CLI_OUTPUT_H
#define PSI_CLI_OUTPUT_H

#include "cli/cli.h"

typedef struct cli_output cli_output;

// The row of the option table; field is a bool of the command's struct.
#define CLI_REPLACE(field)                                                                         \
    {                                                                                              \
        "replace", 0, PSI_OPTION_FLAG, field, NULL, "off", NULL, PSI_OPTION_MAIN,                  \
            "overwrite what is there"                                                              \
    }

// PSI_EUSAGE if the file is one that the command reads, or one of a folder that it reads: not even
// --replace means that. What else lies in a run's folder, as a report, is the user's to replace.
psi_status cli_output_check(const cli_call *cli, const char *path);

// PSI_EUSAGE if the name is taken. A .tra claims .lab, .srew and .trew beside it, too: they are
// read with it. *out is NULL if the path is, else the caller's until it is committed or discarded.
psi_status cli_output_open(cli_call *cli, const char *path, bool replace, cli_output **out);

// Where the library is to write it: a name of its own with the same ending.
const char *cli_output_path(const cli_output *output);

// What was written takes its name. The output is gone afterwards, also on failure.
psi_status cli_output_commit(cli_output **output);
void cli_output_discard(cli_output *output); // NULL is fine

#endif
