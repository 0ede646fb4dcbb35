#include "base/options.h"

#include "base/context.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool base_options_fit(psi_ctx *ctx, const void *options, size_t size, const char *made_with)
{
    size_t has = 0;
    if (options) memcpy(&has, options, sizeof has);
    if (has == size) return true;
    (void)FAIL(ctx, PSI_EUSAGE, "options have %zu bytes, %zu are wanted: make them with %s", has,
               size, made_with);
    return false;
}

// ---- ranges -------------------------------------------------------------------------------------

// "(0,1)", "[1,": what a number may be.
typedef struct bounds {
    double low, high;
    bool has_low, has_high, above, below; // above, below: the bound itself is excluded
} bounds;

static bounds bounds_of(const char *range)
{
    bounds found = {0};
    char *end;
    if (!range) return found;
    found.above = *range == '(';
    found.low = strtod(range + 1, &end);
    found.has_low = end != range + 1;
    const char *second = end + 1; // behind the comma
    found.high = strtod(second, &end);
    found.has_high = end != second;
    found.below = *end == ')';
    return found;
}

static bool is_within(const char *range, double value)
{
    const bounds b = bounds_of(range);
    if (b.has_low && !(b.above ? value > b.low : value >= b.low)) return false;
    return !b.has_high || (b.below ? value < b.high : value <= b.high);
}

// "above 0 and below 1"
static void range_words(const char *range, char words[64])
{
    const bounds b = bounds_of(range);
    char low[32] = "", high[32] = "";
    if (b.has_low) snprintf(low, sizeof low, "%s %.10g", b.above ? "above" : "at least", b.low);
    if (b.has_high) snprintf(high, sizeof high, "%s %.10g", b.below ? "below" : "at most", b.high);
    snprintf(words, 64, "%s%s%s", low, *low && *high ? " and " : "", high);
}

// ---- fields -------------------------------------------------------------------------------------

static const void *field_of(const psi_option *option, const void *options)
{
    return (const char *)options + option->offset;
}

static bool get_flag(const psi_option *option, const void *options)
{
    bool value;
    memcpy(&value, field_of(option, options), sizeof value);
    return value;
}

static double get_real(const psi_option *option, const void *options)
{
    double value;
    memcpy(&value, field_of(option, options), sizeof value);
    return value;
}

static uint64_t get_whole(const psi_option *option, const void *options)
{
    uint64_t value = 0;
    if (option->kind == PSI_OPTION_SIZE) {
        size_t size;
        memcpy(&size, field_of(option, options), sizeof size);
        value = size;
    } else {
        memcpy(&value, field_of(option, options), sizeof value);
    }
    return value;
}

static const char *get_text(const psi_option *option, const void *options)
{
    const char *value;
    memcpy(&value, field_of(option, options), sizeof value);
    return value;
}

static void put(const psi_option *option, void *options, const void *value)
{
    memcpy((char *)options + option->offset, value, option->size);
}

// The which-th of the words between bars; its length, or 0.
static size_t word_at(const char *words, unsigned which, const char **out)
{
    for (; which > 0; which--) {
        words = strchr(words, '|');
        if (!words) return 0;
        words++;
    }
    *out = words;
    return strcspn(words, "|");
}

// Which of the words this is; false if it is none of them.
static bool find_word(const char *words, const char *text, unsigned *which)
{
    const char *word;
    const size_t length = strlen(text);
    for (*which = 0; word_at(words, *which, &word) > 0; ++*which) {
        if (strcspn(word, "|") == length && strncmp(word, text, length) == 0) return true;
    }
    return false;
}

// A choice is kept as an enum, as a bool where there are two, or as the word itself. Its length, or
// 0 for a value that is none of them.
static size_t get_choice(const psi_option *option, const void *options, const char **word)
{
    unsigned which = 0;
    if (option->size == sizeof *word) {
        *word = get_text(option, options);
        return *word && find_word(option->value, *word, &which) ? strlen(*word) : 0;
    }
    if (option->size == sizeof(bool)) {
        which = get_flag(option, options);
    } else {
        memcpy(&which, field_of(option, options), sizeof which);
    }
    return word_at(option->value, which, word);
}

// ---- reading ------------------------------------------------------------------------------------

static bool refuse(const psi_option *option, const char *text, const char *wanted,
                   char problem[BASE_OPTION_PROBLEM])
{
    snprintf(problem, BASE_OPTION_PROBLEM, "--%s takes %s, not '%s'", option->name, wanted, text);
    return false;
}

static bool check_range(const psi_option *option, double value, const char *text,
                        char problem[BASE_OPTION_PROBLEM])
{
    char words[64];
    if (is_within(option->range, value)) return true;
    range_words(option->range, words);
    snprintf(problem, BASE_OPTION_PROBLEM, "--%s must be %s, not %s", option->name, words, text);
    return false;
}

static bool read_flag(const psi_option *option, const char *text, void *options,
                      char problem[BASE_OPTION_PROBLEM])
{
    const bool on = !text || strcmp(text, "on") == 0;
    if (!on && strcmp(text, "off") != 0) return refuse(option, text, "on or off", problem);
    put(option, options, &on);
    return true;
}

static bool read_choice(const psi_option *option, const char *text, void *options,
                        char problem[BASE_OPTION_PROBLEM])
{
    unsigned which;
    if (!find_word(option->value, text, &which)) {
        return refuse(option, text, option->value, problem);
    }
    const bool second = which == 1;
    put(option, options,
        option->size == sizeof text     ? (const void *)&text
        : option->size == sizeof second ? (const void *)&second
                                        : (const void *)&which);
    return true;
}

static bool read_whole(const psi_option *option, const char *text, void *options,
                       char problem[BASE_OPTION_PROBLEM])
{
    char *end;
    errno = 0;
    const unsigned long long value = strtoull(text, &end, 10);
    const size_t size = (size_t)value;
    const uint64_t seed = value;
    if (!isdigit((unsigned char)*text) || *end || errno ||
        (option->kind == PSI_OPTION_SIZE && size != value)) {
        return refuse(option, text, "a whole number", problem);
    }
    if (!check_range(option, (double)value, text, problem)) return false;
    put(option, options, option->kind == PSI_OPTION_SIZE ? (const void *)&size : &seed);
    return true;
}

// A number; of seconds also "90s", "5m" or "2h".
static bool read_real(const psi_option *option, const char *text, void *options,
                      char problem[BASE_OPTION_PROBLEM])
{
    const bool seconds = option->kind == PSI_OPTION_SECONDS;
    char *end;
    double value = strtod(text, &end);
    const bool number = end != text;
    if (seconds && number && *end) {
        value *= *end == 'h' ? 3600.0 : *end == 'm' ? 60.0 : *end == 's' ? 1.0 : (double)NAN;
        end++;
    }
    if (!number || *end || !isfinite(value)) {
        return refuse(option, text, seconds ? "seconds like 90, 90s, 5m or 2h" : "a number",
                      problem);
    }
    if (!check_range(option, value, text, problem)) return false;
    put(option, options, &value);
    return true;
}

bool base_option_read(const psi_option *option, const char *text, void *options,
                      char problem[BASE_OPTION_PROBLEM])
{
    if (option->kind == PSI_OPTION_FLAG) return read_flag(option, text, options, problem);
    if (!text) {
        snprintf(problem, BASE_OPTION_PROBLEM, "--%s needs a value", option->name);
        return false;
    }
    switch (option->kind) {
    case PSI_OPTION_SIZE:
    case PSI_OPTION_SEED: return read_whole(option, text, options, problem);
    case PSI_OPTION_REAL:
    case PSI_OPTION_SECONDS: return read_real(option, text, options, problem);
    case PSI_OPTION_CHOICE: return read_choice(option, text, options, problem);
    case PSI_OPTION_FLAG:
    case PSI_OPTION_TEXT: break;
    }
    put(option, options, &text);
    return true;
}

// ---- tables -------------------------------------------------------------------------------------

// A name with dashes is the same as with underscores.
static bool is_called(const psi_option *option, const char *name)
{
    const char *own = option->name;
    for (; *own && (*own == *name || (*own == '-' && *name == '_')); own++) name++;
    return *own == *name;
}

const psi_option *psi_option_find(const psi_option_table *table, const char *name)
{
    for (size_t i = 0; name && i < table->n; i++) {
        if (is_called(&table->rows[i], name)) return &table->rows[i];
    }
    return NULL;
}

void psi_options_reset(const psi_option_table *table, void *options)
{
    char problem[BASE_OPTION_PROBLEM];
    for (size_t i = 0; i < table->n; i++) {
        const psi_option *option = &table->rows[i];
        if (option->standard) (void)base_option_read(option, option->standard, options, problem);
    }
}

psi_status psi_option_set(psi_ctx *ctx, const psi_option_table *table, void *options,
                          const char *name, const char *text, uint64_t *given)
{
    const psi_option *option = psi_option_find(table, name);
    char problem[BASE_OPTION_PROBLEM];
    if (!option) return FAIL(ctx, PSI_EUSAGE, "there is no option '%s'", name ? name : "NULL");
    if (!base_option_read(option, text, options, problem)) {
        return FAIL(ctx, PSI_EUSAGE, "%s", problem);
    }
    if (given) *given |= UINT64_C(1) << (option - table->rows);
    return PSI_OK;
}

void psi_options_copy(const psi_option_table *table, uint64_t given, const void *from, void *into)
{
    for (size_t i = 0; i < table->n; i++) {
        const psi_option *option = &table->rows[i];
        if (given >> i & 1) put(option, into, field_of(option, from));
    }
}

psi_status psi_options_check(psi_ctx *ctx, const psi_option_table *table, const void *options)
{
    for (size_t i = 0; i < table->n; i++) {
        const psi_option *option = &table->rows[i];
        char problem[BASE_OPTION_PROBLEM], text[PSI_OPTION_TEXT_SIZE];
        const char *word;
        bool sound = true;
        psi_option_text(option, options, text);
        switch (option->kind) {
        case PSI_OPTION_SIZE:
        case PSI_OPTION_SEED:
            sound = check_range(option, (double)get_whole(option, options), text, problem);
            break;
        case PSI_OPTION_REAL:
        case PSI_OPTION_SECONDS:
            sound = isfinite(get_real(option, options))
                        ? check_range(option, get_real(option, options), text, problem)
                        : refuse(option, text, "a number", problem);
            break;
        case PSI_OPTION_CHOICE:
            sound = get_choice(option, options, &word) > 0 ||
                    refuse(option, text, option->value, problem);
            break;
        case PSI_OPTION_FLAG:
        case PSI_OPTION_TEXT: break;
        }
        if (!sound) return FAIL(ctx, PSI_EUSAGE, "%s", problem);
    }
    return PSI_OK;
}

const char *psi_option_text(const psi_option *option, const void *options,
                            char text[PSI_OPTION_TEXT_SIZE])
{
    const char *word = NULL;
    size_t length;
    switch (option->kind) {
    case PSI_OPTION_FLAG: word = get_flag(option, options) ? "on" : "off"; break;
    case PSI_OPTION_TEXT: word = get_text(option, options); break;
    case PSI_OPTION_CHOICE:
        length = get_choice(option, options, &word);
        snprintf(text, PSI_OPTION_TEXT_SIZE, "%.*s", (int)length, length > 0 ? word : "");
        return text;
    case PSI_OPTION_SIZE:
    case PSI_OPTION_SEED:
        snprintf(text, PSI_OPTION_TEXT_SIZE, "%llu",
                 (unsigned long long)get_whole(option, options));
        return text;
    case PSI_OPTION_REAL:
    case PSI_OPTION_SECONDS:
        snprintf(text, PSI_OPTION_TEXT_SIZE, "%.15g", get_real(option, options));
        return text;
    }
    snprintf(text, PSI_OPTION_TEXT_SIZE, "%s", word ? word : "");
    return text;
}

// ---- as JSON ------------------------------------------------------------------------------------

static json_t *value_json(const psi_option *option, const void *options)
{
    char text[PSI_OPTION_TEXT_SIZE];
    switch (option->kind) {
    case PSI_OPTION_FLAG: return json_boolean(get_flag(option, options));
    case PSI_OPTION_REAL:
    case PSI_OPTION_SECONDS: return base_json_real(get_real(option, options));
    case PSI_OPTION_TEXT:
        return get_text(option, options) ? json_string(get_text(option, options)) : json_null();
    case PSI_OPTION_SIZE:
    case PSI_OPTION_SEED: // as text where JSON's integers end
        if (get_whole(option, options) <= INT64_MAX) {
            return json_integer((json_int_t)get_whole(option, options));
        }
        break;
    case PSI_OPTION_CHOICE: break;
    }
    return json_string(psi_option_text(option, options, text));
}

enum { NAME_SIZE = 64 };

// "epsilon_sf" for "epsilon-sf".
static const char *key_of(const psi_option *option, char name[NAME_SIZE])
{
    snprintf(name, NAME_SIZE, "%s", option->name);
    for (char *at = name; (at = strchr(at, '-'));) *at = '_';
    return name;
}

psi_status base_options_json(psi_ctx *ctx, const psi_option_table *table, const void *options,
                             bool without_changing, json_t **out)
{
    json_t *object = json_object();
    *out = NULL;
    for (size_t i = 0; object && i < table->n; i++) {
        const psi_option *option = &table->rows[i];
        char name[NAME_SIZE];
        if (without_changing && (option->group & PSI_OPTION_MAY_CHANGE)) continue;
        key_of(option, name);
        if (json_object_set_new(object, name, value_json(option, options)) == 0) continue;
        json_decref(object);
        object = NULL;
    }
    *out = object;
    return base_json_made(ctx, object);
}

// A value as it would be given; NULL for one that no option takes.
static const char *value_text(const json_t *value, char text[PSI_OPTION_TEXT_SIZE])
{
    switch (json_typeof(value)) {
    case JSON_STRING: return json_string_value(value);
    case JSON_TRUE: return "on";
    case JSON_FALSE: return "off";
    case JSON_INTEGER:
        snprintf(text, PSI_OPTION_TEXT_SIZE, "%lld", (long long)json_integer_value(value));
        return text;
    case JSON_REAL:
        snprintf(text, PSI_OPTION_TEXT_SIZE, "%.17g", json_real_value(value));
        return text;
    default: return NULL;
    }
}

psi_status base_options_read(psi_ctx *ctx, const psi_option_table *table, const char *path,
                             const json_t *object, void *options)
{
    for (size_t i = 0; i < table->n; i++) {
        const psi_option *option = &table->rows[i];
        char name[NAME_SIZE], text[PSI_OPTION_TEXT_SIZE], problem[BASE_OPTION_PROBLEM];
        const json_t *value = json_object_get(object, key_of(option, name));
        if (!value || json_is_null(value)) continue;
        const char *given = value_text(value, text);
        if (!given) return FAIL(ctx, PSI_EFORMAT, "%s: option '%s' has no value", path, name);
        if (!base_option_read(option, given, options, problem)) {
            return FAIL(ctx, PSI_EFORMAT, "%s: %s", path, problem);
        }
    }
    return PSI_OK;
}
