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
enum {
    ENV_STREAM_DICE = 0x656e7601,
    ENV_STREAM_PAINT,
    ENV_STREAM_DRAWN,
    ENV_STREAM_DRAWN_TEST,
    ENV_STREAM_CODE
};

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
        struct {
            int state;
            uint64_t bits[PSI_MAX_BITS / 64];
        };
        struct {
            int level, which; // which: ENV_GOOD, ENV_OTHER_GOOD or ENV_DEAD
            int random_from;  // the behaviour's
        };
    };
} env_lane;

typedef struct env_rules {
    void (*begin)(const psi_env *env, env_lane *lane);
    bool (*act)(const psi_env *env, env_lane *lane, int32_t action, double *reward); // → terminal?
    void (*observe)(const psi_env *env, env_lane *lane, void *observation);
    uint64_t (*ground_state)(const psi_env *env, const env_lane *lane);
    int32_t (*latent_state)(const psi_env *env, const env_lane *lane);
    double (*behaviour)(const psi_env *env, const env_lane *lane, int32_t *right); // NULL: random
} env_rules;

// What is drawn once for a bit lock or a rich lock, by the number of its instance.
typedef struct env_code {
    uint8_t right[2][PSI_MAX_LEVELS];              // the action that goes on, by good state
    uint16_t place[PSI_MAX_LEVELS];                // of the bit that shows a state
    double rise[PSI_MAX_BITS], fall[PSI_MAX_BITS]; // how probably a bit flips, from 0 and from 1
} env_code;

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
    env_code *code;          // of the bit lock and the rich lock
    size_t parallel_from;    // batches this large are worth more than one thread
};

extern const env_rules ENV_COLUMN_WORLD, ENV_POINT_COLUMN_WORLD, ENV_COMBINATION_LOCK, ENV_BIT_LOCK,
    ENV_RICH_LOCK;

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

// The bit lock: the next state and its reward. Deterministic.
void env_bit_lock_draw(const psi_task *task, env_code *code);
int env_bit_lock_next(const psi_task *task, const env_code *code, int state, int action,
                      double *reward);

// The rich lock: whether an action goes on from a level; what that brings at the last level, and
// what a mistake brings half of the time; the numbers in an observation.
enum { ENV_GOOD, ENV_OTHER_GOOD, ENV_DEAD, ENV_RICH_STATES, ENV_RICH_ACTIONS = 10 };
#define ENV_RICH_CONSOLATION 0.1
void env_rich_lock_draw(const psi_task *task, env_code *code);
bool env_rich_lock_goes_on(const env_code *code, int level, int which, int action);
int32_t env_rich_lock_latent(const psi_task *task, const env_code *code, int level, int which);
size_t env_rich_lock_width(const psi_task *task);

#endif
