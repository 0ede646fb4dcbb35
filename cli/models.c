// Models from everywhere. The .npz is the model's own arrays: choices, offsets, next, probability,
// action, initial, labels (L, S), state_rewards (R, S), choice_rewards (R, C), and names, a JSON
// text as bytes. It needs two rooms, mdp and data, and so it is here.
#include "cli/models.h"

#include <limits.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool ends_with(const char *path, const char *ending)
{
    const size_t length = strlen(path), tail = strlen(ending);
    return length > tail && strcmp(path + length - tail, ending) == 0;
}

// ---- .npz ---------------------------------------------------------------------------------------

static psi_status load_array(cli_call *cli, const char *path, const char *name, psi_dtype dtype,
                             size_t n, void *into)
{
    psi_status status = PSI_OK;
    psi_shape shape;
    void *data = NULL;
    TRY(psi_array_load(cli->ctx, path, name, dtype, &shape, &data));
    if (psi_shape_size(&shape) != n) {
        TRY(FAIL(cli->ctx, PSI_ESHAPE, "%s: %s has %zu elements, expected %zu", path, name,
                 psi_shape_size(&shape), n));
    }
    if (n > 0) memcpy(into, data, n * psi_dtype_size(dtype));
done:
    psi_array_free(cli->ctx, data);
    return status;
}

static psi_status array_length(cli_call *cli, const char *path, const char *name, psi_dtype dtype,
                               size_t *out)
{
    psi_shape shape;
    void *data = NULL;
    const psi_status status = psi_array_load(cli->ctx, path, name, dtype, &shape, &data);
    if (status == PSI_OK) *out = psi_shape_size(&shape);
    psi_array_free(cli->ctx, data);
    return status;
}

static psi_status load_names(cli_call *cli, const char *path, json_t **out)
{
    psi_status status = PSI_OK;
    psi_shape shape;
    void *data = NULL;
    TRY(psi_array_load(cli->ctx, path, "names", PSI_UINT8, &shape, &data));
    TRY(base_json_parse(cli->ctx, path, data, psi_shape_size(&shape), out));
done:
    psi_array_free(cli->ctx, data);
    return status;
}

static psi_status load_annotations(cli_call *cli, const char *path, const json_t *names,
                                   psi_model *model)
{
    psi_status status = PSI_OK;
    const json_t *labels = json_object_get(names, "labels");
    const json_t *rewards = json_object_get(names, "rewards");
    const size_t n_labels = json_array_size(labels), n_rewards = json_array_size(rewards);
    const size_t n_states = model->n_states, n_choices = model->n_choices;
    uint8_t *label = NULL;
    double *state = NULL, *choice = NULL;
    TRY(base_alloc(cli->ctx, n_labels * n_states, 1, &label));
    TRY(base_alloc(cli->ctx, n_rewards * n_states, sizeof *state, &state));
    TRY(base_alloc(cli->ctx, n_rewards * n_choices, sizeof *choice, &choice));
    if (n_labels > 0) TRY(load_array(cli, path, "labels", PSI_UINT8, n_labels * n_states, label));
    if (n_rewards > 0) {
        TRY(load_array(cli, path, "state_rewards", PSI_FLOAT64, n_rewards * n_states, state));
        TRY(load_array(cli, path, "choice_rewards", PSI_FLOAT64, n_rewards * n_choices, choice));
    }
    for (size_t l = 0; l < n_labels; l++) {
        const char *name = json_string_value(json_array_get(labels, l));
        uint8_t *holds;
        if (!name) TRY(FAIL(cli->ctx, PSI_EFORMAT, "%s: a label has no name", path));
        TRY(psi_model_add_label(cli->ctx, model, name, &holds));
        memcpy(holds, label + l * n_states, n_states);
    }
    for (size_t r = 0; r < n_rewards; r++) {
        const char *name = json_string_value(json_array_get(rewards, r));
        psi_model_reward *reward;
        if (!name) TRY(FAIL(cli->ctx, PSI_EFORMAT, "%s: a reward has no name", path));
        TRY(psi_model_add_reward(cli->ctx, model, name, true, true, &reward));
        memcpy(reward->state, state + r * n_states, n_states * sizeof *state);
        memcpy(reward->choice, choice + r * n_choices, n_choices * sizeof *choice);
    }
done:
    base_free(cli->ctx, choice);
    base_free(cli->ctx, state);
    base_free(cli->ctx, label);
    return status;
}

static psi_status load_npz(cli_call *cli, const char *path, psi_model **out)
{
    psi_status status = PSI_OK;
    psi_model *model = NULL;
    json_t *names = NULL;
    size_t n_states = 0, n_choices = 0, n_transitions = 0;
    TRY(load_names(cli, path, &names));
    TRY(array_length(cli, path, "choices", PSI_INT64, &n_states));
    TRY(array_length(cli, path, "offsets", PSI_INT64, &n_choices));
    TRY(array_length(cli, path, "next", PSI_INT32, &n_transitions));
    if (n_states == 0 || n_choices == 0)
        TRY(FAIL(cli->ctx, PSI_EFORMAT, "%s: choices and offsets hold at least a 0", path));
    n_states--;
    n_choices--;
    TRY(psi_model_new(cli->ctx, n_states, n_choices, n_transitions, &model));
    TRY(load_array(cli, path, "choices", PSI_INT64, n_states + 1, model->choices));
    TRY(load_array(cli, path, "offsets", PSI_INT64, n_choices + 1, model->offsets));
    TRY(load_array(cli, path, "next", PSI_INT32, n_transitions, model->next));
    TRY(load_array(cli, path, "probability", PSI_FLOAT64, n_transitions, model->probability));
    TRY(load_array(cli, path, "action", PSI_INT32, n_choices, model->action));
    TRY(load_array(cli, path, "initial", PSI_UINT8, n_states, model->initial));
    model->chain = json_is_true(json_object_get(names, "chain"));
    const json_t *actions = json_object_get(names, "actions");
    model->n_actions = (size_t)json_integer_value(json_object_get(names, "n_actions"));
    if (json_is_array(actions)) {
        model->n_actions = json_array_size(actions);
        TRY(base_alloc_zero(cli->ctx, model->n_actions, sizeof(char *), &model->action_names));
        for (size_t a = 0; a < model->n_actions; a++) {
            const char *name = json_string_value(json_array_get(actions, a));
            TRY(base_copy_text(cli->ctx, name ? name : "", &model->action_names[a]));
        }
    }
    TRY(load_annotations(cli, path, names, model));
    TRY(psi_model_check(cli->ctx, model));
    *out = model;
    model = NULL;
done:
    json_decref(names);
    psi_model_free(cli->ctx, model);
    return status;
}

static json_t *names_of(const psi_model *model)
{
    json_t *labels = json_array(), *rewards = json_array(), *actions = json_array();
    for (size_t l = 0; l < model->n_labels; l++)
        json_array_append_new(labels, json_string(model->labels[l].name));
    for (size_t r = 0; r < model->n_rewards; r++)
        json_array_append_new(rewards, json_string(model->rewards[r].name));
    for (size_t a = 0; model->action_names && a < model->n_actions; a++)
        json_array_append_new(actions, json_string(model->action_names[a]));
    if (!model->action_names) {
        json_decref(actions);
        actions = json_null();
    }
    return json_pack("{s:b, s:I, s:o, s:o, s:o}", "chain", model->chain, "n_actions",
                     (json_int_t)model->n_actions, "actions", actions, "labels", labels, "rewards",
                     rewards);
}

static psi_status save_npz(cli_call *cli, const psi_model *model, const char *path)
{
    psi_status status = PSI_OK;
    const size_t n_states = model->n_states, n_choices = model->n_choices;
    const size_t n_labels = model->n_labels, n_rewards = model->n_rewards;
    uint8_t *label = NULL;
    double *state = NULL, *choice = NULL;
    json_t *names = names_of(model);
    char *text = NULL;
    TRY(base_json_made(cli->ctx, names));
    text = json_dumps(names, JSON_COMPACT);
    if (!text) TRY(FAIL(cli->ctx, PSI_ENOMEM, "no memory for names"));
    TRY(base_alloc(cli->ctx, n_labels * n_states, 1, &label));
    TRY(base_alloc_zero(cli->ctx, n_rewards * n_states, sizeof *state, &state));
    TRY(base_alloc_zero(cli->ctx, n_rewards * n_choices, sizeof *choice, &choice));
    for (size_t l = 0; l < n_labels; l++)
        memcpy(label + l * n_states, model->labels[l].holds, n_states);
    for (size_t r = 0; r < n_rewards; r++) {
        const psi_model_reward *reward = &model->rewards[r];
        if (reward->state) memcpy(state + r * n_states, reward->state, n_states * sizeof *state);
        if (reward->choice)
            memcpy(choice + r * n_choices, reward->choice, n_choices * sizeof *choice);
    }
    const psi_array arrays[] = {
        {"choices", PSI_INT64, {1, {n_states + 1}}, model->choices},
        {"offsets", PSI_INT64, {1, {n_choices + 1}}, model->offsets},
        {"next", PSI_INT32, {1, {model->n_transitions}}, model->next},
        {"probability", PSI_FLOAT64, {1, {model->n_transitions}}, model->probability},
        {"action", PSI_INT32, {1, {n_choices}}, model->action},
        {"initial", PSI_UINT8, {1, {n_states}}, model->initial},
        {"labels", PSI_UINT8, {2, {n_labels, n_states}}, label},
        {"state_rewards", PSI_FLOAT64, {2, {n_rewards, n_states}}, state},
        {"choice_rewards", PSI_FLOAT64, {2, {n_rewards, n_choices}}, choice},
        {"names", PSI_UINT8, {1, {strlen(text)}}, text},
    };
    TRY(psi_arrays_save(cli->ctx, path, arrays, CLI_COUNT(arrays)));
done:
    base_free(cli->ctx, choice);
    base_free(cli->ctx, state);
    base_free(cli->ctx, label);
    free(text);
    json_decref(names);
    return status;
}

// ---- whatever it is -----------------------------------------------------------------------------

psi_status cli_model_read(cli_call *cli, const char *path, psi_model **out)
{
    struct stat info;
    *out = NULL;
    // what reading gives back is used again for the work on the model, not fetched page by page
    (void)mallopt(M_MMAP_MAX, 0);
    (void)mallopt(M_TRIM_THRESHOLD, INT_MAX);
    if (ends_with(path, ".npz")) return load_npz(cli, path, out);
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode))
        return psi_model_read(cli->ctx, path, out);
    psi_run *run = NULL;
    psi_status status = psi_run_load(cli->ctx, path, &run);
    if (status == PSI_OK) status = psi_model_from_mdp(cli->ctx, run->model, out);
    psi_run_free(cli->ctx, run);
    return status;
}

psi_status cli_model_write(cli_call *cli, const psi_model *model, const char *path)
{
    return ends_with(path, ".npz") ? save_npz(cli, model, path)
                                   : psi_model_write(cli->ctx, model, path);
}
