// psifold generate: trajectories of a built-in task under random actions, or what its behaviour is.
#include "cli/commands.h"
#include "cli/task.h"

#include "base/progress.h"

#include <string.h>

typedef struct generate_call {
    const char *output;
    size_t episodes;
    bool replace;
    cli_task task;
} generate_call;

#define FIELD(name) OPTION_FIELD(generate_call, name)
static const psi_option OPTIONS[] = {
    {"output", 'o', PSI_OPTION_TEXT, FIELD(output), "PATH", NULL, NULL, PSI_OPTION_MAIN,
     "where to: a Minari folder, or an .npz file if the name ends like that"},
    {"episodes", 0, PSI_OPTION_SIZE, FIELD(episodes), "N", "1000", "[1,", PSI_OPTION_MAIN,
     "how many"},
    {"replace", 0, PSI_OPTION_FLAG, FIELD(replace), NULL, "off", NULL, PSI_OPTION_MAIN,
     "overwrite what is there"},
};

typedef struct sink {
    psi_writer *writer;
    base_progress progress;
    psi_collect_result count;
    uint64_t episodes; // delivered so far
} sink;

static psi_status deliver(void *user, const psi_episode *episode)
{
    sink *to = user;
    const psi_status status = psi_writer_add(to->writer, episode);
    return status == PSI_OK ? base_progress_at(&to->progress, ++to->episodes) : status;
}

static psi_status report(cli_call *cli, const char *path, const psi_task *task,
                         const psi_collect_result *made, double seconds)
{
    psi_status status = PSI_OK;
    char episodes[CLI_NUMBER], transitions[CLI_NUMBER], duration[CLI_NUMBER];
    const double mean = (double)made->steps / (double)made->episodes;
    cli_print(cli, "%s: %s episodes of %s, %s transitions, mean length %.1f, in %s", path,
              cli_count(episodes, made->episodes), psi_task_name(task->kind),
              cli_count(transitions, made->steps), mean, cli_duration(duration, seconds));
    TRY(cli_set(cli, "path", json_string(path)));
    TRY(cli_set(cli, "task", json_string(psi_task_name(task->kind))));
    TRY(cli_set(cli, "episodes", json_integer((json_int_t)made->episodes)));
    TRY(cli_set(cli, "transitions", json_integer((json_int_t)made->steps)));
    TRY(cli_set(cli, "terminated", json_integer((json_int_t)made->terminated)));
    TRY(cli_set(cli, "mean_length", json_real(mean)));
    TRY(cli_set(cli, "seconds", json_real(seconds)));
done:
    return status;
}

psi_status cli_generate(cli_call *cli, int argc, char **argv)
{
    psi_status status = PSI_OK;
    generate_call call = {0};
    cli_options options[] = {{CLI_TABLE(OPTIONS), &call, 0}, cli_task_options(&call.task)};
    const cli_usage usage = {
        .name = "generate",
        .arguments = "TASK",
        .summary = "Writes trajectories of a built-in task, actions random or mostly right",
        .example = "psifold generate combination-lock --digits drawn --episodes 100 -o lock",
        .options = options,
        .n_options = CLI_COUNT(options)};
    const char *arguments[CLI_MAX_ARGUMENTS];
    sink made = {0};
    psi_task task;
    char description[PSI_TASK_JSON_SIZE], id[128];
    TRY(cli_parse(cli, &usage, argc, argv, arguments));
    if (!call.output) {
        status = FAIL(cli->ctx, PSI_EUSAGE, "generate needs -o PATH to know where to write");
        goto done;
    }
    TRY(cli_task_make(cli, arguments[0], &call.task, &task));
    TRY(psi_task_json(cli->ctx, &task, description));
    snprintf(id, sizeof id, "psifold/%s/%s-v0", psi_task_name(task.kind), task.preset);
    psi_episode_spec spec = psi_collect_spec(&task);
    spec.name = id;
    spec.task_options = description;
    TRY(psi_writer_open(cli->ctx, call.output, &spec, call.replace, &made.writer));
    made.progress = base_progress_start(cli->ctx, "generating", call.episodes);
    TRY(psi_collect(cli->ctx, &task, call.episodes, cli->seed, deliver, &made, &made.count));
    base_progress_end(&made.progress, call.episodes);
    psi_writer *writer = made.writer;
    made.writer = NULL;
    TRY(psi_writer_commit(writer));
    status = report(cli, call.output, &task, &made.count, base_seconds() - made.progress.started);
done:
    psi_writer_discard(made.writer);
    return status;
}
