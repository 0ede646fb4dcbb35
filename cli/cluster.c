// psifold cluster: the main job.
#include "cli/certificate.h"
#include "cli/commands.h"

#include "base/progress.h"

#include <math.h>
#include <string.h>

// What is told after every refinement: a line on the terminal, a file in the run folder.
typedef struct watcher {
    cli_call *cli;
    psi_run *run;
    json_t *steps;
} watcher;

static psi_status watch(void *user, const psi_cluster_step *step, size_t refinement,
                        size_t n_observations, const int32_t *labels)
{
    const watcher *to = user;
    char duration[CLI_NUMBER];
    cli_close_line(to->cli);
    if (refinement == 1) {
        cli_print(to->cli, "refinement  latent states  ignored  agreement  epsilon     time");
    }
    cli_print(to->cli, "%10zu  %13zu  %5.2f %%  %7.2f %%  %7.3f  %7s", refinement, step->clusters,
              100.0 * step->ignored, 100.0 * step->agreement, step->epsilon,
              cli_duration(duration, step->seconds));
    fflush(stdout);
    json_t *line = json_pack(
        "{s:I, s:f, s:f, s:f, s:f, s:f, s:f}", "clusters", (json_int_t)step->clusters,
        "ignored_fraction", step->ignored, "agreement", step->agreement, "epsilon", step->epsilon,
        "gap", step->gap, "held_out_error", step->held_out_error, "seconds", step->seconds);
    if (!line || json_array_append_new(to->steps, line) != 0) {
        return FAIL(to->cli->ctx, PSI_ENOMEM, "no memory for what a refinement found");
    }
    return psi_run_watch(to->run, step, refinement, n_observations, labels);
}

static void print_result(cli_call *cli, const char *output, const psi_clustering *found)
{
    cli_print(cli, "\n%zu latent states%s", found->n_latent,
              found->has_terminal ? ", the terminal one (0) included" : "");
    cli_print(cli, "  %s",
              found->hot      ? "something in the observations still predicts more than "
                                "the latent states do: there may be more of them"
              : found->stable ? "found twice, with nothing left to tell apart"
                              : "nothing left to tell apart, but found only once");
    cli_print(cli, "  ignored         %.3f %% of the states", 100.0 * found->ignored);
    if (isfinite(found->accuracy)) {
        cli_print(cli, "  representation  %s, right for %.2f %% of held-out observations",
                  found->approximator, 100.0 * found->accuracy);
    } else {
        cli_print(cli, "  representation  %s", found->approximator);
    }
    cli_print(cli,
              "  chosen          gamma %g, epsilon %.3g for rewards, %.3g for successor features "
              "(gap %.3g)",
              found->gamma, found->epsilon_reward, found->epsilon_sf, found->gap);
    cli_print(cli, "  theorem         its condition on gamma and epsilon is %smet",
              found->matching_condition ? "" : "not ");
    cli_print_certificate(cli, found->certificate);
    cli_print(cli, "  run folder      %s", output);
}

static psi_status fill_result(cli_call *cli, const psi_clustering *found, json_t *steps,
                              double seconds)
{
    psi_status status = PSI_OK;
    TRY(cli_set(cli, "latent_states", json_integer((json_int_t)found->n_latent)));
    TRY(cli_set(cli, "converged", json_boolean(found->converged)));
    TRY(cli_set(cli, "stable", json_boolean(found->stable)));
    TRY(cli_set(cli, "hot", json_boolean(found->hot)));
    TRY(cli_set(cli, "split_gain", json_real(found->split_gain)));
    TRY(cli_set(cli, "approximator", json_string(found->approximator)));
    TRY(cli_set(cli, "ignored_fraction", json_real(found->ignored)));
    TRY(cli_set(cli, "refinements", json_incref(steps)));
    TRY(cli_set(cli, "epsilon_reward", json_real(found->epsilon_reward)));
    TRY(cli_set(cli, "epsilon_sf", json_real(found->epsilon_sf)));
    TRY(cli_set(cli, "gamma", json_real(found->gamma)));
    TRY(cli_set(cli, "gap", json_real(found->gap)));
    TRY(cli_set(cli, "matching_condition", json_boolean(found->matching_condition)));
    TRY(cli_set(cli, "representation_accuracy",
                isfinite(found->accuracy) ? json_real(found->accuracy) : json_null()));
    TRY(cli_set(cli, "certificate", cli_certificate_json(found->certificate)));
    TRY(cli_set(cli, "seconds", json_real(seconds)));
done:
    return status;
}

psi_status cli_cluster(cli_call *cli, int argc, char **argv)
{
    psi_status status = PSI_OK;
    psi_cluster_options how = psi_cluster_defaults();
    psi_read_options reading = {0};
    const char *output = NULL, *approximator = "auto", *refine = "recluster", *norm = "l2";
    bool replace = false;
    const cli_option options[] = {
        {"output", 'o', "RUN", CLI_TEXT, &output, "the run folder to write"},
        {"replace", 0, NULL, CLI_FLAG, &replace, "overwrite a run folder that is there"},
        {"key", 0, "NAME", CLI_TEXT, &reading.observation_key, "which entry of a Dict observation"},
        {"approximator", 0, "auto|table|mlp|cnn|resnet18", CLI_CHOICE, &approximator,
         "what predicts rewards and next latent states"},
        {"refine", 0, "recluster|split", CLI_CHOICE, &refine,
         "cluster all states anew each time, or only inside the old clusters"},
        {"smooth", 0, NULL, CLI_FLAG, &how.smooth,
         "use what trajectories say about labels; on unless --no-smooth"},
        {"gamma", 0, "G", CLI_REAL, &how.gamma, "discount of the successor features"},
        {"epsilon-reward", 0, "E", CLI_REAL, &how.epsilon_reward,
         "radius of clusters of rewards; 0: half of the smallest difference"},
        {"epsilon-sf", 0, "E", CLI_REAL, &how.epsilon_sf,
         "radius of clusters of successor features; 0: from the gap"},
        {"norm", 0, "l2|l1", CLI_CHOICE, &norm, "norm of successor features"},
        {"filter", 0, "F", CLI_REAL, &how.filter, "smaller shares of the states are spurious"},
        {"max-refinements", 0, "N", CLI_SIZE, &how.max_refinements, "in one round"},
        {"max-rounds", 0, "N", CLI_SIZE, &how.max_rounds, "rounds of refinement"},
        {"max-latent-states", 0, "N", CLI_SIZE, &how.max_latent_states, "give up beyond"},
        {"hidden", 0, "N", CLI_SIZE, &how.hidden, "units of the perceptron's two layers"},
        {"trunk-steps", 0, "N", CLI_SIZE, &how.trunk_steps, "training steps of the features"},
        {"head-steps", 0, "N", CLI_SIZE, &how.head_steps, "training steps of every fit"},
        {"representation-steps", 0, "N", CLI_SIZE, &how.representation_steps,
         "training steps of the representation network"},
        {"shift", 0, "N", CLI_SIZE, &how.shift,
         "images are moved by up to N pixels while networks learn"},
        {"learning-rate", 0, "R", CLI_REAL, &how.learning_rate, "of trunk and heads"},
    };
    const cli_usage usage = {
        .name = "cluster",
        .arguments = "FILE",
        .summary = "Finds the reward-predictive latent states of a data set",
        .text = "Leaves a run folder with the labels of all observations, the latent model, the\n"
                "network that tells the latent states apart, and a record of how it got there.",
        .example = "psifold cluster points -o run",
        .options = options,
        .n_options = CLI_COUNT(options)};
    const char *arguments[CLI_MAX_ARGUMENTS];
    psi_trajectories *data = NULL;
    psi_clustering *found = NULL;
    watcher to = {.cli = cli};
    TRY(cli_parse(cli, &usage, argc, argv, arguments));
    if (!output) {
        status = FAIL(cli->ctx, PSI_EUSAGE, "cluster needs -o RUN to know where to write");
        goto done;
    }
    how.seed = cli->seed;
    how.split = strcmp(refine, "split") == 0;
    how.norm = strcmp(norm, "l1") == 0 ? PSI_L1 : PSI_L2;
    for (int kind = PSI_APPROXIMATOR_AUTO; kind <= PSI_APPROXIMATOR_RESNET18; kind++) {
        if (strcmp(approximator, psi_approximator_name((psi_approximator)kind)) == 0) {
            how.approximator = (psi_approximator)kind;
        }
    }
    const double started = base_seconds();
    TRY(psi_trajectories_read(cli->ctx, arguments[0], &reading, &data));
    TRY(psi_run_new(cli->ctx, output, replace, &to.run));
    to.steps = json_array();
    TRY(base_json_made(cli->ctx, to.steps));
    how.watch = watch;
    how.user = &to;
    TRY(psi_cluster(cli->ctx, data, &how, &found));
    const double seconds = base_seconds() - started;
    psi_run *run = to.run;
    to.run = NULL;
    TRY(psi_run_commit(run, arguments[0], data, &how, found, seconds));
    print_result(cli, output, found);
    status = fill_result(cli, found, to.steps, seconds);
done:
    json_decref(to.steps);
    psi_run_discard(to.run);
    psi_clustering_free(cli->ctx, found);
    psi_trajectories_free(cli->ctx, data);
    return status;
}
