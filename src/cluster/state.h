// Where a clustering by successor features stands between two refinements: all else follows from
// it, so that a run that was interrupted goes on from what checkpoint.h kept of it.
#ifndef PSI_CLUSTER_STATE_H
#define PSI_CLUSTER_STATE_H

#include "cluster/phases.h"
#include "cluster/refine.h"

typedef struct run_state {
    refinement refinement;
    cluster_phases phases; // up to date whenever the state is kept
} run_state;

#endif
