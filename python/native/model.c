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
    if (json_unpack_ex(given, &error, JSON_STRICT, "{s?s, s?s, s?F, s?F, s?F, s?b}", "labels",
                       &how.labels, "rewards", &how.rewards, "tolerance", &how.tolerance, "epsilon",
                       &how.epsilon_sf, "gamma", &how.gamma, "ignore_actions",
                       &ignore_actions) != 0) {
        status = flat_fail(session, PSI_EUSAGE, "options of a quotient: %s", error.text);
    }
    how.ignore_actions = ignore_actions != 0;
    if (status == PSI_OK) status = (int)psi_model_read(session->ctx, path, &made->model);
    if (status == PSI_OK)
        status = (int)psi_quotient_find(session->ctx, made->model, &how, &made->result);
    if (status == PSI_OK)
        status = (int)psi_mdp_from_model(session->ctx, made->result->model, NULL, &made->folded);
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
                     json_pack("{s:I, s:I, s:I, s:I, s:I, s:o, s:f, s:I}", "states",
                               (json_int_t)quotient->model->n_states, "blocks",
                               (json_int_t)r->partition->n_blocks, "settled",
                               (json_int_t)r->n_settled, "passes", (json_int_t)r->n_passes,
                               "rounds", (json_int_t)r->n_rounds, "defect", flat_real(r->defect),
                               "seconds", r->seconds, "bytes", (json_int_t)r->bytes),
                     json);
}
