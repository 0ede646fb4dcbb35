// Column World and Point Column World (paper, figures 1 and 4): a deterministic grid in which only
// the column matters. The paper starts "in the right column" but reports episodes that end there:
// the default is to start in the left column and to end on entering the right one.
#include "env/rules.h"

#include <string.h>

void env_column_move(const psi_task *task, int action, int *row, int *column)
{
    switch (action) {
    case PSI_MOVE_UP: *row -= *row > 0; break;
    case PSI_MOVE_DOWN: *row += *row < task->height - 1; break;
    case PSI_MOVE_LEFT: *column -= *column > 0; break;
    default: *column += *column < task->width - 1; break;
    }
}

double env_column_reward(const psi_task *task, int from_column, int to_column)
{
    const int right = task->width - 1;
    const bool rewarded = task->reward == PSI_REWARD_BEING
                              ? from_column == right
                              : from_column != right && to_column == right;
    return rewarded ? 1.0 : 0.0;
}

bool env_column_terminal(const psi_task *task, int column)
{
    return task->terminate && column == task->width - 1;
}

int32_t env_column_latent(const psi_task *task, int column)
{
    return env_column_terminal(task, column) ? 0 : 1 + column;
}

static void column_begin(const psi_env *env, env_lane *lane)
{
    const psi_task *task = &env->task;
    lane->row = (int)base_random_below(&lane->dice, (uint32_t)task->height);
    lane->column = task->start_column;
    if (task->start_column == PSI_ANY) {
        const int columns = task->width - task->terminate;
        lane->column = (int)base_random_below(&lane->dice, (uint32_t)columns);
    }
}

static bool column_act(const psi_env *env, env_lane *lane, int32_t action, double *reward)
{
    const int from = lane->column;
    env_column_move(&env->task, action, &lane->row, &lane->column);
    *reward = env_column_reward(&env->task, from, lane->column);
    return env_column_terminal(&env->task, lane->column);
}

static uint64_t column_ground_state(const psi_env *env, const env_lane *lane)
{
    return (uint64_t)lane->row * (uint64_t)env->task.width + (uint64_t)lane->column;
}

static int32_t column_latent_state(const psi_env *env, const env_lane *lane)
{
    return env_column_latent(&env->task, lane->column);
}

static void column_observe(const psi_env *env, env_lane *lane, void *observation)
{
    const int64_t cell = (int64_t)column_ground_state(env, lane);
    memcpy(observation, &cell, sizeof cell);
}

// A float has 24 bits: those that the cell's corner does not need are left for the place inside
// the cell, less one that keeps the point off the border.
int env_point_fraction_bits(const psi_task *task)
{
    const int side = task->width > task->height ? task->width : task->height;
    int bits = 23;
    for (int cells = 1; cells < side; cells *= 2) bits--;
    return bits;
}

// Uniform on (0, 1), both ends excluded, also after the cell's corner was added in float.
static float inside_cell(const psi_env *env, base_random *paint)
{
    const uint32_t draw = base_random_u32(paint) >> (32 - env->fraction_bits);
    return ((float)draw + 0.5F) / (float)(1U << env->fraction_bits);
}

static void point_observe(const psi_env *env, env_lane *lane, void *observation)
{
    const float corner[2] = {(float)lane->column, (float)(env->task.height - 1 - lane->row)};
    const float point[2] = {corner[0] + inside_cell(env, &lane->paint),
                            corner[1] + inside_cell(env, &lane->paint)};
    memcpy(observation, point, sizeof point);
}

const env_rules ENV_COLUMN_WORLD = {column_begin,        column_act,          column_observe,
                                    column_ground_state, column_latent_state, NULL};
const env_rules ENV_POINT_COLUMN_WORLD = {column_begin,        column_act,          point_observe,
                                          column_ground_state, column_latent_state, NULL};
