// The combination lock of STEEL (Levine et al., ICLR 2025; midi-lab/steel): K latent states on a
// ring, two actions. The right one goes on, the other one back to the first state; a reward, which
// STEEL has none of, for going round. One of K bits shows the state, all others are Markov chains
// of their own, each with its own odds to flip.
#include "env/rules.h"

#include <string.h>

static const double LEAST_FLIP = 0.1; // flips have odds of .1 to .9

void env_bit_lock_draw(const psi_task *task, env_code *code)
{
    base_random random = base_random_stream(task->instance, ENV_STREAM_CODE, 0);
    uint32_t order[PSI_MAX_BITS];
    const double range = 1.0 - 2.0 * LEAST_FLIP;
    for (int i = 0; i < task->bits; i++) {
        order[i] = (uint32_t)i;
        code->rise[i] = LEAST_FLIP + range * base_random_uniform(&random);
        code->fall[i] = LEAST_FLIP + range * base_random_uniform(&random);
    }
    base_random_shuffle(&random, order, (size_t)task->bits);
    for (int s = 0; s < task->levels; s++) {
        code->place[s] = (uint16_t)order[s];
        code->right[0][s] = (uint8_t)base_random_below(&random, 2);
    }
}

int env_bit_lock_next(const psi_task *task, const env_code *code, int state, int action,
                      double *reward)
{
    const bool right = action == code->right[0][state], last = state == task->levels - 1;
    *reward = right && last ? 1.0 : 0.0;
    return right && !last ? state + 1 : 0;
}

static void bit_begin(const psi_env *env, env_lane *lane)
{
    lane->state = (int)base_random_below(&lane->dice, (uint32_t)env->task.levels);
    memset(lane->bits, 0, sizeof lane->bits);
}

static bool bit_act(const psi_env *env, env_lane *lane, int32_t action, double *reward)
{
    lane->state = env_bit_lock_next(&env->task, env->code, lane->state, action, reward);
    return false;
}

// All bits flip by their own odds, from fair coins at the beginning; those of states then show the
// one that it is.
static void bit_observe(const psi_env *env, env_lane *lane, void *observation)
{
    const env_code *code = env->code;
    uint8_t *seen = observation;
    for (int i = 0; i < env->task.bits; i++) {
        const uint64_t bit = (uint64_t)1 << i % 64;
        uint64_t *word = &lane->bits[i / 64];
        const double flip = lane->steps == 0 ? 0.5 : *word & bit ? code->fall[i] : code->rise[i];
        if (base_random_uniform(&lane->paint) < flip) *word ^= bit;
        seen[i] = (*word & bit) != 0;
    }
    for (int s = 0; s < env->task.levels; s++) seen[code->place[s]] = s == lane->state;
}

static uint64_t bit_ground_state(const psi_env *env, const env_lane *lane)
{
    (void)env;
    return (uint64_t)lane->state;
}

// No two are alike: the right actions from a state on bring a reward after as many steps as it is
// away from the end, and from no other state then and only then.
static int32_t bit_latent_state(const psi_env *env, const env_lane *lane)
{
    (void)env;
    return 1 + lane->state;
}

static double bit_behaviour(const psi_env *env, const env_lane *lane, int32_t *right)
{
    *right = env->code->right[0][lane->state];
    return env->task.random_share;
}

const env_rules ENV_BIT_LOCK = {bit_begin,        bit_act,          bit_observe,
                                bit_ground_state, bit_latent_state, bit_behaviour};
