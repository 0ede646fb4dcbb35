#include "run/phases.h"

#include "base/progress.h"

const char *run_phase_name(run_phase phase)
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

void run_phases_start(run_phases *phases, const uint64_t *passed)
{
    *phases = (run_phases){
        .now = PHASE_REST, .since = base_seconds(), .passed = passed, .counted = *passed};
}

void run_phases_turn_to(run_phases *phases, run_phase next)
{
    const double now = base_seconds();
    phases->seconds[phases->now] += now - phases->since;
    phases->passes[phases->now] += *phases->passed - phases->counted;
    if (phases->spent) {
        psi_ranks_cost *talk = &phases->talk[phases->now];
        talk->calls += phases->spent->calls - phases->seen.calls;
        talk->bytes += phases->spent->bytes - phases->seen.bytes;
        talk->received += phases->spent->received - phases->seen.received;
        talk->seconds += phases->spent->seconds - phases->seen.seconds;
        phases->seen = *phases->spent;
    }
    phases->since = now;
    phases->counted = *phases->passed;
    phases->now = next;
}

void run_phases_update(run_phases *phases)
{
    run_phases_turn_to(phases, phases->now);
}
