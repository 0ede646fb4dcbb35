// Headers of 512 bytes with numbers in octal, data in multiples of 512, two empty blocks at the
// end.
#include "mdp/tar.h"

#include "base/checked.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>

enum { BLOCK = 512, NAME = 100, SIZE_AT = 124, SIZE_LENGTH = 12, SUM_AT = 148, TYPE_AT = 156 };

// A number in octal, or in base 256 behind a set first bit. false if it is neither.
static bool read_number(const char *field, size_t length, uint64_t *out)
{
    const unsigned char *at = (const unsigned char *)field;
    *out = 0;
    if (at[0] & 0x80) {
        for (size_t i = 1; i < length; i++) {
            if (*out >> 54) return false;
            *out = *out << 8 | at[i];
        }
        return (at[0] & 0x7F) == 0;
    }
    size_t i = 0;
    while (i < length && at[i] == ' ') i++;
    for (; i < length && at[i] >= '0' && at[i] <= '7'; i++)
        *out = *out * 8 + (uint64_t)(at[i] - '0');
    return i == length || at[i] == '\0' || at[i] == ' ';
}

static uint64_t sum_of(const char *header)
{
    uint64_t sum = 0;
    for (int i = 0; i < BLOCK; i++)
        sum += i >= SUM_AT && i < SUM_AT + 8 ? ' ' : (unsigned char)header[i];
    return sum;
}

static psi_status add_entry(psi_ctx *ctx, mdp_tar *tar, const char *header, mdp_tar_entry entry)
{
    psi_status status = PSI_OK;
    const char *name = header;
    size_t room = NAME, number;
    const size_t known = tar->names.n;
    if (header[TYPE_AT] != '0' && header[TYPE_AT] != '\0') return PSI_OK; // no file
    while (room > 1 && (name[0] == '/' || (name[0] == '.' && name[1] == '/'))) name++, room--;
    TRY(mdp_names_get(ctx, &tar->names, name, strnlen(name, room), &number));
    if (number < known) return PSI_OK;
    if (number == tar->room) {
        const size_t more = base_max(2 * tar->room, 32);
        TRY(base_resize(ctx, more, sizeof *tar->entry, &tar->entry));
        tar->room = more;
    }
    tar->entry[number] = entry;
done:
    return status;
}

psi_status mdp_tar_open(psi_ctx *ctx, mdp_tar *tar)
{
    psi_status status = PSI_OK;
    size_t at = 0;
    while (at + BLOCK <= tar->size) {
        const char *header = tar->bytes + at;
        uint64_t length = 0, sum = 0;
        if (header[0] == '\0') return PSI_OK; // the end
        if (!read_number(header + SUM_AT, 8, &sum) || sum != sum_of(header) ||
            !read_number(header + SIZE_AT, SIZE_LENGTH, &length)) {
            TRY(FAIL(ctx, PSI_EFORMAT, "%s: the tar header at byte %zu is damaged", tar->name, at));
        }
        at += BLOCK;
        if (length > tar->size - at)
            TRY(FAIL(ctx, PSI_EFORMAT, "%s is cut off inside %.*s", tar->name, NAME, header));
        TRY(add_entry(ctx, tar, header, (mdp_tar_entry){tar->bytes + at, length}));
        if (length > SIZE_MAX - BLOCK) break;
        at += base_min(base_round_up(length, BLOCK), tar->size - at);
    }
    TRY(FAIL(ctx, PSI_EFORMAT, "%s is cut off: the tar has no end", tar->name));
done:
    return status;
}

void mdp_tar_close(psi_ctx *ctx, mdp_tar *tar)
{
    mdp_names_free(ctx, &tar->names);
    base_free(ctx, tar->entry);
    tar->entry = NULL;
}

mdp_tar_entry mdp_tar_find(const mdp_tar *tar, const char *entry)
{
    const size_t number = mdp_names_find(&tar->names, entry, strlen(entry));
    mdp_tar_entry found = {0};
    if (number != SIZE_MAX) found = tar->entry[number];
    return found;
}

psi_status mdp_tar_begin(psi_ctx *ctx, base_output *output, const char *entry, uint64_t size)
{
    char header[BLOCK] = {0};
    if (strlen(entry) >= NAME)
        return FAIL(ctx, PSI_ELIMIT, "'%.60s…' is too long a name for a tar", entry);
    strncpy(header, entry, NAME); // NOLINT: padded with zeros, as the format has it
    snprintf(header + 100, 8, "%07o", 0644U);
    snprintf(header + 108, 8, "%07o", 0U);
    snprintf(header + 116, 8, "%07o", 0U);
    if (size >> 33) { // beyond eleven octal digits
        header[SIZE_AT] = (char)0x80;
        for (int i = 0; i < 8; i++)
            header[SIZE_AT + SIZE_LENGTH - 1 - i] = (char)(size >> (8 * i) & 0xFF);
    } else {
        snprintf(header + SIZE_AT, SIZE_LENGTH, "%011llo", (unsigned long long)size);
    }
    snprintf(header + 136, 12, "%011o", 0U);
    header[TYPE_AT] = '0';
    memcpy(header + 257, "ustar", sizeof "ustar"); // with its zero, then the version
    memset(header + 263, '0', 2);
    snprintf(header + SUM_AT, 8, "%06llo", (unsigned long long)sum_of(header));
    header[SUM_AT + 7] = ' ';
    return base_output_write(output, header, BLOCK);
}

psi_status mdp_tar_pad(psi_ctx *ctx, base_output *output, uint64_t size)
{
    static const char zeros[BLOCK] = {0};
    (void)ctx;
    const size_t over = size % BLOCK;
    return over == 0 ? PSI_OK : base_output_write(output, zeros, BLOCK - over);
}

psi_status mdp_tar_end(psi_ctx *ctx, base_output *output)
{
    static const char zeros[2 * BLOCK] = {0};
    (void)ctx;
    return base_output_write(output, zeros, sizeof zeros);
}

psi_status mdp_gunzip(psi_ctx *ctx, const char *name, const char *bytes, size_t size, char **out,
                      size_t *out_size)
{
    enum { STEP = 1 << 30 };
    psi_status status = PSI_OK;
    z_stream stream = {0};
    size_t room = base_max(size, 1 << 12) * 4, taken = 0;
    int result = Z_OK;
    *out = NULL;
    *out_size = 0;
    if (inflateInit2(&stream, 15 + 16) != Z_OK) return FAIL(ctx, PSI_ENOMEM, "no memory for zlib");
    TRY(base_alloc(ctx, room + 1, 1, out));
    while (result != Z_STREAM_END) {
        if (*out_size == room) {
            if (!base_mul(room, 2, &room)) TRY(FAIL(ctx, PSI_ELIMIT, "%s is too large", name));
            TRY(base_resize(ctx, room + 1, 1, out));
        }
        const uInt give = (uInt)base_min(size - taken, STEP);
        const uInt want = (uInt)base_min(room - *out_size, STEP);
        stream.next_in = (z_const Bytef *)(bytes + taken);
        stream.avail_in = give;
        stream.next_out = (Bytef *)(*out + *out_size);
        stream.avail_out = want;
        result = inflate(&stream, Z_NO_FLUSH);
        taken += give - stream.avail_in;
        *out_size += want - stream.avail_out;
        if (result == Z_MEM_ERROR) TRY(FAIL(ctx, PSI_ENOMEM, "no memory for zlib"));
        if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
            TRY(FAIL(ctx, PSI_EFORMAT, "%s: the gzip is damaged", name));
        if (result != Z_STREAM_END && taken == size && stream.avail_out > 0)
            TRY(FAIL(ctx, PSI_EFORMAT, "%s is cut off: the gzip has no end", name));
    }
    (*out)[*out_size] = '\0';
done:
    inflateEnd(&stream);
    if (status != PSI_OK) {
        base_free(ctx, *out);
        *out = NULL;
    }
    return status;
}
