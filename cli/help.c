// The tables of a command as help text, as a section of the man page and as words for completion;
// and the word that somebody may have meant.
#include "cli/internal.h"

#include <string.h>

// What an option is if nobody says otherwise; "" where that says nothing.
static const char *standard_text(const cli_row *row, char text[PSI_OPTION_TEXT_SIZE])
{
    psi_option_text(row->option, row->of->into, text);
    if (strcmp(text, "off") == 0 && row->option->kind == PSI_OPTION_FLAG) text[0] = '\0';
    return text;
}

static bool is_main(const psi_option *option)
{
    return (option->group & ~(unsigned)PSI_OPTION_MAY_CHANGE) == PSI_OPTION_MAIN;
}

static void help_line(const cli_row *row)
{
    const psi_option *option = row->option;
    char left[96], text[PSI_OPTION_TEXT_SIZE];
    snprintf(left, sizeof left, "%c%c%s--%s%s%s", option->letter ? '-' : ' ',
             option->letter ? option->letter : ' ', option->letter ? ", " : "  ", option->name,
             option->value ? " " : "", option->value ? option->value : "");
    printf("  %-28s%s%s", left, strlen(left) > 27 ? "\n                              " : "",
           option->help);
    standard_text(row, text);
    if (option->kind == PSI_OPTION_FLAG && *text) {
        printf(" [on; --no-%s]", option->name);
    } else if (*text) {
        printf(" [%s]", text);
    }
    putchar('\n');
}

static void help_text(const cli_usage *usage, const cli_row *rows, size_t n, bool all)
{
    size_t left_out = 0;
    printf("psifold %s %s%s[options]\n\n%s\n", usage->name, usage->arguments,
           *usage->arguments ? " " : "", usage->summary);
    if (usage->text) printf("\n%s\n", usage->text);
    puts("\nOptions:");
    for (size_t i = 0; i < n; i++) {
        if (all || is_main(rows[i].option)) {
            help_line(&rows[i]);
        } else {
            left_out++;
        }
    }
    if (left_out > 0) {
        printf("'psifold %s --help-all' has %zu more.\n", usage->name, left_out);
    }
    printf("\nExample:\n  %s\n", usage->example);
}

static void help_man(const cli_usage *usage, const cli_row *rows, size_t n)
{
    printf(".SS psifold %s %s\n%s.\n", usage->name, usage->arguments, usage->summary);
    if (usage->text) printf(".PP\n%s\n", usage->text);
    for (size_t i = 0; i < n; i++) {
        const psi_option *option = rows[i].option;
        char text[PSI_OPTION_TEXT_SIZE];
        fputs(".TP\n.B ", stdout);
        if (option->letter) printf("\\-%c, ", option->letter);
        printf("\\-\\-%s", option->name);
        if (option->value) printf(" \\fI%s\\fR", option->value);
        printf("\n%s", option->help);
        if (*standard_text(&rows[i], text)) printf(" (default: %s)", text);
        putchar('\n');
    }
    printf(".PP\nExample:\n.PP\n.RS 4\n.B %s\n.RE\n", usage->example);
}

static void help_words(const cli_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char text[PSI_OPTION_TEXT_SIZE];
        printf("--%s ", rows[i].option->name);
        if (rows[i].option->kind == PSI_OPTION_FLAG && *standard_text(&rows[i], text)) {
            printf("--no-%s ", rows[i].option->name);
        }
    }
    puts("--help --help-all");
}

void cli_show_help(cli_help form, const cli_usage *usage, const cli_row *rows, size_t n)
{
    // the man page describes what is common to all commands once, in its frame
    size_t own = 0;
    for (size_t i = 0; i < usage->n_options; i++) {
        while (own < n && rows[own].of == &usage->options[i]) own++;
    }
    switch (form) {
    case CLI_NO_HELP: break;
    case CLI_HELP: help_text(usage, rows, n, false); break;
    case CLI_HELP_ALL: help_text(usage, rows, n, true); break;
    case CLI_HELP_MAN: help_man(usage, rows, own); break;
    case CLI_HELP_WORDS: help_words(rows, n); break;
    }
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
