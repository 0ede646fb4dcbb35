// What an agent remembers of its steps. Observations lie in a ring in the order in which they were
// seen, each once: the row behind a transition is its next observation.
#ifndef PSI_AGENT_REPLAY_H
#define PSI_AGENT_REPLAY_H

#include "base/random.h"

#include <psifold/base.h>

typedef struct agent_replay {
    size_t rows, row_bytes;
    uint64_t begun; // rows ever begun; the newest is number begun − 1, at (begun − 1) % rows
    size_t kept;    // rows that hold a transition to learn from
    char *observations;  // (rows) of row_bytes
    int32_t *actions;    // (rows) −1: nothing follows this row (yet)
    float *rewards;      // (rows)
    uint8_t *terminated; // (rows) the episode ended there: no next observation was stored
} agent_replay;

psi_status agent_replay_new(psi_ctx *ctx, size_t rows, size_t row_bytes, agent_replay **out);
void agent_replay_free(psi_ctx *ctx, agent_replay *replay);

// An episode begins with this observation.
void agent_replay_begin(agent_replay *replay, const void *observation);

// What followed the newest row. next is not looked at if the episode terminated.
void agent_replay_add(agent_replay *replay, int32_t action, double reward, bool terminated,
                      const void *next);

// Whether it is full and all that it holds earned nothing. O(rows).
bool agent_replay_holds_no_reward(const agent_replay *replay);

// A batch of transitions, each uniform among those kept, into the caller's arrays: n of each, rows
// of row_bytes. next is left as it was where the episode terminated. At least one must be kept.
typedef struct agent_batch {
    size_t n;
    char *observations, *next;
    int32_t *actions;
    float *rewards;
    uint8_t *terminated;
} agent_batch;

psi_status agent_batch_new(psi_ctx *ctx, size_t n, size_t row_bytes, agent_batch *batch);
void agent_batch_free(psi_ctx *ctx, agent_batch *batch);
void agent_replay_sample(const agent_replay *replay, base_random *random, agent_batch *batch);

psi_status agent_replay_save(psi_ctx *ctx, const agent_replay *replay, const char *path);

// n_states 0: rows are not numbers of states. PSI_ESHAPE for a memory of another size, PSI_EFORMAT
// for actions or states that do not exist; the memory is as it was then.
psi_status agent_replay_load(psi_ctx *ctx, agent_replay *replay, size_t n_actions, size_t n_states,
                             const char *path);

#endif
