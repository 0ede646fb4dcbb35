// Storm's DRN as it is written by Storm 1 and 2: a header of @ lines, then for every state a line,
// below it one for every choice, below that one for every transition.
#include "mdp/model_formats.h"

#include "base/checked.h"
#include "base/context.h"
#include "mdp/names.h"
#include "mdp/scan.h"
#include "mdp/sparse_model.h"

#include <math.h>
#include <string.h>

typedef struct drn {
    mdp_scan scan;
    psi_model *model;
    bool typed, counted;
    uint64_t n_states, n_states_seen;
    size_t room; // lines: choices and transitions that there can be
    mdp_names actions, labels, placeholders;
    double *placeholder;
    const char *reward_line; // the names, in one line
} drn;

static bool at_word(const mdp_scan *scan, const char *word)
{
    const size_t length = strlen(word);
    if (strncmp(scan->at, word, length) != 0) return false;
    const char after = scan->at[length];
    return after == ' ' || after == '\t' || after == '\n' || after == '\r' || after == '\0';
}

// ---- the header ---------------------------------------------------------------------------------

static psi_status read_type(drn *d)
{
    mdp_scan *scan = &d->scan;
    const char *word;
    mdp_scan_blanks(scan);
    const size_t length = mdp_scan_word(scan, &word);
    if ((length == 4 && strncmp(word, "DTMC", 4) == 0)) {
        d->model->chain = true;
    } else if (!(length == 3 && strncmp(word, "MDP", 3) == 0)) {
        return FAIL(scan->ctx, PSI_EUNSUPPORTED,
                    "%s, line %zu: only DTMC and MDP are read, not %.*s", scan->name,
                    mdp_scan_line(scan), (int)base_min(length, 40), word);
    }
    d->typed = true;
    return PSI_OK;
}

static psi_status read_value_type(drn *d)
{
    mdp_scan *scan = &d->scan;
    const char *word;
    mdp_scan_blanks(scan);
    const size_t length = mdp_scan_word(scan, &word);
    if (length == 6 && strncmp(word, "double", 6) == 0) return PSI_OK;
    if (length == 8 && strncmp(word, "rational", 8) == 0) return PSI_OK;
    return FAIL(scan->ctx, PSI_EUNSUPPORTED,
                "%s, line %zu: values of type %.*s; only double and rational are read", scan->name,
                mdp_scan_line(scan), (int)base_min(length, 40), word);
}

static psi_status read_value(drn *d, double *out)
{
    psi_status status = PSI_OK;
    mdp_scan *scan = &d->scan;
    if (*scan->at != '$') {
        if (mdp_scan_number(scan, out)) return PSI_OK;
        return SCAN_FAIL(scan, "a number is expected at '%.*s'", (int)strcspn(scan->at, "\n\t ,]"),
                         scan->at);
    }
    const char *word = scan->at;
    const size_t known = d->placeholders.n;
    size_t number;
    while (*scan->at != '\0' && !strchr(" \t\r\n,]:", *scan->at)) scan->at++;
    TRY(mdp_names_get(scan->ctx, &d->placeholders, word, (size_t)(scan->at - word), &number));
    if (number == known) TRY(SCAN_FAIL(scan, "a placeholder that was not declared"));
    *out = d->placeholder[number];
done:
    return status;
}

static psi_status read_placeholders(drn *d)
{
    psi_status status = PSI_OK;
    mdp_scan *scan = &d->scan;
    while (mdp_scan_to_content(scan, "//") && *scan->at == '$') {
        const char *word = scan->at;
        double value;
        size_t number;
        while (*scan->at != '\0' && !strchr(" \t\r\n:", *scan->at)) scan->at++;
        const size_t length = (size_t)(scan->at - word);
        mdp_scan_blanks(scan);
        if (*scan->at++ != ':') TRY(SCAN_FAIL(scan, "a placeholder is followed by ': value'"));
        mdp_scan_blanks(scan);
        if (!mdp_scan_number(scan, &value)) TRY(SCAN_FAIL(scan, "a placeholder without a number"));
        TRY(mdp_names_get(scan->ctx, &d->placeholders, word, length, &number));
        if (!d->placeholder) // each has a line
            TRY(base_alloc(scan->ctx, d->room + 1, sizeof value, &d->placeholder));
        d->placeholder[number] = value;
        mdp_scan_next_line(scan);
    }
done:
    return status;
}

// The line below a key; empty at the end of the file.
static void to_line_below(drn *d)
{
    mdp_scan_next_line(&d->scan);
    mdp_scan_blanks(&d->scan);
}

static psi_status read_states_count(drn *d)
{
    mdp_scan *scan = &d->scan;
    to_line_below(d);
    if (!mdp_scan_count(scan, &d->n_states))
        return SCAN_FAIL(scan, "@nr_states is followed by a number");
    // every state has a line of its own
    if (d->n_states > d->room + 1) {
        return SCAN_FAIL(scan, "%llu states are announced in a file of %zu lines",
                         (unsigned long long)d->n_states, d->room + 1);
    }
    d->counted = true;
    return PSI_OK;
}

// Up to and including the line @model.
static psi_status read_header(drn *d)
{
    psi_status status = PSI_OK;
    mdp_scan *scan = &d->scan;
    while (mdp_scan_to_content(scan, "//")) {
        if (strncmp(scan->at, "@type:", 6) == 0) {
            scan->at += 6;
            TRY(read_type(d));
        } else if (strncmp(scan->at, "@value_type:", 12) == 0) {
            scan->at += 12;
            TRY(read_value_type(d));
        } else if (at_word(scan, "@parameters")) {
            to_line_below(d);
            if (*scan->at == '@') continue;
            if (!mdp_scan_at_end_of_line(scan))
                TRY(SCAN_FAIL(scan, "a model with parameters cannot be read"));
        } else if (at_word(scan, "@placeholders")) {
            mdp_scan_next_line(scan);
            TRY(read_placeholders(d));
            continue;
        } else if (at_word(scan, "@reward_models")) {
            to_line_below(d);
            if (*scan->at == '@') continue;
            d->reward_line = scan->at;
        } else if (at_word(scan, "@nr_states")) {
            TRY(read_states_count(d));
        } else if (at_word(scan, "@nr_choices")) {
            to_line_below(d); // counted here
        } else if (at_word(scan, "@model")) {
            mdp_scan_next_line(scan);
            if (!d->typed) TRY(SCAN_FAIL(scan, "@model before @type"));
            if (!d->counted) TRY(SCAN_FAIL(scan, "@model before @nr_states"));
            return PSI_OK;
        } else {
            TRY(SCAN_FAIL(scan, "not understood: '%.*s'",
                          (int)base_min(strcspn(scan->at, "\r\n"), 40), scan->at));
        }
        mdp_scan_next_line(scan);
    }
    TRY(SCAN_FAIL(scan, "the file ends before @model"));
done:
    return status;
}

// ---- states -------------------------------------------------------------------------------------

static psi_status add_reward(drn *d, const char *name, size_t length)
{
    psi_status status = PSI_OK;
    psi_model_reward *reward;
    TRY(mdp_model_add_reward(d->scan.ctx, d->model, name, length, true, false, &reward));
    TRY(base_alloc(d->scan.ctx, d->room + 1, sizeof *reward->choice, &reward->choice));
done:
    return status;
}

// The arrays grow to what the lines can hold and are cut to what they do.
static psi_status make_room(drn *d)
{
    psi_status status = PSI_OK;
    psi_ctx *ctx = d->scan.ctx;
    psi_model *model = d->model, *fresh = NULL;
    TRY(psi_model_new(ctx, d->n_states, d->room + 1, d->room + 1, &fresh));
    fresh->chain = model->chain;
    fresh->n_choices = fresh->n_transitions = 0;
    fresh->choices[0] = fresh->offsets[0] = 0;
    psi_model_free(ctx, model);
    d->model = fresh;
done:
    return status;
}

// The names of the rewards: first all of them, for each takes memory for every line.
static psi_status read_reward_names(drn *d)
{
    psi_status status = PSI_OK;
    mdp_scan scan = d->scan;
    mdp_names names = {0};
    size_t number;
    scan.at = d->reward_line;
    while (scan.at && (mdp_scan_blanks(&scan), !mdp_scan_at_end_of_line(&scan))) {
        const char *word;
        const size_t length = mdp_scan_word(&scan, &word), known = names.n;
        TRY(mdp_names_get(scan.ctx, &names, word, length, &number));
        if (number < known) {
            TRY(SCAN_FAIL(&scan, "the reward %.*s is declared twice", (int)base_min(length, 40),
                          word));
        }
    }
    const double wanted = (double)names.n * (double)(d->n_states + d->room + 1) * sizeof(double);
    const double size = (double)(scan.end - scan.text);
    if (wanted > size * PSI_BYTES_PER_BYTE) {
        TRY(FAIL(scan.ctx, PSI_ELIMIT,
                 "%s: %zu rewards are too many for %zu lines of %.0f bytes in all; %d bytes of "
                 "memory for each byte are the limit",
                 scan.name, names.n, d->room + 1, size, PSI_BYTES_PER_BYTE));
    }
    for (size_t r = 0; r < names.n; r++)
        TRY(add_reward(d, names.name[r].text, names.name[r].length));
done:
    mdp_names_free(scan.ctx, &names);
    return status;
}

// "[a, b]" into the given place of every reward; zeros if there is none.
static psi_status read_rewards(drn *d, bool of_state, size_t place)
{
    psi_status status = PSI_OK;
    mdp_scan *scan = &d->scan;
    psi_model *model = d->model;
    size_t r = 0;
    mdp_scan_blanks(scan);
    if (*scan->at == '[') {
        // a reward without a name is declared by an empty line
        if (of_state && place == 0 && model->n_rewards == 0) TRY(add_reward(d, "", 0));
        do {
            double value;
            scan->at++;
            mdp_scan_blanks(scan);
            if (r == 0 && *scan->at == ']') break;
            TRY(read_value(d, &value));
            if (r == model->n_rewards)
                TRY(SCAN_FAIL(scan, "more than the %zu declared rewards", model->n_rewards));
            psi_model_reward *reward = &model->rewards[r++];
            (of_state ? reward->state : reward->choice)[place] = value;
            mdp_scan_blanks(scan);
        } while (*scan->at == ',');
        if (*scan->at++ != ']') TRY(SCAN_FAIL(scan, "rewards are not closed by ']'"));
    }
    if (r > 0 && r < model->n_rewards)
        TRY(SCAN_FAIL(scan, "%zu of %zu declared rewards", r, model->n_rewards));
    for (; r < model->n_rewards; r++) {
        psi_model_reward *reward = &model->rewards[r];
        (of_state ? reward->state : reward->choice)[place] = 0.0;
    }
done:
    return status;
}

static psi_status read_labels(drn *d, size_t s)
{
    psi_status status = PSI_OK;
    mdp_scan *scan = &d->scan;
    for (;;) {
        const char *word;
        size_t number;
        uint8_t *holds;
        mdp_scan_blanks(scan);
        if (mdp_scan_at_end_of_line(scan)) return PSI_OK;
        const size_t length = mdp_scan_word(scan, &word), known = d->labels.n;
        if (length == 4 && memcmp(word, "init", 4) == 0) {
            d->model->initial[s] = 1;
            continue;
        }
        TRY(mdp_names_get(scan->ctx, &d->labels, word, length, &number));
        if (number == known) {
            enum { MOST_LABELS = 4096 }; // each has a byte per state
            if (known >= MOST_LABELS) TRY(SCAN_FAIL(scan, "more than %d labels", MOST_LABELS));
            TRY(mdp_model_add_label(scan->ctx, d->model, word, length, &holds));
        }
        d->model->labels[number].holds[s] = 1;
    }
done:
    return status;
}

static psi_status read_state(drn *d)
{
    psi_status status = PSI_OK;
    mdp_scan *scan = &d->scan;
    uint64_t s = 0;
    scan->at += 5;
    mdp_scan_blanks(scan);
    if (!mdp_scan_count(scan, &s)) TRY(SCAN_FAIL(scan, "a state without a number"));
    if (s >= d->n_states) {
        TRY(SCAN_FAIL(scan, "state %llu of a model of %llu", (unsigned long long)s,
                      (unsigned long long)d->n_states));
    }
    if (s < d->n_states_seen) {
        TRY(SCAN_FAIL(scan, "state %llu is declared twice or out of order", (unsigned long long)s));
    }
    if (s > d->n_states_seen) {
        TRY(SCAN_FAIL(scan, "state %llu is missing", (unsigned long long)d->n_states_seen));
    }
    if (s > 0) d->model->choices[s] = d->model->n_choices;
    d->n_states_seen++;
    mdp_scan_blanks(scan);
    if (*scan->at == '!' || *scan->at == '{') {
        TRY(FAIL(scan->ctx, PSI_EUNSUPPORTED, "%s, line %zu: %s are not read", scan->name,
                 mdp_scan_line(scan), *scan->at == '!' ? "exit rates" : "observations"));
    }
    TRY(read_rewards(d, true, s));
    TRY(read_labels(d, s));
done:
    return status;
}

static psi_status read_action(drn *d)
{
    psi_status status = PSI_OK;
    mdp_scan *scan = &d->scan;
    psi_model *model = d->model;
    const char *word;
    size_t number;
    scan->at += 6;
    mdp_scan_blanks(scan);
    const size_t length = mdp_scan_word(scan, &word), c = model->n_choices;
    if (d->n_states_seen == 0) TRY(SCAN_FAIL(scan, "an action before the first state"));
    TRY(mdp_names_get(scan->ctx, &d->actions, word, length, &number));
    model->offsets[c] = model->n_transitions;
    model->action[c] = (int32_t)number;
    model->n_choices++;
    model->offsets[c + 1] = model->n_transitions;
    TRY(read_rewards(d, false, c));
done:
    return status;
}

static psi_status read_transition(drn *d)
{
    psi_status status = PSI_OK;
    mdp_scan *scan = &d->scan;
    psi_model *model = d->model;
    uint64_t to = 0;
    double probability = 0.0;
    if (!mdp_scan_count(scan, &to)) TRY(SCAN_FAIL(scan, "a transition begins with a state"));
    mdp_scan_blanks(scan);
    if (*scan->at != ':') TRY(SCAN_FAIL(scan, "a transition reads 'state : probability'"));
    scan->at++;
    mdp_scan_blanks(scan);
    if (*scan->at == '[') {
        TRY(FAIL(scan->ctx, PSI_EUNSUPPORTED, "%s, line %zu: intervals are not read", scan->name,
                 mdp_scan_line(scan)));
    }
    TRY(read_value(d, &probability));
    if (to >= d->n_states) {
        TRY(SCAN_FAIL(scan, "a transition to state %llu of a model of %llu", (unsigned long long)to,
                      (unsigned long long)d->n_states));
    }
    if (d->n_states_seen == 0 || model->n_choices == model->choices[d->n_states_seen - 1])
        TRY(SCAN_FAIL(scan, "a transition before the first action of its state"));
    if (probability == 0.0) return PSI_OK;
    model->next[model->n_transitions] = (int32_t)to;
    model->probability[model->n_transitions++] = probability;
    model->offsets[model->n_choices] = model->n_transitions;
done:
    return status;
}

static psi_status read_states(drn *d)
{
    psi_status status = PSI_OK;
    mdp_scan *scan = &d->scan;
    while (mdp_scan_to_content(scan, "//")) {
        if (*scan->at >= '0' && *scan->at <= '9') {
            TRY(read_transition(d));
        } else if (strncmp(scan->at, "action", 6) == 0) {
            TRY(read_action(d));
        } else if (strncmp(scan->at, "state", 5) == 0) {
            TRY(read_state(d));
        } else {
            TRY(SCAN_FAIL(scan, "not understood: '%.*s'",
                          (int)base_min(strcspn(scan->at, "\r\n"), 40), scan->at));
        }
        mdp_scan_blanks(scan);
        if (!mdp_scan_at_end_of_line(scan))
            TRY(SCAN_FAIL(scan, "too much in this line: '%.*s'",
                          (int)base_min(strcspn(scan->at, "\r\n"), 40), scan->at));
    }
    if (d->n_states_seen < d->n_states) {
        TRY(SCAN_FAIL(scan, "%llu states are announced, %llu are there",
                      (unsigned long long)d->n_states, (unsigned long long)d->n_states_seen));
    }
    d->model->choices[d->n_states] = d->model->n_choices;
done:
    return status;
}

// Gives back what the lines did not need, and rewards that are zero everywhere.
static psi_status trim(drn *d)
{
    psi_status status = PSI_OK;
    psi_ctx *ctx = d->scan.ctx;
    psi_model *model = d->model;
    TRY(base_resize(ctx, model->n_choices + 1, sizeof *model->offsets, &model->offsets));
    TRY(base_resize(ctx, model->n_choices, sizeof *model->action, &model->action));
    TRY(base_resize(ctx, model->n_transitions, sizeof *model->next, &model->next));
    TRY(base_resize(ctx, model->n_transitions, sizeof *model->probability, &model->probability));
    for (size_t r = 0; r < model->n_rewards; r++) {
        psi_model_reward *reward = &model->rewards[r];
        size_t i = 0;
        while (i < model->n_states && reward->state[i] == 0.0) i++;
        if (i == model->n_states) {
            base_free(ctx, reward->state);
            reward->state = NULL;
        }
        TRY(base_resize(ctx, model->n_choices, sizeof *reward->choice, &reward->choice));
    }
done:
    return status;
}

psi_status mdp_read_drn(psi_ctx *ctx, const char *name, const char *text, size_t size,
                        psi_model **out)
{
    psi_status status = PSI_OK;
    drn d = {.scan = {.ctx = ctx, .name = name, .text = text, .at = text, .end = text + size}};
    *out = NULL;
    d.room = mdp_scan_lines(text, size);
    TRY(psi_model_new(ctx, 0, 0, 0, &d.model));
    TRY(read_header(&d));
    TRY(make_room(&d));
    TRY(read_reward_names(&d));
    TRY(read_states(&d));
    TRY(trim(&d));
    TRY(mdp_names_actions(ctx, &d.actions, d.model));
    TRY(psi_model_check(ctx, d.model));
    *out = d.model;
    d.model = NULL;
done:
    base_free(ctx, d.placeholder);
    mdp_names_free(ctx, &d.placeholders);
    mdp_names_free(ctx, &d.labels);
    mdp_names_free(ctx, &d.actions);
    psi_model_free(ctx, d.model);
    return status;
}
