// A trial in its folder: what it is, before it begins; what came out; and whether what is there is
// the result of the same trial.
#include "study/trial.h"

#include "base/context.h"
#include "base/file.h"
#include "base/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { LARGEST_RESULT = 1 << 20 }; // bytes
static const char NETWORK[] = "network.safetensors";

static json_t *score_json(const psi_agent_score *score)
{
    return json_pack("{s:f, s:f, s:I, s:I, s:I, s:I, s:b, s:f}", "reward_per_step",
                     score->reward_per_step, "reward", score->reward, "steps",
                     (json_int_t)score->steps, "episodes", (json_int_t)score->episodes, "truncated",
                     (json_int_t)score->truncated, "steps_to_first_solve",
                     (json_int_t)score->steps_to_first_solve, "solved", (int)score->solved, "area",
                     score->area);
}

static psi_agent_score score_from(const json_t *json)
{
    return (psi_agent_score){
        .reward_per_step = json_number_value(json_object_get(json, "reward_per_step")),
        .reward = json_number_value(json_object_get(json, "reward")),
        .steps = (uint64_t)json_integer_value(json_object_get(json, "steps")),
        .episodes = (uint64_t)json_integer_value(json_object_get(json, "episodes")),
        .truncated = (uint64_t)json_integer_value(json_object_get(json, "truncated")),
        .steps_to_first_solve =
            (uint64_t)json_integer_value(json_object_get(json, "steps_to_first_solve")),
        .solved = json_is_true(json_object_get(json, "solved")),
        .area = json_number_value(json_object_get(json, "area"))};
}

static json_t *result_json(const psi_trial *trial)
{
    json_t *json = score_json(&trial->score);
    json_object_set_new(json, "diverged", json_boolean(trial->diverged));
    json_object_set_new(json, "not_played", json_integer((json_int_t)trial->not_played));
    json_object_set_new(json, "final", trial->evaluation ? score_json(&trial->final) : json_null());
    json_object_set_new(json, "updates", json_integer((json_int_t)trial->updates));
    json_object_set_new(json, "seconds", json_real(trial->seconds));
    json_object_set_new(json, "seed", json_integer((json_int_t)trial->options.seed));
    return json;
}

// A number for the weights of a network: results with another representation do not count. FNV-1a.
static psi_status hash_of(psi_ctx *ctx, const psi_net *net, char text[17])
{
    psi_status status = PSI_OK;
    psi_real *values = NULL;
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t i = 0; net && i < psi_net_tensor_count(net); i++) {
        psi_tensor_info info;
        TRY(psi_net_tensor_info(ctx, net, i, &info));
        const size_t n = psi_shape_size(&info.shape);
        TRY(base_resize(ctx, n, sizeof *values, &values));
        TRY(psi_net_tensor_get(ctx, net, i, values));
        for (size_t j = 0; j < n; j++) {
            uint32_t bits;
            memcpy(&bits, &values[j], sizeof bits);
            hash = (hash ^ bits) * 0x100000001b3;
        }
    }
    snprintf(text, 17, "%016" PRIx64, hash);
done:
    base_free(ctx, values);
    return status;
}

bool study_sees_through_network(const psi_agent_options *o)
{
    return (o->kind == PSI_AGENT_REWARD_PREDICTIVE || o->kind == PSI_AGENT_PLANNER) &&
           o->view != PSI_VIEW_TRUTH;
}

// The network in a file, as a number.
static psi_status hash_of_file(psi_ctx *ctx, const char *path, char text[17])
{
    psi_status status = PSI_OK;
    psi_net *net = NULL;
    TRY(psi_net_load(ctx, path, &net));
    TRY(hash_of(ctx, net, text));
done:
    psi_net_free(ctx, net);
    return status;
}

static psi_status key_of(psi_ctx *ctx, const psi_trial *trial, json_t **out);

// What a pretrained agent starts from: the weights in a file; or the trial that has learnt them or
// will, not its weights, which need not be there any more when its result is read again.
static psi_status start_of(psi_ctx *ctx, const psi_trial *trial, json_t **out)
{
    psi_status status = PSI_OK;
    const bool pretrained = trial->options.kind == PSI_AGENT_PRETRAINED;
    char text[17] = "";
    if (pretrained && trial->source) return key_of(ctx, trial->source, out);
    if (pretrained && trial->start_file) TRY(hash_of_file(ctx, trial->start_file, text));
    *out = json_string(text);
    TRY(base_json_made(ctx, *out));
done:
    return status;
}

// What a trial must have been for its result to count, or its checkpoint: all that decides what
// comes out of it.
static psi_status key_of(psi_ctx *ctx, const psi_trial *trial, json_t **out)
{
    psi_status status = PSI_OK;
    const psi_agent_options *o = &trial->options;
    const bool first = o->kind == PSI_AGENT_PRETRAINED && !trial->start_file && !trial->source;
    char task[PSI_TASK_JSON_SIZE], truth[PSI_TASK_JSON_SIZE] = "",
                                   training[PSI_TASK_JSON_SIZE] = "", representation[17];
    json_t *chosen = NULL, *start = NULL;
    *out = NULL;
    TRY(psi_task_json(ctx, &trial->task, task));
    if (o->truth_of) TRY(psi_task_json(ctx, o->truth_of, truth));
    if (first) TRY(psi_task_json(ctx, &trial->training, training));
    TRY(start_of(ctx, trial, &start));
    TRY(hash_of(ctx, study_sees_through_network(o) ? o->representation : NULL, representation));
    TRY(base_options_json(ctx, psi_agent_option_table(), o, true, &chosen));
    *out = json_pack("{s:s, s:s, s:s, s:O, s:s, s:I, s:I, s:O}", "task", task, "truth_of", truth,
                     "pretraining", training, "start", start, "representation", representation,
                     "episodes", (json_int_t)trial->episodes, "evaluation",
                     (json_int_t)trial->evaluation, "options", chosen);
    TRY(base_json_made(ctx, *out));
done:
    json_decref(chosen);
    json_decref(start);
    return status;
}

// Options that have come since a key was written: what they are by default is what they were then.
static psi_status complete(psi_ctx *ctx, const psi_trial *trial, const json_t *found)
{
    psi_status status = PSI_OK;
    const psi_agent_options usual = psi_agent_defaults(trial->options.kind);
    json_t *options = json_object_get(found, "options"), *defaults = NULL;
    TRY(base_options_json(ctx, psi_agent_option_table(), &usual, true, &defaults));
    if (json_is_object(options) && json_object_update_missing(options, defaults) != 0) {
        TRY(base_json_made(ctx, NULL));
    }
    if (trial->source) TRY(complete(ctx, trial->source, json_object_get(found, "start")));
done:
    json_decref(defaults);
    return status;
}

// The first member that two objects do not share, or NULL.
static const char *first_difference(const json_t *wanted, const json_t *found)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)wanted, key, value)
    {
        const json_t *other = json_object_get(found, key);
        if (json_is_object(value) && json_is_object(other)) {
            const char *inside = first_difference(value, other);
            if (inside) return inside;
        } else if (!other || !json_equal(value, other)) {
            return key;
        }
    }
    return NULL;
}

static psi_status check_key(psi_ctx *ctx, const psi_trial *trial, const json_t *found)
{
    psi_status status = PSI_OK;
    json_t *wanted = NULL;
    TRY(key_of(ctx, trial, &wanted));
    TRY(complete(ctx, trial, found));
    const char *other = first_difference(wanted, found);
    if (other) {
        status =
            FAIL(ctx, PSI_EUSAGE, "%s is there with another %s; choose another folder or remove it",
                 trial->folder, other);
    }
done:
    json_decref(wanted);
    return status;
}

psi_status study_trial_file(psi_ctx *ctx, const psi_trial *trial, const char *name, char **out)
{
    return base_join(ctx, trial->folder, name, out);
}

psi_status study_trial_network(psi_ctx *ctx, const psi_trial *trial, psi_net **out)
{
    psi_status status = PSI_OK;
    char *path = NULL;
    *out = NULL;
    TRY(study_trial_file(ctx, trial, NETWORK, &path));
    TRY(psi_net_load(ctx, path, out));
done:
    base_free(ctx, path);
    return status;
}

// Reads the result of a trial that was finished before, if there is one.
psi_status study_trial_read(psi_ctx *ctx, psi_trial *trial)
{
    psi_status status = PSI_OK;
    char *result = NULL, *curve = NULL, *network = NULL;
    json_t *json = NULL;
    struct stat info;
    if (!trial->folder) return PSI_OK;
    TRY(study_trial_file(ctx, trial, "result.json", &result));
    TRY(study_trial_file(ctx, trial, "curve.csv", &curve));
    TRY(study_trial_file(ctx, trial, NETWORK, &network));
    if (stat(result, &info) != 0) goto done;
    TRY(base_remove_abandoned(ctx, result)); // nobody writes it again
    TRY(base_json_load(ctx, result, LARGEST_RESULT, &json));
    TRY(check_key(ctx, trial, json_object_get(json, "trial")));
    if (trial->needs_network && stat(network, &info) != 0) goto done;
    const json_t *scores = json_object_get(json, "result");
    trial->score = score_from(scores);
    trial->final = score_from(json_object_get(scores, "final"));
    trial->diverged = json_is_true(json_object_get(scores, "diverged"));
    trial->not_played = (size_t)json_integer_value(json_object_get(scores, "not_played"));
    trial->updates = (uint64_t)json_integer_value(json_object_get(scores, "updates"));
    trial->seconds = json_number_value(json_object_get(scores, "seconds"));
    TRY(psi_curve_load_csv(ctx, curve, &trial->curve, &trial->n_curve));
    trial->finished = true;
done:
    base_free(ctx, result);
    base_free(ctx, curve);
    base_free(ctx, network);
    json_decref(json);
    return status;
}

// trial.json says from the beginning on what a folder is about, before there is a result.
psi_status study_trial_claim(psi_ctx *ctx, const psi_trial *trial)
{
    psi_status status = PSI_OK;
    char *path = NULL;
    json_t *key = NULL;
    struct stat info;
    TRY(base_make_folders(ctx, trial->folder));
    TRY(study_trial_file(ctx, trial, "trial.json", &path));
    if (stat(path, &info) == 0) {
        TRY(base_remove_abandoned(ctx, path)); // nobody writes it again
        TRY(base_json_load(ctx, path, LARGEST_RESULT, &key));
        TRY(check_key(ctx, trial, key));
    } else {
        TRY(key_of(ctx, trial, &key));
        TRY(base_json_save(ctx, path, key));
    }
done:
    json_decref(key);
    base_free(ctx, path);
    return status;
}

psi_status study_trial_write(psi_ctx *ctx, const psi_trial *trial, const psi_agent *agent)
{
    psi_status status = PSI_OK;
    char *result = NULL, *curve = NULL, *events = NULL, *network = NULL;
    json_t *json = NULL, *wanted = NULL;
    TRY(study_trial_file(ctx, trial, "result.json", &result));
    TRY(study_trial_file(ctx, trial, "curve.csv", &curve));
    TRY(study_trial_file(ctx, trial, "events.out.tfevents.psifold", &events));
    TRY(study_trial_file(ctx, trial, NETWORK, &network));
    TRY(psi_curve_save_csv(ctx, trial->curve, trial->n_curve, curve));
    TRY(psi_curve_save_events(ctx, trial->curve, trial->n_curve,
                              (double)time(NULL) - trial->seconds, events));
    if (trial->keep_network && psi_agent_network(agent)) {
        TRY(psi_net_save(ctx, psi_agent_network(agent), network));
    }
    TRY(key_of(ctx, trial, &wanted));
    json = json_pack("{s:O, s:o}", "trial", wanted, "result", result_json(trial));
    TRY(base_json_made(ctx, json));
    TRY(base_json_save(ctx, result, json));
done:
    base_free(ctx, result);
    base_free(ctx, curve);
    base_free(ctx, events);
    base_free(ctx, network);
    json_decref(json);
    json_decref(wanted);
    return status;
}

psi_status psi_trial_json(psi_ctx *ctx, const psi_trial *trial, char text[PSI_TRIAL_JSON_SIZE])
{
    psi_status status = PSI_OK;
    json_t *json = result_json(trial);
    text[0] = '\0';
    TRY(base_json_made(ctx, json));
    const size_t size =
        json_dumpb(json, text, PSI_TRIAL_JSON_SIZE - 1, JSON_COMPACT | JSON_REAL_PRECISION(17));
    if (size == 0 || size >= PSI_TRIAL_JSON_SIZE) {
        status = FAIL(ctx, PSI_EINTERNAL, "the scores of a trial are longer than expected");
        goto done;
    }
    text[size] = '\0';
done:
    json_decref(json);
    return status;
}

psi_status psi_trial_keep_in(psi_ctx *ctx, psi_trial *trial, const char *folder)
{
    base_free(ctx, trial->folder);
    return base_copy_text(ctx, folder, &trial->folder);
}

void psi_trials_free(psi_ctx *ctx, psi_trial *list, size_t n)
{
    for (size_t i = 0; list && i < n; i++) {
        base_free(ctx, list[i].folder);
        base_free(ctx, list[i].curve);
    }
}
