// Observations that look alike and are of one latent state: what has to show that it is, together.
#ifndef PSI_VERDICT_UNITS_H
#define PSI_VERDICT_UNITS_H

#include "verdict/judging.h"

enum { UNITS_FEW = 16 }; // rows that chance may set apart

// Observations that have to show enough of every action together: those of one latent state that
// look alike.
typedef struct units {
    size_t n;
    int32_t *of;      // (n_rows, and references of others) −1: of none
    int32_t *group;   // (n) −1: of none
    uint32_t *visits; // (n, A)
    size_t *rows;     // (n)
    double *same;     // (n) nats by which all that followed is the group's law, not one of its own
    double *against;  // (n) … and by which single families speak against it
} units;

// Leaves of a table are units as they are; of looks, connected rows of one label.
psi_status verdict_units_new(judging *run, units *out);
void verdict_units_free(psi_ctx *ctx, units *all);

// Of a table: which latent states are of several observations (n_groups), and how many rows are of
// those that took some action too rarely to show that they are not one of the others, each as a
// doubt (merged.c).
psi_status verdict_ask_merged(judging *run, const units *all, uint8_t *several, size_t *doubtful);

// Of looks: how many rows are of a few that look alike and unlike all others, and took some action
// too rarely to show another law, each as a doubt (clumps.c). needed (n_groups, A): draws that do.
psi_status verdict_ask_clumps(judging *run, const problem_looks *looks, const double *needed,
                              size_t *doubtful);

#endif
