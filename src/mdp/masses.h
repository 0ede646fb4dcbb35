// The probabilities of a model as integers. There are far fewer different ones than transitions: a
// transition has the number of a row, which has its mass and the kind of its choice.
#ifndef PSI_MDP_MASSES_H
#define PSI_MDP_MASSES_H

#include "base/threads.h"

#include <psifold/mdp.h>

typedef struct mdp_masses {
    uint32_t *row; // (m) of a transition:
    size_t n_rows;
    uint64_t *mass; // (n_rows) a residue, or a count of 2^−52 if residues are not asked for
    uint32_t *kind; // (n_rows)
} mdp_masses;

// kind (C) is that of every choice. Rows may have equals, if there are many. PSI_ELIMIT for 2^32
// rows and more. team: NULL for the thread that calls.
psi_status mdp_masses_new(psi_ctx *ctx, base_team *team, const psi_model *model,
                          const uint32_t *kind, bool residues, mdp_masses *out);
void mdp_masses_free(psi_ctx *ctx, mdp_masses *masses);

#endif
