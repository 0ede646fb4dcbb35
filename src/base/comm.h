// Other processes that work on the same job, started by mpirun: rank r of n. Alone (rank 0 of 1)
// every call below is a copy at most. MPI itself is in a component of its own (mpi/component.c),
// which is loaded when it is asked for: nobody else needs to have it.
//
// All ranks make the same calls in the same order. Whoever waits for others notices a cancel.
#ifndef PSI_BASE_COMM_H
#define PSI_BASE_COMM_H

#include <psifold/base.h>

int base_rank(const psi_ctx *ctx);
int base_ranks(const psi_ctx *ctx);

// Everywhere the sum over all ranks, or the largest of all. Of other types: whole numbers, as long
// as what they come to fits.
psi_status base_sum(psi_ctx *ctx, int64_t *values, size_t n);
psi_status base_sum_sizes(psi_ctx *ctx, size_t *values, size_t n);
psi_status base_sum_u32(psi_ctx *ctx, uint32_t *values, size_t n);
psi_status base_maximum(psi_ctx *ctx, int64_t *values, size_t n);
psi_status base_any(psi_ctx *ctx, uint8_t *values, size_t n); // 0 or more: the largest of each
// Of something that this rank has n of: how many the ranks before it have.
psi_status base_sum_before(psi_ctx *ctx, size_t n, size_t *before);

// What all ranks have, in their order: everybody as many bytes, all (ranks · bytes) …
psi_status base_gather(psi_ctx *ctx, const void *mine, size_t bytes, void *all);
// … or each its own: *all points to a block that belongs to the caller, *total are its bytes.
psi_status base_gather_parts(psi_ctx *ctx, const void *mine, size_t bytes, void *all,
                             size_t *total);

// … where bytes (ranks) are known everywhere and there is room already. mine is not in all.
psi_status base_gather_into(psi_ctx *ctx, const void *mine, const size_t *bytes, void *all);

// The same as base_gather_parts, of rank 0 alone: elsewhere *all is NULL.
psi_status base_collect(psi_ctx *ctx, const void *mine, size_t bytes, void *all, size_t *total);

// … or of another rank, where bytes (ranks) are known and there is room already.
psi_status base_gather_at(psi_ctx *ctx, const void *mine, const size_t *bytes, int to, void *all);

// … or block by block, in the order of the ranks, for what rank 0 has no room for: only there
// `take` is called, and the blocks are gone afterwards.
typedef psi_status base_take(void *user, const void *block, size_t bytes);
psi_status base_pass_to_first(psi_ctx *ctx, const void *mine, size_t bytes, base_take *take,
                              void *user);

// Sums that depend on the order of their terms are added up rank after rank, as one process would
// over the data of all: state is what the ranks before have come to, this one goes on from there,
// and afterwards all have what the last has come to.
psi_status base_take_turn(psi_ctx *ctx, void *state, size_t bytes);
psi_status base_end_turn(psi_ctx *ctx, void *state, size_t bytes);
// … of which there may be several blocks.
typedef struct base_block {
    void *data;
    size_t bytes;
} base_block;
psi_status base_take_turn_with(psi_ctx *ctx, const base_block *state, size_t n);
psi_status base_end_turn_with(psi_ctx *ctx, const base_block *state, size_t n);

// What rank `from` has.
psi_status base_broadcast(psi_ctx *ctx, void *data, size_t bytes, int from);

// From rank `from` to rank `to`; others have nothing to do with it.
psi_status base_hand_over(psi_ctx *ctx, void *data, size_t bytes, int from, int to);

// From here on this process is alone, as far as the calls above and base_ranks are concerned: those
// that are left do not take part in the rest.
void base_go_alone(psi_ctx *ctx);

// PSI_EUNSUPPORTED, saying what, for work that is done by one process only.
psi_status base_alone(psi_ctx *ctx, const char *what);

// What has been spent so far, kept up to date.
const psi_ranks_cost *base_comm_spent(psi_ctx *ctx);

// The rank that the environment says this process has; −1 if it was not started with others.
int base_started_as(void);

// What the component has to offer: every call returns false if it failed, and *stop is asked while
// it waits. Counts are not bounded by the 31 bits of MPI's.
typedef bool base_comm_stop(void *user);
typedef enum base_comm_kind { COMM_SUM, COMM_LARGEST } base_comm_kind;
typedef struct base_comm_table {
    int version; // COMM_VERSION
    bool (*start)(int *rank, int *ranks);
    bool (*reduce)(int64_t *values, size_t n, base_comm_kind kind, base_comm_stop *stop,
                   void *user);
    bool (*gather)(const void *mine, const size_t *bytes, void *all, base_comm_stop *stop,
                   void *user); // bytes (ranks)
    bool (*broadcast)(void *data, size_t bytes, int from, base_comm_stop *stop, void *user);
    bool (*hand_over)(void *data, size_t bytes, int from, int to, base_comm_stop *stop, void *user);
    void (*finish)(void);
    void (*abandon)(int code); // ends all processes of the job
} base_comm_table;
enum { COMM_VERSION = 1 };
typedef const base_comm_table *base_comm_entry(void);
#define COMM_ENTRY "psifold_comm"

#endif
