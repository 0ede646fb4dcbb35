// Rounds over lists of dirty states, once they are few: a state is signed again when a successor of
// its was renamed, and the largest part of a block keeps the name, so that no state is renamed more
// than log2 n times.
#include "mdp/refining.h"

#include "base/checked.h"

#include <string.h>

// Fewer states than this are signed by one thread: waking the others takes microseconds.
enum { WORTH_SHARING = 4096, FEW = 48 };

// ---- lists --------------------------------------------------------------------------------------

static void mark(mdp_refining *r, uint32_t s)
{
    const uint32_t b = r->block[s];
    mdp_block *block = &r->blocks[b];
    const uint32_t at = r->place[s];
    if (at >= block->dirty || block->end - block->begin == 1) return;
    if (block->dirty == block->end) r->queue[r->n_queue++] = b;
    const uint32_t to = --block->dirty, other = r->state[to];
    r->state[at] = other;
    r->place[other] = at;
    r->state[to] = s;
    r->place[s] = to;
    r->n_dirty++;
}

// Marks what leads to s, and keeps its signatures right.
static void tell_sources(mdp_refining *r, uint32_t s, uint64_t step)
{
    for (uint64_t i = r->sources[s]; i < r->sources[s + 1]; i++) {
        const uint32_t source = r->source[i].state;
        if (r->signing->linear) {
            const uint64_t change = mdp_times(r->factor[r->source[i].row], step);
            r->sig[source] = mdp_plus(r->sig[source], change);
        }
        mark(r, source);
    }
}

void mdp_refining_list(mdp_refining *r)
{
    if (r->listed) return;
    uint32_t at = 0;
    for (size_t b = 0; b < r->n_blocks; b++) {
        mdp_block *block = &r->blocks[b];
        const uint32_t size = block->end - block->begin;
        block->begin = block->dirty = block->end = at;
        at += size;
    }
    for (size_t s = 0; s < r->n; s++) {
        mdp_block *block = &r->blocks[r->block[s]];
        r->place[s] = block->end;
        r->state[block->end++] = (uint32_t)s;
    }
    for (size_t b = 0; b < r->n_blocks; b++) r->blocks[b].dirty = r->blocks[b].end;
    r->n_queue = r->n_dirty = 0;
    for (size_t s = 0; s < r->n; s++)
        if (r->flag[s]) mark(r, (uint32_t)s);
    r->listed = true;
}

void mdp_refining_unlist(mdp_refining *r)
{
    memset(r->flag, 0, r->n);
    for (size_t q = 0; q < r->n_queue; q++) {
        const mdp_block *block = &r->blocks[r->queue[q]];
        for (uint32_t i = block->dirty; i < block->end; i++) r->flag[r->state[i]] = 1;
    }
    r->listed = false;
}

// ---- signing ------------------------------------------------------------------------------------

static void sign_task(void *argument, int thread, int threads)
{
    mdp_refining *r = argument;
    mdp_form *form = &r->shards[thread].form;
    size_t begin, end;
    base_slice(r->n_dirty, thread, threads, &begin, &end);
    for (size_t i = begin; i < end; i++) {
        const uint32_t s = r->work[i];
        r->sig[s] = mdp_signature(r->signing, r->block, s, form);
    }
}

static void sign_dirty(mdp_refining *r)
{
    if (r->signing->linear) return; // they are signed already
    if (r->n_dirty >= WORTH_SHARING && r->threads > 1) {
        size_t n = 0;
        for (size_t q = 0; q < r->n_queue; q++) {
            const mdp_block *block = &r->blocks[r->queue[q]];
            const uint32_t count = block->end - block->dirty;
            memcpy(r->work + n, r->state + block->dirty, count * sizeof *r->work);
            n += count;
        }
        base_team_run(r->team, sign_task, r);
        return;
    }
    for (size_t q = 0; q < r->n_queue; q++) {
        const mdp_block *block = &r->blocks[r->queue[q]];
        for (uint32_t i = block->dirty; i < block->end; i++) {
            const uint32_t s = r->state[i];
            r->sig[s] = mdp_signature(r->signing, r->block, s, &r->shards[0].form);
        }
    }
}

// ---- splitting ----------------------------------------------------------------------------------

static void give_name(mdp_refining *r, uint32_t from, uint32_t begin, uint32_t end, uint64_t sig)
{
    const uint32_t name = (uint32_t)r->n_blocks++;
    r->blocks[name] = (mdp_block){.begin = begin, .end = end, .dirty = end, .sig = sig};
    for (uint32_t i = begin; i < end; i++) r->block[r->state[i]] = name;
    r->parent[r->n_fresh] = from;
    r->fresh[r->n_fresh++] = name;
}

// Orders state[begin … end) by signature, those with the signature first at the front.
static void sort_few(mdp_refining *r, uint32_t begin, uint32_t end, uint64_t first)
{
    uint32_t *state = r->state;
    for (uint32_t i = begin + 1; i < end; i++) {
        const uint32_t s = state[i];
        const uint64_t key = mdp_key(r, s) - first;
        uint32_t at = i;
        for (; at > begin && mdp_key(r, state[at - 1]) - first > key; at--)
            state[at] = state[at - 1];
        state[at] = s;
    }
    for (uint32_t i = begin; i < end; i++) r->place[state[i]] = i;
}

// The same for many: groups are counted, and their states put together.
static psi_status group_many(mdp_refining *r, uint32_t begin, uint32_t end, uint64_t first)
{
    psi_status status = PSI_OK;
    mdp_shard *shard = &r->shards[0];
    uint32_t *group = r->scratch, id;
    const uint32_t n = end - begin;
    TRY(mdp_intern_reset(r->ctx, &shard->table, FEW));
    TRY(mdp_intern_get(r->ctx, &shard->table, 0, first, &id));
    r->work[0] = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t known = shard->table.n;
        TRY(mdp_intern_get(r->ctx, &shard->table, 0, mdp_key(r, r->state[begin + i]), &group[i]));
        if (group[i] == known) r->work[known] = 0;
        r->work[group[i]]++;
    }
    uint32_t sum = begin;
    for (uint32_t g = 0; g < shard->table.n; g++) {
        const uint32_t count = r->work[g];
        r->work[g] = sum;
        sum += count;
    }
    // where each state goes, then back through the places, which are all about to change
    for (uint32_t i = 0; i < n; i++) r->place[r->state[begin + i]] = r->work[group[i]]++;
    memcpy(group, r->state + begin, n * sizeof *group);
    for (uint32_t i = 0; i < n; i++) r->state[r->place[group[i]]] = group[i];
done:
    return status;
}

static uint32_t end_of_run(const mdp_refining *r, uint32_t begin, uint32_t end)
{
    const uint64_t sig = mdp_key(r, r->state[begin]);
    uint32_t i = begin + 1;
    while (i < end && mdp_key(r, r->state[i]) == sig) i++;
    return i;
}

// Splits a block by the signatures of its dirty states; all its parts are clean afterwards.
static psi_status split(mdp_refining *r, uint32_t b)
{
    psi_status status = PSI_OK;
    mdp_block *block = &r->blocks[b];
    const uint32_t begin = block->begin, end = block->end, dirty = block->dirty;
    const bool has_clean = dirty > begin;
    const uint64_t clean_sig = block->sig;
    block->dirty = end;
    if (end_of_run(r, dirty, end) == end) {
        const uint64_t sig = mdp_key(r, r->state[dirty]);
        if (!has_clean || sig == clean_sig) {
            block->sig = sig;
            return PSI_OK;
        }
    } else if (end - dirty <= FEW) {
        sort_few(r, dirty, end, clean_sig);
    } else {
        TRY(group_many(r, dirty, end, clean_sig));
    }
    // the first part: the clean states, with those that are like them
    uint32_t first_end = dirty;
    if (!has_clean || mdp_key(r, r->state[dirty]) == clean_sig)
        first_end = end_of_run(r, dirty, end);
    const uint64_t first_sig = has_clean ? clean_sig : mdp_key(r, r->state[dirty]);
    uint32_t keep_begin = begin, keep_end = first_end;
    uint64_t keep_sig = first_sig;
    for (uint32_t i = first_end; i < end;) {
        const uint32_t next = end_of_run(r, i, end);
        if (next - i > keep_end - keep_begin) {
            keep_begin = i, keep_end = next;
            keep_sig = mdp_key(r, r->state[i]);
        }
        i = next;
    }
    if (keep_begin != begin) give_name(r, b, begin, first_end, first_sig);
    for (uint32_t i = first_end; i < end;) {
        const uint32_t next = end_of_run(r, i, end);
        if (i != keep_begin) give_name(r, b, i, next, mdp_key(r, r->state[i]));
        i = next;
    }
    block->begin = keep_begin;
    block->end = block->dirty = keep_end;
    block->sig = keep_sig;
done:
    return status;
}

psi_status mdp_refining_round(mdp_refining *r)
{
    psi_status status = PSI_OK;
    sign_dirty(r);
    r->n_fresh = 0;
    for (size_t q = 0; q < r->n_queue; q++) TRY(split(r, r->queue[q]));
    r->n_queue = r->n_dirty = 0;
    for (size_t f = 0; f < r->n_fresh; f++) {
        const uint32_t b = r->fresh[f], size = r->blocks[b].end - r->blocks[b].begin;
        const uint64_t step = mdp_step(r, r->parent[f], b);
        // marking moves states about inside the block: by what was there before
        memcpy(r->work, r->state + r->blocks[b].begin, size * sizeof *r->work);
        for (uint32_t i = 0; i < size; i++) tell_sources(r, r->work[i], step);
    }
done:
    return status;
}
