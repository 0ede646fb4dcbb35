// Random small models whose probabilities are counts of 1/420, so that brute force can compare them
// exactly, and the blocks that it finds.
#ifndef PSI_TEST_COUNTED_H
#define PSI_TEST_COUNTED_H

#include <psifold/mdp.h>

#include <stdbool.h>
#include <stdint.h>

enum { COUNTED_STATES = 14, COUNTED_CHOICES = 4 }; // at most

typedef struct counted {
    size_t n, n_choices[COUNTED_STATES];
    int action[COUNTED_STATES][COUNTED_CHOICES], reward[COUNTED_STATES][COUNTED_CHOICES];
    int mass[COUNTED_STATES][COUNTED_CHOICES][COUNTED_STATES], label[COUNTED_STATES];
} counted;

// Few latent states with several copies each, so that there is something to be found.
counted counted_random(uint64_t seed);

// The same as a model with state s as order[s], choices turned round if asked for, transitions in
// pieces.
psi_model *counted_to_model(psi_ctx *ctx, const counted *m, const uint32_t *order, bool turned);

// The coarsest blocks, label[s] for state s, by rounds of comparing all with all; named: choices
// are equal only if their actions are.
void counted_blocks(const counted *m, bool named, int32_t *label);

// Fails unless the partition has these blocks, state s being called order[s] there.
void counted_assert_blocks(psi_ctx *ctx, const psi_partition *c, const int32_t *label,
                           const uint32_t *order);

#endif
