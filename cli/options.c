// Options from a table: parsing through getopt_long, and the same table as help text, as a section
// of the man page and as words for bash completion.
#include "cli/cli.h"
#include "cli/internal.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_OPTIONS = 64, FIRST_LONG = 256, NEGATED = 1024 };

typedef enum help_form { HELP_NONE, HELP_TEXT, HELP_MAN, HELP_WORDS } help_form;

typedef struct parsing {
    cli_call *cli;
    const cli_usage *usage;
    cli_option option[MAX_OPTIONS]; // the command's, then the common ones
    size_t n;
    help_form help;
} parsing;

static void add_common(parsing *parser)
{
    cli_call *cli = parser->cli;
    const cli_option common[] = {
        {"seed", 0, "N", CLI_SEED, &cli->seed, "same seed, same result"},
        {"threads", 0, "N", CLI_SIZE, &cli->threads, "threads to use; 0: all processors"},
        {"max-memory", 0, "BYTES", CLI_SIZE, &cli->max_memory,
         "stop where more would be needed; 0: what the machine has"},
        {"json", 0, NULL, CLI_FLAG, &cli->json, "print one JSON object instead of text"},
        {"quiet", 'q', NULL, CLI_FLAG, &cli->quiet, "no progress and no notes"},
    };
    for (size_t i = 0; i < parser->usage->n_options; i++) {
        parser->option[parser->n++] = parser->usage->options[i];
    }
    for (size_t i = 0; i < CLI_COUNT(common); i++) parser->option[parser->n++] = common[i];
}

static bool is_word_of(const char *word, const char *choices)
{
    const size_t length = strlen(word);
    for (const char *at = choices; at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL) {
        if (strncmp(at, word, length) == 0 && (at[length] == '|' || at[length] == '\0')) {
            return length > 0;
        }
    }
    return false;
}

static psi_status refuse(const parsing *parser, const cli_option *option, const char *text,
                         const char *wanted)
{
    cli_complain("%s: --%s takes %s, not '%s'", parser->usage->name, option->name, wanted, text);
    return PSI_EUSAGE;
}

static psi_status parse_value(const parsing *parser, const cli_option *option, const char *text,
                              bool set)
{
    char *end = NULL;
    errno = 0;
    switch (option->kind) {
    case CLI_FLAG: *(bool *)option->into = set; return PSI_OK;
    case CLI_TEXT: *(const char **)option->into = text; return PSI_OK;
    case CLI_CHOICE:
        if (!is_word_of(text, option->value)) return refuse(parser, option, text, option->value);
        *(const char **)option->into = text;
        return PSI_OK;
    case CLI_SIZE:
    case CLI_SEED: {
        const unsigned long long value = strtoull(text, &end, 10);
        if (!isdigit((unsigned char)*text) || *end || errno) {
            return refuse(parser, option, text, "a whole number");
        }
        if (option->kind == CLI_SIZE) {
            *(size_t *)option->into = (size_t)value;
        } else {
            *(uint64_t *)option->into = value;
        }
        return PSI_OK;
    }
    case CLI_REAL: {
        const double value = strtod(text, &end);
        if (end == text || *end || !isfinite(value)) {
            return refuse(parser, option, text, "a number");
        }
        *(double *)option->into = value;
        return PSI_OK;
    }
    }
    return PSI_EUSAGE;
}

// The value that an option has if nobody says otherwise, for the help text; "" if there is none.
static const char *default_text(const cli_option *option, char buffer[CLI_NUMBER])
{
    buffer[0] = '\0';
    switch (option->kind) {
    case CLI_FLAG: break;
    case CLI_SIZE: snprintf(buffer, CLI_NUMBER, "%zu", *(size_t *)option->into); break;
    case CLI_SEED:
        snprintf(buffer, CLI_NUMBER, "%llu", (unsigned long long)*(uint64_t *)option->into);
        break;
    case CLI_REAL: snprintf(buffer, CLI_NUMBER, "%g", *(double *)option->into); break;
    case CLI_TEXT:
    case CLI_CHOICE:
        if (*(const char **)option->into) {
            snprintf(buffer, CLI_NUMBER, "%s", *(const char **)option->into);
        }
    }
    return buffer;
}

static void help_text(const parsing *parser)
{
    const cli_usage *usage = parser->usage;
    printf("psifold %s %s%s[options]\n\n%s\n", usage->name, usage->arguments,
           *usage->arguments ? " " : "", usage->summary);
    if (usage->text) printf("\n%s\n", usage->text);
    puts("\nOptions:");
    for (size_t i = 0; i < parser->n; i++) {
        const cli_option *option = &parser->option[i];
        char left[80], value[CLI_NUMBER];
        snprintf(left, sizeof left, "%c%c%s--%s%s%s", option->letter ? '-' : ' ',
                 option->letter ? option->letter : ' ', option->letter ? ", " : "  ", option->name,
                 option->value ? " " : "", option->value ? option->value : "");
        printf("  %-28s%s%s", left, strlen(left) > 27 ? "\n                              " : "",
               option->help);
        if (*default_text(option, value)) printf(" [%s]", value);
        putchar('\n');
    }
    printf("      --help                  this text\n\nExample:\n  %s\n", usage->example);
}

static void help_man(const parsing *parser)
{
    const cli_usage *usage = parser->usage;
    printf(".SS psifold %s %s\n%s.\n", usage->name, usage->arguments, usage->summary);
    if (usage->text) printf(".PP\n%s\n", usage->text);
    for (size_t i = 0; i < usage->n_options; i++) {
        const cli_option *option = &usage->options[i];
        char value[CLI_NUMBER];
        fputs(".TP\n.B ", stdout);
        if (option->letter) printf("\\-%c, ", option->letter);
        printf("\\-\\-%s", option->name);
        if (option->value) printf(" \\fI%s\\fR", option->value);
        printf("\n%s", option->help);
        if (*default_text(option, value)) printf(" (default: %s)", value);
        putchar('\n');
    }
    printf(".PP\nExample:\n.PP\n.RS 4\n.B %s\n.RE\n", usage->example);
}

static void help_words(const parsing *parser)
{
    for (size_t i = 0; i < parser->n; i++) printf("--%s ", parser->option[i].name);
    puts("--help");
}

static void unknown_option(const parsing *parser, const char *word)
{
    const char *known[MAX_OPTIONS];
    for (size_t i = 0; i < parser->n; i++) known[i] = parser->option[i].name;
    const char *nearest =
        strncmp(word, "--", 2) == 0 ? cli_nearest(word + 2, known, parser->n) : NULL;
    if (nearest) {
        cli_complain("%s has no option '%s'; did you mean --%s?", parser->usage->name, word,
                     nearest);
    } else {
        cli_complain("%s has no option '%s'; 'psifold %s --help' lists them", parser->usage->name,
                     word, parser->usage->name);
    }
}

static bool has_option(const parsing *parser, const char *name)
{
    for (size_t i = 0; i < parser->n; i++) {
        if (strcmp(parser->option[i].name, name) == 0) return true;
    }
    return false;
}

// Hands the options to getopt_long, which knows abbreviations, --name=value and "--".
static psi_status parse_options(parsing *parser, int argc, char **argv)
{
    struct option table[2 * MAX_OPTIONS + 2] = {0};
    char negated[MAX_OPTIONS][64], letters[2 * MAX_OPTIONS + 2] = ":", *letter = letters + 1;
    size_t n = 0;
    for (size_t i = 0; i < parser->n; i++) {
        const cli_option *option = &parser->option[i];
        const bool flag = option->kind == CLI_FLAG;
        table[n++] = (struct option){option->name, flag ? no_argument : required_argument, NULL,
                                     FIRST_LONG + (int)i};
        snprintf(negated[i], sizeof negated[i], "no-%s", option->name);
        if (flag && !has_option(parser, negated[i])) {
            table[n++] = (struct option){negated[i], no_argument, NULL, NEGATED + (int)i};
        }
        if (option->letter) {
            *letter++ = option->letter;
            if (!flag) *letter++ = ':';
        }
    }
    table[n] = (struct option){"help", optional_argument, NULL, 'H'};

    optind = 0; // start anew
    opterr = 0;
    for (int found; (found = getopt_long(argc, argv, letters, table, NULL)) != -1;) {
        if (found == 'H') {
            parser->help = !optarg ? HELP_TEXT : strcmp(optarg, "man") == 0 ? HELP_MAN : HELP_WORDS;
            return PSI_OK;
        }
        if (found == ':') {
            cli_complain("%s: %s needs a value", parser->usage->name, argv[optind - 1]);
            return PSI_EUSAGE;
        }
        if (found == '?') {
            unknown_option(parser, argv[optind - 1]);
            return PSI_EUSAGE;
        }
        const bool set = found < NEGATED;
        size_t index = (size_t)(found - (set ? FIRST_LONG : NEGATED));
        if (found < FIRST_LONG) {
            for (index = 0; parser->option[index].letter != found; index++) {
            }
        }
        const psi_status status = parse_value(parser, &parser->option[index], optarg, set);
        if (status != PSI_OK) return status;
    }
    return PSI_OK;
}

// Gives the words that are no options their places: "FILE [OTHER]" wants one and takes two.
static psi_status parse_arguments(const parsing *parser, int argc, char **argv,
                                  const char *arguments[CLI_MAX_ARGUMENTS])
{
    const char *pattern = parser->usage->arguments;
    size_t taken = 0;
    for (const char *at = pattern; *at;) {
        const size_t length = strcspn(at, " ");
        if (optind < argc) {
            arguments[taken++] = argv[optind++];
        } else if (*at != '[') {
            cli_complain("%s needs %.*s; 'psifold %s --help' has an example", parser->usage->name,
                         (int)length, at, parser->usage->name);
            return PSI_EUSAGE;
        }
        at += length + (at[length] == ' ');
    }
    if (optind < argc) {
        cli_complain("%s does not know what to do with '%s'", parser->usage->name, argv[optind]);
        return PSI_EUSAGE;
    }
    return PSI_OK;
}

psi_status cli_parse(cli_call *cli, const cli_usage *usage, int argc, char **argv,
                     const char *arguments[CLI_MAX_ARGUMENTS])
{
    parsing parser = {.cli = cli, .usage = usage};
    for (size_t i = 0; i < CLI_MAX_ARGUMENTS; i++) arguments[i] = NULL;
    add_common(&parser);
    psi_status status = parse_options(&parser, argc, argv);
    if (status != PSI_OK) return status;
    switch (parser.help) {
    case HELP_NONE: break;
    case HELP_TEXT: help_text(&parser); return PSI_ECANCELLED;
    case HELP_MAN: help_man(&parser); return PSI_ECANCELLED;
    case HELP_WORDS: help_words(&parser); return PSI_ECANCELLED;
    }
    status = parse_arguments(&parser, argc, argv, arguments);
    return status == PSI_OK ? cli_make_ctx(cli) : status;
}

// The number of single-character edits between two words (Levenshtein), for words under 64.
static size_t edits(const char *a, const char *b)
{
    size_t row[64];
    const size_t n = strlen(b);
    if (n >= CLI_COUNT(row)) return SIZE_MAX;
    for (size_t j = 0; j <= n; j++) row[j] = j;
    for (size_t i = 1; *a; i++, a++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            const size_t change = diagonal + (*a != b[j - 1]);
            diagonal = row[j];
            const size_t shift = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            row[j] = change < shift ? change : shift;
        }
    }
    return row[n];
}

const char *cli_nearest(const char *word, const char *const *known, size_t n)
{
    const char *nearest = NULL;
    size_t fewest = strlen(word) / 3 + 2; // more edits than this is another word
    for (size_t i = 0; i < n; i++) {
        const size_t needed = edits(word, known[i]);
        if (needed < fewest) {
            fewest = needed;
            nearest = known[i];
        }
    }
    return nearest;
}
