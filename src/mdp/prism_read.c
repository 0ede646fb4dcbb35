// PRISM's tables: .tra with "n m" (a chain) or "n c m" (an MDP) above rows "s [c] t p [action]",
// .lab with numbered labels, .srew and .trew with rewards of states and of transitions.
#include "mdp/model_formats.h"

#include "base/checked.h"
#include "base/context.h"
#include "mdp/names.h"
#include "mdp/scan.h"
#include "mdp/sparse_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct prism {
    psi_ctx *ctx;
    psi_model *model;
    mdp_names actions;
    uint64_t n_states, n_choices, n_transitions;
    uint64_t last_state, last_choice; // of the row before
} prism;

static mdp_scan scan_of(psi_ctx *ctx, const char *name, const char *text, size_t size)
{
    return (mdp_scan){.ctx = ctx, .name = name, .text = text, .at = text, .end = text + size};
}

static bool next_count(mdp_scan *scan, uint64_t *out)
{
    mdp_scan_blanks(scan);
    return mdp_scan_count(scan, out);
}

// ---- transitions --------------------------------------------------------------------------------

static psi_status read_head(prism *p, mdp_scan *scan)
{
    psi_status status = PSI_OK;
    uint64_t number[3];
    size_t n = 0;
    if (!mdp_scan_to_content(scan, "#")) TRY(SCAN_FAIL(scan, "the table is empty"));
    while (n < 3 && next_count(scan, &number[n])) n++;
    mdp_scan_blanks(scan);
    if (n < 2 || !mdp_scan_at_end_of_line(scan))
        TRY(SCAN_FAIL(scan, "the first line counts states, choices (of an MDP) and transitions"));
    p->n_states = number[0];
    p->n_choices = n == 3 ? number[1] : 0;
    p->n_transitions = number[n - 1];
    const size_t lines = mdp_scan_lines(scan->text, (size_t)(scan->end - scan->text)) + 1;
    // a transition has a line; a state without any is possible, but not more than there is text
    if (p->n_transitions > lines || p->n_choices > lines ||
        p->n_states > (size_t)(scan->end - scan->text)) {
        TRY(SCAN_FAIL(scan, "%llu states and %llu transitions are announced in %zu lines",
                      (unsigned long long)p->n_states, (unsigned long long)p->n_transitions,
                      lines));
    }
    const size_t n_choices = n == 3 ? p->n_choices : base_min(p->n_states, p->n_transitions);
    TRY(psi_model_new(p->ctx, p->n_states, n_choices, p->n_transitions, &p->model));
    p->model->chain = n == 2;
    p->model->n_choices = p->model->n_transitions = 0;
    p->n_choices = n_choices;
done:
    return status;
}

// The row belongs to choice c of state s: the one before it, or the next.
static psi_status open_choice(prism *p, mdp_scan *scan, uint64_t s, uint64_t c)
{
    psi_model *model = p->model;
    const bool first = model->n_choices == 0;
    if (!first && s == p->last_state && c == p->last_choice) return PSI_OK;
    if (!first && (s < p->last_state || (s == p->last_state && c < p->last_choice))) {
        return SCAN_FAIL(scan, "state %llu, choice %llu stands twice or out of order",
                         (unsigned long long)s, (unsigned long long)c);
    }
    const uint64_t expected = first || s > p->last_state ? 0 : p->last_choice + 1;
    if (c != expected) {
        return SCAN_FAIL(scan, "choice %llu of state %llu is missing", (unsigned long long)expected,
                         (unsigned long long)s);
    }
    if (model->n_choices == p->n_choices) return SCAN_FAIL(scan, "more choices than announced");
    for (uint64_t t = first ? 0 : p->last_state + 1; t <= s; t++)
        model->choices[t] = model->n_choices;
    model->action[model->n_choices] = (int32_t)c;
    model->offsets[model->n_choices++] = model->n_transitions;
    p->last_state = s;
    p->last_choice = c;
    return PSI_OK;
}

static psi_status read_row(prism *p, mdp_scan *scan, bool *named)
{
    psi_status status = PSI_OK;
    psi_model *model = p->model;
    uint64_t s = 0, c = 0, t = 0;
    double probability = 0.0;
    const char *word;
    if (!next_count(scan, &s) || (!model->chain && !next_count(scan, &c)) || !next_count(scan, &t))
        TRY(SCAN_FAIL(scan, "a row names a state%s and the next state",
                      model->chain ? "" : ", a choice"));
    mdp_scan_blanks(scan);
    if (!mdp_scan_number(scan, &probability)) TRY(SCAN_FAIL(scan, "a row ends with a probability"));
    if (s >= p->n_states || t >= p->n_states) {
        TRY(SCAN_FAIL(scan, "state %llu of a model of %llu",
                      (unsigned long long)(s >= p->n_states ? s : t),
                      (unsigned long long)p->n_states));
    }
    if (model->n_transitions == p->n_transitions)
        TRY(SCAN_FAIL(scan, "more transitions than announced"));
    const size_t known = model->n_choices;
    TRY(open_choice(p, scan, s, c));
    mdp_scan_blanks(scan);
    if (!mdp_scan_at_end_of_line(scan) && !model->chain) {
        size_t number;
        const size_t length = mdp_scan_word(scan, &word);
        if (model->n_choices > known) {
            TRY(mdp_names_get(p->ctx, &p->actions, word, length, &number));
            model->action[known] = (int32_t)number;
        }
        *named = true;
        mdp_scan_blanks(scan);
    } else if (model->n_choices > known && *named) {
        size_t number;
        TRY(mdp_names_get(p->ctx, &p->actions, "", 0, &number));
        model->action[known] = (int32_t)number;
    }
    if (!mdp_scan_at_end_of_line(scan)) TRY(SCAN_FAIL(scan, "too much in this line"));
    if (probability == 0.0) return PSI_OK;
    model->next[model->n_transitions] = (int32_t)t;
    model->probability[model->n_transitions++] = probability;
done:
    return status;
}

static psi_status read_tra(prism *p, const char *name, const mdp_prism_texts *texts)
{
    psi_status status = PSI_OK;
    mdp_scan scan = scan_of(p->ctx, name, texts->tra, texts->tra_size);
    size_t rows = 0;
    bool named = false;
    TRY(read_head(p, &scan));
    psi_model *model = p->model;
    for (; mdp_scan_to_content(&scan, "#"); rows++) {
        const bool before = named;
        TRY(read_row(p, &scan, &named));
        // choices without a name stand before the first that has one
        if (named && !before && model->n_choices > 1) {
            size_t number;
            TRY(mdp_names_get(p->ctx, &p->actions, "", 0, &number));
            for (size_t c = 0; c + 1 < model->n_choices; c++) model->action[c] = (int32_t)number;
        }
    }
    if (rows != p->n_transitions) {
        TRY(SCAN_FAIL(&scan, "%llu transitions are announced, %zu are there",
                      (unsigned long long)p->n_transitions, rows));
    }
    if (!model->chain && model->n_choices != p->n_choices) {
        TRY(SCAN_FAIL(&scan, "%llu choices are announced, %zu are there",
                      (unsigned long long)p->n_choices, model->n_choices));
    }
    for (uint64_t t = model->n_choices > 0 ? p->last_state + 1 : 0; t <= p->n_states; t++)
        model->choices[t] = model->n_choices;
    model->offsets[model->n_choices] = model->n_transitions;
    if (named) {
        TRY(mdp_names_actions(p->ctx, &p->actions, model));
    } else {
        for (size_t c = 0; c < model->n_choices; c++)
            model->n_actions = base_max(model->n_actions, (size_t)model->action[c] + 1);
    }
done:
    return status;
}

// ---- labels and rewards -------------------------------------------------------------------------

enum { MOST_LABELS = 4096, INITIAL = -1 };

// 0="init" 1="deadlock" 2="done": which of the model's labels each number is.
static psi_status read_label_names(prism *p, mdp_scan *scan, int *label, size_t *n)
{
    psi_status status = PSI_OK;
    for (*n = 0;;) {
        uint64_t number = 0;
        const char *word;
        uint8_t *holds;
        mdp_scan_blanks(scan);
        if (mdp_scan_at_end_of_line(scan)) return PSI_OK;
        if (!mdp_scan_count(scan, &number) || *scan->at != '=' || number != *n || *n >= MOST_LABELS)
            TRY(SCAN_FAIL(scan, "labels are declared as 0=\"name\" 1=\"name\" …"));
        scan->at++;
        const size_t length = mdp_scan_word(scan, &word);
        label[*n] = (int)p->model->n_labels;
        if (length == 4 && memcmp(word, "init", 4) == 0) {
            label[*n] = INITIAL;
        } else {
            TRY(mdp_model_add_label(p->ctx, p->model, word, length, &holds));
        }
        ++*n;
    }
done:
    return status;
}

static psi_status read_lab(prism *p, const char *name, const char *text, size_t size)
{
    psi_status status = PSI_OK;
    mdp_scan scan = scan_of(p->ctx, name, text, size);
    int *label = NULL;
    size_t n = 0;
    if (!mdp_scan_to_content(&scan, "#")) return PSI_OK;
    TRY(base_alloc(p->ctx, MOST_LABELS, sizeof *label, &label));
    TRY(read_label_names(p, &scan, label, &n));
    while (mdp_scan_to_content(&scan, "#")) {
        uint64_t s = 0, number = 0;
        if (!mdp_scan_count(&scan, &s) || *scan.at != ':')
            TRY(SCAN_FAIL(&scan, "labels of a state read 'state: number number'"));
        if (s >= p->n_states) {
            TRY(SCAN_FAIL(&scan, "state %llu of a model of %llu", (unsigned long long)s,
                          (unsigned long long)p->n_states));
        }
        scan.at++;
        while (next_count(&scan, &number)) {
            if (number >= n)
                TRY(SCAN_FAIL(&scan, "label %llu of %zu", (unsigned long long)number, n));
            (label[number] == INITIAL ? p->model->initial
                                      : p->model->labels[label[number]].holds)[s] = 1;
        }
        if (!mdp_scan_at_end_of_line(&scan)) TRY(SCAN_FAIL(&scan, "too much in this line"));
    }
done:
    base_free(p->ctx, label);
    return status;
}

// A comment  # Reward structure "name"  names what follows; without one it is "reward".
static size_t reward_name(const char *text, const char **name)
{
    static const char *const mark = "# Reward structure \"";
    *name = "reward";
    if (strncmp(text, mark, strlen(mark)) != 0) return strlen(*name);
    const char *begin = text + strlen(mark);
    const size_t length = strcspn(begin, "\"\n");
    if (begin[length] != '"' || length == 0) return strlen(*name);
    *name = begin;
    return length;
}

// The reward of that name; made if there is none.
static psi_status find_reward(prism *p, const char *text, bool state, psi_model_reward **out)
{
    psi_status status = PSI_OK;
    const char *name;
    const size_t length = reward_name(text, &name);
    psi_model *model = p->model;
    for (size_t r = 0; r < model->n_rewards; r++) {
        *out = &model->rewards[r];
        if (strlen((*out)->name) == length && memcmp((*out)->name, name, length) == 0) {
            if (state || (*out)->choice) return PSI_OK;
            return base_alloc_zero(p->ctx, model->n_choices, sizeof(double), &(*out)->choice);
        }
    }
    TRY(mdp_model_add_reward(p->ctx, model, name, length, state, !state, out));
done:
    return status;
}

static psi_status read_srew(prism *p, const char *name, const char *text, size_t size)
{
    psi_status status = PSI_OK;
    mdp_scan scan = scan_of(p->ctx, name, text, size);
    psi_model_reward *reward;
    uint64_t s = 0, n = 0;
    if (!mdp_scan_to_content(&scan, "#")) return PSI_OK;
    TRY(find_reward(p, text, true, &reward));
    if (!next_count(&scan, &s) || !next_count(&scan, &n) || s != p->n_states)
        TRY(SCAN_FAIL(&scan, "the first line counts the model's states and the rewards"));
    while (mdp_scan_to_content(&scan, "#")) {
        if (!next_count(&scan, &s) || s >= p->n_states)
            TRY(SCAN_FAIL(&scan, "a row names a state of the model"));
        mdp_scan_blanks(&scan);
        if (!mdp_scan_number(&scan, &reward->state[s]))
            TRY(SCAN_FAIL(&scan, "a row ends with a reward"));
        mdp_scan_next_line(&scan);
    }
done:
    return status;
}

// Where a choice leads, in the order of the states. Rows of a table may name them in any order, and
// to look through a long choice for each of them would take the square of its length.
typedef struct arrival {
    double probability;
    int32_t next;
} arrival;

enum { LONG = 32 };

static int by_next(const void *a, const void *b)
{
    const arrival *x = a, *y = b;
    return (x->next > y->next) - (x->next < y->next);
}

// Sorts the transitions of long choices, and adds those to one state to the first of them; *out is
// NULL where no choice is long.
static psi_status sort_arrivals(const prism *p, arrival **out)
{
    psi_status status = PSI_OK;
    const psi_model *model = p->model;
    *out = NULL;
    for (size_t c = 0; c < model->n_choices; c++) {
        const uint64_t begin = model->offsets[c], n = model->offsets[c + 1] - begin;
        if (n <= LONG) continue;
        if (!*out) TRY(base_alloc(p->ctx, model->n_transitions, sizeof **out, out));
        for (uint64_t i = begin; i < begin + n; i++)
            (*out)[i] = (arrival){model->probability[i], model->next[i]};
        qsort(*out + begin, n, sizeof **out, by_next);
        for (uint64_t i = begin + n; --i > begin;) {
            if ((*out)[i - 1].next == (*out)[i].next)
                (*out)[i - 1].probability += (*out)[i].probability;
        }
    }
done:
    return status;
}

// The probability with which a choice leads to a state.
static double mass_of(const prism *p, const arrival *sorted, uint64_t choice, uint64_t to)
{
    const psi_model *model = p->model;
    const uint64_t end = model->offsets[choice + 1];
    uint64_t low = model->offsets[choice], high = end;
    double mass = 0.0;
    if (!sorted || end - low <= LONG) {
        for (; low < end; low++)
            if ((uint64_t)model->next[low] == to) mass += model->probability[low];
        return mass;
    }
    while (low < high) { // the first that is not below
        const uint64_t middle = low + (high - low) / 2;
        if ((uint64_t)sorted[middle].next < to) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < end && (uint64_t)sorted[low].next == to ? sorted[low].probability : 0.0;
}

// r(s, c, t), added to the choice as far as t is expected.
static psi_status read_trew(prism *p, const char *name, const char *text, size_t size)
{
    psi_status status = PSI_OK;
    mdp_scan scan = scan_of(p->ctx, name, text, size);
    const psi_model *model = p->model;
    psi_model_reward *reward;
    arrival *sorted = NULL;
    if (!mdp_scan_to_content(&scan, "#")) return PSI_OK;
    TRY(find_reward(p, text, false, &reward));
    TRY(sort_arrivals(p, &sorted));
    mdp_scan_next_line(&scan);
    while (mdp_scan_to_content(&scan, "#")) {
        uint64_t s = 0, c = 0, t = 0;
        double value = 0.0;
        if (!next_count(&scan, &s) || (!model->chain && !next_count(&scan, &c)) ||
            !next_count(&scan, &t))
            TRY(SCAN_FAIL(&scan, "a row names state, choice (of an MDP) and next state"));
        mdp_scan_blanks(&scan);
        if (!mdp_scan_number(&scan, &value)) TRY(SCAN_FAIL(&scan, "a row ends with a reward"));
        if (s >= p->n_states || c >= model->choices[s + 1] - model->choices[s]) {
            TRY(SCAN_FAIL(&scan, "state %llu has no choice %llu", (unsigned long long)s,
                          (unsigned long long)c));
        }
        const uint64_t choice = model->choices[s] + c;
        reward->choice[choice] += mass_of(p, sorted, choice, t) * value;
        mdp_scan_next_line(&scan);
    }
done:
    base_free(p->ctx, sorted);
    return status;
}

psi_status mdp_read_prism(psi_ctx *ctx, const char *name, const mdp_prism_texts *texts,
                          psi_model **out)
{
    psi_status status = PSI_OK;
    prism p = {.ctx = ctx};
    *out = NULL;
    TRY(read_tra(&p, name, texts));
    if (texts->lab) TRY(read_lab(&p, name, texts->lab, texts->lab_size));
    if (texts->srew) TRY(read_srew(&p, name, texts->srew, texts->srew_size));
    if (texts->trew) TRY(read_trew(&p, name, texts->trew, texts->trew_size));
    TRY(psi_model_check(ctx, p.model));
    *out = p.model;
    p.model = NULL;
done:
    mdp_names_free(ctx, &p.actions);
    psi_model_free(ctx, p.model);
    return status;
}
