// What a state looks like from outside, given the blocks of its successors: the set of its choices,
// each with its kind (action and rewards) and the mass it sends into every block. As a hash, and in
// full.
#ifndef PSI_MDP_SIGNATURE_H
#define PSI_MDP_SIGNATURE_H

#include <psifold/mdp.h>

#include "mdp/components.h"
#include "mdp/intern.h"
#include "mdp/masses.h"
#include "mdp/rational.h"

typedef struct mdp_signing {
    const psi_model *model;
    mdp_masses masses; // residues, or counts of 2^−52 with a tolerance
    uint32_t *kind;    // (C) equal for choices with equal action and rewards
    uint32_t *class_;  // (S) equal for states with equal labels, state rewards and start block
    size_t n_classes;
    mdp_components order;              // from the bottom; not complete: all are refined together
    uint64_t cell;                     // width of a cell in counts; 0: exact
    bool distinct;                     // no state has two choices of one kind
    bool linear;                       // and masses are residues: the hash is linear in them
    size_t most_choices, most_entries; // of any state
    uint64_t salt;                     // of the hash
    uint64_t keep;                     // bits of the hash that are kept
    size_t round_share;                // when lists are better than flags; tests take others
    size_t bytes;                      // allocated
} mdp_signing;

// PSI_EUSAGE for a label or reward that is not there, or a number that cannot be used.
psi_status mdp_signing_check(psi_ctx *ctx, const psi_model *model,
                             const psi_quotient_options *options);

// Prepares the numbers, for options that were checked.
psi_status mdp_signing_new(psi_ctx *ctx, const psi_model *model,
                           const psi_quotient_options *options, mdp_signing *out);
void mdp_signing_free(psi_ctx *ctx, mdp_signing *signing);

// Looks for the order anew: it is complete if at most one in so many states is on a cycle with
// others. For tests, which have few states.
psi_status mdp_signing_search(psi_ctx *ctx, mdp_signing *signing, size_t cyclic_share);

// Is name one of the words of "a,b"? NULL names all.
bool mdp_is_word(const char *words, const char *name);

// Instead of a block: it is not known yet; it is the same as that of the state that is looked at.
enum { MDP_OPEN = UINT32_MAX, MDP_OWN = UINT32_MAX - 1 };

// Memory for the signature of one state; one per thread.
typedef struct mdp_form {
    uint64_t *words;   // choice by choice: kind and n of pairs, then pairs (block, mass) by block
    size_t *begin;     // (n + 1) of each choice
    size_t n;          // distinct choices, in ascending order of their words
    size_t *order;     // scratch
    uint32_t from, to; // a block that is written as another; at first: none is
} mdp_form;

psi_status mdp_form_new(psi_ctx *ctx, const mdp_signing *signing, mdp_form *out);
void mdp_form_free(psi_ctx *ctx, mdp_form *form);

// The signature in full: two states have the same words iff they have the same signature.
void mdp_form_fill(const mdp_signing *signing, const uint32_t *block, size_t state, mdp_form *form);
bool mdp_form_equal(const mdp_form *a, const mdp_form *b);
static inline size_t mdp_form_length(const mdp_form *form)
{
    return form->begin[form->n];
}

// Do two states have the same signature? Without writing it down where states are small and their
// choices distinct; a and b are scratch.
bool mdp_same_signature(const mdp_signing *signing, const uint32_t *block, size_t s, size_t t,
                        mdp_form *a, mdp_form *b);

static inline uint64_t mdp_mass(const mdp_signing *signing, uint64_t transition)
{
    return signing->masses.mass[signing->masses.row[transition]];
}

// Pseudo-random residues for blocks and kinds of choices.
static inline uint64_t mdp_block_weight(const mdp_signing *signing, uint32_t block)
{
    const uint64_t x = (block + signing->salt) * UINT64_C(0x9E3779B97F4A7C15);
    return (x ^ x >> 32) * UINT64_C(0xD6E8FEB86659FD93) >> 3;
}

static inline uint64_t mdp_kind_weight(const mdp_signing *signing, uint32_t kind)
{
    return mdp_mix(kind * UINT64_C(0xD1B54A32D192ED03) ^ signing->salt) >> 3;
}

// The hash of a state's signature. A linear one is Σ_c u(kind_c) · (Σ_i p_i · w(block_i) + w'): if
// a successor goes from block b to b', it changes by u · p · (w(b') − w(b)), and nothing else of
// the state has to be looked at. form is used only where the hash is not linear.
uint64_t mdp_signature(const mdp_signing *signing, const uint32_t *block, size_t state,
                       mdp_form *form);

#endif
