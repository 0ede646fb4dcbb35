// psifold export: what a run found, for other programs.
#include "cli/commands.h"

#include <string.h>

// The latent MDP for model checkers; the file's name must say what it is.
static psi_status export_model(cli_call *cli, const psi_run *run, const char *path,
                               const char *ending)
{
    psi_status status = PSI_OK;
    psi_model *model = NULL;
    const size_t length = strlen(path);
    if (length < 5 || strcmp(path + length - 4, ending) != 0)
        return FAIL(cli->ctx, PSI_EUSAGE, "%s: the name has to end with %s", path, ending);
    TRY(psi_model_from_mdp(cli->ctx, run->model, &model));
    TRY(psi_model_write(cli->ctx, model, path));
done:
    psi_model_free(cli->ctx, model);
    return status;
}

typedef struct export_call {
    const char *onnx, *safetensors, *drn, *umb;
} export_call;

#define FIELD(name) OPTION_FIELD(export_call, name)
static const psi_option OPTIONS[] = {
    {"onnx", 0, PSI_OPTION_TEXT, FIELD(onnx), "FILE", NULL, NULL, PSI_OPTION_MAIN,
     "write it as ONNX"},
    {"safetensors", 0, PSI_OPTION_TEXT, FIELD(safetensors), "FILE", NULL, NULL, PSI_OPTION_MAIN,
     "write it as safetensors"},
    {"drn", 0, PSI_OPTION_TEXT, FIELD(drn), "FILE", NULL, NULL, PSI_OPTION_MAIN,
     "write the latent MDP as Storm's DRN (FILE.drn)"},
    {"umb", 0, PSI_OPTION_TEXT, FIELD(umb), "FILE", NULL, NULL, PSI_OPTION_MAIN,
     "write the latent MDP as UMB (FILE.umb)"},
};

psi_status cli_export(cli_call *cli, int argc, char **argv)
{
    psi_status status = PSI_OK;
    export_call call = {0};
    cli_options options[] = {{CLI_TABLE(OPTIONS), &call, 0}};
    const cli_usage usage = {.name = "export",
                             .arguments = "RUN",
                             .summary =
                                 "Writes a run's network, or its latent MDP, for other programs",
                             .example = "psifold export run --onnx representation.onnx",
                             .options = options,
                             .n_options = CLI_COUNT(options)};
    const char *arguments[CLI_MAX_ARGUMENTS];
    psi_run *run = NULL;
    TRY(cli_parse(cli, &usage, argc, argv, arguments));
    if (!call.onnx && !call.safetensors && !call.drn && !call.umb) {
        status = FAIL(cli->ctx, PSI_EUSAGE,
                      "export needs --onnx, --safetensors, --drn or --umb, with a FILE");
        goto done;
    }
    TRY(psi_run_load(cli->ctx, arguments[0], &run));
    if (call.drn) TRY(export_model(cli, run, call.drn, ".drn"));
    if (call.umb) TRY(export_model(cli, run, call.umb, ".umb"));
    if ((call.onnx || call.safetensors) && !run->representation) {
        status = FAIL(cli->ctx, PSI_EMISSING, "this run used a table: there is no network");
        goto done;
    }
    if (call.onnx) TRY(psi_net_save_onnx(cli->ctx, run->representation, call.onnx));
    if (call.safetensors) TRY(psi_net_save(cli->ctx, run->representation, call.safetensors));
    if (call.onnx) cli_print(cli, "%s", call.onnx);
    if (call.safetensors) cli_print(cli, "%s", call.safetensors);
    if (call.drn) cli_print(cli, "%s", call.drn);
    if (call.umb) cli_print(cli, "%s", call.umb);
    TRY(cli_set(cli, "onnx", call.onnx ? json_string(call.onnx) : json_null()));
    TRY(cli_set(cli, "safetensors",
                call.safetensors ? json_string(call.safetensors) : json_null()));
    TRY(cli_set(cli, "drn", call.drn ? json_string(call.drn) : json_null()));
    TRY(cli_set(cli, "umb", call.umb ? json_string(call.umb) : json_null()));
done:
    psi_run_free(cli->ctx, run);
    return status;
}
