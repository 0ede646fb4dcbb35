// psifold cluster: the main job.
#include "cli/certificate.h"
#include "cli/commands.h"
#include "cli/phases.h"

#include <math.h>
#include <string.h>

// A line on the terminal for every refinement, those that an earlier process has made included.
static psi_status watch(void *user, const psi_cluster_step *step, size_t refinement,
                        size_t n_observations, const int32_t *labels)
{
    (void)n_observations, (void)labels;
    cli_call *cli = user;
    char duration[CLI_NUMBER];
    cli_close_line(cli);
    if (refinement == 1) {
        cli_print(cli, "refinement  latent states  ignored  agreement  epsilon     time");
    }
    cli_print(cli, "%10zu  %13zu  %5.2f %%  %7.2f %%  %7.3f  %7s", refinement, step->clusters,
              100.0 * step->ignored, 100.0 * step->agreement, step->epsilon,
              cli_duration(duration, step->seconds));
    fflush(stdout);
    return PSI_OK;
}

static json_t *real_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

enum { MOST_ADVICE = 6 }; // lines of it on a terminal

static json_t *doubts_json(const psi_clustering *found, bool advice)
{
    static const char *const KINDS[] = {"pair", "untried", "rare", "past"};
    json_t *doubts = json_array();
    for (size_t i = 0; i < found->n_doubts; i++) {
        const psi_doubt *doubt = &found->doubts[i];
        char text[256];
        psi_doubt_sentence(doubt, text, sizeof text);
        json_t *one =
            advice ? json_string(text)
                   : json_pack("{s:s, s:i, s:i, s:o, s:I}", "kind", KINDS[doubt->kind], "state",
                               doubt->state, "other", doubt->other, "nats",
                               real_or_null(doubt->nats), "visits", (json_int_t)doubt->visits);
        if (json_array_append_new(doubts, one) == 0) continue;
        json_decref(doubts);
        return NULL;
    }
    return doubts;
}

static json_t *steps_json(const psi_clustering *found)
{
    json_t *steps = json_array();
    for (size_t i = 0; i < found->n_steps; i++) {
        const psi_cluster_step *step = &found->steps[i];
        json_array_append_new(
            steps,
            json_pack("{s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "clusters",
                      (json_int_t)step->clusters, "looked_at", (json_int_t)step->looked_at,
                      "ignored_fraction", real_or_null(step->ignored), "agreement",
                      real_or_null(step->agreement), "epsilon", real_or_null(step->epsilon), "gap",
                      real_or_null(step->gap), "held_out_error", real_or_null(step->held_out_error),
                      "seconds", real_or_null(step->seconds)));
    }
    return steps;
}

json_t *cli_phases_json(const psi_clustering *found)
{
    json_t *phases = json_array();
    for (size_t i = 0; i < found->n_phases; i++) {
        const psi_cluster_phase *phase = &found->phases[i];
        json_t *object = json_pack("{s:s, s:f, s:I}", "phase", phase->name, "seconds",
                                   phase->seconds, "passes", (json_int_t)phase->passes);
        if (json_array_append_new(phases, object) == 0) continue;
        json_decref(phases);
        return NULL;
    }
    return phases;
}

static void print_result(cli_call *cli, const char *output, const psi_clustering *found)
{
    cli_print(cli, "\n%zu latent states%s", found->n_latent,
              found->has_terminal ? ", the terminal one (0) included" : "");
    char text[256];
    if (found->verdict != PSI_VERDICT_NOT_ASKED) {
        psi_verdict_sentence(found, text, sizeof text);
        cli_print(cli, "  %s", text);
        for (size_t i = 0; i < found->n_doubts && i < MOST_ADVICE; i++) {
            psi_doubt_sentence(&found->doubts[i], text, sizeof text);
            cli_print(cli, "    %s", text);
        }
        if (found->n_doubts > MOST_ADVICE) {
            cli_print(cli, "    … and %zu more (--json has them)", found->n_doubts - MOST_ADVICE);
        }
    } else {
        cli_print(cli, "  %s",
                  !found->judged
                      ? "the paper's schedule: whether anything is left to tell apart was not "
                        "asked"
                  : found->hot    ? "something in the observations still predicts more than "
                                    "the latent states do: there may be more of them"
                  : found->stable ? "found twice, with nothing left to tell apart"
                                  : "nothing left to tell apart, but found only once");
    }
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

static psi_status fill_result(cli_call *cli, const psi_clustering *found, double seconds)
{
    psi_status status = PSI_OK;
    TRY(cli_set(cli, "latent_states", json_integer((json_int_t)found->n_latent)));
    TRY(cli_set(cli, "verdict", json_string(psi_verdict_name(found->verdict))));
    TRY(cli_set(cli, "margin", real_or_null(found->margin)));
    TRY(cli_set(cli, "doubtful_fraction", real_or_null(found->doubtful)));
    TRY(cli_set(cli, "past_fraction", real_or_null(found->past)));
    TRY(cli_set(cli, "undetermined", doubts_json(found, false)));
    TRY(cli_set(cli, "advice", doubts_json(found, true)));
    TRY(cli_set(cli, "converged", json_boolean(found->converged)));
    TRY(cli_set(cli, "stable", json_boolean(found->stable)));
    TRY(cli_set(cli, "hot", found->judged ? json_boolean(found->hot) : json_null()));
    TRY(cli_set(cli, "split_gain", real_or_null(found->split_gain)));
    TRY(cli_set(cli, "approximator", json_string(found->approximator)));
    TRY(cli_set(cli, "ignored_fraction", json_real(found->ignored)));
    TRY(cli_set(cli, "refinements", steps_json(found)));
    TRY(cli_set(cli, "epsilon_reward", json_real(found->epsilon_reward)));
    TRY(cli_set(cli, "epsilon_sf", json_real(found->epsilon_sf)));
    TRY(cli_set(cli, "gamma", json_real(found->gamma)));
    TRY(cli_set(cli, "gap", real_or_null(found->gap)));
    TRY(cli_set(cli, "matching_condition", json_boolean(found->matching_condition)));
    TRY(cli_set(cli, "representation_accuracy", real_or_null(found->accuracy)));
    TRY(cli_set(cli, "certificate", cli_certificate_json(found->certificate)));
    TRY(cli_set(cli, "seconds", json_real(seconds)));
    TRY(cli_set(cli, "phases", cli_phases_json(found)));
done:
    return status;
}

// The paper's constants, where no others were asked for.
static psi_status use_paper(cli_call *cli, const char *task, psi_cluster_options *how)
{
    const psi_cluster_options usual = psi_cluster_defaults();
    psi_cluster_options paper;
    const psi_status status = psi_cluster_paper(cli->ctx, task, &paper);
    if (status != PSI_OK) return status;
#define KEEP(field)                                                                                \
    if (how->field != usual.field) paper.field = how->field
    KEEP(approximator);
    KEEP(norm);
    KEEP(gamma);
    KEEP(epsilon_reward);
    KEEP(epsilon_sf);
    KEEP(filter);
    KEEP(max_refinements);
    KEEP(max_latent_states);
    KEEP(hidden);
    KEEP(learning_rate);
#undef KEEP
    paper.seed = how->seed;
    *how = paper;
    return PSI_OK;
}

// A run that stopped for a reason that may pass is kept; one that cannot succeed is not.
static void close_run(cli_call *cli, psi_run *run, psi_status status, const char *file,
                      const char *output)
{
    const bool may_pass = status == PSI_ECANCELLED || status == PSI_EIO || status == PSI_ENOMEM;
    if (!may_pass) {
        psi_run_discard(run);
        return;
    }
    psi_run_suspend(run);
    cli_close_line(cli);
    fprintf(stderr, "psifold cluster %s -o %s --resume, with the same options, goes on from here\n",
            file, output);
}

static psi_status already_finished(cli_call *cli, const char *output)
{
    psi_status status = PSI_OK;
    psi_run_result *run = NULL;
    TRY(psi_run_load(cli->ctx, output, &run));
    cli_print(cli, "%s is finished: %zu latent states", output, run->n_latent);
    TRY(cli_set(cli, "latent_states", json_integer((json_int_t)run->n_latent)));
done:
    psi_run_result_free(cli->ctx, run);
    return status;
}

psi_status cli_cluster(cli_call *cli, int argc, char **argv)
{
    psi_status status = PSI_OK;
    psi_cluster_options how = psi_cluster_defaults();
    psi_read_options reading = {0};
    const char *output = NULL, *approximator = "auto", *refine = "recluster", *norm = "l2",
               *cache = "auto", *paper = NULL, *method = "evidence";
    bool replace = false, resume = false;
    const cli_option options[] = {
        {"output", 'o', "RUN", CLI_TEXT, &output, "the run folder to write"},
        {"replace", 0, NULL, CLI_FLAG, &replace, "overwrite a run folder that is there"},
        {"resume", 0, NULL, CLI_FLAG, &resume, "go on with a run that was interrupted"},
        {"key", 0, "NAME", CLI_TEXT, &reading.observation_key, "which entry of a Dict observation"},
        {"method", 0, "evidence|successor-features", CLI_CHOICE, &method,
         "how latent states are told apart"},
        {"approximator", 0, "auto|table|mlp|cnn|resnet18", CLI_CHOICE, &approximator,
         "what predicts rewards and next latent states"},
        {"refine", 0, "recluster|split", CLI_CHOICE, &refine,
         "cluster all states anew each time, or only inside the old clusters"},
        {"paper", 0, "column-world|combination-lock", CLI_CHOICE, &paper,
         "the paper's schedule and constants for this task"},
        {"smooth", 0, NULL, CLI_FLAG, &how.smooth,
         "use what trajectories say about labels; on unless --no-smooth"},
        {"heads", 0, NULL, CLI_FLAG, &how.heads,
         "keep heads of every refinement, to evaluate it on other data; on unless --no-heads"},
        {"gamma", 0, "G", CLI_REAL, &how.gamma, "discount of the successor features"},
        {"epsilon-reward", 0, "E", CLI_REAL, &how.epsilon_reward,
         "radius of clusters of rewards; 0: half of the smallest difference"},
        {"epsilon-sf", 0, "E", CLI_REAL, &how.epsilon_sf,
         "radius of clusters of successor features; 0: from the gap"},
        {"norm", 0, "l2|l1", CLI_CHOICE, &norm, "norm of successor features"},
        {"auxiliary", 0, NULL, CLI_FLAG, &how.auxiliary,
         "features also learn to tell actions and what comes next; on unless --no-auxiliary"},
        {"dropout", 0, NULL, CLI_FLAG, &how.dropout,
         "heads learn from a random half of the features at a time until a round hides something; "
         "on unless --no-dropout"},
        {"fine-tune", 0, NULL, CLI_FLAG, &how.fine_tune,
         "at the end the whole network learns the latent states; on unless --no-fine-tune"},
        {"cache", 0, "auto|full|half", CLI_CHOICE, &cache,
         "precision of the features that are kept; auto: half where full takes over 1 GiB"},
        {"filter", 0, "F", CLI_REAL, &how.filter, "smaller shares of the states are spurious"},
        {"max-refinements", 0, "N", CLI_SIZE, &how.max_refinements, "in one round"},
        {"max-rounds", 0, "N", CLI_SIZE, &how.max_rounds, "rounds of refinement"},
        {"max-latent-states", 0, "N", CLI_SIZE, &how.max_latent_states, "give up beyond"},
        {"subset", 0, "N", CLI_SIZE, &how.subset,
         "refinements look at about N states, the last at all; 0: all at all"},
        {"hidden", 0, "N", CLI_SIZE, &how.hidden,
         "units of the perceptron's two layers; 0: 512, and 128 where it only tells labels apart"},
        {"trunk-steps", 0, "N", CLI_SIZE, &how.trunk_steps,
         "training steps of the features; 0: 2,000 for vectors, 1,000 for images"},
        {"head-steps", 0, "N", CLI_SIZE, &how.head_steps, "training steps of every fit"},
        {"representation-steps", 0, "N", CLI_SIZE, &how.representation_steps,
         "training steps of the representation network; 0: three epochs, from 1,000 to 12,000; two "
         "epochs less 250 steps for resnet18"},
        {"shift", 0, "N", CLI_SIZE, &how.shift,
         "images are moved by up to N pixels while networks learn"},
        {"learning-rate", 0, "R", CLI_REAL, &how.learning_rate, "of trunk and heads"},
    };
    const cli_usage usage = {
        .name = "cluster",
        .arguments = "FILE",
        .summary = "Finds the reward-predictive latent states of a data set",
        .text =
            "Leaves a run folder with the labels of all observations, the latent model, the\n"
            "network that tells the latent states apart, and a record of how it got there.\n"
            "A run that was interrupted, by Ctrl-C or worse, goes on with --resume and the same\n"
            "options, and ends as if nothing had happened.",
        .example = "psifold cluster points -o run",
        .options = options,
        .n_options = CLI_COUNT(options)};
    const char *arguments[CLI_MAX_ARGUMENTS];
    psi_trajectories *data = NULL;
    psi_clustering *found = NULL;
    psi_run *run = NULL;
    TRY(cli_parse(cli, &usage, argc, argv, arguments));
    if (!output) {
        status = FAIL(cli->ctx, PSI_EUSAGE, "cluster needs -o RUN to know where to write");
        goto done;
    }
    if (replace && resume) {
        status = FAIL(cli->ctx, PSI_EUSAGE, "--replace starts anew and --resume goes on: not both");
        goto done;
    }
    how.seed = cli->seed;
    how.method =
        strcmp(method, "evidence") == 0 ? PSI_METHOD_EVIDENCE : PSI_METHOD_SUCCESSOR_FEATURES;
    how.split = strcmp(refine, "split") == 0;
    how.norm = strcmp(norm, "l1") == 0 ? PSI_L1 : PSI_L2;
    how.cache = strcmp(cache, "full") == 0   ? PSI_CACHE_FULL
                : strcmp(cache, "half") == 0 ? PSI_CACHE_HALF
                                             : PSI_CACHE_AUTO;
    for (int kind = PSI_APPROXIMATOR_AUTO; kind <= PSI_APPROXIMATOR_RESNET18; kind++) {
        if (strcmp(approximator, psi_approximator_name((psi_approximator)kind)) == 0) {
            how.approximator = (psi_approximator)kind;
        }
    }
    if (paper) TRY(use_paper(cli, paper, &how));
    // whose folder it is comes first: data may take long to be read
    TRY(resume ? psi_run_resume(cli->ctx, output, &run)
               : psi_run_new(cli->ctx, output, replace, &run));
    if (psi_run_finished(run)) {
        status = already_finished(cli, output);
        goto done;
    }
    status = psi_trajectories_read(cli->ctx, arguments[0], &reading, &data);
    if (status != PSI_OK) { // nothing was begun yet
        psi_run_discard(run);
        run = NULL;
        goto done;
    }
    how.run = run;
    how.watch = watch;
    how.user = cli;
    TRY(psi_cluster(cli->ctx, data, &how, &found));
    const double seconds = psi_run_seconds(run);
    run = NULL;
    TRY(psi_run_commit(how.run, arguments[0], data, &how, found));
    print_result(cli, output, found);
    status = fill_result(cli, found, seconds);
done:
    if (run) close_run(cli, run, status, arguments[0], output);
    psi_clustering_free(cli->ctx, found);
    psi_trajectories_free(cli->ctx, data);
    return status;
}
