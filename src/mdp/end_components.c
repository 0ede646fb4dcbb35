// Strongly connected components of what remains, choices that leave them taken away, until none
// does.
#include "mdp/end_components.h"

#include "base/context.h"
#include "mdp/components.h"

typedef struct search {
    const psi_model *model;
    const uint8_t *open;
    uint8_t *stays;
    int32_t *component;
    uint64_t *begin; // (S + 1) of the transitions that remain
    int32_t *next;   // (m)
    size_t n_components;
} search;

static void fill_graph(search *f)
{
    const psi_model *model = f->model;
    uint64_t n = 0;
    for (size_t s = 0; s < model->n_states; s++) {
        f->begin[s] = n;
        for (uint64_t c = model->choices[s]; c < model->choices[s + 1]; c++)
            for (uint64_t i = model->offsets[c]; i < model->offsets[c + 1] && f->stays[c]; i++)
                f->next[n++] = model->next[i];
    }
    f->begin[model->n_states] = n;
}

static psi_status find_components(psi_ctx *ctx, search *f)
{
    psi_status status = PSI_OK;
    const size_t n = f->model->n_states;
    mdp_components found = {0};
    fill_graph(f);
    TRY(mdp_components_find(ctx, &(mdp_graph){n, f->begin, f->next}, n, &found));
    f->n_components = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t s = found.state[i];
        f->component[s] = f->open[s] ? (int32_t)f->n_components : -1;
        f->n_components += f->open[s] && found.last[i];
    }
done:
    mdp_components_free(ctx, &found);
    return status;
}

// Takes away the choices that leave their component; false if there were none.
static bool drop_leaving(search *f)
{
    const psi_model *model = f->model;
    uint8_t *stays = f->stays;
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
    search f = {model, open, stays, component, NULL, NULL, 0};
    TRY(base_alloc(ctx, size + 1, sizeof *f.begin, &f.begin));
    TRY(base_alloc(ctx, model->n_transitions, sizeof *f.next, &f.next));
    for (size_t s = 0; s < size; s++) {
        for (uint64_t c = model->choices[s]; c < model->choices[s + 1]; c++) {
            stays[c] = open[s];
            for (uint64_t i = model->offsets[c]; i < model->offsets[c + 1]; i++)
                stays[c] = stays[c] && open[model->next[i]];
        }
    }
    do {
        TRY(base_cancelled(ctx));
        TRY(find_components(ctx, &f));
    } while (drop_leaving(&f));
    // one state that cannot stay is no component
    for (size_t s = 0; s < size; s++) {
        bool any = false;
        for (uint64_t c = model->choices[s]; c < model->choices[s + 1]; c++) any = any || stays[c];
        if (!any) component[s] = -1;
    }
    *n = f.n_components;
done:
    base_free(ctx, f.next);
    base_free(ctx, f.begin);
    return status;
}
