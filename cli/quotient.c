// psifold quotient: the coarsest exact partition of a finite model.
#include "base/json.h"
#include "cli/commands.h"
#include "cli/models.h"
#include "cli/output.h"

#include "base/progress.h"

#include <string.h>
#include <time.h>

typedef struct quotient_call {
    const char *output, *blocks, *labels, *rewards;
    bool action_identity, replace;
    double tolerance, epsilon, gamma;
} quotient_call;

#define FIELD(name) OPTION_FIELD(quotient_call, name)
static const psi_option OPTIONS[] = {
    {"output", 'o', PSI_OPTION_TEXT, FIELD(output), "FILE", NULL, NULL, PSI_OPTION_MAIN,
     "write the quotient: .drn, .umb, .tra, .json or .npz"},
    {"blocks", 0, PSI_OPTION_TEXT, FIELD(blocks), "FILE", NULL, NULL, PSI_OPTION_MAIN,
     "write the block of every state as .npy (int32)"},
    {"labels", 0, PSI_OPTION_TEXT, FIELD(labels), "A,B", NULL, NULL, PSI_OPTION_MAIN,
     "the labels that must be kept apart; default: all but init; '': none"},
    {"rewards", 0, PSI_OPTION_TEXT, FIELD(rewards), "A,B", "all", NULL, PSI_OPTION_MAIN,
     "the rewards that count: names, all or none"},
    {"tolerance", 0, PSI_OPTION_REAL, FIELD(tolerance), "T", "0", NULL, PSI_OPTION_MAIN,
     "numbers in one cell of this width are equal; 0: exact"},
    {"epsilon", 0, PSI_OPTION_REAL, FIELD(epsilon), "E", "0", NULL, PSI_OPTION_MAIN,
     "Algorithm 1 instead: successor features within E; 0: exact"},
    {"gamma", 0, PSI_OPTION_REAL, FIELD(gamma), "G", "0.4", NULL, PSI_OPTION_MORE,
     "discount of those successor features"},
    {"action-identity", 0, PSI_OPTION_FLAG, FIELD(action_identity), NULL, "on", NULL,
     PSI_OPTION_MAIN, "a choice is matched by one with the same action only"},
    CLI_REPLACE(FIELD(replace)),
};

static psi_status fill_result(cli_call *cli, const psi_model *model, const quotient_call *call,
                              const psi_quotient_result *found, double reading)
{
    psi_status status = PSI_OK;
    TRY(cli_set(cli, "states", json_integer((json_int_t)model->n_states)));
    TRY(cli_set(cli, "choices", json_integer((json_int_t)model->n_choices)));
    TRY(cli_set(cli, "transitions", json_integer((json_int_t)model->n_transitions)));
    TRY(cli_set(cli, "blocks", json_integer((json_int_t)found->partition->n_blocks)));
    TRY(cli_set(cli, "quotient_choices", json_integer((json_int_t)found->model->n_choices)));
    TRY(cli_set(cli, "quotient_transitions",
                json_integer((json_int_t)found->model->n_transitions)));
    TRY(cli_set(cli, "settled", json_integer((json_int_t)found->n_settled)));
    TRY(cli_set(cli, "passes", json_integer((json_int_t)found->n_passes)));
    TRY(cli_set(cli, "rounds", json_integer((json_int_t)found->n_rounds)));
    TRY(cli_set(cli, "comparisons", json_integer((json_int_t)found->n_verified)));
    TRY(cli_set(cli, "tolerance", base_json_real(call->tolerance)));
    TRY(cli_set(cli, "epsilon", base_json_real(call->epsilon)));
    TRY(cli_set(cli, "defect", base_json_real(found->defect)));
    TRY(cli_set(cli, "seconds", base_json_real(found->seconds)));
    TRY(cli_set(cli, "reading_seconds", base_json_real(reading)));
    TRY(cli_set(cli, "bytes", json_integer((json_int_t)found->bytes)));
    TRY(cli_set(cli, "threads", json_integer(psi_threads(cli->ctx))));
    TRY(cli_set(cli, "output", call->output ? json_string(call->output) : json_null()));
done:
    return status;
}

static void print_result(cli_call *cli, const char *path, const psi_model *model,
                         const quotient_call *call, const psi_quotient_result *found)
{
    char a[CLI_NUMBER], b[CLI_NUMBER], c[CLI_NUMBER], bytes[CLI_NUMBER];
    cli_print(cli, "%s", path);
    cli_print(cli, "  model           %s states, %s choices, %s transitions",
              cli_count(a, model->n_states), cli_count(b, model->n_choices),
              cli_count(c, model->n_transitions));
    cli_print(cli, "  quotient        %s states, %s choices, %s transitions",
              cli_count(a, found->partition->n_blocks), cli_count(b, found->model->n_choices),
              cli_count(c, found->model->n_transitions));
    if (call->epsilon > 0.0) {
        cli_print(cli, "  refinements     %zu, by successor features", found->n_passes);
    } else {
        cli_print(cli, "  refinements     %zu passes, %zu rounds; %s states without any",
                  found->n_passes, found->n_rounds, cli_count(a, found->n_settled));
    }
    if (call->epsilon > 0.0) {
        cli_print(cli, "  defect          %.3g (epsilon %g)", found->defect, call->epsilon);
    } else if (call->tolerance > 0.0) {
        cli_print(cli, "  defect          %.3g (tolerance %g)", found->defect, call->tolerance);
    } else {
        cli_print(cli, "  defect          none: every signature was compared");
    }
    cli_print(cli, "  time            %.3f s, %s", found->seconds,
              cli_bytes(bytes, (double)found->bytes));
    if (call->output) cli_print(cli, "  written         %s", call->output);
    if (call->blocks) cli_print(cli, "  written         %s", call->blocks);
}

psi_status cli_quotient(cli_call *cli, int argc, char **argv)
{
    psi_status status = PSI_OK;
    quotient_call call = {0};
    cli_options options[] = {{CLI_TABLE(OPTIONS), &call, 0}};
    const cli_usage usage = {
        .name = "quotient",
        .arguments = "MODEL",
        .summary = "Folds a finite model into the fewest states, exactly",
        .text =
            "MODEL is a Storm .drn, a .umb, a PRISM .tra (with .lab, .srew and .trew beside it),\n"
            "Gymnasium's P as .json, an .npz of psifold, or a run folder. Two states come "
            "together\n"
            "if their labels and rewards agree and every choice of one has its equal in the "
            "other:\n"
            "the same action, rewards, and probability of entering each block.\n"
            "With --tolerance, numbers are compared after they were rounded to a grid, and there\n"
            "may be more states than needed; the defect says how far states really are from\n"
            "their block. With --epsilon, the paper's Algorithm 1 does it by successor features\n"
            "of one reward; it keeps blocks² numbers, enough for thousands of blocks.",
        .example = "psifold quotient csma.drn -o small.umb --blocks blocks.npy",
        .options = options,
        .n_options = CLI_COUNT(options)};
    const char *arguments[CLI_MAX_ARGUMENTS];
    psi_model *model = NULL;
    psi_quotient_result *found = NULL;
    cli_output *output = NULL, *blocks = NULL;
    TRY(cli_parse(cli, &usage, argc, argv, arguments));
    TRY(cli_output_open(cli, call.output, call.replace, &output));
    TRY(cli_output_open(cli, call.blocks, call.replace, &blocks));
    const double started = base_seconds();
    TRY(cli_model_read(cli, arguments[0], &model));
    const double reading = base_seconds() - started;
    psi_quotient_options how = psi_quotient_defaults();
    how.labels = call.labels;
    how.rewards = strcmp(call.rewards, "all") == 0    ? NULL
                  : strcmp(call.rewards, "none") == 0 ? ""
                                                      : call.rewards;
    how.tolerance = call.tolerance;
    how.epsilon_sf = call.epsilon;
    how.gamma = call.gamma;
    how.ignore_actions = !call.action_identity;
    const clock_t before = clock();
    TRY(psi_quotient_find(cli->ctx, model, &how, &found));
    TRY(cli_set(cli, "processor_seconds",
                base_json_real((double)(clock() - before) / CLOCKS_PER_SEC)));
    if (output) {
        TRY(cli_model_write(cli, found->model, cli_output_path(output)));
        TRY(cli_output_commit(&output));
    }
    if (blocks) {
        const psi_array array = {NULL, PSI_INT32, {1, {model->n_states}}, found->partition->label};
        TRY(psi_arrays_save(cli->ctx, cli_output_path(blocks), &array, 1));
        TRY(cli_output_commit(&blocks));
    }
    print_result(cli, arguments[0], model, &call, found);
    TRY(fill_result(cli, model, &call, found, reading));
done:
    cli_output_discard(blocks);
    cli_output_discard(output);
    psi_quotient_free(cli->ctx, found);
    psi_model_free(cli->ctx, model);
    return status;
}
