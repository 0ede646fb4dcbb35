// psifold inspect: what is in a data set, and what is wrong with it.
#include "cli/commands.h"

#include <string.h>

static json_t *shape_json(const psi_shape *shape)
{
    json_t *list = json_array();
    for (size_t i = 0; i < shape->rank; i++) {
        json_array_append_new(list, json_integer((json_int_t)shape->dim[i]));
    }
    return list;
}

static void shape_text(const psi_shape *shape, char *text, size_t size)
{
    if (shape->rank == 0) snprintf(text, size, "a number");
    for (size_t i = 0, used = 0; i < shape->rank; i++) {
        const int more =
            snprintf(text + used, size - used, "%s%zu", i > 0 ? "x" : "", shape->dim[i]);
        if (more < 0 || used + (size_t)more >= size) return;
        used += (size_t)more;
    }
}

static json_t *rewards_json(const psi_summary *summary)
{
    json_t *values = json_array();
    for (size_t i = 0; i < summary->n_rewards; i++) {
        json_array_append_new(values, json_pack("{s:o, s:I}", "value",
                                                base_json_real(summary->rewards[i].value), "count",
                                                (json_int_t)summary->rewards[i].count));
    }
    return json_pack("{s:o, s:o, s:o, s:o}", "min", base_json_real(summary->reward_min), "max",
                     base_json_real(summary->reward_max), "mean",
                     base_json_real(summary->reward_mean), "values", values);
}

static psi_status fill_result(cli_call *cli, const psi_trajectories *data,
                              const psi_summary *summary)
{
    psi_status status = PSI_OK;
    const psi_dtype dtype = psi_observations_dtype(data->observations);
    json_t *actions = json_array(), *problems = json_array();
    for (size_t a = 0; a < summary->n_actions; a++) {
        json_array_append_new(actions, json_integer((json_int_t)summary->action_counts[a]));
    }
    for (size_t i = 0; i < summary->n_problems; i++) {
        json_array_append_new(problems, json_string(summary->problems[i]));
    }
    TRY(cli_set(cli, "episodes", json_integer((json_int_t)data->n_episodes)));
    TRY(cli_set(cli, "transitions", json_integer((json_int_t)data->n_transitions)));
    TRY(cli_set(cli, "observations", json_integer((json_int_t)data->n_observations)));
    TRY(cli_set(cli, "observation_shape", shape_json(psi_observations_shape(data->observations))));
    TRY(cli_set(cli, "observation_dtype", json_string(psi_dtype_name(dtype))));
    TRY(cli_set(cli, "n_actions", json_integer((json_int_t)data->n_actions)));
    TRY(cli_set(cli, "action_counts", json_incref(actions)));
    TRY(cli_set(cli, "rewards", rewards_json(summary)));
    TRY(cli_set(cli, "terminated", json_integer((json_int_t)summary->n_terminated)));
    TRY(cli_set(cli, "truncated", json_integer((json_int_t)summary->n_truncated)));
    TRY(cli_set(cli, "final_missing", json_integer((json_int_t)summary->n_final_missing)));
    TRY(cli_set(cli, "episode_length",
                json_pack("{s:I, s:o, s:I}", "min", (json_int_t)summary->length_min, "mean",
                          base_json_real(summary->length_mean), "max",
                          (json_int_t)summary->length_max)));
    TRY(cli_set(cli, "latent_states_known", json_boolean(data->latent_states != NULL)));
    TRY(cli_set(cli, "in_memory", json_boolean(summary->in_memory)));
    TRY(cli_set(cli, "memory_bytes", json_integer((json_int_t)summary->memory_bytes)));
    TRY(cli_set(cli, "problems", json_incref(problems)));
done:
    json_decref(actions);
    json_decref(problems);
    return status;
}

static void print_actions(cli_call *cli, const psi_summary *summary)
{
    char line[256];
    size_t used = 0;
    line[0] = '\0';
    for (size_t a = 0; a < summary->n_actions && used + 32 < sizeof line; a++) {
        char count[CLI_NUMBER];
        used += (size_t)snprintf(line + used, sizeof line - used, "%s%zu: %s", a ? ", " : "", a,
                                 cli_count(count, summary->action_counts[a]));
    }
    cli_print(cli, "  actions         %zu (%s%s)", summary->n_actions, line,
              summary->n_actions * 20 > sizeof line ? " …" : "");
}

static void print_rewards(cli_call *cli, const psi_trajectories *data, const psi_summary *summary)
{
    enum { SHOWN = 8 };
    if (summary->n_rewards == 0 || summary->n_rewards > SHOWN) {
        cli_print(cli, "  rewards         from %g to %g, mean %g", summary->reward_min,
                  summary->reward_max, summary->reward_mean);
        return;
    }
    for (size_t i = 0; i < summary->n_rewards; i++) {
        char count[CLI_NUMBER];
        const double share =
            100.0 * (double)summary->rewards[i].count / (double)data->n_transitions;
        cli_print(cli, "  %-15s %g in %s transitions (%.2f %%)", i == 0 ? "rewards" : "",
                  summary->rewards[i].value, cli_count(count, summary->rewards[i].count), share);
    }
}

static void print_summary(cli_call *cli, const psi_trajectories *data, const psi_summary *summary)
{
    char episodes[CLI_NUMBER], transitions[CLI_NUMBER], rows[CLI_NUMBER], bytes[CLI_NUMBER];
    char shape[64];
    shape_text(psi_observations_shape(data->observations), shape, sizeof shape);
    for (size_t i = 0; i < cli->n_files; i++) cli_print(cli, "%s", cli->files[i]);
    cli_print(cli, "  episodes        %s, of %zu to %zu steps, %.1f on average",
              cli_count(episodes, data->n_episodes), summary->length_min, summary->length_max,
              summary->length_mean);
    cli_print(cli, "  transitions     %s", cli_count(transitions, data->n_transitions));
    cli_print(cli, "  observations    %s of %s %s, %s", cli_count(rows, data->n_observations),
              shape, psi_dtype_name(psi_observations_dtype(data->observations)),
              cli_bytes(bytes, (double)summary->observation_bytes));
    print_actions(cli, summary);
    print_rewards(cli, data, summary);
    cli_print(cli, "  ends            %zu terminated, %zu truncated", summary->n_terminated,
              summary->n_truncated);
    cli_print(cli, "  memory          %s%s", cli_bytes(bytes, (double)summary->memory_bytes),
              summary->in_memory ? "" : ", the observations are read from the file as needed");
    if (data->latent_states) cli_print(cli, "  truth           latent states are known");
    for (size_t i = 0; i < summary->n_problems; i++) {
        cli_print(cli, "  problem         %s", summary->problems[i]);
    }
    if (summary->n_problems == 0) cli_print(cli, "  problems        none found");
}

static const psi_option OPTIONS[] = {
    {"key", 0, PSI_OPTION_TEXT, OPTION_FIELD(psi_read_options, observation_key), "NAME", NULL, NULL,
     PSI_OPTION_MAIN, "which entry of a Dict observation"},
    {"memory", 0, PSI_OPTION_SIZE, OPTION_FIELD(psi_read_options, memory_limit), "BYTES", "0", NULL,
     PSI_OPTION_MAIN, "observations above this stay in the file; 0: half of the free memory"},
};

psi_status cli_inspect(cli_call *cli, int argc, char **argv)
{
    psi_status status = PSI_OK;
    psi_read_options how = {.size = sizeof how};
    psi_trajectories *data = NULL;
    psi_summary *summary = NULL;
    cli_options options[] = {{CLI_TABLE(OPTIONS), &how, 0}};
    const cli_usage usage = {
        .name = "inspect",
        .arguments = "FILE...",
        .summary = "Says what is in a data set, and what is wrong with it",
        .text =
            "FILE is a Minari folder or file, a D4RL or d3rlpy HDF5 file, or an .npz; which of\n"
            "them is seen from its content. Several are one data set.",
        .example = "psifold inspect lock",
        .options = options,
        .n_options = CLI_COUNT(options)};
    const char *arguments[CLI_MAX_ARGUMENTS];
    TRY(cli_parse(cli, &usage, argc, argv, arguments));
    TRY(psi_trajectories_read_all(cli->ctx, cli->files, cli->n_files, &how, &data));
    TRY(psi_trajectories_summary(cli->ctx, data, &summary));
    print_summary(cli, data, summary);
    status = fill_result(cli, data, summary);
done:
    psi_summary_free(cli->ctx, summary);
    psi_trajectories_free(cli->ctx, data);
    return status;
}
