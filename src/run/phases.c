#include "run/phases.h"

#include "base/progress.h"

const char *cluster_phase_name(cluster_phase phase)
{
    static const char *const NAMES[PHASES] = {
        [PHASE_LEARNING] = "learning features",
        [PHASE_FEATURES] = "computing features",
        [PHASE_REFINEMENTS] = "refinements",
        [PHASE_LABELS] = "labelling observations",
        [PHASE_JUDGING] = "judging",
        [PHASE_REPRESENTATION] = "training the representation",
        [PHASE_HEADS] = "heads of the refinements",
        [PHASE_REST] = "everything else",
    };
    return NAMES[phase];
}

void cluster_phases_start(cluster_phases *phases, const uint64_t *passed)
{
    *phases = (cluster_phases){
        .now = PHASE_REST, .since = base_seconds(), .passed = passed, .counted = *passed};
}

void cluster_phases_turn_to(cluster_phases *phases, cluster_phase next)
{
    const double now = base_seconds();
    phases->seconds[phases->now] += now - phases->since;
    phases->passes[phases->now] += *phases->passed - phases->counted;
    phases->since = now;
    phases->counted = *phases->passed;
    phases->now = next;
}

void cluster_phases_update(cluster_phases *phases)
{
    cluster_phases_turn_to(phases, phases->now);
}
