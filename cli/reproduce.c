// psifold reproduce: the paper's figures, each by one command.
#include "cli/reproduce.h"
#include "cli/commands.h"

#include "base/file.h"
#include "base/progress.h"

#include <string.h>
#include <sys/resource.h>

enum { RESULTS_LIMIT = 1 << 22 };

// name, figure, what, function, agents, apart
static const study_entry STUDIES[] = {
    {"column-world", "figure 1", "the exact method on a grid where only the column matters",
     study_column_world, false, false},
    {"point-column-world", "figure 4", "the same grid seen as random points, with a network",
     study_point_column_world, false, false},
    {"combination-lock", "figure 5", "a lock seen as images of digits, one dial of which is broken",
     study_combination_lock, false, false},
    {"transfer", "figure 6", "agents in new tasks, with and without what was learnt of the lock",
     study_transfer, true, false},
    {"sweep", "table 2", "the options of deep Q-learning, one at a time", study_sweep, true, true},
};

static const study_entry *find_study(const char *name)
{
    for (size_t i = 0; i < CLI_COUNT(STUDIES); i++) {
        if (strcmp(name, STUDIES[i].name) == 0) return &STUDIES[i];
    }
    return NULL;
}

// Megabytes that this process had in memory at most, so far.
static double peak_memory(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1000.0;
}

// The processor's name, as Linux knows it.
static json_t *machine(void)
{
    json_t *name = NULL;
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file && !name && fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon) continue;
        line[strcspn(line, "\n")] = 0;
        name = json_string(colon + 1 + strspn(colon + 1, " "));
    }
    if (file) fclose(file);
    return name ? name : json_null();
}

// Whether results.json is there, and of as many seeds and episodes as are asked for.
static psi_status is_finished(study *of, const study_entry *entry, bool *finished)
{
    psi_status status = PSI_OK;
    char *path = NULL;
    json_t *results = NULL;
    *finished = study_has(of, "results.json");
    if (!*finished || !entry->agents) return PSI_OK;
    TRY(study_path(of, "results.json", &path));
    TRY(base_json_load(of->cli->ctx, path, RESULTS_LIMIT, &results));
    const json_int_t seeds = json_integer_value(json_object_get(results, "seeds")),
                     episodes = json_integer_value(json_object_get(results, "episodes"));
    *finished = (of->seeds == 0 || seeds == (json_int_t)of->seeds) &&
                (of->agent_episodes == 0 || episodes == (json_int_t)of->agent_episodes);
done:
    json_decref(results);
    base_free(of->cli->ctx, path);
    return status;
}

static psi_status run_study(study *of, const study_entry *entry)
{
    psi_status status = PSI_OK;
    char *path = NULL, *page = NULL;
    bool finished;
    of->name = entry->name;
    TRY(is_finished(of, entry, &finished));
    if (finished) {
        cli_print(of->cli, "%s (%s): finished before, in %s", entry->name, entry->figure,
                  of->folder);
        return PSI_OK;
    }
    cli_print(of->cli, "%s (%s): %s", entry->name, entry->figure, entry->what);
    fflush(stdout);
    const double started = base_seconds();
    TRY(base_make_folders(of->cli->ctx, of->folder));
    of->results = json_pack("{s:s, s:s, s:s, s:s, s:I, s:s, s:[], s:[], s:[]}", "study",
                            entry->name, "figure", entry->figure, "psifold", psi_version(), "scale",
                            of->scale_name, "seed", (json_int_t)of->cli->seed, "constants",
                            of->constants, "claims", "figures", "files");
    TRY(base_json_made(of->cli->ctx, of->results));
    TRY(entry->run(of));
    TRY(study_set(of, "seconds", json_real(base_seconds() - started)));
    TRY(study_set(of, "peak_memory_mb", json_real(peak_memory())));
    TRY(study_set(of, "machine", machine()));
    TRY(study_set(of, "commit", json_string(psi_commit())));
    TRY(study_set(of, "threads", json_integer(psi_threads(of->cli->ctx))));
    TRY(study_path(of, "results.json", &path));
    TRY(base_json_save(of->cli->ctx, path, of->results));
    TRY(study_path(of, "index.html", &page));
    TRY(psi_report_studies(of->cli->ctx, page, entry->name, 1, (const char *const[]){of->folder}));
done:
    json_decref(of->results);
    of->results = NULL;
    base_free(of->cli->ctx, page);
    base_free(of->cli->ctx, path);
    return status;
}

// What the studies came to, for --json and at the end of the text.
static psi_status summarise(cli_call *cli, const char *const *folders, size_t n)
{
    psi_status status = PSI_OK;
    json_t *studies = json_array(), *results = NULL;
    char *path = NULL;
    for (size_t i = 0; i < n; i++) {
        TRY(base_join(cli->ctx, folders[i], "results.json", &path));
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

static psi_status run_studies(cli_call *cli, study *of, const char *what)
{
    psi_status status = PSI_OK;
    char *folders[CLI_COUNT(STUDIES)] = {0}, *page = NULL;
    size_t n = 0;
    for (size_t i = 0; i < CLI_COUNT(STUDIES); i++) {
        const bool wanted =
            strcmp(what, "all") == 0 ? !STUDIES[i].apart : strcmp(what, STUDIES[i].name) == 0;
        if (!wanted) continue;
        TRY(study_folder(of, STUDIES[i].name, &folders[n]));
        of->folder = folders[n++];
        TRY(run_study(of, &STUDIES[i]));
    }
    TRY(summarise(cli, (const char *const *)folders, n));
    if (n > 1) {
        char title[64], name[64];
        snprintf(title, sizeof title, "The paper, at %s scale", of->scale_name);
        snprintf(name, sizeof name, "%s.html", of->scale_name);
        TRY(base_join(cli->ctx, of->output, name, &page));
        TRY(psi_report_studies(cli->ctx, page, title, n, (const char *const *)folders));
    } else {
        TRY(base_join(cli->ctx, folders[0], "index.html", &page));
    }
    cli_print(cli, "%s", page);
    TRY(cli_set(cli, "page", json_string(page)));
done:
    base_free(cli->ctx, page);
    for (size_t i = 0; i < n; i++) base_free(cli->ctx, folders[i]);
    return status;
}

typedef struct reproduce_call {
    study of;
    bool show_options;
} reproduce_call;

#define FIELD(name) OPTION_FIELD(reproduce_call, name)
static const psi_option OPTIONS[] = {
    {"output", 'o', PSI_OPTION_TEXT, FIELD(of.output), "FOLDER", "results", NULL, PSI_OPTION_MAIN,
     "where data, figures and pages go"},
    {"scale", 0, PSI_OPTION_CHOICE, FIELD(of.scale_name), "quick|medium|paper", "quick", NULL,
     PSI_OPTION_MAIN, "how much of it: minutes, an hour or more, or as much as the paper"},
    {"constants", 0, PSI_OPTION_CHOICE, FIELD(of.constants), "ours|table-1", "ours", NULL,
     PSI_OPTION_MAIN, "psifold's own, or the paper's schedule with table 1"},
    {"net", 0, PSI_OPTION_CHOICE, FIELD(of.net), "auto|cnn|resnet18", "auto", NULL, PSI_OPTION_MAIN,
     "of the lock and its agents; auto: cnn at quick scale, resnet18 beyond it"},
    {"episodes", 0, PSI_OPTION_SIZE, FIELD(of.episodes), "N", "0", NULL, PSI_OPTION_MAIN,
     "training trajectories; of transfer or sweep alone, --agent-episodes; 0: the scale's"},
    {"agent-episodes", 0, PSI_OPTION_SIZE, FIELD(of.agent_episodes), "N", "0", NULL,
     PSI_OPTION_MORE, "transfer, sweep: an agent's episodes in a task; 0: 100"},
    {"run", 0, PSI_OPTION_TEXT, FIELD(of.run), "RUN", NULL, NULL, PSI_OPTION_MAIN,
     "transfer: take the representation from this run folder"},
    {"seeds", 0, PSI_OPTION_SIZE, FIELD(of.seeds), "N", "0", NULL, PSI_OPTION_MAIN,
     "transfer, sweep: seeds; 0: the scale's"},
    {"digits", 0, PSI_OPTION_CHOICE, FIELD(of.images), "auto|mnist|drawn", "auto", NULL,
     PSI_OPTION_MORE, "images of the lock; auto: mnist if it was fetched"},
    {"digits-per-dial", 0, PSI_OPTION_SIZE, FIELD(of.digits), "N", "10", "[2,10]", PSI_OPTION_MORE,
     "of the lock: fewer make it smaller"},
    {"show-options", 0, PSI_OPTION_FLAG, FIELD(show_options), NULL, "off", NULL, PSI_OPTION_MORE,
     "print the constants of table 1 and ours, and do nothing"},
};

psi_status cli_reproduce(cli_call *cli, int argc, char **argv)
{
    static const char *const scales[] = {"quick", "medium", "paper"};
    psi_status status = PSI_OK;
    reproduce_call call = {.of.cli = cli};
    study *of = &call.of;
    cli_options options[] = {{CLI_TABLE(OPTIONS), &call, 0}};
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
    TRY(cli_parse(cli, &usage, argc, argv, arguments));
    if (call.show_options) return study_show_presets(cli);
    while (strcmp(scales[of->scale], of->scale_name) != 0) of->scale++;
    if (!arguments[0] || (strcmp(arguments[0], "all") != 0 && !find_study(arguments[0]))) {
        status = FAIL(cli->ctx, PSI_EUSAGE,
                      "reproduce needs to know what: column-world, point-column-world, "
                      "combination-lock, transfer, sweep or all");
        goto done;
    }
    if (find_study(arguments[0]) && find_study(arguments[0])->agents && of->agent_episodes == 0) {
        of->agent_episodes = of->episodes;
        of->episodes = 0;
    }
    if (!psi_figures_possible()) {
        status = FAIL(cli->ctx, PSI_EMISSING, "gnuplot is not installed: the figures need it");
        goto done;
    }
    status = run_studies(cli, of, arguments[0]);
done:
    return status;
}
