// A task as JSON, to be kept beside the data that came from it: the options as they stand on a
// command line, so that reading it back is setting them again.
#include "env/task.h"

#include "base/context.h"
#include "base/json.h"

#include <stdio.h>
#include <string.h>

// A text that is put together piece by piece; what does not fit is noticed at the end.
typedef struct env_words {
    char text[512];
    size_t length;
} env_words;

static void append(env_words *words, const char *separator, long number, bool wildcard)
{
    char piece[32];
    snprintf(piece, sizeof piece, wildcard ? "%s*" : "%s%ld", words->length ? separator : "",
             number);
    const size_t n = strlen(piece);
    if (words->length + n >= sizeof words->text) return;
    memcpy(words->text + words->length, piece, n + 1);
    words->length += n;
}

static env_words number(long value)
{
    env_words words = {.length = 0};
    append(&words, "", value, false);
    return words;
}

static env_words combination(const int *digit, int n)
{
    env_words words = {.length = 0};
    for (int i = 0; i < n; i++) append(&words, ",", digit[i], digit[i] == PSI_ANY);
    return words;
}

static env_words marked(const bool *marks, int n)
{
    env_words words = {.length = 0};
    for (int i = 0; i < n; i++) {
        if (marks[i]) append(&words, ",", i + 1, false);
    }
    if (words.length == 0) snprintf(words.text, sizeof words.text, "none");
    return words;
}

static psi_status put(psi_ctx *ctx, json_t *options, const char *name, const char *value)
{
    // a switch has no value: it is there or not
    json_t *json = value ? json_string(value) : json_true();
    if (json_object_set_new(options, name, json) == 0) return PSI_OK;
    return base_json_made(ctx, NULL);
}

static psi_status put_columns(psi_ctx *ctx, const psi_task *task, json_t *options)
{
    psi_status status = PSI_OK;
    const bool any = task->start_column == PSI_ANY;
    TRY(put(ctx, options, "width", number(task->width).text));
    TRY(put(ctx, options, "height", number(task->height).text));
    TRY(put(ctx, options, "start-column", any ? "any" : number(task->start_column + 1).text));
    TRY(put(ctx, options, "reward", task->reward == PSI_REWARD_BEING ? "being" : "entering"));
    TRY(put(ctx, options, task->terminate ? "terminate" : "no-terminate", NULL));
done:
    return status;
}

static psi_status put_lock(psi_ctx *ctx, const psi_task *task, json_t *options)
{
    psi_status status = PSI_OK;
    const int swap[] = {task->swap[0] + 1, task->swap[1] + 1};
    const bool swaps = task->swap[0] != PSI_NO_DIAL;
    TRY(put(ctx, options, "dials", number(task->dials).text));
    TRY(put(ctx, options, "digits-per-dial", number(task->digits_per_dial).text));
    TRY(put(ctx, options, "broken", marked(task->broken, task->dials).text));
    TRY(put(ctx, options, "reverse", marked(task->reversed, task->dials).text));
    TRY(put(ctx, options, "swap", swaps ? combination(swap, 2).text : "none"));
    TRY(put(ctx, options, "goal", combination(task->goal, task->dials).text));
    TRY(put(ctx, options, "start", combination(task->start, task->dials).text));
    TRY(put(ctx, options, "digits", env_digits_name(task->digits)));
    TRY(put(ctx, options, "images-per-digit", number(task->images_per_digit).text));
done:
    return status;
}

static psi_status put_levels(psi_ctx *ctx, const psi_task *task, json_t *options)
{
    psi_status status = PSI_OK;
    const bool ring = task->kind == PSI_BIT_LOCK;
    char share[32];
    snprintf(share, sizeof share, "%.17g", task->random_share);
    TRY(put(ctx, options, ring ? "states" : "horizon", number(task->levels).text));
    if (ring) TRY(put(ctx, options, "bits", number(task->bits).text));
    TRY(put(ctx, options, "instance", number((long)task->instance).text));
    if (!task->occupancy) TRY(put(ctx, options, "random-share", share));
done:
    return status;
}

static psi_status put_options(psi_ctx *ctx, const psi_task *task, json_t *options)
{
    switch (task->kind) {
    case PSI_COMBINATION_LOCK: return put_lock(ctx, task, options);
    case PSI_BIT_LOCK:
    case PSI_RICH_LOCK: return put_levels(ctx, task, options);
    default: return put_columns(ctx, task, options);
    }
}

psi_status psi_task_json(psi_ctx *ctx, const psi_task *task, char text[PSI_TASK_JSON_SIZE])
{
    psi_status status = PSI_OK;
    psi_task checked = *task;
    json_t *options = NULL, *whole = NULL;
    text[0] = '\0';
    TRY(psi_task_check(ctx, &checked));
    options = json_object();
    TRY(base_json_made(ctx, options));
    TRY(put(ctx, options, "max-steps", number((long)checked.max_steps).text));
    TRY(put_options(ctx, &checked, options));
    whole = json_pack("{s:s, s:s, s:O}", "task", psi_task_name(checked.kind), "preset",
                      checked.preset, "options", options);
    TRY(base_json_made(ctx, whole));
    const size_t size = json_dumpb(whole, text, PSI_TASK_JSON_SIZE - 1, JSON_COMPACT);
    if (size == 0 || size >= PSI_TASK_JSON_SIZE) {
        status = FAIL(ctx, PSI_EINTERNAL, "the description of a task is longer than expected");
        text[0] = '\0';
        goto done;
    }
    text[size] = '\0';
done:
    json_decref(options);
    json_decref(whole);
    return status;
}

psi_status psi_task_from_json(psi_ctx *ctx, const char *text, psi_task *out)
{
    psi_status status = PSI_OK;
    json_t *whole = NULL, *options, *value;
    const char *name, *preset, *option;
    psi_task task;
    if (!text) text = "";
    TRY(base_json_parse(ctx, "the description of a task", text, strlen(text), &whole));
    if (json_unpack(whole, "{s:s, s:s, s:o}", "task", &name, "preset", &preset, "options",
                    &options) != 0 ||
        !json_is_object(options)) {
        status = FAIL(ctx, PSI_EFORMAT, "this JSON text does not describe a task");
        goto done;
    }
    TRY(psi_task_defaults(ctx, name, preset, &task));
    json_object_foreach(options, option, value)
    {
        TRY(psi_task_set(ctx, &task, option, json_string_value(value)));
    }
    TRY(psi_task_check(ctx, &task));
    *out = task;
done:
    json_decref(whole);
    return status;
}
