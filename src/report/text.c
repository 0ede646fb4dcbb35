#include "report/text.h"

#include "base/checked.h"
#include "base/file.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void report_text_free(report_text *text)
{
    base_free(text->ctx, text->bytes);
    text->bytes = NULL;
    text->size = text->room = 0;
}

// Room for `more` bytes and the '\0' behind them.
static bool make_room(report_text *text, size_t more)
{
    if (text->status != PSI_OK) return false;
    const size_t needed = text->size + more + 1;
    if (needed <= text->room) return true;
    const size_t room = base_max(needed, base_max(4096, text->room * 2));
    text->status = base_resize(text->ctx, room, 1, &text->bytes);
    if (text->status == PSI_OK) text->room = room;
    return text->status == PSI_OK;
}

void report_put_bytes(report_text *text, const char *bytes, size_t size)
{
    if (!make_room(text, size)) return;
    memcpy(text->bytes + text->size, bytes, size);
    text->size += size;
    text->bytes[text->size] = '\0';
}

void report_put(report_text *text, const char *words)
{
    report_put_bytes(text, words, strlen(words));
}

void report_putf(report_text *text, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    const int length = vsnprintf(NULL, 0, format, arguments);
    if (length >= 0 && make_room(text, (size_t)length)) {
        vsnprintf(text->bytes + text->size, (size_t)length + 1, format, again);
        text->size += (size_t)length;
    }
    va_end(again);
    va_end(arguments);
}

void report_escape(report_text *text, const char *words)
{
    for (const char *c = words; *c; c++) {
        switch (*c) {
        case '&': report_put(text, "&amp;"); break;
        case '<': report_put(text, "&lt;"); break;
        case '>': report_put(text, "&gt;"); break;
        case '"': report_put(text, "&quot;"); break;
        case '\'': report_put(text, "&#39;"); break;
        case '`': report_put(text, "&#96;"); break;
        default:
            // a line break or an escape sequence in a file name is shown as what it is: damage
            if ((unsigned char)*c < 0x20 || *c == 0x7f) {
                report_put(text, "\xef\xbf\xbd");
            } else {
                report_put_bytes(text, c, 1);
            }
        }
    }
}

void report_base64(report_text *text, const void *bytes, size_t size)
{
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *from = bytes;
    if (!make_room(text, (size + 2) / 3 * 4)) return;
    char *to = text->bytes + text->size;
    for (size_t i = 0; i < size; i += 3) {
        const unsigned a = from[i], b = i + 1 < size ? from[i + 1] : 0,
                       c = i + 2 < size ? from[i + 2] : 0;
        *to++ = digit[a >> 2];
        *to++ = digit[(a & 3) << 4 | b >> 4];
        *to++ = i + 1 < size ? digit[(b & 15) << 2 | c >> 6] : '=';
        *to++ = i + 2 < size ? digit[c & 63] : '=';
    }
    *to = '\0';
    text->size = (size_t)(to - text->bytes);
}

void report_count(report_text *text, uint64_t count)
{
    char digits[32];
    const int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)count);
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0) report_put(text, ",");
        report_put_bytes(text, digits + i, 1);
    }
}

void report_duration(report_text *text, double seconds)
{
    const long whole = (long)(seconds + 0.5);
    if (seconds < 10.0) {
        report_putf(text, "%.1f s", seconds);
    } else if (whole < 60) {
        report_putf(text, "%ld s", whole);
    } else if (whole < 3600) {
        report_putf(text, "%ld min %ld s", whole / 60, whole % 60);
    } else {
        report_putf(text, "%ld h %ld min", whole / 3600, whole / 60 % 60);
    }
}

psi_status report_put_svg(report_text *text, const char *folder, const char *name,
                          const char *ending)
{
    enum { LIMIT = 1 << 22 };
    psi_status status = PSI_OK;
    char file[96], *path = NULL, *bytes = NULL;
    size_t size;
    snprintf(file, sizeof file, "%s%s.svg", name, ending);
    TRY(base_join(text->ctx, folder, file, &path));
    TRY(base_read_file(text->ctx, path, LIMIT, &bytes, &size));
    report_put(text, "data:image/svg+xml;base64,");
    report_base64(text, bytes, size);
    status = text->status;
done:
    base_free(text->ctx, bytes);
    base_free(text->ctx, path);
    return status;
}

psi_status report_text_save(const report_text *text, const char *path, bool replace)
{
    psi_status status = PSI_OK;
    base_output *output = NULL;
    TRY(text->status);
    TRY(base_output_open(text->ctx, path, BASE_FILE, replace, &output));
    TRY(base_output_write(output, text->bytes ? text->bytes : "", text->size));
    base_output *whole = output;
    output = NULL;
    status = base_output_commit(whole);
done:
    base_output_discard(output);
    return status;
}
