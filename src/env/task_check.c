// A task that leaves this chapter is whole and consistent: the defaults are filled in, every digit
// and dial exists, and the goal can be reached but has not been reached at the start.
//
// Every goal can be reached: a dial that turns passes all digits, a broken one may stop at any, and
// one that swaps gets whatever its partner was turned to before.
#include "env/task.h"

#include "base/checked.h"
#include "base/context.h"
#include "env/rules.h"

#include <string.h>

static psi_status check_columns(psi_ctx *ctx, psi_task *task)
{
    if (task->width < 2 || task->width > ENV_MAX_SIDE || task->height < 1 ||
        task->height > ENV_MAX_SIDE) {
        return FAIL(ctx, PSI_EUSAGE,
                    "a grid of %d × %d cells: the width goes from 2 to %d, the height from 1 to %d",
                    task->width, task->height, ENV_MAX_SIDE, ENV_MAX_SIDE);
    }
    if (task->start_column == ENV_RIGHT_COLUMN) task->start_column = task->width - 1;
    if (task->start_column < PSI_ANY || task->start_column >= task->width) {
        return FAIL(ctx, PSI_EUSAGE, "start column %d: the grid has columns 1 to %d",
                    task->start_column + 1, task->width);
    }
    if (task->terminate && task->reward == PSI_REWARD_BEING) {
        return FAIL(ctx, PSI_EUSAGE,
                    "an episode that ends on entering the right column is never rewarded for being "
                    "there: add --no-terminate, or take --reward entering");
    }
    if (task->terminate && task->start_column == task->width - 1) {
        return FAIL(ctx, PSI_EUSAGE,
                    "an episode cannot begin in the right column, where it ends: add "
                    "--no-terminate, or choose another --start-column");
    }
    return PSI_OK;
}

static psi_status check_sizes(psi_ctx *ctx, const psi_task *task)
{
    if (task->dials < 1 || task->dials > PSI_MAX_DIALS) {
        return FAIL(ctx, PSI_EUSAGE, "a lock has 1 to %d dials, not %d", PSI_MAX_DIALS,
                    task->dials);
    }
    if (task->digits_per_dial < 2 || task->digits_per_dial > PSI_MAX_DIGITS) {
        return FAIL(ctx, PSI_EUSAGE, "a dial has 2 to %d digits, not %d", PSI_MAX_DIGITS,
                    task->digits_per_dial);
    }
    const bool mnist = task->digits == PSI_DIGITS_MNIST || task->digits == PSI_DIGITS_MNIST_TEST;
    if (mnist && task->digits_per_dial > 10) {
        return FAIL(ctx, PSI_EUSAGE,
                    "MNIST shows the digits 0 to 9, a dial of %d needs --digits drawn",
                    task->digits_per_dial);
    }
    if ((unsigned)task->digits > PSI_DIGITS_NONE) {
        return FAIL(ctx, PSI_EUSAGE, "there are no digits number %d", (int)task->digits);
    }
    if (task->images_per_digit < 1 || task->images_per_digit > ENV_MAX_IMAGES) {
        return FAIL(ctx, PSI_EUSAGE, "%u images of each digit: there can be 1 to %d",
                    task->images_per_digit, ENV_MAX_IMAGES);
    }
    uint64_t combinations = 1;
    for (int i = 0; i < task->dials; i++) {
        if (__builtin_mul_overflow(combinations, (uint64_t)task->digits_per_dial, &combinations) ||
            combinations > INT64_MAX) {
            return FAIL(ctx, PSI_ELIMIT,
                        "%d dials of %d digits have more combinations than can be "
                        "numbered: take fewer dials",
                        task->dials, task->digits_per_dial);
        }
    }
    return PSI_OK;
}

// What a preset says about dials that were taken away goes with them; what an option says about a
// dial that does not exist is a mistake.
static psi_status check_marks(psi_ctx *ctx, const char *what, bool marks[PSI_MAX_DIALS],
                              bool from_option, int dials)
{
    for (int i = dials; i < PSI_MAX_DIALS; i++) {
        if (marks[i] && from_option) {
            return FAIL(ctx, PSI_EUSAGE, "--%s names dial %d, but there are only %d", what, i + 1,
                        dials);
        }
        marks[i] = false;
    }
    return PSI_OK;
}

static psi_status check_swap(psi_ctx *ctx, const psi_task *task)
{
    const int first = task->swap[0], second = task->swap[1];
    if (first == PSI_NO_DIAL && second == PSI_NO_DIAL) return PSI_OK;
    if (first < 0 || second < 0 || first >= task->dials || second >= task->dials) {
        return FAIL(ctx, PSI_EUSAGE, "the swap of dials %d and %d: there are dials 1 to %d",
                    first + 1, second + 1, task->dials);
    }
    if (first == second) {
        return FAIL(ctx, PSI_EUSAGE, "dial %d cannot be swapped with itself", first + 1);
    }
    if (task->broken[first] || task->reversed[first]) {
        return FAIL(ctx, PSI_EUSAGE,
                    "dial %d cannot be %s: its action swaps it with dial %d instead of turning it",
                    first + 1, task->broken[first] ? "broken" : "reversed", second + 1);
    }
    return PSI_OK;
}

static psi_status check_digit(psi_ctx *ctx, const psi_task *task, const char *what, int dial,
                              int digit, int lowest)
{
    if (digit >= lowest && digit < task->digits_per_dial) return PSI_OK;
    return FAIL(ctx, PSI_EUSAGE, "%s: dial %d has no digit %d, only 0 to %d", what, dial + 1, digit,
                task->digits_per_dial - 1);
}

static psi_status check_combinations(psi_ctx *ctx, psi_task *task)
{
    psi_status status = PSI_OK;
    const int dials = task->dials;
    if (env_task_wants_default_goal(task)) {
        for (int i = 0; i < dials; i++) {
            task->goal[i] = task->broken[i] ? PSI_ANY : task->digits_per_dial - 1;
        }
        task->goal_length = dials;
    }
    bool zeros = true;
    for (int i = 0; i < task->start_length && i < PSI_MAX_DIALS; i++) zeros &= task->start[i] == 0;
    if (zeros) { // the preset's start, for any number of dials
        memset(task->start, 0, sizeof task->start);
        task->start_length = dials;
    }
    if (task->goal_length != dials) {
        return FAIL(ctx, PSI_EUSAGE, "the goal has %d digits, the lock %d dials", task->goal_length,
                    dials);
    }
    if (task->start_length != dials) {
        return FAIL(ctx, PSI_EUSAGE, "the start has %d digits, the lock %d dials",
                    task->start_length, dials);
    }
    uint8_t start[PSI_MAX_DIALS] = {0};
    bool wild = true;
    for (int i = 0; i < dials; i++) {
        TRY(check_digit(ctx, task, "the goal", i, task->goal[i], PSI_ANY));
        TRY(check_digit(ctx, task, "the start", i, task->start[i], 0));
        start[i] = (uint8_t)task->start[i];
        wild &= task->goal[i] == PSI_ANY;
    }
    if (wild) {
        status =
            FAIL(ctx, PSI_EUSAGE, "the goal is a wildcard on every dial: there is nothing to open");
    } else if (env_lock_matches(task, start)) {
        status = FAIL(ctx, PSI_EUSAGE,
                      "the start matches the goal already: choose another --goal or --start");
    }
done:
    return status;
}

static psi_status check_lock(psi_ctx *ctx, psi_task *task)
{
    psi_status status = PSI_OK;
    env_lock_latent *latent = NULL;
    TRY(check_sizes(ctx, task));
    TRY(check_marks(ctx, "broken", task->broken, env_task_gave_broken(task), task->dials));
    TRY(check_marks(ctx, "reverse", task->reversed, env_task_gave_reverse(task), task->dials));
    for (int i = 0; i < task->dials; i++) {
        if (task->broken[i] && task->reversed[i]) {
            status = FAIL(ctx, PSI_EUSAGE,
                          "dial %d is broken: it stops at a random digit and has no direction that "
                          "could be reversed",
                          i + 1);
            goto done;
        }
    }
    TRY(check_swap(ctx, task));
    TRY(check_combinations(ctx, task));
    TRY(base_alloc_zero(ctx, 1, sizeof *latent, &latent));
    env_lock_latent_make(task, latent);
    if (env_lock_latent_count(latent) >= INT32_MAX) {
        status = FAIL(ctx, PSI_ELIMIT,
                      "this lock has more than 2^31 latent states: put more wildcards into --goal");
    }
done:
    base_free(ctx, latent);
    return status;
}

static psi_status check_levels(psi_ctx *ctx, psi_task *task)
{
    if (task->levels < 2 || task->levels > PSI_MAX_LEVELS) {
        return FAIL(ctx, PSI_EUSAGE, "%d %s: there can be 2 to %d", task->levels,
                    task->kind == PSI_BIT_LOCK ? "states on the ring" : "steps of an episode",
                    PSI_MAX_LEVELS);
    }
    if (task->kind == PSI_BIT_LOCK && (task->bits < task->levels || task->bits > PSI_MAX_BITS)) {
        return FAIL(ctx, PSI_EUSAGE, "%d bits: each of %d states needs one, and there can be %d",
                    task->bits, task->levels, PSI_MAX_BITS);
    }
    if (task->occupancy && env_task_gave_random_share(task)) {
        return FAIL(
            ctx, PSI_EUSAGE,
            "with --preset occupancy there is no --random-share: all actions are right until a "
            "random step, and random from there on");
    }
    if (!env_task_gave_random_share(task)) task->random_share = 1.0 / (double)task->levels;
    if (!(task->random_share >= 0.0 && task->random_share <= 1.0)) {
        return FAIL(ctx, PSI_EUSAGE, "a share of %g random actions: it goes from 0 to 1",
                    task->random_share);
    }
    return PSI_OK;
}

static psi_status check_kind(psi_ctx *ctx, psi_task *task)
{
    switch (task->kind) {
    case PSI_COMBINATION_LOCK: return check_lock(ctx, task);
    case PSI_BIT_LOCK:
    case PSI_RICH_LOCK: return check_levels(ctx, task);
    default: return check_columns(ctx, task);
    }
}

psi_status psi_task_check(psi_ctx *ctx, psi_task *task)
{
    if ((unsigned)task->kind >= PSI_TASK_KINDS) {
        return FAIL(ctx, PSI_EUSAGE, "there is no task number %d", (int)task->kind);
    }
    if (task->max_steps == 0) {
        return FAIL(ctx, PSI_EUSAGE, "an episode needs at least one step: --max-steps 1 or more");
    }
    psi_task checked = *task;
    const psi_status status = check_kind(ctx, &checked);
    if (status == PSI_OK) *task = checked;
    return status;
}
