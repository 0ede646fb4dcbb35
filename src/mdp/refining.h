// The inside of partition refinement: what passes over all states and rounds over lists share.
#ifndef PSI_MDP_REFINING_H
#define PSI_MDP_REFINING_H

#include "base/context.h"
#include "base/threads.h"
#include "mdp/intern.h"
#include "mdp/partition_refinement.h"

// A state is dirty if a successor of its was renamed since it was signed. The clean states of a
// block all have the block's signature. While passes are made, a block is only a size, and dirty
// states have a flag; in rounds, the states of a block stand together in refining.state, clean ones
// first.
typedef struct mdp_block {
    uint32_t begin, end, dirty; // clean: begin … dirty; dirty: dirty … end. In passes: 0, size
    uint64_t sig;               // of the clean ones
} mdp_block;

// What one thread of a pass does: groups of (block, signature), and a slice of the states.
typedef struct mdp_shard {
    psi_status status;
    mdp_form form; // for signing
    mdp_intern table;
    size_t room;
    uint32_t *of_block, *count, *name;             // (room) per group
    uint64_t *sig;                                 // (room)
    size_t begin, n_dirty, n_moved, n_clean_moved; // of the slice: from begin in work; in fresh
    size_t reach;                                  // transitions into those that moved
} mdp_shard;

// A transition as its target sees it.
typedef struct mdp_source {
    uint32_t state;
    uint32_t row; // of masses
} mdp_source;

typedef struct mdp_refining {
    psi_ctx *ctx;
    base_team *team;
    int threads;
    mdp_signing *signing;
    size_t n; // states
    uint32_t *block;
    uint64_t *sig;     // (n) of every state, always; if not linear, as computed last
    mdp_block *blocks; // (n)
    size_t n_blocks;
    mdp_shard *shards; // (threads)
    uint8_t *flag;     // (n) of dirty states, in passes
    bool listed;       // state and place are as the blocks say
    uint32_t *state;   // (n) by block; in a pass: the group of what stands at this place of work
    uint32_t *place;   // (n) where a state stands there; in a pass: the block of what is in work
    uint32_t *work;    // (n) states to be signed; in a pass: then those that moved
    uint64_t *key;     // (n) in a pass: what is looked at of their signatures
    uint32_t *scratch; // (n)
    uint32_t *left;    // (n) clean states of a block with dirty ones; 0 but while a pass names them
    uint32_t *clean_name; // (n) what these are called then
    uint32_t *queue;      // (n) blocks with dirty states
    uint32_t *fresh;      // (n) blocks that got a name in this round …
    uint32_t *parent;     // (n) … and those they were part of
    size_t n_queue, n_fresh, n_dirty;
    bool clean_moves;   // some block's clean states are not its largest part
    uint64_t *sources;  // (n + 1) the states that lead to s: source[sources[s]] …
    mdp_source *source; // (m)
    uint64_t *factor;   // (rows of masses) u · p, where signatures are linear
    size_t bytes;
} mdp_refining;

// The part of a signature that is looked at: all of it, but for tests.
static inline uint64_t mdp_key(const mdp_refining *r, uint32_t s)
{
    return r->sig[s] & r->signing->keep;
}

// What a signature changes by when its state's successor goes from one block to another, per u · p.
static inline uint64_t mdp_step(const mdp_refining *r, uint32_t from, uint32_t to)
{
    if (!r->signing->linear) return 0;
    return mdp_plus(mdp_fold(mdp_block_weight(r->signing, to)),
                    MDP_PRIME - mdp_fold(mdp_block_weight(r->signing, from)));
}

// A pass: signs every flagged state and splits the blocks; the largest part keeps the block's name,
// and what leads to the others is flagged. *reach gets how many transitions that were.
psi_status mdp_refining_pass(mdp_refining *r, size_t *reach);

// After a pass: lists the states by block; those that are flagged are the dirty ones.
void mdp_refining_list(mdp_refining *r);

// A round: signs the dirty states, splits their blocks, marks what leads to renamed states.
psi_status mdp_refining_round(mdp_refining *r);

// From rounds to passes: dirty states are flagged again.
void mdp_refining_unlist(mdp_refining *r);

#endif
