// psifold reproduce: the paper's figures, each by one command.
#include "cli/commands.h"
#include "cli/presets.h"

#include "base/file.h"

#include <string.h>

enum { RESULTS_LIMIT = 1 << 22 };

typedef struct reproduce_call {
    bool show_options;
} reproduce_call;

// What the command adds to the options of a study (src/study/options.c).
static const psi_option OPTIONS[] = {
    {"show-options", 0, PSI_OPTION_FLAG, OPTION_FIELD(reproduce_call, show_options), NULL, "off",
     NULL, PSI_OPTION_MORE, "print the constants of table 1 and ours, and do nothing"},
};

static const psi_study *find_study(const char *name)
{
    for (size_t i = 0; i < PSI_STUDIES; i++) {
        if (strcmp(name, psi_studies()[i].name) == 0) return &psi_studies()[i];
    }
    return NULL;
}

static void tell(void *user, bool detail, const char *line)
{
    cli_call *cli = user;
    if (detail && cli->quiet) return;
    cli_close_line(cli);
    cli_print(cli, "%s%s", detail ? "  " : "", line);
    fflush(stdout);
}

// What the studies came to, for --json and at the end of the text.
static psi_status summarise(cli_call *cli, const psi_study_result *made)
{
    psi_status status = PSI_OK;
    json_t *studies = json_array(), *results = NULL;
    char *path = NULL;
    for (size_t i = 0; i < made->n; i++) {
        TRY(base_join(cli->ctx, made->folders[i], "results.json", &path));
        TRY(base_json_load(cli->ctx, path, RESULTS_LIMIT, &results));
        size_t at;
        json_t *claim;
        json_array_foreach(json_object_get(results, "claims"), at, claim)
        {
            const char *words = json_string_value(json_object_get(claim, "claim")),
                       *ours = json_string_value(json_object_get(claim, "ours"));
            cli_print(cli, "  %-5s %s: %s",
                      json_is_true(json_object_get(claim, "holds")) ? "yes" : "no",
                      words ? words : "", ours ? ours : "");
        }
        json_array_append_new(studies, results);
        results = NULL;
        base_free(cli->ctx, path);
        path = NULL;
    }
    status = cli_set(cli, "studies", json_incref(studies));
done:
    json_decref(results);
    json_decref(studies);
    base_free(cli->ctx, path);
    return status;
}

psi_status cli_reproduce(cli_call *cli, int argc, char **argv)
{
    psi_status status = PSI_OK;
    reproduce_call call = {0};
    psi_study_options how = {.size = sizeof how};
    cli_options options[] = {{psi_study_option_table(), &how, 0}, {CLI_TABLE(OPTIONS), &call, 0}};
    const cli_usage usage = {
        .name = "reproduce",
        .arguments = "[WHAT]",
        .summary = "Repeats the paper's experiments: its figures, claims and tables",
        .text = "WHAT is column-world (figure 1), point-column-world (figure 4), combination-lock\n"
                "(figure 5), transfer (figure 6: agents in new tasks) or all of these; or sweep\n"
                "(table 2: the options of deep Q-learning). Each leaves data, figures and a page\n"
                "with the paper's claims beside ours in FOLDER/WHAT/SCALE; all leaves a page of\n"
                "everything as FOLDER/SCALE.html. What is finished there is not run again, and\n"
                "what was stopped goes on. Transfer takes the representation that was learnt in\n"
                "FOLDER/combination-lock/SCALE, if that is there, else it learns one first.",
        .example = "psifold reproduce column-world -o results",
        .options = options,
        .n_options = CLI_COUNT(options)};
    const char *arguments[CLI_MAX_ARGUMENTS];
    psi_study_result made = {0};
    TRY(cli_parse(cli, &usage, argc, argv, arguments));
    if (call.show_options) return cli_show_presets(cli);
    const psi_study *one = arguments[0] ? find_study(arguments[0]) : NULL;
    if (!arguments[0] || (strcmp(arguments[0], "all") != 0 && !one)) {
        status = FAIL(cli->ctx, PSI_EUSAGE,
                      "reproduce needs to know what: column-world, point-column-world, "
                      "combination-lock, transfer, sweep or all");
        goto done;
    }
    if (one && one->agents && how.agent_episodes == 0) {
        how.agent_episodes = how.episodes;
        how.episodes = 0;
    }
    how.seed = cli->seed;
    how.tell = tell;
    how.user = cli;
    TRY(psi_study_run(cli->ctx, arguments[0], &how, &made));
    TRY(summarise(cli, &made));
    cli_print(cli, "%s", made.page);
    TRY(cli_set(cli, "page", json_string(made.page)));
done:
    psi_study_result_free(cli->ctx, &made);
    return status;
}
