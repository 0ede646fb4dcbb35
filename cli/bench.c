// psifold bench: the measured figures, on this machine.
#include "cli/bench.h"
#include "cli/commands.h"

#include "base/file.h"

#include <stdlib.h>
#include <string.h>

typedef psi_status benchmark(psi_ctx *ctx, json_t *results);

static psi_status in_temporary_folder(psi_ctx *ctx, json_t *results)
{
    const char *parent = getenv("TMPDIR");
    char folder[4096];
    snprintf(folder, sizeof folder, "%s/psifold-bench-XXXXXX", parent ? parent : "/tmp");
    if (!mkdtemp(folder)) return FAIL(ctx, PSI_EIO, "%s: cannot make the folder", folder);
    const psi_status status = bench_data(ctx, folder, results);
    base_remove(folder);
    return status;
}

static const struct {
    const char *name;
    benchmark *run;
} BENCHMARKS[] = {
    {"data", in_temporary_folder},
    {"env", bench_env},
    {"mdp", bench_mdp},
};

static void print_figures(cli_call *cli, const char *name, json_t *figures)
{
    const char *key;
    json_t *value;
    cli_print(cli, "%s", name);
    json_object_foreach(figures, key, value)
    {
        if (json_is_number(value)) cli_print(cli, "  %-44s %.6g", key, json_number_value(value));
        if (json_is_string(value)) cli_print(cli, "  %-44s %s", key, json_string_value(value));
    }
}

psi_status cli_bench(cli_call *cli, int argc, char **argv)
{
    psi_status status = PSI_OK;
    const cli_usage usage = {
        .name = "bench",
        .arguments = "WHAT",
        .summary = "Measures psifold on this machine",
        .text = "WHAT is data (reading and batching), env (steps of the tasks), mdp (counts,\n"
                "smoothing, planning), or all.\n"
                "bench/README.md has the figures that were reached and the peers beside them.",
        .example = "psifold bench env --json"};
    const char *arguments[CLI_MAX_ARGUMENTS];
    bool known = false;
    TRY(cli_parse(cli, &usage, argc, argv, arguments));
    const bool all = strcmp(arguments[0], "all") == 0;
    for (size_t i = 0; i < CLI_COUNT(BENCHMARKS); i++) {
        if (!all && strcmp(arguments[0], BENCHMARKS[i].name) != 0) continue;
        known = true;
        json_t *figures = json_object();
        TRY(base_json_made(cli->ctx, figures));
        TRY(cli_set(cli, BENCHMARKS[i].name, figures)); // owns them from here on
        TRY(BENCHMARKS[i].run(cli->ctx, figures));
        print_figures(cli, BENCHMARKS[i].name, figures);
    }
    if (!known) {
        status = FAIL(cli->ctx, PSI_EUSAGE, "there is no benchmark '%s'; try 'psifold bench all'",
                      arguments[0]);
    }
done:
    return status;
}
