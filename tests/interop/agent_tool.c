// What the Python tests drive: statistics and event files.
//   agent_tool statistics FILE REPETITIONS   FILE is JSON: {"x": [[per run] per task], "y": …,
//                                            "thresholds": […]}; prints JSON
//   agent_tool events OUT                    a learning curve of five episodes
#include "base/json.h"

#include <psifold/psifold.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 4096 };

static int complain(psi_ctx *ctx)
{
    fprintf(stderr, "%s: %s\n", psi_status_name(psi_error(ctx)->status), psi_error(ctx)->message);
    return psi_status_exit_code(psi_error(ctx)->status);
}

static psi_scores scores_in(const json_t *table, double room[MOST])
{
    const size_t tasks = json_array_size(table), runs = json_array_size(json_array_get(table, 0));
    for (size_t t = 0; t < tasks; t++) {
        for (size_t r = 0; r < runs && t * runs + r < MOST; r++) {
            room[t * runs + r] = json_number_value(json_array_get(json_array_get(table, t), r));
        }
    }
    return (psi_scores){tasks, runs, room};
}

static json_t *triple(const psi_interval *found)
{
    return json_pack("[f,f,f]", found->estimate, found->low, found->high);
}

static int statistics(psi_ctx *ctx, const char *path, size_t repetitions)
{
    static double of_x[MOST], of_y[MOST];
    double thresholds[64];
    psi_interval iqm, improvement, profile[64];
    json_t *input = json_load_file(path, 0, NULL);
    const psi_scores x = scores_in(json_object_get(input, "x"), of_x);
    const psi_scores y = scores_in(json_object_get(input, "y"), of_y);
    const json_t *at = json_object_get(input, "thresholds");
    const size_t n = json_array_size(at);
    for (size_t i = 0; i < n && i < 64; i++) {
        thresholds[i] = json_number_value(json_array_get(at, i));
    }
    psi_bootstrap_options how = psi_bootstrap_defaults();
    how.repetitions = repetitions;
    psi_status status = psi_scores_iqm(ctx, &x, &how, &iqm);
    if (status == PSI_OK) status = psi_scores_improvement(ctx, &x, &y, &how, &improvement);
    if (status == PSI_OK) status = psi_scores_profile(ctx, &x, thresholds, n, &how, profile);
    json_decref(input);
    if (status != PSI_OK) return complain(ctx);
    json_t *profiles = json_array();
    for (size_t i = 0; i < n; i++) json_array_append_new(profiles, triple(&profile[i]));
    json_t *result = json_pack("{s:o, s:o, s:o}", "iqm", triple(&iqm), "improvement",
                               triple(&improvement), "profile", profiles);
    json_dumpf(result, stdout, JSON_REAL_PRECISION(17));
    json_decref(result);
    return 0;
}

static int events(psi_ctx *ctx, const char *path)
{
    psi_agent_episode curve[5];
    for (size_t i = 0; i < 5; i++) {
        curve[i] = (psi_agent_episode){.steps = i == 4 ? 800 : 100 * (i + 1),
                                       .reward = i == 0 ? 0 : 1,
                                       .truncated = i == 0,
                                       .epsilon = 1 - 0.25 * (double)i,
                                       .loss = i < 2 ? (double)NAN : 0.5 / (double)i,
                                       .seconds = 10 * (double)i};
    }
    return psi_curve_save_events(ctx, curve, 5, 1.75e9, path) == PSI_OK ? 0 : complain(ctx);
}

int main(int argc, char **argv)
{
    psi_ctx *ctx;
    int code = 2;
    if (psi_ctx_new(NULL, &ctx) != PSI_OK) return 70;
    if (argc == 4 && strcmp(argv[1], "statistics") == 0) {
        code = statistics(ctx, argv[2], strtoull(argv[3], NULL, 10));
    } else if (argc == 3 && strcmp(argv[1], "events") == 0) {
        code = events(ctx, argv[2]);
    }
    psi_ctx_free(ctx);
    return code;
}
