// Finite models: planning, and exact quotients.
#include "flat.h"

#include <stdlib.h>
#include <string.h>

int flat_plan(flat_session *session, const flat_model *m, const char *options, double *value,
              double *q, int32_t *policy, char **json)
{
    json_t *given = NULL;
    psi_plan *plan = NULL;
    *json = NULL;
    int status = flat_parse(session, options, &given);
    if (status != PSI_OK) return status;
    psi_plan_options how = psi_plan_defaults();
    const char *unseen = "excluded";
    json_error_t error;
    if (json_unpack_ex(given, &error, JSON_STRICT, "{s?F, s?F, s?F, s?s}", "gamma", &how.gamma,
                       "tolerance", &how.tolerance, "optimistic_value", &how.optimistic_value,
                       "unseen", &unseen) != 0) {
        status = flat_fail(session, PSI_EUSAGE, "options of a plan: %s", error.text);
    } else if (strcmp(unseen, "excluded") != 0 && strcmp(unseen, "optimistic") != 0) {
        status = flat_fail(session, PSI_EUSAGE, "unseen is one of: excluded, optimistic");
    }
    how.unseen = strcmp(unseen, "optimistic") == 0 ? PSI_UNSEEN_OPTIMISTIC : PSI_UNSEEN_EXCLUDED;
    // value iteration only reads them
    const psi_mdp mdp = {m->n_states,
                         m->n_actions,
                         (uint64_t *)m->offsets,
                         (int32_t *)m->next,
                         (double *)m->probability,
                         (double *)m->reward,
                         (uint8_t *)m->terminal};
    if (status == PSI_OK) status = (int)psi_value_iteration(session->ctx, &mdp, &how, &plan);
    if (status == PSI_OK) {
        const size_t s = m->n_states, a = m->n_actions;
        memcpy(value, plan->value, s * sizeof *value);
        memcpy(q, plan->q, s * a * sizeof *q);
        memcpy(policy, plan->policy, s * sizeof *policy);
        status = flat_json(session,
                           json_pack("{s:I, s:b}", "sweeps", (json_int_t)plan->sweeps, "converged",
                                     plan->converged),
                           json);
    }
    psi_plan_free(session->ctx, plan);
    json_decref(given);
    return status;
}

// ---- exact quotients ----------------------------------------------------------------------------

struct flat_quotient {
    psi_model *model;
    psi_quotient_result *result;
    psi_mdp *folded; // the quotient with one choice for every action
};

// The quotient as an MDP. PSI_EUNSUPPORTED if a state has two choices of one action.
static int fold(flat_session *session, const psi_model *m, psi_mdp **out)
{
    const size_t n_actions = m->n_actions > 0 ? m->n_actions : 1;
    const size_t pairs = m->n_states * n_actions;
    uint64_t *row = malloc((m->n_transitions + 1) * sizeof *row);
    double *reward = calloc(pairs + 1, sizeof *reward);
    uint8_t *terminal = calloc(m->n_states + 1, 1), *taken = calloc(pairs + 1, 1);
    int status = PSI_OK;
    if (!row || !reward || !terminal || !taken) {
        status = flat_fail(session, PSI_ENOMEM, "no memory for a quotient");
        goto done;
    }
    const psi_model_reward *given = m->n_rewards > 0 ? &m->rewards[0] : NULL;
    for (size_t s = 0; status == PSI_OK && s < m->n_states; s++) {
        terminal[s] = m->choices[s] == m->choices[s + 1];
        for (uint64_t c = m->choices[s]; status == PSI_OK && c < m->choices[s + 1]; c++) {
            const size_t pair = s * n_actions + (m->n_actions > 0 ? (size_t)m->action[c] : 0);
            if (taken[pair]++)
                status = flat_fail(session, PSI_EUNSUPPORTED,
                                   "state %zu of the quotient has two choices of one action", s);
            if (given && given->state) reward[pair] += given->state[s];
            if (given && given->choice) reward[pair] += given->choice[c];
            for (uint64_t i = m->offsets[c]; i < m->offsets[c + 1]; i++) row[i] = pair;
        }
    }
    if (status == PSI_OK)
        status = (int)psi_mdp_from_entries(session->ctx, m->n_states, n_actions, m->n_transitions,
                                           row, m->next, m->probability, reward, terminal, out);
done:
    free(taken);
    free(terminal);
    free(reward);
    free(row);
    return status;
}

int flat_quotient_find(flat_session *session, const char *path, const char *options,
                       flat_quotient **out)
{
    json_t *given = NULL;
    *out = NULL;
    int status = flat_parse(session, options, &given);
    if (status != PSI_OK) return status;
    psi_quotient_options how = psi_quotient_defaults();
    int ignore_actions = 0;
    json_error_t error;
    flat_quotient *made = calloc(1, sizeof *made);
    if (!made) {
        json_decref(given);
        return flat_fail(session, PSI_ENOMEM, "no memory for a quotient");
    }
    if (json_unpack_ex(given, &error, JSON_STRICT, "{s?s, s?s, s?F, s?b}", "labels", &how.labels,
                       "rewards", &how.rewards, "tolerance", &how.tolerance, "ignore_actions",
                       &ignore_actions) != 0) {
        status = flat_fail(session, PSI_EUSAGE, "options of a quotient: %s", error.text);
    }
    how.ignore_actions = ignore_actions != 0;
    if (status == PSI_OK) status = (int)psi_model_read(session->ctx, path, &made->model);
    if (status == PSI_OK)
        status = (int)psi_quotient_find(session->ctx, made->model, &how, &made->result);
    if (status == PSI_OK) status = fold(session, made->result->model, &made->folded);
    json_decref(given);
    if (status != PSI_OK) {
        flat_quotient_free(session, made);
        return status;
    }
    *out = made;
    return PSI_OK;
}

void flat_quotient_free(flat_session *session, flat_quotient *quotient)
{
    if (!quotient) return;
    psi_mdp_free(session->ctx, quotient->folded);
    psi_quotient_free(session->ctx, quotient->result);
    psi_model_free(session->ctx, quotient->model);
    free(quotient);
}

size_t flat_quotient_labels(const flat_quotient *quotient, const int32_t **labels)
{
    *labels = quotient->result->partition->label;
    return quotient->result->partition->n_states;
}

void flat_quotient_model(const flat_quotient *quotient, flat_model *out)
{
    const psi_mdp *m = quotient->folded;
    *out = (flat_model){m->n_states, m->n_actions, (size_t)m->offsets[m->n_states * m->n_actions],
                        m->offsets,  m->next,      m->probability,
                        m->reward,   m->terminal};
}

int flat_quotient_summary(flat_session *session, const flat_quotient *quotient, char **json)
{
    const psi_quotient_result *r = quotient->result;
    return flat_json(session,
                     json_pack("{s:I, s:I, s:I, s:I, s:f, s:f, s:I}", "states",
                               (json_int_t)quotient->model->n_states, "blocks",
                               (json_int_t)r->partition->n_blocks, "passes",
                               (json_int_t)r->n_passes, "rounds", (json_int_t)r->n_rounds, "defect",
                               r->defect, "seconds", r->seconds, "bytes", (json_int_t)r->bytes),
                     json);
}
