// psifold export: what a run found, for other programs.
#include "cli/commands.h"
#include "cli/output.h"

#include <string.h>

typedef struct export_call {
    const char *onnx, *safetensors, *drn, *umb;
    bool replace;
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
    CLI_REPLACE(FIELD(replace)),
};

// The latent MDP for model checkers.
static psi_status write_model(psi_ctx *ctx, const psi_run *run, const char *path)
{
    psi_model *model = NULL;
    psi_status status = psi_model_from_mdp(ctx, run->model, &model);
    if (status == PSI_OK) status = psi_model_write(ctx, model, path);
    psi_model_free(ctx, model);
    return status;
}

static psi_status write_onnx(psi_ctx *ctx, const psi_run *run, const char *path)
{
    return psi_net_save_onnx(ctx, run->representation, path);
}

static psi_status write_safetensors(psi_ctx *ctx, const psi_run *run, const char *path)
{
    return psi_net_save(ctx, run->representation, path);
}

// One of the files that may be asked for.
typedef struct export_file {
    const char *key, *path; // NULL: not asked for
    psi_status (*write)(psi_ctx *ctx, const psi_run *run, const char *path);
    bool network;
    cli_output *output;
} export_file;

enum { FILES = 4 };

// The name of a model's file must say what it is.
static psi_status claim(cli_call *cli, const export_call *call, export_file files[FILES])
{
    psi_status status = PSI_OK;
    bool any = false;
    for (int i = 0; i < FILES; i++) {
        const char *path = files[i].path, *ending = path ? strrchr(path, '.') : NULL;
        any |= path != NULL;
        if (path && !files[i].network && (!ending || strcmp(ending + 1, files[i].key) != 0)) {
            TRY(FAIL(cli->ctx, PSI_EUSAGE, "%s: the name has to end with .%s", path, files[i].key));
        }
        TRY(cli_output_open(cli, path, call->replace, &files[i].output));
    }
    if (!any) {
        TRY(FAIL(cli->ctx, PSI_EUSAGE,
                 "export needs --onnx, --safetensors, --drn or --umb, with a FILE"));
    }
done:
    return status;
}

static psi_status write_file(cli_call *cli, const psi_run *run, export_file *file)
{
    psi_status status = PSI_OK;
    if (file->output) {
        if (file->network && !run->representation)
            TRY(FAIL(cli->ctx, PSI_EMISSING, "this run used a table: there is no network"));
        TRY(file->write(cli->ctx, run, cli_output_path(file->output)));
        TRY(cli_output_commit(&file->output));
        cli_print(cli, "%s", file->path);
    }
    TRY(cli_set(cli, file->key, file->path ? json_string(file->path) : json_null()));
done:
    return status;
}

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
    export_file files[FILES] = {0};
    TRY(cli_parse(cli, &usage, argc, argv, arguments));
    files[0] = (export_file){"onnx", call.onnx, write_onnx, true, NULL};
    files[1] = (export_file){"safetensors", call.safetensors, write_safetensors, true, NULL};
    files[2] = (export_file){"drn", call.drn, write_model, false, NULL};
    files[3] = (export_file){"umb", call.umb, write_model, false, NULL};
    TRY(claim(cli, &call, files));
    TRY(psi_run_load(cli->ctx, arguments[0], &run));
    for (int i = 0; i < FILES; i++) TRY(write_file(cli, run, &files[i]));
done:
    for (int i = 0; i < FILES; i++) cli_output_discard(files[i].output);
    psi_run_free(cli->ctx, run);
    return status;
}
