// Passes over all states, in the order of their numbers: while many are dirty, this is kinder to
// the caches than lists. Every step is shared by all threads. Groups of equal signature are found
// by giving each thread the signatures that fall to it.
#include "mdp/refining.h"

#include "base/checked.h"

#include <string.h>

enum { NOBODY = UINT32_MAX, CLEAN = UINT32_MAX - 1 };
enum { WORTH_LOOKING = 32 }; // one in so many states

// ---- signing ------------------------------------------------------------------------------------

// Collects the dirty states of the slice in work, with block and signature beside them, so that the
// steps after this one need not look for them; signs them unless they are signed already.
static void sign_task(void *argument, int thread, int threads)
{
    mdp_refining *r = argument;
    mdp_shard *own = &r->shards[thread];
    size_t begin, end, n = 0;
    base_slice(r->n, thread, threads, &begin, &end);
    for (size_t s = begin; s < end;) {
        if (s % 8 == 0 && s + 8 <= end) { // mostly clean: look at eight at once
            uint64_t eight;
            memcpy(&eight, r->flag + s, sizeof eight);
            if (eight == 0) {
                s += 8;
                continue;
            }
        }
        if (r->flag[s]) {
            const uint32_t b = r->block[s];
            r->flag[s] = 0;
            if (r->blocks[b].end - r->blocks[b].begin > 1) { // else alone, whatever it looks like
                if (!r->signing->linear)
                    r->sig[s] = mdp_signature(r->signing, r->block, s, &own->form);
                r->work[begin + n] = (uint32_t)s;
                r->place[begin + n] = b;
                r->key[begin + n++] = mdp_key(r, (uint32_t)s);
            }
        }
        s++;
    }
    own->begin = begin;
    own->n_dirty = n;
}

// ---- grouping -----------------------------------------------------------------------------------

static size_t shard_of(const mdp_refining *r, uint64_t sig)
{
    // the low bits place a signature in a table, and few of them may be kept: mix once more
    return r->threads == 1
               ? 0
               : (size_t)((sig * UINT64_C(0xC2B2AE3D27D4EB4F) >> 40) % (uint64_t)r->threads);
}

static psi_status add_group(mdp_refining *r, mdp_shard *shard, uint32_t group, uint32_t block,
                            uint64_t sig)
{
    psi_status status = PSI_OK;
    if (group >= shard->room) {
        const size_t room = base_max(2 * shard->room, 1024);
        TRY(base_resize(r->ctx, room, sizeof *shard->of_block, &shard->of_block));
        TRY(base_resize(r->ctx, room, sizeof *shard->count, &shard->count));
        TRY(base_resize(r->ctx, room, sizeof *shard->name, &shard->name));
        TRY(base_resize(r->ctx, room, sizeof *shard->sig, &shard->sig));
        shard->room = room;
    }
    shard->of_block[group] = block;
    shard->count[group] = 0;
    shard->sig[group] = sig;
done:
    return status;
}

static psi_status group_state(mdp_refining *r, mdp_shard *shard, size_t at)
{
    psi_status status = PSI_OK;
    const uint32_t known = shard->table.n, block = r->place[at];
    const uint64_t key = r->key[at];
    uint32_t group;
    TRY(mdp_intern_get(r->ctx, &shard->table, block, key, &group));
    if (group == known) TRY(add_group(r, shard, group, block, key));
    shard->count[group]++;
    r->state[at] = group;
done:
    return status;
}

static void group_task(void *argument, int thread, int threads)
{
    mdp_refining *r = argument;
    mdp_shard *shard = &r->shards[thread];
    enum { AHEAD = 8 };
    shard->status = mdp_intern_reset(r->ctx, &shard->table, 64);
    for (int t = 0; t < threads; t++) {
        const mdp_shard *slice = &r->shards[t];
        const size_t end = slice->begin + slice->n_dirty;
        for (size_t i = slice->begin; i < end && shard->status == PSI_OK; i++) {
            if (i + AHEAD < end) {
                const size_t at = i + AHEAD;
                __builtin_prefetch(
                    &shard->table.slots[mdp_intern_place(&shard->table, r->place[at], r->key[at])]);
            }
            if (shard_of(r, r->key[i]) == (size_t)thread) shard->status = group_state(r, shard, i);
        }
    }
}

// ---- naming -------------------------------------------------------------------------------------

// To find clean states takes a look at all states, and is not done for a few: a pass may move so
// many more than it had to, which is less than it costs anyway. Rounds are exact in this.
static void keep_clean(const mdp_refining *r, uint32_t *holder)
{
    for (int t = 0; t < r->threads; t++) {
        const mdp_shard *shard = &r->shards[t];
        for (uint32_t g = 0; g < shard->table.n; g++)
            if (r->left[shard->of_block[g]] > 0) holder[shard->of_block[g]] = CLEAN;
    }
}

// For every block with dirty states: how many are clean, and which group has the clean ones'
// signature (its name becomes CLEAN). most[b] and holder[b] become the largest part.
static void weigh_groups(mdp_refining *r, uint32_t *most, uint32_t *holder)
{
    for (int t = 0; t < r->threads; t++) {
        const mdp_shard *shard = &r->shards[t];
        for (uint32_t g = 0; g < shard->table.n; g++) {
            const uint32_t b = shard->of_block[g];
            r->left[b] = r->blocks[b].end - r->blocks[b].begin;
            r->clean_name[b] = NOBODY;
            holder[b] = CLEAN;
        }
    }
    for (int t = 0; t < r->threads; t++) {
        const mdp_shard *shard = &r->shards[t];
        for (uint32_t g = 0; g < shard->table.n; g++) {
            r->left[shard->of_block[g]] -= shard->count[g];
            most[shard->of_block[g]] = 0;
        }
    }
    for (int t = 0; t < r->threads; t++) {
        mdp_shard *shard = &r->shards[t];
        for (uint32_t g = 0; g < shard->table.n; g++) {
            const uint32_t b = shard->of_block[g];
            const bool like_clean = r->left[b] > 0 && shard->sig[g] == r->blocks[b].sig;
            shard->name[g] = like_clean ? CLEAN : NOBODY;
            if (like_clean) most[b] = r->left[b] + shard->count[g];
            if (r->left[b] > 0 && most[b] == 0) most[b] = r->left[b];
        }
    }
    uint32_t number = 0;
    size_t gained = 0; // states that need not move if clean ones do
    for (int t = 0; t < r->threads; t++) {
        const mdp_shard *shard = &r->shards[t];
        for (uint32_t g = 0; g < shard->table.n; g++, number++) {
            const uint32_t b = shard->of_block[g];
            if (shard->name[g] == CLEAN || shard->count[g] <= most[b]) continue;
            gained += r->left[b] > 0 ? shard->count[g] - most[b] : 0;
            most[b] = shard->count[g];
            holder[b] = number;
        }
    }
    if (gained <= r->n / WORTH_LOOKING) keep_clean(r, holder);
}

static uint32_t new_block(mdp_refining *r, uint32_t size, uint64_t sig)
{
    const uint32_t name = (uint32_t)r->n_blocks++;
    r->blocks[name] = (mdp_block){.end = size, .sig = sig};
    return name;
}

// The largest part of a block keeps its name, all others get new ones.
static void name_groups(mdp_refining *r)
{
    uint32_t *most = r->scratch, *holder = r->queue, number = 0;
    r->clean_moves = false;
    weigh_groups(r, most, holder);
    // the clean ones first: they bring the block's old signature along
    for (int t = 0; t < r->threads; t++) {
        mdp_shard *shard = &r->shards[t];
        for (uint32_t g = 0; g < shard->table.n; g++) {
            const uint32_t b = shard->of_block[g];
            if (r->left[b] == 0) continue;
            if (r->clean_name[b] == NOBODY) {
                const bool moves = holder[b] != CLEAN;
                r->clean_name[b] = moves ? new_block(r, r->left[b], r->blocks[b].sig) : b;
                r->clean_moves = r->clean_moves || moves;
                if (!moves) r->blocks[b].end = r->blocks[b].begin + r->left[b];
            }
            if (shard->name[g] == CLEAN) {
                shard->name[g] = r->clean_name[b];
                r->blocks[shard->name[g]].end += shard->count[g];
            }
        }
    }
    for (int t = 0; t < r->threads; t++) {
        mdp_shard *shard = &r->shards[t];
        for (uint32_t g = 0; g < shard->table.n; g++, number++) {
            const uint32_t b = shard->of_block[g];
            if (shard->name[g] != NOBODY) continue;
            if (holder[b] == number) {
                shard->name[g] = b;
                r->blocks[b] = (mdp_block){.end = shard->count[g], .sig = shard->sig[g]};
            } else {
                shard->name[g] = new_block(r, shard->count[g], shard->sig[g]);
            }
        }
    }
}

// ---- renaming -----------------------------------------------------------------------------------

static void add_to(uint64_t *sig, uint64_t change, bool shared)
{
    if (!shared) {
        *sig = mdp_plus(*sig, change);
        return;
    }
    uint64_t before = __atomic_load_n(sig, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(sig, &before, mdp_plus(before, change), true,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

// A change of a signature on its way: what it changes is asked for when it is sent, and is there
// when it arrives, LATER changes after.
enum { LATER = 32 };
typedef struct change {
    uint64_t by;
    uint32_t state;
} change;

static inline void apply(uint64_t *sig, uint8_t *flag, change c, bool linear, bool shared)
{
    if (linear) add_to(&sig[c.state], c.by, shared);
    __atomic_store_n(&flag[c.state], 1, __ATOMIC_RELAXED);
}

// Flags what leads to the states of a list, which went from one block to another, and keeps its
// signatures right.
static void tell_all(mdp_refining *r, mdp_shard *own, const uint32_t *list, const uint32_t *from,
                     size_t n)
{
    enum { FAR = 24, NEAR = 12 };
    const bool linear = r->signing->linear, shared = r->threads > 1;
    const uint64_t *sources = r->sources, *factor = r->factor;
    const mdp_source *source = r->source;
    uint64_t *sig = r->sig;
    uint8_t *flag = r->flag;
    change sent[LATER];
    size_t n_sent = 0;
    for (size_t i = 0; i < n; i++) {
        if (i + FAR < n) {
            __builtin_prefetch(&sources[list[i + FAR]]);
            __builtin_prefetch(&source[sources[list[i + NEAR]]]);
        }
        const uint64_t end = sources[list[i] + 1], step = mdp_step(r, from[i], r->block[list[i]]);
        for (uint64_t k = sources[list[i]]; k < end; k++, n_sent++) {
            const change next = {mdp_times(factor[source[k].row], step), source[k].state};
            __builtin_prefetch(&sig[next.state], 1);
            __builtin_prefetch(&flag[next.state], 1);
            if (n_sent >= LATER) apply(sig, flag, sent[n_sent % LATER], linear, shared);
            sent[n_sent % LATER] = next;
        }
    }
    for (size_t k = n_sent > LATER ? n_sent - LATER : 0; k < n_sent; k++)
        apply(sig, flag, sent[k % LATER], linear, shared);
    own->reach += n_sent;
}

// Clean states that lose their block's name: rare, and they have to be looked for between the dirty
// ones, which stand in order.
static void rename_clean(mdp_refining *r, mdp_shard *own, size_t begin, size_t end)
{
    const uint32_t *dirty = r->work + begin, *last = dirty + own->n_dirty;
    for (size_t s = begin; s < end; s++) {
        if (dirty < last && *dirty == s) {
            dirty++;
            continue;
        }
        const uint32_t b = r->block[s];
        if (r->left[b] == 0 || r->clean_name[b] == b) continue;
        r->block[s] = r->clean_name[b];
        r->fresh[begin + own->n_clean_moved] = (uint32_t)s;
        r->parent[begin + own->n_clean_moved++] = b;
    }
}

static void rename_task(void *argument, int thread, int threads)
{
    mdp_refining *r = argument;
    mdp_shard *own = &r->shards[thread];
    size_t begin, end;
    base_slice(r->n, thread, threads, &begin, &end);
    own->n_moved = own->n_clean_moved = own->reach = 0;
    if (r->clean_moves) rename_clean(r, own, begin, end);
    uint32_t *list = r->work + begin, *before = r->place + begin;
    for (size_t i = 0; i < own->n_dirty; i++) {
        const mdp_shard *shard = &r->shards[shard_of(r, r->key[begin + i])];
        const uint32_t s = list[i], name = shard->name[r->state[begin + i]];
        if (name == before[i]) continue;
        r->block[s] = name;
        before[own->n_moved] = before[i];
        list[own->n_moved++] = s;
    }
    base_team_barrier(r->team); // nobody asks for the names any more
    tell_all(r, own, list, before, own->n_moved);
    tell_all(r, own, r->fresh + begin, r->parent + begin, own->n_clean_moved);
}

psi_status mdp_refining_pass(mdp_refining *r, size_t *reach)
{
    psi_status status = PSI_OK;
    base_team_run(r->team, sign_task, r);
    base_team_run(r->team, group_task, r);
    for (int t = 0; t < r->threads; t++) TRY(r->shards[t].status);
    name_groups(r);
    base_team_run(r->team, rename_task, r);
    *reach = 0;
    for (int t = 0; t < r->threads; t++) {
        const mdp_shard *shard = &r->shards[t];
        *reach += shard->reach;
        for (uint32_t g = 0; g < shard->table.n; g++) r->left[shard->of_block[g]] = 0;
    }
done:
    return status;
}
