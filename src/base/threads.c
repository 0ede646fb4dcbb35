// The team: one generation counter starts a run, one ends it, one is the barrier's.
#include "base/threads.h"

#include "base/context.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

// About half a millisecond before a waiter goes to sleep, since being woken takes longer than many
// a step: Point Column World takes 36 s at 20 µs, 27 s at 0.2 ms, 23 s at 1 ms. Every 20 µs it lets
// others go first: two such runs side by side take 39 s that way, and 74 s without.
enum { SPINS = 10000, BEFORE_OTHERS = 400 };

struct base_team {
    int size;
    base_task *task;
    void *argument;
    atomic_uint started, finished; // generations of runs
    atomic_int running;            // helpers still inside the task
    atomic_uint passed;            // generations of barriers
    atomic_int arrived;
    bool quit;
    atomic_int sleepers;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int helpers; // threads that were really started
    struct helper {
        base_team *team;
        int thread;
        pthread_t handle;
    } * helper;
};

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

// Waits until *word is no longer old.
static void wait_for_change(base_team *team, atomic_uint *word, unsigned old)
{
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load_explicit(word, memory_order_acquire) != old) return;
        if (i % BEFORE_OTHERS == BEFORE_OTHERS - 1) sched_yield();
        relax();
    }
    pthread_mutex_lock(&team->lock);
    atomic_fetch_add(&team->sleepers, 1);
    while (atomic_load(word) == old) pthread_cond_wait(&team->changed, &team->lock);
    atomic_fetch_sub(&team->sleepers, 1);
    pthread_mutex_unlock(&team->lock);
}

// Moves *word on. Sequential consistency makes this safe against a waiter about to sleep: either
// it sees the new word, or we see it among the sleepers.
static void advance(base_team *team, atomic_uint *word)
{
    atomic_fetch_add(word, 1);
    if (atomic_load(&team->sleepers) == 0) return;
    pthread_mutex_lock(&team->lock);
    pthread_cond_broadcast(&team->changed);
    pthread_mutex_unlock(&team->lock);
}

static void *helper_main(void *argument)
{
    const struct helper *self = argument;
    base_team *team = self->team;
    for (unsigned generation = 0;; generation++) {
        wait_for_change(team, &team->started, generation);
        if (team->quit) return NULL;
        team->task(team->argument, self->thread, team->size);
        if (atomic_fetch_sub(&team->running, 1) == 1) advance(team, &team->finished);
    }
}

psi_status base_team_new(psi_ctx *ctx, int threads, base_team **out)
{
    *out = NULL;
    base_team *team = NULL;
    psi_status status = PSI_OK;
    TRY(base_alloc_zero(ctx, 1, sizeof *team, &team));
    team->size = threads;
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->changed, NULL);
    TRY(base_alloc_zero(ctx, (size_t)threads, sizeof *team->helper, &team->helper));
    for (int t = 1; t < threads; t++) {
        struct helper *helper = &team->helper[t - 1];
        *helper = (struct helper){.team = team, .thread = t};
        if (pthread_create(&helper->handle, NULL, helper_main, helper) != 0) {
            // EAGAIN says no more than that; memory for the stack is what is missing most often
            status = FAIL(ctx, PSI_ENOMEM, "the system gave %d of %d threads", t, threads);
            goto done;
        }
        team->helpers++;
    }
    *out = team;
    team = NULL;
done:
    base_team_free(ctx, team);
    return status;
}

void base_team_free(psi_ctx *ctx, base_team *team)
{
    if (!team) return;
    team->quit = true;
    advance(team, &team->started);
    for (int i = 0; i < team->helpers; i++) pthread_join(team->helper[i].handle, NULL);
    pthread_cond_destroy(&team->changed);
    pthread_mutex_destroy(&team->lock);
    base_free(ctx, team->helper);
    base_free(ctx, team);
}

int base_team_size(const base_team *team)
{
    return team->size;
}

void base_team_run(base_team *team, base_task *task, void *argument)
{
    if (team->size == 1) {
        task(argument, 0, 1);
        return;
    }
    team->task = task;
    team->argument = argument;
    atomic_store(&team->running, team->size - 1);
    const unsigned generation = atomic_load(&team->finished);
    advance(team, &team->started);
    task(argument, 0, team->size);
    wait_for_change(team, &team->finished, generation);
}

void base_team_barrier(base_team *team)
{
    if (team->size == 1) return;
    const unsigned generation = atomic_load(&team->passed);
    if (atomic_fetch_add(&team->arrived, 1) == team->size - 1) {
        atomic_store(&team->arrived, 0);
        advance(team, &team->passed);
    } else {
        wait_for_change(team, &team->passed, generation);
    }
}
