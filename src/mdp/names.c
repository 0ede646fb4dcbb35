// Names of actions and labels while a file is read.
#include "mdp/names.h"

#include "base/checked.h"
#include "base/context.h"
#include "mdp/intern.h"
#include "mdp/sparse_model.h"

#include <string.h>

static uint64_t hash_of(const char *text, size_t length)
{
    uint64_t hash = length;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001B3);
    return mdp_mix(hash);
}

static psi_status grow(psi_ctx *ctx, mdp_names *names)
{
    psi_status status = PSI_OK;
    const size_t room = base_max(2 * names->room, 32);
    uint32_t *slots = NULL;
    TRY(base_resize(ctx, room, sizeof *names->name, &names->name));
    TRY(base_alloc_zero(ctx, 4 * room, sizeof *slots, &slots));
    base_free(ctx, names->slots);
    names->slots = slots;
    names->room = room;
    names->mask = 4 * room - 1;
    for (size_t i = 0; i < names->n; i++) {
        size_t at = names->name[i].hash & names->mask;
        while (slots[at] != 0) at = (at + 1) & names->mask;
        slots[at] = (uint32_t)i + 1;
    }
done:
    return status;
}

// The slot that a word has, or would get.
static size_t slot_of(const mdp_names *names, const char *text, size_t length, uint64_t hash)
{
    size_t at = hash & names->mask;
    for (; names->slots[at] != 0; at = (at + 1) & names->mask) {
        const mdp_name *name = &names->name[names->slots[at] - 1];
        if (name->hash != hash || name->length != length) continue;
        if (memcmp(name->text, text, length) == 0) break;
    }
    return at;
}

size_t mdp_names_find(const mdp_names *names, const char *text, size_t length)
{
    if (names->n == 0) return SIZE_MAX;
    const uint32_t slot = names->slots[slot_of(names, text, length, hash_of(text, length))];
    return slot == 0 ? SIZE_MAX : slot - 1;
}

psi_status mdp_names_get(psi_ctx *ctx, mdp_names *names, const char *text, size_t length,
                         size_t *number)
{
    if (names->n == names->room) {
        const psi_status status = grow(ctx, names);
        if (status != PSI_OK) return status;
    }
    const uint64_t hash = hash_of(text, length);
    const size_t at = slot_of(names, text, length, hash);
    if (names->slots[at] != 0) {
        *number = names->slots[at] - 1;
        return PSI_OK;
    }
    if (names->n >= INT32_MAX) return FAIL(ctx, PSI_ELIMIT, "there are too many names");
    names->name[names->n] = (mdp_name){text, length, hash};
    *number = names->n++;
    names->slots[at] = (uint32_t)names->n;
    return PSI_OK;
}

void mdp_names_free(psi_ctx *ctx, mdp_names *names)
{
    base_free(ctx, names->slots);
    base_free(ctx, names->name);
    *names = (mdp_names){0};
}

// A word that is a number as C would print it, below limit; SIZE_MAX if it is not.
static size_t number_of(const mdp_name *name, size_t limit)
{
    size_t value = 0;
    if (name->length == 0 || name->length > 9) return SIZE_MAX;
    if (name->length > 1 && name->text[0] == '0') return SIZE_MAX;
    for (size_t i = 0; i < name->length; i++) {
        if (name->text[i] < '0' || name->text[i] > '9') return SIZE_MAX;
        value = 10 * value + (size_t)(name->text[i] - '0');
    }
    return value < limit ? value : SIZE_MAX;
}

psi_status mdp_names_actions(psi_ctx *ctx, const mdp_names *names, psi_model *model)
{
    psi_status status = PSI_OK;
    size_t largest = 0;
    for (size_t i = 0; i < names->n && largest != SIZE_MAX; i++) {
        const size_t number = number_of(&names->name[i], base_max(model->n_choices, 1));
        largest = number == SIZE_MAX ? SIZE_MAX : base_max(largest, number);
    }
    if (largest != SIZE_MAX) {
        model->n_actions = largest + 1;
        for (size_t c = 0; c < model->n_choices; c++) {
            const mdp_name *name = &names->name[model->action[c]];
            model->action[c] = (int32_t)number_of(name, SIZE_MAX);
        }
        return PSI_OK;
    }
    TRY(base_alloc_zero(ctx, names->n, sizeof *model->action_names, &model->action_names));
    model->n_actions = names->n;
    for (size_t i = 0; i < names->n; i++)
        TRY(mdp_copy_name(ctx, names->name[i].text, names->name[i].length,
                          &model->action_names[i]));
done:
    return status;
}
