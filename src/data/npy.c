// How numpy writes one array: the header, and what follows from it.
#include "data/npy.h"

#include "base/checked.h"
#include "base/context.h"

#include <stdio.h>
#include <string.h>

static const char MAGIC[] = "\x93NUMPY";

size_t data_npy_header_size(const void *start, size_t size)
{
    const unsigned char *byte = start;
    if (size < DATA_NPY_START || memcmp(byte, MAGIC, 6) != 0) return 0;
    size_t length, fixed;
    if (byte[6] == 1) {
        length = byte[8] | (size_t)byte[9] << 8;
        fixed = 10;
    } else if (byte[6] == 2 || byte[6] == 3) {
        length = byte[8] | (size_t)byte[9] << 8 | (size_t)byte[10] << 16 | (size_t)byte[11] << 24;
        fixed = 12;
    } else {
        return 0;
    }
    return length + fixed <= DATA_NPY_LONGEST ? length + fixed : 0;
}

typedef struct cursor {
    const char *at, *end;
} cursor;

static void skip_spaces(cursor *text)
{
    while (text->at < text->end && (*text->at == ' ' || *text->at == '\n' || *text->at == '\t')) {
        text->at++;
    }
}

static bool take(cursor *text, char expected)
{
    skip_spaces(text);
    if (text->at == text->end || *text->at != expected) return false;
    text->at++;
    return true;
}

static bool take_word(cursor *text, const char *word)
{
    const size_t length = strlen(word);
    skip_spaces(text);
    if ((size_t)(text->end - text->at) < length || memcmp(text->at, word, length) != 0) {
        return false;
    }
    text->at += length;
    return true;
}

// A quoted string without escapes, at most 31 characters.
static bool take_string(cursor *text, char out[32])
{
    skip_spaces(text);
    if (text->at == text->end || (*text->at != '\'' && *text->at != '"')) return false;
    const char quote = *text->at++;
    size_t n = 0;
    for (; text->at < text->end && *text->at != quote; text->at++) {
        if (n == 31) return false;
        out[n++] = *text->at;
    }
    out[n] = '\0';
    return take(text, quote);
}

static bool take_number(cursor *text, size_t *out)
{
    skip_spaces(text);
    const char *first = text->at;
    *out = 0;
    for (; text->at < text->end && *text->at >= '0' && *text->at <= '9'; text->at++) {
        if (!base_mul(*out, 10, out) || !base_add(*out, (size_t)(*text->at - '0'), out)) {
            return false;
        }
    }
    (void)(text->at < text->end && *text->at == 'L' && text->at++); // Python 2
    return text->at > first;
}

static bool parse_descr(const char *descr, data_element *out)
{
    const char order = descr[0], kind = descr[0] ? descr[1] : '\0';
    size_t size;
    char rest;
    if (kind == '\0' || sscanf(descr + 2, "%zu%c", &size, &rest) != 1) return false;
    if (size == 0 || size > 1 << 20) return false;
    if (kind == 'U') size *= 4; // counted in characters
    *out = (data_element){.size = size, .swapped = order == '>' && size > 1};
    if (order != '<' && order != '>' && order != '|' && order != '=') return false;
    switch (kind) {
    case 'u': out->kind = DATA_UNSIGNED; break;
    case 'i': out->kind = DATA_SIGNED; break;
    case 'f': out->kind = DATA_FLOAT; break;
    case 'b': out->kind = DATA_BOOL; break;
    default: out->kind = DATA_OTHER; break;
    }
    return true;
}

static bool parse_shape(cursor *text, data_array *out)
{
    if (!take(text, '(')) return false;
    out->rank = 0;
    while (!take(text, ')')) {
        if (out->rank == DATA_MAX_RANK || !take_number(text, &out->dim[out->rank++])) return false;
        if (!take(text, ',')) return take(text, ')');
    }
    return true;
}

bool data_npy_parse(const char *text, size_t size, data_array *out, bool *fortran)
{
    const size_t header = data_npy_header_size(text, size);
    if (header == 0 || header > size) return false;
    cursor at = {text + (text[6] == 1 ? 10 : 12), text + header};
    bool has_descr = false, has_order = false, has_shape = false;
    if (!take(&at, '{')) return false;
    while (!take(&at, '}')) {
        char key[32], descr[32];
        if (!take_string(&at, key) || !take(&at, ':')) return false;
        if (strcmp(key, "descr") == 0) {
            has_descr = take_string(&at, descr) && parse_descr(descr, &out->element);
            if (!has_descr) return false;
        } else if (strcmp(key, "fortran_order") == 0) {
            *fortran = take_word(&at, "True");
            has_order = *fortran || take_word(&at, "False");
            if (!has_order) return false;
        } else if (strcmp(key, "shape") == 0) {
            has_shape = parse_shape(&at, out);
            if (!has_shape) return false;
        } else {
            return false;
        }
        if (!take(&at, ',') && !(take(&at, '}') && (at.at--, true))) return false;
    }
    return has_descr && has_order && has_shape;
}

bool data_npy_extent(data_array *array, size_t *size)
{
    array->row_bytes = array->element.size;
    for (size_t d = 1; d < array->rank; d++) {
        if (!base_mul(array->row_bytes, array->dim[d], &array->row_bytes)) return false;
    }
    return base_mul(array->row_bytes, data_array_rows(array), size);
}

// Element (i0, i1, …) is at i0 + n0 · (i1 + n1 · (…)) in the file; rows want it the other way.
psi_status data_npy_turn(psi_ctx *ctx, data_array *array, size_t size)
{
    char *fresh;
    const psi_status status = base_alloc(ctx, size, 1, &fresh);
    if (status != PSI_OK) return status;
    const size_t element = array->element.size, count = size / element;
    size_t at[DATA_MAX_RANK] = {0}, stride[DATA_MAX_RANK] = {1};
    for (size_t d = 1; d < array->rank; d++) stride[d] = stride[d - 1] * array->dim[d - 1];
    for (size_t i = 0; i < count; i++) {
        size_t from = 0;
        for (size_t d = 0; d < array->rank; d++) from += at[d] * stride[d];
        memcpy(fresh + i * element, array->memory + from * element, element);
        for (size_t d = array->rank; d-- > 0 && ++at[d] == array->dim[d];) at[d] = 0;
    }
    base_free(ctx, array->memory);
    array->memory = fresh;
    return PSI_OK;
}

const char *data_npy_descr(psi_dtype dtype)
{
    switch (dtype) {
    case PSI_UINT8: return "|u1";
    case PSI_INT32: return "<i4";
    case PSI_INT64: return "<i8";
    case PSI_FLOAT32: return "<f4";
    case PSI_FLOAT64: return "<f8";
    }
    return "";
}

size_t data_npy_format(char *out, size_t room, const char *descr, size_t rank, const size_t *dim)
{
    char shape[128] = "";
    size_t used = 0;
    for (size_t d = 0; d < rank; d++) {
        const char *after = rank == 1 ? "," : d + 1 < rank ? ", " : "";
        const int n = snprintf(shape + used, sizeof shape - used, "%zu%s", dim[d], after);
        if (n < 0 || (size_t)n >= sizeof shape - used) return 0;
        used += (size_t)n;
    }
    char text[256];
    const int length =
        snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }",
                 descr, shape);
    if (length < 0 || (size_t)length >= sizeof text) return 0;
    const size_t total = base_round_up(10 + (size_t)length + 1, 64);
    if (total > room) return 0;
    memset(out, ' ', total);
    memcpy(out, MAGIC, 6);
    out[6] = 1;
    out[7] = 0;
    out[8] = (char)((total - 10) & 255);
    out[9] = (char)((total - 10) >> 8);
    memcpy(out + 10, text, (size_t)length);
    out[total - 1] = '\n';
    return total;
}
