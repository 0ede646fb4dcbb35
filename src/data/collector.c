// Trajectories in memory, episode by episode. Observations gather in pages and are put together at
// the end, page by page, so that they are never in memory twice.
#include "base/checked.h"
#include "base/context.h"
#include "data/observations.h"
#include "data/trajectories.h"

#include <string.h>

typedef struct page {
    struct page *next;
    size_t used, room;
    _Alignas(64) char bytes[];
} page;

struct psi_collector {
    psi_ctx *ctx;
    psi_episode_spec spec;
    data_set *set;
    psi_observations *observations; // of count 0 until the end
    page *first, *last;
};

enum { PAGE_BYTES = 1 << 24 };

psi_status psi_collector_new(psi_ctx *ctx, const psi_episode_spec *spec, psi_collector **out)
{
    psi_status status = PSI_OK;
    psi_collector *fresh = NULL;
    *out = NULL;
    TRY(data_check_spec(ctx, spec));
    TRY(base_alloc_zero(ctx, 1, sizeof *fresh, &fresh));
    fresh->ctx = ctx;
    fresh->spec = *spec;
    fresh->spec.name = fresh->spec.task_options = NULL; // the caller's memory
    TRY(data_observations_new(ctx, spec->observation_dtype, &spec->observation_shape, 0,
                              &fresh->observations));
    TRY(data_set_new(ctx, spec->name ? spec->name : "memory", spec->latent_states, &fresh->set));
    fresh->set->view.n_actions = spec->n_actions;
    *out = fresh;
    fresh = NULL;
done:
    psi_collector_discard(fresh);
    return status;
}

void psi_collector_discard(psi_collector *collector)
{
    if (!collector || FREED(NULL, collector)) return;
    psi_ctx *ctx = collector->ctx;
    for (page *next; collector->first; collector->first = next) {
        next = collector->first->next;
        base_free(ctx, collector->first);
    }
    psi_observations_free(ctx, collector->observations);
    data_set_free(ctx, collector->set);
    base_retire(ctx, collector);
}

static psi_status take_room(psi_collector *collector, size_t bytes, char **out)
{
    page *last = collector->last;
    if (!last || last->room - last->used < bytes) {
        const size_t room = base_max(bytes, PAGE_BYTES);
        const psi_status status = base_alloc(collector->ctx, 1, sizeof *last + room, &last);
        if (status != PSI_OK) return status;
        last->next = NULL;
        last->used = 0;
        last->room = room;
        if (collector->last) {
            collector->last->next = last;
        } else {
            collector->first = last;
        }
        collector->last = last;
    }
    *out = last->bytes + last->used;
    return PSI_OK;
}

psi_status psi_collector_add(psi_collector *collector, const psi_episode *episode)
{
    if (FREED(NULL, collector)) return PSI_EUSAGE;
    psi_ctx *ctx = collector->ctx;
    data_set *set = collector->set;
    psi_status status = PSI_OK;
    const size_t length = episode->length, e = set->view.n_episodes;
    size_t bytes;
    char *room;
    TRY(data_check_episode(ctx, &collector->spec, episode, set->name, e));
    if (!base_mul(length + 1, collector->observations->row_bytes, &bytes) || bytes > SIZE_MAX / 2) {
        return FAIL(ctx, PSI_ELIMIT, "%s: episode %zu is too long", set->name, e);
    }
    TRY(take_room(collector, bytes, &room));
    TRY(data_set_append(ctx, set, length));
    memcpy(room, episode->observations, bytes);
    collector->last->used += bytes;
    const size_t first = set->episode_offsets[e];
    memcpy(set->actions + first, episode->actions, length * sizeof *set->actions);
    memcpy(set->rewards + first, episode->rewards, length * sizeof *set->rewards);
    if (set->has_latent_states) {
        memcpy(set->latent_states + psi_row(e, first), episode->latent_states,
               (length + 1) * sizeof *set->latent_states);
    }
    set->terminated[e] = episode->terminated;
    set->truncated[e] = episode->truncated;
done:
    return status;
}

psi_status psi_collector_finish(psi_collector *collector, psi_trajectories **out)
{
    *out = NULL;
    if (FREED(NULL, collector)) return PSI_EUSAGE;
    psi_ctx *ctx = collector->ctx;
    psi_observations *observations = collector->observations;
    psi_status status = PSI_OK;
    observations->count = collector->set->view.n_observations;
    TRY(base_alloc(ctx, observations->count, observations->row_bytes, &observations->owned));
    observations->data = observations->owned;
    char *to = observations->owned;
    for (page *next; collector->first; collector->first = next) {
        next = collector->first->next;
        memcpy(to, collector->first->bytes, collector->first->used);
        to += collector->first->used;
        base_free(ctx, collector->first);
    }
    data_set *set = collector->set;
    collector->set = NULL;
    collector->observations = NULL;
    status = data_set_finish(ctx, set, observations, out);
done:
    psi_collector_discard(collector);
    return status;
}
