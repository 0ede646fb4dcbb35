// The tables of tasks, presets and options, and how an option's text changes a task.
#include "env/task.h"

#include "base/context.h"

#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { LOCK = 1U << PSI_COMBINATION_LOCK };
enum { COLUMNS = 1U << PSI_COLUMN_WORLD | 1U << PSI_POINT_COLUMN_WORLD };
enum { BITS = 1U << PSI_BIT_LOCK, RICH = 1U << PSI_RICH_LOCK };
enum { ALL = LOCK | COLUMNS | BITS | RICH };

static const char *const NAMES[] = {
#define X(name, text, what) text,
    PSI_TASK_TABLE(X)
#undef X
};
static const char *const WHAT[] = {
#define X(name, text, what) what,
    PSI_TASK_TABLE(X)
#undef X
};
static const char *const DIGITS[] = {
#define X(name, text) text,
    PSI_DIGITS_TABLE(X)
#undef X
};
_Static_assert(COUNT(NAMES) == PSI_TASK_KINDS, "the public count of tasks is wrong");

static const psi_task_preset PRESETS[] = {
    {PSI_COLUMN_WORLD, "episodic", "4 × 4, from the left column until the right one is entered"},
    {PSI_COLUMN_WORLD, "continuing",
     "4 × 4, a reward for every step in the right column, cut after 100 steps (figure 1)"},
    {PSI_POINT_COLUMN_WORLD, "episodic",
     "4 × 4, from the left column until the right one is entered (figure 4)"},
    {PSI_POINT_COLUMN_WORLD, "continuing",
     "4 × 4, a reward for every step in the right column, cut after 100 steps"},
    {PSI_COMBINATION_LOCK, "train", "three dials, the right one broken, open at 9,9,* (figure 5)"},
    {PSI_COMBINATION_LOCK, "swap-digits",
     "the first action swaps the left and the middle digit, open at 5,6,*"},
    {PSI_COMBINATION_LOCK, "reversed-dial", "the middle dial turns backwards, open at 7,4,*"},
    {PSI_COMBINATION_LOCK, "left-dial-broken", "the left dial is the broken one, open at *,9,9"},
    {PSI_BIT_LOCK, "ring", "20 states among 512 bits, cut after 1,000 steps (STEEL, ICLR 2025)"},
    {PSI_RICH_LOCK, "trajectory",
     "100 steps; some actions are random, and that of the middle step (Hy-Q, ICLR 2023)"},
    {PSI_RICH_LOCK, "occupancy", "100 steps; from a step on that is drawn, actions are random"},
};

// X(id, name, argument, what, tasks)
#define OPTION_TABLE(X)                                                                            \
    X(MAX_STEPS, "max-steps", "N", "cut an episode off after N steps", ALL)                        \
    X(WIDTH, "width", "N", "columns of the grid", COLUMNS)                                         \
    X(HEIGHT, "height", "N", "rows of the grid", COLUMNS)                                          \
    X(START_COLUMN, "start-column", "N|left|right|any", "where an episode begins", COLUMNS)        \
    X(REWARD, "reward", "entering|being", "what is rewarded about the right column", COLUMNS)      \
    X(TERMINATE, "terminate", NULL, "entering the right column ends the episode", COLUMNS)         \
    X(NO_TERMINATE, "no-terminate", NULL, "the right column is like the others", COLUMNS)          \
    X(DIALS, "dials", "N", "how many dials there are", LOCK)                                       \
    X(DIGITS_PER_DIAL, "digits-per-dial", "N", "digits 0 … N−1 on every dial", LOCK)               \
    X(BROKEN, "broken", "I,J|none", "dials that stop at a random digit", LOCK)                     \
    X(REVERSE, "reverse", "I,J|none", "dials that turn backwards", LOCK)                           \
    X(SWAP, "swap", "I,J|none", "action I exchanges the digits of dials I and J", LOCK)            \
    X(GOAL, "goal", "D,D,*", "the rewarding combination; * is any digit", LOCK)                    \
    X(START, "start", "D,D,D", "the combination an episode begins with", LOCK)                     \
    X(DIGITS, "digits", "drawn|drawn-test|mnist|mnist-test|none", "what the digits look like",     \
      LOCK)                                                                                        \
    X(IMAGES_PER_DIGIT, "images-per-digit", "N", "how many images of each digit are drawn", LOCK)  \
    X(STATES, "states", "N", "latent states on the ring", BITS)                                    \
    X(BITS, "bits", "N", "bits of an observation", BITS)                                           \
    X(HORIZON, "horizon", "N", "steps of an episode", RICH)                                        \
    X(INSTANCE, "instance", "N", "which lock: right actions, bits and how they flip", BITS | RICH) \
    X(RANDOM_SHARE, "random-share", "P", "share of random actions in data; 1/N unless given",      \
      BITS | RICH)

enum {
#define X(id, name, argument, what, kinds) OPTION_##id,
    OPTION_TABLE(X)
#undef X
};
static const psi_task_option OPTIONS[] = {
#define X(id, name, argument, what, kinds) {name, argument, what, kinds},
    OPTION_TABLE(X)
#undef X
};

const char *psi_task_name(psi_task_kind kind)
{
    return NAMES[kind];
}
const char *psi_task_what(psi_task_kind kind)
{
    return WHAT[kind];
}
const psi_task_preset *psi_task_presets(size_t *n)
{
    *n = COUNT(PRESETS);
    return PRESETS;
}
const psi_task_option *psi_task_options(size_t *n)
{
    *n = COUNT(OPTIONS);
    return OPTIONS;
}
const char *env_digits_name(psi_digits digits)
{
    return DIGITS[digits];
}

static bool given(const psi_task *task, int option)
{
    return task->given >> option & 1U;
}
bool env_task_wants_default_goal(const psi_task *task)
{
    return !given(task, OPTION_GOAL) &&
           (given(task, OPTION_DIALS) || given(task, OPTION_DIGITS_PER_DIAL) ||
            given(task, OPTION_BROKEN));
}
bool env_task_gave_broken(const psi_task *task)
{
    return given(task, OPTION_BROKEN);
}
bool env_task_gave_reverse(const psi_task *task)
{
    return given(task, OPTION_REVERSE);
}
bool env_task_gave_random_share(const psi_task *task)
{
    return given(task, OPTION_RANDOM_SHARE);
}

static void lock_preset(psi_task *task)
{
    task->dials = task->goal_length = task->start_length = 3;
    task->digits_per_dial = 10;
    task->broken[2] = true;
    task->goal[0] = task->goal[1] = 9;
    task->goal[2] = PSI_ANY;
    task->images_per_digit = 1000;
    if (strcmp(task->preset, "train") == 0) return;
    task->digits = PSI_DIGITS_DRAWN_TEST; // "all test tasks use the MNIST test images"
    if (strcmp(task->preset, "swap-digits") == 0) {
        task->swap[0] = 0;
        task->swap[1] = 1;
        task->goal[0] = 5;
        task->goal[1] = 6;
    } else if (strcmp(task->preset, "reversed-dial") == 0) {
        task->reversed[1] = true;
        task->goal[0] = 7;
        task->goal[1] = 4;
    } else {
        task->broken[2] = false;
        task->broken[0] = true;
        task->goal[0] = PSI_ANY;
        task->goal[2] = 9;
    }
}

static void column_preset(psi_task *task)
{
    task->width = task->height = 4;
    task->terminate = true;
    if (strcmp(task->preset, "episodic") == 0) return;
    task->terminate = false;
    task->reward = PSI_REWARD_BEING;
    task->max_steps = 100;
}

static void level_preset(psi_task *task)
{
    task->levels = 100;
    task->occupancy = strcmp(task->preset, "occupancy") == 0;
    if (task->kind == PSI_RICH_LOCK) return;
    task->levels = 20;
    task->bits = 512;
    task->max_steps = 1000;
}

// The names of all tasks, or of the presets of one, for a sentence.
static const char *list_names(const psi_task_kind *kind, char text[256])
{
    text[0] = '\0';
    for (size_t i = 0; i < (kind ? COUNT(PRESETS) : COUNT(NAMES)); i++) {
        if (kind && PRESETS[i].kind != *kind) continue;
        if (text[0]) strncat(text, ", ", 255 - strlen(text));
        strncat(text, kind ? PRESETS[i].name : NAMES[i], 255 - strlen(text));
    }
    return text;
}

psi_status psi_task_defaults(psi_ctx *ctx, const char *name, const char *preset, psi_task *out)
{
    char names[256];
    psi_task task = {.max_steps = 100000, .swap = {PSI_NO_DIAL, PSI_NO_DIAL}};
    size_t kind = 0;
    if (!name) name = "";
    while (kind < COUNT(NAMES) && strcmp(name, NAMES[kind]) != 0) kind++;
    if (kind == COUNT(NAMES)) {
        return FAIL(ctx, PSI_EUSAGE, "there is no task \"%s\"; the tasks are %s", name,
                    list_names(NULL, names));
    }
    task.kind = (psi_task_kind)kind;
    for (size_t i = 0; i < COUNT(PRESETS) && !task.preset; i++) {
        if (PRESETS[i].kind != task.kind) continue;
        if (!preset || strcmp(preset, PRESETS[i].name) == 0) task.preset = PRESETS[i].name;
    }
    if (!task.preset) {
        return FAIL(ctx, PSI_EUSAGE, "%s has no preset \"%s\"; it has %s", name, preset,
                    list_names(&task.kind, names));
    }
    if (task.kind == PSI_COMBINATION_LOCK) {
        lock_preset(&task);
    } else if (task.kind == PSI_BIT_LOCK || task.kind == PSI_RICH_LOCK) {
        level_preset(&task);
    } else {
        column_preset(&task);
    }
    *out = task;
    return PSI_OK;
}

// A decimal number that ends where the text or the item does.
static bool read_number(const char **text, long low, long high, long *out)
{
    if (**text < '0' || **text > '9') return false;
    char *end;
    *out = strtol(*text, &end, 10);
    *text = end;
    return *out >= low && *out <= high; // an overflow is LONG_MAX: too high
}

static bool whole_number(const char *text, long low, long high, long *out)
{
    return read_number(&text, low, high, out) && *text == '\0';
}

// "1,3": each number from low to high; '*' where wildcards is true. Returns how many, 0 if the text
// is anything else.
static int read_list(const char *text, long low, long high, bool wildcards, int list[PSI_MAX_DIALS])
{
    for (int n = 0; n < PSI_MAX_DIALS; text++) {
        long number = PSI_ANY;
        if (wildcards && *text == '*') {
            text++;
        } else if (!read_number(&text, low, high, &number)) {
            return 0;
        }
        list[n++] = (int)number;
        if (*text == '\0') return n;
        if (*text != ',') return 0;
    }
    return 0;
}

// "1,3" or "none" as a mark on each dial.
static bool read_marks(const char *text, bool marks[PSI_MAX_DIALS])
{
    int list[PSI_MAX_DIALS], n = 0;
    if (strcmp(text, "none") != 0 && !(n = read_list(text, 1, PSI_MAX_DIALS, false, list))) {
        return false;
    }
    memset(marks, 0, PSI_MAX_DIALS * sizeof *marks);
    for (int i = 0; i < n; i++) marks[list[i] - 1] = true;
    return true;
}

// A share from 0 to 1, as it stands on a command line.
static bool read_share(const char *text, double *out)
{
    char *end;
    if (*text != '.' && (*text < '0' || *text > '9')) return false;
    *out = strtod(text, &end);
    return *end == '\0' && *out >= 0.0 && *out <= 1.0;
}

static bool read_word(const char *text, const char *const *words, size_t n, long *out)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(text, words[i]) == 0) {
            *out = (long)i;
            return true;
        }
    }
    return false;
}

static bool read_start_column(const char *text, psi_task *task)
{
    long number;
    if (strcmp(text, "any") == 0) {
        task->start_column = PSI_ANY;
    } else if (strcmp(text, "left") == 0) {
        task->start_column = 0;
    } else if (strcmp(text, "right") == 0) {
        task->start_column = ENV_RIGHT_COLUMN;
    } else if (whole_number(text, 1, ENV_MAX_SIDE, &number)) {
        task->start_column = (int)number - 1;
    } else {
        return false;
    }
    return true;
}

static bool read_swap(const char *text, psi_task *task)
{
    int list[PSI_MAX_DIALS];
    task->swap[0] = task->swap[1] = PSI_NO_DIAL;
    if (strcmp(text, "none") == 0) return true;
    if (read_list(text, 1, PSI_MAX_DIALS, false, list) != 2) return false;
    task->swap[0] = list[0] - 1;
    task->swap[1] = list[1] - 1;
    return true;
}

static bool read_value(psi_task *task, size_t option, const char *value)
{
    static const char *const REWARDS[] = {"entering", "being"};
    long number = 0;
    bool understood = true;
    switch (option) {
    case OPTION_MAX_STEPS:
        understood = whole_number(value, 1, UINT32_MAX, &number);
        task->max_steps = (uint32_t)number;
        break;
    case OPTION_WIDTH:
        understood = whole_number(value, 2, ENV_MAX_SIDE, &number);
        task->width = (int)number;
        break;
    case OPTION_HEIGHT:
        understood = whole_number(value, 1, ENV_MAX_SIDE, &number);
        task->height = (int)number;
        break;
    case OPTION_START_COLUMN: return read_start_column(value, task);
    case OPTION_REWARD:
        understood = read_word(value, REWARDS, COUNT(REWARDS), &number);
        task->reward = (psi_column_reward)number;
        break;
    case OPTION_TERMINATE: task->terminate = true; break;
    case OPTION_NO_TERMINATE: task->terminate = false; break;
    case OPTION_DIALS:
        understood = whole_number(value, 1, PSI_MAX_DIALS, &number);
        task->dials = (int)number;
        break;
    case OPTION_DIGITS_PER_DIAL:
        understood = whole_number(value, 2, PSI_MAX_DIGITS, &number);
        task->digits_per_dial = (int)number;
        break;
    case OPTION_BROKEN: return read_marks(value, task->broken);
    case OPTION_REVERSE: return read_marks(value, task->reversed);
    case OPTION_SWAP: return read_swap(value, task);
    case OPTION_GOAL:
        task->goal_length = read_list(value, 0, PSI_MAX_DIGITS - 1, true, task->goal);
        return task->goal_length > 0;
    case OPTION_START:
        task->start_length = read_list(value, 0, PSI_MAX_DIGITS - 1, false, task->start);
        return task->start_length > 0;
    case OPTION_DIGITS:
        understood = read_word(value, DIGITS, COUNT(DIGITS), &number);
        task->digits = (psi_digits)number;
        break;
    case OPTION_STATES:
    case OPTION_HORIZON:
        understood = whole_number(value, 2, PSI_MAX_LEVELS, &number);
        task->levels = (int)number;
        break;
    case OPTION_BITS:
        understood = whole_number(value, 2, PSI_MAX_BITS, &number);
        task->bits = (int)number;
        break;
    case OPTION_INSTANCE:
        understood = whole_number(value, 0, UINT32_MAX, &number);
        task->instance = (uint32_t)number;
        break;
    case OPTION_RANDOM_SHARE: return read_share(value, &task->random_share);
    default:
        understood = whole_number(value, 1, ENV_MAX_IMAGES, &number);
        task->images_per_digit = (uint32_t)number;
    }
    return understood;
}

// Which values make sense, for a sentence.
static const char *range_of(const char *option)
{
    static const char *const RANGES[][2] = {{"max-steps", "1 to 4294967295"},
                                            {"width", "2 to 1024"},
                                            {"height", "1 to 1024"},
                                            {"start-column", "columns are counted from 1"},
                                            {"dials", "1 to 32"},
                                            {"digits-per-dial", "2 to 16"},
                                            {"broken", "dials are counted from 1"},
                                            {"reverse", "dials are counted from 1"},
                                            {"swap", "two dials, counted from 1"},
                                            {"goal", "a digit from 0 to 15 or * for each dial"},
                                            {"start", "a digit from 0 to 15 for each dial"},
                                            {"images-per-digit", "1 to 100000"},
                                            {"states", "2 to 508"},
                                            {"bits", "2 to 512"},
                                            {"horizon", "2 to 508"},
                                            {"instance", "0 to 4294967295"},
                                            {"random-share", "0 to 1"}};
    for (size_t i = 0; i < COUNT(RANGES); i++) {
        if (strcmp(option, RANGES[i][0]) == 0) return RANGES[i][1];
    }
    return "one of these words";
}

psi_status psi_task_set(psi_ctx *ctx, psi_task *task, const char *option, const char *value)
{
    size_t i = 0;
    if (!option) return FAIL(ctx, PSI_EUSAGE, "an option of a task has a name, not NULL");
    while (i < COUNT(OPTIONS) && strcmp(option, OPTIONS[i].name) != 0) i++;
    if (i == COUNT(OPTIONS) || !(OPTIONS[i].kinds >> task->kind & 1U)) {
        return FAIL(ctx, PSI_EUSAGE, "%s has no option --%s", NAMES[task->kind], option);
    }
    if (!value != !OPTIONS[i].argument) {
        return FAIL(ctx, PSI_EUSAGE, value ? "--%s takes no value" : "--%s needs a value", option);
    }
    psi_task changed = *task;
    if (!read_value(&changed, i, value ? value : "")) {
        return FAIL(ctx, PSI_EUSAGE, "--%s %s is not understood: it should be %s (%s)", option,
                    value, OPTIONS[i].argument, range_of(option));
    }
    changed.given |= 1U << i;
    *task = changed;
    return PSI_OK;
}
