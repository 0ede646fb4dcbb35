// Doubles as the fractions they stand for, in the field of integers modulo the prime 2^61 − 1: sums
// there are exact and do not depend on their order. Two different fractions share a residue with
// probability 2^−61.
#ifndef PSI_MDP_RATIONAL_H
#define PSI_MDP_RATIONAL_H

#include <stddef.h>
#include <stdint.h>

#define MDP_PRIME ((UINT64_C(1) << 61) - 1)

__extension__ typedef unsigned __int128 mdp_wide;

// x modulo the prime, for any sum of up to 64 products of residues.
static inline uint64_t mdp_fold(mdp_wide x)
{
    const uint64_t high = (uint64_t)(x >> 61),
                   once = ((uint64_t)x & MDP_PRIME) + (high & MDP_PRIME);
    const uint64_t sum = once + (uint64_t)(x >> 122);
    const uint64_t folded = (sum & MDP_PRIME) + (sum >> 61);
    return folded >= MDP_PRIME ? folded - MDP_PRIME : folded;
}

static inline uint64_t mdp_times(uint64_t a, uint64_t b)
{
    return mdp_fold((mdp_wide)a * b);
}

static inline uint64_t mdp_plus(uint64_t a, uint64_t b)
{
    const uint64_t sum = a + b;
    return sum >= MDP_PRIME ? sum - MDP_PRIME : sum;
}

uint64_t mdp_inverse(uint64_t a); // a^(P − 2): 1/a for a ≠ 0

// The residue of the fraction that a finite double stands for: p/q with q ≤ 2^20 if that is the
// double up to its last two bits, or rounds to it as a decimal of six digits and more; else a
// decimal of at most 15 digits that reads as it, else its binary value.
uint64_t mdp_residue(double x);

// The double nearest to that fraction: .1 + .2 gives .3.
double mdp_snap(double x);

// Remembers the residues of numbers seen lately: models have few different ones.
enum { MDP_RESIDUES = 1024 };
typedef struct mdp_residues {
    uint64_t bits[MDP_RESIDUES], residue[MDP_RESIDUES];
} mdp_residues;

// All zero is an empty memory: the residue of 0.0 (bits 0) is 0.
uint64_t mdp_residue_of(mdp_residues *known, double x);

#endif
