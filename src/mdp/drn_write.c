// Storm's DRN. Storm has no terminal states: one is written as a state that stays where it is.
#include "mdp/model_formats.h"

#include "base/checked.h"
#include "mdp/scan.h"
#include "mdp/text_out.h"

#include <string.h>

static void put_rewards(mdp_text_out *out, const psi_model *model, bool of_state, uint64_t at)
{
    if (model->n_rewards == 0) return;
    for (size_t r = 0; r < model->n_rewards; r++) {
        const double *value = of_state ? model->rewards[r].state : model->rewards[r].choice;
        mdp_put(out, r == 0 ? " [" : ", ");
        mdp_put_number(out, value && at != UINT64_MAX ? value[at] : 0.0);
    }
    mdp_put(out, "]");
}

// Names are words there: what is between blanks, or between quotes.
static void put_name(mdp_text_out *out, const char *name)
{
    const bool quoted = name[0] == '\0' || strpbrk(name, " \t") != NULL;
    mdp_put(out, quoted ? "\"%.400s\"" : "%.400s", name);
}

static void put_choice(mdp_text_out *out, const psi_model *model, uint64_t c)
{
    mdp_put(out, "\taction ");
    if (model->action_names) {
        put_name(out, model->action_names[model->action[c]]);
    } else {
        mdp_put_count(out, (uint64_t)model->action[c]);
    }
    put_rewards(out, model, false, c);
    mdp_put(out, "\n");
    for (uint64_t i = model->offsets[c]; i < model->offsets[c + 1]; i++) {
        mdp_put(out, "\t\t");
        mdp_put_count(out, (uint64_t)model->next[i]);
        mdp_put(out, " : ");
        mdp_put_number(out, model->probability[i]);
        mdp_put(out, "\n");
    }
}

psi_status mdp_write_drn(psi_ctx *ctx, const psi_model *model, base_output *output)
{
    psi_status status = PSI_OK;
    mdp_text_out *out = NULL;
    TRY(mdp_text_out_new(ctx, output, &out));
    mdp_put(out, "// written by psifold %s\n@type: %s\n@value_type: double\n@parameters\n\n",
            psi_version(), model->chain ? "DTMC" : "MDP");
    mdp_put(out, "@reward_models\n");
    for (size_t r = 0; r < model->n_rewards; r++) {
        if (r > 0) mdp_put(out, " ");
        if (model->n_rewards > 1 || model->rewards[r].name[0] != '\0')
            put_name(out, model->rewards[r].name);
    }
    size_t n_terminal = 0;
    for (size_t s = 0; s < model->n_states; s++)
        n_terminal += model->choices[s] == model->choices[s + 1];
    mdp_put(out, "\n@nr_states\n%zu\n@nr_choices\n%zu\n@model\n", model->n_states,
            model->n_choices + n_terminal);
    for (size_t s = 0; s < model->n_states; s++) {
        mdp_put(out, "state %zu", s);
        put_rewards(out, model, true, s);
        if (model->initial[s]) mdp_put(out, " init");
        for (size_t l = 0; l < model->n_labels; l++) {
            if (!model->labels[l].holds[s]) continue;
            mdp_put(out, " ");
            put_name(out, model->labels[l].name);
        }
        mdp_put(out, "\n");
        for (uint64_t c = model->choices[s]; c < model->choices[s + 1]; c++)
            put_choice(out, model, c);
        if (model->choices[s] == model->choices[s + 1]) {
            mdp_put(out, "\taction ");
            put_name(out, model->action_names && model->n_actions ? model->action_names[0] : "0");
            put_rewards(out, model, false, UINT64_MAX);
            mdp_put(out, "\n\t\t%zu : 1\n", s);
        }
        if (s % 4096 == 0) TRY(base_cancelled(ctx));
    }
    TRY(mdp_put_end(out));
done:
    base_free(ctx, out);
    return status;
}
