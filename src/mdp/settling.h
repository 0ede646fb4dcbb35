// Blocks of states whose successors' blocks are known: what such a state looks like will not change
// any more, and its block is found by looking its hash up. Nobody is signed twice. What shares a
// hash is taken to be the same until all states are compared in full, which many threads can do.
#ifndef PSI_MDP_SETTLING_H
#define PSI_MDP_SETTLING_H

#include "mdp/signature.h"

// A signature that was seen: that of a state, or, with OWN, that in which its own block is called
// MDP_OWN.
typedef struct mdp_seen {
    uint32_t tag;   // the lower half of its hash
    uint32_t state; // + 1; 0: a free place
} mdp_seen;

typedef struct mdp_settling {
    psi_ctx *ctx;
    const mdp_signing *signing;
    uint32_t *block; // (S) MDP_OPEN at first
    uint32_t n_blocks;
    mdp_form form, other; // for signing and comparing
    mdp_seen *seen;       // (room) open addressing, at most two thirds full
    uint32_t *rest;       // (room) the upper halves of their hashes
    size_t room, n_seen;  // room: a power of 2
    size_t n_looked;      // states whose block was looked up
    bool collided;        // a block may have been missed because of another with its hash
} mdp_settling;

psi_status mdp_settling_new(psi_ctx *ctx, const mdp_signing *signing, mdp_settling *out);
void mdp_settling_free(mdp_settling *settling);
size_t mdp_settling_bytes(const mdp_settling *settling);

// Finds the block of a state that does not lead to itself; it stays open if a successor's is.
psi_status mdp_settle(mdp_settling *settling, uint32_t state);

// Finds the block of states that lead to each other, if that is one block for all of them. They all
// stay open if it is not, or if that of another successor is open.
psi_status mdp_settle_cycle(mdp_settling *settling, const uint32_t *list, size_t n);

// From now on, what looks like this state, whose block is known, is in its block.
psi_status mdp_settling_show(mdp_settling *settling, uint32_t state);

#endif
