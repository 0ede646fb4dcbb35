// Signatures of states: hashes, the full form, and whether two are the same.
#include "mdp/signature.h"

#include "base/checked.h"
#include "base/context.h"
#include "base/order.h"

#include <stdlib.h>
#include <string.h>

enum { UNFOLDED = 32 };     // products of residues that a wide number holds without a fold
enum { MANY_CHOICES = 64 }; // of a state: from here on they are sorted, not compared one by one

static const uint64_t CELL_START = 382; // thousandths: no usual number lies on a border of cells

// Σ p·w(block), plus one more weight, so that a choice is never nothing.
static uint64_t choice_sum(const mdp_signing *signing, const uint32_t *block, uint64_t c)
{
    const int32_t *next = signing->model->next;
    const uint64_t end = signing->model->offsets[c + 1];
    uint64_t i = signing->model->offsets[c];
    mdp_wide sum = mdp_block_weight(signing, UINT32_MAX);
    while (end - i > UNFOLDED) {
        for (const uint64_t stop = i + UNFOLDED; i < stop; i++)
            sum += (mdp_wide)mdp_mass(signing, i) * mdp_block_weight(signing, block[next[i]]);
        sum = mdp_fold(sum);
    }
    for (; i < end; i++)
        sum += (mdp_wide)mdp_mass(signing, i) * mdp_block_weight(signing, block[next[i]]);
    return mdp_fold(sum);
}

static uint64_t form_hash(const mdp_form *form)
{
    uint64_t total = 0;
    for (size_t c = 0; c < form->n; c++) {
        uint64_t hash = 0;
        for (size_t i = form->begin[c]; i < form->begin[c + 1]; i++)
            hash = mdp_mix(hash ^ form->words[i]) + 1;
        total += mdp_mix(hash);
    }
    return total;
}

// The same for a state with so many choices that looking for each among the others takes too long.
static uint64_t large_set_hash(const mdp_signing *signing, const uint32_t *block, size_t state,
                               uint64_t *hash)
{
    const uint64_t first = signing->model->choices[state];
    const size_t n = signing->model->choices[state + 1] - first;
    uint64_t total = 0;
    for (size_t i = 0; i < n; i++) {
        hash[i] = mdp_times(choice_sum(signing, block, first + i),
                            mdp_kind_weight(signing, signing->kind[first + i]));
    }
    qsort(hash, n, sizeof *hash, base_by_number);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || hash[i] != hash[i - 1]) total += mdp_mix(hash[i]);
    return total;
}

// The sum over the different ones among the choices' hashes: they are a set.
static uint64_t set_hash(const mdp_signing *signing, const uint32_t *block, size_t state,
                         uint64_t *hash)
{
    const psi_model *model = signing->model;
    uint64_t total = 0;
    size_t n = 0;
    if (model->choices[state + 1] - model->choices[state] > MANY_CHOICES)
        return large_set_hash(signing, block, state, hash);
    for (uint64_t c = model->choices[state]; c < model->choices[state + 1]; c++) {
        const uint64_t sum = choice_sum(signing, block, c);
        const uint64_t own = mdp_times(sum, mdp_kind_weight(signing, signing->kind[c]));
        size_t i = 0;
        while (i < n && hash[i] != own) i++;
        if (i < n) continue;
        hash[n++] = own;
        total += mdp_mix(own);
    }
    return total;
}

uint64_t mdp_signature(const mdp_signing *signing, const uint32_t *block, size_t state,
                       mdp_form *form)
{
    const psi_model *model = signing->model;
    if (signing->cell != 0) {
        mdp_form_fill(signing, block, state, form);
        return mdp_mix(form_hash(form) + signing->salt);
    }
    if (!signing->linear) return mdp_mix(set_hash(signing, block, state, form->words));
    uint64_t total = 0;
    for (uint64_t c = model->choices[state]; c < model->choices[state + 1]; c++) {
        const uint64_t sum = choice_sum(signing, block, c);
        total = mdp_plus(total, mdp_times(sum, mdp_kind_weight(signing, signing->kind[c])));
    }
    return total;
}

// ---- in full ------------------------------------------------------------------------------------

psi_status mdp_form_new(psi_ctx *ctx, const mdp_signing *signing, mdp_form *out)
{
    psi_status status = PSI_OK;
    const size_t words = signing->most_choices + 2 * signing->most_entries;
    *out = (mdp_form){.from = MDP_OWN, .to = MDP_OWN};
    TRY(base_alloc(ctx, 2 * words, sizeof *out->words, &out->words)); // the second half: scratch
    TRY(base_alloc(ctx, signing->most_choices + 1, sizeof *out->begin, &out->begin));
    TRY(base_alloc(ctx, 2 * signing->most_choices + 1, sizeof *out->order, &out->order));
done:
    if (status != PSI_OK) mdp_form_free(ctx, out);
    return status;
}

void mdp_form_free(psi_ctx *ctx, mdp_form *form)
{
    base_free(ctx, form->order);
    base_free(ctx, form->begin);
    base_free(ctx, form->words);
    *form = (mdp_form){0};
}

// Sorts n pairs (block, mass) by block.
static void sort_pairs(uint64_t *pair, size_t n)
{
    enum { FEW = 24 };
    if (n > FEW) {
        qsort(pair, n, 2 * sizeof *pair, base_by_number); // the first of a pair
        return;
    }
    for (size_t i = 1; i < n; i++) {
        const uint64_t block = pair[2 * i], mass = pair[2 * i + 1];
        size_t at = i;
        for (; at > 0 && pair[2 * at - 2] > block; at--) {
            pair[2 * at] = pair[2 * at - 2];
            pair[2 * at + 1] = pair[2 * at - 1];
        }
        pair[2 * at] = block;
        pair[2 * at + 1] = mass;
    }
}

// The words of a choice with one or two transitions, which most have; returns how many.
static size_t fill_short(const mdp_signing *signing, const uint32_t *block, uint64_t c,
                         const mdp_form *form, uint64_t *words)
{
    const psi_model *model = signing->model;
    const uint64_t begin = model->offsets[c], end = model->offsets[c + 1];
    const uint32_t to = block[model->next[begin]], other = block[model->next[end - 1]];
    const uint64_t a = to == form->from ? form->to : to;
    const uint64_t b = other == form->from ? form->to : other;
    const uint64_t mass = mdp_mass(signing, begin), rest = mdp_mass(signing, end - 1);
    const bool two = a != b;
    words[0] = signing->kind[c] | (uint64_t)(two ? 2 : 1) << 32;
    words[1] = a < b ? a : b;
    words[2] = two ? (a < b ? mass : rest) : end - begin == 1 ? mass : mdp_plus(mass, rest);
    if (!two) return 3;
    words[3] = a < b ? b : a;
    words[4] = a < b ? rest : mass;
    return 5;
}

// The words of one choice; returns how many.
static size_t fill_choice(const mdp_signing *signing, const uint32_t *block, uint64_t c,
                          const mdp_form *form, uint64_t *words)
{
    const psi_model *model = signing->model;
    const uint64_t begin = model->offsets[c], end = model->offsets[c + 1];
    uint64_t *pair = words + 1;
    if (end - begin - 1 < 2 && signing->cell == 0)
        return fill_short(signing, block, c, form, words);
    for (uint64_t i = begin; i < end; i++) {
        const uint32_t to = block[model->next[i]];
        pair[2 * (i - begin)] = to == form->from ? form->to : to;
        pair[2 * (i - begin) + 1] = mdp_mass(signing, i);
    }
    sort_pairs(pair, end - begin);
    size_t n = 0;
    for (size_t i = 0; i < end - begin;) {
        const uint64_t to = pair[2 * i];
        uint64_t sum = 0;
        for (; i < end - begin && pair[2 * i] == to; i++) {
            sum = signing->cell ? sum + pair[2 * i + 1] : mdp_plus(sum, pair[2 * i + 1]);
        }
        if (signing->cell) sum = (sum + CELL_START * signing->cell / 1000) / signing->cell;
        if (sum == 0) continue;
        pair[2 * n] = to;
        pair[2 * n++ + 1] = sum;
    }
    words[0] = signing->kind[c] | (uint64_t)n << 32;
    return 1 + 2 * n;
}

static int compare_words(const uint64_t *a, size_t n, const uint64_t *b, size_t m)
{
    for (size_t i = 0; i < n && i < m; i++)
        if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
    return (n > m) - (n < m);
}

// Choices as words that stand one after the other.
typedef struct word_lists {
    const uint64_t *words;
    const size_t *start;
} word_lists;

static int compare_choices(const void *a, const void *b, void *lists)
{
    const word_lists *of = lists;
    const size_t c = *(const size_t *)a, d = *(const size_t *)b;
    return compare_words(of->words + of->start[c], of->start[c + 1] - of->start[c],
                         of->words + of->start[d], of->start[d + 1] - of->start[d]);
}

// Puts choice c in its place among those before it, behind the last that is not larger.
static void insert_choice(word_lists *lists, size_t c, size_t *order)
{
    size_t low = 0, high = c;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (compare_choices(&order[middle], &c, lists) > 0) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    memmove(order + low + 1, order + low, (c - low) * sizeof *order);
    order[low] = c;
}

void mdp_form_fill(const mdp_signing *signing, const uint32_t *block, size_t state, mdp_form *form)
{
    const psi_model *model = signing->model;
    const uint64_t first = model->choices[state];
    const size_t n = model->choices[state + 1] - first;
    form->n = 0;
    form->begin[0] = 0;
    if (n == 1) {
        form->n = 1;
        form->begin[1] = fill_choice(signing, block, first, form, form->words);
        return;
    }
    // every choice into the scratch, in order, then once each in front
    uint64_t *scratch = form->words + signing->most_choices + 2 * signing->most_entries;
    size_t *start = form->order, *order = form->order + signing->most_choices + 1;
    word_lists lists = {scratch, start};
    start[0] = 0;
    for (size_t c = 0; c < n; c++) {
        start[c + 1] = start[c] + fill_choice(signing, block, first + c, form, scratch + start[c]);
        order[c] = c;
        if (n <= MANY_CHOICES) insert_choice(&lists, c, order);
    }
    if (n > MANY_CHOICES) qsort_r(order, n, sizeof *order, compare_choices, &lists);
    for (size_t i = 0; i < n; i++) {
        const uint64_t *words = scratch + start[order[i]];
        const size_t length = start[order[i] + 1] - start[order[i]], at = form->begin[form->n];
        if (form->n > 0) {
            const size_t before = form->begin[form->n - 1];
            if (compare_words(form->words + before, at - before, words, length) == 0) continue;
        }
        memcpy(form->words + at, words, length * sizeof *words);
        form->begin[++form->n] = at + length;
    }
}

bool mdp_form_equal(const mdp_form *a, const mdp_form *b)
{
    const size_t n = mdp_form_length(a);
    if (n != mdp_form_length(b)) return false;
    for (size_t i = 0; i < n; i++)
        if (a->words[i] != b->words[i]) return false;
    return true;
}

// ---- side by side -------------------------------------------------------------------------------

// Masses of both choices sum to 1: if every block that the first enters is entered by the second
// with the same mass, the second enters no other.
static bool same_choice(const mdp_signing *signing, const uint32_t *block, uint64_t c, uint64_t d)
{
    const psi_model *model = signing->model;
    const int32_t *next = model->next;
    const uint64_t end_c = model->offsets[c + 1], end_d = model->offsets[d + 1];
    if (signing->kind[c] != signing->kind[d]) return false;
    for (uint64_t i = model->offsets[c]; i < end_c; i++) {
        const uint32_t to = block[next[i]];
        uint64_t difference = 0;
        for (uint64_t j = model->offsets[c]; j < end_c; j++)
            if (block[next[j]] == to) difference = mdp_plus(difference, mdp_mass(signing, j));
        for (uint64_t j = model->offsets[d]; j < end_d; j++) {
            if (block[next[j]] == to)
                difference = mdp_plus(difference, MDP_PRIME - mdp_mass(signing, j));
        }
        if (difference != 0) return false;
    }
    return true;
}

bool mdp_same_signature(const mdp_signing *signing, const uint32_t *block, size_t s, size_t t,
                        mdp_form *a, mdp_form *b)
{
    enum { FEW = 12 };
    const psi_model *model = signing->model;
    const uint64_t first_s = model->choices[s], n = model->choices[s + 1] - first_s;
    const uint64_t first_t = model->choices[t];
    bool small = signing->linear;
    for (uint64_t c = first_s; c < first_s + n && small; c++)
        small = model->offsets[c + 1] - model->offsets[c] <= FEW;
    if (!small) {
        mdp_form_fill(signing, block, s, a);
        mdp_form_fill(signing, block, t, b);
        return mdp_form_equal(a, b);
    }
    if (model->choices[t + 1] - first_t != n) return false;
    for (uint64_t c = 0; c < n; c++) {
        // mostly at the same place; anywhere else otherwise
        if (same_choice(signing, block, first_s + c, first_t + c)) continue;
        bool found = false;
        for (uint64_t d = 0; d < n && !found; d++)
            found = same_choice(signing, block, first_s + c, first_t + d);
        if (!found) return false;
    }
    return true;
}
