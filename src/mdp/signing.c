// Everything that refinement compares, as integers: masses of transitions, kinds of choices,
// classes of states. Done once, before the first round.
#include "mdp/signature.h"

#include "base/checked.h"
#include "base/context.h"
#include "base/threads.h"
#include "mdp/intern.h"

#include <math.h>
#include <string.h>

// Rounds begin when fewer than one in so many transitions leads to a renamed state: a pass looks at
// eight flags at once and costs about as much as marking n/64 states.
enum { ROUND_SHARE = 64 };

// All states are refined together if more than one in so many lies on a cycle with others: what is
// settled then hardly makes up for the search and for the copy of the core. On the models of
// bench/README.md 4 costs the same as 8; at 1, coin6 takes 1.6 times as long, at 64, wlan5 1.8
// times.
enum { CYCLIC_SHARE = 8 };

static const double UNIT = 0x1p52; // counts of a probability of 1 where there is a tolerance

static psi_status take(psi_ctx *ctx, mdp_signing *signing, size_t count, size_t size, void *out)
{
    signing->bytes += count * size;
    return base_alloc(ctx, count, size, out);
}

bool mdp_is_word(const char *words, const char *name)
{
    if (!words) return true;
    const size_t length = strlen(name);
    for (const char *at = words; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == '\0'))
            return length > 0;
    }
    return false;
}

// Every word of the list must be a name that the model has.
static psi_status check_words(psi_ctx *ctx, const psi_model *model, const char *words, bool rewards)
{
    const size_t n = rewards ? model->n_rewards : model->n_labels;
    for (const char *at = words; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        const size_t length = strcspn(at, ",");
        bool known = !rewards && length == 4 && strncmp(at, "init", 4) == 0;
        for (size_t i = 0; i < n && !known; i++) {
            const char *name = rewards ? model->rewards[i].name : model->labels[i].name;
            known = strlen(name) == length && strncmp(at, name, length) == 0;
        }
        if (!known) {
            return FAIL(ctx, PSI_EUSAGE, "the model has no %s '%.*s'", rewards ? "reward" : "label",
                        (int)length, at);
        }
    }
    return PSI_OK;
}

// ---- kinds and classes --------------------------------------------------------------------------

// Numbers one by one: those that are equal, or with a tolerance share a cell, give the same key.
typedef struct reward_keys {
    mdp_residues known;
    double per_cell; // 0: exact
} reward_keys;

static reward_keys keys_of(const mdp_signing *signing, double tolerance, const double *value,
                           size_t n)
{
    reward_keys keys = {.per_cell = 0.0};
    if (signing->cell == 0) return keys;
    double largest = 0.0;
    for (size_t i = 0; i < n; i++) largest = fmax(largest, fabs(value[i]));
    keys.per_cell = largest > 0.0 ? 1.0 / (largest * tolerance) : 1.0;
    return keys;
}

static uint64_t key_of(reward_keys *keys, double value)
{
    if (keys->per_cell == 0.0) return mdp_residue_of(&keys->known, value);
    return (uint64_t)(int64_t)floor(fmin(fmax(value * keys->per_cell, -0x1p62), 0x1p62) + 0.382);
}

// into[i] becomes the number of the pair (into[i], key of value[i]).
static psi_status intern_values(psi_ctx *ctx, mdp_intern *table, const mdp_signing *signing,
                                double tolerance, const double *value, size_t n, uint32_t *into)
{
    psi_status status = PSI_OK;
    reward_keys *keys = NULL;
    TRY(base_alloc(ctx, 1, sizeof *keys, &keys));
    *keys = keys_of(signing, tolerance, value, n);
    TRY(mdp_intern_reset(ctx, table, 64));
    for (size_t i = 0; i < n; i++)
        TRY(mdp_intern_get(ctx, table, into[i], key_of(keys, value[i]), &into[i]));
done:
    base_free(ctx, keys);
    return status;
}

static psi_status find_kinds(psi_ctx *ctx, mdp_signing *signing,
                             const psi_quotient_options *options, mdp_intern *table)
{
    const psi_model *model = signing->model;
    for (size_t c = 0; c < model->n_choices; c++)
        signing->kind[c] = options->ignore_actions ? 0 : (uint32_t)model->action[c];
    for (size_t r = 0; r < model->n_rewards; r++) {
        const psi_model_reward *reward = &model->rewards[r];
        if (!reward->choice || !mdp_is_word(options->rewards, reward->name)) continue;
        const psi_status status = intern_values(ctx, table, signing, options->tolerance,
                                                reward->choice, model->n_choices, signing->kind);
        if (status != PSI_OK) return status;
    }
    return PSI_OK;
}

// Which of 64 chosen labels hold in a state, as bits. "init" stands before the others and counts
// only if it is named: where a model starts is no property of what happens next.
static uint64_t label_bits(const psi_model *model, const psi_quotient_options *options,
                           size_t first, const uint8_t **holds)
{
    uint64_t n = 0;
    for (size_t l = first; l < model->n_labels + 1 && l < first + 64; l++) {
        const char *name = l == 0 ? "init" : model->labels[l - 1].name;
        if (mdp_is_word(options->labels, name) && (l > 0 || options->labels))
            holds[n++] = l == 0 ? model->initial : model->labels[l - 1].holds;
    }
    return n;
}

static psi_status find_classes(psi_ctx *ctx, mdp_signing *signing,
                               const psi_quotient_options *options, mdp_intern *table)
{
    psi_status status = PSI_OK;
    const psi_model *model = signing->model;
    uint32_t *class_ = signing->class_;
    signing->n_classes = model->n_states > 0;
    for (size_t s = 0; s < model->n_states; s++)
        class_[s] = options->start ? (uint32_t)options->start->label[s] : 0;
    if (options->start) signing->n_classes = options->start->n_blocks;
    for (size_t first = 0; first < model->n_labels + 1; first += 64) {
        const uint8_t *holds[64];
        const uint64_t n = label_bits(model, options, first, holds);
        if (n == 0) continue;
        TRY(mdp_intern_reset(ctx, table, 64));
        for (size_t s = 0; s < model->n_states; s++) {
            uint64_t bits = 0;
            for (uint64_t l = 0; l < n && l < 64; l++) bits |= (uint64_t)(holds[l][s] != 0) << l;
            TRY(mdp_intern_get(ctx, table, class_[s], bits, &class_[s]));
        }
        signing->n_classes = table->n;
    }
    for (size_t r = 0; r < model->n_rewards; r++) {
        const psi_model_reward *reward = &model->rewards[r];
        if (!reward->state || !mdp_is_word(options->rewards, reward->name)) continue;
        TRY(intern_values(ctx, table, signing, options->tolerance, reward->state, model->n_states,
                          class_));
        signing->n_classes = table->n;
    }
done:
    return status;
}

// How much the largest state has, and whether choices of one kind occur twice in any.
static void measure(mdp_signing *signing)
{
    enum { MANY = 16 }; // choices of a state whose kinds are not compared one by one
    const psi_model *model = signing->model;
    signing->distinct = true;
    for (size_t s = 0; s < model->n_states; s++) {
        const uint64_t first = model->choices[s], end = model->choices[s + 1];
        const size_t n = end - first, entries = model->offsets[end] - model->offsets[first];
        signing->most_choices = base_max(signing->most_choices, n);
        signing->most_entries = base_max(signing->most_entries, entries);
        if (n > MANY) signing->distinct = false;
        for (uint64_t c = first; c < end && signing->distinct; c++)
            for (uint64_t d = first; d < c; d++)
                if (signing->kind[c] == signing->kind[d]) signing->distinct = false;
    }
}

// ---- the order ----------------------------------------------------------------------------------

// Is there a state that leads to no other? Nothing is known without one, but for rare cycles.
static bool has_final(const psi_model *model)
{
    for (size_t s = 0; s < model->n_states; s++) {
        const uint64_t end = model->offsets[model->choices[s + 1]];
        uint64_t i = model->offsets[model->choices[s]];
        while (i < end && (size_t)model->next[i] == s) i++;
        if (i == end) return true;
    }
    return false;
}

// With a tolerance all states are needed at once: what shares a cell depends on other blocks.
static bool has_order(const mdp_signing *signing)
{
    return signing->cell == 0 && has_final(signing->model);
}

// Where the transitions of every state begin; where each has one choice, the model says so itself.
static psi_status find_begins(psi_ctx *ctx, const psi_model *model, uint64_t **own,
                              const uint64_t **out)
{
    psi_status status = PSI_OK;
    size_t s = 0;
    while (s < model->n_states && model->choices[s] == s) s++;
    *out = model->offsets;
    if (s == model->n_states && model->n_choices == s) return PSI_OK;
    TRY(base_alloc(ctx, model->n_states + 1, sizeof **own, own));
    for (s = 0; s <= model->n_states; s++) (*own)[s] = model->offsets[model->choices[s]];
    *out = *own;
done:
    return status;
}

psi_status mdp_signing_search(psi_ctx *ctx, mdp_signing *signing, size_t cyclic_share)
{
    psi_status status = PSI_OK;
    const psi_model *model = signing->model;
    mdp_graph graph = {model->n_states, NULL, model->next};
    uint64_t *own = NULL;
    mdp_components_free(ctx, &signing->order);
    if (!has_order(signing)) return PSI_OK;
    TRY(find_begins(ctx, model, &own, &graph.begin));
    TRY(mdp_components_find(ctx, &graph, model->n_states / cyclic_share, &signing->order));
done:
    base_free(ctx, own);
    return status;
}

// ---- all of it ----------------------------------------------------------------------------------

psi_status mdp_signing_check(psi_ctx *ctx, const psi_model *model,
                             const psi_quotient_options *options)
{
    psi_status status = PSI_OK;
    if (!(options->tolerance >= 0.0 && options->tolerance < 1.0)) {
        return FAIL(ctx, PSI_EUSAGE, "a tolerance of %g; it must be at least 0 and below 1",
                    options->tolerance);
    }
    if (options->hash_bits < 0 || options->hash_bits > 64)
        return FAIL(ctx, PSI_EUSAGE, "a hash of %d bits", options->hash_bits);
    TRY(check_words(ctx, model, options->labels, false));
    TRY(check_words(ctx, model, options->rewards, true));
    if (options->start && options->start->n_states != model->n_states) {
        return FAIL(ctx, PSI_ESHAPE, "the partition is one of %zu states, the model has %zu",
                    options->start->n_states, model->n_states);
    }
    if (options->start) TRY(psi_partition_check(ctx, options->start));
    for (size_t s = 0; options->start && s < model->n_states; s++) {
        if (options->start->label[s] < 0)
            return FAIL(ctx, PSI_EDATA, "state %zu is ignored; a quotient needs all states", s);
    }
done:
    return status;
}

static psi_status classify(psi_ctx *ctx, mdp_signing *signing, const psi_quotient_options *options)
{
    psi_status status = PSI_OK;
    mdp_intern table = {0};
    TRY(find_kinds(ctx, signing, options, &table));
    TRY(find_classes(ctx, signing, options, &table));
    measure(signing);
    signing->linear = signing->distinct && signing->cell == 0;
done:
    mdp_intern_free(ctx, &table);
    return status;
}

typedef struct preparing {
    psi_ctx *ctx;
    mdp_signing *signing;
    const psi_quotient_options *options;
    psi_status measured, searched;
} preparing;

// By the team, or, with NULL, by the thread that calls.
static psi_status classify_and_measure(const preparing *p, base_team *team)
{
    psi_status status = PSI_OK;
    mdp_signing *signing = p->signing;
    TRY(classify(p->ctx, signing, p->options));
    TRY(mdp_masses_new(p->ctx, team, signing->model, signing->kind, signing->cell == 0,
                       &signing->masses));
done:
    return status;
}

// The order has nothing to do with classes and masses.
static void prepare_task(void *argument, int thread, int threads)
{
    preparing *p = argument;
    if (thread == 0) p->searched = mdp_signing_search(p->ctx, p->signing, CYCLIC_SHARE);
    if (thread == threads - 1) p->measured = classify_and_measure(p, NULL);
}

psi_status mdp_signing_new(psi_ctx *ctx, const psi_model *model,
                           const psi_quotient_options *options, mdp_signing *out)
{
    psi_status status = PSI_OK;
    preparing p = {ctx, out, options, PSI_OK, PSI_OK};
    *out = (mdp_signing){.model = model, .salt = 1, .keep = UINT64_MAX};
    out->round_share = ROUND_SHARE;
    if (options->hash_bits > 0) out->keep >>= 64 - options->hash_bits;
    if (options->tolerance > 0.0) out->cell = (uint64_t)fmax(1.0, rint(options->tolerance * UNIT));
    TRY(take(ctx, out, model->n_choices, sizeof *out->kind, &out->kind));
    TRY(take(ctx, out, model->n_states, sizeof *out->class_, &out->class_));
    if (has_order(out))
        base_team_run(base_ctx_team(ctx), prepare_task, &p);
    else
        p.measured = classify_and_measure(&p, base_ctx_team(ctx));
    TRY(p.measured);
    TRY(p.searched);
    out->bytes += out->order.bytes + model->n_transitions * sizeof *out->masses.row +
                  out->masses.n_rows * (sizeof *out->masses.mass + sizeof *out->masses.kind);
done:
    if (status != PSI_OK) mdp_signing_free(ctx, out);
    return status;
}

void mdp_signing_free(psi_ctx *ctx, mdp_signing *signing)
{
    mdp_components_free(ctx, &signing->order);
    base_free(ctx, signing->class_);
    base_free(ctx, signing->kind);
    mdp_masses_free(ctx, &signing->masses);
    *signing = (mdp_signing){0};
}
