#include "support/ranks.h"

#include "base/comm_part.h"
#include "support/support.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 8 };

// Every rank shows what it has, and takes what it needs of what others show, between two barriers.
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int ranks, waiting, round;
    bool failed;
    const void *shown[MOST];
    const void *mail[MOST][MOST]; // from, to: on its way
} all = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static bool meet(void)
{
    pthread_mutex_lock(&all.lock);
    const int round = all.round;
    if (++all.waiting == all.ranks) {
        all.waiting = 0;
        all.round++;
        pthread_cond_broadcast(&all.changed);
    }
    while (round == all.round && !all.failed) pthread_cond_wait(&all.changed, &all.lock);
    const bool fine = !all.failed;
    pthread_mutex_unlock(&all.lock);
    return fine;
}

static int rank_of(void *user)
{
    return base_ctx_comm(user)->rank;
}

static bool reduce(int64_t *values, size_t n, base_comm_kind kind, base_comm_stop *stop, void *user)
{
    (void)stop;
    int64_t *out = calloc(n + 1, sizeof *out);
    all.shown[rank_of(user)] = values;
    bool fine = out && meet();
    for (size_t i = 0; fine && i < n; i++) {
        for (int r = 0; r < all.ranks; r++) {
            const int64_t x = ((const int64_t *)all.shown[r])[i];
            out[i] = r == 0 ? x : kind == COMM_SUM ? out[i] + x : x > out[i] ? x : out[i];
        }
    }
    fine = fine && meet();
    if (fine && n > 0) memcpy(values, out, n * sizeof *out);
    free(out);
    return fine;
}

static bool gather(const void *mine, const size_t *bytes, void *out, base_comm_stop *stop,
                   void *user)
{
    (void)stop;
    char *to = out;
    all.shown[rank_of(user)] = mine;
    if (!meet()) return false;
    for (int r = 0; r < all.ranks; to += bytes[r++]) {
        if (bytes[r] > 0) memcpy(to, all.shown[r], bytes[r]);
    }
    return meet();
}

static bool broadcast(void *data, size_t bytes, int from, base_comm_stop *stop, void *user)
{
    (void)stop;
    all.shown[rank_of(user)] = data;
    if (!meet()) return false;
    if (rank_of(user) != from && bytes > 0) memcpy(data, all.shown[from], bytes);
    return meet();
}

static bool hand_over(void *data, size_t bytes, int from, int to, base_comm_stop *stop, void *user)
{
    (void)stop;
    const int rank = rank_of(user);
    const void **mail = &all.mail[from][to];
    if (rank != from && rank != to) return true;
    pthread_mutex_lock(&all.lock);
    if (rank == from) *mail = data;
    if (rank == from) pthread_cond_broadcast(&all.changed);
    while (!all.failed && (rank == from) == (*mail != NULL)) {
        pthread_cond_wait(&all.changed, &all.lock);
    }
    const bool fine = !all.failed;
    if (fine && rank == to) {
        if (bytes > 0) memcpy(data, *mail, bytes);
        *mail = NULL;
        pthread_cond_broadcast(&all.changed);
    }
    pthread_mutex_unlock(&all.lock);
    return fine;
}

static void finish(void) {}

static const base_comm_table TABLE = {.version = COMM_VERSION,
                                      .reduce = reduce,
                                      .gather = gather,
                                      .broadcast = broadcast,
                                      .hand_over = hand_over,
                                      .finish = finish};

typedef struct one {
    psi_ctx *ctx;
    test_rank *work;
    void *argument;
    psi_status status;
} one;

static void *run(void *user)
{
    one *own = user;
    own->status = own->work(own->ctx, rank_of(own->ctx), own->argument);
    if (own->status == PSI_OK) return NULL;
    pthread_mutex_lock(&all.lock);
    all.failed = true;
    pthread_cond_broadcast(&all.changed);
    pthread_mutex_unlock(&all.lock);
    return NULL;
}

void test_as_ranks(int n, test_rank *work, void *argument)
{
    pthread_t thread[MOST];
    one each[MOST];
    assert_in_range(n, 1, MOST);
    all.ranks = n;
    all.waiting = 0;
    all.failed = false;
    memset(all.mail, 0, sizeof all.mail);
    for (int r = 0; r < n; r++) {
        each[r] = (one){.ctx = test_ctx(1), .work = work, .argument = argument};
        base_comm *comm = base_ctx_comm(each[r].ctx);
        comm->table = &TABLE;
        comm->rank = r;
        comm->ranks = n;
        assert_int_equal(pthread_create(&thread[r], NULL, run, &each[r]), 0);
    }
    for (int r = 0; r < n; r++) pthread_join(thread[r], NULL);
    for (int r = 0; r < n; r++) assert_status(each[r].ctx, each[r].status, PSI_OK);
    for (int r = 0; r < n; r++) psi_ctx_free(each[r].ctx);
}
