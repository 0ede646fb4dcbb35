#include "base/tally.h"

#include "base/checked.h"
#include "base/comm.h"
#include "base/context.h"

#include <string.h>

uint64_t base_key_of_real(double x)
{
    uint64_t bits;
    x += 0.0; // −0 becomes 0
    memcpy(&bits, &x, sizeof bits);
    return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

double base_real_of_key(uint64_t key)
{
    double x;
    const uint64_t bits = key >> 63 ? key & ~((uint64_t)1 << 63) : ~key;
    memcpy(&x, &bits, sizeof x);
    return x;
}

enum { DIGIT = 11, DIGITS = 6, VALUES = 1 << DIGIT }; // 6 · 11 ≥ 64 bits

psi_status base_sort_keys(psi_ctx *ctx, uint64_t *keys, size_t n)
{
    psi_status status = PSI_OK;
    size_t(*begin)[VALUES] = NULL;
    uint64_t *other = NULL, *from = keys, *to;
    TRY(base_alloc_zero(ctx, DIGITS, sizeof *begin, &begin));
    TRY(base_alloc(ctx, n, sizeof *other, &other));
    for (size_t i = 0; i < n; i++) {
        for (size_t d = 0; d < DIGITS; d++) begin[d][keys[i] >> d * DIGIT & (VALUES - 1)]++;
    }
    to = other;
    for (size_t d = 0; d < DIGITS; d++) {
        size_t at = 0;
        if (n == 0 || begin[d][from[0] >> d * DIGIT & (VALUES - 1)] == n) continue; // all the same
        for (size_t v = 0; v < VALUES; v++) {
            const size_t count = begin[d][v];
            begin[d][v] = at;
            at += count;
        }
        for (size_t i = 0; i < n; i++) {
            to[begin[d][from[i] >> d * DIGIT & (VALUES - 1)]++] = from[i];
        }
        uint64_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != keys) memcpy(keys, from, n * sizeof *keys);
done:
    base_free(ctx, other);
    base_free(ctx, begin);
    return status;
}

// Two ascending lists as one.
static size_t merge(const base_times *a, size_t n, const base_times *b, size_t m, base_times *out)
{
    size_t i = 0, j = 0, k = 0;
    while (i < n || j < m) {
        if (j == m || (i < n && a[i].key < b[j].key)) {
            out[k++] = a[i++];
        } else if (i == n || b[j].key < a[i].key) {
            out[k++] = b[j++];
        } else {
            out[k++] = (base_times){a[i].key, a[i].n + b[j].n};
            i++;
            j++;
        }
    }
    return k;
}

// The lists of all processes, side by side in *list with sizes (ranks), become one: neighbours are
// merged until one is left.
static psi_status merge_all(psi_ctx *ctx, base_times **list, size_t *sizes, size_t *n)
{
    psi_status status = PSI_OK;
    base_times *other = NULL;
    size_t lists = (size_t)base_ranks(ctx);
    TRY(base_alloc(ctx, *n, sizeof *other, &other));
    while (lists > 1) {
        size_t from = 0, kept = 0;
        *n = 0;
        for (size_t l = 0; l < lists; l += 2) {
            const size_t a = sizes[l], b = l + 1 < lists ? sizes[l + 1] : 0;
            const size_t both = merge(*list + from, a, *list + from + a, b, other + *n);
            from += a + b;
            *n += both;
            sizes[kept++] = both;
        }
        base_times *swap = *list;
        *list = other;
        other = swap;
        lists = kept;
    }
done:
    base_free(ctx, other);
    return status;
}

psi_status base_tally(psi_ctx *ctx, uint64_t *keys, size_t n, base_times **out, size_t *n_out)
{
    psi_status status = PSI_OK;
    base_times *own = NULL, *all = NULL;
    size_t *sizes = NULL, kinds = 0, bytes;
    TRY(base_sort_keys(ctx, keys, n));
    for (size_t i = 0; i < n; i++) kinds += i == 0 || keys[i] != keys[i - 1];
    TRY(base_alloc(ctx, kinds, sizeof *own, &own));
    kinds = 0;
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || keys[i] != keys[i - 1]) own[kinds++] = (base_times){keys[i], 0};
        own[kinds - 1].n++;
    }
    *n_out = kinds;
    if (base_ranks(ctx) > 1) {
        TRY(base_alloc(ctx, (size_t)base_ranks(ctx), sizeof *sizes, &sizes));
        TRY(base_gather(ctx, &kinds, sizeof kinds, sizes));
        TRY(base_gather_parts(ctx, own, kinds * sizeof *own, &all, &bytes));
        *n_out = bytes / sizeof *all;
        base_free(ctx, own);
        own = NULL;
        TRY(merge_all(ctx, &all, sizes, n_out));
    }
    *out = all ? all : own;
    all = own = NULL;
done:
    base_free(ctx, sizes);
    base_free(ctx, all);
    base_free(ctx, own);
    return status;
}
