// An agent in a folder, and back: its learning curve, how far it is, and its learner.
#include "agent/agent.h"

#include "base/context.h"
#include "base/file.h"
#include "base/options.h"
#include "base/progress.h"

#include <string.h>

enum { LARGEST_STATE = 1 << 16 };

// What must be the same for an agent to go on from a folder.
static psi_status describe(psi_ctx *ctx, const psi_agent *agent, json_t **out)
{
    psi_status status = PSI_OK;
    char task[PSI_TASK_JSON_SIZE], truth[PSI_TASK_JSON_SIZE] = "";
    const psi_agent_options *o = &agent->options;
    json_t *chosen = NULL;
    *out = NULL;
    TRY(psi_task_json(ctx, &agent->task, task));
    if (o->truth_of) TRY(psi_task_json(ctx, o->truth_of, truth));
    TRY(base_options_json(ctx, psi_agent_option_table(), o, true, &chosen));
    *out = json_pack("{s:s, s:s, s:O}", "task", task, "truth_of", truth, "chosen", chosen);
    TRY(base_json_made(ctx, *out));
done:
    json_decref(chosen);
    return status;
}

psi_status psi_agent_save(psi_ctx *ctx, const psi_agent *agent, const char *folder)
{
    if (FREED(ctx, agent)) return PSI_EUSAGE;
    psi_status status = PSI_OK;
    base_output *output = NULL;
    char *curve = NULL, *state = NULL;
    json_t *all = NULL, *options = NULL;
    TRY(base_output_open(ctx, folder, BASE_FOLDER, true, &output));
    const char *inside = base_output_path(output);
    TRY(base_join(ctx, inside, "curve.csv", &curve));
    TRY(base_join(ctx, inside, "state.json", &state));
    TRY(describe(ctx, agent, &options));
    all = json_pack("{s:O, s:I, s:I, s:I, s:f}", "options", options, "steps",
                    (json_int_t)(agent->learner ? agent->learner->steps : 0), "updates",
                    (json_int_t)(agent->learner ? agent->learner->updates : 0), "not_played",
                    (json_int_t)agent->not_played, "seconds", base_seconds() - agent->started);
    TRY(base_json_made(ctx, all));
    TRY(base_json_save(ctx, state, all));
    TRY(psi_curve_save_csv(ctx, agent->curve, agent->n_episodes, curve));
    if (agent->learner) TRY(agent->learner->rules->save(ctx, agent->learner, inside));
    base_output *whole = output;
    output = NULL;
    TRY(base_output_commit(whole));
done:
    base_output_discard(output);
    base_free(ctx, curve);
    base_free(ctx, state);
    json_decref(all);
    json_decref(options);
    return status;
}

psi_status psi_agent_load(psi_ctx *ctx, psi_agent *agent, const char *folder)
{
    if (FREED(ctx, agent)) return PSI_EUSAGE;
    psi_status status = PSI_OK;
    char *curve = NULL, *state = NULL;
    json_t *all = NULL, *options = NULL;
    psi_agent_episode *episodes = NULL;
    size_t n = 0;
    TRY(base_join(ctx, folder, "curve.csv", &curve));
    TRY(base_join(ctx, folder, "state.json", &state));
    TRY(base_json_load(ctx, state, LARGEST_STATE, &all));
    TRY(describe(ctx, agent, &options));
    if (!json_equal(json_object_get(all, "options"), options)) {
        status = FAIL(ctx, PSI_EDATA, "%s is another agent: its task or options differ", folder);
        goto done;
    }
    const json_int_t steps = json_integer_value(json_object_get(all, "steps"));
    const json_int_t updates = json_integer_value(json_object_get(all, "updates"));
    const json_int_t not_played = json_integer_value(json_object_get(all, "not_played"));
    TRY(psi_curve_load_csv(ctx, curve, &episodes, &n));
    if (steps < 0 || updates < 0 || not_played < 0 || (uint64_t)not_played > n) {
        status = FAIL(ctx, PSI_EFORMAT,
                      "%s: steps, updates or episodes that were not played cannot be", state);
        goto done;
    }
    if (agent->learner) {
        TRY(agent->learner->rules->load(ctx, agent->learner, folder));
        agent->learner->steps = (uint64_t)steps;
        agent->learner->updates = (uint64_t)updates;
    }
    agent->started = base_seconds() - json_number_value(json_object_get(all, "seconds"));
    psi_agent_episode *old = agent->curve;
    agent->curve = episodes;
    episodes = old;
    agent->n_episodes = agent->room = n;
    agent->not_played = (size_t)not_played;
done:
    base_free(ctx, episodes);
    base_free(ctx, curve);
    base_free(ctx, state);
    json_decref(all);
    json_decref(options);
    return status;
}
