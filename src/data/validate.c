// Everything that can be wrong with trajectories, in one place: readers, collector and writers all
// come through here.
#include "base/checked.h"
#include "base/context.h"
#include "data/observations.h"
#include "data/trajectories.h"

#include <float.h>
#include <math.h>
#include <string.h>

static psi_status check_steps(psi_ctx *ctx, const char *name, size_t e, const int32_t *actions,
                              const double *rewards, size_t length, size_t n_actions)
{
    for (size_t t = 0; t < length; t++) {
        if (!isfinite(rewards[t])) {
            return FAIL(ctx, PSI_EDATA,
                        "%s: episode %zu, rewards: %g at step %zu is not a number "
                        "psifold can learn from",
                        name, e, rewards[t], t);
        }
        if (actions[t] < 0 || (size_t)actions[t] >= n_actions) {
            return FAIL(ctx, PSI_EDATA,
                        "%s: episode %zu, actions: %d at step %zu is not one of the "
                        "%zu actions 0 … %zu",
                        name, e, (int)actions[t], t, n_actions, n_actions - 1);
        }
    }
    return PSI_OK;
}

static psi_status check_latent(psi_ctx *ctx, const char *name, size_t e, const int32_t *states,
                               size_t n)
{
    for (size_t t = 0; t < n; t++) {
        if (states[t] < 0) {
            return FAIL(ctx, PSI_EDATA,
                        "%s: episode %zu, latent states: %d at step %zu is negative", name, e,
                        (int)states[t], t);
        }
    }
    return PSI_OK;
}

// In floating point, where nothing overflows.
psi_status data_check_appetite(psi_ctx *ctx, const psi_trajectories *all, const char *name)
{
    const double given =
        (double)all->n_observations * (double)psi_observations_row_bytes(all->observations) +
        (double)all->n_transitions * (sizeof *all->actions + sizeof *all->rewards);
    const double wanted = (double)all->n_observations * (double)all->n_actions * PSI_PAIR_BYTES;
    if (wanted <= given * PSI_BYTES_PER_BYTE) return PSI_OK;
    return FAIL(ctx, PSI_ELIMIT,
                "%s: actions: %zu of them are too many for %zu transitions of %.0f bytes in all; "
                "%d bytes of memory for each byte are the limit. Number those that occur from 0 on",
                name, all->n_actions, all->n_transitions, given, PSI_BYTES_PER_BYTE);
}

psi_status psi_trajectories_check(psi_ctx *ctx, const psi_trajectories *trajectories,
                                  const char *name)
{
    if (FREED(ctx, trajectories)) return PSI_EUSAGE;
    const psi_trajectories *all = trajectories;
    if (all->n_episodes == 0) return FAIL(ctx, PSI_EDATA, "%s: there are no episodes in it", name);
    if (all->n_actions == 0 || all->n_actions > PSI_MAX_ACTIONS) {
        return FAIL(ctx, PSI_EDATA, "%s: actions: %zu different ones are none or too many", name,
                    all->n_actions);
    }
    if (all->episode_offsets[0] != 0 ||
        all->episode_offsets[all->n_episodes] != all->n_transitions ||
        all->n_observations != all->n_transitions + all->n_episodes) {
        return FAIL(ctx, PSI_EDATA,
                    "%s: %zu episodes, %zu transitions and %zu observations do not "
                    "belong together",
                    name, all->n_episodes, all->n_transitions, all->n_observations);
    }
    if (psi_observations_count(all->observations) != all->n_observations) {
        return FAIL(ctx, PSI_EDATA,
                    "%s: there are %zu observations, and %zu states in the episodes", name,
                    psi_observations_count(all->observations), all->n_observations);
    }
    for (size_t e = 0; e < all->n_episodes; e++) {
        const size_t begin = all->episode_offsets[e], end = all->episode_offsets[e + 1];
        if (begin > end || end > all->n_transitions) {
            return FAIL(ctx, PSI_EDATA, "%s: episode %zu, offsets: runs from %zu to %zu", name, e,
                        begin, end);
        }
        if (begin == end) {
            return FAIL(ctx, PSI_EDATA, "%s: episode %zu, rewards: the episode has no steps", name,
                        e);
        }
        if (!all->terminated[e] && !all->truncated[e]) {
            return FAIL(ctx, PSI_EDATA,
                        "%s: episode %zu, terminated and truncated: neither is set, "
                        "so nothing says how the episode ended",
                        name, e);
        }
        psi_status status = check_steps(ctx, name, e, all->actions + begin, all->rewards + begin,
                                        end - begin, all->n_actions);
        if (status == PSI_OK && all->latent_states) {
            status =
                check_latent(ctx, name, e, all->latent_states + psi_row(e, begin), end - begin + 1);
        }
        if (status != PSI_OK) return status;
    }
    return PSI_OK;
}

psi_status data_check_spec(psi_ctx *ctx, const psi_episode_spec *spec)
{
    size_t bytes = psi_dtype_size(spec->observation_dtype);
    bool good = bytes > 0 && spec->observation_shape.rank <= PSI_MAX_RANK;
    for (size_t d = 0; good && d < spec->observation_shape.rank; d++) {
        good = spec->observation_shape.dim[d] > 0 &&
               base_mul(bytes, spec->observation_shape.dim[d], &bytes);
    }
    if (!good) return FAIL(ctx, PSI_ESHAPE, "observations of this type and shape cannot be stored");
    if (spec->n_actions == 0 || spec->n_actions > PSI_MAX_ACTIONS) {
        return FAIL(ctx, PSI_ESHAPE, "%zu actions are none or too many", spec->n_actions);
    }
    if (isnan(spec->observation_low) || isnan(spec->observation_high) ||
        spec->observation_low > spec->observation_high) {
        return FAIL(ctx, PSI_EUSAGE,
                    "the bounds %g … %g of the observations are the wrong way round",
                    spec->observation_low, spec->observation_high);
    }
    return PSI_OK;
}

psi_status data_check_episode(psi_ctx *ctx, const psi_episode_spec *spec,
                              const psi_episode *episode, const char *name, size_t number)
{
    if (episode->length == 0 || episode->length >= SIZE_MAX / 16) {
        return FAIL(ctx, PSI_EDATA, "%s: episode %zu has %zu steps", name, number, episode->length);
    }
    if (!episode->terminated && !episode->truncated) {
        return FAIL(ctx, PSI_EDATA,
                    "%s: episode %zu, terminated and truncated: neither is set, so "
                    "nothing says how the episode ended",
                    name, number);
    }
    if (spec->latent_states != (episode->latent_states != NULL)) {
        return FAIL(ctx, PSI_EDATA, "%s: episode %zu, latent states: %s", name, number,
                    spec->latent_states ? "they are promised, but missing"
                                        : "they were not announced");
    }
    psi_status status = check_steps(ctx, name, number, episode->actions, episode->rewards,
                                    episode->length, spec->n_actions);
    if (status == PSI_OK && episode->latent_states) {
        status = check_latent(ctx, name, number, episode->latent_states, episode->length + 1);
    }
    return status;
}
