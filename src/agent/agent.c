// An agent in its task: what it is made of, and what it can be asked. play.c has the loop of acting
// and learning.
#include "agent/agent.h"

#include "base/context.h"
#include "base/options.h"
#include "base/progress.h"

// What a kind of agent looks at unless it is told.
static psi_view usual_view(psi_agent_kind kind)
{
    switch (kind) {
    case PSI_AGENT_REWARD_PREDICTIVE:
    case PSI_AGENT_PLANNER: return PSI_VIEW_ONE_HOT;
    case PSI_AGENT_TABULAR: return PSI_VIEW_TRUTH;
    default: return PSI_VIEW_OBSERVATION;
    }
}

static psi_status complete_options(psi_ctx *ctx, psi_agent_options *options)
{
    psi_status status = PSI_OK;
    TRY(psi_options_check(ctx, psi_agent_option_table(), options));
    if (options->view == PSI_VIEW_AUTO) options->view = usual_view(options->kind);
    const bool whole = options->view == PSI_VIEW_OBSERVATION;
    const bool must = options->kind == PSI_AGENT_DQN || options->kind == PSI_AGENT_PRETRAINED;
    const bool must_not = options->kind == PSI_AGENT_REWARD_PREDICTIVE;
    if ((must && !whole) || (must_not && whole)) {
        status = FAIL(ctx, PSI_EUSAGE, "the %s agent cannot have the view %s",
                      psi_agent_kind_name(options->kind), psi_view_name(options->view));
    }
done:
    return status;
}

static psi_status make_mind(psi_ctx *ctx, psi_agent *agent)
{
    switch (agent->options.kind) {
    case PSI_AGENT_RANDOM: return PSI_OK;
    case PSI_AGENT_TABULAR:
        return agent_table_new(ctx, agent->encoder, &agent->options, &agent->learner);
    case PSI_AGENT_PLANNER:
        return agent_planner_new(ctx, agent->encoder, &agent->options, &agent->learner);
    default: return agent_network_new(ctx, agent->encoder, &agent->options, &agent->learner);
    }
}

psi_status psi_agent_new(psi_ctx *ctx, const psi_task *task, const psi_agent_options *options,
                         psi_agent **out)
{
    *out = NULL;
    if (!base_options_fit(ctx, options, sizeof *options, "psi_agent_defaults")) return PSI_EUSAGE;
    psi_status status = PSI_OK;
    psi_agent *agent = NULL;
    TRY(base_alloc_zero(ctx, 1, sizeof *agent, &agent));
    agent->options = *options;
    TRY(complete_options(ctx, &agent->options));
    TRY(psi_env_new(ctx, task, 1, options->seed, &agent->env));
    agent->task = *psi_env_task(agent->env);
    TRY(agent_encoder_new(ctx, &agent->task, &agent->options, 1, &agent->encoder));
    TRY(make_mind(ctx, agent));
    TRY(base_alloc_zero(ctx, 1, agent->encoder->space.row_bytes, &agent->observation));
    TRY(base_alloc_zero(ctx, 1, agent->encoder->row_bytes, &agent->row));
    TRY(base_alloc_zero(ctx, 1, agent->encoder->row_bytes, &agent->next));
    TRY(base_alloc_zero(ctx, agent->encoder->space.n_actions, sizeof *agent->values,
                        &agent->values));
    agent->started = base_seconds();
    *out = agent;
    agent = NULL;
done:
    psi_agent_free(ctx, agent);
    return status;
}

void psi_agent_free(psi_ctx *ctx, psi_agent *agent)
{
    if (!agent || FREED(ctx, agent)) return;
    if (agent->learner) agent->learner->rules->free(ctx, agent->learner);
    agent_encoder_free(ctx, agent->encoder);
    psi_env_free(ctx, agent->env);
    base_free(ctx, agent->observation);
    base_free(ctx, agent->row);
    base_free(ctx, agent->next);
    base_free(ctx, agent->values);
    base_free(ctx, agent->curve);
    base_retire(ctx, agent);
}

psi_status psi_agent_values(psi_ctx *ctx, psi_agent *agent, const void *observation,
                            int32_t true_latent_state, psi_real *values)
{
    if (FREED(ctx, agent)) return PSI_EUSAGE;
    psi_status status = PSI_OK;
    for (size_t a = 0; a < agent->encoder->space.n_actions; a++) values[a] = 0;
    if (!agent->learner) return PSI_OK;
    if (agent->options.view == PSI_VIEW_TRUTH &&
        (true_latent_state < 0 || (size_t)true_latent_state >= agent->encoder->n_states)) {
        return FAIL(ctx, PSI_EUSAGE, "there is no latent state %d", true_latent_state);
    }
    TRY(agent_encoder_encode(ctx, agent->encoder, observation, &true_latent_state, 1, agent->row));
    TRY(agent->learner->rules->values(ctx, agent->learner, agent->row, values));
done:
    return status;
}

const psi_agent_episode *psi_agent_curve(const psi_agent *agent, size_t *n)
{
    if (FREED(NULL, agent)) return NULL;
    *n = agent->n_episodes;
    return agent->curve;
}

uint64_t psi_agent_updates(const psi_agent *agent)
{
    if (FREED(NULL, agent)) return 0;
    return agent->learner ? agent->learner->updates : 0;
}

size_t psi_agent_not_played(const psi_agent *agent)
{
    return FREED(NULL, agent) ? 0 : agent->not_played;
}

const psi_net *psi_agent_network(const psi_agent *agent)
{
    if (FREED(NULL, agent)) return NULL;
    switch (agent->options.kind) {
    case PSI_AGENT_DQN:
    case PSI_AGENT_PRETRAINED:
    case PSI_AGENT_REWARD_PREDICTIVE: return agent_network_of(agent->learner);
    default: return NULL;
    }
}
