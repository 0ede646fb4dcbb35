// The signatures of known blocks, as hashes: which state has them.
#include "mdp/settling.h"

#include "base/checked.h"
#include "base/context.h"

#include <string.h>

enum { SMALLEST = 1024, LARGEST_STEP = 64, LINE = 8, BLOCKS_PER_LINE = 4 };
static const uint32_t OWN = UINT32_C(1) << 31; // beside a state

psi_status mdp_settling_new(psi_ctx *ctx, const mdp_signing *signing, mdp_settling *out)
{
    psi_status status = PSI_OK;
    const size_t n = signing->model->n_states;
    *out = (mdp_settling){.ctx = ctx, .signing = signing, .room = SMALLEST};
    TRY(base_alloc(ctx, n, sizeof *out->block, &out->block));
    TRY(mdp_form_new(ctx, signing, &out->form));
    TRY(mdp_form_new(ctx, signing, &out->other));
    TRY(base_alloc_zero(ctx, out->room, sizeof *out->seen, &out->seen));
    TRY(base_alloc(ctx, out->room, sizeof *out->rest, &out->rest));
    memset(out->block, 0xFF, n * sizeof *out->block);
done:
    if (status != PSI_OK) mdp_settling_free(out);
    return status;
}

void mdp_settling_free(mdp_settling *settling)
{
    psi_ctx *ctx = settling->ctx;
    base_free(ctx, settling->rest);
    base_free(ctx, settling->seen);
    mdp_form_free(ctx, &settling->other);
    mdp_form_free(ctx, &settling->form);
    base_free(ctx, settling->block);
    *settling = (mdp_settling){.ctx = ctx};
}

size_t mdp_settling_bytes(const mdp_settling *settling)
{
    return settling->signing->model->n_states * sizeof *settling->block +
           settling->room * (sizeof *settling->seen + sizeof *settling->rest);
}

// ---- signatures that were seen ------------------------------------------------------------------

static uint64_t hash_of(const mdp_settling *settling, uint32_t class_, const mdp_form *form)
{
    uint64_t hash = mdp_mix(settling->signing->salt ^ class_);
    const size_t n = mdp_form_length(form);
    for (size_t i = 0; i < n; i++) {
        hash = (hash ^ form->words[i]) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 32;
    }
    return hash & settling->signing->keep;
}

// The last of the blocks that a state leads to, but for one; 0: none. False if one is open.
static bool find_last(const mdp_settling *settling, uint32_t s, uint32_t but, uint32_t *last)
{
    const psi_model *model = settling->signing->model;
    const uint64_t end = model->offsets[model->choices[s + 1]];
    *last = 0;
    for (uint64_t i = model->offsets[model->choices[s]]; i < end; i++) {
        const uint32_t b = settling->block[model->next[i]];
        if (b == MDP_OPEN) return false;
        if (b != but && b > *last) *last = b;
    }
    return true;
}

// Where a signature may be: first in the line of the last block it leads to, because states that
// are looked at one after the other lead to blocks that were found one after the other; then, if
// many lead to that block, at places by its hash.
typedef struct places {
    size_t line, at;
    uint32_t tried;
} places;

static places places_of(const mdp_settling *settling, uint32_t last, uint32_t tag)
{
    const size_t line = ((size_t)last / BLOCKS_PER_LINE * LINE) & (settling->room - 1);
    return (places){line, (size_t)(tag * UINT64_C(0x9E3779B97F4A7C15) >> 20), 0};
}

static mdp_seen *next_place(const mdp_settling *settling, places *p)
{
    const uint32_t tried = p->tried++;
    if (tried < LINE) return &settling->seen[p->line + tried];
    p->at += tried - LINE; // lines next to each other are full together: 1, 2, 3, … further
    return &settling->seen[p->at & (settling->room - 1)];
}

// Room for as many as there will be, if all states are as new as those so far: to put signatures in
// other places is dear, since the states have to be looked at again.
static size_t next_room(const mdp_settling *settling)
{
    const size_t looked = base_max(settling->n_looked, settling->n_seen); // cycles are not counted
    const double share = (double)settling->n_seen / (double)looked;
    const double expected = share * (double)settling->signing->model->n_states;
    size_t room = 2 * settling->room;
    while (room < LARGEST_STEP * settling->room && 2.0 * (double)room < 3.0 * expected) room *= 2;
    return room;
}

static psi_status grow(mdp_settling *settling)
{
    psi_status status = PSI_OK;
    mdp_seen *old = settling->seen;
    uint32_t *rest = NULL;
    const size_t n = settling->room, room = next_room(settling);
    TRY(base_alloc(settling->ctx, room, sizeof *rest, &rest));
    TRY(base_alloc_zero(settling->ctx, room, sizeof *settling->seen, &settling->seen));
    settling->room = room;
    for (size_t i = 0; i < n; i++) {
        if (old[i].state == 0) continue;
        const uint32_t s = (old[i].state & ~OWN) - 1;
        uint32_t last;
        find_last(settling, s, old[i].state & OWN ? settling->block[s] : MDP_OWN, &last);
        places p = places_of(settling, last, old[i].tag);
        mdp_seen *place = next_place(settling, &p);
        while (place->state != 0) place = next_place(settling, &p);
        *place = old[i];
        rest[place - settling->seen] = settling->rest[i];
    }
    base_free(settling->ctx, old);
    base_free(settling->ctx, settling->rest);
    settling->rest = rest;
    return PSI_OK;
done:
    settling->seen = old;
    base_free(settling->ctx, rest);
    return status;
}

// Where a state of this class with the signature in form, which leads to this block last, was seen,
// or where one may be put.
static mdp_seen *look_up(mdp_settling *settling, uint32_t class_, uint32_t last)
{
    const uint64_t hash = hash_of(settling, class_, &settling->form);
    const uint32_t tag = (uint32_t)hash, rest = (uint32_t)(hash >> 32);
    places p = places_of(settling, last, tag);
    for (;;) {
        mdp_seen *seen = next_place(settling, &p);
        uint32_t *of_seen = &settling->rest[seen - settling->seen];
        if (seen->state == 0) {
            seen->tag = tag;
            *of_seen = rest;
            return seen;
        }
        if (seen->tag == tag && *of_seen == rest) return seen;
    }
}

static uint32_t block_of(const mdp_settling *settling, const mdp_seen *seen)
{
    return seen->state == 0 ? MDP_OPEN : settling->block[(seen->state & ~OWN) - 1];
}

// Puts a state where nothing was seen.
static psi_status keep(mdp_settling *settling, mdp_seen *place, uint32_t s, uint32_t own)
{
    place->state = (s + 1) | own;
    settling->n_seen++;
    return 3 * settling->n_seen > 2 * settling->room ? grow(settling) : PSI_OK;
}

// ---- one state ----------------------------------------------------------------------------------

psi_status mdp_settle(mdp_settling *settling, uint32_t s)
{
    uint32_t last;
    if (!find_last(settling, s, MDP_OWN, &last)) return PSI_OK;
    settling->n_looked++;
    mdp_form_fill(settling->signing, settling->block, s, &settling->form);
    mdp_seen *seen = look_up(settling, settling->signing->class_[s], last);
    settling->block[s] = block_of(settling, seen);
    if (settling->block[s] != MDP_OPEN) return PSI_OK;
    settling->block[s] = settling->n_blocks++;
    return keep(settling, seen, s, 0);
}

psi_status mdp_settling_show(mdp_settling *settling, uint32_t s)
{
    uint32_t last;
    find_last(settling, s, MDP_OWN, &last);
    mdp_form_fill(settling->signing, settling->block, s, &settling->form);
    mdp_seen *seen = look_up(settling, settling->signing->class_[s], last);
    return seen->state == 0 ? keep(settling, seen, s, 0) : PSI_OK;
}

// ---- a cycle ------------------------------------------------------------------------------------

static void set_all(mdp_settling *settling, const uint32_t *list, size_t n, uint32_t block)
{
    for (size_t i = 0; i < n; i++) settling->block[list[i]] = block;
}

// The last of the blocks that the cycle leads to; 0 also if there is none. False if one is open.
static bool find_exit(const mdp_settling *settling, const uint32_t *list, size_t n, uint32_t *exit)
{
    *exit = 0;
    for (size_t k = 0; k < n; k++) {
        uint32_t last;
        if (!find_last(settling, list[k], MDP_OWN, &last)) return false;
        if (last > *exit) *exit = last;
    }
    return true;
}

// Do they all look like the first, whose signature is in form, if their own block is called so?
static bool all_like_first(mdp_settling *settling, const uint32_t *list, size_t n, uint32_t own)
{
    const uint32_t *class_ = settling->signing->class_;
    bool same = true;
    settling->other.from = MDP_OWN;
    settling->other.to = own;
    for (size_t i = 1; i < n && same; i++) {
        same = class_[list[i]] == class_[list[0]];
        if (same) mdp_form_fill(settling->signing, settling->block, list[i], &settling->other);
        same = same && mdp_form_equal(&settling->form, &settling->other);
    }
    return same;
}

// Has a state that was seen the signature in form? Compared in full.
static bool is_same(mdp_settling *settling, const mdp_seen *seen, uint32_t class_)
{
    const uint32_t s = (seen->state & ~OWN) - 1;
    if (settling->signing->class_[s] != class_) return false;
    settling->other.from = seen->state & OWN ? settling->block[s] : MDP_OWN;
    settling->other.to = MDP_OWN;
    mdp_form_fill(settling->signing, settling->block, s, &settling->other);
    return mdp_form_equal(&settling->form, &settling->other);
}

// Are they all of a block that they lead to? It can only be the last, since a block leads to itself
// or to earlier ones.
static bool is_exit(mdp_settling *settling, const uint32_t *list, size_t n, uint32_t exit)
{
    settling->form.to = exit;
    mdp_form_fill(settling->signing, settling->block, list[0], &settling->form);
    settling->form.to = MDP_OWN;
    const uint32_t class_ = settling->signing->class_[list[0]];
    const mdp_seen *seen = look_up(settling, class_, exit);
    if (block_of(settling, seen) == exit) return all_like_first(settling, list, n, exit);
    // one that only shares the hash may stand before the one that is looked for
    if (seen->state != 0 && !is_same(settling, seen, class_)) settling->collided = true;
    return false;
}

psi_status mdp_settle_cycle(mdp_settling *settling, const uint32_t *list, size_t n)
{
    psi_status status = PSI_OK;
    uint32_t exit;
    set_all(settling, list, n, MDP_OWN);
    if (!find_exit(settling, list, n, &exit)) {
        set_all(settling, list, n, MDP_OPEN);
        return PSI_OK;
    }
    if (is_exit(settling, list, n, exit)) {
        set_all(settling, list, n, exit);
        return PSI_OK;
    }
    // or all of them look the same to the outside, whatever their own block is called
    mdp_form_fill(settling->signing, settling->block, list[0], &settling->form);
    if (!all_like_first(settling, list, n, MDP_OWN)) {
        set_all(settling, list, n, MDP_OPEN);
        return PSI_OK;
    }
    uint32_t last;
    find_last(settling, list[0], MDP_OWN, &last);
    mdp_seen *seen = look_up(settling, settling->signing->class_[list[0]], last);
    const uint32_t known = block_of(settling, seen);
    set_all(settling, list, n, known != MDP_OPEN ? known : settling->n_blocks++);
    if (known != MDP_OPEN) return PSI_OK;
    TRY(keep(settling, seen, list[0], OWN));
    TRY(mdp_settling_show(settling, list[0]));
done:
    return status;
}
