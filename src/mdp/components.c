// Tarjan's search without recursion. States that wait for their component stand at the end of the
// array whose beginning has the components that are complete.
#include "mdp/components.h"

#include "base/context.h"

#include <string.h>

enum { NEW = 0, COMPLETE = UINT32_MAX }; // instead of the number of a state that was found

// A state whose successors are being looked at.
typedef struct step {
    uint32_t state;
    uint32_t low;  // the earliest state that it can reach, as far as seen
    uint32_t done; // successors that were looked at
} step;

typedef struct search {
    const mdp_graph *graph;
    mdp_components *out;
    uint32_t *found; // (n) in which order, from 1
    step *path;      // (n)
    uint32_t n_found;
    size_t n_path, n_complete, waiting; // waiting: begin of those at the end of out->state
    size_t n_cyclic;                    // states that share their component with others
} search;

// The component that s was the first of is complete.
static void complete(search *f, uint32_t s)
{
    const uint32_t number = f->found[s];
    uint32_t *state = f->out->state;
    while (f->waiting < f->graph->n && f->found[state[f->waiting]] > number) {
        const uint32_t t = state[f->waiting++];
        f->found[t] = COMPLETE;
        f->out->last[f->n_complete] = 0;
        state[f->n_complete++] = t;
    }
    f->found[s] = COMPLETE;
    f->out->last[f->n_complete] = 1;
    state[f->n_complete++] = s;
}

// The last state of the path reaches an earlier one: if that is news, it is on a cycle.
static void lower(search *f, step *at, uint32_t low)
{
    if (low >= at->low) return;
    if (at->low == f->found[at->state]) f->n_cyclic++;
    at->low = low;
}

// Looks on from the last state of the path until it has a successor that is new, which is next.
static bool look_on(search *f, step *at)
{
    const int32_t *next = f->graph->next + f->graph->begin[at->state];
    const uint32_t n = (uint32_t)(f->graph->begin[at->state + 1] - f->graph->begin[at->state]);
    uint32_t low = at->low;
    for (uint32_t i = at->done; i < n; i++) {
        const uint32_t t = (uint32_t)next[i], number = f->found[t];
        if (number == NEW) {
            lower(f, at, low);
            at->done = i + 1;
            f->found[t] = ++f->n_found;
            f->path[f->n_path++] = (step){t, f->n_found, 0};
            return true;
        }
        if (number < low) low = number;
    }
    lower(f, at, low);
    return false;
}

static void search_from(search *f, uint32_t root, size_t limit)
{
    f->found[root] = ++f->n_found;
    f->path[f->n_path++] = (step){root, f->n_found, 0};
    while (f->n_path > 0 && f->n_cyclic <= limit) {
        step *at = &f->path[f->n_path - 1];
        if (look_on(f, at)) continue;
        f->n_path--;
        if (at->low == f->found[at->state]) {
            complete(f, at->state);
            continue;
        }
        f->out->state[--f->waiting] = at->state;
        lower(f, at - 1, at->low); // it is not the first: low would be its own
    }
}

psi_status mdp_components_find(psi_ctx *ctx, const mdp_graph *graph, size_t limit,
                               mdp_components *out)
{
    psi_status status = PSI_OK;
    search f = {.graph = graph, .out = out, .waiting = graph->n};
    *out = (mdp_components){0};
    for (size_t s = 0; s < graph->n; s++) {
        if (graph->begin[s + 1] - graph->begin[s] > UINT32_MAX)
            return FAIL(ctx, PSI_ELIMIT, "state %zu has more than 2^32 transitions", s);
    }
    TRY(base_alloc(ctx, graph->n, sizeof *out->state, &out->state));
    TRY(base_alloc(ctx, graph->n, sizeof *out->last, &out->last));
    TRY(base_alloc(ctx, graph->n, sizeof *f.path, &f.path));
    TRY(base_alloc_zero(ctx, graph->n, sizeof *f.found, &f.found));
    out->bytes =
        graph->n * (sizeof *out->state + sizeof *out->last + sizeof *f.path + sizeof *f.found);
    // from the last: explorers number successors behind their states, and find them near by
    for (size_t s = graph->n; s-- > 0 && f.n_cyclic <= limit;)
        if (f.found[s] == NEW) search_from(&f, (uint32_t)s, limit);
    out->complete = f.n_cyclic <= limit;
done:
    base_free(ctx, f.found);
    base_free(ctx, f.path);
    if (status != PSI_OK) mdp_components_free(ctx, out);
    return status;
}

void mdp_components_free(psi_ctx *ctx, mdp_components *components)
{
    base_free(ctx, components->last);
    base_free(ctx, components->state);
    *components = (mdp_components){0};
}
