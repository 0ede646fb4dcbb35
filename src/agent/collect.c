// Trajectories of an agent that chooses at random, but for what the task says. Two blocks of
// episodes take turns: while the caller's thread delivers one in order, the others fill the next,
// and the caller helps once it is done. Which thread plays an episode changes nothing: all its dice
// are named by its number.
#include <psifold/agent.h>

#include "agent/streams.h"
#include "base/checked.h"
#include "base/context.h"
#include "base/progress.h"
#include "base/random.h"
#include "base/threads.h"

#include <stdatomic.h>

enum {
    BLOCK = 32,
    FIRST_ROOM = 256
}; // episodes in a block; steps an episode has room for at first

typedef struct agent_slot {
    size_t room; // steps
    char *observations;
    int32_t *actions;
    double *rewards;
    int32_t *latent_states;
    psi_episode episode; // points into the above
} agent_slot;

typedef struct agent_block {
    agent_slot slots[BLOCK];
    uint64_t first; // number of its first episode
    size_t n;
} agent_block;

typedef struct collecting {
    psi_ctx *ctx;
    psi_env *env; // one environment per thread
    uint64_t seed;
    psi_status (*deliver)(void *user, const psi_episode *episode);
    void *user;
    psi_collect_result *result;
    agent_block *full, *filling;
    atomic_size_t claimed;  // episodes of filling that a thread has taken
    atomic_int play_status; // the first failure of a thread
    psi_status deliver_status;
} collecting;

psi_episode_spec psi_collect_spec(const psi_task *task)
{
    const psi_task_space space = psi_task_observe(task);
    return (psi_episode_spec){.observation_dtype = space.dtype,
                              .observation_shape = space.shape,
                              .observation_low = space.low,
                              .observation_high = space.high,
                              .n_actions = space.n_actions,
                              .latent_states = true};
}

static psi_status make_room(psi_ctx *ctx, agent_slot *slot, size_t row_bytes)
{
    psi_status status = PSI_OK;
    const size_t room = slot->room ? 2 * slot->room : FIRST_ROOM;
    TRY(base_resize(ctx, room + 1, row_bytes, &slot->observations));
    TRY(base_resize(ctx, room, sizeof *slot->actions, &slot->actions));
    TRY(base_resize(ctx, room, sizeof *slot->rewards, &slot->rewards));
    TRY(base_resize(ctx, room + 1, sizeof *slot->latent_states, &slot->latent_states));
    slot->room = room;
done:
    return status;
}

static psi_status play(const collecting *work, size_t lane, uint64_t number, agent_slot *slot)
{
    psi_status status = PSI_OK;
    psi_env *env = work->env;
    const size_t row_bytes = psi_env_space(env)->row_bytes;
    const uint32_t n_actions = (uint32_t)psi_env_space(env)->n_actions;
    base_random choice = base_random_stream(work->seed, AGENT_STREAM_COLLECT, number);
    bool terminated = false, truncated = false;
    size_t t = 0;
    if (slot->room == 0) TRY(make_room(work->ctx, slot, row_bytes));
    psi_env_begin_one(env, lane, number, slot->observations);
    slot->latent_states[0] = psi_env_latent_state(env, lane);
    while (!terminated && !truncated) {
        if (t == slot->room) {
            TRY(base_cancelled(work->ctx));
            TRY(make_room(work->ctx, slot, row_bytes));
        }
        int32_t right;
        const double random = psi_env_behaviour(env, lane, &right);
        slot->actions[t] = (int32_t)base_random_below(&choice, n_actions);
        if (random < 1.0 && base_random_uniform(&choice) >= random) slot->actions[t] = right;
        psi_env_step_one(env, lane, slot->actions[t], slot->observations + (t + 1) * row_bytes,
                         &slot->rewards[t], &terminated, &truncated);
        t++;
        slot->latent_states[t] = psi_env_latent_state(env, lane);
    }
    slot->episode = (psi_episode){
        t,          slot->observations, slot->actions, slot->rewards, slot->latent_states,
        terminated, truncated};
done:
    return status;
}

static psi_status deliver_block(collecting *work)
{
    psi_status status = PSI_OK;
    for (size_t i = 0; i < work->full->n; i++) {
        const psi_episode *episode = &work->full->slots[i].episode;
        TRY(work->deliver(work->user, episode));
        work->result->episodes++;
        work->result->steps += episode->length;
        work->result->terminated += episode->terminated;
    }
done:
    return status;
}

// One turn: thread 0 empties the full block, everybody fills the other.
static void turn(void *argument, int thread, int threads)
{
    collecting *work = argument;
    (void)threads;
    if (thread == 0) work->deliver_status = deliver_block(work);
    agent_block *block = work->filling;
    while (atomic_load(&work->play_status) == PSI_OK) {
        const size_t i = atomic_fetch_add(&work->claimed, 1);
        if (i >= block->n) return;
        const psi_status status = play(work, (size_t)thread, block->first + i, &block->slots[i]);
        int none = PSI_OK;
        if (status != PSI_OK) {
            atomic_compare_exchange_strong(&work->play_status, &none, (int)status);
        }
    }
}

static void block_free(psi_ctx *ctx, agent_block *block)
{
    if (!block) return;
    for (size_t i = 0; i < BLOCK; i++) {
        base_free(ctx, block->slots[i].observations);
        base_free(ctx, block->slots[i].actions);
        base_free(ctx, block->slots[i].rewards);
        base_free(ctx, block->slots[i].latent_states);
    }
    base_free(ctx, block);
}

psi_status psi_collect(psi_ctx *ctx, const psi_task *task, uint64_t episodes, uint64_t seed,
                       psi_status (*deliver)(void *user, const psi_episode *episode), void *user,
                       psi_collect_result *result)
{
    psi_status status = PSI_OK;
    psi_collect_result own = {0};
    base_team *team = NULL;
    collecting work = {.ctx = ctx,
                       .seed = seed,
                       .deliver = deliver,
                       .user = user,
                       .result = result ? result : &own};
    *work.result = (psi_collect_result){0};
    // a team of its own: deliver may use the context's
    TRY(base_team_new(ctx, psi_threads(ctx), &team));
    TRY(psi_env_new(ctx, task, (size_t)psi_threads(ctx), seed, &work.env));
    TRY(base_alloc_zero(ctx, 1, sizeof *work.full, &work.full));
    TRY(base_alloc_zero(ctx, 1, sizeof *work.filling, &work.filling));
    base_progress progress = base_progress_start(ctx, "collecting episodes", episodes);
    for (uint64_t next = 0; next < episodes || work.full->n > 0;) {
        const uint64_t left = episodes - next;
        work.filling->first = next;
        work.filling->n = left < BLOCK ? (size_t)left : BLOCK;
        atomic_store(&work.claimed, 0);
        base_team_run(team, turn, &work);
        TRY(work.deliver_status);
        TRY((psi_status)atomic_load(&work.play_status));
        next += work.filling->n;
        agent_block *emptied = work.full;
        work.full = work.filling;
        work.filling = emptied;
        TRY(base_progress_at(&progress, work.result->episodes));
    }
    base_progress_end(&progress, work.result->episodes);
done:
    block_free(ctx, work.full);
    block_free(ctx, work.filling);
    psi_env_free(ctx, work.env);
    base_team_free(ctx, team);
    return status;
}
