#include "base/comm.h"

#include "base/checked.h"
#include "base/comm_part.h"
#include "base/context.h"
#include "base/progress.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef PSI_LIBDIR // beside the folder of programs
#define PSI_LIBDIR "lib"
#endif

// What the starters of Open MPI, MPICH and Slurm tell the processes they start.
int base_started_as(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"};
    const char *rank = NULL;
    for (size_t i = 0; !rank && i < sizeof names / sizeof *names; i++) rank = getenv(names[i]);
    return rank ? (int)strtol(rank, NULL, 10) : -1;
}

// The component lies beside the program or the library that this is in, where they were built, or
// where libraries are.
static void *open_component(void)
{
    static const char NAME[] = "libpsifold-mpi.so";
    const char *given = getenv("PSIFOLD_MPI");
    char path[4096];
    Dl_info info;
    void *library = NULL;
    if (given) return dlopen(given, RTLD_NOW | RTLD_GLOBAL); // MPI's own parts look for its symbols
    if (dladdr((const void *)NAME, &info) && info.dli_fname && strchr(info.dli_fname, '/')) {
        const int folder = (int)(strrchr(info.dli_fname, '/') - info.dli_fname);
        snprintf(path, sizeof path, "%.*s/%s", folder, info.dli_fname, NAME);
        library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
        if (library) return library;
        snprintf(path, sizeof path, "%.*s/../" PSI_LIBDIR "/%s", folder, info.dli_fname, NAME);
        library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    }
    return library ? library : dlopen(NAME, RTLD_NOW | RTLD_GLOBAL);
}

psi_status psi_ranks_join(psi_ctx *ctx, bool wanted)
{
    base_comm *comm = base_ctx_comm(ctx);
    if (comm->table || (!wanted && base_started_as() < 0)) return PSI_OK;
    void *library = open_component();
    base_comm_entry *entry = NULL;
    if (library) { // a function's address is no object's: it is copied as bytes
        void *symbol = dlsym(library, COMM_ENTRY);
        memcpy(&entry, &symbol, sizeof entry);
    }
    if (!entry) {
        const char *why = dlerror();
        return FAIL(ctx, PSI_EUNSUPPORTED,
                    "several processes need libpsifold-mpi.so, which cannot be loaded: %.300s",
                    why ? why : "it is not psifold's");
    }
    const base_comm_table *table = entry();
    if (table->version != COMM_VERSION) {
        return FAIL(ctx, PSI_EUNSUPPORTED, "libpsifold-mpi.so is of another version of psifold");
    }
    const double began = base_seconds();
    if (!table->start(&comm->rank, &comm->ranks)) {
        return FAIL(ctx, PSI_EIO, "MPI did not start");
    }
    comm->cost.seconds += base_seconds() - began;
    comm->table = table;
    return PSI_OK;
}

void psi_ranks_abandon(psi_ctx *ctx, int code)
{
    const base_comm *comm = base_ctx_comm(ctx);
    if (comm->table) comm->table->abandon(code);
}

void base_comm_finish(base_comm *comm)
{
    if (comm->table) comm->table->finish();
    comm->table = NULL;
}

int psi_rank(const psi_ctx *ctx)
{
    return base_ctx_comm((psi_ctx *)ctx)->rank;
}
int psi_ranks(const psi_ctx *ctx)
{
    return base_ctx_comm((psi_ctx *)ctx)->ranks;
}
int base_rank(const psi_ctx *ctx)
{
    return base_ctx_comm((psi_ctx *)ctx)->alone ? 0 : psi_rank(ctx);
}
int base_ranks(const psi_ctx *ctx)
{
    return base_ctx_comm((psi_ctx *)ctx)->alone ? 1 : psi_ranks(ctx);
}

void base_go_alone(psi_ctx *ctx)
{
    base_ctx_comm(ctx)->alone = true;
}

const psi_ranks_cost *base_comm_spent(psi_ctx *ctx)
{
    return &base_ctx_comm(ctx)->cost;
}

psi_ranks_cost psi_ranks_spent(const psi_ctx *ctx)
{
    return base_ctx_comm((psi_ctx *)ctx)->cost;
}

psi_status base_alone(psi_ctx *ctx, const char *what)
{
    if (base_ranks(ctx) == 1) return PSI_OK;
    return FAIL(ctx, PSI_EUNSUPPORTED,
                "%s is not shared among processes yet, and there are %d: start one, without "
                "mpirun",
                what, base_ranks(ctx));
}

static bool has_others(const base_comm *comm)
{
    return comm->table && !comm->alone && comm->ranks > 1;
}

// ---- one call -----------------------------------------------------------------------------------

static bool wants_to_stop(void *user)
{
    return base_cancelled(user) != PSI_OK;
}

// What a call came to, and what it cost: bytes that this rank has sent, and got.
static psi_status spent(psi_ctx *ctx, bool fine, double began, size_t sent, size_t received)
{
    base_comm *comm = base_ctx_comm(ctx);
    comm->cost.calls++;
    comm->cost.bytes += sent;
    comm->cost.received += received;
    comm->cost.seconds += base_seconds() - began;
    if (fine) return PSI_OK;
    const psi_status stopped = base_cancelled(ctx);
    return stopped != PSI_OK ? stopped
                             : FAIL(ctx, PSI_EIO, "MPI could not reach the other processes");
}

static psi_status reduce(psi_ctx *ctx, int64_t *values, size_t n, base_comm_kind kind)
{
    const base_comm *comm = base_ctx_comm(ctx);
    const double began = base_seconds();
    if (!has_others(comm)) return PSI_OK;
    const bool fine = comm->table->reduce(values, n, kind, wants_to_stop, ctx);
    return spent(ctx, fine, began, n * sizeof *values, n * sizeof *values);
}

psi_status base_sum(psi_ctx *ctx, int64_t *values, size_t n)
{
    return reduce(ctx, values, n, COMM_SUM);
}
psi_status base_maximum(psi_ctx *ctx, int64_t *values, size_t n)
{
    return reduce(ctx, values, n, COMM_LARGEST);
}

// Sizes are whole numbers below 2^63, as int64_t are.
psi_status base_sum_sizes(psi_ctx *ctx, size_t *values, size_t n)
{
    _Static_assert(sizeof(size_t) == sizeof(int64_t), "a size has 64 bits");
    return reduce(ctx, (int64_t *)values, n, COMM_SUM);
}

// Of numbers of one byte, or of four.
static psi_status reduce_narrow(psi_ctx *ctx, void *values, size_t bytes, size_t n,
                                base_comm_kind kind)
{
    psi_status status = PSI_OK;
    uint8_t *small = values;
    uint32_t *large = values;
    int64_t *wide = NULL;
    if (base_ranks(ctx) == 1) return PSI_OK;
    TRY(base_alloc(ctx, n, sizeof *wide, &wide));
    for (size_t i = 0; i < n; i++) wide[i] = bytes == 1 ? small[i] : large[i];
    TRY(reduce(ctx, wide, n, kind));
    for (size_t i = 0; bytes == 1 && i < n; i++) small[i] = (uint8_t)wide[i];
    for (size_t i = 0; bytes > 1 && i < n; i++) large[i] = (uint32_t)wide[i];
done:
    base_free(ctx, wide);
    return status;
}

psi_status base_sum_u32(psi_ctx *ctx, uint32_t *values, size_t n)
{
    return reduce_narrow(ctx, values, sizeof *values, n, COMM_SUM);
}
psi_status base_any(psi_ctx *ctx, uint8_t *values, size_t n)
{
    return reduce_narrow(ctx, values, sizeof *values, n, COMM_LARGEST);
}

static psi_status gather(psi_ctx *ctx, const void *mine, const size_t *bytes, void *all)
{
    const base_comm *comm = base_ctx_comm(ctx);
    const double began = base_seconds();
    size_t received = 0;
    if (!has_others(comm)) {
        if (bytes[0] > 0) memcpy(all, mine, bytes[0]);
        return PSI_OK;
    }
    const bool fine = comm->table->gather(mine, bytes, all, wants_to_stop, ctx);
    for (int r = 0; r < comm->ranks; r++) received += r == comm->rank ? 0 : bytes[r];
    return spent(ctx, fine, began, bytes[comm->rank], received);
}

psi_status base_gather_into(psi_ctx *ctx, const void *mine, const size_t *bytes, void *all)
{
    return gather(ctx, mine, bytes, all);
}

psi_status base_gather(psi_ctx *ctx, const void *mine, size_t bytes, void *all)
{
    psi_status status = PSI_OK;
    size_t *sizes = NULL;
    TRY(base_alloc(ctx, (size_t)base_ranks(ctx), sizeof *sizes, &sizes));
    for (int r = 0; r < base_ranks(ctx); r++) sizes[r] = bytes;
    TRY(gather(ctx, mine, sizes, all));
done:
    base_free(ctx, sizes);
    return status;
}

psi_status base_sum_before(psi_ctx *ctx, size_t n, size_t *before)
{
    psi_status status = PSI_OK;
    size_t *all = NULL; // (ranks)
    *before = 0;
    TRY(base_alloc(ctx, (size_t)base_ranks(ctx), sizeof *all, &all));
    TRY(base_gather(ctx, &n, sizeof n, all));
    for (int r = 0; r < base_rank(ctx); r++) *before += all[r];
done:
    base_free(ctx, all);
    return status;
}

psi_status base_gather_parts(psi_ctx *ctx, const void *mine, size_t bytes, void *all, size_t *total)
{
    psi_status status = PSI_OK;
    size_t *sizes = NULL;
    char *block = NULL;
    *total = 0;
    TRY(base_alloc(ctx, (size_t)base_ranks(ctx), sizeof *sizes, &sizes));
    TRY(base_gather(ctx, &bytes, sizeof bytes, sizes));
    for (int r = 0; r < base_ranks(ctx); r++) {
        if (!base_add(*total, sizes[r], total)) {
            TRY(FAIL(ctx, PSI_ELIMIT, "more bytes than can be addressed"));
        }
    }
    TRY(base_alloc(ctx, *total, 1, &block));
    TRY(gather(ctx, mine, sizes, block));
    memcpy(all, &block, sizeof block);
    block = NULL;
done:
    base_free(ctx, block);
    base_free(ctx, sizes);
    return status;
}

psi_status base_broadcast(psi_ctx *ctx, void *data, size_t bytes, int from)
{
    const base_comm *comm = base_ctx_comm(ctx);
    const double began = base_seconds();
    if (!has_others(comm)) return PSI_OK;
    const bool fine = comm->table->broadcast(data, bytes, from, wants_to_stop, ctx);
    const bool here = from == comm->rank;
    return spent(ctx, fine, began, here ? bytes : 0, here ? 0 : bytes);
}

psi_status base_hand_over(psi_ctx *ctx, void *data, size_t bytes, int from, int to)
{
    const base_comm *comm = base_ctx_comm(ctx);
    const double began = base_seconds();
    if (!has_others(comm) || from == to) return PSI_OK;
    const bool fine = comm->table->hand_over(data, bytes, from, to, wants_to_stop, ctx);
    return spent(ctx, fine, began, from == comm->rank ? bytes : 0, to == comm->rank ? bytes : 0);
}

psi_status base_gather_at(psi_ctx *ctx, const void *mine, const size_t *bytes, int to, void *all)
{
    psi_status status = PSI_OK;
    const int rank = base_rank(ctx);
    char *at = all;
    for (int r = 0; r < base_ranks(ctx); r++) {
        if (rank == to && r == to && bytes[r] > 0) memcpy(at, mine, bytes[r]);
        if (r != to && (rank == r || rank == to)) {
            TRY(base_hand_over(ctx, rank == to ? at : (char *)mine, bytes[r], r, to));
        }
        if (rank == to) at += bytes[r];
    }
done:
    return status;
}

psi_status base_take_turn_with(psi_ctx *ctx, const base_block *state, size_t n)
{
    psi_status status = PSI_OK;
    const int rank = base_rank(ctx);
    for (size_t i = 0; rank > 0 && i < n; i++) {
        TRY(base_hand_over(ctx, state[i].data, state[i].bytes, rank - 1, rank));
    }
done:
    return status;
}

psi_status base_end_turn_with(psi_ctx *ctx, const base_block *state, size_t n)
{
    psi_status status = PSI_OK;
    const int rank = base_rank(ctx), last = base_ranks(ctx) - 1;
    for (size_t i = 0; rank < last && i < n; i++) {
        TRY(base_hand_over(ctx, state[i].data, state[i].bytes, rank, rank + 1));
    }
    for (size_t i = 0; last > 0 && i < n; i++) {
        TRY(base_broadcast(ctx, state[i].data, state[i].bytes, last));
    }
done:
    return status;
}

psi_status base_take_turn(psi_ctx *ctx, void *state, size_t bytes)
{
    return base_take_turn_with(ctx, &(base_block){state, bytes}, 1);
}

psi_status base_end_turn(psi_ctx *ctx, void *state, size_t bytes)
{
    return base_end_turn_with(ctx, &(base_block){state, bytes}, 1);
}

psi_status base_pass_to_first(psi_ctx *ctx, const void *mine, size_t bytes, base_take *take,
                              void *user)
{
    enum { AT_ONCE = 1 << 26 };
    psi_status status = PSI_OK;
    const int rank = base_rank(ctx), ranks = base_ranks(ctx);
    size_t *sizes = NULL, largest = 0;
    char *block = NULL;
    if (ranks == 1) return take(user, mine, bytes);
    TRY(base_alloc(ctx, (size_t)ranks, sizeof *sizes, &sizes));
    TRY(base_gather(ctx, &bytes, sizeof bytes, sizes));
    for (int r = 1; r < ranks; r++) largest = base_max(largest, sizes[r]);
    TRY(base_alloc(ctx, rank == 0 ? base_min(largest, AT_ONCE) : 0, 1, &block));
    if (rank == 0) TRY(take(user, mine, bytes));
    for (int r = 1; r < ranks; r++) {
        for (size_t begin = 0; (rank == 0 || rank == r) && begin < sizes[r]; begin += AT_ONCE) {
            const size_t n = base_min(sizes[r] - begin, AT_ONCE);
            char *data = rank == 0 ? block : (char *)mine + begin; // of which nothing is changed
            TRY(base_hand_over(ctx, data, n, r, 0));
            if (rank == 0) TRY(take(user, data, n));
        }
    }
done:
    base_free(ctx, block);
    base_free(ctx, sizes);
    return status;
}

typedef struct collected {
    char *at;
} collected;

static psi_status keep(void *user, const void *block, size_t bytes)
{
    collected *to = user;
    if (!to->at) return PSI_OK; // rank 0 alone has room
    if (bytes > 0) memcpy(to->at, block, bytes);
    to->at += bytes;
    return PSI_OK;
}

psi_status base_collect(psi_ctx *ctx, const void *mine, size_t bytes, void *all, size_t *total)
{
    psi_status status = PSI_OK;
    char *block = NULL;
    *total = bytes;
    TRY(base_sum_sizes(ctx, total, 1));
    if (base_rank(ctx) == 0) TRY(base_alloc(ctx, *total, 1, &block));
    collected to = {block};
    TRY(base_pass_to_first(ctx, mine, bytes, keep, &to));
    memcpy(all, &block, sizeof block);
    block = NULL;
done:
    base_free(ctx, block);
    return status;
}
