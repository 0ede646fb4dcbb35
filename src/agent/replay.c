#include "agent/replay.h"

#include "base/context.h"

#include <psifold/data.h>

#include <math.h>
#include <string.h>

psi_status agent_replay_new(psi_ctx *ctx, size_t rows, size_t row_bytes, agent_replay **out)
{
    psi_status status = PSI_OK;
    agent_replay *replay = NULL;
    *out = NULL;
    TRY(base_alloc_zero(ctx, 1, sizeof *replay, &replay));
    replay->rows = rows;
    replay->row_bytes = row_bytes;
    TRY(base_alloc_zero(ctx, rows, row_bytes, &replay->observations));
    TRY(base_alloc(ctx, rows, sizeof *replay->actions, &replay->actions));
    TRY(base_alloc_zero(ctx, rows, sizeof *replay->rewards, &replay->rewards));
    TRY(base_alloc_zero(ctx, rows, sizeof *replay->terminated, &replay->terminated));
    for (size_t i = 0; i < rows; i++) replay->actions[i] = -1;
    *out = replay;
    replay = NULL;
done:
    agent_replay_free(ctx, replay);
    return status;
}

void agent_replay_free(psi_ctx *ctx, agent_replay *replay)
{
    if (!replay) return;
    base_free(ctx, replay->observations);
    base_free(ctx, replay->actions);
    base_free(ctx, replay->rewards);
    base_free(ctx, replay->terminated);
    base_free(ctx, replay);
}

void agent_replay_begin(agent_replay *replay, const void *observation)
{
    const size_t row = replay->begun++ % replay->rows;
    replay->kept -= replay->actions[row] >= 0; // the oldest makes room
    replay->actions[row] = -1;
    memcpy(replay->observations + row * replay->row_bytes, observation, replay->row_bytes);
}

void agent_replay_add(agent_replay *replay, int32_t action, double reward, bool terminated,
                      const void *next)
{
    const size_t row = (replay->begun - 1) % replay->rows;
    if (!terminated) agent_replay_begin(replay, next);
    replay->kept += replay->actions[row] < 0;
    replay->actions[row] = action;
    replay->rewards[row] = (float)reward;
    replay->terminated[row] = terminated;
}

bool agent_replay_holds_no_reward(const agent_replay *replay)
{
    if (replay->begun < replay->rows) return false;
    for (size_t i = 0; i < replay->rows; i++) {
        if (replay->actions[i] >= 0 && replay->rewards[i] != 0) return false;
    }
    return true;
}

psi_status agent_batch_new(psi_ctx *ctx, size_t n, size_t row_bytes, agent_batch *batch)
{
    psi_status status = PSI_OK;
    *batch = (agent_batch){.n = n};
    // zeroed: the row behind a terminated episode is predicted for, though never used
    TRY(base_alloc_zero(ctx, n, row_bytes, &batch->observations));
    TRY(base_alloc_zero(ctx, n, row_bytes, &batch->next));
    TRY(base_alloc(ctx, n, sizeof *batch->actions, &batch->actions));
    TRY(base_alloc(ctx, n, sizeof *batch->rewards, &batch->rewards));
    TRY(base_alloc(ctx, n, sizeof *batch->terminated, &batch->terminated));
done:
    return status;
}

void agent_batch_free(psi_ctx *ctx, agent_batch *batch)
{
    base_free(ctx, batch->observations);
    base_free(ctx, batch->next);
    base_free(ctx, batch->actions);
    base_free(ctx, batch->rewards);
    base_free(ctx, batch->terminated);
}

void agent_replay_sample(const agent_replay *replay, base_random *random, agent_batch *batch)
{
    const size_t filled = replay->begun < replay->rows ? (size_t)replay->begun : replay->rows;
    const size_t bytes = replay->row_bytes;
    for (size_t i = 0; i < batch->n; i++) {
        size_t row;
        do {
            row = base_random_below(random, (uint32_t)filled);
        } while (replay->actions[row] < 0);
        const size_t next = (row + 1) % replay->rows;
        memcpy(batch->observations + i * bytes, replay->observations + row * bytes, bytes);
        batch->actions[i] = replay->actions[row];
        batch->rewards[i] = replay->rewards[row];
        batch->terminated[i] = replay->terminated[row];
        if (batch->terminated[i]) continue;
        memcpy(batch->next + i * bytes, replay->observations + next * bytes, bytes);
    }
}

enum { ARRAYS = 5 };

// The whole ring as arrays of a file; begun goes with them as a single number.
static void list_arrays(const agent_replay *replay, const int64_t *begun, psi_array array[ARRAYS])
{
    const size_t n = replay->rows;
    array[0] =
        (psi_array){"observations", PSI_UINT8, {2, {n, replay->row_bytes}}, replay->observations};
    array[1] = (psi_array){"actions", PSI_INT32, {1, {n}}, replay->actions};
    array[2] = (psi_array){"rewards", PSI_FLOAT32, {1, {n}}, replay->rewards};
    array[3] = (psi_array){"terminated", PSI_UINT8, {1, {n}}, replay->terminated};
    array[4] = (psi_array){"begun", PSI_INT64, {0}, begun};
}

psi_status agent_replay_save(psi_ctx *ctx, const agent_replay *replay, const char *path)
{
    const int64_t begun = (int64_t)replay->begun;
    psi_array arrays[ARRAYS];
    list_arrays(replay, &begun, arrays);
    return psi_arrays_save(ctx, path, arrays, ARRAYS);
}

// A file may say anything: what is used as an index must be one.
static bool sound(const agent_replay *replay, size_t n_actions, size_t n_states, int64_t begun,
                  const void *const read[ARRAYS])
{
    const int32_t *state = read[0], *action = read[1];
    const float *reward = read[2];
    if (begun < 0) return false;
    for (size_t i = 0; i < replay->rows; i++) {
        if (action[i] < -1 || (action[i] >= 0 && (size_t)action[i] >= n_actions)) return false;
        if (action[i] >= 0 && (uint64_t)begun <= i) return false;
        if (!isfinite(reward[i])) return false;
        if (n_states > 0 && (state[i] < 0 || (size_t)state[i] >= n_states)) return false;
    }
    return true;
}

psi_status agent_replay_load(psi_ctx *ctx, agent_replay *replay, size_t n_actions, size_t n_states,
                             const char *path)
{
    psi_status status = PSI_OK;
    int64_t begun = 0;
    psi_array arrays[ARRAYS];
    void *read[ARRAYS] = {NULL};
    list_arrays(replay, &begun, arrays);
    for (size_t i = 0; i < ARRAYS; i++) {
        psi_shape shape;
        TRY(psi_array_load(ctx, path, arrays[i].name, arrays[i].dtype, &shape, &read[i]));
        if (!psi_shape_equal(&shape, &arrays[i].shape)) {
            status = FAIL(ctx, PSI_ESHAPE, "%s: %s belongs to a memory of another size", path,
                          arrays[i].name);
            goto done;
        }
    }
    memcpy(&begun, read[4], sizeof begun);
    if (!sound(replay, n_actions, n_states, begun, (const void *const *)read)) {
        status = FAIL(ctx, PSI_EFORMAT, "%s is not a memory of this task", path);
        goto done;
    }
    memcpy(replay->observations, read[0], replay->rows * replay->row_bytes);
    memcpy(replay->actions, read[1], replay->rows * sizeof *replay->actions);
    memcpy(replay->rewards, read[2], replay->rows * sizeof *replay->rewards);
    memcpy(replay->terminated, read[3], replay->rows);
    replay->begun = (uint64_t)begun;
    replay->kept = 0;
    for (size_t i = 0; i < replay->rows; i++) replay->kept += replay->actions[i] >= 0;
done:
    for (size_t i = 0; i < ARRAYS; i++) psi_array_free(ctx, read[i]);
    return status;
}
