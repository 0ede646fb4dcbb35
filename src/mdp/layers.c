// The coarsest stable partition, component by component from the bottom: what only leads to known
// blocks is looked up; what lies on cycles of several blocks, or between two of them, is refined
// together; what is above them is looked up again.
#include "mdp/partition_refinement.h"

#include "base/checked.h"
#include "base/context.h"
#include "mdp/components.h"
#include "mdp/settling.h"

#include <string.h>

enum { OFTEN = 65536 }; // states between two looks at whether to stop

// Known blocks form no cycles but those of a block with itself. A state that stays open leads to a
// cycle of states that are not all of one block, and is in no known one: along the cycle, a known
// block would have to lead to itself only, and all of the cycle would have been found to be it.
typedef struct layers {
    psi_ctx *ctx;
    mdp_signing *signing;
    const psi_model *model;
    size_t n;
    mdp_components *components; // at first of all states, then of the open ones
    size_t n_listed;            // states in components
    mdp_settling settling;
    uint32_t *number; // (n) of a state in the core; MDP_OPEN: it is not there
} layers;

static uint64_t first_of(const psi_model *model, size_t s)
{
    return model->offsets[model->choices[s]];
}

static bool leads_to_itself(const psi_model *model, size_t s)
{
    for (uint64_t i = first_of(model, s); i < first_of(model, s + 1); i++)
        if ((size_t)model->next[i] == s) return true;
    return false;
}

// Asks early for what a signature is made of.
static void fetch_ahead(const layers *l, size_t at)
{
    enum { FAR = 32, MIDDLE = 24, NEAR = 16, NEXT = 8 };
    const psi_model *model = l->model;
    const uint32_t *state = l->components->state + at;
    if (at + FAR >= l->n_listed) return;
    __builtin_prefetch(&model->choices[state[FAR]]);
    __builtin_prefetch(&model->offsets[model->choices[state[MIDDLE]]]);
    __builtin_prefetch(&model->next[first_of(model, state[NEAR])]);
    __builtin_prefetch(&l->signing->masses.row[first_of(model, state[NEAR])]);
    const uint64_t first = first_of(model, state[NEXT]), end = first_of(model, state[NEXT] + 1);
    for (uint64_t i = first; i < end && i < first + 2; i++)
        __builtin_prefetch(&l->settling.block[model->next[i]]);
}

// Settles what can be settled from below; components keeps what is left.
static psi_status settle_bottom(layers *l)
{
    psi_status status = PSI_OK;
    const mdp_components *components = l->components;
    size_t n_open = 0;
    for (size_t i = 0; i < l->n;) {
        const uint32_t *list = components->state + i;
        size_t n = 1;
        while (!components->last[i + n - 1]) n++;
        if (i / OFTEN != (i + n) / OFTEN) TRY(base_cancelled(l->ctx));
        fetch_ahead(l, i);
        if (n == 1) TRY(mdp_settle(&l->settling, list[0]));
        const bool open = l->settling.block[list[0]] == MDP_OPEN;
        if (open && (n > 1 || leads_to_itself(l->model, list[0])))
            TRY(mdp_settle_cycle(&l->settling, list, n));
        if (l->settling.block[list[0]] == MDP_OPEN) {
            memmove(components->state + n_open, list, n * sizeof *list);
            memmove(components->last + n_open, components->last + i, n);
            n_open += n;
        }
        i += n;
    }
    l->n_listed = n_open;
done:
    return status;
}

// ---- cycles, and what lies between them ---------------------------------------------------------

// Open states on cycles, and those that they lead to: marked in number. Returns how many.
static size_t find_core(layers *l)
{
    const mdp_components *components = l->components;
    const psi_model *model = l->model;
    const uint32_t *block = l->settling.block;
    size_t n = 0;
    memset(l->number, 0xFF, l->n * sizeof *l->number);
    for (size_t i = l->n_listed; i-- > 0;) { // from the top
        const uint32_t s = components->state[i];
        const bool alone = components->last[i] && (i == 0 || components->last[i - 1]);
        if (l->number[s] == MDP_OPEN && alone && !leads_to_itself(model, s)) continue;
        l->number[s] = 0;
        n++;
        for (uint64_t k = first_of(model, s); k < first_of(model, s + 1); k++)
            if (block[model->next[k]] == MDP_OPEN) l->number[model->next[k]] = 0;
    }
    return n;
}

// The core as a model of its own: its states, and one for each known block that they lead to, which
// is in a class of its own and leads nowhere.
typedef struct core {
    psi_model model; // choices, offsets and next only
    mdp_signing signing;
    uint32_t *state; // (n_states) of the layers' model
    uint32_t *known; // (blocks) number of a block in the core
    uint32_t *dense; // (classes) number of a class in the core
} core;

static void core_free(psi_ctx *ctx, core *c)
{
    base_free(ctx, c->dense);
    base_free(ctx, c->known);
    base_free(ctx, c->state);
    base_free(ctx, c->signing.class_);
    base_free(ctx, c->signing.kind);
    base_free(ctx, c->signing.masses.row);
    base_free(ctx, c->model.next);
    base_free(ctx, c->model.offsets);
    base_free(ctx, c->model.choices);
}

// Measures the core and numbers its states and the known blocks it leads to.
static psi_status number_core(layers *l, size_t n_core, core *c)
{
    psi_status status = PSI_OK;
    const psi_model *model = l->model;
    size_t n = 0, n_known = 0;
    TRY(base_alloc(l->ctx, n_core, sizeof *c->state, &c->state));
    TRY(base_alloc(l->ctx, l->settling.n_blocks, sizeof *c->known, &c->known));
    memset(c->known, 0xFF, l->settling.n_blocks * sizeof *c->known);
    for (size_t s = 0; s < l->n; s++) {
        if (l->number[s] == MDP_OPEN) continue;
        l->number[s] = (uint32_t)n;
        c->state[n++] = (uint32_t)s;
        c->model.n_choices += model->choices[s + 1] - model->choices[s];
        c->model.n_transitions += first_of(model, s + 1) - first_of(model, s);
        for (uint64_t i = first_of(model, s); i < first_of(model, s + 1); i++) {
            const uint32_t b = l->settling.block[model->next[i]];
            if (b != MDP_OPEN && c->known[b] == MDP_OPEN)
                c->known[b] = (uint32_t)(n_core + n_known++);
        }
    }
    c->model.n_states = n_core + n_known;
done:
    return status;
}

static void fill_core(const layers *l, size_t n_core, core *c)
{
    const psi_model *model = l->model;
    uint64_t choice = 0, entry = 0;
    for (size_t k = 0; k < n_core; k++) {
        const size_t s = c->state[k];
        uint32_t *dense = &c->dense[l->signing->class_[s]];
        if (*dense == MDP_OPEN) *dense = (uint32_t)c->signing.n_classes++;
        c->signing.class_[k] = *dense;
        c->model.choices[k] = choice;
        for (uint64_t d = model->choices[s]; d < model->choices[s + 1]; d++) {
            c->signing.kind[choice] = l->signing->kind[d];
            c->model.offsets[choice++] = entry;
            for (uint64_t i = model->offsets[d]; i < model->offsets[d + 1]; i++) {
                const uint32_t b = l->settling.block[model->next[i]];
                c->signing.masses.row[entry] = l->signing->masses.row[i];
                c->model.next[entry++] =
                    (int32_t)(b == MDP_OPEN ? l->number[model->next[i]] : c->known[b]);
            }
        }
    }
    for (size_t k = n_core; k <= c->model.n_states; k++) c->model.choices[k] = choice;
    c->model.offsets[choice] = entry;
    for (size_t k = n_core; k < c->model.n_states; k++)
        c->signing.class_[k] = (uint32_t)c->signing.n_classes++;
}

// The caller frees it, also on failure.
static psi_status core_new(layers *l, size_t n_core, core *c)
{
    psi_status status = PSI_OK;
    *c = (core){.signing = *l->signing};
    c->signing.model = &c->model;
    c->signing.masses.row = NULL;
    c->signing.kind = c->signing.class_ = NULL;
    c->signing.n_classes = 0;
    TRY(number_core(l, n_core, c));
    TRY(base_alloc(l->ctx, c->model.n_states + 1, sizeof *c->model.choices, &c->model.choices));
    TRY(base_alloc(l->ctx, c->model.n_choices + 1, sizeof *c->model.offsets, &c->model.offsets));
    TRY(base_alloc(l->ctx, c->model.n_transitions, sizeof *c->model.next, &c->model.next));
    TRY(base_alloc(l->ctx, c->model.n_transitions, sizeof(uint32_t), &c->signing.masses.row));
    TRY(base_alloc(l->ctx, c->model.n_choices, sizeof *c->signing.kind, &c->signing.kind));
    TRY(base_alloc(l->ctx, c->model.n_states, sizeof *c->signing.class_, &c->signing.class_));
    TRY(base_alloc(l->ctx, l->signing->n_classes, sizeof *c->dense, &c->dense));
    memset(c->dense, 0xFF, l->signing->n_classes * sizeof *c->dense);
    fill_core(l, n_core, c);
done:
    return status;
}

// Names the core's blocks and shows each once.
static psi_status settle_core(layers *l, const core *c, const mdp_stable *stable, size_t n_core)
{
    psi_status status = PSI_OK;
    uint32_t *name = NULL, *block = l->settling.block;
    TRY(base_alloc(l->ctx, stable->n_blocks, sizeof *name, &name));
    memset(name, 0xFF, stable->n_blocks * sizeof *name);
    for (size_t k = 0; k < n_core; k++) {
        uint32_t *own = &name[stable->block[k]];
        if (*own == MDP_OPEN) *own = l->settling.n_blocks++;
        block[c->state[k]] = *own;
    }
    for (size_t k = 0; k < n_core; k++) {
        uint32_t *own = &name[stable->block[k]];
        if (*own == MDP_OPEN) continue;
        TRY(mdp_settling_show(&l->settling, c->state[k]));
        *own = MDP_OPEN;
    }
done:
    base_free(l->ctx, name);
    return status;
}

static psi_status refine_core(layers *l, size_t n_core, mdp_stable *out)
{
    psi_status status = PSI_OK;
    core c = {0};
    mdp_stable stable = {0};
    TRY(core_new(l, n_core, &c));
    TRY(mdp_refine_jointly(l->ctx, &c.signing, &stable));
    TRY(settle_core(l, &c, &stable, n_core));
    out->n_settled = l->n - n_core;
    out->n_passes = stable.n_passes;
    out->n_rounds = stable.n_rounds;
    out->n_verified = stable.n_verified;
    out->bytes = stable.bytes;
done:
    base_free(l->ctx, stable.block);
    core_free(l->ctx, &c);
    return status;
}

// ---- all of it ----------------------------------------------------------------------------------

static psi_status settle_top(layers *l)
{
    psi_status status = PSI_OK;
    for (size_t i = 0; i < l->n_listed; i++) {
        const uint32_t s = l->components->state[i];
        if (i % OFTEN == 0) TRY(base_cancelled(l->ctx));
        fetch_ahead(l, i);
        if (l->settling.block[s] == MDP_OPEN) TRY(mdp_settle(&l->settling, s));
    }
done:
    return status;
}

// *stable: every state looks like the others of its block, in full.
static psi_status refine_layers(psi_ctx *ctx, mdp_signing *signing, mdp_stable *out, bool *stable)
{
    psi_status status = PSI_OK;
    const psi_model *model = signing->model;
    const size_t n = model->n_states;
    layers l = {ctx, signing, model, n, &signing->order, n, {0}, NULL};
    signing->order.complete = false; // it is used up
    TRY(mdp_settling_new(ctx, signing, &l.settling));
    TRY(settle_bottom(&l));
    out->n_verified = 1;
    out->n_settled = l.n;
    if (l.n_listed > 0) {
        TRY(base_alloc(ctx, l.n, sizeof *l.number, &l.number));
        TRY(refine_core(&l, find_core(&l), out));
        TRY(settle_top(&l));
    }
    TRY(mdp_partition_compare(ctx, signing, l.settling.block, l.settling.n_blocks, stable));
    *stable = *stable && !l.settling.collided;
    out->bytes += mdp_settling_bytes(&l.settling);
    out->block = l.settling.block;
    out->n_blocks = l.settling.n_blocks;
    l.settling.block = NULL;
done:
    base_free(ctx, l.number);
    mdp_settling_free(&l.settling);
    return status;
}

psi_status mdp_refine_partition(psi_ctx *ctx, mdp_signing *signing, mdp_stable *out)
{
    psi_status status = PSI_OK;
    bool stable = false;
    *out = (mdp_stable){0};
    if (signing->order.complete) TRY(refine_layers(ctx, signing, out, &stable));
    mdp_components_free(ctx, &signing->order);
    if (stable) goto done;
    const size_t compared = out->n_verified; // hashes of different states were the same
    base_free(ctx, out->block);
    TRY(mdp_refine_jointly(ctx, signing, out));
    out->n_verified += compared;
done:
    return status;
}
