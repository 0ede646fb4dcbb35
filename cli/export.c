// psifold export: what a run found, for other programs.
#include "cli/commands.h"

#include <string.h>

// The latent MDP for model checkers; the file's name must say what it is.
static psi_status export_model(cli_call *cli, const psi_run_result *run, const char *path,
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

psi_status cli_export(cli_call *cli, int argc, char **argv)
{
    psi_status status = PSI_OK;
    const char *onnx = NULL, *safetensors = NULL, *drn = NULL, *umb = NULL;
    const cli_option options[] = {
        {"onnx", 0, "FILE", CLI_TEXT, &onnx, "write it as ONNX"},
        {"safetensors", 0, "FILE", CLI_TEXT, &safetensors, "write it as safetensors"},
        {"drn", 0, "FILE", CLI_TEXT, &drn, "write the latent MDP as Storm's DRN (FILE.drn)"},
        {"umb", 0, "FILE", CLI_TEXT, &umb, "write the latent MDP as UMB (FILE.umb)"},
    };
    const cli_usage usage = {.name = "export",
                             .arguments = "RUN",
                             .summary =
                                 "Writes a run's network, or its latent MDP, for other programs",
                             .example = "psifold export run --onnx representation.onnx",
                             .options = options,
                             .n_options = CLI_COUNT(options)};
    const char *arguments[CLI_MAX_ARGUMENTS];
    psi_run_result *run = NULL;
    TRY(cli_parse(cli, &usage, argc, argv, arguments));
    if (!onnx && !safetensors && !drn && !umb) {
        status = FAIL(cli->ctx, PSI_EUSAGE,
                      "export needs --onnx, --safetensors, --drn or --umb, with a FILE");
        goto done;
    }
    TRY(psi_run_load(cli->ctx, arguments[0], &run));
    if (drn) TRY(export_model(cli, run, drn, ".drn"));
    if (umb) TRY(export_model(cli, run, umb, ".umb"));
    if ((onnx || safetensors) && !run->representation) {
        status = FAIL(cli->ctx, PSI_EMISSING, "this run used a table: there is no network");
        goto done;
    }
    if (onnx) TRY(psi_net_save_onnx(cli->ctx, run->representation, onnx));
    if (safetensors) TRY(psi_net_save(cli->ctx, run->representation, safetensors));
    if (onnx) cli_print(cli, "%s", onnx);
    if (safetensors) cli_print(cli, "%s", safetensors);
    if (drn) cli_print(cli, "%s", drn);
    if (umb) cli_print(cli, "%s", umb);
    TRY(cli_set(cli, "onnx", onnx ? json_string(onnx) : json_null()));
    TRY(cli_set(cli, "safetensors", safetensors ? json_string(safetensors) : json_null()));
    TRY(cli_set(cli, "drn", drn ? json_string(drn) : json_null()));
    TRY(cli_set(cli, "umb", umb ? json_string(umb) : json_null()));
done:
    psi_run_result_free(cli->ctx, run);
    return status;
}
