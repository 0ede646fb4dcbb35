// Numbers by hand where that is exact: up to 19 digits whose value a double holds, times a power of
// ten that it holds, too. Everything else goes to the C library.
#include "mdp/scan.h"

#include "base/context.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

size_t mdp_scan_line(const mdp_scan *scan)
{
    return 1 + mdp_scan_lines(scan->text, (size_t)(scan->at - scan->text));
}

size_t mdp_scan_lines(const char *text, size_t size)
{
    size_t lines = 0;
    for (size_t i = 0; i < size; i++) lines += text[i] == '\n';
    return lines;
}

void mdp_scan_next_line(mdp_scan *scan)
{
    const char *newline = memchr(scan->at, '\n', (size_t)(scan->end - scan->at));
    scan->at = newline ? newline + 1 : scan->end;
}

bool mdp_scan_to_content(mdp_scan *scan, const char *comment)
{
    for (;;) {
        mdp_scan_blanks(scan);
        if (scan->at == scan->end) return false;
        if (*scan->at == '\n') {
            scan->at++;
        } else if (strncmp(scan->at, comment, strlen(comment)) == 0) {
            mdp_scan_next_line(scan);
        } else {
            return true;
        }
    }
}

static bool scan_slowly(mdp_scan *scan, double *out)
{
    char *end;
    *out = strtod(scan->at, &end);
    if (end == scan->at || !isfinite(*out)) return false;
    scan->at = end;
    return true;
}

static bool scan_decimal(mdp_scan *scan, double *out)
{
    static const double power[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                   1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    enum { MOST = 19 }; // digits that a uint64_t holds
    const char *at = scan->at;
    const bool negative = *at == '-';
    uint64_t digits = 0;
    int after = 0, n = 0;
    at += negative;
    // no further: a file may hold more digits than an int counts
    for (; n <= MOST && *at >= '0' && *at <= '9'; at++, n++)
        digits = digits * 10 + (uint64_t)(*at - '0');
    if (*at == '.') {
        for (at++; n <= MOST && *at >= '0' && *at <= '9'; at++, n++, after++)
            digits = digits * 10 + (uint64_t)(*at - '0');
    }
    if (n == 0 || n > MOST || digits >= UINT64_C(1) << 53) return scan_slowly(scan, out);
    if (*at == 'e' || *at == 'E' || *at == 'x' || *at == 'X') return scan_slowly(scan, out);
    const double value = (double)digits / power[after];
    scan->at = at;
    *out = negative ? -value : value;
    return true;
}

bool mdp_scan_number(mdp_scan *scan, double *out)
{
    if (!scan_decimal(scan, out)) return false;
    if (*scan->at != '/') return true;
    double below;
    scan->at++;
    if (!scan_decimal(scan, &below) || below == 0.0) return false;
    *out /= below;
    return isfinite(*out);
}

size_t mdp_scan_word(mdp_scan *scan, const char **word)
{
    const char *at = scan->at;
    if (*at == '"') {
        *word = ++at;
        while (*at != '"' && *at != '\n' && *at != '\0') at++;
        scan->at = at + (*at == '"');
        return (size_t)(at - *word);
    }
    *word = at;
    while (*at != ' ' && *at != '\t' && *at != '\r' && *at != '\n' && *at != '\0') at++;
    scan->at = at;
    return (size_t)(at - *word);
}
