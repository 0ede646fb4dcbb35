// Refinement of all states together: passes over all states while most are dirty, then rounds over
// dirty ones, and, once no hash splits a block any more, one comparison of all signatures in full.
#include "mdp/partition_refinement.h"

#include "base/checked.h"
#include "mdp/refining.h"

#include <string.h>

enum { FAR = 32, NEAR = 16 }; // how many places ahead memory is asked for

// Memory that is counted.
static psi_status take(mdp_refining *r, size_t count, size_t size, void *out)
{
    r->bytes += count * size;
    return base_alloc(r->ctx, count, size, out);
}

static void refining_free(mdp_refining *r)
{
    for (int t = 0; r->shards && t < r->threads; t++) {
        mdp_shard *shard = &r->shards[t];
        mdp_form_free(r->ctx, &shard->form);
        mdp_intern_free(r->ctx, &shard->table);
        base_free(r->ctx, shard->of_block);
        base_free(r->ctx, shard->count);
        base_free(r->ctx, shard->name);
        base_free(r->ctx, shard->sig);
    }
    base_free(r->ctx, r->shards);
    base_free(r->ctx, r->factor);
    base_free(r->ctx, r->source);
    base_free(r->ctx, r->sources);
    base_free(r->ctx, r->key);
    base_free(r->ctx, r->parent);
    base_free(r->ctx, r->fresh);
    base_free(r->ctx, r->queue);
    base_free(r->ctx, r->clean_name);
    base_free(r->ctx, r->left);
    base_free(r->ctx, r->scratch);
    base_free(r->ctx, r->work);
    base_free(r->ctx, r->place);
    base_free(r->ctx, r->state);
    base_free(r->ctx, r->flag);
    base_free(r->ctx, r->blocks);
    base_free(r->ctx, r->sig);
    base_free(r->ctx, r->block);
}

// What belongs to another thread is not asked for: it would be taken away from there.
static inline bool is_own(int32_t target, size_t begin, size_t end)
{
    return (size_t)target - begin < end - begin;
}

// Who leads to whom, and the first signatures. Every thread looks after an equal range of targets
// and goes through all transitions twice.
static void sources_task(void *argument, int thread, int threads)
{
    mdp_refining *r = argument;
    const psi_model *model = r->signing->model;
    const size_t far_end = model->n_transitions - base_min(model->n_transitions, FAR);
    size_t begin, end;
    base_slice(r->n, thread, threads, &begin, &end);
    uint64_t *count = r->sources + 1; // count[t]: first of target t, then one behind its last
    for (size_t t = begin; t < end; t++) count[t] = 0;
    for (size_t i = 0; i < model->n_transitions; i++) {
        if (i < far_end && is_own(model->next[i + NEAR], begin, end))
            __builtin_prefetch(&count[model->next[i + NEAR]], 1);
        if (is_own(model->next[i], begin, end)) count[model->next[i]]++;
    }
    base_team_barrier(r->team);
    if (thread == 0) {
        uint64_t sum = 0;
        for (size_t t = 0; t < r->n; t++) {
            const uint64_t own = count[t];
            count[t] = sum;
            sum += own;
        }
    }
    base_team_barrier(r->team);
    for (size_t s = 0; s < r->n; s++) {
        for (uint64_t c = model->choices[s]; c < model->choices[s + 1]; c++) {
            const uint64_t last = model->offsets[c + 1];
            for (uint64_t i = model->offsets[c]; i < last; i++) {
                const size_t t = (size_t)model->next[i];
                if (i < far_end && is_own(model->next[i + FAR], begin, end))
                    __builtin_prefetch(&count[model->next[i + FAR]], 1);
                if (i < far_end && is_own(model->next[i + NEAR], begin, end))
                    __builtin_prefetch(&r->source[count[model->next[i + NEAR]]], 1);
                if (t < begin || t >= end) continue;
                const uint64_t at = count[t]++;
                r->source[at] = (mdp_source){(uint32_t)s, r->signing->masses.row[i]};
            }
        }
    }
    if (!r->signing->linear) return;
    for (size_t s = begin; s < end; s++)
        r->sig[s] = mdp_signature(r->signing, r->block, s, &r->shards[thread].form);
}

static psi_status refining_new(psi_ctx *ctx, mdp_signing *signing, mdp_refining *r)
{
    psi_status status = PSI_OK;
    const size_t n = signing->model->n_states;
    *r = (mdp_refining){.ctx = ctx, .team = base_ctx_team(ctx), .signing = signing, .n = n};
    r->threads = base_team_size(r->team);
    r->n_blocks = signing->n_classes;
    TRY(take(r, n, sizeof *r->block, &r->block));
    TRY(take(r, n, sizeof *r->sig, &r->sig));
    TRY(take(r, n, sizeof *r->blocks, &r->blocks));
    TRY(take(r, n, sizeof *r->state, &r->state));
    TRY(take(r, n, sizeof *r->place, &r->place));
    TRY(take(r, n, sizeof *r->work, &r->work));
    TRY(take(r, n, sizeof *r->scratch, &r->scratch));
    TRY(take(r, n, sizeof *r->left, &r->left));
    TRY(take(r, n, sizeof *r->clean_name, &r->clean_name));
    TRY(take(r, n, sizeof *r->flag, &r->flag));
    TRY(take(r, n + 1, sizeof *r->sources, &r->sources));
    TRY(take(r, signing->model->n_transitions, sizeof *r->source, &r->source));
    TRY(take(r, signing->masses.n_rows, sizeof *r->factor, &r->factor));
    TRY(take(r, n, sizeof *r->parent, &r->parent));
    TRY(take(r, n, sizeof *r->key, &r->key));
    TRY(take(r, n, sizeof *r->queue, &r->queue));
    TRY(take(r, n, sizeof *r->fresh, &r->fresh));
    TRY(base_alloc_zero(ctx, (size_t)r->threads, sizeof *r->shards, &r->shards));
    for (int t = 0; t < r->threads; t++) TRY(mdp_form_new(ctx, signing, &r->shards[t].form));
    memcpy(r->block, signing->class_, n * sizeof *r->block);
    memset(r->blocks, 0, r->n_blocks * sizeof *r->blocks);
    memset(r->left, 0, n * sizeof *r->left);
    for (size_t s = 0; s < n; s++) r->blocks[r->block[s]].end++;
done:
    if (status != PSI_OK) refining_free(r);
    return status;
}

static size_t count_flags(const mdp_refining *r)
{
    size_t n = 0;
    for (size_t s = 0; s < r->n; s++) n += r->flag[s];
    return n;
}

// Refines until no hash splits a block; all states are dirty at first.
static psi_status settle(mdp_refining *r, mdp_stable *out)
{
    psi_status status = PSI_OK;
    const size_t share = r->signing->round_share;
    const size_t few_transitions = r->signing->model->n_transitions / share;
    const mdp_masses *masses = &r->signing->masses;
    for (size_t i = 0; i < masses->n_rows; i++)
        r->factor[i] = mdp_times(mdp_kind_weight(r->signing, masses->kind[i]), masses->mass[i]);
    memset(r->flag, 1, r->n);
    r->sources[0] = 0;
    base_team_run(r->team, sources_task, r);
    for (size_t reach = 1; reach > 0;) {
        TRY(base_cancelled(r->ctx));
        TRY(mdp_refining_pass(r, &reach));
        out->n_passes++;
        // lists are made in many times the time of a look at the flags
        if (reach > few_transitions || count_flags(r) > r->n / share) continue;
        mdp_refining_list(r);
        while (r->n_queue > 0 && r->n_dirty <= r->n / share) {
            TRY(base_cancelled(r->ctx));
            TRY(mdp_refining_round(r));
            out->n_rounds++;
        }
        reach = r->n_queue;
        if (reach > 0) mdp_refining_unlist(r);
    }
done:
    return status;
}

psi_status mdp_refine_jointly(psi_ctx *ctx, mdp_signing *signing, mdp_stable *out)
{
    psi_status status = PSI_OK;
    mdp_refining r;
    bool stable = false;
    *out = (mdp_stable){0};
    TRY(refining_new(ctx, signing, &r));
    while (!stable) {
        status = settle(&r, out);
        if (status == PSI_OK)
            status = mdp_partition_compare(ctx, signing, r.block, r.n_blocks, &stable);
        if (status != PSI_OK) break;
        out->n_verified++;
        r.listed = false;
        signing->salt = mdp_mix(signing->salt + 1); // another hash, should this one have collided
    }
    if (status == PSI_OK) {
        out->block = r.block;
        out->n_blocks = r.n_blocks;
        out->bytes = r.bytes;
        r.block = NULL;
    }
    refining_free(&r);
done:
    return status;
}
