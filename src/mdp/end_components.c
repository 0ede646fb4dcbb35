// Strongly connected components (Tarjan, without recursion), choices that leave them taken away,
// until none does.
#include "mdp/end_components.h"

#include "base/context.h"

typedef struct search {
    const psi_model *model;
    const uint8_t *open;
    const uint8_t *stays;
    int32_t *component;
    uint32_t *index, *low;  // (S) order of discovery, from 1; the earliest that can be reached
    uint32_t *stack, *path; // (S) not yet in a component; where the search stands
    uint64_t *at_choice, *at_entry; // (S) what comes next for a state on the path
    uint8_t *on_stack;
    size_t n_stack, n_path, n_components;
    uint32_t n_found;
} search;

static void enter(search *f, uint32_t s)
{
    f->index[s] = f->low[s] = ++f->n_found;
    f->stack[f->n_stack++] = s;
    f->on_stack[s] = 1;
    f->at_choice[s] = f->model->choices[s];
    f->at_entry[s] = f->model->offsets[f->at_choice[s]];
    f->path[f->n_path++] = s;
}

// The next successor of s through a choice that stays; false when there is none left.
static bool next_successor(search *f, uint32_t s, uint32_t *to)
{
    const psi_model *model = f->model;
    while (f->at_choice[s] < model->choices[s + 1]) {
        const uint64_t c = f->at_choice[s];
        if (f->stays[c] && f->at_entry[s] < model->offsets[c + 1]) {
            *to = (uint32_t)model->next[f->at_entry[s]++];
            return true;
        }
        f->at_choice[s]++;
        f->at_entry[s] = model->offsets[f->at_choice[s]];
    }
    return false;
}

static void leave(search *f, uint32_t s)
{
    f->n_path--;
    if (f->n_path > 0) {
        const uint32_t below = f->path[f->n_path - 1];
        if (f->low[s] < f->low[below]) f->low[below] = f->low[s];
    }
    if (f->low[s] != f->index[s]) return;
    uint32_t t;
    do {
        t = f->stack[--f->n_stack];
        f->on_stack[t] = 0;
        f->component[t] = (int32_t)f->n_components;
    } while (t != s);
    f->n_components++;
}

static void find_components(search *f)
{
    const size_t n = f->model->n_states;
    f->n_components = f->n_stack = f->n_path = 0;
    f->n_found = 0;
    for (size_t s = 0; s < n; s++) {
        f->index[s] = 0;
        f->component[s] = -1;
        f->on_stack[s] = 0;
    }
    for (size_t root = 0; root < n; root++) {
        if (!f->open[root] || f->index[root]) continue;
        enter(f, (uint32_t)root);
        while (f->n_path > 0) {
            const uint32_t s = f->path[f->n_path - 1];
            uint32_t to;
            if (!next_successor(f, s, &to)) {
                leave(f, s);
            } else if (!f->index[to]) {
                enter(f, to);
            } else if (f->on_stack[to] && f->index[to] < f->low[s]) {
                f->low[s] = f->index[to];
            }
        }
    }
}

// Takes away the choices that leave their component; false if there were none.
static bool drop_leaving(const search *f, uint8_t *stays)
{
    const psi_model *model = f->model;
    bool dropped = false;
    for (size_t s = 0; s < model->n_states; s++) {
        for (uint64_t c = model->choices[s]; c < model->choices[s + 1]; c++) {
            for (uint64_t i = model->offsets[c]; i < model->offsets[c + 1] && stays[c]; i++) {
                if (f->component[model->next[i]] == f->component[s]) continue;
                stays[c] = 0;
                dropped = true;
            }
        }
    }
    return dropped;
}

psi_status mdp_end_components(psi_ctx *ctx, const psi_model *model, const uint8_t *open,
                              int32_t *component, uint8_t *stays, size_t *n)
{
    psi_status status = PSI_OK;
    const size_t size = model->n_states;
    search f = {.model = model, .open = open, .stays = stays, .component = component};
    TRY(base_alloc(ctx, size, sizeof *f.index, &f.index));
    TRY(base_alloc(ctx, size, sizeof *f.low, &f.low));
    TRY(base_alloc(ctx, size, sizeof *f.stack, &f.stack));
    TRY(base_alloc(ctx, size, sizeof *f.path, &f.path));
    TRY(base_alloc(ctx, size, sizeof *f.at_choice, &f.at_choice));
    TRY(base_alloc(ctx, size, sizeof *f.at_entry, &f.at_entry));
    TRY(base_alloc(ctx, size, 1, &f.on_stack));
    for (size_t s = 0; s < size; s++) {
        for (uint64_t c = model->choices[s]; c < model->choices[s + 1]; c++) {
            stays[c] = open[s];
            for (uint64_t i = model->offsets[c]; i < model->offsets[c + 1]; i++)
                stays[c] = stays[c] && open[model->next[i]];
        }
    }
    do {
        TRY(base_cancelled(ctx));
        find_components(&f);
    } while (drop_leaving(&f, stays));
    // one state that cannot stay is no component
    for (size_t s = 0; s < size; s++) {
        bool any = false;
        for (uint64_t c = model->choices[s]; c < model->choices[s + 1]; c++) any = any || stays[c];
        if (!any) component[s] = -1;
    }
    *n = f.n_components;
done:
    base_free(ctx, f.on_stack);
    base_free(ctx, f.at_entry);
    base_free(ctx, f.at_choice);
    base_free(ctx, f.path);
    base_free(ctx, f.stack);
    base_free(ctx, f.low);
    base_free(ctx, f.index);
    return status;
}
