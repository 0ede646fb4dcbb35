// The Combination Lock (paper, figures 5 and 6). Action i works on dial i: a working dial turns by
// one, a broken one takes a uniformly random digit, and one that swaps exchanges its digit with
// another's; nothing else moves. Arriving at the rewarding combination gives 1 and ends the
// episode.
#include "env/rules.h"

#include <string.h>

bool env_lock_spins(const psi_task *task, int action)
{
    return action != task->swap[0] && task->broken[action];
}

void env_lock_turn(const psi_task *task, int action, uint8_t spun, uint8_t digit[PSI_MAX_DIALS])
{
    uint8_t *dial = &digit[action];
    const int digits = task->digits_per_dial;
    if (action == task->swap[0]) {
        uint8_t *other = &digit[task->swap[1]];
        const uint8_t kept = *dial;
        *dial = *other;
        *other = kept;
    } else if (task->broken[action]) {
        *dial = spun;
    } else if (task->reversed[action]) {
        *dial = (uint8_t)(*dial == 0 ? digits - 1 : *dial - 1);
    } else {
        *dial = (uint8_t)(*dial == digits - 1 ? 0 : *dial + 1);
    }
}

bool env_lock_matches(const psi_task *task, const uint8_t digit[PSI_MAX_DIALS])
{
    for (int i = 0; i < task->dials; i++) {
        if (task->goal[i] != PSI_ANY && task->goal[i] != digit[i]) return false;
    }
    return true;
}

uint64_t env_lock_number(const psi_task *task, const uint8_t digit[PSI_MAX_DIALS])
{
    uint64_t number = 0;
    for (int i = 0; i < task->dials; i++) {
        number = number * (uint64_t)task->digits_per_dial + digit[i];
    }
    return number;
}

static void lock_begin(const psi_env *env, env_lane *lane)
{
    for (int i = 0; i < env->task.dials; i++) lane->digit[i] = (uint8_t)env->task.start[i];
}

static bool lock_act(const psi_env *env, env_lane *lane, int32_t action, double *reward)
{
    const psi_task *task = &env->task;
    uint8_t spun = 0;
    if (env_lock_spins(task, action)) {
        spun = (uint8_t)base_random_below(&lane->dice, (uint32_t)task->digits_per_dial);
    }
    env_lock_turn(task, action, spun, lane->digit);
    const bool open = env_lock_matches(task, lane->digit);
    *reward = open ? 1.0 : 0.0;
    return open;
}

static uint64_t lock_ground_state(const psi_env *env, const env_lane *lane)
{
    return env_lock_number(&env->task, lane->digit);
}

static int32_t lock_latent_state(const psi_env *env, const env_lane *lane)
{
    return env_lock_latent_state(env->latent, &env->task, lane->digit);
}

// Every image is drawn anew at each step, also those of dials that did not move.
static void lock_observe(const psi_env *env, env_lane *lane, void *observation)
{
    if (!env->images) {
        const int64_t number = (int64_t)lock_ground_state(env, lane);
        memcpy(observation, &number, sizeof number);
        return;
    }
    uint8_t *image = observation;
    for (int i = 0; i < env->task.dials; i++) {
        memcpy(image, env_digits_pick(env->images, lane->digit[i], &lane->paint), ENV_DIGIT_BYTES);
        image += ENV_DIGIT_BYTES;
    }
}

const env_rules ENV_COMBINATION_LOCK = {lock_begin,        lock_act,          lock_observe,
                                        lock_ground_state, lock_latent_state, NULL};
