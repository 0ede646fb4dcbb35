// A batch of environments: every lane steps by the rules of its task over the caller's buffers,
// large batches on all threads of the context. Memory is taken in psi_env_new only.
#include "env/rules.h"

#include "base/checked.h"
#include "base/context.h"
#include "base/threads.h"

#include <math.h>

// About 20 µs of work: less is over before a second thread has woken up.
enum { PARALLEL_STEPS = 1024, PARALLEL_IMAGES = 64 };

static const env_rules *rules_of(psi_task_kind kind)
{
    switch (kind) {
    case PSI_COLUMN_WORLD: return &ENV_COLUMN_WORLD;
    case PSI_POINT_COLUMN_WORLD: return &ENV_POINT_COLUMN_WORLD;
    case PSI_BIT_LOCK: return &ENV_BIT_LOCK;
    case PSI_RICH_LOCK: return &ENV_RICH_LOCK;
    case PSI_COMBINATION_LOCK: break;
    }
    return &ENV_COMBINATION_LOCK;
}

psi_task_space psi_task_observe(const psi_task *task)
{
    psi_task_space space = {.dtype = PSI_INT64, .n_actions = 4};
    if (task->kind == PSI_COLUMN_WORLD) {
        space.high = (double)(task->width * task->height - 1);
    } else if (task->kind == PSI_POINT_COLUMN_WORLD) {
        space.dtype = PSI_FLOAT32;
        space.shape = (psi_shape){1, {2}};
        space.high = (double)(task->width > task->height ? task->width : task->height);
    } else if (task->kind == PSI_BIT_LOCK) {
        space.dtype = PSI_UINT8;
        space.shape = (psi_shape){1, {(size_t)task->bits}};
        space.high = 1.0;
        space.n_actions = 2;
    } else if (task->kind == PSI_RICH_LOCK) {
        space.dtype = PSI_FLOAT32;
        space.shape = (psi_shape){1, {env_rich_lock_width(task)}};
        space.low = -HUGE_VAL;
        space.high = HUGE_VAL;
        space.n_actions = ENV_RICH_ACTIONS;
    } else {
        space.n_actions = (size_t)task->dials;
        if (task->digits == PSI_DIGITS_NONE) {
            double combinations = 1.0;
            for (int i = 0; i < task->dials; i++) combinations *= (double)task->digits_per_dial;
            space.high = combinations - 1.0;
        } else {
            space.dtype = PSI_UINT8;
            space.shape = (psi_shape){3, {(size_t)task->dials, PSI_DIGIT_SIDE, PSI_DIGIT_SIDE}};
            space.high = 255.0;
        }
    }
    space.row_bytes = psi_shape_size(&space.shape) * psi_dtype_size(space.dtype);
    return space;
}

psi_status psi_env_new(psi_ctx *ctx, const psi_task *task, size_t n_envs, uint64_t seed,
                       psi_env **out)
{
    psi_status status = PSI_OK;
    psi_env *env = NULL;
    *out = NULL;
    if (n_envs == 0 || n_envs > UINT32_MAX) {
        return FAIL(ctx, PSI_EUSAGE, "a batch has 1 to %u environments, not %zu", UINT32_MAX,
                    n_envs);
    }
    TRY(base_alloc_zero(ctx, 1, sizeof *env, &env));
    env->task = *task;
    TRY(psi_task_check(ctx, &env->task));
    env->space = psi_task_observe(&env->task);
    env->rules = rules_of(task->kind);
    env->seed = seed;
    env->n = n_envs;
    env->parallel_from = PARALLEL_STEPS;
    TRY(base_alloc_zero(ctx, n_envs, sizeof *env->lanes, &env->lanes));
    for (size_t i = 0; i < n_envs; i++) env->lanes[i].truncated = true; // until it is reset
    if (task->kind == PSI_COMBINATION_LOCK) {
        TRY(base_alloc_zero(ctx, 1, sizeof *env->latent, &env->latent));
        env_lock_latent_make(&env->task, env->latent);
        TRY(env_digits_new(ctx, &env->task, seed, &env->images));
        if (env->images) env->parallel_from = PARALLEL_IMAGES;
    } else if (task->kind == PSI_BIT_LOCK || task->kind == PSI_RICH_LOCK) {
        TRY(base_alloc_zero(ctx, 1, sizeof *env->code, &env->code));
        (task->kind == PSI_BIT_LOCK ? env_bit_lock_draw : env_rich_lock_draw)(&env->task,
                                                                              env->code);
        env->parallel_from = PARALLEL_IMAGES; // an observation is hundreds of draws
    } else {
        env->fraction_bits = env_point_fraction_bits(&env->task);
    }
    *out = env;
    env = NULL;
done:
    psi_env_free(ctx, env);
    return status;
}

void psi_env_free(psi_ctx *ctx, psi_env *env)
{
    if (!env || FREED(ctx, env)) return;
    env_digits_free(ctx, env->images);
    base_free(ctx, env->latent);
    base_free(ctx, env->code);
    base_free(ctx, env->lanes);
    base_retire(ctx, env);
}

size_t psi_env_count(const psi_env *env)
{
    if (FREED(NULL, env)) return 0;
    return env->n;
}
const psi_task *psi_env_task(const psi_env *env)
{
    if (FREED(NULL, env)) return NULL;
    return &env->task;
}
const psi_task_space *psi_env_space(const psi_env *env)
{
    if (FREED(NULL, env)) return NULL;
    return &env->space;
}
double psi_env_behaviour(const psi_env *env, size_t i, int32_t *right)
{
    if (FREED(NULL, env)) return 0.0;
    *right = 0;
    return env->rules->behaviour ? env->rules->behaviour(env, &env->lanes[i], right) : 1.0;
}
uint64_t psi_env_ground_state(const psi_env *env, size_t i)
{
    if (FREED(NULL, env)) return 0;
    return env->rules->ground_state(env, &env->lanes[i]);
}
int32_t psi_env_latent_state(const psi_env *env, size_t i)
{
    if (FREED(NULL, env)) return 0;
    return env->rules->latent_state(env, &env->lanes[i]);
}

void psi_env_begin_one(psi_env *env, size_t i, uint64_t episode, void *observation)
{
    if (FREED(NULL, env)) return;
    env_lane *lane = &env->lanes[i];
    lane->dice = base_random_stream(env->seed, ENV_STREAM_DICE, episode);
    lane->paint = base_random_stream(env->seed, ENV_STREAM_PAINT, episode);
    lane->steps = 0;
    lane->terminated = lane->truncated = false;
    env->rules->begin(env, lane);
    env->rules->observe(env, lane, observation);
}

void psi_env_step_one(psi_env *env, size_t i, int32_t action, void *observation, double *reward,
                      bool *terminated, bool *truncated)
{
    if (FREED(NULL, env)) return;
    env_lane *lane = &env->lanes[i];
    *reward = 0.0;
    if (!lane->terminated && !lane->truncated) {
        lane->terminated = env->rules->act(env, lane, action, reward);
        lane->steps++;
        lane->truncated = !lane->terminated && lane->steps >= env->task.max_steps;
        env->rules->observe(env, lane, observation);
    }
    *terminated = lane->terminated;
    *truncated = lane->truncated;
}

// What a thread needs for its share of the batch.
typedef struct env_batch {
    psi_env *env;
    const uint8_t *which;
    const int32_t *actions;
    char *observations;
    double *rewards;
    uint8_t *terminated, *truncated;
} env_batch;

static void reset_share(void *argument, int thread, int threads)
{
    const env_batch *batch = argument;
    psi_env *env = batch->env;
    size_t begin, end;
    base_slice(env->n, thread, threads, &begin, &end);
    for (size_t i = begin; i < end; i++) {
        if (batch->which && !batch->which[i]) continue;
        const uint64_t episode = (uint64_t)i << 32 | env->lanes[i].episode++;
        psi_env_begin_one(env, i, episode, batch->observations + i * env->space.row_bytes);
    }
}

static void step_share(void *argument, int thread, int threads)
{
    const env_batch *batch = argument;
    psi_env *env = batch->env;
    size_t begin, end;
    base_slice(env->n, thread, threads, &begin, &end);
    for (size_t i = begin; i < end; i++) {
        bool terminated, truncated;
        psi_env_step_one(env, i, batch->actions[i], batch->observations + i * env->space.row_bytes,
                         &batch->rewards[i], &terminated, &truncated);
        batch->terminated[i] = terminated;
        batch->truncated[i] = truncated;
    }
}

static void run(psi_ctx *ctx, base_task *share, env_batch *batch)
{
    if (batch->env->n < batch->env->parallel_from) {
        share(batch, 0, 1);
    } else {
        base_team_run(base_ctx_team(ctx), share, batch);
    }
}

psi_status psi_env_reset(psi_ctx *ctx, psi_env *env, const uint8_t *which, void *observations)
{
    if (FREED(ctx, env)) return PSI_EUSAGE;
    run(ctx, reset_share, &(env_batch){.env = env, .which = which, .observations = observations});
    return base_cancelled(ctx);
}

psi_status psi_env_step(psi_ctx *ctx, psi_env *env, const int32_t *actions, void *observations,
                        double *rewards, uint8_t *terminated, uint8_t *truncated)
{
    if (FREED(ctx, env)) return PSI_EUSAGE;
    for (size_t i = 0; i < env->n; i++) {
        if (actions[i] < 0 || (size_t)actions[i] >= env->space.n_actions) {
            return FAIL(ctx, PSI_EUSAGE, "environment %zu: there is no action %d, only 0 to %zu", i,
                        actions[i], env->space.n_actions - 1);
        }
    }
    run(ctx, step_share,
        &(env_batch){env, NULL, actions, observations, rewards, terminated, truncated});
    return base_cancelled(ctx);
}
