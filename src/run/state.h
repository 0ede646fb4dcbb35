// Where a clustering by successor features stands between two refinements: all else follows from
// it, so that a run that was interrupted goes on from what checkpoint.h kept of it.
#ifndef PSI_RUN_STATE_H
#define PSI_RUN_STATE_H

#include "refine/refine.h"
#include "run/phases.h"

typedef struct run_state {
    refinement refinement;
    run_phases phases; // up to date whenever the state is kept
} run_state;

#endif
