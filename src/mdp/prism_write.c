// PRISM's tables, one file each. A terminal state gets a choice of its own, to stay there, as PRISM
// does with deadlocks. Rewards beyond the first have no place in these files.
#include "mdp/model_formats.h"

#include "base/checked.h"
#include "mdp/text_out.h"

static bool is_terminal(const psi_model *model, size_t s)
{
    return model->choices[s] == model->choices[s + 1];
}

static void put_row(mdp_text_out *out, const psi_model *model, size_t s, uint64_t c, uint64_t t,
                    double number)
{
    mdp_put_count(out, s);
    mdp_put(out, " ");
    if (!model->chain) {
        mdp_put_count(out, c);
        mdp_put(out, " ");
    }
    mdp_put_count(out, t);
    mdp_put(out, " ");
    mdp_put_number(out, number);
}

// Transitions, or what they give: the reward of a choice is that of each of its transitions.
static void put_transitions(mdp_text_out *out, const psi_model *model, const double *reward)
{
    size_t n_terminal = 0;
    for (size_t s = 0; s < model->n_states; s++) n_terminal += is_terminal(model, s);
    const size_t added = reward ? 0 : n_terminal;
    mdp_put(out, "%zu ", model->n_states);
    if (!model->chain) mdp_put(out, "%zu ", model->n_choices + n_terminal);
    mdp_put(out, "%zu\n", model->n_transitions + added);
    for (size_t s = 0; s < model->n_states; s++) {
        for (uint64_t c = model->choices[s]; c < model->choices[s + 1]; c++) {
            for (uint64_t i = model->offsets[c]; i < model->offsets[c + 1]; i++) {
                put_row(out, model, s, c - model->choices[s], (uint64_t)model->next[i],
                        reward ? reward[c] : model->probability[i]);
                if (!reward && !model->chain && model->action_names)
                    mdp_put(out, " %.400s", model->action_names[model->action[c]]);
                mdp_put(out, "\n");
            }
        }
        if (!reward && is_terminal(model, s)) {
            put_row(out, model, s, 0, s, 1.0);
            mdp_put(out, "\n");
        }
    }
}

static void put_labels(mdp_text_out *out, const psi_model *model)
{
    mdp_put(out, "0=\"init\"");
    for (size_t l = 0; l < model->n_labels; l++)
        mdp_put(out, " %zu=\"%.400s\"", l + 1, model->labels[l].name);
    mdp_put(out, "\n");
    for (size_t s = 0; s < model->n_states; s++) {
        bool any = model->initial[s];
        if (any) mdp_put(out, "%zu: 0", s);
        for (size_t l = 0; l < model->n_labels; l++) {
            if (!model->labels[l].holds[s]) continue;
            if (!any) mdp_put(out, "%zu:", s);
            mdp_put(out, " %zu", l + 1);
            any = true;
        }
        if (any) mdp_put(out, "\n");
    }
}

static void put_state_rewards(mdp_text_out *out, const psi_model *model)
{
    const double *reward = model->rewards[0].state;
    size_t n = 0;
    for (size_t s = 0; s < model->n_states; s++) n += reward[s] != 0.0;
    mdp_put(out, "%zu %zu\n", model->n_states, n);
    for (size_t s = 0; s < model->n_states; s++) {
        if (reward[s] == 0.0) continue;
        mdp_put(out, "%zu ", s);
        mdp_put_number(out, reward[s]);
        mdp_put(out, "\n");
    }
}

psi_status mdp_write_prism(psi_ctx *ctx, const psi_model *model, mdp_prism_part part,
                           base_output *output)
{
    psi_status status = PSI_OK;
    mdp_text_out *out = NULL;
    TRY(mdp_text_out_new(ctx, output, &out));
    if (part == MDP_SREW || part == MDP_TREW)
        mdp_put(out, "# Reward structure \"%.400s\"\n", model->rewards[0].name);
    switch (part) {
    case MDP_TRA: put_transitions(out, model, NULL); break;
    case MDP_LAB: put_labels(out, model); break;
    case MDP_SREW: put_state_rewards(out, model); break;
    case MDP_TREW: put_transitions(out, model, model->rewards[0].choice); break;
    }
    TRY(mdp_put_end(out));
done:
    base_free(ctx, out);
    return status;
}
