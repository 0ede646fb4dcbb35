// psifold assign: the latent states of other observations.
#include "cli/commands.h"
#include "cli/labels.h"

typedef struct assign_call {
    const char *key, *output;
    double min_confidence;
} assign_call;

#define FIELD(name) OPTION_FIELD(assign_call, name)
static const psi_option OPTIONS[] = {
    {"key", 0, PSI_OPTION_TEXT, FIELD(key), "NAME", NULL, NULL, PSI_OPTION_MAIN,
     "which entry of a Dict observation, if not the run's"},
    {"output", 'o', PSI_OPTION_TEXT, FIELD(output), "FILE", NULL, NULL, PSI_OPTION_MAIN,
     "the .npy to write: one int32 an observation, −1 where it is unlike anything seen"},
    {"min-confidence", 0, PSI_OPTION_REAL, FIELD(min_confidence), "P", "0", "[0,1]",
     PSI_OPTION_MAIN, "less probable labels are −1, too"},
};

// What is less probable than asked for becomes unknown.
static psi_status forget_doubtful(cli_call *cli, const psi_run_result *run,
                                  const psi_trajectories *data, double least, int32_t *labels)
{
    psi_status status = PSI_OK;
    psi_predictor *predictor = NULL;
    psi_observations *observations = NULL;
    int32_t *sure = NULL;
    TRY(base_alloc(cli->ctx, data->n_observations, sizeof *sure, &sure));
    TRY(psi_predictor_new(cli->ctx, run, &predictor));
    TRY(psi_run_observe(cli->ctx, run, data, &observations));
    TRY(psi_predict(cli->ctx, predictor, observations, least, sure, NULL));
    for (size_t e = 0; e < data->n_episodes; e++) {
        const uint64_t end = data->episode_offsets[e + 1] + e;
        for (uint64_t row = data->episode_offsets[e] + e; row <= end; row++) {
            if (row == end && data->terminated[e]) continue; // it is known to be the end
            if (sure[row] < 0) labels[row] = -1;
        }
    }
done:
    psi_observations_free(cli->ctx, observations);
    psi_predictor_free(cli->ctx, predictor);
    base_free(cli->ctx, sure);
    return status;
}

psi_status cli_assign(cli_call *cli, int argc, char **argv)
{
    psi_status status = PSI_OK;
    assign_call call = {0};
    cli_options options[] = {{CLI_TABLE(OPTIONS), &call, 0}};
    const cli_usage usage = {.name = "assign",
                             .arguments = "RUN FILE",
                             .summary =
                                 "Says which latent state every observation of a data set is",
                             .example = "psifold assign run other -o labels.npy",
                             .options = options,
                             .n_options = CLI_COUNT(options)};
    const char *arguments[CLI_MAX_ARGUMENTS];
    psi_run_result *run = NULL;
    psi_trajectories *data = NULL;
    int32_t *labels = NULL;
    bool own;
    TRY(cli_parse(cli, &usage, argc, argv, arguments));
    if (!call.output) {
        status = FAIL(cli->ctx, PSI_EUSAGE, "assign needs -o FILE to know where to write");
        goto done;
    }
    TRY(cli_load_labels(cli, arguments[0], arguments[1], call.key, &run, &data, &labels, &own));
    if (call.min_confidence > 0.0) {
        TRY(forget_doubtful(cli, run, data, call.min_confidence, labels));
    }
    size_t unknown = 0;
    for (size_t i = 0; i < data->n_observations; i++) unknown += labels[i] < 0;
    const psi_array array = {"labels", PSI_INT32, {1, {data->n_observations}}, labels};
    TRY(psi_arrays_save(cli->ctx, call.output, &array, 1));
    cli_print(cli, "%s: latent states of %zu observations, %zu of them unknown", call.output,
              data->n_observations, unknown);
    TRY(cli_set(cli, "unknown", json_integer((json_int_t)unknown)));
    TRY(cli_set(cli, "path", json_string(call.output)));
    TRY(cli_set(cli, "observations", json_integer((json_int_t)data->n_observations)));
done:
    base_free(cli->ctx, labels);
    psi_trajectories_free(cli->ctx, data);
    psi_run_result_free(cli->ctx, run);
    return status;
}
