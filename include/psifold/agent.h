// psifold/agent.h: what acts in the tasks. So far: an agent that chooses at random, to collect
// data.
#ifndef PSIFOLD_AGENT_H
#define PSIFOLD_AGENT_H

#include <psifold/base.h>
#include <psifold/data.h>
#include <psifold/env.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct psi_collect_result {
    uint64_t episodes, steps, terminated;
} psi_collect_result;

// What a writer or collector has to know about the trajectories of a task. task must be checked;
// name and task_options are left NULL for the caller to fill in.
PSI_API psi_episode_spec psi_collect_spec(const psi_task *task);

// Episodes of uniformly random actions, as in the paper. They are generated on all threads of the
// context while earlier ones are delivered, and reach deliver in order and on the caller's thread;
// the same seed gives the same bytes on any number of threads. An error of deliver ends it and is
// returned. result may be NULL; it tells what was delivered also on failure.
PSI_API psi_status psi_collect(psi_ctx *ctx, const psi_task *task, uint64_t episodes, uint64_t seed,
                               psi_status (*deliver)(void *user, const psi_episode *episode),
                               void *user, psi_collect_result *result);

#ifdef __cplusplus
}
#endif
#endif
