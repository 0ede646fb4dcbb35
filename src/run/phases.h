// What psi_cluster does, phase by phase: how long each takes and how many observations go through a
// network in it. One phase is under way at any time, so that the seconds add up to the whole.
#ifndef PSI_RUN_PHASES_H
#define PSI_RUN_PHASES_H

#include <psifold/cluster.h>

typedef enum run_phase {
    PHASE_LEARNING,       // the trunk
    PHASE_FEATURES,       // of all observations
    PHASE_REFINEMENTS,    // Algorithm 1
    PHASE_LABELS,         // what looks and trajectories say about labels
    PHASE_JUDGING,        // how sure that is
    PHASE_REPRESENTATION, // the network that comes out
    PHASE_HEADS,          // of the refinements
    PHASE_REST,
    PHASES
} run_phase;

typedef struct run_phases {
    double seconds[PHASES];
    uint64_t passes[PHASES];
    run_phase now;               // the one under way
    double since;                // when it was last brought up to date
    const uint64_t *passed;      // observations that went through a network in this process …
    uint64_t counted;            // … and how many of them are in passes
    const psi_ranks_cost *spent; // on talking to other processes; NULL: there are none
    psi_ranks_cost seen, talk[PHASES];
} run_phases;

const char *run_phase_name(run_phase phase);

// The clock starts with PHASE_REST; *passed is looked at whenever phases change.
void run_phases_start(run_phases *phases, const uint64_t *passed);
void run_phases_turn_to(run_phases *phases, run_phase next);
void run_phases_update(run_phases *phases); // brings the one under way up to date

#endif
