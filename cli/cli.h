// What all subcommands share: options from one table (parsing, --help, man page and completion all
// come from it), results as text or JSON, progress on a terminal.
#ifndef PSI_CLI_CLI_H
#define PSI_CLI_CLI_H

#include <psifold/psifold.h>

#include "base/context.h"
#include "base/options.h"

#include <stdio.h>

enum { CLI_MAX_ARGUMENTS = 4 };

typedef struct cli_call {
    psi_ctx *ctx;             // there once cli_parse succeeded
    bool json;                // one JSON object on stdout, everything else on stderr
    bool quiet;               // no progress, no notes
    uint64_t seed;            // --seed
    size_t threads;           // --threads; 0: all processors
    size_t max_memory;        // --max-memory, bytes; 0: what the machine or its control group has
    const char *const *files; // (n_files) the words of FILE...
    size_t n_files;
    json_t *result;                      // what --json prints; commands fill it
    const char *read[CLI_MAX_ARGUMENTS]; // the positional arguments: what no output may destroy
    bool on_terminal, line_open;
    bool silent;     // not rank 0: it says nothing but why it cannot go on
    double reported; // when progress was last told, in seconds
} cli_call;

// A table of options (psifold/base.h) and the struct that it describes. Several make up what a
// command takes: its own, those of the library, those of a task.
typedef struct cli_options {
    const psi_option_table *table;
    void *into;
    uint64_t given; // bit i: row i stood on the command line
} cli_options;

typedef struct cli_usage {
    const char *name;      // "generate"
    const char *arguments; // "TASK"; every word is one positional argument, "[…]" may be left
                           // out, the last may be "FILE...", several (cli->files)
    const char *summary;   // one line
    const char *text;      // a paragraph or two; may be NULL
    const char *example;   // a command that works
    cli_options *options;  // (n_options)
    size_t n_options;
    bool shared; // several processes (mpirun) do it together: it calls cli_join_others
} cli_usage;

// The table of a command's own rows, for cli_options.
#define CLI_TABLE(rows) (&(const psi_option_table){(rows), CLI_COUNT(rows)})

#define CLI_COUNT(table) (sizeof(table) / sizeof((table)[0]))

// Fills in the defaults, parses the command's options and the common ones, then makes cli->ctx.
// arguments receives the positional words (NULL where one was left out). Returns PSI_EUSAGE after
// saying on stderr what is wrong, PSI_ECANCELLED after --help was answered.
psi_status cli_parse(cli_call *cli, const cli_usage *usage, int argc, char **argv,
                     const char *arguments[CLI_MAX_ARGUMENTS]);

// One of several processes, as mpirun has started them, or --mpi (CLI_MPI) says. Rank 0 speaks for
// all of them.
psi_status cli_join_others(cli_call *cli, bool wanted);
#define CLI_MPI(field)                                                                             \
    {                                                                                              \
        "mpi", 0, PSI_OPTION_FLAG, field, NULL, "off", NULL, PSI_OPTION_MORE,                      \
            "one of several processes, also where mpirun leaves no sign of itself"                 \
    }

// A line of the human-readable result; silent under --json.
void cli_print(cli_call *cli, const char *format, ...) PRINTF_LIKE(2, 3);

// Takes an open progress bar off the terminal, before a line is printed.
void cli_close_line(cli_call *cli);

// Sets a key of the JSON result; takes over the value.
psi_status cli_set(cli_call *cli, const char *key, json_t *value);

// One sentence on stderr, as every error of the command looks.
void cli_complain(const char *format, ...) PRINTF_LIKE(1, 2);

// "1,460,000", "3.4 GB", "2 min 5 s" in the caller's buffer, which is also returned.
enum { CLI_NUMBER = 32 };
const char *cli_count(char buffer[CLI_NUMBER], uint64_t count);
const char *cli_bytes(char buffer[CLI_NUMBER], double bytes);
const char *cli_duration(char buffer[CLI_NUMBER], double seconds);

typedef psi_status cli_run(cli_call *cli, int argc, char **argv);

typedef struct cli_command {
    const char *name, *summary;
    cli_run *run;
} cli_command;

extern const cli_command CLI_COMMANDS[]; // ends with a NULL name
const char *cli_nearest(const char *word, const char *const *known, size_t n); // or NULL

// The one way a command is run: parse, work, print the result, give everything back.
int cli_execute(const cli_command *command, int argc, char **argv);

#endif
