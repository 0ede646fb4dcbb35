// libpsifold-mpi.so: what psifold asks of MPI (src/base/comm.h), and the only file that knows it.
// All calls are the ones that do not block, so that a cancel is noticed while others are waited
// for, and a process that waits lets others have the processor.
#include "base/comm.h"

#include <mpi.h>

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { AT_ONCE = 1 << 30 }; // bytes of one call: MPI counts in 31 bits

static bool start(int *rank, int *ranks)
{
    int there = 0, level;
    if (MPI_Initialized(&there) != MPI_SUCCESS) return false;
    // threads of a context compute; only the one that owns it communicates
    if (!there && MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level) != MPI_SUCCESS) {
        return false;
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    return MPI_Comm_rank(MPI_COMM_WORLD, rank) == MPI_SUCCESS &&
           MPI_Comm_size(MPI_COMM_WORLD, ranks) == MPI_SUCCESS;
}

// NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker): wait_for is where requests are waited for

// Until the call is done: at once again for the first thousand times, then with pauses that grow to
// a millisecond, slowly: what is waited for in vain stays a small part of a wait, and processes
// that learn together wait at every layer.
static bool wait_for(MPI_Request *request, base_comm_stop *stop, void *user)
{
    enum { SPIN = 1000, LONGEST = 1000000 };
    struct timespec pause = {0, 1000};
    for (int i = 0;; i++) {
        int done = 0;
        if (MPI_Test(request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
        if (done) return true;
        if (i < SPIN) continue;
        if (stop && stop(user)) return false;
        nanosleep(&pause, NULL);
        if (pause.tv_nsec < LONGEST) pause.tv_nsec += pause.tv_nsec / 8;
    }
}

static bool reduce(int64_t *values, size_t n, base_comm_kind kind, base_comm_stop *stop, void *user)
{
    const size_t most = AT_ONCE / sizeof *values;
    for (size_t begin = 0; begin < n; begin += most) {
        const size_t count = n - begin < most ? n - begin : most;
        MPI_Request request;
        if (MPI_Iallreduce(MPI_IN_PLACE, values + begin, (int)count, MPI_INT64_T,
                           kind == COMM_SUM ? MPI_SUM : MPI_MAX, MPI_COMM_WORLD,
                           &request) != MPI_SUCCESS ||
            !wait_for(&request, stop, user)) {
            return false;
        }
    }
    return true;
}

static bool broadcast(void *data, size_t bytes, int from, base_comm_stop *stop, void *user)
{
    for (size_t begin = 0; begin < bytes; begin += AT_ONCE) {
        const size_t count = bytes - begin < AT_ONCE ? bytes - begin : AT_ONCE;
        MPI_Request request;
        if (MPI_Ibcast((char *)data + begin, (int)count, MPI_BYTE, from, MPI_COMM_WORLD,
                       &request) != MPI_SUCCESS ||
            !wait_for(&request, stop, user)) {
            return false;
        }
    }
    return true;
}

// One call where 31 bits are enough, else a broadcast from every rank.
static bool gather(const void *mine, const size_t *bytes, void *all, base_comm_stop *stop,
                   void *user)
{
    int ranks, rank;
    size_t total = 0;
    bool fine = false;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int r = 0; r < ranks; r++) total += bytes[r];
    if (total > AT_ONCE) {
        char *to = all;
        for (int r = 0; r < ranks; to += bytes[r++]) {
            if (r == rank) memcpy(to, mine, bytes[r]);
            if (!broadcast(to, bytes[r], r, stop, user)) return false;
        }
        return true;
    }
    int *counts = malloc((size_t)ranks * 2 * sizeof *counts), *places = counts + ranks;
    if (!counts) return false;
    for (int r = 0, at = 0; r < ranks; at += counts[r++]) {
        counts[r] = (int)bytes[r];
        places[r] = at;
    }
    MPI_Request request;
    fine = MPI_Iallgatherv(mine, counts[rank], MPI_BYTE, all, counts, places, MPI_BYTE,
                           MPI_COMM_WORLD, &request) == MPI_SUCCESS &&
           wait_for(&request, stop, user);
    free(counts);
    return fine;
}

static bool hand_over(void *data, size_t bytes, int from, int to, base_comm_stop *stop, void *user)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (size_t begin = 0; (rank == from || rank == to) && begin < bytes; begin += AT_ONCE) {
        const int count = (int)(bytes - begin < AT_ONCE ? bytes - begin : AT_ONCE);
        char *at = (char *)data + begin;
        MPI_Request request;
        const int begun = rank == from
                              ? MPI_Isend(at, count, MPI_BYTE, to, 0, MPI_COMM_WORLD, &request)
                              : MPI_Irecv(at, count, MPI_BYTE, from, 0, MPI_COMM_WORLD, &request);
        if (begun != MPI_SUCCESS || !wait_for(&request, stop, user)) return false;
    }
    return true;
}

static void finish(void)
{
    int gone = 0;
    MPI_Request request;
    MPI_Finalized(&gone);
    if (gone) return;
    // whoever has nothing left to do waits for the others here, where it sleeps
    if (MPI_Ibarrier(MPI_COMM_WORLD, &request) == MPI_SUCCESS) wait_for(&request, NULL, NULL);
    MPI_Finalize();
}

// NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker)

static void abandon(int code)
{
    MPI_Abort(MPI_COMM_WORLD, code);
}

__attribute__((visibility("default"))) const base_comm_table *psifold_comm(void);
const base_comm_table *psifold_comm(void)
{
    static const base_comm_table table = {.version = COMM_VERSION,
                                          .start = start,
                                          .reduce = reduce,
                                          .gather = gather,
                                          .broadcast = broadcast,
                                          .hand_over = hand_over,
                                          .finish = finish,
                                          .abandon = abandon};
    return &table;
}
