// The .npz of a model, read. It is the model's own arrays: choices, offsets, next, probability,
// action, initial, labels (L, S), state_rewards (R, S), choice_rewards (R, C), and names, a JSON
// text as bytes. It needs two rooms, mdp and data, and so it is here.
#include "cli/model_npz.h"

#include "base/checked.h"
#include "base/context.h"
#include "base/json.h"

#include <string.h>
#include <sys/stat.h>

// (rows, columns) numbers. What the names claim takes no memory before the array is seen to have
// it. *out belongs to the caller: psi_array_free.
static psi_status load_table(psi_ctx *ctx, const char *path, const char *name, psi_dtype dtype,
                             size_t rows, size_t columns, void *out)
{
    psi_status status = PSI_OK;
    psi_shape shape;
    size_t n;
    void *data = NULL;
    TRY(psi_array_load(ctx, path, name, dtype, &shape, &data));
    if (!base_mul(rows, columns, &n)) n = SIZE_MAX;
    if (psi_shape_size(&shape) != n) {
        TRY(FAIL(ctx, PSI_ESHAPE, "%s: %s has %zu elements, expected %zu", path, name,
                 psi_shape_size(&shape), n));
    }
    memcpy(out, &data, sizeof data);
    data = NULL;
done:
    psi_array_free(ctx, data);
    return status;
}

static psi_status load_column(psi_ctx *ctx, const char *path, const char *name, psi_dtype dtype,
                              size_t n, void *into)
{
    void *data = NULL;
    const psi_status status = load_table(ctx, path, name, dtype, n, 1, &data);
    if (status == PSI_OK && n > 0) memcpy(into, data, n * psi_dtype_size(dtype));
    psi_array_free(ctx, data);
    return status;
}

static psi_status array_length(psi_ctx *ctx, const char *path, const char *name, psi_dtype dtype,
                               size_t *out)
{
    psi_shape shape;
    void *data = NULL;
    const psi_status status = psi_array_load(ctx, path, name, dtype, &shape, &data);
    if (status == PSI_OK) *out = psi_shape_size(&shape);
    psi_array_free(ctx, data);
    return status;
}

// Every data set as .npz has rewards, and no model has an array of that name.
static psi_status refuse(psi_ctx *ctx, const char *path)
{
    size_t n;
    const bool data_set = array_length(ctx, path, "rewards", PSI_FLOAT64, &n) == PSI_OK;
    return FAIL(ctx, PSI_EFORMAT, "%s is not a model: %s", path,
                data_set ? "it seems to hold trajectories, which psifold cluster takes"
                         : "the .npz of psifold quotient has an array of names");
}

// We never pack names; whoever does could ask for thousands of bytes with each of theirs.
static psi_status load_names(psi_ctx *ctx, const char *path, json_t **out)
{
    psi_shape shape;
    struct stat file;
    void *data = NULL;
    psi_status status = psi_array_load(ctx, path, "names", PSI_UINT8, &shape, &data);
    if (status == PSI_EDATA) return refuse(ctx, path);
    if (status != PSI_OK) return status;
    const size_t size = psi_shape_size(&shape);
    if (stat(path, &file) == 0 && size > (size_t)file.st_size)
        TRY(FAIL(ctx, PSI_ELIMIT, "%s: names of %zu bytes are too many for it", path, size));
    TRY(base_json_parse(ctx, path, data, size, out));
done:
    psi_array_free(ctx, data);
    return status;
}

// Whether each has a name of its own: by one that two have, nobody can ask for either.
static psi_status check_names(psi_ctx *ctx, const char *path, const char *what, const json_t *names)
{
    psi_status status = PSI_OK;
    json_t *seen = json_object();
    TRY(base_json_made(ctx, seen));
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        if (!name) TRY(FAIL(ctx, PSI_EFORMAT, "%s: a %s has no name", path, what));
        if (json_object_get(seen, name))
            TRY(FAIL(ctx, PSI_EFORMAT, "%s: two %ss are called '%.40s'", path, what, name));
        if (json_object_set_new(seen, name, json_true()) != 0)
            TRY(FAIL(ctx, PSI_ENOMEM, "%s: no memory for its names", path));
    }
done:
    json_decref(seen);
    return status;
}

static psi_status load_labels(psi_ctx *ctx, const char *path, const json_t *names, psi_model *model)
{
    psi_status status = PSI_OK;
    const size_t n = json_array_size(names), n_states = model->n_states;
    uint8_t *table = NULL, *holds;
    if (n == 0) return PSI_OK;
    TRY(check_names(ctx, path, "label", names));
    TRY(load_table(ctx, path, "labels", PSI_UINT8, n, n_states, &table));
    for (size_t l = 0; l < n; l++) {
        const char *name = json_string_value(json_array_get(names, l));
        TRY(psi_model_add_label(ctx, model, name, &holds));
        memcpy(holds, table + l * n_states, n_states);
    }
done:
    psi_array_free(ctx, table);
    return status;
}

static psi_status load_rewards(psi_ctx *ctx, const char *path, const json_t *names,
                               psi_model *model)
{
    psi_status status = PSI_OK;
    const size_t n = json_array_size(names), n_states = model->n_states,
                 n_choices = model->n_choices;
    double *state = NULL, *choice = NULL;
    psi_model_reward *reward;
    if (n == 0) return PSI_OK;
    TRY(check_names(ctx, path, "reward", names));
    TRY(load_table(ctx, path, "state_rewards", PSI_FLOAT64, n, n_states, &state));
    TRY(load_table(ctx, path, "choice_rewards", PSI_FLOAT64, n, n_choices, &choice));
    for (size_t r = 0; r < n; r++) {
        const char *name = json_string_value(json_array_get(names, r));
        TRY(psi_model_add_reward(ctx, model, name, true, true, &reward));
        memcpy(reward->state, state + r * n_states, n_states * sizeof *state);
        memcpy(reward->choice, choice + r * n_choices, n_choices * sizeof *choice);
    }
done:
    psi_array_free(ctx, choice);
    psi_array_free(ctx, state);
    return status;
}

static psi_status load_actions(psi_ctx *ctx, const char *path, const json_t *names,
                               psi_model *model)
{
    psi_status status = PSI_OK;
    const json_t *actions = json_object_get(names, "actions");
    const json_int_t n = json_is_array(actions)
                             ? (json_int_t)json_array_size(actions)
                             : json_integer_value(json_object_get(names, "n_actions"));
    if (n < 0 || n > INT32_MAX)
        TRY(FAIL(ctx, PSI_ELIMIT, "%s: %lld is no number of actions", path, (long long)n));
    model->n_actions = (size_t)n;
    if (!json_is_array(actions)) return PSI_OK;
    TRY(base_alloc_zero(ctx, model->n_actions, sizeof(char *), &model->action_names));
    for (size_t a = 0; a < model->n_actions; a++) {
        const char *name = json_string_value(json_array_get(actions, a));
        TRY(base_copy_text(ctx, name ? name : "", &model->action_names[a]));
    }
done:
    return status;
}

psi_status cli_model_npz_read(psi_ctx *ctx, const char *path, psi_model **out)
{
    psi_status status = PSI_OK;
    psi_model *model = NULL;
    json_t *names = NULL;
    size_t n_states = 0, n_choices = 0, n_transitions = 0;
    *out = NULL;
    TRY(load_names(ctx, path, &names));
    TRY(array_length(ctx, path, "choices", PSI_INT64, &n_states));
    TRY(array_length(ctx, path, "offsets", PSI_INT64, &n_choices));
    TRY(array_length(ctx, path, "next", PSI_INT32, &n_transitions));
    if (n_states == 0 || n_choices == 0)
        TRY(FAIL(ctx, PSI_EFORMAT, "%s: choices and offsets hold at least a 0", path));
    n_states--;
    n_choices--;
    TRY(psi_model_new(ctx, n_states, n_choices, n_transitions, &model));
    TRY(load_column(ctx, path, "choices", PSI_INT64, n_states + 1, model->choices));
    TRY(load_column(ctx, path, "offsets", PSI_INT64, n_choices + 1, model->offsets));
    TRY(load_column(ctx, path, "next", PSI_INT32, n_transitions, model->next));
    TRY(load_column(ctx, path, "probability", PSI_FLOAT64, n_transitions, model->probability));
    TRY(load_column(ctx, path, "action", PSI_INT32, n_choices, model->action));
    TRY(load_column(ctx, path, "initial", PSI_UINT8, n_states, model->initial));
    model->chain = json_is_true(json_object_get(names, "chain"));
    TRY(load_actions(ctx, path, names, model));
    TRY(load_labels(ctx, path, json_object_get(names, "labels"), model));
    TRY(load_rewards(ctx, path, json_object_get(names, "rewards"), model));
    TRY(psi_model_check(ctx, model));
    *out = model;
    model = NULL;
done:
    json_decref(names);
    psi_model_free(ctx, model);
    return status;
}
