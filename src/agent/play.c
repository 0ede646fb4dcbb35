// Playing: the loop of acting and learning. Agents of a batch take their turns together, so that
// the observations of all of them pass through the network at once. Every random stream is named by
// episode or update: an agent does the same in any batch, and one that is read from a file goes on
// exactly where it was.
#include "agent/agent.h"

#include "base/checked.h"
#include "base/context.h"
#include "base/progress.h"

#include <math.h>
#include <string.h>

static const uint64_t FIRST_EVALUATION = (uint64_t)1 << 32; // episodes that are not learnt from

// ---- one agent

// ε falls linearly from 1 in the first episode to final_epsilon after exploration_episodes.
static double epsilon_at(const psi_agent_options *options, uint64_t episode)
{
    if (episode >= options->exploration_episodes) return options->final_epsilon;
    const double left = 1 - (double)episode / (double)options->exploration_episodes;
    return options->final_epsilon + (1 - options->final_epsilon) * left;
}

static void begin_episode(psi_agent *agent, bool teach, uint64_t e)
{
    agent_learner *learner = agent->learner;
    const uint32_t stream = teach ? AGENT_STREAM_ACTIONS : AGENT_STREAM_EVALUATE;
    agent->now =
        (agent_now){.teach = teach, .dice = base_random_stream(agent->options.seed, stream, e)};
    agent->now.result.epsilon = !learner ? 1 : teach ? epsilon_at(&agent->options, e) : 0;
    if (learner) learner->loss_sum = (double)(learner->losses = 0);
    psi_env_begin_one(agent->env, 0, teach ? e : FIRST_EVALUATION + e, agent->observation);
}

static void end_episode(psi_agent *agent)
{
    const agent_learner *learner = agent->learner;
    psi_agent_episode *result = &agent->now.result;
    agent->now.over = true;
    result->loss =
        learner && learner->losses > 0 ? learner->loss_sum / (double)learner->losses : (double)NAN;
    result->seconds = base_seconds() - agent->started;
}

// The best action for what is seen as row; among equally good ones, any.
static psi_status choose(psi_ctx *ctx, psi_agent *agent, int32_t *action)
{
    psi_status status = PSI_OK;
    const size_t n = agent->encoder->space.n_actions;
    const double epsilon = agent->now.result.epsilon;
    base_random *dice = &agent->now.dice;
    if (!agent->learner || (epsilon > 0 && base_random_uniform(dice) < epsilon)) {
        *action = (int32_t)base_random_below(dice, (uint32_t)n);
        return PSI_OK;
    }
    TRY(agent->learner->rules->values(ctx, agent->learner, agent->row, agent->values));
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

// From the step that led to what is seen as next.
static psi_status learn(psi_ctx *ctx, psi_agent *agent)
{
    agent_learner *learner = agent->learner;
    agent_now *now = &agent->now;
    if (!learner || !now->teach) return PSI_OK;
    if (!now->acted) return learner->rules->begin(ctx, learner, agent->next);
    now->step.row = agent->row;
    now->step.next = agent->next;
    return learner->rules->learn(ctx, learner, &now->step);
}

// After the observation was encoded: to learn from how it came about, and to act.
static psi_status take_turn(psi_ctx *ctx, psi_agent *agent)
{
    psi_status status = PSI_OK;
    agent_now *now = &agent->now;
    double reward;
    TRY(base_cancelled(ctx));
    TRY(learn(ctx, agent));
    char *seen = agent->next;
    agent->next = agent->row;
    agent->row = seen;
    if (now->result.truncated) {
        end_episode(agent);
        goto done;
    }
    TRY(choose(ctx, agent, &now->step.action));
    psi_env_step_one(agent->env, 0, now->step.action, agent->observation, &reward,
                     &now->step.terminated, &now->result.truncated);
    now->acted = true;
    now->step.reward = reward;
    now->result.steps++;
    now->result.reward += reward;
    if (now->step.terminated) { // there is nothing more to see
        TRY(learn(ctx, agent));
        end_episode(agent);
    }
done:
    return status;
}

// ---- several

// A batch of agents, which play together.
typedef struct batch_of_agents {
    psi_agent *const *agents; // (n)
    size_t n;
    bool teach;
    size_t episodes;          // that each wants to have played
    size_t *played;           // (n)
    psi_agent_episode *curve; // (n, episodes) without teaching; else every agent keeps its own
    psi_status *each;         // (n) failures of single agents; NULL: one ends all
    psi_status (*ended)(void *user, size_t agent);
    void *user;

    bool *plays;            // (n) in an episode now
    agent_encoder *encoder; // of all of them
    agent_encoder *own;     // the same, if it had to be made
    char *observations;     // (n) of those that play …
    int32_t *truth;         // (n)
    char *rows;             // (n) … and encoded
} batch_of_agents;

static bool share_encoder(const psi_agent *a, const psi_agent *b)
{
    return a->encoder->net && a->encoder->net == b->encoder->net &&
           a->encoder->view == b->encoder->view &&
           a->encoder->space.row_bytes == b->encoder->space.row_bytes;
}

static psi_status gather(psi_ctx *ctx, batch_of_agents *all)
{
    psi_status status = PSI_OK;
    const psi_agent *first = all->agents[0];
    for (size_t i = 1; i < all->n; i++) {
        if (share_encoder(all->agents[i], first)) continue;
        return FAIL(ctx, PSI_EUSAGE, "agents %zu and 0 do not share one network and view", i);
    }
    if (all->n > 1) {
        TRY(agent_encoder_new(ctx, &first->task, &first->options, all->n, &all->own));
    }
    all->encoder = all->own ? all->own : first->encoder;
    TRY(base_alloc_zero(ctx, all->n, sizeof *all->played, &all->played));
    TRY(base_alloc_zero(ctx, all->n, sizeof *all->plays, &all->plays));
    TRY(base_alloc(ctx, all->n, all->encoder->space.row_bytes, &all->observations));
    TRY(base_alloc(ctx, all->n, sizeof *all->truth, &all->truth));
    TRY(base_alloc(ctx, all->n, all->encoder->row_bytes, &all->rows));
done:
    return status;
}

static void free_batch(psi_ctx *ctx, batch_of_agents *all)
{
    agent_encoder_free(ctx, all->own);
    base_free(ctx, all->played);
    base_free(ctx, all->plays);
    base_free(ctx, all->observations);
    base_free(ctx, all->truth);
    base_free(ctx, all->rows);
}

static psi_status encode(psi_ctx *ctx, batch_of_agents *all)
{
    psi_status status = PSI_OK;
    const size_t bytes = all->encoder->space.row_bytes, row_bytes = all->encoder->row_bytes;
    size_t n = 0;
    for (size_t i = 0; i < all->n; i++) {
        const psi_agent *agent = all->agents[i];
        if (!all->plays[i] || !agent->learner) continue;
        memcpy(all->observations + n * bytes, agent->observation, bytes);
        all->truth[n++] = agent_encoder_truth(agent->encoder, agent->env);
    }
    if (n == 0) goto done;
    TRY(agent_encoder_encode(ctx, all->encoder, all->observations, all->truth, n, all->rows));
    n = 0;
    for (size_t i = 0; i < all->n; i++) {
        const psi_agent *agent = all->agents[i];
        if (!all->plays[i] || !agent->learner) continue;
        memcpy(agent->next, all->rows + n++ * row_bytes, row_bytes);
    }
done:
    return status;
}

static psi_status make_room(psi_ctx *ctx, psi_agent *agent)
{
    psi_status status = PSI_OK;
    if (agent->n_episodes < agent->room) return PSI_OK;
    const size_t room = agent->room ? 2 * agent->room : 128;
    TRY(base_resize(ctx, room, sizeof *agent->curve, &agent->curve));
    agent->room = room;
done:
    return status;
}

// The episodes that are left to an agent that has forgotten its task count as its last one.
static psi_status leave_out(psi_ctx *ctx, batch_of_agents *all, size_t i)
{
    psi_status status = PSI_OK;
    psi_agent *agent = all->agents[i];
    for (; all->played[i] < all->episodes; all->played[i]++) {
        TRY(make_room(ctx, agent));
        agent->curve[agent->n_episodes] = agent->curve[agent->n_episodes - 1];
        agent->n_episodes++;
        agent->not_played++;
    }
done:
    return status;
}

// The next episode of an agent, if it wants one.
static psi_status begin_next(psi_ctx *ctx, batch_of_agents *all, size_t i)
{
    psi_status status = PSI_OK;
    psi_agent *agent = all->agents[i];
    if (all->teach && agent->options.stop_forgotten && agent->n_episodes > 0 &&
        psi_agent_network(agent) && agent_network_forgot(agent->learner)) {
        TRY(leave_out(ctx, all, i));
    }
    all->plays[i] = all->played[i] < all->episodes;
    if (!all->plays[i]) goto done;
    if (all->teach) TRY(make_room(ctx, agent));
    begin_episode(agent, all->teach, all->teach ? agent->n_episodes : all->played[i]);
done:
    return status;
}

static psi_status finish(batch_of_agents *all, size_t i)
{
    psi_agent *agent = all->agents[i];
    if (all->teach) {
        agent->curve[agent->n_episodes++] = agent->now.result;
    } else {
        all->curve[i * all->episodes + all->played[i]] = agent->now.result;
    }
    all->played[i]++;
    return all->ended ? all->ended(all->user, i) : PSI_OK;
}

static psi_status play(psi_ctx *ctx, batch_of_agents *all, base_progress *progress)
{
    psi_status status = PSI_OK;
    uint64_t done = 0;
    size_t playing = 0;
    for (size_t i = 0; i < all->n; i++) {
        TRY(begin_next(ctx, all, i));
        playing += all->plays[i];
    }
    while (playing > 0) {
        TRY(encode(ctx, all));
        playing = 0;
        for (size_t i = 0; i < all->n; i++) {
            if (!all->plays[i]) continue;
            status = take_turn(ctx, all->agents[i]);
            if (status == PSI_ENUMERIC && all->each) {
                all->each[i] = status;
                all->plays[i] = false;
                continue;
            }
            TRY(status);
            if (all->agents[i]->now.over) {
                TRY(finish(all, i));
                TRY(base_progress_at(progress, ++done));
                TRY(begin_next(ctx, all, i));
            }
            playing += all->plays[i];
        }
    }
    status = PSI_OK;
    base_progress_end(progress, done);
done:
    return status;
}

psi_status psi_agents_play(psi_ctx *ctx, psi_agent *const *agents, size_t n, size_t episodes,
                           psi_status (*ended)(void *user, size_t agent), void *user,
                           psi_status *each)
{
    psi_status status = PSI_OK;
    uint64_t total = 0;
    batch_of_agents all = {agents, n, .teach = true, .episodes = episodes};
    if (n == 0) return PSI_OK;
    all.ended = ended;
    all.user = user;
    all.each = each;
    for (size_t i = 0; each && i < n; i++) each[i] = PSI_OK;
    TRY(gather(ctx, &all));
    for (size_t i = 0; i < n; i++) {
        all.played[i] = agents[i]->n_episodes;
        total += episodes - base_min(episodes, agents[i]->n_episodes);
    }
    base_progress progress = base_progress_start(ctx, "learning", total);
    TRY(play(ctx, &all, &progress));
done:
    free_batch(ctx, &all);
    return status;
}

psi_status psi_agents_evaluate(psi_ctx *ctx, psi_agent *const *agents, size_t n, size_t episodes,
                               psi_agent_score *scores)
{
    psi_status status = PSI_OK;
    batch_of_agents all = {agents, n, .episodes = episodes};
    if (n == 0) return PSI_OK;
    for (size_t i = 0; i < n; i++) {
        if (agents[i]->learner) agents[i]->learner->exploit = true;
    }
    TRY(base_alloc(ctx, episodes, n * sizeof *all.curve, &all.curve));
    TRY(gather(ctx, &all));
    base_progress progress = base_progress_start(ctx, "evaluating", n * episodes);
    TRY(play(ctx, &all, &progress));
    for (size_t i = 0; i < n; i++) {
        scores[i] = psi_agent_score_of(all.curve + i * episodes, episodes);
    }
done:
    for (size_t i = 0; i < n; i++) {
        if (agents[i]->learner) agents[i]->learner->exploit = false;
    }
    base_free(ctx, all.curve);
    free_batch(ctx, &all);
    return status;
}

psi_status psi_agent_play(psi_ctx *ctx, psi_agent *agent, size_t episodes)
{
    if (FREED(ctx, agent)) return PSI_EUSAGE;
    return psi_agents_play(ctx, &agent, 1, agent->n_episodes + episodes, NULL, NULL, NULL);
}

psi_status psi_agent_evaluate(psi_ctx *ctx, psi_agent *agent, size_t episodes, psi_agent_score *out)
{
    if (FREED(ctx, agent)) return PSI_EUSAGE;
    return psi_agents_evaluate(ctx, &agent, 1, episodes, out);
}
