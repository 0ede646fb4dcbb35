// psifold report: a page to look at.
#include "cli/commands.h"

#include <math.h>

static void print_result(cli_call *cli, const char *output, const psi_report_result *made)
{
    char bytes[CLI_NUMBER];
    cli_print(cli, "%s: %zu latent states, %zu figures, %s", output, made->latent_states,
              made->figures, cli_bytes(bytes, (double)made->bytes));
    if (!made->finished) cli_print(cli, "  the run was interrupted: the page says how far it got");
    if (!made->pictures) cli_print(cli, "  the data are not there: no observations are shown");
    if (made->figures == 0) cli_print(cli, "  gnuplot is not installed: figures are left out");
}

typedef struct report_call {
    const char *output;
    psi_report_options how;
} report_call;

#define FIELD(name) OPTION_FIELD(report_call, name)
static const psi_option OPTIONS[] = {
    {"output", 'o', PSI_OPTION_TEXT, FIELD(output), "FILE", "report.html", NULL, PSI_OPTION_MAIN,
     "the page to write"},
    {"figures", 0, PSI_OPTION_TEXT, FIELD(how.figures), "FOLDER", NULL, NULL, PSI_OPTION_MAIN,
     "keep the figures there, with their data and scripts"},
    {"key", 0, PSI_OPTION_TEXT, FIELD(how.observation_key), "NAME", NULL, NULL, PSI_OPTION_MAIN,
     "which entry of a Dict observation"},
    {"gamma", 0, PSI_OPTION_REAL, FIELD(how.gamma), "G", NULL, NULL, PSI_OPTION_MAIN,
     "discount of the values shown"},
    {"replace", 0, PSI_OPTION_FLAG, FIELD(how.replace), NULL, "off", NULL, PSI_OPTION_MAIN,
     "overwrite what is there"},
};

psi_status cli_report(cli_call *cli, int argc, char **argv)
{
    psi_status status = PSI_OK;
    report_call call = {.how = psi_report_defaults()};
    cli_options options[] = {{CLI_TABLE(OPTIONS), &call, 0}};
    const cli_usage usage = {
        .name = "report",
        .arguments = "RUN [FILE]",
        .summary = "Writes a page that shows what a run found",
        .text =
            "One file for any browser, with nothing outside of it. FILE is the data set of the\n"
            "run, if it is no longer where it was; without it no observations are shown. An\n"
            "interrupted run can be looked at, too.",
        .example = "psifold report run -o report.html",
        .options = options,
        .n_options = CLI_COUNT(options)};
    const char *arguments[CLI_MAX_ARGUMENTS];
    psi_report_result made;
    TRY(cli_parse(cli, &usage, argc, argv, arguments));
    call.how.data_path = arguments[1];
    call.how.seed = cli->seed;
    TRY(psi_report_write(cli->ctx, arguments[0], call.output, &call.how, &made));
    print_result(cli, call.output, &made);
    TRY(cli_set(cli, "path", json_string(call.output)));
    TRY(cli_set(cli, "bytes", json_integer((json_int_t)made.bytes)));
    TRY(cli_set(cli, "finished", json_boolean(made.finished)));
    TRY(cli_set(cli, "trusted", json_boolean(made.trusted)));
    TRY(cli_set(cli, "pictures", json_boolean(made.pictures)));
    TRY(cli_set(cli, "latent_states", json_integer((json_int_t)made.latent_states)));
    TRY(cli_set(cli, "refinements", json_integer((json_int_t)made.refinements)));
    TRY(cli_set(cli, "figures", json_integer((json_int_t)made.figures)));
    TRY(cli_set(cli, "sequence_error", isfinite(made.error) ? json_real(made.error) : json_null()));
    TRY(cli_set(cli, "zero_baseline",
                isfinite(made.zero_error) ? json_real(made.zero_error) : json_null()));
done:
    return status;
}
