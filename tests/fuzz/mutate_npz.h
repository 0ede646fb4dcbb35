// A mutator that knows what an .npz is: it changes the header or the numbers of one array, or takes
// an array away, and packs the archive anew with right lengths and checksums. Random bytes alone
// hardly ever get past libzip. Only libFuzzer asks for it.
#ifndef PSI_TESTS_FUZZ_MUTATE_NPZ_H
#define PSI_TESTS_FUZZ_MUTATE_NPZ_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>

size_t LLVMFuzzerMutate(uint8_t *bytes, size_t size, size_t most) __attribute__((weak));
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t most, unsigned seed);

enum { MUTATE_ENTRIES = 16, MUTATE_BYTES = 1 << 16 };

typedef struct mutate_entry {
    char name[128];
    uint8_t *bytes; // (MUTATE_BYTES)
    size_t size;
} mutate_entry;

static size_t mutate_unpack(const uint8_t *bytes, size_t size, mutate_entry *entries)
{
    size_t n = 0;
    zip_source_t *source = zip_source_buffer_create(bytes, size, 0, NULL);
    zip_t *zip = source ? zip_open_from_source(source, ZIP_RDONLY, NULL) : NULL;
    if (source && !zip) zip_source_free(source);
    for (zip_int64_t i = 0; zip && i < zip_get_num_entries(zip, 0) && n < MUTATE_ENTRIES; i++) {
        const char *name = zip_get_name(zip, (zip_uint64_t)i, 0);
        zip_file_t *file = zip_fopen_index(zip, (zip_uint64_t)i, 0);
        if (name && file && strlen(name) < sizeof entries->name) {
            const zip_int64_t got = zip_fread(file, entries[n].bytes, MUTATE_BYTES);
            strcpy(entries[n].name, name);
            entries[n].size = got > 0 ? (size_t)got : 0;
            n++;
        }
        if (file) zip_fclose(file);
    }
    if (zip) zip_discard(zip);
    return n;
}

static size_t mutate_pack(const mutate_entry *entries, size_t n, uint8_t *out, size_t most,
                          unsigned seed)
{
    size_t size = 0;
    zip_source_t *source = zip_source_buffer_create(NULL, 0, 0, NULL);
    if (!source) return 0;
    zip_source_keep(source);
    zip_t *zip = zip_open_from_source(source, ZIP_TRUNCATE, NULL);
    // one archive in eight has packed arrays: zlib clears 256 KiB for each before it packs a byte
    const unsigned deflated = seed / 1280 % 8 == 0 ? seed : 0;
    for (size_t i = 0; zip && i < n; i++) {
        zip_source_t *from = zip_source_buffer(zip, entries[i].bytes, entries[i].size, 0);
        const zip_int64_t at = zip_file_add(zip, entries[i].name, from, ZIP_FL_OVERWRITE);
        if (at < 0) zip_source_free(from);
        if (at >= 0) {
            (void)zip_set_file_compression(zip, (zip_uint64_t)at,
                                           (deflated >> i) & 1 ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 1);
        }
    }
    if (zip && zip_close(zip) == 0 && zip_source_open(source) == 0) {
        zip_stat_t stat;
        if (zip_source_stat(source, &stat) == 0 && stat.size <= most) {
            const zip_int64_t got = zip_source_read(source, out, stat.size);
            size = got > 0 ? (size_t)got : 0;
        }
        zip_source_close(source);
    }
    zip_source_free(source);
    return size;
}

// The header's text is words and numbers: an edit of one of them keeps it readable.
static void mutate_header(mutate_entry *entry, unsigned seed)
{
    static const char *const words[] = {"<f8", "<f4", "<i8", ">i8", "|u1", "|b1", "<f2", "True"};
    const size_t end = entry->size < 128 ? entry->size : 128;
    for (size_t tries = 0; tries < 64 && end > 10; tries++) {
        seed = seed * 1103515245u + 12345u;
        const size_t at = 10 + (seed >> 8) % (end - 10);
        if (entry->bytes[at] >= '0' && entry->bytes[at] <= '9') {
            entry->bytes[at] = (uint8_t)('0' + (seed >> 20) % 10);
            return;
        }
        if (entry->bytes[at] == '<' && at + 3 <= end) {
            memcpy(entry->bytes + at, words[(seed >> 20) % 7], 3);
            return;
        }
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t most, unsigned seed)
{
    static mutate_entry entries[MUTATE_ENTRIES];
    for (int i = 0; i < MUTATE_ENTRIES; i++) {
        if (!entries[i].bytes) entries[i].bytes = malloc(MUTATE_BYTES);
        if (!entries[i].bytes) abort();
    }
    size_t n = seed % 10 == 0 ? 0 : mutate_unpack(bytes, size, entries), packed = 0;
    if (n > 0) {
        mutate_entry *entry = &entries[seed / 10 % n];
        switch (seed / 160 % 8) {
        case 0: { // swapped, so that every entry keeps a buffer of its own
            const mutate_entry gone = *entry;
            *entry = entries[--n];
            entries[n] = gone;
            break;
        }
        case 1:
        case 2:
        case 3: mutate_header(entry, seed); break;
        default: {
            const size_t header = entry->size < 128 ? 0 : 128; // as numpy pads it for our arrays
            entry->size = header + LLVMFuzzerMutate(entry->bytes + header, entry->size - header,
                                                    MUTATE_BYTES - header);
            if (seed / 1280 % 2) mutate_header(entry, seed);
        }
        }
        packed = mutate_pack(entries, n, bytes, most, seed);
    }
    return packed ? packed : LLVMFuzzerMutate(bytes, size, most);
}

#endif
