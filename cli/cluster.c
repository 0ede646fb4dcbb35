// psifold cluster: the main job.
#include "base/comm.h"
#include "cli/cluster_result.h"
#include "cli/commands.h"
#include "cli/labels.h"

#include "base/file.h"

typedef struct cluster_call {
    const char *output;
    bool replace, resume, mpi;
    psi_read_options reading;
    psi_cluster_options how;
} cluster_call;

// What the command adds to the options of a clustering (src/run/options.c).
#define FIELD(name) OPTION_FIELD(cluster_call, name)
static const psi_option OPTIONS[] = {
    {"output", 'o', PSI_OPTION_TEXT, FIELD(output), "RUN", NULL, NULL, PSI_OPTION_MAIN,
     "the run folder to write"},
    {"replace", 0, PSI_OPTION_FLAG, FIELD(replace), NULL, "off", NULL, PSI_OPTION_MAIN,
     "overwrite a run folder that is there"},
    {"resume", 0, PSI_OPTION_FLAG, FIELD(resume), NULL, "off", NULL, PSI_OPTION_MAIN,
     "go on with a run that was interrupted"},
    {"key", 0, PSI_OPTION_TEXT, FIELD(reading.observation_key), "NAME", NULL, NULL, PSI_OPTION_MAIN,
     "which entry of a Dict observation"},
    CLI_MPI(FIELD(mpi)),
};

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

// The paper's constants, and on top of them what was given.
static psi_status use_paper(cli_call *cli, uint64_t given, psi_cluster_options *how)
{
    const psi_option_table *table = psi_cluster_option_table();
    char task[PSI_OPTION_TEXT_SIZE];
    psi_cluster_options paper;
    if (how->paper == PSI_PAPER_NONE) return PSI_OK;
    psi_option_text(psi_option_find(table, "paper"), how, task);
    const psi_status status = psi_cluster_paper(cli->ctx, task, &paper);
    psi_options_copy(table, given, how, &paper);
    *how = paper;
    return status;
}

// A run that stopped for a reason that may pass was kept.
static void say_how_to_go_on(cli_call *cli, const char *output)
{
    cli_close_line(cli);
    if (cli->silent) return;
    fputs("psifold cluster", stderr);
    for (size_t i = 0; i < cli->n_files; i++) fprintf(stderr, " %s", cli->files[i]);
    fprintf(stderr,
            " -o %s --resume, with the same options (but any --budget), goes on from here\n",
            output);
}

static psi_status check_call(cli_call *cli, const cluster_call *call)
{
    if (!call->output) {
        return FAIL(cli->ctx, PSI_EUSAGE, "cluster needs -o RUN to know where to write");
    }
    if (call->replace && call->resume) {
        return FAIL(cli->ctx, PSI_EUSAGE, "--replace starts anew and --resume goes on: not both");
    }
    return PSI_OK;
}

// Whose folder it is comes first: data may take long to be read.
static psi_status cluster(cli_call *cli, const cluster_call *call, bool *finished, psi_run **run)
{
    psi_status status = PSI_OK;
    const psi_folder_mode mode = call->resume    ? PSI_FOLDER_RESUME
                                 : call->replace ? PSI_FOLDER_REPLACE
                                                 : PSI_FOLDER_NEW;
    psi_run_folder *folder = NULL;
    psi_trajectories *data = NULL;
    bool begun = false;
    *finished = false;
    if (psi_rank(cli->ctx) == 0) {
        TRY(psi_run_folder_open(cli->ctx, call->output, mode, &folder));
        *finished = psi_run_folder_finished(folder);
    }
    TRY(base_broadcast(cli->ctx, finished, sizeof *finished, 0));
    // a finished run is compared with its data, by one process, and does without once they are gone
    const bool there = psi_ranks(cli->ctx) == 1 && base_is_there(cli->files[0]);
    if (!*finished || there) {
        TRY(psi_trajectories_read_all(cli->ctx, cli->files, cli->n_files, &call->reading, &data));
    }
    psi_run_folder *open = folder;
    folder = NULL;
    begun = true;
    if (open) {
        TRY(psi_cluster_into(open, cli->files, cli->n_files, data, &call->how, run));
    } else if (!*finished) { // its folder is that of rank 0
        TRY(psi_cluster(cli->ctx, data, &call->how, run));
    }
done:
    if (status == PSI_ECANCELLED || (begun && (status == PSI_EIO || status == PSI_ENOMEM))) {
        say_how_to_go_on(cli, call->output);
    }
    psi_run_folder_close(folder);
    psi_trajectories_free(cli->ctx, data);
    return status;
}

psi_status cli_cluster(cli_call *cli, int argc, char **argv)
{
    psi_status status = PSI_OK;
    cluster_call call = {.reading = {.size = sizeof call.reading}, .how = psi_cluster_defaults()};
    psi_cluster_options *how = &call.how;
    cli_options options[] = {{CLI_TABLE(OPTIONS), &call, 0}, {psi_cluster_option_table(), how, 0}};
    const cli_usage usage = {
        .name = "cluster",
        .arguments = "FILE...",
        .summary = "Finds the reward-predictive latent states of a data set",
        .text =
            "Several files or folders are one data set, in the order in which they are given.\n"
            "Leaves a run folder with the labels of all observations, the latent model, the\n"
            "network that tells the latent states apart, and a record of every refinement.\n"
            "A run that was stopped (Ctrl-C, a crash, --budget) goes on with --resume and the\n"
            "same options, and its result is the same as without the stop. When a step after the\n"
            "first refinement fails, the run keeps what it has, says what failed, and is not\n"
            "certain.",
        .example = "psifold cluster points -o run",
        .options = options,
        .n_options = CLI_COUNT(options),
        .shared = true};
    const char *arguments[CLI_MAX_ARGUMENTS];
    psi_run *run = NULL;
    bool finished;
    TRY(cli_parse(cli, &usage, argc, argv, arguments));
    TRY(cli_join_others(cli, call.mpi));
    TRY(check_call(cli, &call));
    TRY(use_paper(cli, options[1].given, how));
    how->seed = cli->seed;
    how->watch = watch;
    how->user = cli;
    TRY(cluster(cli, &call, &finished, &run));
    if (psi_rank(cli->ctx) > 0 || !run) goto done; // rank 0 speaks for all
    if (finished) {
        cli_print(cli, "%s is finished: %zu latent states", call.output, run->n_latent);
        status = cli_set(cli, "latent_states", json_integer((json_int_t)run->n_latent));
    } else {
        cli_print_run(cli, run);
        if (run->stopped) say_how_to_go_on(cli, call.output);
        status = cli_set_run(cli, run);
    }
done:
    psi_run_free(cli->ctx, run);
    return status;
}
