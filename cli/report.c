// psifold report: a page to look at.
#include "base/json.h"
#include "cli/commands.h"
#include "cli/models.h"
#include "cli/output.h"

#include "base/file.h"

#include <math.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { WHY_SIZE = 512 };

typedef struct report_call {
    const char *output, *key;
    bool open;
    psi_report_options how;
} report_call;

static void print_result(cli_call *cli, const char *output, bool run, const psi_report_result *made)
{
    char bytes[CLI_NUMBER];
    cli_print(cli, "%s: %zu latent states, %zu figures, %s", output, made->latent_states,
              made->figures, cli_bytes(bytes, (double)made->bytes));
    if (!made->finished) cli_print(cli, "  the run was interrupted: the page says how far it got");
    if (run && !made->pictures)
        cli_print(cli, "  the data were not found: no observations are shown");
    if (!psi_figures_possible()) cli_print(cli, "  gnuplot is not installed: figures are left out");
}

// A run has a manifest, or a checkpoint.
static psi_status looks_like_run(cli_call *cli, const char *word, bool *run)
{
    static const char *const names[] = {"manifest.json", "checkpoint"};
    psi_status status = PSI_OK;
    char *path = NULL;
    *run = false;
    for (size_t i = 0; word && i < CLI_COUNT(names) && !*run; i++) {
        base_free(cli->ctx, path);
        TRY(base_join(cli->ctx, word, names[i], &path));
        *run = access(path, F_OK) == 0;
    }
done:
    base_free(cli->ctx, path);
    return status;
}

// A file is a model, to be folded exactly; a folder is a run, and what is not there was to be one.
static bool is_run(const char *what)
{
    struct stat info;
    return stat(what, &info) != 0 || S_ISDIR(info.st_mode);
}

// Data that are not where the run says are told of on the page.
static psi_status find_data(cli_call *cli, const psi_run *run, const char *path, const char *key,
                            psi_trajectories **data, char why[WHY_SIZE])
{
    const psi_status status = psi_run_data(cli->ctx, run, path, key, data);
    why[0] = '\0';
    if (status != PSI_EMISSING || path) return status;
    snprintf(why, WHY_SIZE, "%s", psi_error(cli->ctx)->message);
    return PSI_OK;
}

// The second word is another run, or the data.
static psi_status report_run(cli_call *cli, const char *folder, const char *second,
                             const report_call *call, psi_report_result *made)
{
    psi_status status = PSI_OK;
    psi_report_options how = call->how;
    psi_run *run = NULL, *other = NULL;
    psi_trajectories *data = NULL;
    char why[WHY_SIZE];
    bool two;
    TRY(looks_like_run(cli, second, &two));
    if (!two) how.data_path = second;
    TRY(psi_run_load_so_far(cli->ctx, folder, &run));
    if (two) TRY(psi_run_load_so_far(cli->ctx, second, &other));
    TRY(find_data(cli, run, how.data_path, call->key, &data, why));
    how.no_data = *why ? why : NULL;
    how.other = other;
    if (data) TRY(psi_run_attach(cli->ctx, run, data));
    if (data && other) TRY(psi_run_attach(cli->ctx, other, data));
    TRY(psi_report_write(cli->ctx, run, data, call->output, &how, made));
done:
    psi_trajectories_free(cli->ctx, data);
    psi_run_free(cli->ctx, other);
    psi_run_free(cli->ctx, run);
    return status;
}

static psi_status report_model(cli_call *cli, const char *path, const report_call *call,
                               psi_report_result *made)
{
    psi_model *model = NULL;
    psi_status status = cli_model_read(cli, path, &model);
    if (status == PSI_OK) {
        status = psi_report_model(cli->ctx, model, path, call->output, &call->how, made);
    }
    psi_model_free(cli->ctx, model);
    return status;
}

// In the browser that BROWSER names, or in the desktop's own.
static psi_status open_page(cli_call *cli, const char *page)
{
    const char *named = getenv("BROWSER"), *program = named && *named ? named : "xdg-open";
    char *const arguments[] = {(char *)program, (char *)page, NULL};
    pid_t child;
    int ended = 0;
    if (posix_spawnp(&child, program, NULL, NULL, arguments, environ) == 0 &&
        (named || (waitpid(child, &ended, 0) == child && ended == 0))) {
        return PSI_OK;
    }
    return FAIL(cli->ctx, PSI_EMISSING, "%s cannot open %s: open it in a browser yourself", program,
                page);
}

#define FIELD(name) OPTION_FIELD(report_call, name)
static const psi_option OPTIONS[] = {
    {"output", 'o', PSI_OPTION_TEXT, FIELD(output), "FILE", "report.html", NULL, PSI_OPTION_MAIN,
     "the page to write"},
    {"figures", 0, PSI_OPTION_TEXT, FIELD(how.figures), "FOLDER", NULL, NULL, PSI_OPTION_MAIN,
     "keep the figures there, with their data and scripts"},
    {"key", 0, PSI_OPTION_TEXT, FIELD(key), "NAME", NULL, NULL, PSI_OPTION_MAIN,
     "which entry of a Dict observation"},
    {"gamma", 0, PSI_OPTION_REAL, FIELD(how.gamma), "G", NULL, NULL, PSI_OPTION_MAIN,
     "discount of the values shown"},
    {"open", 0, PSI_OPTION_FLAG, FIELD(open), NULL, "off", NULL, PSI_OPTION_MAIN,
     "show it in a browser"},
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
        .arguments = "RUN [RUN_B|FILE]",
        .summary = "Writes a page that shows what a run found",
        .text =
            "One file for any browser, with nothing outside of it. FILE is the data set of the\n"
            "run, if it is no longer where it was; without it no observations are shown. RUN_B is\n"
            "another run of the same data (another seed, other options), put beside the first. An\n"
            "interrupted run can be looked at, too; and in the place of RUN a finite model, as\n"
            "psifold quotient takes it, which is folded exactly.",
        .example = "psifold report run -o report.html",
        .options = options,
        .n_options = CLI_COUNT(options)};
    const char *arguments[CLI_MAX_ARGUMENTS];
    psi_report_result made;
    TRY(cli_parse(cli, &usage, argc, argv, arguments));
    TRY(cli_output_check(cli, call.output));
    call.how.seed = cli->seed;
    const bool run = is_run(arguments[0]);
    TRY(run ? report_run(cli, arguments[0], arguments[1], &call, &made)
            : report_model(cli, arguments[0], &call, &made));
    print_result(cli, call.output, run, &made);
    TRY(cli_set(cli, "path", json_string(call.output)));
    TRY(cli_set(cli, "bytes", json_integer((json_int_t)made.bytes)));
    TRY(cli_set(cli, "finished", json_boolean(made.finished)));
    TRY(cli_set(cli, "trusted", json_boolean(made.trusted)));
    TRY(cli_set(cli, "pictures", json_boolean(made.pictures)));
    TRY(cli_set(cli, "latent_states", json_integer((json_int_t)made.latent_states)));
    TRY(cli_set(cli, "refinements", json_integer((json_int_t)made.refinements)));
    TRY(cli_set(cli, "figures", json_integer((json_int_t)made.figures)));
    TRY(cli_set(cli, "sequence_error", base_json_real(made.error)));
    TRY(cli_set(cli, "zero_baseline", base_json_real(made.zero_error)));
    TRY(cli_set(cli, "best_possible", base_json_real(made.best_error)));
    if (call.open) TRY(open_page(cli, call.output));
done:
    return status;
}
