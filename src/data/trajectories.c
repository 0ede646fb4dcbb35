#include "data/trajectories.h"

#include "base/checked.h"
#include "base/comm.h"
#include "data/observations.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

psi_status data_set_new(psi_ctx *ctx, const char *name, bool latent_states, data_set **out)
{
    psi_status status = PSI_OK;
    data_set *set = NULL;
    *out = NULL;
    TRY(base_alloc_zero(ctx, 1, sizeof *set, &set));
    set->has_latent_states = latent_states;
    TRY(base_copy_text(ctx, name, &set->name));
    TRY(base_alloc_zero(ctx, 1, sizeof *set->episode_offsets, &set->episode_offsets));
    *out = set;
    set = NULL;
done:
    data_set_free(ctx, set);
    return status;
}

void data_set_free(psi_ctx *ctx, data_set *set)
{
    if (!set) return;
    psi_observations_free(ctx, set->view.observations);
    base_free(ctx, set->observation_key);
    base_free(ctx, set->latent_states);
    base_free(ctx, set->final_missing);
    base_free(ctx, set->truncated);
    base_free(ctx, set->terminated);
    base_free(ctx, set->episode_offsets);
    base_free(ctx, set->rewards);
    base_free(ctx, set->actions);
    base_free(ctx, set->name);
    base_retire(ctx, set);
}

void psi_trajectories_free(psi_ctx *ctx, psi_trajectories *trajectories)
{
    if (!FREED(ctx, trajectories)) data_set_free(ctx, (data_set *)trajectories);
}

static psi_status grow_steps(psi_ctx *ctx, data_set *set, size_t needed)
{
    if (needed <= set->step_room && set->actions) return PSI_OK;
    const size_t room = base_max(needed, base_max(1024, set->step_room * 2));
    psi_status status = PSI_OK;
    TRY(base_resize(ctx, room, sizeof *set->actions, &set->actions));
    TRY(base_resize(ctx, room, sizeof *set->rewards, &set->rewards));
    set->step_room = room;
done:
    return status;
}

static psi_status grow_episodes(psi_ctx *ctx, data_set *set, size_t needed)
{
    if (needed <= set->episode_room) return PSI_OK;
    const size_t room = base_max(needed, base_max(64, set->episode_room * 2));
    psi_status status = PSI_OK;
    TRY(base_resize(ctx, room + 1, sizeof *set->episode_offsets, &set->episode_offsets));
    TRY(base_resize(ctx, room, 1, &set->terminated));
    TRY(base_resize(ctx, room, 1, &set->truncated));
    TRY(base_resize(ctx, room, 1, &set->final_missing));
    set->episode_room = room;
done:
    return status;
}

psi_status data_set_append(psi_ctx *ctx, data_set *set, size_t length)
{
    psi_trajectories *view = &set->view;
    psi_status status = PSI_OK;
    size_t steps, rows;
    if (!base_add(view->n_transitions, length, &steps) ||
        !base_add(steps, view->n_episodes + 1, &rows)) {
        return FAIL(ctx, PSI_ELIMIT, "%s: too many steps to be counted", set->name);
    }
    TRY(grow_steps(ctx, set, steps));
    TRY(grow_episodes(ctx, set, view->n_episodes + 1));
    if (set->has_latent_states && rows > set->latent_room) {
        const size_t room = base_max(rows, set->step_room + set->episode_room);
        TRY(base_resize(ctx, room, sizeof *set->latent_states, &set->latent_states));
        set->latent_room = room;
    }
    const size_t e = view->n_episodes++;
    view->n_transitions = steps;
    view->n_observations = rows;
    set->episode_offsets[e + 1] = steps;
    set->terminated[e] = set->truncated[e] = set->final_missing[e] = 0;
done:
    return status;
}

void data_finding(psi_ctx *ctx, data_set *set, const char *format, ...)
{
    char sentence[DATA_FINDING_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    base_warn(ctx, "%s: %s", set->name, sentence);
    if (set->view.n_findings < DATA_FINDINGS) {
        const size_t i = set->view.n_findings++;
        memcpy(set->finding[i], sentence, sizeof sentence);
        set->findings[i] = set->finding[i];
        set->view.findings = set->findings;
    }
}

void data_tell_no_ends(psi_ctx *ctx, data_set *set, size_t episodes)
{
    if (episodes == 0) return;
    data_finding(ctx, set,
                 "%zu episodes are neither terminated nor truncated; they count as cut off.",
                 episodes);
}

void data_tell_missing_ends(psi_ctx *ctx, data_set *set, size_t repeated, size_t dropped)
{
    if (repeated) {
        data_finding(ctx, set,
                     "%zu terminated episodes come without their last observation; it is never "
                     "looked at.",
                     repeated);
    }
    if (dropped) {
        data_finding(ctx, set,
                     "%zu episodes were cut off, and the file does not say what followed their "
                     "last row: it serves as the last observation, its action and reward are "
                     "dropped.",
                     dropped);
    }
}

psi_status data_set_actions(psi_ctx *ctx, data_set *set, size_t first, const int64_t *values,
                            size_t n, int64_t start, const char *field)
{
    for (size_t i = 0; i < n; i++) {
        int64_t action;
        if (__builtin_sub_overflow(values[i], start, &action) || action < 0 ||
            action >= INT32_MAX) {
            return FAIL(ctx, PSI_EDATA, "%s: %s: %lld at step %zu is not an action from %lld on",
                        set->name, field, (long long)values[i], i, (long long)start);
        }
        set->actions[first + i] = (int32_t)action;
    }
    return PSI_OK;
}

psi_status data_set_latent(psi_ctx *ctx, data_set *set, size_t first, const int64_t *values,
                           size_t n, const char *field)
{
    for (size_t i = 0; i < n; i++) {
        if (values[i] < 0 || values[i] > INT32_MAX) {
            return FAIL(ctx, PSI_EDATA, "%s: %s: %lld at step %zu is not a latent state", set->name,
                        field, (long long)values[i], i);
        }
        set->latent_states[first + i] = (int32_t)values[i];
    }
    return PSI_OK;
}

void data_set_count_actions(psi_ctx *ctx, data_set *set)
{
    int32_t largest = 0;
    for (size_t t = 0; t < set->view.n_transitions; t++) {
        if (set->actions[t] > largest) largest = set->actions[t];
    }
    set->view.n_actions = (size_t)largest + 1;
    set->actions_counted = true;
    data_finding(ctx, set,
                 "The file does not say how many actions there are: %zu are assumed, because the "
                 "largest is %d.",
                 set->view.n_actions, (int)largest);
}

psi_status data_set_finish(psi_ctx *ctx, data_set *set, psi_observations *observations,
                           psi_trajectories **out)
{
    psi_trajectories *view = &set->view;
    *out = NULL;
    view->observations = observations;
    view->actions = set->actions;
    view->rewards = set->rewards;
    view->episode_offsets = set->episode_offsets;
    view->terminated = set->terminated;
    view->truncated = set->truncated;
    view->final_missing = set->final_missing;
    view->latent_states = set->latent_states;
    const bool none = view->n_episodes == 0 && base_ranks(ctx) > 1; // others have some
    const psi_status status = none ? PSI_OK : psi_trajectories_check(ctx, view, set->name);
    if (status == PSI_OK) {
        *out = view;
    } else {
        data_set_free(ctx, set);
    }
    return status;
}
