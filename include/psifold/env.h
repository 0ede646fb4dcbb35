// psifold/env.h: the tasks of the paper and two of others as environments, and what is exactly true
// about them.
//
// A task is a plain description. psi_env_new makes a batch of environments of it that step over the
// caller's buffers; psi_task_model writes down its transitions and rewards exactly.
#ifndef PSIFOLD_ENV_H
#define PSIFOLD_ENV_H

#include <psifold/base.h>

#ifdef __cplusplus
extern "C" {
#endif

// X(name, text, what it is)
#define PSI_TASK_TABLE(X)                                                                          \
    X(COLUMN_WORLD, "column-world",                                                                \
      "a grid whose right column is rewarding; the observation is the index of the cell")          \
    X(POINT_COLUMN_WORLD, "point-column-world",                                                    \
      "the same grid seen as a random point (x, y) inside the cell")                               \
    X(COMBINATION_LOCK, "combination-lock",                                                        \
      "dials with digits to turn to a rewarding combination, seen as images of the digits")        \
    X(BIT_LOCK, "bit-lock",                                                                        \
      "a ring of states with one right action each, seen as a bit among hundreds that flip")       \
    X(RICH_LOCK, "rich-lock",                                                                      \
      "two good states and a dead one at every step, seen as rotated noise around them")

typedef enum psi_task_kind {
#define X(name, text, what) PSI_##name,
    PSI_TASK_TABLE(X)
#undef X
} psi_task_kind;

// Where the images of the lock come from; without images the observation is the number of the
// combination.
#define PSI_DIGITS_TABLE(X)                                                                        \
    X(DRAWN, "drawn")                                                                              \
    X(DRAWN_TEST, "drawn-test")                                                                    \
    X(MNIST, "mnist")                                                                              \
    X(MNIST_TEST, "mnist-test")                                                                    \
    X(NONE, "none")

typedef enum psi_digits {
#define X(name, text) PSI_DIGITS_##name,
    PSI_DIGITS_TABLE(X)
#undef X
} psi_digits;

// What is rewarded about the right column.
typedef enum psi_column_reward {
    PSI_REWARD_ENTERING, // 1 for a step from another column into the right one
    PSI_REWARD_BEING,    // 1 for every step that begins in the right column
} psi_column_reward;

// The actions of the column worlds. Row 0 is the top row and cell = row · width + column; x grows
// to the right and y upwards, so that the top left cell of the paper's grid is (0, 1) × (3, 4).
enum { PSI_MOVE_UP, PSI_MOVE_DOWN, PSI_MOVE_LEFT, PSI_MOVE_RIGHT };

enum {
    PSI_MAX_DIALS = 32,
    PSI_MAX_DIGITS = 16, // on one dial: 0 … 9, A … F
    PSI_ANY = -1,        // a wildcard in the rewarding combination; any start column
    PSI_NO_DIAL = -1,
    PSI_DIGIT_SIDE = 28,  // pixels
    PSI_MAX_BITS = 512,   // of the bit lock
    PSI_MAX_LEVELS = 508, // latent states of the bit lock, steps of the rich lock
    PSI_TASK_JSON_SIZE = 4096
};

// A task. Made by psi_task_defaults, changed by hand or by psi_task_set. Dials and columns are
// counted from 0 here and from 1 in the options. Dial i turns by one when action i is chosen: up,
// or down if it is reversed. A broken dial takes a uniformly random digit instead, and a dial that
// swaps exchanges its digit with another one's.
typedef struct psi_task {
    psi_task_kind kind;
    const char *preset; // the name it started from
    uint32_t max_steps; // an episode that is not over by then is truncated

    int width, height; // of the column worlds
    int start_column;  // PSI_ANY: uniform over all columns that are not terminal
    psi_column_reward reward;
    bool terminate; // entering the right column ends the episode

    int dials, digits_per_dial;
    bool broken[PSI_MAX_DIALS], reversed[PSI_MAX_DIALS];
    int swap[2];              // action swap[0] exchanges these two digits; PSI_NO_DIAL: none does
    int goal[PSI_MAX_DIALS];  // the rewarding combination, which ends the episode
    int start[PSI_MAX_DIALS]; // 0 … 0
    psi_digits digits;
    uint32_t images_per_digit; // how many images of each digit are drawn

    int levels;          // states of the bit lock, steps of an episode of the rich lock
    int bits;            // of an observation of the bit lock
    uint32_t instance;   // which lock: right actions, places of bits, how often they flip
    double random_share; // share of random actions in data of these locks; the others are right
    bool occupancy;      // … of the rich lock: right until a random step, random from there on

    uint32_t given; // which options psi_task_set has seen
    int goal_length, start_length;
} psi_task;

// A variant of a task, by name.
typedef struct psi_task_preset {
    psi_task_kind kind;
    const char *name, *what;
} psi_task_preset;

// What can be chosen about a task: see psi_task_set.
typedef struct psi_task_option {
    const char *name;     // "dials"
    const char *argument; // "N"; NULL for a switch
    const char *what;
    unsigned kinds; // bit 1 << kind is set for every task that has it
} psi_task_option;

// The tables behind `psifold tasks` and the command's help; the first preset of a task is its
// default.
PSI_API const char *psi_task_name(psi_task_kind kind);
PSI_API const char *psi_task_what(psi_task_kind kind);
PSI_API const psi_task_preset *psi_task_presets(size_t *n);
PSI_API const psi_task_option *psi_task_options(size_t *n);
enum { PSI_TASK_KINDS = 5 };

// The task of this name; preset NULL is the default one. PSI_EUSAGE names those there are.
PSI_API psi_status psi_task_defaults(psi_ctx *ctx, const char *name, const char *preset,
                                     psi_task *out);

// One option as on the command line, without the dashes: psi_task_set(ctx, &task, "broken", "1,3").
// A switch (terminate, no-terminate) has the value NULL. An option that changes dials, digits or
// what is broken brings back the default goal, unless goal is given, too. PSI_EUSAGE for an option
// that this task does not have or a value that makes no sense; the task is as it was then.
PSI_API psi_status psi_task_set(psi_ctx *ctx, psi_task *task, const char *option,
                                const char *value);

// Fills in what the options left open (the default goal: the highest digit on every working dial, a
// wildcard on the broken ones) and refuses, with PSI_EUSAGE or PSI_ELIMIT, what contradicts itself.
PSI_API psi_status psi_task_check(psi_ctx *ctx, psi_task *task);

// A checked task as JSON text, {"task": …, "preset": …, "options": {…}} with the options as they
// stand on a command line, and back.
PSI_API psi_status psi_task_json(psi_ctx *ctx, const psi_task *task, char text[PSI_TASK_JSON_SIZE]);
PSI_API psi_status psi_task_from_json(psi_ctx *ctx, const char *text, psi_task *out);

// What an agent sees of a task.
typedef struct psi_task_space {
    psi_dtype dtype;
    psi_shape shape;
    size_t row_bytes; // of one observation
    double low, high;
    size_t n_actions;
} psi_task_space;

// The space of a checked task.
PSI_API psi_task_space psi_task_observe(const psi_task *task);

// A batch of environments. Environment i rolls its own dice: what happens in it depends on the
// task, the seed, i, the number of its episode and the actions, and on nothing else.
typedef struct psi_env psi_env;

// Checks the task, loads or draws the digits and takes all the memory the steps will need.
// PSI_EMISSING if the MNIST files are not there. *out belongs to the caller.
PSI_API psi_status psi_env_new(psi_ctx *ctx, const psi_task *task, size_t n_envs, uint64_t seed,
                               psi_env **out);
PSI_API void psi_env_free(psi_ctx *ctx, psi_env *env);

// How many environments there are in the batch.
PSI_API size_t psi_env_count(const psi_env *env);
PSI_API const psi_task *psi_env_task(const psi_env *env); // as checked and completed
PSI_API const psi_task_space *psi_env_space(const psi_env *env);

// Begins the next episode of every environment i with which[i] ≠ 0 (which NULL: of all) and writes
// row i of observations; the other rows stay as they are. Parallel on the context's threads.
PSI_API psi_status psi_env_reset(psi_ctx *ctx, psi_env *env, const uint8_t *which,
                                 void *observations);

// One step of every environment: actions, rewards, terminated, truncated have n entries,
// observations n rows. An environment whose episode is over stands still (reward 0, its flags as
// they were) until it is reset. PSI_EUSAGE for an action that does not exist; no environment has
// moved then.
PSI_API psi_status psi_env_step(psi_ctx *ctx, psi_env *env, const int32_t *actions,
                                void *observations, double *rewards, uint8_t *terminated,
                                uint8_t *truncated);

// The same for a single environment, with an episode of the caller's numbering (below 2^32 they are
// those of environment 0 in psi_env_reset). Different environments may be used by different threads
// at once. The action must exist.
PSI_API void psi_env_begin_one(psi_env *env, size_t i, uint64_t episode, void *observation);
PSI_API void psi_env_step_one(psi_env *env, size_t i, int32_t action, void *observation,
                              double *reward, bool *terminated, bool *truncated);

// How data are collected: the probability that environment i takes a uniformly random action next,
// and the action that it takes otherwise. Random actions would never open a lock of many levels;
// where they do, as in the tasks of the paper, this is 1.
PSI_API double psi_env_behaviour(const psi_env *env, size_t i, int32_t *right);

// The truth about environment i, for evaluation only. Ground states are numbered as in the model.
// Latent state 0 is the terminal one; the others are 1 + column, 1 + the digits on the dials that
// matter read as one number, or 1 + the state of the bit lock; those of the rich lock are counted
// step by step. What no reward sequence can tell apart shares a latent state.
PSI_API uint64_t psi_env_ground_state(const psi_env *env, size_t i);
PSI_API int32_t psi_env_latent_state(const psi_env *env, size_t i);

// The exact task: row s·A + a lists where action a leads from ground state s. Terminal states have
// empty rows. The cell is the ground state of the column worlds; the combination, read as one
// number with the left dial first, that of the lock; 3 · step + (0, 1: good, 2: dead) that of the
// rich lock. The bits that flip by themselves are no part of a ground state.
typedef struct psi_task_exact {
    size_t n_states, n_actions;
    size_t *offsets;        // (S·A + 1)
    int32_t *next;          // (offsets[S·A])
    double *probability;    // (offsets[S·A]) each row sums to 1
    double *reward;         // (offsets[S·A])
    uint8_t *terminal;      // (S)
    int32_t *latent_states; // (S)
    double *start;          // (S) where an episode begins, as probabilities
} psi_task_exact;

// PSI_ELIMIT if the table would have more than 2^26 entries. *out belongs to the caller.
PSI_API psi_status psi_task_model(psi_ctx *ctx, const psi_task *task, psi_task_exact **out);
PSI_API void psi_task_model_free(psi_ctx *ctx, psi_task_exact *model);

// The folder of the MNIST files: $PSIFOLD_CACHE, else $XDG_CACHE_HOME/psifold, else
// ~/.cache/psifold. PSI_EMISSING if none of them is set.
PSI_API psi_status psi_cache_folder(psi_ctx *ctx, char *path, size_t size);

// Whether all four MNIST files are in the cache folder.
PSI_API bool psi_mnist_present(psi_ctx *ctx);

// Gets the four files through the npm client, verifies them and puts them into the cache folder;
// files that are there and intact are kept. PSI_EMISSING without npm or tar, PSI_EIO if the
// download failed, PSI_EFORMAT if a checksum differs.
PSI_API psi_status psi_mnist_fetch(psi_ctx *ctx);

#ifdef __cplusplus
}
#endif
#endif
