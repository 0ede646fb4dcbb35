// Unified Markov Binary: index.json says how many there are of what, arrays in little-endian files
// hold them. Only discrete time, at most one player, and no observations.
#include "mdp/model_formats.h"

#include "base/checked.h"
#include "base/context.h"
#include "base/json.h"
#include "mdp/sparse_model.h"
#include "mdp/tar.h"

#include <stdio.h>
#include <string.h>

typedef struct umb {
    psi_ctx *ctx;
    mdp_tar tar;
    json_t *index;
    size_t n_states, n_choices, n_branches, n_actions;
    psi_model *model;
} umb;

// ---- the index ----------------------------------------------------------------------------------

static psi_status read_count(umb *u, const json_t *system, const char *key, size_t *out)
{
    const json_t *value = json_object_get(system, key);
    if (!json_is_integer(value) || json_integer_value(value) < 0) {
        return FAIL(u->ctx, PSI_EFORMAT, "%s: index.json has no count %s", u->tar.name, key);
    }
    *out = (size_t)json_integer_value(value);
    return PSI_OK;
}

static psi_status check_system(umb *u, const json_t *system)
{
    const char *time = json_string_value(json_object_get(system, "time"));
    const json_int_t players = json_integer_value(json_object_get(system, "#players"));
    if (!time) return FAIL(u->ctx, PSI_EFORMAT, "%s: index.json does not say time", u->tar.name);
    if (strcmp(time, "discrete") != 0)
        return FAIL(u->ctx, PSI_EUNSUPPORTED, "%s: %.40s time is not read", u->tar.name, time);
    if (players < 0 || players > 1) {
        return FAIL(u->ctx, PSI_EUNSUPPORTED, "%s: games of %lld players are not read", u->tar.name,
                    (long long)players);
    }
    if (json_integer_value(json_object_get(system, "#observations")) != 0)
        return FAIL(u->ctx, PSI_EUNSUPPORTED, "%s: observations are not read", u->tar.name);
    return PSI_OK;
}

static psi_status read_index(umb *u)
{
    psi_status status = PSI_OK;
    const mdp_tar_entry text = mdp_tar_find(&u->tar, "index.json");
    if (!text.data) TRY(FAIL(u->ctx, PSI_EFORMAT, "%s: the tar has no index.json", u->tar.name));
    TRY(base_json_parse(u->ctx, u->tar.name, text.data, text.size, &u->index));
    const json_t *version = json_object_get(u->index, "format-version");
    if (!json_is_integer(version) || json_integer_value(version) != 1)
        TRY(FAIL(u->ctx, PSI_EUNSUPPORTED, "%s: only version 1 of UMB is read", u->tar.name));
    const json_t *system = json_object_get(u->index, "transition-system");
    if (!json_is_object(system))
        TRY(FAIL(u->ctx, PSI_EFORMAT, "%s: index.json has no transition-system", u->tar.name));
    TRY(check_system(u, system));
    TRY(read_count(u, system, "#states", &u->n_states));
    TRY(read_count(u, system, "#choices", &u->n_choices));
    TRY(read_count(u, system, "#branches", &u->n_branches));
    TRY(read_count(u, system, "#choice-actions", &u->n_actions));
    // each has eight bytes of its own in at least one array
    const size_t most = u->tar.size / 8;
    if (u->n_states > most || u->n_choices > most || u->n_branches > most) {
        TRY(FAIL(u->ctx, PSI_EFORMAT,
                 "%s: %zu states, %zu choices and %zu branches are announced in %zu bytes",
                 u->tar.name, u->n_states, u->n_choices, u->n_branches, u->tar.size));
    }
    if (u->n_actions > INT32_MAX)
        TRY(FAIL(u->ctx, PSI_ELIMIT, "%s: %zu actions are too many", u->tar.name, u->n_actions));
done:
    return status;
}

// ---- arrays -------------------------------------------------------------------------------------

// The bytes of an array of exactly so many; NULL if the file is not there.
static psi_status find_array(umb *u, const char *entry, size_t count, size_t bytes,
                             const char **data)
{
    const mdp_tar_entry found = mdp_tar_find(&u->tar, entry);
    size_t wanted;
    *data = found.data;
    if (*data && (!base_mul(count, bytes, &wanted) || found.size != wanted)) {
        return FAIL(u->ctx, PSI_EFORMAT, "%s: %s has %zu bytes, not %zu times %zu", u->tar.name,
                    entry, found.size, count, bytes);
    }
    return PSI_OK;
}

static uint64_t word_at(const char *data, size_t i)
{
    uint64_t word;
    memcpy(&word, data + 8 * i, sizeof word);
    return word;
}

// n + 1 ascending offsets from 0 to total; without a file each has one.
static psi_status read_offsets(umb *u, const char *entry, size_t n, size_t total, uint64_t *out)
{
    psi_status status = PSI_OK;
    const char *data;
    TRY(find_array(u, entry, n + 1, 8, &data));
    for (size_t i = 0; i <= n; i++) out[i] = data ? word_at(data, i) : i;
    for (size_t i = 0; i < n; i++) {
        if (out[i] > out[i + 1])
            TRY(FAIL(u->ctx, PSI_EFORMAT, "%s: %s does not ascend", u->tar.name, entry));
    }
    if (out[0] != 0 || out[n] != total) {
        TRY(FAIL(u->ctx, PSI_EFORMAT, "%s: %s goes from %llu to %llu, not from 0 to %zu",
                 u->tar.name, entry, (unsigned long long)out[0], (unsigned long long)out[n],
                 total));
    }
done:
    return status;
}

// Doubles, or fractions of 64-bit numbers, whichever the type says. *found: the file is there.
static psi_status read_numbers(umb *u, const char *entry, const json_t *type, size_t n, double *out,
                               bool *found)
{
    psi_status status = PSI_OK;
    const char *kind = json_string_value(json_object_get(type, "type")), *data;
    const json_t *bits = json_object_get(type, "size");
    const bool rational = kind && strcmp(kind, "rational") == 0;
    if (!kind || (!rational && strcmp(kind, "double") != 0) ||
        (bits && json_integer_value(bits) != (rational ? 128 : 64))) {
        TRY(FAIL(u->ctx, PSI_EUNSUPPORTED,
                 "%s: %s holds numbers of type %.40s; double and rational of 128 bits are read",
                 u->tar.name, entry, kind ? kind : "unknown"));
    }
    TRY(find_array(u, entry, n, rational ? 16 : 8, &data));
    *found = data != NULL;
    for (size_t i = 0; data && i < n; i++) {
        if (!rational) {
            memcpy(&out[i], data + 8 * i, 8);
        } else {
            out[i] = (double)(int64_t)word_at(data, 2 * i) / (double)word_at(data, 2 * i + 1);
        }
    }
done:
    return status;
}

static psi_status read_bits(umb *u, const char *entry, size_t n, uint8_t *out, bool *found)
{
    psi_status status = PSI_OK;
    const char *data;
    TRY(find_array(u, entry, (n + 63) / 64, 8, &data));
    *found = data != NULL;
    for (size_t i = 0; data && i < n; i++) out[i] = (uint8_t)data[i / 8] >> (i % 8) & 1;
done:
    return status;
}

// ---- the model ----------------------------------------------------------------------------------

static psi_status read_branches(umb *u)
{
    psi_status status = PSI_OK;
    psi_model *model = u->model;
    const json_t *system = json_object_get(u->index, "transition-system");
    const char *target;
    bool found;
    TRY(read_offsets(u, "state-to-choices.bin", u->n_states, u->n_choices, model->choices));
    TRY(read_offsets(u, "choice-to-branches.bin", u->n_choices, u->n_branches, model->offsets));
    TRY(find_array(u, "branch-to-target.bin", u->n_branches, 8, &target));
    for (size_t i = 0; i < u->n_branches; i++) {
        const uint64_t to = target ? word_at(target, i) : 0;
        if (to >= u->n_states) {
            TRY(FAIL(u->ctx, PSI_EFORMAT, "%s: branch %zu leads to state %llu of %zu", u->tar.name,
                     i, (unsigned long long)to, u->n_states));
        }
        model->next[i] = (int32_t)to;
    }
    TRY(read_numbers(u, "branch-to-probability.bin",
                     json_object_get(system, "branch-probability-type"), u->n_branches,
                     model->probability, &found));
    if (!found && u->n_branches > 0)
        TRY(FAIL(u->ctx, PSI_EFORMAT, "%s: there are no probabilities", u->tar.name));
    TRY(read_bits(u, "state-is-initial.bin", u->n_states, model->initial, &found));
done:
    return status;
}

// Branches of probability 0 are not transitions.
static void drop_zeros(psi_model *model)
{
    uint64_t kept = 0, i = 0;
    for (size_t c = 0; c < model->n_choices; c++) {
        const uint64_t end = model->offsets[c + 1];
        for (; i < end; i++) {
            if (model->probability[i] == 0.0) continue;
            model->next[kept] = model->next[i];
            model->probability[kept++] = model->probability[i];
        }
        model->offsets[c + 1] = kept;
    }
    model->n_transitions = kept;
}

static psi_status read_action_names(umb *u)
{
    psi_status status = PSI_OK;
    psi_model *model = u->model;
    uint64_t *offset = NULL;
    const char *map;
    const mdp_tar_entry text = mdp_tar_find(&u->tar, "actions/choices/strings.bin");
    TRY(find_array(u, "actions/choices/string-mapping.bin", u->n_actions + 1, 8, &map));
    if (!map || !text.data) return PSI_OK;
    TRY(base_alloc(u->ctx, u->n_actions + 1, sizeof *offset, &offset));
    TRY(read_offsets(u, "actions/choices/string-mapping.bin", u->n_actions, text.size, offset));
    TRY(base_alloc_zero(u->ctx, u->n_actions, sizeof *model->action_names, &model->action_names));
    for (size_t a = 0; a < u->n_actions; a++) {
        const char *name = text.data + offset[a];
        const size_t length = offset[a + 1] - offset[a];
        if (memchr(name, '\0', length) || memchr(name, '\n', length))
            TRY(FAIL(u->ctx, PSI_EFORMAT, "%s: the name of action %zu is no text", u->tar.name, a));
        TRY(mdp_copy_name(u->ctx, name, length, &model->action_names[a]));
    }
done:
    base_free(u->ctx, offset);
    return status;
}

// The numbers of actions; without any, a choice's place in its state.
static psi_status read_actions(umb *u)
{
    psi_status status = PSI_OK;
    psi_model *model = u->model;
    const char *value;
    if (u->n_actions == 0) {
        for (size_t s = 0; s < u->n_states; s++) {
            const uint64_t first = model->choices[s];
            for (uint64_t c = first; c < model->choices[s + 1]; c++)
                model->action[c] = (int32_t)(c - first);
            model->n_actions = base_max(model->n_actions, model->choices[s + 1] - first);
        }
        return PSI_OK;
    }
    TRY(find_array(u, "actions/choices/values.bin", u->n_choices, 4, &value));
    for (size_t c = 0; c < u->n_choices; c++) {
        uint32_t action = 0;
        if (value) memcpy(&action, value + 4 * c, 4);
        if (action >= u->n_actions) {
            TRY(FAIL(u->ctx, PSI_EFORMAT, "%s: choice %zu has action %u of %zu", u->tar.name, c,
                     action, u->n_actions));
        }
        model->action[c] = (int32_t)action;
    }
    // names first: where they fail, as many are freed as the file announces
    if (u->n_actions <= u->tar.size / 8) {
        model->n_actions = u->n_actions;
        TRY(read_action_names(u));
    }
    model->n_actions = u->n_actions;
done:
    return status;
}

static psi_status entry_name(umb *u, char *out, size_t room, const char *group, const char *id,
                             const char *of)
{
    const int length = snprintf(out, room, "annotations/%s/%s/%s/values.bin", group, id, of);
    if (length > 0 && (size_t)length < room) return PSI_OK;
    return FAIL(u->ctx, PSI_EFORMAT, "%s: '%.60s' is too long a name", u->tar.name, id);
}

static const char *name_of(const char *id, const json_t *annotation)
{
    const char *alias = json_string_value(json_object_get(annotation, "alias"));
    return alias && !strpbrk(alias, "\r\n") ? alias : id;
}

static psi_status read_labels(umb *u)
{
    psi_status status = PSI_OK;
    json_t *all = json_object_get(json_object_get(u->index, "annotations"), "aps"), *annotation;
    const char *id;
    json_object_foreach(all, id, annotation)
    {
        char entry[160];
        const char *name = name_of(id, annotation);
        uint8_t *holds;
        bool found;
        TRY(entry_name(u, entry, sizeof entry, "aps", id, "states"));
        if (!mdp_tar_find(&u->tar, entry).data || strcmp(name, "init") == 0)
            continue; // holds nowhere; or is known already
        TRY(mdp_model_add_label(u->ctx, u->model, name, strlen(name), &holds));
        TRY(read_bits(u, entry, u->n_states, holds, &found));
    }
done:
    return status;
}

// What branches give is added to their choice, as much as is expected of them.
static psi_status read_branch_rewards(umb *u, const char *entry, const json_t *type, double *choice)
{
    psi_status status = PSI_OK;
    double *value = NULL;
    bool found;
    TRY(base_alloc(u->ctx, u->n_branches, sizeof *value, &value));
    TRY(read_numbers(u, entry, type, u->n_branches, value, &found));
    for (size_t c = 0; found && c < u->n_choices; c++) {
        for (uint64_t i = u->model->offsets[c]; i < u->model->offsets[c + 1]; i++)
            choice[c] += u->model->probability[i] * value[i];
    }
done:
    base_free(u->ctx, value);
    return status;
}

static psi_status read_rewards(umb *u)
{
    psi_status status = PSI_OK;
    json_t *all = json_object_get(json_object_get(u->index, "annotations"), "rewards"), *annotation;
    const char *id;
    json_object_foreach(all, id, annotation)
    {
        char entry[3][160];
        static const char *const of[] = {"states", "choices", "branches"};
        const json_t *type = json_object_get(annotation, "type");
        const char *name = name_of(id, annotation);
        psi_model_reward *reward;
        bool there[3], found;
        for (int i = 0; i < 3; i++) {
            TRY(entry_name(u, entry[i], sizeof entry[i], "rewards", id, of[i]));
            there[i] = mdp_tar_find(&u->tar, entry[i]).data != NULL;
        }
        if (!there[0] && !there[1] && !there[2]) continue;
        TRY(mdp_model_add_reward(u->ctx, u->model, name, strlen(name), there[0],
                                 there[1] || there[2], &reward));
        if (there[0]) TRY(read_numbers(u, entry[0], type, u->n_states, reward->state, &found));
        if (there[1]) TRY(read_numbers(u, entry[1], type, u->n_choices, reward->choice, &found));
        if (there[2]) TRY(read_branch_rewards(u, entry[2], type, reward->choice));
    }
done:
    return status;
}

psi_status mdp_read_umb(psi_ctx *ctx, const char *name, const char *bytes, size_t size,
                        psi_model **out)
{
    psi_status status = PSI_OK;
    umb u = {.ctx = ctx, .tar = {.name = name, .bytes = bytes, .size = size}};
    char *unpacked = NULL;
    *out = NULL;
    if (size > 2 && memcmp(bytes, "\x1F\x8B\x08", 3) == 0) {
        TRY(mdp_gunzip(ctx, name, bytes, size, &unpacked, &u.tar.size));
        u.tar.bytes = unpacked;
    }
    TRY(mdp_tar_open(ctx, &u.tar));
    TRY(read_index(&u));
    TRY(psi_model_new(ctx, u.n_states, u.n_choices, u.n_branches, &u.model));
    u.model->chain = json_integer_value(json_object_get(
                         json_object_get(u.index, "transition-system"), "#players")) == 0;
    TRY(read_branches(&u));
    TRY(read_actions(&u));
    TRY(read_labels(&u));
    TRY(read_rewards(&u));
    drop_zeros(u.model);
    TRY(psi_model_check(ctx, u.model));
    *out = u.model;
    u.model = NULL;
done:
    psi_model_free(ctx, u.model);
    json_decref(u.index);
    mdp_tar_close(ctx, &u.tar);
    base_free(ctx, unpacked);
    return status;
}
