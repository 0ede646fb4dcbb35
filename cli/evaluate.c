// psifold evaluate, assign: what a run is good for.
#include "base/comm.h"
#include "base/context.h"
#include "base/json.h"
#include "cli/commands.h"
#include "cli/labels.h"
#include "cli/output.h"

#include <string.h>

static json_t *errors_json(const psi_sequence_error *error)
{
    return json_pack("{s:o, s:o, s:o}", "mean", base_json_real(error->mean), "median",
                     base_json_real(error->median), "zero_baseline",
                     base_json_real(error->zero_baseline));
}

// The final error has the best that could be had beside it.
static json_t *final_json(const psi_sequence_error *error, const psi_error_floor *floor)
{
    json_t *object = errors_json(error);
    if (object && json_object_set_new(object, "best_possible", base_json_real(floor->mean)) == 0 &&
        json_object_set_new(object, "best_possible_by",
                            json_string(floor->truth ? "truth" : "latent-states")) == 0) {
        return object;
    }
    json_decref(object);
    return NULL;
}

static psi_status print_errors(cli_call *cli, const psi_run_errors *errors,
                               const psi_error_floor *floor)
{
    psi_status status = PSI_OK;
    const size_t last = errors->n_stages - 1;
    json_t *stages = json_array();
    for (size_t i = 0; i <= last; i++) {
        const psi_sequence_error *error = &errors->summary[i];
        char what[32] = "final";
        if (i < last) snprintf(what, sizeof what, "refinement %zu", i + 1);
        cli_print(cli, "  %-15s mean error %.6f, median %.6f (predicting zero: %.6f)", what,
                  error->mean, error->median, error->zero_baseline);
        json_array_append_new(stages, i < last ? errors_json(error) : final_json(error, floor));
    }
    cli_print(cli, "  best possible   mean error %.6f, %s", floor->mean,
              floor->truth ? "by the true latent states" : "if the latent states tell everything");
    TRY(cli_set(cli, "sequence_error", final_json(&errors->summary[last], floor)));
    TRY(cli_set(cli, "sequence_errors", json_incref(stages)));
done:
    json_decref(stages);
    return status;
}

static psi_status judge_purity(cli_call *cli, const psi_trajectories *data, const int32_t *labels,
                               size_t n_latent)
{
    psi_status status = PSI_OK;
    psi_purity purity;
    if (!data->latent_states) return PSI_OK;
    TRY(psi_purity_of(cli->ctx, data, labels, n_latent, &purity));
    cli_print(cli,
              "  truth           %zu latent states; off-diagonal %.4f %%, ignored %.4f %%, "
              "matched %.3f %%",
              purity.true_latent_states, 100.0 * purity.off_diagonal, 100.0 * purity.ignored,
              100.0 * purity.accuracy);
    cli_print(cli, "                  %zu of them merged with others, %zu clusters split off",
              purity.merged, purity.split);
    TRY(cli_set(cli, "true_latent_states", json_integer((json_int_t)purity.true_latent_states)));
    TRY(cli_set(cli, "off_diagonal", base_json_real(purity.off_diagonal)));
    TRY(cli_set(cli, "ignored_fraction", base_json_real(purity.ignored)));
    TRY(cli_set(cli, "accuracy", base_json_real(purity.accuracy)));
    TRY(cli_set(cli, "matched", base_json_real(purity.accuracy)));
    TRY(cli_set(cli, "states_merged", json_integer((json_int_t)purity.merged)));
    TRY(cli_set(cli, "states_split", json_integer((json_int_t)purity.split)));
done:
    return status;
}

typedef struct labels_call {
    const char *key, *output;
    double min_confidence;
    bool replace, mpi;
} labels_call;

#define FIELD(name) OPTION_FIELD(labels_call, name)
static const psi_option OPTIONS[] = {
    CLI_KEY(FIELD(key)),
    CLI_MPI(FIELD(mpi)),
    {"output", 'o', PSI_OPTION_TEXT, FIELD(output), "FILE", NULL, NULL, PSI_OPTION_MAIN,
     "the .npy to write: one int32 an observation, −1 where it is unlike anything seen"},
    {"min-confidence", 0, PSI_OPTION_REAL, FIELD(min_confidence), "P", "0", "[0,1]",
     PSI_OPTION_MAIN, "less probable labels are −1, too"},
    CLI_REPLACE(FIELD(replace)),
};

psi_status cli_evaluate(cli_call *cli, int argc, char **argv)
{
    psi_status status = PSI_OK;
    labels_call call = {0};
    cli_options options[] = {{&(const psi_option_table){OPTIONS, 2}, &call, 0}}; // the first two
    const cli_usage usage = {
        .name = "evaluate",
        .arguments = "RUN FILE...",
        .summary = "Measures how well a run predicts the reward sequences of a data set",
        .text =
            "Prints the errors after every refinement and at the end. On the data that the run\n"
            "was made from, its own labels are used; on other data, those that its networks give.\n"
            "Beside the final error stands the smallest one possible: a task may be random.",
        .example = "psifold evaluate run points",
        .options = options,
        .n_options = CLI_COUNT(options),
        .shared = true};
    const char *arguments[CLI_MAX_ARGUMENTS];
    cli_labelled of = {0};
    psi_run_errors *errors = NULL;
    psi_error_floor floor;
    TRY(cli_parse(cli, &usage, argc, argv, arguments));
    TRY(cli_join_others(cli, call.mpi));
    TRY(cli_load_labels(cli, arguments[0], call.key, 0.0, &of));
    cli_print(cli, "%s on %s%s%s", arguments[0], arguments[1], cli->n_files > 1 ? ", …" : "",
              of.own ? ", its own data" : "");
    TRY(psi_run_evaluate(cli->ctx, of.run, of.data, of.labels, of.own, &errors));
    TRY(psi_error_floor_of(cli->ctx, of.run, of.data, of.labels, &floor));
    TRY(print_errors(cli, errors, &floor));
    TRY(judge_purity(cli, of.data, of.labels, of.run->n_latent));
    TRY(cli_set(cli, "latent_states", json_integer((json_int_t)of.run->n_latent)));
    TRY(cli_set(cli, "own_data", json_boolean(of.own)));
done:
    psi_run_errors_free(cli->ctx, errors);
    cli_labelled_free(cli, &of);
    return status;
}

psi_status cli_assign(cli_call *cli, int argc, char **argv)
{
    psi_status status = PSI_OK;
    labels_call call = {0};
    cli_options options[] = {{CLI_TABLE(OPTIONS), &call, 0}};
    const cli_usage usage = {.name = "assign",
                             .arguments = "RUN FILE...",
                             .summary = "Finds the latent state of every observation of a data set",
                             .example = "psifold assign run other -o labels.npy",
                             .options = options,
                             .n_options = CLI_COUNT(options),
                             .shared = true};
    const char *arguments[CLI_MAX_ARGUMENTS];
    cli_labelled of = {0};
    cli_output *output = NULL;
    int32_t *labels = NULL; // of all processes
    size_t n, bytes;
    TRY(cli_parse(cli, &usage, argc, argv, arguments));
    if (!call.output) {
        status = FAIL(cli->ctx, PSI_EUSAGE, "assign needs -o FILE to know where to write");
        goto done;
    }
    TRY(cli_join_others(cli, call.mpi));
    if (psi_rank(cli->ctx) == 0) TRY(cli_output_open(cli, call.output, call.replace, &output));
    TRY(cli_load_labels(cli, arguments[0], call.key, call.min_confidence, &of));
    n = of.data->n_observations;
    TRY(base_collect(cli->ctx, of.labels, n * sizeof *labels, &labels, &bytes));
    if (psi_rank(cli->ctx) > 0) goto done;
    n = bytes / sizeof *labels;
    size_t unknown = 0;
    for (size_t i = 0; i < n; i++) unknown += labels[i] < 0;
    const psi_array array = {"labels", PSI_INT32, {1, {n}}, labels};
    TRY(psi_arrays_save(cli->ctx, cli_output_path(output), &array, 1));
    TRY(cli_output_commit(&output));
    cli_print(cli, "%s: latent states of %zu observations, %zu of them unknown", call.output, n,
              unknown);
    TRY(cli_set(cli, "unknown", json_integer((json_int_t)unknown)));
    TRY(cli_set(cli, "path", json_string(call.output)));
    TRY(cli_set(cli, "observations", json_integer((json_int_t)n)));
done:
    base_free(cli->ctx, labels);
    cli_output_discard(output);
    cli_labelled_free(cli, &of);
    return status;
}
