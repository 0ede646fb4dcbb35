// A growing text. A page is thousands of small pieces, so a failure sticks and is asked for once,
// at the end; and what others wrote (names, paths, options) goes through report_escape, without
// exception.
#ifndef PSI_REPORT_TEXT_H
#define PSI_REPORT_TEXT_H

#include <psifold/base.h>

#include "base/context.h"

typedef struct report_text {
    psi_ctx *ctx;
    char *bytes; // always ends with a '\0' that is not counted
    size_t size, room;
    psi_status status; // PSI_OK until memory ran out
} report_text;

// A text holds nothing until it is asked: report_text text = {.ctx = ctx};
void report_text_free(report_text *text);

// As it stands: only for words of our own, and numbers.
void report_put(report_text *text, const char *words);
void report_putf(report_text *text, const char *format, ...) PRINTF_LIKE(2, 3);
void report_put_bytes(report_text *text, const char *bytes, size_t size);

// Words of others, fit for the inside of an HTML element or a quoted attribute: markup and control
// characters lose their meaning.
void report_escape(report_text *text, const char *words);

// … and as a quoted string of JSON that stands in a script element: nothing in it can end that.
void report_json_words(report_text *text, const char *words);

void report_base64(report_text *text, const void *bytes, size_t size);

// 1460000 as "1,460,000", and a duration as "2 min 5 s".
void report_count(report_text *text, uint64_t count);
void report_duration(report_text *text, double seconds);

// The figure folder/name+ending.svg as a data URI.
psi_status report_put_svg(report_text *text, const char *folder, const char *name,
                          const char *ending);

// Writes it atomically; returns what stuck, if something did.
psi_status report_text_save(const report_text *text, const char *path, bool replace);

#endif
