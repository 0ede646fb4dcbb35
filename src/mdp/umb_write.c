// Unified Markov Binary, as a tar without compression. Like Storm's DRN it gets a choice for every
// terminal state: to stay there.
#include "mdp/model_formats.h"

#include "base/checked.h"
#include "base/context.h"
#include "base/json.h"
#include "mdp/tar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct umb_out {
    psi_ctx *ctx;
    const psi_model *model;
    base_output *output;
    size_t n_terminal;
} umb_out;

static bool is_terminal(const psi_model *model, size_t s)
{
    return model->choices[s] == model->choices[s + 1];
}

// "r0", "a1": what a name is called in the archive, where only [0-9a-z_-] may stand.
static void id_of(char out[24], char kind, size_t number)
{
    snprintf(out, 24, "%c%zu", kind, number);
}

// ---- the index ----------------------------------------------------------------------------------

static json_t *annotation(const char *name, const char *type, int bits, bool states, bool choices)
{
    json_t *applies = json_array();
    if (states) json_array_append_new(applies, json_string("states"));
    if (choices) json_array_append_new(applies, json_string("choices"));
    return json_pack("{s:s, s:o, s:{s:s, s:i}}", "alias", name, "applies-to", applies, "type",
                     "type", type, "size", bits);
}

static json_t *annotations(const psi_model *model)
{
    json_t *labels = json_object(), *rewards = json_object();
    char id[24];
    for (size_t l = 0; l < model->n_labels; l++) {
        id_of(id, 'l', l);
        json_object_set_new(labels, id, annotation(model->labels[l].name, "bool", 1, true, false));
    }
    for (size_t r = 0; r < model->n_rewards; r++) {
        const psi_model_reward *reward = &model->rewards[r];
        id_of(id, 'r', r);
        json_object_set_new(
            rewards, id,
            annotation(reward->name, "double", 64, reward->state != NULL, reward->choice != NULL));
    }
    return json_pack("{s:o, s:o}", "aps", labels, "rewards", rewards);
}

static psi_status write_index(umb_out *u)
{
    psi_status status = PSI_OK;
    const psi_model *model = u->model;
    size_t n_initial = 0;
    char *text = NULL;
    for (size_t s = 0; s < model->n_states; s++) n_initial += model->initial[s] != 0;
    const bool named = model->action_names != NULL;
    const size_t n_choices = model->n_choices + u->n_terminal;
    const size_t n_branches = model->n_transitions + u->n_terminal;
    json_t *index = json_pack(
        "{s:i, s:i, s:{s:s, s:s}, s:{s:s, s:i, s:I, s:I, s:I, s:I, s:I, s:i, s:i, s:{s:s, s:i}}, "
        "s:o}",
        "format-version", 1, "format-revision", 0, "file-data", "tool", "psifold", "tool-version",
        psi_version(), "transition-system", "time", "discrete", "#players", model->chain ? 0 : 1,
        "#states", (json_int_t)model->n_states, "#initial-states", (json_int_t)n_initial,
        "#choices", (json_int_t)n_choices, "#choice-actions",
        (json_int_t)(named ? model->n_actions : 0), "#branches", (json_int_t)n_branches,
        "#branch-actions", 0, "#observations", 0, "branch-probability-type", "type", "double",
        "size", 64, "annotations", annotations(model));
    TRY(base_json_made(u->ctx, index));
    text = json_dumps(index, JSON_INDENT(2));
    if (!text) TRY(FAIL(u->ctx, PSI_ENOMEM, "no memory for index.json"));
    TRY(mdp_tar_begin(u->ctx, u->output, "index.json", strlen(text)));
    TRY(base_output_write(u->output, text, strlen(text)));
    TRY(mdp_tar_pad(u->ctx, u->output, strlen(text)));
done:
    free(text);
    json_decref(index);
    return status;
}

// ---- arrays -------------------------------------------------------------------------------------

typedef uint64_t word_of(const umb_out *u, size_t i);

// An array of n words of 8 bytes, or of 4 where they are narrow, as a function gives them.
static psi_status write_words(umb_out *u, const char *entry, size_t n, word_of *word, size_t bytes)
{
    enum { WORDS = 4096 };
    psi_status status = PSI_OK;
    char *buffer = NULL;
    TRY(base_alloc(u->ctx, WORDS, bytes, &buffer));
    TRY(mdp_tar_begin(u->ctx, u->output, entry, (uint64_t)n * bytes));
    for (size_t i = 0; i < n;) {
        const size_t part = base_min(n - i, WORDS);
        for (size_t k = 0; k < part; k++) {
            const uint64_t value = word(u, i + k);
            memcpy(buffer + k * bytes, &value, bytes);
        }
        TRY(base_output_write(u->output, buffer, part * bytes));
        i += part;
    }
    TRY(mdp_tar_pad(u->ctx, u->output, (uint64_t)n * bytes));
done:
    base_free(u->ctx, buffer);
    return status;
}

// A terminal state's own choice and transition stand behind all those before it, so that everything
// after it is shifted by one. These lists say what was there before: UINT64_MAX for what is new.
typedef struct spread {
    uint64_t *choices, *offsets; // (S + 1), (C' + 1)
    uint64_t *choice, *branch;   // (C'), (m')
    uint64_t *stays;             // (m') the state that stays, where the branch is new
} spread;

typedef struct writing {
    umb_out base;
    spread to;
    const double *value;   // of the reward that is being written
    const uint8_t *holds;  // of the label
    const uint64_t *order; // (C') or identity
    size_t n;
} writing;

static double value_of(const writing *w, size_t i)
{
    const uint64_t at = w->order ? w->order[i] : i;
    return at == UINT64_MAX ? 0.0 : w->value[at];
}

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static uint64_t choices_word(const umb_out *u, size_t i)
{
    return ((const writing *)u)->to.choices[i];
}

static uint64_t offsets_word(const umb_out *u, size_t i)
{
    return ((const writing *)u)->to.offsets[i];
}

static uint64_t target_word(const umb_out *u, size_t i)
{
    const spread *to = &((const writing *)u)->to;
    const uint64_t branch = to->branch[i];
    return branch == UINT64_MAX ? to->stays[i] : (uint64_t)u->model->next[branch];
}

static uint64_t probability_word(const umb_out *u, size_t i)
{
    const uint64_t branch = ((const writing *)u)->to.branch[i];
    return bits_of(branch == UINT64_MAX ? 1.0 : u->model->probability[branch]);
}

static uint64_t action_word(const umb_out *u, size_t i)
{
    const uint64_t choice = ((const writing *)u)->to.choice[i];
    return choice == UINT64_MAX ? 0 : (uint64_t)u->model->action[choice];
}

static uint64_t value_word(const umb_out *u, size_t i)
{
    return bits_of(value_of((const writing *)u, i));
}

static uint64_t holds_word(const umb_out *u, size_t i)
{
    const writing *w = (const writing *)u;
    uint64_t bits = 0;
    for (size_t k = 0; k < 64 && 64 * i + k < w->n; k++)
        bits |= (uint64_t)(w->holds[64 * i + k] != 0) << k;
    return bits;
}

static psi_status spread_out(writing *w)
{
    psi_status status = PSI_OK;
    const psi_model *model = w->base.model;
    psi_ctx *ctx = w->base.ctx;
    spread *to = &w->to;
    const size_t n_choices = model->n_choices + w->base.n_terminal;
    const size_t n_branches = model->n_transitions + w->base.n_terminal;
    TRY(base_alloc(ctx, model->n_states + 1, sizeof *to->choices, &to->choices));
    TRY(base_alloc(ctx, n_choices + 1, sizeof *to->offsets, &to->offsets));
    TRY(base_alloc(ctx, n_choices, sizeof *to->choice, &to->choice));
    TRY(base_alloc(ctx, n_branches, sizeof *to->branch, &to->branch));
    TRY(base_alloc(ctx, n_branches, sizeof *to->stays, &to->stays));
    size_t c = 0, b = 0;
    to->choices[0] = to->offsets[0] = 0;
    for (size_t s = 0; s < model->n_states; s++) {
        for (uint64_t own = model->choices[s]; own < model->choices[s + 1]; own++) {
            for (uint64_t i = model->offsets[own]; i < model->offsets[own + 1]; i++)
                to->branch[b++] = i;
            to->choice[c++] = own;
            to->offsets[c] = b;
        }
        if (is_terminal(model, s)) {
            to->stays[b] = s;
            to->branch[b++] = UINT64_MAX;
            to->choice[c++] = UINT64_MAX;
            to->offsets[c] = b;
        }
        to->choices[s + 1] = c;
    }
done:
    return status;
}

static psi_status write_names(writing *w)
{
    psi_status status = PSI_OK;
    const psi_model *model = w->base.model;
    umb_out *u = &w->base;
    uint64_t *offset = NULL;
    const size_t n_choices = model->n_choices + u->n_terminal;
    if (!model->action_names) return PSI_OK;
    TRY(base_alloc(u->ctx, model->n_actions + 1, sizeof *offset, &offset));
    offset[0] = 0;
    for (size_t a = 0; a < model->n_actions; a++)
        offset[a + 1] = offset[a] + strlen(model->action_names[a]);
    TRY(write_words(u, "actions/choices/values.bin", n_choices, action_word, 4));
    const uint64_t size = (model->n_actions + 1) * sizeof *offset, text = offset[model->n_actions];
    TRY(mdp_tar_begin(u->ctx, u->output, "actions/choices/string-mapping.bin", size));
    TRY(base_output_write(u->output, offset, size));
    TRY(mdp_tar_pad(u->ctx, u->output, size));
    TRY(mdp_tar_begin(u->ctx, u->output, "actions/choices/strings.bin", text));
    for (size_t a = 0; a < model->n_actions; a++)
        TRY(base_output_write(u->output, model->action_names[a], strlen(model->action_names[a])));
    TRY(mdp_tar_pad(u->ctx, u->output, text));
done:
    base_free(u->ctx, offset);
    return status;
}

static psi_status write_annotations(writing *w)
{
    psi_status status = PSI_OK;
    const psi_model *model = w->base.model;
    umb_out *u = &w->base;
    char id[24], entry[80];
    w->n = model->n_states;
    for (size_t l = 0; l < model->n_labels; l++) {
        id_of(id, 'l', l);
        snprintf(entry, sizeof entry, "annotations/aps/%s/states/values.bin", id);
        w->holds = model->labels[l].holds;
        TRY(write_words(u, entry, (model->n_states + 63) / 64, holds_word, 8));
    }
    for (size_t r = 0; r < model->n_rewards; r++) {
        const psi_model_reward *reward = &model->rewards[r];
        id_of(id, 'r', r);
        if (reward->state) {
            snprintf(entry, sizeof entry, "annotations/rewards/%s/states/values.bin", id);
            w->value = reward->state;
            w->order = NULL;
            TRY(write_words(u, entry, model->n_states, value_word, 8));
        }
        if (reward->choice) {
            snprintf(entry, sizeof entry, "annotations/rewards/%s/choices/values.bin", id);
            w->value = reward->choice;
            w->order = w->to.choice;
            TRY(write_words(u, entry, model->n_choices + u->n_terminal, value_word, 8));
        }
    }
done:
    return status;
}

psi_status mdp_write_umb(psi_ctx *ctx, const psi_model *model, base_output *output)
{
    psi_status status = PSI_OK;
    writing w = {.base = {.ctx = ctx, .model = model, .output = output}};
    umb_out *u = &w.base;
    for (size_t s = 0; s < model->n_states; s++) u->n_terminal += is_terminal(model, s);
    const size_t n_choices = model->n_choices + u->n_terminal;
    const size_t n_branches = model->n_transitions + u->n_terminal;
    TRY(spread_out(&w));
    TRY(write_index(u));
    TRY(write_words(u, "state-to-choices.bin", model->n_states + 1, choices_word, 8));
    w.holds = model->initial;
    w.n = model->n_states;
    TRY(write_words(u, "state-is-initial.bin", (model->n_states + 63) / 64, holds_word, 8));
    TRY(write_words(u, "choice-to-branches.bin", n_choices + 1, offsets_word, 8));
    TRY(write_words(u, "branch-to-target.bin", n_branches, target_word, 8));
    TRY(write_words(u, "branch-to-probability.bin", n_branches, probability_word, 8));
    TRY(write_names(&w));
    TRY(write_annotations(&w));
    TRY(mdp_tar_end(ctx, output));
done:
    base_free(ctx, w.to.stays);
    base_free(ctx, w.to.branch);
    base_free(ctx, w.to.choice);
    base_free(ctx, w.to.offsets);
    base_free(ctx, w.to.choices);
    return status;
}
