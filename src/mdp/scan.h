// Reading text fast: words and numbers from bytes that end with a '\0'.
#ifndef PSI_MDP_SCAN_H
#define PSI_MDP_SCAN_H

#include <psifold/base.h>

typedef struct mdp_scan {
    psi_ctx *ctx;
    const char *name; // of the file
    const char *text, *at, *end;
} mdp_scan;

// A sentence that names file and line: SCAN_FAIL(scan, "state %zu is declared twice", s).
#define SCAN_FAIL(scan, format, ...)                                                               \
    FAIL((scan)->ctx, PSI_EFORMAT, "%s, line %zu: " format, (scan)->name, mdp_scan_line(scan),     \
         ##__VA_ARGS__)

size_t mdp_scan_line(const mdp_scan *scan); // of the place, counted from 1

// How many lines there are, at most: more than there can be of anything that has one each.
size_t mdp_scan_lines(const char *text, size_t size);

static inline void mdp_scan_blanks(mdp_scan *scan)
{
    while (*scan->at == ' ' || *scan->at == '\t' || *scan->at == '\r') scan->at++;
}

static inline bool mdp_scan_at_end_of_line(const mdp_scan *scan)
{
    return *scan->at == '\n' || *scan->at == '\0';
}

// To the beginning of the next line.
void mdp_scan_next_line(mdp_scan *scan);

// Blank lines and those that start with the comment are passed over. false at the end of the text.
bool mdp_scan_to_content(mdp_scan *scan, const char *comment);

// A whole number; false unless there is one that fits.
static inline bool mdp_scan_count(mdp_scan *scan, uint64_t *out)
{
    const char *at = scan->at;
    uint64_t value = 0;
    while (*at >= '0' && *at <= '9') {
        if (value > (UINT64_MAX - 9) / 10) return false;
        value = value * 10 + (uint64_t)(*at++ - '0');
    }
    if (at == scan->at) return false;
    scan->at = at;
    *out = value;
    return true;
}

// A number as C writes it, or a fraction p/q of two; false unless it is finite.
bool mdp_scan_number(mdp_scan *scan, double *out);

// Everything up to a blank or the end of the line, or between quotes; 0 if there is nothing.
size_t mdp_scan_word(mdp_scan *scan, const char **word);

#endif
