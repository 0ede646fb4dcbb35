// manifest.json: what a run says about itself, out and in, so that a field is added in one place;
// start.json, the part of it that is known before the work begins; and the lines of
// refinements.jsonl.
#include "run/run.h"

#include "base/checked.h"
#include "base/context.h"
#include "base/file.h"
#include "base/options.h"
#include "run/checksums.h"
#include "run/phases.h"

#include <math.h>
#include <string.h>

enum { MANIFEST_LIMIT = 1 << 24, START_LIMIT = 1 << 20, MAX_LATENT = 1 << 20 };

// ---- out ----------------------------------------------------------------------------------------

// Appends what was made, or gives up with everything so far: NULL, as Jansson's constructors do.
static json_t *append(json_t *array, json_t *made)
{
    if (json_array_append_new(array, made) == 0) return array;
    json_decref(array);
    return NULL;
}

static json_t *advice_out(const psi_run *run)
{
    json_t *advice = json_array();
    for (size_t i = 0; advice && i < run->n_doubts; i++) {
        char text[256];
        psi_doubt_sentence(&run->doubts[i], text, sizeof text);
        advice = append(advice, json_string(text));
    }
    return advice;
}

// The same as data, for whoever wants to point at the latent states.
static json_t *doubts_out(const psi_run *run)
{
    json_t *doubts = json_array();
    for (size_t i = 0; doubts && i < run->n_doubts; i++) {
        const psi_doubt *doubt = &run->doubts[i];
        doubts = append(doubts,
                        json_pack("{s:s, s:i, s:i, s:o, s:I, s:I}", "kind",
                                  psi_doubt_name(doubt->kind), "state", doubt->state, "other",
                                  doubt->other, "nats", base_json_real(doubt->nats), "visits",
                                  (json_int_t)doubt->visits, "enough", (json_int_t)doubt->enough));
    }
    return doubts;
}

static json_t *result_out(const psi_run *run)
{
    char sentence[256];
    psi_verdict_sentence(run, sentence, sizeof sentence);
    return json_pack(
        "{s:b, s:s?, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:I, s:b, s:s, s:b, s:b, s:o, s:o, s:o, "
        "s:o, "
        "s:o, s:o, s:o, s:[I, I, I]}",
        "stopped", run->stopped, "failure", run->failure, "verdict", psi_verdict_name(run->verdict),
        "verdict_sentence", sentence, "margin", base_json_real(run->margin), "doubtful_fraction",
        base_json_real(run->doubtful), "past_fraction", base_json_real(run->past), "advice",
        advice_out(run), "doubts", doubts_out(run), "latent_states", (json_int_t)run->n_latent,
        "has_terminal", run->has_terminal, "approximator", psi_approximator_name(run->approximator),
        "converged", run->converged, "matching_condition", run->matching_condition,
        "ignored_fraction", base_json_real(run->ignored), "smoothed_fraction",
        base_json_real(run->smoothed), "gamma", base_json_real(run->gamma), "epsilon_reward",
        base_json_real(run->epsilon_reward), "epsilon_sf", base_json_real(run->epsilon_sf), "gap",
        base_json_real(run->gap), "representation_accuracy", base_json_real(run->accuracy),
        "growth", (json_int_t)run->growth[0], (json_int_t)run->growth[1],
        (json_int_t)run->growth[2]);
}

static json_t *certificate_out(const psi_certificate *certificate)
{
    if (!certificate) return json_null();
    return json_pack(
        "{s:o, s:o, s:I, s:I, s:I, s:o, s:o, s:I}", "epsilon_reward",
        base_json_real(certificate->epsilon_reward), "epsilon_sf",
        base_json_real(certificate->epsilon_sf), "judged", (json_int_t)certificate->judged,
        "violating", (json_int_t)certificate->violating, "unseen_pairs",
        (json_int_t)certificate->unseen, "worst_reward_error",
        base_json_real(certificate->worst_reward), "worst_sf_error",
        base_json_real(certificate->worst_sf), "mergeable", (json_int_t)certificate->mergeable);
}

static json_t *shape_out(const psi_shape *shape)
{
    json_t *sizes = json_array();
    for (size_t i = 0; sizes && i < shape->rank; i++) {
        sizes = append(sizes, json_integer((json_int_t)shape->dim[i]));
    }
    return sizes;
}

static json_t *data_out(const psi_run *run)
{
    json_t *paths = json_array();
    for (size_t i = 0; paths && i < run->n_data_paths; i++) {
        paths = append(paths, json_string(run->data_paths[i]));
    }
    return json_pack("{s:o, s:s*, s:s, s:I, s:I, s:I, s:I, s:s, s:o}", "paths", paths,
                     "observation_key", run->observation_key, "fingerprint", run->fingerprint.hex,
                     "episodes", (json_int_t)run->n_episodes, "transitions",
                     (json_int_t)run->n_transitions, "observations",
                     (json_int_t)run->n_observations, "n_actions", (json_int_t)run->n_actions,
                     "observation_dtype", psi_dtype_name(run->observation_dtype),
                     "observation_shape", shape_out(&run->observation_shape));
}

static json_t *phases_out(const psi_run *run)
{
    json_t *phases = json_array();
    for (size_t i = 0; phases && i < run->n_phases; i++) {
        phases = append(phases, json_pack("{s:s, s:I}", "phase", run->phases[i].name, "passes",
                                          (json_int_t)run->phases[i].passes));
    }
    return phases;
}

// All that differs between two runs of the same thing.
static json_t *timings_out(const psi_run *run)
{
    json_t *seconds = json_object();
    for (size_t i = 0; seconds && i < run->n_phases; i++) {
        json_t *real = base_json_real(run->phases[i].seconds);
        if (json_object_set_new(seconds, run->phases[i].name, real) == 0) continue;
        json_decref(seconds);
        seconds = NULL;
    }
    return json_pack("{s:s, s:f, s:o}", "finished", run->when, "seconds", run->seconds, "phases",
                     seconds);
}

psi_status run_manifest_save(psi_ctx *ctx, const char *path, const psi_run *run, json_t *files)
{
    psi_status status = PSI_OK;
    json_t *manifest = NULL, *options = NULL;
    TRY(base_options_json(ctx, psi_cluster_option_table(), &run->options, false, &options));
    manifest =
        json_pack("{s:s, s:s, s:I, s:i, s:o, s:O, s:o, s:o, s:o, s:O, s:o}", "psifold",
                  psi_version(), "commit", psi_commit(), "seed", (json_int_t)run->options.seed,
                  "threads", run->threads, "data", data_out(run), "options", options, "result",
                  result_out(run), "certificate", certificate_out(run->certificate), "phases",
                  phases_out(run), "files", files, "timings", timings_out(run));
    TRY(base_json_made(ctx, manifest));
    TRY(base_json_save(ctx, path, manifest));
done:
    json_decref(options);
    json_decref(manifest);
    return status;
}

// ---- in -----------------------------------------------------------------------------------------

static psi_status no_manifest(psi_ctx *ctx, const char *path)
{
    return FAIL(ctx, PSI_EFORMAT, "%s is not the manifest of a run", path);
}

// A number; NaN where there is none, which is how base_json_real writes it.
static double real_in(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

// How many; 0 where nothing says.
static size_t count_in(const json_t *object, const char *key)
{
    const json_int_t value = json_integer_value(json_object_get(object, key));
    return value > 0 ? (size_t)value : 0;
}

static bool flag_in(const json_t *object, const char *key)
{
    return json_is_true(json_object_get(object, key));
}

// The number of a word among those that `name` knows; −1 if it is none of them.
static int word_in(const json_t *object, const char *key, const char *(*name)(int), int n)
{
    const char *word = json_string_value(json_object_get(object, key));
    for (int i = 0; word && i < n; i++) {
        if (strcmp(word, name(i)) == 0) return i;
    }
    return -1;
}

static const char *doubt_word(int i)
{
    return psi_doubt_name((psi_doubt_kind)i);
}

static const char *verdict_word(int i)
{
    return psi_verdict_name((psi_verdict)i);
}

static const char *approximator_word(int i)
{
    return psi_approximator_name((psi_approximator)i);
}

static psi_status number_in(psi_ctx *ctx, const char *path, const json_t *object, const char *key,
                            size_t least, size_t most, size_t *out)
{
    const json_t *value = json_object_get(object, key);
    const json_int_t number = json_integer_value(value);
    if (!json_is_integer(value) || number < (json_int_t)least || (uint64_t)number > most) {
        return FAIL(ctx, PSI_EFORMAT, "%s: '%s' is not a number from %zu to %zu", path, key, least,
                    most);
    }
    *out = (size_t)number;
    return PSI_OK;
}

static bool fingerprint_in(const json_t *value, psi_fingerprint *out)
{
    const char *text = json_string_value(value);
    if (!text || strspn(text, "0123456789abcdef") != 32 || text[32] != '\0') return false;
    memcpy(out->hex, text, sizeof out->hex);
    return true;
}

// What one observation is; runs of an older version do not say.
static void observation_in(const json_t *data, psi_run *run)
{
    const char *name = json_string_value(json_object_get(data, "observation_dtype"));
    const json_t *sizes = json_object_get(data, "observation_shape");
#define X(id, ...)                                                                                 \
    if (name && strcmp(psi_dtype_name(PSI_##id), name) == 0) run->observation_dtype = PSI_##id;
    PSI_DTYPE_TABLE(X)
#undef X
    run->observation_shape.rank = base_min(json_array_size(sizes), PSI_MAX_RANK);
    for (size_t i = 0; i < run->observation_shape.rank; i++) {
        const json_int_t size = json_integer_value(json_array_get(sizes, i));
        run->observation_shape.dim[i] = size > 0 ? (size_t)size : 0;
    }
}

// Where the data were. Manifests up to November 2026 have one text, a path a line, unless there is
// a file of that name.
static psi_status paths_in(psi_ctx *ctx, const char *path, const json_t *data, psi_run *run)
{
    psi_status status = PSI_OK;
    const json_t *paths = json_object_get(data, "paths");
    const char *text = json_string_value(json_object_get(data, "path"));
    size_t n = json_array_size(paths);
    const char **list = NULL;
    char *lines = NULL;
    if (!paths && text) {
        const bool one = base_is_there(text);
        n = 1;
        for (const char *at = text; !one && *at; at++) n += *at == '\n';
        TRY(base_copy_text(ctx, text, &lines));
        TRY(base_alloc(ctx, n, sizeof *list, &list));
        char *at = lines;
        for (size_t i = 0; i < n; i++) list[i] = one ? at : strsep(&at, "\n");
    } else {
        TRY(base_alloc(ctx, n, sizeof *list, &list));
        for (size_t i = 0; i < n; i++) {
            list[i] = json_string_value(json_array_get(paths, i));
            if (!list[i]) TRY(no_manifest(ctx, path));
        }
    }
    TRY(run_set_data_paths(ctx, run, list, n));
done:
    base_free(ctx, list);
    base_free(ctx, lines);
    return status;
}

static psi_status data_in(psi_ctx *ctx, const char *path, const json_t *data, psi_run *run)
{
    psi_status status = PSI_OK;
    const char *key = json_string_value(json_object_get(data, "observation_key"));
    if (!fingerprint_in(json_object_get(data, "fingerprint"), &run->fingerprint)) {
        TRY(no_manifest(ctx, path));
    }
    TRY(paths_in(ctx, path, data, run));
    if (key) TRY(base_copy_text(ctx, key, &run->observation_key));
    observation_in(data, run);
    run->n_episodes = count_in(data, "episodes");
    run->n_transitions = count_in(data, "transitions");
    TRY(number_in(ctx, path, data, "n_actions", 1, MAX_LATENT, &run->n_actions));
    TRY(number_in(ctx, path, data, "observations", 0, SIZE_MAX / 64, &run->n_observations));
done:
    return status;
}

// Whether a doubt speaks of latent states and actions that there are.
static bool makes_sense(const psi_run *run, const psi_doubt *doubt)
{
    const int32_t latent = (int32_t)run->n_latent, actions = (int32_t)run->n_actions;
    const bool many = doubt->kind == PSI_DOUBT_PAST || doubt->kind == PSI_DOUBT_GROWTH ||
                      doubt->kind == PSI_DOUBT_UNTRIED || doubt->kind == PSI_DOUBT_TAILS ||
                      doubt->kind == PSI_DOUBT_CLOCK || doubt->kind == PSI_DOUBT_LOOKS ||
                      doubt->kind == PSI_DOUBT_CHANCE || doubt->kind == PSI_DOUBT_UNTOLD;
    if (doubt->state < (many ? -1 : 0) || doubt->state >= latent) return false;
    switch (doubt->kind) {
    case PSI_DOUBT_PAIR: return doubt->other >= 0 && doubt->other < latent;
    case PSI_DOUBT_UNTRIED:
    case PSI_DOUBT_SELDOM:
    case PSI_DOUBT_RARE: return doubt->other >= 0 && doubt->other < actions;
    case PSI_DOUBT_PAST:
    case PSI_DOUBT_LOOKS:
    case PSI_DOUBT_TAILS:
    case PSI_DOUBT_CLOCK:
    case PSI_DOUBT_CHANCE:
    case PSI_DOUBT_UNTOLD:
    case PSI_DOUBT_GROWTH: break;
    }
    return true;
}

static int32_t index_in(const json_t *object, const char *key)
{
    const json_int_t value = json_integer_value(json_object_get(object, key));
    return value >= 0 && value <= INT32_MAX ? (int32_t)value : -1;
}

static psi_status doubts_in(psi_ctx *ctx, const json_t *doubts, psi_run *run)
{
    psi_status status = PSI_OK;
    const size_t n = json_array_size(doubts);
    TRY(base_alloc(ctx, n, sizeof *run->doubts, &run->doubts));
    for (size_t i = 0; i < n; i++) {
        const json_t *object = json_array_get(doubts, i);
        const int kind = word_in(object, "kind", doubt_word, PSI_DOUBT_UNTOLD + 1);
        const psi_doubt doubt = {.kind = (psi_doubt_kind)(kind < 0 ? 0 : kind),
                                 .state = index_in(object, "state"),
                                 .other = index_in(object, "other"),
                                 .nats = real_in(object, "nats"),
                                 .visits = count_in(object, "visits"),
                                 .enough = count_in(object, "enough")};
        if (kind >= 0 && makes_sense(run, &doubt)) run->doubts[run->n_doubts++] = doubt;
    }
done:
    return status;
}

static psi_status result_in(psi_ctx *ctx, const char *path, const json_t *found, psi_run *run)
{
    psi_status status = PSI_OK;
    const int verdict = word_in(found, "verdict", verdict_word, PSI_VERDICT_NOT_ASKED),
              approximator =
                  word_in(found, "approximator", approximator_word, PSI_APPROXIMATOR_RESNET18 + 1);
    if (approximator < 0) TRY(no_manifest(ctx, path));
    TRY(number_in(ctx, path, found, "latent_states", 1, MAX_LATENT, &run->n_latent));
    run->verdict = verdict < 0 ? PSI_VERDICT_NOT_ASKED : (psi_verdict)verdict;
    run->approximator = (psi_approximator)approximator;
    run->has_terminal = flag_in(found, "has_terminal");
    run->stopped = flag_in(found, "stopped");
    const char *failure = json_string_value(json_object_get(found, "failure"));
    if (failure) TRY(base_copy_text(ctx, failure, &run->failure));
    run->margin = real_in(found, "margin");
    run->doubtful = real_in(found, "doubtful_fraction");
    run->past = real_in(found, "past_fraction");
    for (size_t i = 0; i < 3; i++) {
        const json_t *part = json_array_get(json_object_get(found, "growth"), i);
        const json_int_t n = json_integer_value(part);
        run->growth[i] = n > 0 && n <= MAX_LATENT ? (size_t)n : 0;
    }
    run->converged = flag_in(found, "converged");
    run->matching_condition = flag_in(found, "matching_condition");
    run->ignored = real_in(found, "ignored_fraction");
    run->smoothed = real_in(found, "smoothed_fraction");
    run->gamma = real_in(found, "gamma");
    run->epsilon_reward = real_in(found, "epsilon_reward");
    run->epsilon_sf = real_in(found, "epsilon_sf");
    run->gap = real_in(found, "gap");
    run->accuracy = real_in(found, "representation_accuracy");
    if (!(run->gamma >= 0.0 && run->gamma < 1.0)) {
        TRY(FAIL(ctx, PSI_EFORMAT, "%s: gamma %g is not below 1", path, run->gamma));
    }
    TRY(doubts_in(ctx, json_object_get(found, "doubts"), run));
done:
    return status;
}

static psi_status certificate_in(psi_ctx *ctx, const json_t *object, psi_run *run)
{
    psi_status status = PSI_OK;
    if (!json_is_object(object)) return PSI_OK;
    TRY(base_alloc_zero(ctx, 1, sizeof *run->certificate, &run->certificate));
    *run->certificate = (psi_certificate){.n_latent = run->n_latent,
                                          .n_actions = run->n_actions,
                                          .epsilon_reward = real_in(object, "epsilon_reward"),
                                          .epsilon_sf = real_in(object, "epsilon_sf"),
                                          .judged = count_in(object, "judged"),
                                          .violating = count_in(object, "violating"),
                                          .unseen = count_in(object, "unseen_pairs"),
                                          .worst_reward = real_in(object, "worst_reward_error"),
                                          .worst_sf = real_in(object, "worst_sf_error"),
                                          .mergeable = count_in(object, "mergeable")};
done:
    return status;
}

// Phases that there are, with names of our own.
static psi_status phases_in(psi_ctx *ctx, const json_t *phases, const json_t *seconds, psi_run *run)
{
    psi_status status = PSI_OK;
    TRY(base_alloc_zero(ctx, PHASES, sizeof *run->phases, &run->phases));
    for (size_t i = 0; i < json_array_size(phases); i++) {
        const json_t *object = json_array_get(phases, i);
        const char *name = json_string_value(json_object_get(object, "phase"));
        for (int p = 0; name && p < PHASES && run->n_phases < PHASES; p++) {
            const char *known = run_phase_name((run_phase)p);
            if (strcmp(name, known) != 0) continue;
            run->phases[run->n_phases++] = (psi_cluster_phase){
                known, .seconds = real_in(seconds, known), .passes = count_in(object, "passes")};
        }
    }
done:
    return status;
}

static bool is_listed(const json_t *files, const char *name)
{
    for (size_t i = 0; i < json_array_size(files); i++) {
        const char *file = json_string_value(json_array_get(files, i));
        if (file && strcmp(file, name) == 0) return true;
    }
    return false;
}

psi_status run_manifest_load(psi_ctx *ctx, const char *folder, psi_run *run)
{
    psi_status status = PSI_OK;
    char *path = NULL;
    json_t *manifest = NULL;
    size_t compared;
    TRY(base_join(ctx, folder, "manifest.json", &path));
    TRY(base_json_load(ctx, path, MANIFEST_LIMIT, &manifest));
    TRY(run_checksums_check(ctx, folder, manifest, &compared));
    const json_t *files = json_object_get(manifest, "files"),
                 *timings = json_object_get(manifest, "timings");
    if (!timings) timings = manifest; // of an older version
    run->options = psi_cluster_defaults();
    TRY(base_options_read(ctx, psi_cluster_option_table(), path,
                          json_object_get(manifest, "options"), &run->options));
    run->options.seed = (uint64_t)json_integer_value(json_object_get(manifest, "seed"));
    run->threads = (int)base_min(count_in(manifest, "threads"), INT32_MAX);
    TRY(data_in(ctx, path, json_object_get(manifest, "data"), run));
    TRY(result_in(ctx, path, json_object_get(manifest, "result"), run));
    TRY(certificate_in(ctx, json_object_get(manifest, "certificate"), run));
    TRY(phases_in(ctx, json_object_get(manifest, "phases"), json_object_get(timings, "phases"),
                  run));
    run->has_heads = is_listed(files, "heads-01.safetensors");
    run->has_trunk = is_listed(files, "trunk.safetensors");
    run->seconds = real_in(timings, "seconds");
    const char *when = json_string_value(json_object_get(timings, "finished"));
    if (when && strspn(when, "0123456789-:TZ") == strlen(when)) {
        snprintf(run->when, sizeof run->when, "%s", when);
    }
done:
    json_decref(manifest);
    base_free(ctx, path);
    return status;
}

// ---- start.json ---------------------------------------------------------------------------------

psi_status run_start(psi_run_folder *folder, const psi_run *run)
{
    psi_status status = PSI_OK;
    psi_ctx *ctx = folder->ctx;
    json_t *start = NULL, *options = NULL;
    TRY(base_options_json(ctx, psi_cluster_option_table(), &run->options, true, &options));
    start = json_pack("{s:s, s:s, s:i, s:I, s:O}", "psifold", psi_version(), "data",
                      run->fingerprint.hex, "threads", run->threads, "seed",
                      (json_int_t)run->options.seed, "options", options);
    TRY(run_folder_start(folder, start));
done:
    json_decref(options);
    json_decref(start);
    return status;
}

static psi_status chosen(psi_ctx *ctx, const psi_cluster_options *options,
                         const psi_fingerprint *data, json_t **out)
{
    psi_status status = PSI_OK;
    json_t *all = NULL;
    TRY(base_options_json(ctx, psi_cluster_option_table(), options, true, &all));
    *out = json_pack("{s:s, s:I, s:O}", "data", data->hex, "seed", (json_int_t)options->seed,
                     "options", all);
    TRY(base_json_made(ctx, *out));
done:
    json_decref(all);
    return status;
}

psi_status run_compare(const psi_run_folder *folder, const psi_run *run,
                       const psi_trajectories *data, const psi_cluster_options *options)
{
    psi_status status = PSI_OK;
    psi_fingerprint given;
    json_t *wanted = NULL, *found = NULL;
    TRY(psi_fingerprint_of(folder->ctx, data, &given));
    TRY(chosen(folder->ctx, options, &given, &wanted));
    TRY(chosen(folder->ctx, &run->options, &run->fingerprint, &found));
    TRY(run_folder_compare(folder, wanted, found));
done:
    json_decref(found);
    json_decref(wanted);
    return status;
}

psi_status run_start_load(psi_ctx *ctx, const char *path, psi_run *run)
{
    psi_status status = PSI_OK;
    json_t *start = NULL;
    TRY(base_json_load(ctx, path, START_LIMIT, &start));
    if (!fingerprint_in(json_object_get(start, "data"), &run->fingerprint)) {
        TRY(FAIL(ctx, PSI_EFORMAT, "%s does not say what a run was started with", path));
    }
    TRY(base_options_read(ctx, psi_cluster_option_table(), path, json_object_get(start, "options"),
                          &run->options));
    run->options.seed = (uint64_t)json_integer_value(json_object_get(start, "seed"));
    run->threads = (int)base_min(count_in(start, "threads"), INT32_MAX);
done:
    json_decref(start);
    return status;
}

// ---- refinements.jsonl --------------------------------------------------------------------------

psi_status run_step_print(psi_ctx *ctx, const psi_cluster_step *step, size_t refinement,
                          char text[RUN_STEP_SIZE], size_t *size)
{
    psi_status status = PSI_OK;
    json_t *object = json_pack(
        "{s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "refinement", (json_int_t)refinement,
        "clusters", (json_int_t)step->clusters, "looked_at", (json_int_t)step->looked_at,
        "ignored_fraction", base_json_real(step->ignored), "agreement",
        base_json_real(step->agreement), "gap", base_json_real(step->gap), "epsilon",
        base_json_real(step->epsilon), "held_out_error", base_json_real(step->held_out_error),
        "perfect", base_json_real(step->perfect), "seconds", base_json_real(step->seconds));
    TRY(base_json_made(ctx, object));
    *size = json_dumpb(object, text, RUN_STEP_SIZE, JSON_COMPACT | JSON_REAL_PRECISION(17));
    if (*size == 0 || *size > RUN_STEP_SIZE) {
        status = FAIL(ctx, PSI_EINTERNAL, "a refinement's line is too long");
    }
done:
    json_decref(object);
    return status;
}

psi_status run_step_parse(psi_ctx *ctx, const char *path, size_t refinement, const char *text,
                          size_t size, psi_cluster_step *out)
{
    json_t *object = NULL;
    const psi_status status = base_json_parse(ctx, path, text, size, &object);
    if (status != PSI_OK) return status;
    const json_t *clusters = json_object_get(object, "clusters"),
                 *looked_at = json_object_get(object, "looked_at");
    const double ignored = real_in(object, "ignored_fraction");
    const bool good = json_is_integer(clusters) && json_integer_value(clusters) >= 0 &&
                      json_is_integer(looked_at) && json_integer_value(looked_at) >= 0 &&
                      ignored >= 0.0 && ignored <= 1.0;
    *out = (psi_cluster_step){.clusters = count_in(object, "clusters"),
                              .looked_at = count_in(object, "looked_at"),
                              .ignored = ignored,
                              .agreement = real_in(object, "agreement"),
                              .gap = real_in(object, "gap"),
                              .epsilon = real_in(object, "epsilon"),
                              .held_out_error = real_in(object, "held_out_error"),
                              .perfect = real_in(object, "perfect"),
                              .seconds = real_in(object, "seconds")};
    json_decref(object);
    if (good) return PSI_OK;
    return FAIL(ctx, PSI_EFORMAT,
                "%s: refinement %zu does not say how many clusters it has, how many states it "
                "looked at and which share of them it ignored",
                path, refinement);
}
