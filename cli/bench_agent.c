// Speed of the agents: an update of deep Q-learning with its target evaluation, how long choosing
// one action takes, and steps a second of agents on a frozen representation.
#include "cli/bench.h"

#include "base/context.h"
#include "base/progress.h"

#include <math.h>
#include <string.h>

enum { BATCH = 200, LATENT_STATES = 100, TOGETHER = 16 };

static psi_status lock(psi_ctx *ctx, psi_task *task)
{
    psi_status status = PSI_OK;
    TRY(psi_task_defaults(ctx, "combination-lock", NULL, task));
    TRY(psi_task_set(ctx, task, "images-per-digit", "20"));
    task->max_steps = 1000;
    TRY(psi_task_check(ctx, task));
done:
    return status;
}

// Steps with and without updates give the cost of an update: episodes of random actions only, so
// that nothing else is computed.
static psi_status time_update(psi_ctx *ctx, psi_net_kind kind, size_t batch, double seconds,
                              double *best)
{
    psi_status status = PSI_OK;
    psi_agent *agent = NULL;
    psi_task task;
    psi_agent_options options = psi_agent_defaults(PSI_AGENT_DQN);
    options.net = kind;
    options.batch = batch;
    options.learning_starts = batch;
    options.update_every = 1;
    options.exploration_episodes = 1 << 30; // never greedy
    TRY(lock(ctx, &task));
    task.max_steps = 1; // an episode is one step, and at most one update
    TRY(psi_agent_new(ctx, &task, &options, &agent));
    TRY(psi_agent_play(ctx, agent, batch + 2));
    *best = (double)INFINITY;
    const double start = base_seconds();
    while (base_seconds() - start < seconds) {
        const double before = base_seconds();
        TRY(psi_agent_play(ctx, agent, 1));
        *best = fmin(*best, base_seconds() - before);
    }
done:
    psi_agent_free(ctx, agent);
    return status;
}

// Choosing for one observation, with weights that stay (as in evaluation) and after an update.
static psi_status time_choice(psi_ctx *ctx, psi_net_kind kind, double *steady, double *changed)
{
    psi_status status = PSI_OK;
    psi_agent *agent = NULL;
    psi_env *env = NULL;
    psi_task task;
    char observation[3 * PSI_DIGIT_SIDE * PSI_DIGIT_SIDE];
    psi_real values[3];
    psi_agent_options options = psi_agent_defaults(PSI_AGENT_DQN);
    options.net = kind;
    options.batch = 2; // an update that costs little, but changes all weights
    options.learning_starts = 1;
    options.update_every = 1;
    options.exploration_episodes = 1 << 30;
    TRY(lock(ctx, &task));
    task.max_steps = 1;
    TRY(psi_env_new(ctx, &task, 1, 1, &env));
    psi_env_begin_one(env, 0, 0, observation);
    TRY(psi_agent_new(ctx, &task, &options, &agent));
    *steady = *changed = (double)INFINITY;
    for (int i = 0; i < 12; i++) {
        TRY(base_cancelled(ctx));
        TRY(psi_agent_play(ctx, agent, 1));
        const double start = base_seconds();
        TRY(psi_agent_values(ctx, agent, observation, 0, values));
        const double between = base_seconds();
        TRY(psi_agent_values(ctx, agent, observation, 0, values));
        *changed = fmin(*changed, between - start);
        *steady = fmin(*steady, base_seconds() - between);
    }
done:
    psi_agent_free(ctx, agent);
    psi_env_free(ctx, env);
    return status;
}

// Steps a second, updates included, of agents on the network's latent states that look through it
// together; random weights look as long as others.
static psi_status time_frozen(psi_ctx *ctx, psi_agent_kind kind, psi_net_kind net_kind,
                              size_t together, double seconds, double *steps_per_s)
{
    psi_status status = PSI_OK;
    psi_agent *agents[TOGETHER] = {NULL};
    psi_net *net = NULL;
    psi_task task;
    size_t n, episodes = 2;
    uint64_t steps = 0;
    psi_agent_options options = psi_agent_defaults(kind);
    TRY(lock(ctx, &task));
    task.max_steps = 250;
    const psi_task_space space = psi_task_observe(&task);
    const psi_net_spec spec =
        psi_net_defaults(net_kind, &space.shape, space.dtype, 1, LATENT_STATES);
    TRY(psi_net_new(ctx, &spec, 1, &net));
    options.representation = net;
    options.final_epsilon = 1; // no policy to be found: what counts is the work
    for (size_t i = 0; i < together; i++) {
        options.seed = i;
        TRY(psi_agent_new(ctx, &task, &options, &agents[i]));
    }
    TRY(psi_agents_play(ctx, agents, together, episodes, NULL, NULL, NULL));
    const size_t before = episodes;
    const double start = base_seconds();
    while (base_seconds() - start < seconds) {
        episodes += 8; // most of the time all of them play
        TRY(psi_agents_play(ctx, agents, together, episodes, NULL, NULL, NULL));
    }
    const double took = base_seconds() - start;
    for (size_t i = 0; i < together; i++) {
        const psi_agent_episode *curve = psi_agent_curve(agents[i], &n);
        for (size_t e = before; e < n; e++) steps += curve[e].steps;
    }
    *steps_per_s = (double)steps / took;
done:
    for (size_t i = 0; i < together; i++) psi_agent_free(ctx, agents[i]);
    psi_net_free(ctx, net);
    return status;
}

psi_status bench_dqn(psi_ctx *ctx, const bench_nn_options *options, json_t *results)
{
    psi_status status = PSI_OK;
    psi_net_kind kind;
    double best;
    TRY(psi_net_kind_from_name(ctx, options->net, &kind));
    TRY(time_update(ctx, kind, options->batch, options->seconds, &best));
    json_t *figures =
        json_pack("{s:s, s:s, s:I, s:i, s:f, s:f}", "work", "dqn", "net", options->net, "batch",
                  (json_int_t)options->batch, "threads", psi_threads(ctx), "images_per_s",
                  (double)options->batch / best, "step_ms", best * 1e3);
    TRY(base_json_made(ctx, figures));
    if (json_object_update_new(results, figures) != 0) {
        status = FAIL(ctx, PSI_ENOMEM, "no memory for the figures");
    }
done:
    return status;
}

static psi_status put(psi_ctx *ctx, json_t *results, const char *name, double value)
{
    if (json_object_set_new(results, name, json_real(value)) == 0) return PSI_OK;
    return FAIL(ctx, PSI_ENOMEM, "no memory for the figures");
}

psi_status bench_agent(psi_ctx *ctx, json_t *results)
{
    static const psi_net_kind NETS[] = {PSI_NET_CNN, PSI_NET_RESNET18};
    static const double SECONDS = 3;
    psi_status status = PSI_OK;
    for (size_t i = 0; i < sizeof NETS / sizeof NETS[0]; i++) {
        const char *net = psi_net_kind_name(NETS[i]);
        char name[96];
        double update, steady, changed, steps;
        TRY(time_update(ctx, NETS[i], BATCH, SECONDS, &update));
        TRY(time_choice(ctx, NETS[i], &steady, &changed));
        snprintf(name, sizeof name, "dqn_update_%s_batch_%d_s", net, BATCH);
        TRY(put(ctx, results, name, update));
        snprintf(name, sizeof name, "dqn_choice_%s_ms", net);
        TRY(put(ctx, results, name, 1e3 * steady));
        snprintf(name, sizeof name, "dqn_choice_after_update_%s_ms", net);
        TRY(put(ctx, results, name, 1e3 * changed));
        for (size_t together = 1; together <= TOGETHER; together *= TOGETHER) {
            TRY(time_frozen(ctx, PSI_AGENT_REWARD_PREDICTIVE, NETS[i], together, SECONDS, &steps));
            snprintf(name, sizeof name, "reward_predictive_%s_%zu_steps_per_s", net, together);
            TRY(put(ctx, results, name, steps));
            TRY(time_frozen(ctx, PSI_AGENT_PLANNER, NETS[i], together, SECONDS, &steps));
            snprintf(name, sizeof name, "planner_%s_%zu_steps_per_s", net, together);
            TRY(put(ctx, results, name, steps));
        }
    }
done:
    return status;
}
