// Gymnasium's table of a toy task, env.unwrapped.P as JSON: for every state, for every action, a
// list of [probability, next state, reward, terminated]. Lists may stand where dictionaries do.
#include "mdp/model_formats.h"

#include "base/checked.h"
#include "base/context.h"
#include "mdp/scan.h"
#include "mdp/sparse_model.h"
#include "mdp/text_out.h"

#include <string.h>

typedef struct table {
    mdp_scan scan;
    psi_model *model;
    psi_model_reward *reward;
    uint8_t *ends; // (transitions) terminated
    size_t n_states, room;
} table;

// ---- JSON, as much as it takes ------------------------------------------------------------------

static void skip(mdp_scan *scan)
{
    while (*scan->at == ' ' || *scan->at == '\t' || *scan->at == '\r' || *scan->at == '\n')
        scan->at++;
}

static bool take(mdp_scan *scan, char what)
{
    skip(scan);
    if (*scan->at != what) return false;
    scan->at++;
    return true;
}

// One level of states or actions: a dictionary with numbers as keys, or a list.
typedef struct level {
    bool keyed;
    size_t n; // elements so far
} level;

static bool open_level(mdp_scan *scan, level *out)
{
    skip(scan);
    *out = (level){.keyed = *scan->at == '{'};
    return take(scan, out->keyed ? '{' : '[');
}

// The number of the next element; *more is false at the end of the level.
static psi_status next_element(mdp_scan *scan, level *of, const char *what, uint64_t *number,
                               bool *more)
{
    *more = false;
    if (take(scan, of->keyed ? '}' : ']')) return PSI_OK;
    if (of->n > 0 && !take(scan, ',')) return SCAN_FAIL(scan, "%ss are separated by commas", what);
    skip(scan);
    *number = of->n;
    if (of->keyed) {
        if (!take(scan, '"') || !mdp_scan_count(scan, number) || *scan->at != '"')
            return SCAN_FAIL(scan, "the name of %s is not a number", what);
        scan->at++;
        if (!take(scan, ':')) return SCAN_FAIL(scan, "the name of %s is followed by ':'", what);
    }
    of->n++;
    *more = true;
    return PSI_OK;
}

static bool take_truth(mdp_scan *scan, bool *out)
{
    skip(scan);
    *out = strncmp(scan->at, "true", 4) == 0 || *scan->at == '1';
    if (strncmp(scan->at, "true", 4) == 0) {
        scan->at += 4;
    } else if (strncmp(scan->at, "false", 5) == 0) {
        scan->at += 5;
    } else if (*scan->at == '0' || *scan->at == '1') {
        scan->at++;
    } else {
        return false;
    }
    return true;
}

// ---- reading ------------------------------------------------------------------------------------

// [probability, next, reward, terminated]; the last may be left out.
static psi_status read_outcome(table *t, double *gain)
{
    psi_status status = PSI_OK;
    mdp_scan *scan = &t->scan;
    psi_model *model = t->model;
    double probability = 0.0, reward = 0.0;
    uint64_t next = 0;
    bool ends = false;
    if (!take(scan, '[')) TRY(SCAN_FAIL(scan, "an outcome is a list"));
    skip(scan);
    if (!mdp_scan_number(scan, &probability) || !take(scan, ','))
        TRY(SCAN_FAIL(scan, "an outcome begins with a probability"));
    skip(scan);
    if (!mdp_scan_count(scan, &next) || !take(scan, ','))
        TRY(SCAN_FAIL(scan, "a probability is followed by the next state"));
    skip(scan);
    if (!mdp_scan_number(scan, &reward)) TRY(SCAN_FAIL(scan, "a state is followed by a reward"));
    if (take(scan, ',') && !take_truth(scan, &ends))
        TRY(SCAN_FAIL(scan, "a reward is followed by true or false"));
    if (!take(scan, ']')) TRY(SCAN_FAIL(scan, "an outcome has four parts"));
    if (next > INT32_MAX - 1) TRY(SCAN_FAIL(scan, "state %llu", (unsigned long long)next));
    if (probability == 0.0) return PSI_OK;
    *gain += probability * reward;
    t->ends[model->n_transitions] = ends;
    model->next[model->n_transitions] = (int32_t)next;
    model->probability[model->n_transitions++] = probability;
done:
    return status;
}

static psi_status read_actions(table *t, uint64_t s)
{
    psi_status status = PSI_OK;
    mdp_scan *scan = &t->scan;
    psi_model *model = t->model;
    level actions;
    uint64_t a, last = 0;
    if (!open_level(scan, &actions))
        TRY(SCAN_FAIL(scan, "state %llu has no actions", (unsigned long long)s));
    for (;;) {
        bool more;
        level outcomes;
        uint64_t i;
        double gain = 0.0;
        TRY(next_element(scan, &actions, "action", &a, &more));
        if (!more) return PSI_OK;
        if (actions.n > 1 && a <= last) {
            TRY(SCAN_FAIL(scan, "action %llu of state %llu is named twice or out of order",
                          (unsigned long long)a, (unsigned long long)s));
        }
        if (a > INT32_MAX - 1) TRY(SCAN_FAIL(scan, "action %llu", (unsigned long long)a));
        last = a;
        if (!open_level(scan, &outcomes) || outcomes.keyed)
            TRY(SCAN_FAIL(scan, "an action has a list of outcomes"));
        const uint64_t before = model->n_transitions;
        for (;;) {
            TRY(next_element(scan, &outcomes, "outcome", &i, &more));
            if (!more) break;
            TRY(read_outcome(t, &gain));
        }
        if (model->n_transitions == before) continue; // cannot be done here
        model->action[model->n_choices] = (int32_t)a;
        model->n_actions = base_max(model->n_actions, (size_t)a + 1);
        t->reward->choice[model->n_choices++] = gain;
        model->offsets[model->n_choices] = model->n_transitions;
    }
done:
    return status;
}

static psi_status read_states(table *t)
{
    psi_status status = PSI_OK;
    mdp_scan *scan = &t->scan;
    level states;
    if (!open_level(scan, &states)) TRY(SCAN_FAIL(scan, "there are no states"));
    for (;;) {
        uint64_t s;
        bool more;
        TRY(next_element(scan, &states, "state", &s, &more));
        if (!more) break;
        if (s < t->n_states) {
            TRY(SCAN_FAIL(scan, "state %llu is named twice or out of order",
                          (unsigned long long)s));
        }
        if (s > t->n_states) TRY(SCAN_FAIL(scan, "state %zu is missing", t->n_states));
        t->model->choices[t->n_states++] = t->model->n_choices;
        TRY(read_actions(t, s));
    }
    skip(scan);
    if (scan->at != scan->end) TRY(SCAN_FAIL(scan, "too much behind the table"));
done:
    return status;
}

// A state that is entered by ends only is terminal; where others are, too, those ends lead to a
// terminal state of its own, the last one.
static psi_status close_ends(table *t, psi_model **out)
{
    enum { PASSED = 1, ENDED = 2 };
    psi_status status = PSI_OK;
    psi_ctx *ctx = t->scan.ctx;
    psi_model *from = t->model, *model = NULL;
    psi_model_reward *reward;
    uint8_t *entered = NULL, *terminal;
    bool extra = false;
    TRY(base_alloc_zero(ctx, t->n_states, 1, &entered));
    for (size_t i = 0; i < from->n_transitions; i++) {
        if ((size_t)from->next[i] >= t->n_states) {
            TRY(FAIL(ctx, PSI_EDATA, "%s: a transition leads to state %d of %zu", t->scan.name,
                     from->next[i], t->n_states));
        }
        entered[from->next[i]] |= t->ends[i] ? ENDED : PASSED;
    }
    for (size_t i = 0; i < from->n_transitions; i++)
        extra = extra || (t->ends[i] && entered[from->next[i]] != ENDED);
    TRY(psi_model_new(ctx, t->n_states + extra, from->n_choices, from->n_transitions, &model));
    TRY(mdp_model_add_reward(ctx, model, "reward", 6, false, true, &reward));
    TRY(mdp_model_add_label(ctx, model, "terminal", 8, &terminal));
    model->n_actions = from->n_actions;
    size_t c = 0, filled = 0;
    for (size_t s = 0; s < t->n_states; s++) {
        model->choices[s] = c;
        terminal[s] = entered[s] == ENDED;
        for (uint64_t own = from->choices[s]; own < from->choices[s + 1] && !terminal[s]; own++) {
            model->offsets[c] = filled;
            model->action[c] = from->action[own];
            reward->choice[c++] = t->reward->choice[own];
            for (uint64_t i = from->offsets[own]; i < from->offsets[own + 1]; i++) {
                const bool leaves = t->ends[i] && entered[from->next[i]] != ENDED;
                model->next[filled] = leaves ? (int32_t)t->n_states : from->next[i];
                model->probability[filled++] = from->probability[i];
            }
        }
        if (model->choices[s] == c) terminal[s] = 1;
    }
    if (extra) {
        model->choices[t->n_states] = c;
        terminal[t->n_states] = 1;
    }
    model->choices[model->n_states] = c;
    model->offsets[c] = filled;
    model->n_choices = c;
    model->n_transitions = filled;
    TRY(psi_model_check(ctx, model));
    *out = model;
    model = NULL;
done:
    base_free(ctx, entered);
    psi_model_free(ctx, model);
    return status;
}

psi_status mdp_read_gymnasium(psi_ctx *ctx, const char *name, const char *text, size_t size,
                              psi_model **out)
{
    psi_status status = PSI_OK;
    table t = {.scan = {.ctx = ctx, .name = name, .text = text, .at = text, .end = text + size}};
    *out = NULL;
    for (size_t i = 0; i < size; i++) t.room += text[i] == '[' || text[i] == '{';
    t.room += 2;
    TRY(psi_model_new(ctx, base_min(t.room, INT32_MAX), t.room, t.room, &t.model));
    t.model->n_states = t.model->n_choices = t.model->n_transitions = 0;
    TRY(mdp_model_add_reward(ctx, t.model, "reward", 6, false, false, &t.reward));
    TRY(base_alloc(ctx, t.room, sizeof(double), &t.reward->choice));
    TRY(base_alloc(ctx, t.room, 1, &t.ends));
    t.model->offsets[0] = 0;
    TRY(read_states(&t));
    t.model->choices[t.n_states] = t.model->n_choices;
    TRY(close_ends(&t, out));
done:
    base_free(ctx, t.ends);
    psi_model_free(ctx, t.model);
    return status;
}

// ---- writing ------------------------------------------------------------------------------------

static void put_outcomes(mdp_text_out *out, const psi_model *model, size_t s, uint64_t c)
{
    double gain = 0.0;
    if (model->n_rewards > 0) {
        if (model->rewards[0].choice) gain += model->rewards[0].choice[c];
        if (model->rewards[0].state) gain += model->rewards[0].state[s];
    }
    for (uint64_t i = model->offsets[c]; i < model->offsets[c + 1]; i++) {
        const int32_t next = model->next[i];
        mdp_put(out, i == model->offsets[c] ? "[" : ", [");
        mdp_put_number(out, model->probability[i]);
        mdp_put(out, ", %d, ", next);
        mdp_put_number(out, gain);
        mdp_put(out, model->choices[next] == model->choices[next + 1] ? ", true]" : ", false]");
    }
}

psi_status mdp_write_gymnasium(psi_ctx *ctx, const psi_model *model, base_output *output)
{
    psi_status status = PSI_OK;
    mdp_text_out *out = NULL;
    TRY(mdp_text_out_new(ctx, output, &out));
    mdp_put(out, "{");
    for (size_t s = 0; s < model->n_states; s++) {
        mdp_put(out, s == 0 ? "\"%zu\": {" : ",\n\"%zu\": {", s);
        const uint64_t first = model->choices[s], end = model->choices[s + 1];
        for (uint64_t c = first; c < end; c++) {
            if (c > first && model->action[c] <= model->action[c - 1]) {
                TRY(FAIL(ctx, PSI_EUNSUPPORTED,
                         "state %zu has two choices of one action, or out of order: Gymnasium's "
                         "table has no place for them",
                         s));
            }
            mdp_put(out, c == first ? "\"%d\": [" : ", \"%d\": [", model->action[c]);
            put_outcomes(out, model, s, c);
            mdp_put(out, "]");
        }
        if (first == end) mdp_put(out, "\"0\": [[1.0, %zu, 0.0, true]]", s);
        mdp_put(out, "}");
    }
    mdp_put(out, "}\n");
    TRY(mdp_put_end(out));
done:
    base_free(ctx, out);
    return status;
}
