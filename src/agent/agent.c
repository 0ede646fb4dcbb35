// An agent in its task: the loop of acting and learning, episode by episode. All dice are named by
// episode or update, so that an agent read from a file goes on exactly where it was.
#include "agent/agent.h"

#include "base/context.h"
#include "base/progress.h"

#include <math.h>

static const uint64_t FIRST_EVALUATION = (uint64_t)1 << 32; // episodes that are not learnt from

static psi_status check_options(psi_ctx *ctx, const psi_agent_options *o)
{
    const struct {
        bool fine;
        const char *what;
    } rules[] = {
        {(int)o->kind >= 0 && (int)o->kind < PSI_AGENT_KINDS, "the kind of agent is not known"},
        {o->hidden > 0 && o->hidden <= 1 << 16, "a layer has from 1 to 65536 units"},
        {o->gamma >= 0 && o->gamma < 1, "gamma must be at least 0 and below 1"},
        {o->learning_rate > 0 && isfinite(o->learning_rate), "the learning rate must be positive"},
        {o->batch > 0 && o->batch <= 1 << 20, "a batch has from 1 to 2^20 transitions"},
        {o->buffer > 1 && o->buffer <= 1 << 30, "the buffer holds from 2 to 2^30 observations"},
        {o->update_every > 0, "updates come at most once a step"},
        {o->final_epsilon >= 0 && o->final_epsilon <= 1, "epsilon is a probability"},
        {o->tau > 0 && o->tau <= 1, "tau must be above 0 and at most 1"},
        {o->table_rate > 0 && o->table_rate <= 1, "the table's rate is above 0 and at most 1"},
        {o->optimism > 0 && isfinite(o->optimism), "optimism must be positive"},
        {isfinite(o->best_value), "the best value must be a finite number"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (!rules[i].fine) return FAIL(ctx, PSI_EUSAGE, "%s", rules[i].what);
    }
    return PSI_OK;
}

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
    TRY(check_options(ctx, options));
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
    case PSI_AGENT_TABULAR: return agent_table_new(ctx, agent->eye, &agent->options, &agent->mind);
    case PSI_AGENT_PLANNER:
        return agent_planner_new(ctx, agent->eye, &agent->options, &agent->mind);
    default: return agent_network_new(ctx, agent->eye, &agent->options, &agent->mind);
    }
}

psi_status psi_agent_new(psi_ctx *ctx, const psi_task *task, const psi_agent_options *options,
                         psi_agent **out)
{
    psi_status status = PSI_OK;
    psi_agent *agent = NULL;
    *out = NULL;
    TRY(base_alloc_zero(ctx, 1, sizeof *agent, &agent));
    agent->options = *options;
    TRY(complete_options(ctx, &agent->options));
    TRY(psi_env_new(ctx, task, 1, options->seed, &agent->env));
    agent->task = *psi_env_task(agent->env);
    TRY(agent_eye_new(ctx, &agent->task, &agent->options, &agent->eye));
    TRY(make_mind(ctx, agent));
    TRY(base_alloc_zero(ctx, 1, agent->eye->space.row_bytes, &agent->observation));
    TRY(base_alloc_zero(ctx, 1, agent->eye->row_bytes, &agent->row));
    TRY(base_alloc_zero(ctx, 1, agent->eye->row_bytes, &agent->next));
    TRY(base_alloc_zero(ctx, agent->eye->space.n_actions, sizeof *agent->values, &agent->values));
    agent->started = base_seconds();
    *out = agent;
    agent = NULL;
done:
    psi_agent_free(ctx, agent);
    return status;
}

void psi_agent_free(psi_ctx *ctx, psi_agent *agent)
{
    if (!agent) return;
    if (agent->mind) agent->mind->rules->free(ctx, agent->mind);
    agent_eye_free(ctx, agent->eye);
    psi_env_free(ctx, agent->env);
    base_free(ctx, agent->observation);
    base_free(ctx, agent->row);
    base_free(ctx, agent->next);
    base_free(ctx, agent->values);
    base_free(ctx, agent->curve);
    base_free(ctx, agent);
}

// ε falls linearly from 1 in the first episode to final_epsilon after exploration_episodes.
static double epsilon_at(const psi_agent_options *options, size_t episode)
{
    if (episode >= options->exploration_episodes) return options->final_epsilon;
    const double left = 1 - (double)episode / (double)options->exploration_episodes;
    return options->final_epsilon + (1 - options->final_epsilon) * left;
}

// The best action for what is seen as row; among equally good ones, any.
static psi_status choose(psi_ctx *ctx, psi_agent *agent, const void *row, double epsilon,
                         base_random *dice, int32_t *action)
{
    psi_status status = PSI_OK;
    const size_t n = agent->eye->space.n_actions;
    if (!agent->mind || (epsilon > 0 && base_random_uniform(dice) < epsilon)) {
        *action = (int32_t)base_random_below(dice, (uint32_t)n);
        return PSI_OK;
    }
    TRY(agent->mind->rules->values(ctx, agent->mind, row, agent->values));
    uint32_t equals = 1;
    *action = 0;
    for (size_t a = 1; a < n; a++) {
        const psi_real best = agent->values[*action];
        if (agent->values[a] < best) continue;
        equals = agent->values[a] > best ? 1 : equals + 1;
        if (equals == 1 || base_random_below(dice, equals) == 0) *action = (int32_t)a;
    }
done:
    return status;
}

static psi_status look(psi_ctx *ctx, psi_agent *agent, char *row)
{
    return agent_eye_look(ctx, agent->eye, agent->observation,
                          agent_eye_truth(agent->eye, agent->env), row);
}

// One episode with this number; teach says whether anything is learnt from it.
static psi_status play_episode(psi_ctx *ctx, psi_agent *agent, uint64_t number, base_random dice,
                               double epsilon, bool teach, psi_agent_episode *out)
{
    psi_status status = PSI_OK;
    agent_mind *mind = agent->mind;
    bool terminated = false, truncated = false;
    *out = (psi_agent_episode){.epsilon = mind ? epsilon : 1};
    if (mind) mind->loss_sum = (double)(mind->losses = 0);
    psi_env_begin_one(agent->env, 0, number, agent->observation);
    if (mind) TRY(look(ctx, agent, agent->row));
    if (mind && teach) TRY(mind->rules->begin(ctx, mind, agent->row));
    while (!terminated && !truncated) {
        agent_step step = {.row = agent->row, .next = agent->next};
        TRY(base_cancelled(ctx));
        TRY(choose(ctx, agent, agent->row, epsilon, &dice, &step.action));
        psi_env_step_one(agent->env, 0, step.action, agent->observation, &step.reward, &terminated,
                         &truncated);
        out->steps++;
        out->reward += step.reward;
        if (!mind) continue;
        if (!terminated) TRY(look(ctx, agent, agent->next));
        step.terminated = terminated;
        if (teach) TRY(mind->rules->learn(ctx, mind, &step));
        char *seen = agent->row;
        agent->row = agent->next;
        agent->next = seen;
    }
    out->truncated = truncated;
    out->loss = mind && mind->losses > 0 ? mind->loss_sum / (double)mind->losses : (double)NAN;
    out->seconds = base_seconds() - agent->started;
done:
    return status;
}

psi_status psi_agent_play(psi_ctx *ctx, psi_agent *agent, size_t episodes)
{
    psi_status status = PSI_OK;
    base_progress progress = base_progress_start(ctx, "learning", episodes);
    for (size_t i = 0; i < episodes; i++) {
        const size_t e = agent->n_episodes;
        if (e == agent->room) {
            const size_t room = agent->room ? 2 * agent->room : 128;
            TRY(base_resize(ctx, room, sizeof *agent->curve, &agent->curve));
            agent->room = room;
        }
        TRY(play_episode(ctx, agent, e,
                         base_random_stream(agent->options.seed, AGENT_STREAM_ACTIONS, e),
                         epsilon_at(&agent->options, e), true, &agent->curve[e]));
        agent->n_episodes++;
        TRY(base_progress_at(&progress, i + 1));
    }
    base_progress_end(&progress, episodes);
done:
    return status;
}

psi_status psi_agent_evaluate(psi_ctx *ctx, psi_agent *agent, size_t episodes, psi_agent_score *out)
{
    psi_status status = PSI_OK;
    psi_agent_episode *curve = NULL;
    TRY(base_alloc(ctx, episodes, sizeof *curve, &curve));
    if (agent->mind) agent->mind->exploit = true;
    for (size_t i = 0; i < episodes; i++) {
        TRY(play_episode(ctx, agent, FIRST_EVALUATION + i,
                         base_random_stream(agent->options.seed, AGENT_STREAM_EVALUATE, i), 0,
                         false, &curve[i]));
    }
    *out = psi_agent_score_of(curve, episodes);
done:
    if (agent->mind) agent->mind->exploit = false;
    base_free(ctx, curve);
    return status;
}

psi_status psi_agent_values(psi_ctx *ctx, psi_agent *agent, const void *observation,
                            int32_t true_latent_state, psi_real *values)
{
    psi_status status = PSI_OK;
    for (size_t a = 0; a < agent->eye->space.n_actions; a++) values[a] = 0;
    if (!agent->mind) return PSI_OK;
    if (agent->options.view == PSI_VIEW_TRUTH &&
        (true_latent_state < 0 || (size_t)true_latent_state >= agent->eye->n_states)) {
        return FAIL(ctx, PSI_EUSAGE, "there is no latent state %d", true_latent_state);
    }
    TRY(agent_eye_look(ctx, agent->eye, observation, true_latent_state, agent->row));
    TRY(agent->mind->rules->values(ctx, agent->mind, agent->row, values));
done:
    return status;
}

const psi_agent_episode *psi_agent_curve(const psi_agent *agent, size_t *n)
{
    *n = agent->n_episodes;
    return agent->curve;
}

uint64_t psi_agent_updates(const psi_agent *agent)
{
    return agent->mind ? agent->mind->updates : 0;
}

const psi_net *psi_agent_network(const psi_agent *agent)
{
    switch (agent->options.kind) {
    case PSI_AGENT_DQN:
    case PSI_AGENT_PRETRAINED:
    case PSI_AGENT_REWARD_PREDICTIVE: return agent_network_of(agent->mind);
    default: return NULL;
    }
}
