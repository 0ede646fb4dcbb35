// The command line against tables of options, through getopt_long.
#include "cli/internal.h"

#include "base/json.h"

#include <getopt.h>
#include <string.h>

enum { FIRST_LONG = 256, NEGATED = 1024 };

#define FIELD(name) OPTION_FIELD(cli_call, name)
static const psi_option COMMON[] = {
    {"seed", 0, PSI_OPTION_SEED, FIELD(seed), "N", "0", NULL, PSI_OPTION_MAIN,
     "same seed, same result"},
    {"threads", 0, PSI_OPTION_SIZE, FIELD(threads), "N", "0", "[0,1024]", PSI_OPTION_MAIN,
     "threads to use; 0: all processors"},
    {"max-memory", 0, PSI_OPTION_SIZE, FIELD(max_memory), "BYTES", "0", NULL, PSI_OPTION_MORE,
     "stop where more would be needed; 0: what the machine has"},
    {"json", 0, PSI_OPTION_FLAG, FIELD(json), NULL, "off", NULL, PSI_OPTION_MAIN,
     "print one JSON object instead of text"},
    {"quiet", 'q', PSI_OPTION_FLAG, FIELD(quiet), NULL, "off", NULL, PSI_OPTION_MAIN,
     "no progress and no notes"},
};

typedef struct parsing {
    const cli_usage *usage;
    cli_row row[CLI_MAX_OPTIONS]; // the command's, then the common ones
    size_t n;
    cli_help help;
} parsing;

static void add_rows(parsing *parser, cli_options *of)
{
    psi_options_reset(of->table, of->into);
    of->given = 0;
    for (size_t i = 0; i < of->table->n && parser->n < CLI_MAX_OPTIONS; i++) {
        const psi_option *option = &of->table->rows[i];
        if ((option->group & ~(unsigned)PSI_OPTION_MAY_CHANGE) == PSI_OPTION_KEPT) continue;
        parser->row[parser->n++] = (cli_row){option, of, UINT64_C(1) << i};
    }
}

static bool has_option(const parsing *parser, const char *name)
{
    for (size_t i = 0; i < parser->n; i++) {
        if (strcmp(parser->row[i].option->name, name) == 0) return true;
    }
    return false;
}

static void unknown_option(const parsing *parser, const char *word)
{
    const char *known[CLI_MAX_OPTIONS];
    for (size_t i = 0; i < parser->n; i++) known[i] = parser->row[i].option->name;
    const char *nearest =
        strncmp(word, "--", 2) == 0 ? cli_nearest(word + 2, known, parser->n) : NULL;
    if (nearest) {
        cli_complain("%s has no option '%s'; did you mean --%s?", parser->usage->name, word,
                     nearest);
    } else {
        cli_complain("%s has no option '%s'; 'psifold %s --help-all' lists them",
                     parser->usage->name, word, parser->usage->name);
    }
}

static psi_status parse_value(const parsing *parser, const cli_row *row, const char *text)
{
    char problem[BASE_OPTION_PROBLEM];
    if (!base_option_read(row->option, text, row->of->into, problem)) {
        cli_complain("%s: %s", parser->usage->name, problem);
        return PSI_EUSAGE;
    }
    row->of->given |= row->bit;
    return PSI_OK;
}

static cli_help help_form(int found, const char *form)
{
    if (found == 'A') return CLI_HELP_ALL;
    if (!form) return CLI_HELP;
    return strcmp(form, "man") == 0 ? CLI_HELP_MAN : CLI_HELP_WORDS;
}

// Hands the options to getopt_long, which knows abbreviations, --name=value and "--".
static psi_status parse_options(parsing *parser, int argc, char **argv)
{
    struct option table[2 * CLI_MAX_OPTIONS + 3] = {0};
    char negated[CLI_MAX_OPTIONS][64], letters[2 * CLI_MAX_OPTIONS + 2] = ":",
                                                                     *letter = letters + 1;
    size_t n = 0;
    for (size_t i = 0; i < parser->n; i++) {
        const psi_option *option = parser->row[i].option;
        const bool flag = option->kind == PSI_OPTION_FLAG;
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
    table[n++] = (struct option){"help", optional_argument, NULL, 'H'};
    table[n] = (struct option){"help-all", no_argument, NULL, 'A'};

    optind = 0; // start anew
    opterr = 0;
    for (int found; (found = getopt_long(argc, argv, letters, table, NULL)) != -1;) {
        if (found == 'H' || found == 'A') {
            parser->help = help_form(found, optarg);
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
            for (index = 0; parser->row[index].option->letter != found; index++) {
            }
        }
        const psi_status status = parse_value(parser, &parser->row[index], set ? optarg : "off");
        if (status != PSI_OK) return status;
    }
    return PSI_OK;
}

// Gives the words that are no options their places: "FILE [OTHER]" wants one and takes two,
// "FILE..." takes all that are left.
static psi_status parse_arguments(cli_call *cli, const parsing *parser, int argc, char **argv,
                                  const char *arguments[CLI_MAX_ARGUMENTS])
{
    const char *pattern = parser->usage->arguments;
    size_t taken = 0;
    for (const char *at = pattern; *at;) {
        const size_t length = strcspn(at, " ");
        if (optind < argc && memmem(at, length, "...", 3)) {
            arguments[taken++] = argv[optind];
            cli->files = (const char *const *)argv + optind;
            cli->n_files = (size_t)(argc - optind);
            optind = argc;
        } else if (optind < argc) {
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

// What a command is called with is written down, in JSON: names that cannot be are found at once,
// not when the work is done.
static psi_status check_text(const parsing *parser, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (base_is_utf8(argv[i])) continue;
        cli_complain("%s: '%s' is not UTF-8, and could not be written down: give it another name",
                     parser->usage->name, argv[i]);
        return PSI_EUSAGE;
    }
    return PSI_OK;
}

psi_status cli_parse(cli_call *cli, const cli_usage *usage, int argc, char **argv,
                     const char *arguments[CLI_MAX_ARGUMENTS])
{
    parsing parser = {.usage = usage};
    cli_options common = {CLI_TABLE(COMMON), cli, 0};
    for (size_t i = 0; i < CLI_MAX_ARGUMENTS; i++) arguments[i] = NULL;
    for (size_t i = 0; i < usage->n_options; i++) add_rows(&parser, &usage->options[i]);
    add_rows(&parser, &common);
    psi_status status = check_text(&parser, argc, argv);
    if (status == PSI_OK) status = parse_options(&parser, argc, argv);
    if (status != PSI_OK) return status;
    if (parser.help != CLI_NO_HELP) {
        cli_show_help(parser.help, usage, parser.row, parser.n);
        return PSI_ECANCELLED;
    }
    status = parse_arguments(cli, &parser, argc, argv, arguments);
    if (status != PSI_OK) return status;
    memcpy(cli->read, arguments, sizeof cli->read);
    if (cli_is_spare(cli, usage)) return PSI_ECANCELLED;
    return cli_make_ctx(cli);
}
