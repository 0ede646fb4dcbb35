// Is a partition stable? Hashes have made it; here all signatures are compared in full.
#include "mdp/partition_refinement.h"

#include "base/context.h"
#include "base/threads.h"

#include <stdatomic.h>

enum { NEAR = 16, FAR = 32 }; // how many places ahead memory is asked for
enum { OFTEN = 4096 };        // states between two looks at what others have found

typedef struct comparing {
    const mdp_signing *signing;
    const uint32_t *block;
    uint32_t *leader; // (K) the first state of every block
    mdp_form *forms;  // (2 · threads)
    atomic_bool differs;
} comparing;

// Asks early for the transitions of the states that those behind s will be compared with.
static void fetch_ahead(const comparing *c, size_t s)
{
    const psi_model *model = c->signing->model;
    const uint32_t middle = c->leader[c->block[s + (FAR + NEAR) / 2]];
    const uint32_t near = c->leader[c->block[s + NEAR]];
    const uint64_t at = model->offsets[model->choices[near]];
    __builtin_prefetch(&model->choices[c->leader[c->block[s + FAR]]]);
    __builtin_prefetch(&model->offsets[model->choices[middle]]);
    __builtin_prefetch(&model->next[at]);
    __builtin_prefetch(&c->signing->masses.row[at]);
}

static void compare_task(void *argument, int thread, int threads)
{
    comparing *c = argument;
    mdp_form *form = c->forms + 2 * (size_t)thread;
    size_t begin, end;
    base_slice(c->signing->model->n_states, thread, threads, &begin, &end);
    for (size_t s = begin; s < end; s++) {
        if (s % OFTEN == 0 && atomic_load_explicit(&c->differs, memory_order_relaxed)) return;
        if (s + FAR < end) fetch_ahead(c, s);
        const size_t other = c->leader[c->block[s]];
        if (other == s) continue;
        if (c->signing->class_[s] == c->signing->class_[other] &&
            mdp_same_signature(c->signing, c->block, s, other, &form[0], &form[1])) {
            continue;
        }
        atomic_store_explicit(&c->differs, true, memory_order_relaxed);
        return;
    }
}

psi_status mdp_partition_compare(psi_ctx *ctx, const mdp_signing *signing, const uint32_t *block,
                                 size_t n_blocks, bool *stable)
{
    psi_status status = PSI_OK;
    base_team *team = base_ctx_team(ctx);
    const int n_forms = 2 * base_team_size(team);
    comparing c = {.signing = signing, .block = block};
    TRY(base_alloc(ctx, n_blocks, sizeof *c.leader, &c.leader));
    TRY(base_alloc_zero(ctx, (size_t)n_forms, sizeof *c.forms, &c.forms));
    for (int i = 0; i < n_forms; i++) TRY(mdp_form_new(ctx, signing, &c.forms[i]));
    for (size_t s = signing->model->n_states; s-- > 0;) c.leader[block[s]] = (uint32_t)s;
    base_team_run(team, compare_task, &c);
    *stable = !c.differs;
    TRY(base_cancelled(ctx));
done:
    for (int i = 0; c.forms && i < n_forms; i++) mdp_form_free(ctx, &c.forms[i]);
    base_free(ctx, c.forms);
    base_free(ctx, c.leader);
    return status;
}
