// psifold reproduce: the experiments of the paper by one command each.
#include "cli/reproduce.h"

#include "cli/commands.h"

#include "base/file.h"

#include <string.h>

static const struct {
    const char *name;
    cli_reproduction *run;
} EXPERIMENTS[] = {
    {"transfer", cli_reproduce_transfer},
    {"sweep", cli_reproduce_sweep},
};

psi_status cli_reproduce(cli_call *cli, int argc, char **argv)
{
    psi_status status = PSI_OK;
    cli_reproduce_call call = {.scale_name = "quick", .digits = "mnist"};
    const cli_option options[] = {
        {"scale", 0, "quick|medium|paper", CLI_CHOICE, &call.scale_name,
         "minutes with a small network, hours with ResNet18, or all of the paper's seeds"},
        {"output", 'o', "DIR", CLI_TEXT, &call.output, "where results go; run again to go on"},
        {"run", 0, "RUN", CLI_TEXT, &call.run,
         "transfer: take the representation from this run folder"},
        {"seeds", 0, "N", CLI_SIZE, &call.seeds, "another number of seeds than the scale's"},
        {"episodes", 0, "N", CLI_SIZE, &call.episodes, "another number of episodes than 100"},
        {"digits", 0, "mnist|drawn", CLI_CHOICE, &call.digits, "images of the lock"},
    };
    const cli_usage usage = {
        .name = "reproduce",
        .arguments = "WHAT",
        .summary = "Repeats an experiment of the paper",
        .text = "WHAT is transfer (figure 6: agents in new tasks) or sweep (table 2: the options "
                "of deep\nQ-learning). Every finished trial is kept: a command that was stopped "
                "goes on when it is\ngiven again.",
        .example = "psifold reproduce transfer --scale quick -o results/transfer/quick",
        .options = options,
        .n_options = CLI_COUNT(options)};
    const char *arguments[CLI_MAX_ARGUMENTS];
    TRY(cli_parse(cli, &usage, argc, argv, arguments));
    if (!call.output) {
        status = FAIL(cli->ctx, PSI_EUSAGE, "reproduce needs -o DIR to know where to write");
        goto done;
    }
    call.scale = strcmp(call.scale_name, "quick") == 0    ? CLI_QUICK
                 : strcmp(call.scale_name, "medium") == 0 ? CLI_MEDIUM
                                                          : CLI_PAPER;
    for (size_t i = 0; i < CLI_COUNT(EXPERIMENTS); i++) {
        if (strcmp(arguments[0], EXPERIMENTS[i].name) != 0) continue;
        TRY(base_make_folders(cli->ctx, call.output));
        return EXPERIMENTS[i].run(cli, &call);
    }
    status =
        FAIL(cli->ctx, PSI_EUSAGE,
             "there is no experiment '%s'; 'psifold reproduce --help' lists them", arguments[0]);
done:
    return status;
}
