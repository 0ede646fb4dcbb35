// Buffered text for the writers of models.
#include "mdp/text_out.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_NUMBER = 40 };

psi_status mdp_text_out_new(psi_ctx *ctx, base_output *output, mdp_text_out **out)
{
    const psi_status status = base_alloc(ctx, 1, sizeof **out, out);
    if (status != PSI_OK) return status;
    (*out)->output = output;
    (*out)->status = PSI_OK;
    (*out)->used = 0;
    return PSI_OK;
}

static void flush(mdp_text_out *out)
{
    if (out->status == PSI_OK) out->status = base_output_write(out->output, out->buffer, out->used);
    out->used = 0;
}

static void put_bytes(mdp_text_out *out, const char *bytes, size_t size)
{
    while (size > 0) {
        if (out->used == sizeof out->buffer) flush(out);
        const size_t room = sizeof out->buffer - out->used, part = size < room ? size : room;
        memcpy(out->buffer + out->used, bytes, part);
        out->used += part;
        bytes += part;
        size -= part;
    }
}

void mdp_put(mdp_text_out *out, const char *format, ...)
{
    char piece[512];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(piece, sizeof piece, format, arguments);
    va_end(arguments);
    if (length > 0) {
        put_bytes(out, piece, (size_t)length < sizeof piece ? (size_t)length : sizeof piece - 1);
    }
}

void mdp_put_count(mdp_text_out *out, uint64_t count)
{
    char digits[LONGEST_NUMBER], *at = digits + sizeof digits;
    do {
        *--at = (char)('0' + count % 10);
        count /= 10;
    } while (count > 0);
    put_bytes(out, at, (size_t)(digits + sizeof digits - at));
}

void mdp_put_number(mdp_text_out *out, double number)
{
    char text[LONGEST_NUMBER];
    int length = 0;
    if (number == 0.0 || number == 1.0) {
        put_bytes(out, number == 0.0 ? "0" : "1", 1);
        return;
    }
    for (int digits = 6; digits <= 17; digits = digits == 6 ? 15 : digits + 1) {
        length = snprintf(text, sizeof text, "%.*g", digits, number);
        if (strtod(text, NULL) == number) break;
    }
    put_bytes(out, text, (size_t)length);
}

psi_status mdp_put_end(mdp_text_out *out)
{
    flush(out);
    return out->status;
}
