// Models with a row for every pair (s, a), and models with as many choices as a state has: one as
// the other.
#include "mdp/model_tables.h"

#include "base/checked.h"
#include "base/context.h"
#include "mdp/sparse_model.h"

#include <string.h>

psi_status psi_model_from_mdp(psi_ctx *ctx, const psi_mdp *mdp, psi_model **out)
{
    *out = NULL;
    if (FREED(ctx, mdp)) return PSI_EUSAGE;
    psi_status status = PSI_OK;
    const size_t n_rows = mdp->n_states * mdp->n_actions;
    psi_model *model = NULL;
    psi_model_reward *reward;
    uint8_t *terminal;
    size_t n_choices = 0;
    TRY(psi_mdp_check(ctx, mdp, false));
    for (size_t row = 0; row < n_rows; row++)
        n_choices += mdp->offsets[row] < mdp->offsets[row + 1];
    TRY(psi_model_new(ctx, mdp->n_states, n_choices, mdp->offsets[n_rows], &model));
    model->n_actions = mdp->n_actions;
    TRY(mdp_model_add_reward(ctx, model, "reward", 6, false, true, &reward));
    TRY(mdp_model_add_label(ctx, model, "terminal", 8, &terminal));
    memcpy(model->next, mdp->next, model->n_transitions * sizeof *model->next);
    memcpy(model->probability, mdp->probability, model->n_transitions * sizeof *model->probability);
    uint64_t c = 0;
    model->choices[0] = model->offsets[0] = 0;
    for (size_t s = 0; s < mdp->n_states; s++) {
        terminal[s] = mdp->terminal[s] != 0;
        for (size_t a = 0; a < mdp->n_actions; a++) {
            const size_t row = s * mdp->n_actions + a;
            if (mdp->offsets[row] == mdp->offsets[row + 1]) continue;
            model->action[c] = (int32_t)a;
            reward->choice[c] = mdp->reward[row];
            model->offsets[++c] = mdp->offsets[row + 1];
        }
        model->choices[s + 1] = c;
    }
    *out = model;
    model = NULL;
done:
    psi_model_free(ctx, model);
    return status;
}

// ---- and back -----------------------------------------------------------------------------------

typedef struct table {
    const psi_model *model;
    const psi_model_reward *reward; // NULL: zeros
    size_t n_states, n_actions, n_entries;
    uint64_t *row; // (n_entries) with next and probability: as psi_mdp_from_entries has them
    int32_t *next;
    double *probability;
    double *total;     // (S, A)
    uint8_t *terminal; // (S)
    uint8_t *has;      // (A) of the state that is filled in
} table;

static void add_entry(table *t, uint64_t row, int32_t next, double probability)
{
    t->row[t->n_entries] = row;
    t->next[t->n_entries] = next;
    t->probability[t->n_entries++] = probability;
}

static double reward_of(const double *reward, size_t at)
{
    return reward ? reward[at] : 0.0;
}

// Marks the actions that a state has; PSI_EUNSUPPORTED for what no table can say.
static psi_status mark_actions(psi_ctx *ctx, table *t, size_t s)
{
    const psi_model *model = t->model;
    memset(t->has, 0, t->n_actions);
    t->terminal[s] = model->choices[s] == model->choices[s + 1];
    if (t->terminal[s] && t->reward && reward_of(t->reward->state, s) != 0.0) {
        return FAIL(ctx, PSI_EUNSUPPORTED,
                    "state %zu has a reward and no choice; a table has rewards of choices only", s);
    }
    for (uint64_t c = model->choices[s]; c < model->choices[s + 1]; c++) {
        if (t->has[model->action[c]]++) {
            return FAIL(ctx, PSI_EUNSUPPORTED,
                        "state %zu has two choices with action %d; a table has one", s,
                        model->action[c]);
        }
    }
    return PSI_OK;
}

// Pairs of states that are not terminal and actions that they do not have.
static psi_status count_missing(psi_ctx *ctx, table *t, size_t *missing)
{
    const psi_model *model = t->model;
    *missing = 0;
    for (size_t s = 0; s < model->n_states; s++) {
        const psi_status status = mark_actions(ctx, t, s);
        if (status != PSI_OK) return status;
        if (!t->terminal[s])
            *missing += t->n_actions - (size_t)(model->choices[s + 1] - model->choices[s]);
    }
    return PSI_OK;
}

static void fill_choice(table *t, size_t s, uint64_t c)
{
    const psi_model *model = t->model;
    const size_t row = s * t->n_actions + (size_t)model->action[c];
    double sum = 0.0;
    if (t->reward) t->total[row] = reward_of(t->reward->state, s) + reward_of(t->reward->choice, c);
    for (uint64_t i = model->offsets[c]; i < model->offsets[c + 1]; i++)
        sum += model->probability[i];
    for (uint64_t i = model->offsets[c]; i < model->offsets[c + 1]; i++)
        add_entry(t, row, model->next[i], model->probability[i] / sum);
}

static psi_status fill_state(psi_ctx *ctx, table *t, size_t s)
{
    psi_status status = PSI_OK;
    const psi_model *model = t->model;
    TRY(mark_actions(ctx, t, s));
    for (uint64_t c = model->choices[s]; c < model->choices[s + 1]; c++) fill_choice(t, s, c);
    // what the state does not have leads to the extra state, where there is one
    for (size_t a = 0; a < t->n_actions && t->n_states > model->n_states && !t->terminal[s]; a++)
        if (!t->has[a]) add_entry(t, s * t->n_actions + a, (int32_t)model->n_states, 1.0);
done:
    return status;
}

psi_status mdp_table_of(psi_ctx *ctx, const psi_model *model, const psi_model_reward *reward,
                        bool complete, psi_mdp **out)
{
    psi_status status = PSI_OK;
    table t = {.model = model, .reward = reward, .n_states = model->n_states};
    size_t missing, pairs, entries;
    *out = NULL;
    t.n_actions = base_max(model->n_actions, 1);
    if (!base_mul(model->n_states + 1, t.n_actions, &pairs) ||
        !base_add(model->n_transitions, pairs, &entries)) {
        return FAIL(ctx, PSI_ELIMIT, "a table of %zu states and %zu actions is too large",
                    model->n_states, t.n_actions);
    }
    const double given =
        (double)model->n_states * sizeof *model->choices +
        (double)model->n_choices * (sizeof *model->offsets + sizeof *model->action) +
        (double)model->n_transitions * (sizeof *model->next + sizeof *model->probability);
    if ((double)pairs * (2.0 * sizeof(double) + 1.0) > given * PSI_BYTES_PER_BYTE) {
        return FAIL(ctx, PSI_ELIMIT,
                    "a table of %zu actions in each of %zu states is too large for %zu choices; "
                    "number the actions that occur from 0 on",
                    t.n_actions, model->n_states, model->n_choices);
    }
    TRY(base_alloc(ctx, t.n_actions, 1, &t.has));
    TRY(base_alloc_zero(ctx, model->n_states + 1, 1, &t.terminal));
    TRY(count_missing(ctx, &t, &missing));
    t.n_states += complete && missing > 0;
    entries = model->n_transitions + (complete ? missing : 0);
    TRY(base_alloc(ctx, entries, sizeof *t.row, &t.row));
    TRY(base_alloc(ctx, entries, sizeof *t.next, &t.next));
    TRY(base_alloc(ctx, entries, sizeof *t.probability, &t.probability));
    TRY(base_alloc_zero(ctx, pairs, sizeof *t.total, &t.total));
    for (size_t s = 0; s < model->n_states; s++) TRY(fill_state(ctx, &t, s));
    t.terminal[model->n_states] = 1;
    TRY(psi_mdp_from_entries(ctx, t.n_states, t.n_actions, t.n_entries, t.row, t.next,
                             t.probability, t.total, t.terminal, out));
done:
    base_free(ctx, t.has);
    base_free(ctx, t.terminal);
    base_free(ctx, t.total);
    base_free(ctx, t.probability);
    base_free(ctx, t.next);
    base_free(ctx, t.row);
    return status;
}

psi_status psi_mdp_from_model(psi_ctx *ctx, const psi_model *model, const char *reward,
                              psi_mdp **out)
{
    psi_status status = PSI_OK;
    const psi_model_reward *chosen = NULL;
    *out = NULL;
    if (FREED(ctx, model)) return PSI_EUSAGE;
    TRY(psi_model_check(ctx, model));
    for (size_t r = 0; r < model->n_rewards && !chosen; r++)
        if (!reward || strcmp(model->rewards[r].name, reward) == 0) chosen = &model->rewards[r];
    if (reward && !chosen) TRY(FAIL(ctx, PSI_EUSAGE, "the model has no reward '%s'", reward));
    TRY(mdp_table_of(ctx, model, chosen, false, out));
done:
    return status;
}
