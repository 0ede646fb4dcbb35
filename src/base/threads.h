// A team of threads that share work in lockstep. The caller is thread 0; the others sleep between
// runs. Waiting spins for a few microseconds, because steps of a network are that short, and then
// sleeps, because the cores may be somebody else's.
#ifndef PSI_BASE_THREADS_H
#define PSI_BASE_THREADS_H

#include <psifold/base.h>

typedef struct base_team base_team;
typedef void base_task(void *argument, int thread, int threads);

psi_status base_team_new(psi_ctx *ctx, int threads, base_team **out);
void base_team_free(psi_ctx *ctx, base_team *team);
int base_team_size(const base_team *team);

// Runs task(argument, t, size) on every thread t of the team and returns when all have returned.
// Not to be called from inside a task.
void base_team_run(base_team *team, base_task *task, void *argument);

// Inside a task: waits until every thread of the team has arrived.
void base_team_barrier(base_team *team);

// The part [*begin, *end) of n items that belongs to a thread: as even as can be, in order.
static inline void base_slice(size_t n, int thread, int threads, size_t *begin, size_t *end)
{
    const size_t share = n / (size_t)threads, rest = n % (size_t)threads, t = (size_t)thread;
    *begin = t * share + (t < rest ? t : rest);
    *end = *begin + share + (t < rest);
}

#endif
