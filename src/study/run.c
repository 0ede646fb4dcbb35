// Running studies: which there are, what is finished already, and the record around each of them.
#include "study/study.h"

#include "base/file.h"
#include "base/options.h"
#include "base/progress.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

enum { RESULTS_LIMIT = 1 << 22 };

// name, figure, what, agents, apart
static const psi_study STUDIES[PSI_STUDIES] = {
    {"column-world", "figure 1", "the exact method on a grid where only the column matters", false,
     false},
    {"point-column-world", "figure 4", "the same grid seen as random points, with a network", false,
     false},
    {"combination-lock", "figure 5", "a lock seen as images of digits, one dial of which is broken",
     false, false},
    {"transfer", "figure 6", "agents in new tasks, with and without what was learnt of the lock",
     true, false},
    {"sweep", "table 2", "the options of deep Q-learning, one at a time", true, true},
};
static study_run *const RUNS[PSI_STUDIES] = {study_column_world, study_point_column_world,
                                             study_combination_lock, study_transfer, study_sweep};

const psi_study *psi_studies(void)
{
    return STUDIES;
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

// What was asked for in words other than the defaults must be what a finished study was made with,
// as it was asked for then or as it came out of that.
static psi_status check_same(const study *of, const json_t *results)
{
    psi_status status = PSI_OK;
    const psi_option_table *table = psi_study_option_table();
    json_t *asked = NULL, *usual = NULL, *value;
    const json_t *before = json_object_get(results, "options");
    const psi_study_options defaults = psi_study_defaults();
    const char *key;
    TRY(base_options_json(of->ctx, table, of->how, true, &asked));
    TRY(base_options_json(of->ctx, table, &defaults, true, &usual));
    json_object_foreach(asked, key, value)
    {
        const json_t *then = json_object_get(before, key), *came = json_object_get(results, key);
        if (json_equal(value, json_object_get(usual, key)) || (!then && !came)) continue;
        if ((then && json_equal(value, then)) || (came && json_equal(value, came))) continue;
        status = FAIL(of->ctx, PSI_EUSAGE,
                      "%s is there with another %s; choose another folder or remove it", of->folder,
                      key);
        goto done;
    }
done:
    json_decref(usual);
    json_decref(asked);
    return status;
}

// Whether results.json is there, and of as many seeds and episodes as are asked for.
static psi_status is_finished(study *of, const psi_study *entry, bool *finished)
{
    psi_status status = PSI_OK;
    char *path = NULL;
    json_t *results = NULL;
    *finished = study_has(of, "results.json");
    if (!*finished) return PSI_OK;
    TRY(study_path(of, "results.json", &path));
    TRY(base_json_load(of->ctx, path, RESULTS_LIMIT, &results));
    TRY(check_same(of, results));
    if (!entry->agents) goto done;
    const json_int_t seeds = json_integer_value(json_object_get(results, "seeds")),
                     episodes = json_integer_value(json_object_get(results, "episodes"));
    *finished = (of->how->seeds == 0 || seeds == (json_int_t)of->how->seeds) &&
                (of->how->agent_episodes == 0 || episodes == (json_int_t)of->how->agent_episodes);
done:
    json_decref(results);
    base_free(of->ctx, path);
    return status;
}

static psi_status begin_results(study *of, const psi_study *entry)
{
    psi_status status = PSI_OK;
    json_t *options = NULL;
    TRY(base_options_json(of->ctx, psi_study_option_table(), of->how, true, &options));
    of->results = json_pack("{s:s, s:s, s:s, s:s, s:I, s:s, s:O, s:[], s:[], s:[]}", "study",
                            entry->name, "figure", entry->figure, "psifold", psi_version(), "scale",
                            study_scale_name(of), "seed", (json_int_t)of->how->seed, "constants",
                            of->how->constants, "options", options, "claims", "figures", "files");
    TRY(base_json_made(of->ctx, of->results));
done:
    json_decref(options);
    return status;
}

// The study's own page, made of its results.
static psi_status write_own_page(study *of)
{
    psi_status status = PSI_OK;
    char *page = NULL;
    TRY(study_path(of, "index.html", &page));
    TRY(psi_report_studies(of->ctx, page, of->name, 1, (const char *const[]){of->folder}));
done:
    base_free(of->ctx, page);
    return status;
}

static psi_status end_results(study *of, double seconds)
{
    psi_status status = PSI_OK;
    char *path = NULL, *page = NULL;
    TRY(study_set(of, "seconds", json_real(seconds)));
    TRY(study_set(of, "peak_memory_mb", json_real(peak_memory())));
    TRY(study_set(of, "machine", machine()));
    TRY(study_set(of, "commit", json_string(psi_commit())));
    TRY(study_set(of, "threads", json_integer(psi_threads(of->ctx))));
    TRY(study_path(of, "results.json", &path));
    TRY(study_path(of, "index.html", &page));
    base_remove(page); // of other results: where it is missing, it is made again
    TRY(base_json_save(of->ctx, path, of->results));
    TRY(write_own_page(of));
done:
    base_free(of->ctx, page);
    base_free(of->ctx, path);
    return status;
}

static psi_status run_study(study *of, size_t which)
{
    psi_status status = PSI_OK;
    const psi_study *entry = &STUDIES[which];
    bool finished;
    of->name = entry->name;
    TRY(is_finished(of, entry, &finished));
    if (finished) {
        study_prints(of, "%s (%s): finished before, in %s", entry->name, entry->figure, of->folder);
        if (!study_has(of, "index.html")) TRY(write_own_page(of));
        goto done;
    }
    study_prints(of, "%s (%s): %s", entry->name, entry->figure, entry->what);
    const double started = base_seconds();
    TRY(base_make_folders(of->ctx, of->folder));
    TRY(begin_results(of, entry));
    TRY(RUNS[which](of));
    TRY(end_results(of, base_seconds() - started));
done:
    json_decref(of->results);
    of->results = NULL;
    return status;
}

static psi_status write_page(const study *of, psi_study_result *out)
{
    char title[64], name[64];
    if (out->n == 1) return base_join(of->ctx, out->folders[0], "index.html", &out->page);
    snprintf(title, sizeof title, "The paper, at %s scale", study_scale_name(of));
    snprintf(name, sizeof name, "%s.html", study_scale_name(of));
    const psi_status status = base_join(of->ctx, of->how->output, name, &out->page);
    if (status != PSI_OK) return status;
    return psi_report_studies(of->ctx, out->page, title, out->n, (const char *const *)out->folders);
}

psi_status psi_study_run(psi_ctx *ctx, const char *name, const psi_study_options *options,
                         psi_study_result *out)
{
    *out = (psi_study_result){0};
    if (!base_options_fit(ctx, options, sizeof *options, "psi_study_defaults")) return PSI_EUSAGE;
    psi_status status = PSI_OK;
    study of = {.ctx = ctx, .how = options};
    const bool all = strcmp(name, "all") == 0;
    TRY(psi_options_check(ctx, psi_study_option_table(), options));
    if (!psi_figures_possible()) {
        TRY(FAIL(ctx, PSI_EMISSING, "gnuplot is not installed: the figures need it"));
    }
    for (size_t i = 0; i < PSI_STUDIES; i++) {
        if (all ? STUDIES[i].apart : strcmp(name, STUDIES[i].name) != 0) continue;
        TRY(study_folder(&of, STUDIES[i].name, &out->folders[out->n]));
        of.folder = out->folders[out->n++];
        TRY(run_study(&of, i));
    }
    if (out->n == 0) TRY(FAIL(ctx, PSI_EUSAGE, "there is no study '%s'", name));
    TRY(write_page(&of, out));
done:
    if (status != PSI_OK) psi_study_result_free(ctx, out);
    return status;
}

void psi_study_result_free(psi_ctx *ctx, psi_study_result *result)
{
    for (size_t i = 0; i < result->n; i++) base_free(ctx, result->folders[i]);
    base_free(ctx, result->page);
    *result = (psi_study_result){0};
}
