// psifold bench: the measured figures, on this machine.
#include "cli/bench.h"
#include "cli/commands.h"

#include "base/file.h"

#include <stdlib.h>
#include <string.h>

typedef struct bench_call {
    bench_nn_options network;
    const char *shape;
    size_t transitions;
} bench_call;

#define FIELD(name) OPTION_FIELD(bench_call, name)
static const psi_option OPTIONS[] = {
    {"net", 0, PSI_OPTION_CHOICE, FIELD(network.net), "mlp|cnn|resnet18|heads", "resnet18", NULL,
     PSI_OPTION_MAIN, "train, predict: which one"},
    {"shape", 0, PSI_OPTION_TEXT, FIELD(shape), "CxHxW", "3x28x28", NULL, PSI_OPTION_MAIN,
     "of an observation"},
    {"batch", 0, PSI_OPTION_SIZE, FIELD(network.batch), "N", "256", NULL, PSI_OPTION_MAIN,
     "observations in a step"},
    {"actions", 0, PSI_OPTION_SIZE, FIELD(network.n_actions), "N", "3", NULL, PSI_OPTION_MAIN,
     "heads"},
    {"classes", 0, PSI_OPTION_SIZE, FIELD(network.n_classes), "N", "100", NULL, PSI_OPTION_MAIN,
     "outputs of a head"},
    {"seconds", 0, PSI_OPTION_SECONDS, FIELD(network.seconds), "S", "3", NULL, PSI_OPTION_MAIN,
     "how long to measure"},
    {"exact-conv", 0, PSI_OPTION_FLAG, FIELD(network.exact_conv), NULL, "off", NULL,
     PSI_OPTION_MORE, "direct convolutions only"},
    {"transitions", 0, PSI_OPTION_SIZE, FIELD(transitions), "N", "10000000", NULL, PSI_OPTION_MAIN,
     "quotient: of the largest model"},
    {"kernels", 0, PSI_OPTION_CHOICE, FIELD(network.kernels), "portable|avx2|avx512", NULL, NULL,
     PSI_OPTION_MORE, "which kernels; without it the best this machine has"},
};

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
    {"data", in_temporary_folder}, {"env", bench_env},     {"mdp", bench_mdp},
    {"cluster", bench_cluster},    {"agent", bench_agent},
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

// "3x28x28", or "2" for a vector.
static psi_status parse_shape(cli_call *cli, const char *text, psi_shape *out)
{
    *out = (psi_shape){0};
    for (const char *at = text; out->rank < PSI_MAX_RANK;) {
        char *end;
        const unsigned long size = strtoul(at, &end, 10);
        if (end == at || size == 0 || (*end && *end != 'x')) break;
        out->dim[out->rank++] = size;
        if (!*end) return PSI_OK;
        at = end + 1;
    }
    return FAIL(cli->ctx, PSI_EUSAGE, "--shape takes sizes like 3x28x28, not '%s'", text);
}

// Training and prediction have options of their own and put their figures at the top of the result.
static psi_status bench_network(cli_call *cli, const char *what, const char *shape,
                                bench_nn_options *options)
{
    psi_status status = PSI_OK;
    TRY(parse_shape(cli, shape, &options->shape));
    TRY(strcmp(what, "train") == 0 ? bench_train(cli->ctx, options, cli->result)
        : strcmp(what, "dqn") == 0 ? bench_dqn(cli->ctx, options, cli->result)
                                   : bench_predict(cli->ctx, options, cli->result));
    print_figures(cli, what, cli->result);
done:
    return status;
}

psi_status cli_bench(cli_call *cli, int argc, char **argv)
{
    psi_status status = PSI_OK;
    bench_call call = {0};
    cli_options options[] = {{CLI_TABLE(OPTIONS), &call, 0}};
    const cli_usage usage = {
        .name = "bench",
        .arguments = "WHAT",
        .summary = "Measures psifold on this machine",
        .text =
            "WHAT is train or predict (networks), dqn (an update of deep Q-learning), quotient\n"
            "(exact quotients), data (reading and batching), env (steps of the tasks), mdp\n"
            "(counts, smoothing, planning), cluster (grouping by successor features), agent\n"
            "(updates and steps of agents), or all: the last five.\n"
            "bench/README.md has the figures that were reached, beside other programs.",
        .example = "psifold bench train --net resnet18 --shape 3x28x28 --batch 256 --json",
        .options = options,
        .n_options = CLI_COUNT(options)};
    const char *arguments[CLI_MAX_ARGUMENTS];
    bool known = false;
    TRY(cli_parse(cli, &usage, argc, argv, arguments));
    const char *what = arguments[0];
    if (strcmp(what, "train") == 0 || strcmp(what, "predict") == 0 || strcmp(what, "dqn") == 0) {
        return bench_network(cli, what, call.shape, &call.network);
    }
    if (strcmp(what, "quotient") == 0) {
        TRY(bench_quotient(cli->ctx, call.transitions, cli->result));
        print_figures(cli, what, cli->result);
        return PSI_OK;
    }
    const bool all = strcmp(what, "all") == 0;
    for (size_t i = 0; i < CLI_COUNT(BENCHMARKS); i++) {
        if (!all && strcmp(what, BENCHMARKS[i].name) != 0) continue;
        known = true;
        json_t *figures = json_object();
        TRY(base_json_made(cli->ctx, figures));
        TRY(cli_set(cli, BENCHMARKS[i].name, figures)); // owns them from here on
        TRY(BENCHMARKS[i].run(cli->ctx, figures));
        print_figures(cli, BENCHMARKS[i].name, figures);
    }
    if (!known) {
        status = FAIL(cli->ctx, PSI_EUSAGE,
                      "there is no benchmark '%s'; 'psifold bench --help' lists "
                      "them",
                      what);
    }
done:
    return status;
}
