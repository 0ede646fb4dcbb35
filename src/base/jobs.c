#include "base/jobs.h"

#include "base/context.h"
#include "base/threads.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct jobs {
    psi_ctx *ctx, **own; // (threads)
    size_t n, done;
    base_job *job;
    void *user;
    void (*finished)(void *user, size_t job, size_t done);
    atomic_size_t claimed;
    pthread_mutex_t lock; // of done and status
    psi_status status;
} jobs;

// Adds one to what is done, or keeps the first failure. Says whether to go on.
static bool settle(jobs *all, size_t job, psi_ctx *own, psi_status status)
{
    pthread_mutex_lock(&all->lock);
    if (status == PSI_OK) {
        all->done++;
        if (all->finished) all->finished(all->user, job, all->done);
    } else if (all->status == PSI_OK) {
        all->status = FAIL(all->ctx, status, "%s", psi_error(own)->message);
    }
    const bool go_on = all->status == PSI_OK;
    pthread_mutex_unlock(&all->lock);
    return go_on;
}

static void work(void *argument, int thread, int threads)
{
    (void)threads;
    jobs *all = argument;
    psi_ctx *own = all->own[thread];
    for (;;) {
        const size_t job = atomic_fetch_add(&all->claimed, 1);
        if (job >= all->n) return;
        psi_status status = base_cancelled(own);
        if (status == PSI_OK) status = all->job(all->user, own, job);
        if (!settle(all, job, own, status)) return;
    }
}

psi_status base_jobs_run(psi_ctx *ctx, size_t n, base_job *job, void *user,
                         void (*finished)(void *user, size_t job, size_t done))
{
    psi_status status = PSI_OK;
    const size_t threads = (size_t)psi_threads(ctx);
    jobs all = {.ctx = ctx, .n = n, .job = job, .user = user, .finished = finished};
    pthread_mutex_init(&all.lock, NULL);
    atomic_init(&all.claimed, 0);
    TRY(base_alloc_zero(ctx, threads, sizeof *all.own, &all.own));
    for (size_t t = 0; t < threads; t++) TRY(base_ctx_child(ctx, 1, &all.own[t]));
    base_team_run(base_ctx_team(ctx), work, &all);
    status = all.status;
done:
    for (size_t t = 0; all.own && t < threads; t++) psi_ctx_free(all.own[t]);
    base_free(ctx, all.own);
    pthread_mutex_destroy(&all.lock);
    return status;
}
