// The .npz of a model, written: the arrays that model_npz.c reads.
#include "cli/model_npz.h"

#include "base/context.h"
#include "base/json.h"

#include <stdlib.h>
#include <string.h>

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

psi_status cli_model_npz_write(psi_ctx *ctx, const psi_model *model, const char *path)
{
    psi_status status = PSI_OK;
    const size_t n_states = model->n_states, n_choices = model->n_choices;
    const size_t n_labels = model->n_labels, n_rewards = model->n_rewards;
    uint8_t *label = NULL;
    double *state = NULL, *choice = NULL;
    json_t *names = names_of(model);
    char *text = NULL;
    TRY(base_json_made(ctx, names));
    text = json_dumps(names, JSON_COMPACT);
    if (!text) TRY(FAIL(ctx, PSI_ENOMEM, "no memory for names"));
    TRY(base_alloc(ctx, n_labels * n_states, 1, &label));
    TRY(base_alloc_zero(ctx, n_rewards * n_states, sizeof *state, &state));
    TRY(base_alloc_zero(ctx, n_rewards * n_choices, sizeof *choice, &choice));
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
    TRY(psi_arrays_save(ctx, path, arrays, sizeof arrays / sizeof arrays[0]));
done:
    base_free(ctx, choice);
    base_free(ctx, state);
    base_free(ctx, label);
    free(text);
    json_decref(names);
    return status;
}
