// Models with choices, labels and named rewards: memory, the check, and how an MDP becomes one.
#include "mdp/sparse_model.h"

#include "base/checked.h"
#include "base/context.h"
#include "base/threads.h"

#include <math.h>
#include <string.h>

// Files with six digits are common: half of the last one is lost with every probability, and two
// are allowed for at least.
static const double LOST_DIGITS = 5e-7;

psi_status mdp_copy_name(psi_ctx *ctx, const char *name, size_t length, char **out)
{
    const psi_status status = base_alloc(ctx, length + 1, 1, out);
    if (status != PSI_OK) return status;
    memcpy(*out, name, length);
    (*out)[length] = '\0';
    return PSI_OK;
}

psi_status psi_model_new(psi_ctx *ctx, size_t n_states, size_t n_choices, size_t n_transitions,
                         psi_model **out)
{
    psi_status status = PSI_OK;
    psi_model *model = NULL;
    *out = NULL;
    if (n_states > INT32_MAX) {
        return FAIL(ctx, PSI_ELIMIT, "a model of %zu states is too large; 2,147,483,647 fit",
                    n_states);
    }
    TRY(base_alloc_zero(ctx, 1, sizeof *model, &model));
    model->n_states = n_states;
    model->n_choices = n_choices;
    model->n_transitions = n_transitions;
    TRY(base_alloc(ctx, n_states + 1, sizeof *model->choices, &model->choices));
    TRY(base_alloc(ctx, n_choices + 1, sizeof *model->offsets, &model->offsets));
    TRY(base_alloc(ctx, n_transitions, sizeof *model->next, &model->next));
    TRY(base_alloc(ctx, n_transitions, sizeof *model->probability, &model->probability));
    TRY(base_alloc(ctx, n_choices, sizeof *model->action, &model->action));
    TRY(base_alloc_zero(ctx, n_states, sizeof *model->initial, &model->initial));
    *out = model;
    model = NULL;
done:
    psi_model_free(ctx, model);
    return status;
}

void psi_model_free(psi_ctx *ctx, psi_model *model)
{
    if (!model || FREED(ctx, model)) return;
    for (size_t i = 0; i < model->n_labels; i++) {
        base_free(ctx, model->labels[i].name);
        base_free(ctx, model->labels[i].holds);
    }
    for (size_t i = 0; i < model->n_rewards; i++) {
        base_free(ctx, model->rewards[i].name);
        base_free(ctx, model->rewards[i].state);
        base_free(ctx, model->rewards[i].choice);
    }
    for (size_t i = 0; model->action_names && i < model->n_actions; i++)
        base_free(ctx, model->action_names[i]);
    base_free(ctx, model->rewards);
    base_free(ctx, model->labels);
    base_free(ctx, model->initial);
    base_free(ctx, model->action_names);
    base_free(ctx, model->action);
    base_free(ctx, model->probability);
    base_free(ctx, model->next);
    base_free(ctx, model->offsets);
    base_free(ctx, model->choices);
    base_retire(ctx, model);
}

// Room for one more than n, which doubles: full at powers of two.
static psi_status make_room(psi_ctx *ctx, size_t n, size_t size, void *block)
{
    return (n & (n - 1)) == 0 ? base_resize(ctx, 2 * n + (n == 0), size, block) : PSI_OK;
}

psi_status mdp_model_add_label(psi_ctx *ctx, psi_model *model, const char *name, size_t length,
                               uint8_t **holds)
{
    psi_status status = PSI_OK;
    psi_model_label label = {0};
    TRY(make_room(ctx, model->n_labels, sizeof label, &model->labels));
    TRY(mdp_copy_name(ctx, name, length, &label.name));
    TRY(base_alloc_zero(ctx, model->n_states, 1, &label.holds));
    *holds = label.holds;
    model->labels[model->n_labels++] = label;
    label = (psi_model_label){0};
done:
    base_free(ctx, label.name);
    return status;
}

psi_status mdp_model_add_reward(psi_ctx *ctx, psi_model *model, const char *name, size_t length,
                                bool state, bool choice, psi_model_reward **out)
{
    psi_status status = PSI_OK;
    psi_model_reward reward = {0};
    TRY(make_room(ctx, model->n_rewards, sizeof reward, &model->rewards));
    TRY(mdp_copy_name(ctx, name, length, &reward.name));
    if (state) TRY(base_alloc_zero(ctx, model->n_states, sizeof(double), &reward.state));
    if (choice) TRY(base_alloc_zero(ctx, model->n_choices, sizeof(double), &reward.choice));
    *out = &model->rewards[model->n_rewards];
    model->rewards[model->n_rewards++] = reward;
    reward = (psi_model_reward){0};
done:
    base_free(ctx, reward.state);
    base_free(ctx, reward.name);
    return status;
}

psi_status psi_model_add_label(psi_ctx *ctx, psi_model *model, const char *name, uint8_t **holds)
{
    if (FREED(ctx, model)) return PSI_EUSAGE;
    return mdp_model_add_label(ctx, model, name, strlen(name), holds);
}

psi_status psi_model_add_reward(psi_ctx *ctx, psi_model *model, const char *name, bool state,
                                bool choice, psi_model_reward **out)
{
    *out = NULL;
    if (FREED(ctx, model)) return PSI_EUSAGE;
    return mdp_model_add_reward(ctx, model, name, strlen(name), state, choice, out);
}

// ---- the check ----------------------------------------------------------------------------------

typedef struct checking {
    const psi_model *model;
    size_t *bad; // (threads) the first state of each slice that something is wrong with
} checking;

// Nothing is read beyond the arrays: offsets first. ctx NULL: only whether it is right.
static psi_status check_state(psi_ctx *ctx, const psi_model *m, size_t s)
{
    const uint64_t first = m->choices[s], last = m->choices[s + 1];
    if (last < first || last > m->n_choices) {
        return ctx ? FAIL(ctx, PSI_EDATA, "the choices of state %zu end before they begin", s)
                   : PSI_EDATA;
    }
    if (m->chain && last - first > 1) {
        return ctx ? FAIL(ctx, PSI_EDATA, "state %zu of a Markov chain has %llu choices", s,
                          (unsigned long long)(last - first))
                   : PSI_EDATA;
    }
    for (uint64_t c = first; c < last; c++) {
        const uint64_t begin = m->offsets[c], end = m->offsets[c + 1];
        const size_t number = c - first;
        double sum = 0.0;
        if (end < begin || end > m->n_transitions) {
            return ctx ? FAIL(ctx, PSI_EDATA, "choice %zu of state %zu ends before it begins",
                              number, s)
                       : PSI_EDATA;
        }
        if (m->action[c] < 0 || (size_t)m->action[c] >= m->n_actions) {
            return ctx ? FAIL(ctx, PSI_EDATA, "choice %zu of state %zu has action %d of %zu",
                              number, s, m->action[c], m->n_actions)
                       : PSI_EDATA;
        }
        for (uint64_t i = begin; i < end; i++) {
            if (m->next[i] < 0 || (size_t)m->next[i] >= m->n_states) {
                return ctx ? FAIL(ctx, PSI_EDATA,
                                  "choice %zu of state %zu leads to state %d, in a model of %zu",
                                  number, s, m->next[i], m->n_states)
                           : PSI_EDATA;
            }
            if (!(m->probability[i] > 0.0)) {
                return ctx ? FAIL(ctx, PSI_EDATA, "choice %zu of state %zu has a probability of %g",
                                  number, s, m->probability[i])
                           : PSI_EDATA;
            }
            sum += m->probability[i];
        }
        if (!(fabs(sum - 1.0) <= LOST_DIGITS * fmax(2.0, (double)(end - begin)))) {
            return ctx ? FAIL(ctx, PSI_EDATA,
                              "the probabilities of choice %zu of state %zu sum to %.9g", number, s,
                              sum)
                       : PSI_EDATA;
        }
    }
    return PSI_OK;
}

static void check_task(void *argument, int thread, int threads)
{
    const checking *check = argument;
    size_t begin, end;
    base_slice(check->model->n_states, thread, threads, &begin, &end);
    check->bad[thread] = SIZE_MAX;
    for (size_t s = begin; s < end; s++) {
        if (check_state(NULL, check->model, s) == PSI_OK) continue;
        check->bad[thread] = s;
        return;
    }
}

static psi_status check_rewards(psi_ctx *ctx, const psi_model *model)
{
    for (size_t r = 0; r < model->n_rewards; r++) {
        const psi_model_reward *reward = &model->rewards[r];
        for (size_t s = 0; reward->state && s < model->n_states; s++) {
            if (isfinite(reward->state[s])) continue;
            return FAIL(ctx, PSI_EDATA, "the reward %s of state %zu is not finite", reward->name,
                        s);
        }
        for (size_t c = 0; reward->choice && c < model->n_choices; c++) {
            if (isfinite(reward->choice[c])) continue;
            return FAIL(ctx, PSI_EDATA, "the reward %s of choice %zu is not finite", reward->name,
                        c);
        }
    }
    return PSI_OK;
}

psi_status psi_model_check(psi_ctx *ctx, const psi_model *model)
{
    if (FREED(ctx, model)) return PSI_EUSAGE;
    psi_status status = PSI_OK;
    base_team *team = base_ctx_team(ctx);
    checking check = {.model = model};
    if (model->choices[0] != 0 || model->offsets[0] != 0 ||
        model->choices[model->n_states] != model->n_choices ||
        model->offsets[model->n_choices] != model->n_transitions) {
        return FAIL(ctx, PSI_EDATA, "the model's offsets do not cover its choices and transitions");
    }
    TRY(base_alloc(ctx, (size_t)base_team_size(team), sizeof *check.bad, &check.bad));
    base_team_run(team, check_task, &check);
    size_t bad = SIZE_MAX;
    for (int t = 0; t < base_team_size(team); t++) bad = base_min(bad, check.bad[t]);
    if (bad != SIZE_MAX) TRY(check_state(ctx, model, bad));
    TRY(check_rewards(ctx, model));
done:
    base_free(ctx, check.bad);
    return status;
}
