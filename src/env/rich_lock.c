// The lock with rich observations of HOMER (Misra et al., ICML 2020) as BRIEE and Hy-Q have it
// (yudasong/briee, yudasong/HyQ): at every step two good states, each with one right action of ten,
// which leads to either of the next step's with even odds, and a dead one. A mistake is death and
// brings 0.1 half of the time; the right action of the last step brings 1. What is seen: the state
// and the step as ones, noise around them, all turned by a Hadamard matrix.
#include "env/rules.h"

static const double NOISE = 0.1; // standard deviation

void env_rich_lock_draw(const psi_task *task, env_code *code)
{
    base_random random = base_random_stream(task->instance, ENV_STREAM_CODE, 0);
    for (int which = ENV_GOOD; which < ENV_DEAD; which++) {
        for (int level = 0; level < task->levels; level++) {
            code->right[which][level] = (uint8_t)base_random_below(&random, ENV_RICH_ACTIONS);
        }
    }
}

bool env_rich_lock_goes_on(const env_code *code, int level, int which, int action)
{
    return which != ENV_DEAD && action == code->right[which][level];
}

// The end, and then step by step: two good states are one where their right actions are, because
// they lead to the same; all else is told apart by rewards or by when the episode ends.
int32_t env_rich_lock_latent(const psi_task *task, const env_code *code, int level, int which)
{
    int32_t latent = 1;
    if (level == task->levels) return 0;
    for (int before = 0; before < level; before++) {
        latent += 2 + (code->right[ENV_GOOD][before] != code->right[ENV_OTHER_GOOD][before]);
    }
    const bool alike = code->right[ENV_GOOD][level] == code->right[ENV_OTHER_GOOD][level];
    return latent + which - (alike && which > ENV_GOOD);
}

// The power of two that has room for three states, a one for each step and one for the end.
size_t env_rich_lock_width(const psi_task *task)
{
    size_t width = 1;
    while (width < (size_t)task->levels + ENV_RICH_STATES + 1) width *= 2;
    return width;
}

static void rich_begin(const psi_env *env, env_lane *lane)
{
    lane->level = 0;
    lane->which = (int)base_random_below(&lane->dice, ENV_DEAD);
    lane->random_from = (int)base_random_below(&lane->dice, (uint32_t)env->task.levels);
}

static bool rich_act(const psi_env *env, env_lane *lane, int32_t action, double *reward)
{
    const bool heads = base_random_below(&lane->dice, 2) == 1;
    if (env_rich_lock_goes_on(env->code, lane->level, lane->which, action)) {
        *reward = lane->level == env->task.levels - 1 ? 1.0 : 0.0;
        lane->which = heads ? ENV_GOOD : ENV_OTHER_GOOD;
    } else {
        *reward = lane->which != ENV_DEAD && heads ? ENV_RICH_CONSOLATION : 0.0;
        lane->which = ENV_DEAD;
    }
    return ++lane->level == env->task.levels;
}

// Sylvester's Hadamard matrix times x, in n log n steps.
static void rotate(size_t n, float *x)
{
    for (size_t half = 1; half < n; half *= 2) {
        for (size_t i = 0; i < n; i++) {
            if (i & half) continue;
            const float sum = x[i] + x[i + half], difference = x[i] - x[i + half];
            x[i] = sum;
            x[i + half] = difference;
        }
    }
}

// There is no noise on the end's one, nor where there is nothing.
static void rich_observe(const psi_env *env, env_lane *lane, void *observation)
{
    float *seen = observation;
    const size_t width = env_rich_lock_width(&env->task);
    const size_t noisy = (size_t)env->task.levels + ENV_RICH_STATES;
    for (size_t i = 0; i < width; i++) {
        seen[i] = i < noisy ? (float)(NOISE * base_random_normal(&lane->paint)) : 0.0F;
    }
    seen[lane->which] += 1.0F;
    seen[ENV_RICH_STATES + lane->level] += 1.0F;
    rotate(width, seen);
}

static uint64_t rich_ground_state(const psi_env *env, const env_lane *lane)
{
    (void)env;
    return ENV_RICH_STATES * (uint64_t)lane->level + (uint64_t)lane->which;
}

static int32_t rich_latent_state(const psi_env *env, const env_lane *lane)
{
    return env_rich_lock_latent(&env->task, env->code, lane->level, lane->which);
}

// Hy-Q's offline sets. The right action but for a share of random ones and one in the middle
// ("optimal trajectory"); or the right one until a random step, where its set of transitions has a
// random action ("optimal occupancy"): here the episode goes on, at random. The dead do as if they
// were in the second good state.
static double rich_behaviour(const psi_env *env, const env_lane *lane, int32_t *right)
{
    const psi_task *task = &env->task;
    const int which = lane->which == ENV_GOOD ? ENV_GOOD : ENV_OTHER_GOOD;
    *right = lane->level < task->levels ? env->code->right[which][lane->level] : 0;
    if (task->occupancy) return lane->level < lane->random_from ? 0.0 : 1.0;
    return lane->level == task->levels / 2 ? 1.0 : task->random_share;
}

const env_rules ENV_RICH_LOCK = {rich_begin,        rich_act,          rich_observe,
                                 rich_ground_state, rich_latent_state, rich_behaviour};
