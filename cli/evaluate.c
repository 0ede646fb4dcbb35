// psifold evaluate: how well a run predicts reward sequences.
#include "base/json.h"
#include "cli/commands.h"
#include "cli/labels.h"

static json_t *errors_json(const psi_sequence_error *error)
{
    return json_pack("{s:o, s:o, s:o}", "mean", base_json_real(error->mean), "median",
                     base_json_real(error->median), "zero_baseline",
                     base_json_real(error->zero_baseline));
}

static psi_status print_errors(cli_call *cli, const char *what, const psi_mdp *model,
                               const psi_paths *paths, json_t *into)
{
    psi_sequence_error error;
    const psi_status status =
        psi_sequence_errors(cli->ctx, model, paths, NULL, PSI_ROLLOUT_SOFT, NULL, &error);
    if (status != PSI_OK) return status;
    cli_print(cli, "  %-15s mean error %.6f, median %.6f (predicting zero: %.6f)", what, error.mean,
              error.median, error.zero_baseline);
    json_t *line = errors_json(&error);
    if (!line || json_array_append_new(into, line) != 0) {
        return FAIL(cli->ctx, PSI_ENOMEM, "no memory for the result");
    }
    return PSI_OK;
}

// The same of the final model, beside the best that could be had.
static psi_status print_final(cli_call *cli, const psi_run_result *run,
                              const psi_trajectories *data, const int32_t *labels, json_t *into)
{
    psi_status status = PSI_OK;
    psi_sequence_error error;
    psi_error_floor floor;
    const psi_paths paths = psi_trajectories_paths(data, labels, run->n_latent, run->has_terminal);
    TRY(psi_sequence_errors(cli->ctx, run->model, &paths, NULL, PSI_ROLLOUT_SOFT, NULL, &error));
    TRY(psi_error_floor_of(cli->ctx, run->model, data, labels, run->has_terminal, &floor));
    cli_print(cli, "  %-15s mean error %.6f, median %.6f", "final", error.mean, error.median);
    cli_print(cli, "                  (%s: %.6f, predicting zero: %.6f)",
              floor.truth ? "best possible, by the true latent states"
                          : "best possible, if the latent states tell everything",
              floor.mean, error.zero_baseline);
    json_t *line = errors_json(&error);
    const bool made =
        line && json_object_set_new(line, "best_possible", base_json_real(floor.mean)) == 0 &&
        json_object_set_new(line, "best_possible_by",
                            json_string(floor.truth ? "truth" : "latent-states")) == 0;
    if (!made) json_decref(line);
    if (!made || json_array_append_new(into, line) != 0) {
        status = FAIL(cli->ctx, PSI_ENOMEM, "no memory for the result");
    }
done:
    return status;
}

// The refinements on the way: each with the model of its own labels.
static psi_status refinement_errors(cli_call *cli, const char *folder, const psi_trajectories *data,
                                    const psi_run_result *run, size_t refinement, json_t *into)
{
    psi_status status = PSI_OK;
    int32_t *labels = NULL;
    psi_counts *counts = NULL;
    psi_mdp *model = NULL;
    char what[32];
    size_t n_latent = 0;
    TRY(psi_run_labels(cli->ctx, folder, refinement, run->n_observations, &labels));
    for (size_t i = 0; i < run->n_observations; i++) {
        if (labels[i] >= 0 && (size_t)labels[i] >= n_latent) n_latent = (size_t)labels[i] + 1;
    }
    const psi_paths paths = psi_trajectories_paths(data, labels, n_latent, run->has_terminal);
    TRY(psi_counts_new(cli->ctx, &paths, &counts));
    TRY(psi_counts_model(cli->ctx, counts, 1.0, &model));
    snprintf(what, sizeof what, "refinement %zu", refinement);
    TRY(print_errors(cli, what, model, &paths, into));
done:
    psi_mdp_free(cli->ctx, model);
    psi_counts_free(cli->ctx, counts);
    psi_array_free(cli->ctx, labels);
    return status;
}

// The same on other data: what the heads of each refinement call them, with its own model.
static psi_status heads_errors(cli_call *cli, const char *folder, const psi_trajectories *data,
                               const psi_run_result *run, json_t *into)
{
    psi_status status = PSI_OK;
    const size_t n = data->n_observations;
    int32_t *labels = NULL;
    psi_mdp *model = NULL;
    psi_observations *observations = NULL;
    TRY(base_alloc(cli->ctx, run->n_refinements, n * sizeof *labels, &labels));
    TRY(psi_run_observe(cli->ctx, run, data, &observations));
    TRY(psi_run_assign(cli->ctx, folder, run, observations, labels));
    for (size_t i = 0; i < run->n_refinements; i++) {
        char what[32];
        psi_mdp_free(cli->ctx, model);
        TRY(psi_run_model(cli->ctx, folder, run, i + 1, &model));
        for (size_t row = 0; row < n; row++) {
            if (labels[i * n + row] < (int32_t)model->n_states) continue;
            status =
                FAIL(cli->ctx, PSI_EDATA, "%s: heads and latent model %zu disagree", folder, i + 1);
            goto done;
        }
        if (run->has_terminal) psi_mark_terminals(data, labels + i * n);
        const psi_paths paths =
            psi_trajectories_paths(data, labels + i * n, model->n_states, run->has_terminal);
        snprintf(what, sizeof what, "refinement %zu", i + 1);
        TRY(print_errors(cli, what, model, &paths, into));
    }
done:
    psi_observations_free(cli->ctx, observations);
    psi_mdp_free(cli->ctx, model);
    base_free(cli->ctx, labels);
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

typedef struct evaluate_call {
    const char *key;
} evaluate_call;

#define FIELD(name) OPTION_FIELD(evaluate_call, name)
static const psi_option OPTIONS[] = {
    {"key", 0, PSI_OPTION_TEXT, FIELD(key), "NAME", NULL, NULL, PSI_OPTION_MAIN,
     "which entry of a Dict observation, if not the run's"},
};

psi_status cli_evaluate(cli_call *cli, int argc, char **argv)
{
    psi_status status = PSI_OK;
    evaluate_call call = {0};
    cli_options options[] = {{CLI_TABLE(OPTIONS), &call, 0}};
    const cli_usage usage = {
        .name = "evaluate",
        .arguments = "RUN FILE",
        .summary = "Measures how well a run predicts the reward sequences of a data set",
        .text =
            "Refinement by refinement, and finally: on the data that the run was made from its\n"
            "labels are judged, on other data those that its networks give. Beside the final "
            "error\n"
            "stands the best that can be had where the world is random.",
        .example = "psifold evaluate run points",
        .options = options,
        .n_options = CLI_COUNT(options)};
    const char *arguments[CLI_MAX_ARGUMENTS];
    psi_run_result *run = NULL;
    psi_trajectories *data = NULL;
    int32_t *labels = NULL;
    bool own;
    json_t *errors = json_array();
    TRY(cli_parse(cli, &usage, argc, argv, arguments));
    TRY(cli_load_labels(cli, arguments[0], arguments[1], call.key, &run, &data, &labels, &own));
    cli_print(cli, "%s on %s%s", arguments[0], arguments[1], own ? ", its own data" : "");
    for (size_t i = 1; own && i <= run->n_refinements; i++) {
        TRY(refinement_errors(cli, arguments[0], data, run, i, errors));
    }
    if (!own && run->has_heads) TRY(heads_errors(cli, arguments[0], data, run, errors));
    TRY(print_final(cli, run, data, labels, errors));
    TRY(judge_purity(cli, data, labels, run->n_latent));
    TRY(cli_set(cli, "latent_states", json_integer((json_int_t)run->n_latent)));
    TRY(cli_set(cli, "own_data", json_boolean(own)));
    TRY(cli_set(cli, "sequence_error",
                json_incref(json_array_get(errors, json_array_size(errors) - 1))));
    TRY(cli_set(cli, "sequence_errors", json_incref(errors)));
done:
    json_decref(errors);
    base_free(cli->ctx, labels);
    psi_trajectories_free(cli->ctx, data);
    psi_run_result_free(cli->ctx, run);
    return status;
}
