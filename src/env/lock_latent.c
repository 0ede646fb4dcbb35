// The coarsest reward-predictive partition of a lock, found part by part. The lock opens when every
// part matches its piece of the goal, a part moves by its own actions only, and every part can be
// brought to match: so two values of a part may be merged exactly if they are bisimilar within the
// part, with "matches" as the only thing to be seen.
#include "env/lock_latent.h"

#include "env/rules.h"

#include <string.h>

static bool digit_matches(const psi_task *task, int dial, int digit)
{
    return task->goal[dial] == PSI_ANY || task->goal[dial] == digit;
}

// A single dial. One that turns needs a different number of turns from every digit; of a broken one
// only whether it matches can matter.
static void single_dial(const psi_task *task, int dial, struct env_lock_part *part)
{
    const int digits = task->digits_per_dial;
    *part = (struct env_lock_part){.dial = dial, .partner = PSI_NO_DIAL, .classes = 1};
    if (task->goal[dial] == PSI_ANY) return;
    part->classes = task->broken[dial] && digits > 2 ? 2 : digits;
    for (int d = 0; d < digits; d++) {
        part->class_of[d] = (uint16_t)(part->classes == digits ? d : digit_matches(task, dial, d));
    }
}

// How many values of the pair with this first digit lie in each class: all that a spin of the
// second dial depends on.
typedef struct spin_counts {
    uint8_t in_class[PSI_MAX_DIGITS * PSI_MAX_DIGITS];
} spin_counts;

static bool same_signature(const psi_task *task, const struct env_lock_part *part,
                           const spin_counts *spins, int a, int b)
{
    const uint16_t *class_of = part->class_of;
    const int digits = task->digits_per_dial;
    const int a1 = a / digits, a2 = a % digits, b1 = b / digits, b2 = b % digits;
    if (class_of[a] != class_of[b]) return false;
    if (class_of[a2 * digits + a1] != class_of[b2 * digits + b1]) return false;
    if (task->broken[part->partner]) return memcmp(&spins[a1], &spins[b1], sizeof *spins) == 0;
    const int turn = task->reversed[part->partner] ? digits - 1 : 1;
    return class_of[a1 * digits + (a2 + turn) % digits] ==
           class_of[b1 * digits + (b2 + turn) % digits];
}

// One round of refinement: values stay together if all actions lead them to the same classes.
// Classes are numbered in the order of their first value.
static void refine(const psi_task *task, struct env_lock_part *part)
{
    const int digits = task->digits_per_dial, values = digits * digits;
    spin_counts spins[PSI_MAX_DIGITS] = {0};
    for (int v = 0; v < values; v++) spins[v / digits].in_class[part->class_of[v]]++;
    uint16_t finer[PSI_MAX_DIGITS * PSI_MAX_DIGITS] = {0};
    int first[PSI_MAX_DIGITS * PSI_MAX_DIGITS], classes = 0;
    for (int v = 0; v < values; v++) {
        int c = 0;
        while (c < classes && !same_signature(task, part, spins, v, first[c])) c++;
        if (c == classes) first[classes++] = v;
        finer[v] = (uint16_t)c;
    }
    memcpy(part->class_of, finer, (size_t)values * sizeof *finer);
    part->classes = classes;
}

// The pair of a swap: first (swap[0]) never turns by itself, second turns or spins.
static void swapped_pair(const psi_task *task, struct env_lock_part *part)
{
    const int first = task->swap[0], second = task->swap[1], digits = task->digits_per_dial;
    *part = (struct env_lock_part){.dial = first, .partner = second};
    bool seen[2] = {false, false};
    for (int v = 0; v < digits * digits; v++) {
        const bool matches =
            digit_matches(task, first, v / digits) && digit_matches(task, second, v % digits);
        part->class_of[v] = matches;
        seen[matches] = true;
    }
    int before = 0;
    part->classes = seen[0] + seen[1];
    while (part->classes != before) {
        before = part->classes;
        refine(task, part);
    }
}

void env_lock_latent_make(const psi_task *task, env_lock_latent *latent)
{
    latent->n_parts = 0;
    for (int i = 0; i < task->dials; i++) {
        struct env_lock_part *part = &latent->part[latent->n_parts];
        const bool pair = task->swap[0] != PSI_NO_DIAL;
        if (pair && (i == task->swap[0] || i == task->swap[1])) {
            const int earlier = task->swap[0] < task->swap[1] ? task->swap[0] : task->swap[1];
            if (i != earlier) continue;
            swapped_pair(task, part);
        } else {
            single_dial(task, i, part);
        }
        latent->n_parts += part->classes > 1;
    }
}

uint64_t env_lock_latent_count(const env_lock_latent *latent)
{
    uint64_t count = 1;
    for (int i = 0; i < latent->n_parts; i++) {
        if (__builtin_mul_overflow(count, (uint64_t)latent->part[i].classes, &count)) {
            return UINT64_MAX;
        }
    }
    return count;
}

int32_t env_lock_latent_state(const env_lock_latent *latent, const psi_task *task,
                              const uint8_t digit[PSI_MAX_DIALS])
{
    if (env_lock_matches(task, digit)) return 0;
    int32_t number = 0;
    for (int i = 0; i < latent->n_parts; i++) {
        const struct env_lock_part *part = &latent->part[i];
        int value = digit[part->dial];
        if (part->partner != PSI_NO_DIAL) {
            value = value * task->digits_per_dial + digit[part->partner];
        }
        number = number * part->classes + part->class_of[value];
    }
    return 1 + number;
}
