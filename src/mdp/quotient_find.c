// The quotient of a model: refinement, then the model over the blocks, and how far it is from the
// one it stands for.
#include "base/checked.h"
#include "base/context.h"
#include "base/options.h"
#include "base/order.h"
#include "base/progress.h"
#include "mdp/partition_refinement.h"
#include "mdp/sparse_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

psi_quotient_options psi_quotient_defaults(void)
{
    return (psi_quotient_options){.size = sizeof(psi_quotient_options)};
}

// ---- the model over the blocks ------------------------------------------------------------------

typedef struct folding {
    const psi_model *model;
    const mdp_signing *signing;
    const uint32_t *block; // (S) in order of first appearance
    const uint32_t *first; // (K) states
    size_t n_blocks;
    psi_model *out;
    bool ignore_actions;
    uint64_t *source; // (C of out) the choice of the first state that each comes from
    double *sum;      // (K) zero between choices; NULL where all choices are short
    uint32_t *slot;   // of states with many choices: those that were kept, by their keys,
    uint32_t *after;  // and the one before that shares a slot; counted from 1 in their state
    size_t mask;      // slots in use for the state, less one
} folding;

enum { FEW = 16 }; // transitions of a short choice; choices that are compared one by one

// Adds up a choice of the model block by block, into the next free entries of out: a short one by
// putting each where it belongs.
static void fold_few(folding *f, uint64_t c, uint64_t *filled)
{
    const psi_model *model = f->model;
    int32_t *next = f->out->next + *filled;
    double *sum = f->out->probability + *filled;
    size_t n = 0;
    bool added = false;
    for (uint64_t i = model->offsets[c]; i < model->offsets[c + 1]; i++) {
        const int32_t to = (int32_t)f->block[model->next[i]];
        size_t at = n;
        while (at > 0 && next[at - 1] > to) at--;
        if (at > 0 && next[at - 1] == to) {
            sum[at - 1] += model->probability[i];
            added = true;
            continue;
        }
        memmove(next + at + 1, next + at, (n - at) * sizeof *next);
        memmove(sum + at + 1, sum + at, (n - at) * sizeof *sum);
        next[at] = to;
        sum[at] = model->probability[i];
        n++;
    }
    for (size_t i = 0; added && i < n; i++) sum[i] = mdp_snap(sum[i]); // there are rounding errors
    *filled += n;
}

static void fold_choice(folding *f, uint64_t c, uint64_t *filled)
{
    const psi_model *model = f->model;
    int32_t *next = f->out->next + *filled;
    size_t n = 0;
    if (model->offsets[c + 1] - model->offsets[c] <= FEW) {
        fold_few(f, c, filled);
        return;
    }
    for (uint64_t i = model->offsets[c]; i < model->offsets[c + 1]; i++) {
        const uint32_t to = f->block[model->next[i]];
        if (f->sum[to] == 0.0) next[n++] = (int32_t)to;
        f->sum[to] += model->probability[i];
    }
    const bool added = n < model->offsets[c + 1] - model->offsets[c]; // sums have rounding errors
    if (n > 1) qsort(next, n, sizeof *next, base_by_index);
    for (size_t i = 0; i < n; i++) {
        const double sum = f->sum[next[i]];
        f->out->probability[*filled + i] = added ? mdp_snap(sum) : sum;
        f->sum[next[i]] = 0.0;
    }
    *filled += n;
}

// What masses of equal choices may differ by.
static double rounding(const folding *f)
{
    return f->signing->cell ? (double)f->signing->cell * 0x1p-52 : 1e-12;
}

// Does the choice that was added last, c of the model, equal the kept one d in kind and in every
// mass?
static bool equals(const folding *f, uint64_t d, uint64_t end, uint64_t c)
{
    const psi_model *out = f->out;
    const uint64_t from = out->offsets[end], n = out->offsets[end + 1] - from;
    const uint64_t other = out->offsets[d];
    if (f->signing->kind[f->source[d]] != f->signing->kind[c]) return false;
    if (out->offsets[d + 1] - other != n) return false;
    if (memcmp(out->next + other, out->next + from, n * sizeof *out->next) != 0) return false;
    for (uint64_t i = 0; i < n; i++) {
        const double apart = out->probability[other + i] - out->probability[from + i];
        if (fabs(apart) > rounding(f)) return false;
    }
    return true;
}

// The same of a state with many choices. Those whose masses are equal have nearly the same sum of
// them with weights, so only choices of three cells of that sum are compared.
static bool is_among_many(folding *f, uint64_t begin, uint64_t end, uint64_t c)
{
    const psi_model *out = f->out;
    const uint64_t from = out->offsets[end], n = out->offsets[end + 1] - from;
    uint64_t key = mdp_mix(f->signing->kind[c] + (n << 32));
    double sum = 0.0;
    for (uint64_t i = 0; i < n; i++) {
        key = mdp_mix(key ^ (uint64_t)out->next[from + i]);
        sum += out->probability[from + i] * (1.0 + (double)(key >> 11) * 0x1p-53);
    }
    const double cell = floor(sum / (4.0 * (double)n * rounding(f)));
    size_t slot = 0;
    for (int beside = -1; beside <= 1; beside++) {
        const double near = cell + beside;
        uint64_t bits;
        memcpy(&bits, &near, sizeof bits);
        const size_t at = mdp_mix(key ^ bits) & f->mask;
        if (beside == 0) slot = at;
        for (uint32_t d = f->slot[at]; d > 0; d = f->after[d - 1])
            if (equals(f, begin + d - 1, end, c)) return true;
    }
    f->after[end - begin] = f->slot[slot];
    f->slot[slot] = (uint32_t)(end - begin + 1);
    return false;
}

static void forget_choices(folding *f, size_t n)
{
    f->mask = 1;
    while (f->mask < n) f->mask = 2 * f->mask + 1;
    memset(f->slot, 0, (f->mask + 1) * sizeof *f->slot);
}

// Does the choice equal an earlier one of its state?
static bool is_repeated(folding *f, size_t n, uint64_t begin, uint64_t end, uint64_t c)
{
    if (f->signing->distinct) return false;
    if (n > FEW) return is_among_many(f, begin, end, c);
    for (uint64_t d = begin; d < end; d++)
        if (equals(f, d, end, c)) return true;
    return false;
}

static void fold_transitions(folding *f)
{
    const psi_model *model = f->model;
    psi_model *out = f->out;
    uint64_t filled = 0, kept = 0;
    out->choices[0] = out->offsets[0] = 0;
    for (size_t k = 0; k < f->n_blocks; k++) {
        const size_t s = f->first[k];
        const uint64_t begin = kept;
        const size_t n = model->choices[s + 1] - model->choices[s];
        if (n > FEW && f->slot) forget_choices(f, n);
        for (uint64_t c = model->choices[s]; c < model->choices[s + 1]; c++) {
            const uint64_t before = filled;
            fold_choice(f, c, &filled);
            out->offsets[kept + 1] = filled;
            if (is_repeated(f, n, begin, kept, c)) {
                filled = before;
                continue;
            }
            out->action[kept] = model->action[c];
            f->source[kept++] = c;
        }
        out->choices[k + 1] = kept;
    }
    out->n_choices = kept;
    out->n_transitions = filled;
}

static psi_status fold_names(psi_ctx *ctx, folding *f, const psi_quotient_options *options)
{
    psi_status status = PSI_OK;
    const psi_model *model = f->model;
    psi_model *out = f->out;
    for (size_t l = 0; l < model->n_labels; l++) {
        const psi_model_label *label = &model->labels[l];
        uint8_t *holds;
        if (!mdp_is_word(options->labels, label->name)) continue;
        TRY(mdp_model_add_label(ctx, out, label->name, strlen(label->name), &holds));
        for (size_t k = 0; k < f->n_blocks; k++) holds[k] = label->holds[f->first[k]];
    }
    for (size_t r = 0; r < model->n_rewards; r++) {
        const psi_model_reward *reward = &model->rewards[r];
        psi_model_reward *to;
        if (!mdp_is_word(options->rewards, reward->name)) continue;
        TRY(mdp_model_add_reward(ctx, out, reward->name, strlen(reward->name),
                                 reward->state != NULL, reward->choice != NULL, &to));
        for (size_t k = 0; reward->state && k < f->n_blocks; k++)
            to->state[k] = reward->state[f->first[k]];
        for (size_t c = 0; reward->choice && c < out->n_choices; c++)
            to->choice[c] = reward->choice[f->source[c]];
    }
    for (size_t s = 0; s < model->n_states; s++)
        if (model->initial[s]) out->initial[f->block[s]] = 1;
    out->n_actions = model->n_actions;
    if (model->action_names) {
        TRY(base_alloc_zero(ctx, out->n_actions, sizeof *out->action_names, &out->action_names));
        for (size_t a = 0; a < out->n_actions; a++)
            TRY(base_copy_text(ctx, model->action_names[a], &out->action_names[a]));
    }
done:
    return status;
}

// Only then can states differ from their block's first.
static bool is_approximate(const psi_quotient_options *options)
{
    return options->tolerance > 0.0 || options->epsilon_sf > 0.0;
}

static psi_status fold(psi_ctx *ctx, folding *f, const psi_quotient_options *options)
{
    psi_status status = PSI_OK;
    const psi_model *model = f->model;
    size_t n_choices = 0, n_transitions = 0;
    for (size_t k = 0; k < f->n_blocks; k++) {
        const uint64_t begin = model->choices[f->first[k]], end = model->choices[f->first[k] + 1];
        n_choices += end - begin;
        n_transitions += model->offsets[end] - model->offsets[begin];
    }
    TRY(psi_model_new(ctx, f->n_blocks, n_choices, n_transitions, &f->out));
    TRY(base_alloc(ctx, n_choices, sizeof *f->source, &f->source));
    if (f->signing->most_entries > FEW || is_approximate(options))
        TRY(base_alloc_zero(ctx, f->n_blocks, sizeof *f->sum, &f->sum));
    if (!f->signing->distinct && f->signing->most_choices > FEW) {
        TRY(base_alloc(ctx, 2 * f->signing->most_choices, sizeof *f->slot, &f->slot));
        TRY(base_alloc(ctx, f->signing->most_choices, sizeof *f->after, &f->after));
    }
    f->out->chain = model->chain;
    fold_transitions(f);
    if (f->out->n_transitions < n_transitions / 2) { // else what is left over is not worth a copy
        n_transitions = f->out->n_transitions;
        TRY(base_resize(ctx, n_transitions, sizeof *f->out->next, &f->out->next));
        TRY(base_resize(ctx, n_transitions, sizeof *f->out->probability, &f->out->probability));
    }
    TRY(fold_names(ctx, f, options));
done:
    return status;
}

// ---- how far states are from their blocks' first ones -------------------------------------------

// The largest difference between the rewards of two states of one block.
static double state_distance(const folding *f)
{
    const psi_model *model = f->model, *out = f->out;
    double largest = 0.0;
    for (size_t r = 0, o = 0; r < model->n_rewards && o < out->n_rewards; r++) {
        if (strcmp(model->rewards[r].name, out->rewards[o].name) != 0) continue;
        const double *of_state = model->rewards[r].state, *of_block = out->rewards[o++].state;
        for (size_t s = 0; of_state && s < model->n_states; s++)
            largest = fmax(largest, fabs(of_state[s] - of_block[f->block[s]]));
    }
    return largest;
}

// The largest difference between the masses of a choice, which stand in sum, and of a choice of the
// quotient.
static double choice_distance(const folding *f, uint64_t c, uint64_t d)
{
    const psi_model *model = f->model, *out = f->out;
    double largest = 0.0;
    for (uint64_t i = out->offsets[d]; i < out->offsets[d + 1]; i++)
        f->sum[out->next[i]] -= out->probability[i];
    for (uint64_t i = out->offsets[d]; i < out->offsets[d + 1]; i++)
        largest = fmax(largest, fabs(f->sum[out->next[i]]));
    for (uint64_t i = model->offsets[c]; i < model->offsets[c + 1]; i++)
        largest = fmax(largest, fabs(f->sum[f->block[model->next[i]]]));
    for (uint64_t i = out->offsets[d]; i < out->offsets[d + 1]; i++)
        f->sum[out->next[i]] += out->probability[i];
    for (size_t r = 0, o = 0; r < model->n_rewards && o < out->n_rewards; r++) {
        if (strcmp(model->rewards[r].name, out->rewards[o].name) != 0) continue;
        if (model->rewards[r].choice)
            largest = fmax(largest, fabs(model->rewards[r].choice[c] - out->rewards[o].choice[d]));
        o++;
    }
    return largest;
}

// The largest distance of any choice from its nearest equal.
static double find_defect(const folding *f)
{
    const psi_model *model = f->model, *out = f->out;
    double defect = state_distance(f);
    for (size_t s = 0; s < model->n_states; s++) {
        const uint32_t k = f->block[s];
        if (f->first[k] == s) continue;
        for (uint64_t c = model->choices[s]; c < model->choices[s + 1]; c++) {
            double nearest = HUGE_VAL;
            for (uint64_t i = model->offsets[c]; i < model->offsets[c + 1]; i++)
                f->sum[f->block[model->next[i]]] += model->probability[i];
            for (uint64_t d = out->choices[k]; d < out->choices[k + 1]; d++)
                if (f->ignore_actions || out->action[d] == model->action[c])
                    nearest = fmin(nearest, choice_distance(f, c, d));
            if (nearest == HUGE_VAL) nearest = 1.0; // the block lacks the action: all of its mass
            for (uint64_t i = model->offsets[c]; i < model->offsets[c + 1]; i++)
                f->sum[f->block[model->next[i]]] = 0.0;
            defect = fmax(defect, nearest);
        }
    }
    return defect;
}

// ---- all of it ----------------------------------------------------------------------------------

// Renumbers blocks in order of first appearance; first gets the first state of each.
static psi_status number_blocks(psi_ctx *ctx, size_t n, mdp_stable *stable, int32_t *label,
                                uint32_t **first)
{
    psi_status status = PSI_OK;
    uint32_t *name = NULL, n_names = 0;
    TRY(base_alloc(ctx, stable->n_blocks, sizeof *name, &name));
    TRY(base_alloc(ctx, stable->n_blocks, sizeof **first, first));
    memset(name, 0xFF, stable->n_blocks * sizeof *name);
    for (size_t s = 0; s < n; s++) {
        uint32_t *own = &name[stable->block[s]];
        if (*own == UINT32_MAX) {
            (*first)[n_names] = (uint32_t)s;
            *own = n_names++;
        }
        stable->block[s] = *own;
        label[s] = (int32_t)*own;
    }
done:
    base_free(ctx, name);
    return status;
}

// The partition, by whichever of the two ways is asked for. Rewards within epsilon are no classes:
// there, signing knows of labels only.
static psi_status partition_states(psi_ctx *ctx, const psi_model *model,
                                   const psi_quotient_options *options, mdp_signing *signing,
                                   mdp_stable *stable)
{
    psi_status status = PSI_OK;
    psi_quotient_options labels_only = *options;
    labels_only.rewards = "";
    TRY(mdp_signing_check(ctx, model, options));
    if (options->epsilon_sf != 0.0) {
        TRY(mdp_signing_new(ctx, model, &labels_only, signing));
        TRY(mdp_refine_features(ctx, signing, options, stable));
    } else {
        TRY(mdp_signing_new(ctx, model, options, signing));
        TRY(mdp_refine_partition(ctx, signing, stable));
    }
    // the model over the blocks needs kinds only, and memory that was touched before
    mdp_components_free(ctx, &signing->order);
    mdp_masses_free(ctx, &signing->masses);
done:
    return status;
}

psi_status psi_quotient_find(psi_ctx *ctx, const psi_model *model,
                             const psi_quotient_options *options, psi_quotient_result **out)
{
    *out = NULL;
    if (FREED(ctx, model)) return PSI_EUSAGE;
    if (options && !base_options_fit(ctx, options, sizeof *options, "psi_quotient_defaults"))
        return PSI_EUSAGE;
    psi_status status = PSI_OK;
    const psi_quotient_options chosen = options ? *options : psi_quotient_defaults();
    const double started = base_seconds();
    mdp_signing signing = {0};
    mdp_stable stable = {0};
    psi_quotient_result *result = NULL;
    uint32_t *first = NULL;
    folding f = {.model = model, .signing = &signing, .ignore_actions = chosen.ignore_actions};
    TRY(psi_model_check(ctx, model));
    TRY(partition_states(ctx, model, &chosen, &signing, &stable));
    TRY(base_alloc_zero(ctx, 1, sizeof *result, &result));
    TRY(base_alloc_zero(ctx, 1, sizeof *result->partition, &result->partition));
    TRY(base_alloc(ctx, model->n_states, sizeof(int32_t), &result->partition->label));
    TRY(number_blocks(ctx, model->n_states, &stable, result->partition->label, &first));
    result->partition->n_states = model->n_states;
    result->partition->n_blocks = f.n_blocks = stable.n_blocks;
    f.block = stable.block;
    f.first = first;
    TRY(fold(ctx, &f, &chosen));
    if (is_approximate(&chosen)) result->defect = find_defect(&f);
    result->model = f.out;
    f.out = NULL;
    result->n_settled = stable.n_settled;
    result->n_passes = stable.n_passes;
    result->n_rounds = stable.n_rounds;
    result->n_verified = stable.n_verified;
    result->bytes = signing.bytes + stable.bytes;
    result->seconds = base_seconds() - started;
    *out = result;
    result = NULL;
done:
    base_free(ctx, f.slot);
    base_free(ctx, f.after);
    base_free(ctx, f.sum);
    base_free(ctx, f.source);
    psi_model_free(ctx, f.out);
    base_free(ctx, first);
    psi_quotient_free(ctx, result);
    base_free(ctx, stable.block);
    mdp_signing_free(ctx, &signing);
    return status;
}

void psi_quotient_free(psi_ctx *ctx, psi_quotient_result *result)
{
    if (!result || FREED(ctx, result)) return;
    psi_model_free(ctx, result->model);
    psi_partition_free(ctx, result->partition);
    base_retire(ctx, result);
}
