// Independent jobs side by side: each runs on one thread with a context of its own, so that what it
// computes does not depend on how many run at once.
#ifndef PSI_BASE_JOBS_H
#define PSI_BASE_JOBS_H

#include <psifold/base.h>

typedef psi_status base_job(void *user, psi_ctx *own, size_t job);

// Runs jobs 0 … n−1 on the context's threads, in order of their numbers as threads become free. The
// first failure keeps further jobs from starting and is returned, with its sentence. Jobs may use
// their own context only. finished, called after each job on the thread that ran it, one at a time,
// gets how many are done; it may be NULL.
psi_status base_jobs_run(psi_ctx *ctx, size_t n, base_job *job, void *user,
                         void (*finished)(void *user, size_t job, size_t done));

#endif
