// psifold plan: values and best actions, of the latent states of a run or of the states of a model.
#include "base/json.h"
#include "cli/commands.h"
#include "cli/models.h"
#include "cli/output.h"

#include <sys/stat.h>

static psi_status plan_run(cli_call *cli, const char *folder, psi_plan_options how)
{
    psi_status status = PSI_OK;
    psi_run *run = NULL;
    psi_plan *plan = NULL;
    json_t *states = json_array();
    TRY(psi_run_load(cli->ctx, folder, &run));
    TRY(psi_value_iteration(cli->ctx, run->model, &how, &plan));
    cli_print(cli, "latent state     value  best action");
    for (size_t k = 0; k < plan->n_states; k++) {
        cli_print(cli, "%12zu  %8.4f  %11d", k, plan->value[k], plan->policy[k]);
        json_array_append_new(states,
                              json_pack("{s:I, s:o, s:i}", "latent_state", (json_int_t)k, "value",
                                        base_json_real(plan->value[k]), "action", plan->policy[k]));
    }
    TRY(cli_set(cli, "gamma", base_json_real(how.gamma)));
    TRY(cli_set(cli, "latent_states", json_incref(states)));
done:
    json_decref(states);
    psi_plan_free(cli->ctx, plan);
    psi_run_free(cli->ctx, run);
    return status;
}

// ---- models -------------------------------------------------------------------------------------

typedef struct plan_call {
    psi_model_plan_options how;
    const char *output;
    bool replace;
} plan_call;

#define FIELD(name) OPTION_FIELD(plan_call, name)
static const psi_option OPTIONS[] = {
    {"gamma", 0, PSI_OPTION_REAL, FIELD(how.gamma), "G", NULL, NULL, PSI_OPTION_MAIN,
     "discount of the returns"},
    {"reach", 0, PSI_OPTION_TEXT, FIELD(how.target), "LABEL", NULL, NULL, PSI_OPTION_MAIN,
     "of a model: the probability of ever reaching this label"},
    {"reward", 0, PSI_OPTION_TEXT, FIELD(how.reward), "NAME", NULL, NULL, PSI_OPTION_MAIN,
     "of a model: which reward"},
    {"minimise", 0, PSI_OPTION_FLAG, FIELD(how.minimise), NULL, NULL, NULL, PSI_OPTION_MAIN,
     "of a model: the least, not the most"},
    {"precision", 0, PSI_OPTION_REAL, FIELD(how.precision), "P", NULL, NULL, PSI_OPTION_MAIN,
     "of a model: how close upper and lower bounds have to come"},
    {"output", 'o', PSI_OPTION_TEXT, FIELD(output), "FILE", NULL, NULL, PSI_OPTION_MAIN,
     "of a model: bounds and choices of all states as .npz"},
    CLI_REPLACE(FIELD(replace)),
};

static psi_status save_plan(cli_call *cli, const psi_model_plan *plan, cli_output **output)
{
    psi_status status = PSI_OK;
    const psi_shape shape = {1, {plan->n_states}};
    const psi_array arrays[] = {{"lower", PSI_FLOAT64, shape, plan->lower},
                                {"upper", PSI_FLOAT64, shape, plan->upper},
                                {"choice", PSI_INT32, shape, plan->choice}};
    TRY(psi_arrays_save(cli->ctx, cli_output_path(*output), arrays, CLI_COUNT(arrays)));
    TRY(cli_output_commit(output));
done:
    return status;
}

// What can be expected in the initial states; in the first ones where none is marked.
static psi_status show_initial(cli_call *cli, const psi_model *model, const psi_model_plan *plan)
{
    enum { SHOWN = 20 };
    json_t *states = json_array();
    size_t n = 0;
    for (size_t s = 0; s < model->n_states; s++) n += model->initial[s] != 0;
    cli_print(cli, "  %13s         lower         upper  choice", n > 0 ? "initial state" : "state");
    for (size_t s = 0, shown = 0; s < model->n_states && shown < SHOWN; s++) {
        if (n > 0 && !model->initial[s]) continue;
        shown++;
        cli_print(cli, "  %13zu  %12.8g  %12.8g  %6d", s, plan->lower[s], plan->upper[s],
                  plan->choice[s]);
        json_array_append_new(states,
                              json_pack("{s:I, s:o, s:o, s:i}", "state", (json_int_t)s, "lower",
                                        base_json_real(plan->lower[s]), "upper",
                                        base_json_real(plan->upper[s]), "choice", plan->choice[s]));
    }
    return cli_set(cli, "initial", states);
}

static psi_status plan_model(cli_call *cli, const char *path, const plan_call *call)
{
    psi_status status = PSI_OK;
    psi_model *model = NULL;
    psi_model_plan *plan = NULL;
    cli_output *output = NULL;
    TRY(cli_output_open(cli, call->output, call->replace, &output));
    TRY(cli_model_read(cli, path, &model));
    TRY(psi_model_plan_find(cli->ctx, model, &call->how, &plan));
    if (!plan->converged)
        base_warn(cli->ctx, "the bounds were still apart after %zu sweeps", plan->sweeps);
    cli_print(cli, "%s: %zu states, %zu sweeps", path, model->n_states, plan->sweeps);
    TRY(show_initial(cli, model, plan));
    if (output) TRY(save_plan(cli, plan, &output));
    TRY(cli_set(cli, "states", json_integer((json_int_t)model->n_states)));
    TRY(cli_set(cli, "sweeps", json_integer((json_int_t)plan->sweeps)));
    TRY(cli_set(cli, "converged", json_boolean(plan->converged)));
    TRY(cli_set(cli, "gamma", call->how.target ? json_null() : base_json_real(call->how.gamma)));
done:
    cli_output_discard(output);
    psi_model_plan_free(cli->ctx, plan);
    psi_model_free(cli->ctx, model);
    return status;
}

psi_status cli_plan(cli_call *cli, int argc, char **argv)
{
    psi_status status = PSI_OK;
    psi_plan_options of_run = psi_plan_defaults();
    plan_call call = {.how = psi_model_plan_defaults()};
    cli_options options[] = {{CLI_TABLE(OPTIONS), &call, 0}};
    const cli_usage usage = {
        .name = "plan",
        .arguments = "MODEL",
        .summary = "Finds the value and the best action of every state",
        .text =
            "MODEL is a run folder, or a model as psifold quotient takes it. Values of a model\n"
            "are bounded from both sides: the true one lies between lower and upper.",
        .example = "psifold plan run --gamma 0.95",
        .options = options,
        .n_options = CLI_COUNT(options)};
    const char *arguments[CLI_MAX_ARGUMENTS];
    struct stat info;
    TRY(cli_parse(cli, &usage, argc, argv, arguments));
    of_run.gamma = call.how.gamma;
    if (stat(arguments[0], &info) == 0 && S_ISDIR(info.st_mode)) {
        if (call.output || call.how.target || call.how.reward || call.how.minimise) {
            TRY(FAIL(cli->ctx, PSI_EUSAGE,
                     "%s is a run folder, and this option is for models: psifold export with --drn "
                     "makes one of it",
                     arguments[0]));
        }
        TRY(plan_run(cli, arguments[0], of_run));
    } else {
        TRY(plan_model(cli, arguments[0], &call));
    }
done:
    return status;
}
