// The inside of a batch of environments: one lane per environment, and the rules of a task as a
// handful of functions. What happens (act) and what is seen of it (observe) are kept apart and roll
// different dice, so that a lock behaves the same whatever its digits look like.
#ifndef PSI_ENV_RULES_H
#define PSI_ENV_RULES_H

#include "base/random.h"
#include "env/digits.h"
#include "env/lock_latent.h"

#include <psifold/env.h>

// Names of the random streams of this room.
enum { ENV_STREAM_DICE = 0x656e7601, ENV_STREAM_PAINT, ENV_STREAM_DRAWN, ENV_STREAM_DRAWN_TEST };

typedef struct env_lane {
    base_random dice, paint;
    uint32_t episode; // how many psi_env_reset has begun
    uint32_t steps;
    bool terminated, truncated;
    union {
        struct {
            int row, column;
        };
        uint8_t digit[PSI_MAX_DIALS];
    };
} env_lane;

typedef struct env_rules {
    void (*begin)(const psi_env *env, env_lane *lane);
    bool (*act)(const psi_env *env, env_lane *lane, int32_t action, double *reward); // → terminal?
    void (*observe)(const psi_env *env, env_lane *lane, void *observation);
    uint64_t (*ground_state)(const psi_env *env, const env_lane *lane);
    int32_t (*latent_state)(const psi_env *env, const env_lane *lane);
} env_rules;

struct psi_env {
    psi_task task;
    psi_task_space space;
    const env_rules *rules;
    uint64_t seed;
    size_t n;
    env_lane *lanes;
    env_digits *images;      // of the lock; NULL if it has none
    env_lock_latent *latent; // of the lock
    int fraction_bits;       // how finely a point lies inside its cell
    size_t parallel_from;    // batches this large are worth more than one thread
};

extern const env_rules ENV_COLUMN_WORLD, ENV_POINT_COLUMN_WORLD, ENV_COMBINATION_LOCK;

// Column worlds: where a move leads, and what it brings. Deterministic.
void env_column_move(const psi_task *task, int action, int *row, int *column);
double env_column_reward(const psi_task *task, int from_column, int to_column);
bool env_column_terminal(const psi_task *task, int column);
int32_t env_column_latent(const psi_task *task, int column);
int env_point_fraction_bits(const psi_task *task);

// The lock: the digits after an action; spun is what a broken dial stops at.
void env_lock_turn(const psi_task *task, int action, uint8_t spun, uint8_t digit[PSI_MAX_DIALS]);
bool env_lock_matches(const psi_task *task, const uint8_t digit[PSI_MAX_DIALS]);
bool env_lock_spins(const psi_task *task, int action); // the action's outcome is random
uint64_t env_lock_number(const psi_task *task, const uint8_t digit[PSI_MAX_DIALS]);

#endif
