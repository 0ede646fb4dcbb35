#include "base/arena.h"

#include "base/checked.h"
#include "base/context.h"

#include <string.h>

typedef struct base_arena_page {
    struct base_arena_page *older;
    size_t used, size; // of bytes
    _Alignas(64) char bytes[];
} base_arena_page;

enum { PAGE_BYTES = 1 << 16, ALIGNMENT = 16 };

psi_status base_arena_take(base_arena *arena, size_t count, size_t size, void *out)
{
    memset(out, 0, sizeof(void *));
    size_t bytes;
    if (!base_mul(count, size, &bytes) || bytes > SIZE_MAX / 2) {
        return FAIL(arena->ctx, PSI_ENOMEM, "%zu elements of %zu bytes are too many", count, size);
    }
    bytes = base_round_up(bytes, ALIGNMENT);
    base_arena_page *page = arena->page;
    if (!page || page->size - page->used < bytes) {
        const size_t room = base_max(bytes, PAGE_BYTES);
        const psi_status status = base_alloc(arena->ctx, 1, sizeof *page + room, &page);
        if (status != PSI_OK) return status;
        page->older = arena->page;
        page->used = 0;
        page->size = room;
        arena->page = page;
    }
    void *taken = page->bytes + page->used;
    page->used += bytes;
    memset(taken, 0, bytes);
    memcpy(out, &taken, sizeof taken);
    return PSI_OK;
}

psi_status base_arena_text(base_arena *arena, const char *text, const char **out)
{
    const size_t size = strlen(text) + 1;
    char *copy;
    const psi_status status = base_arena_take(arena, size, 1, &copy);
    if (status == PSI_OK) memcpy(copy, text, size);
    *out = copy;
    return status;
}

void base_arena_free(base_arena *arena)
{
    for (base_arena_page *page = arena->page, *older; page; page = older) {
        older = page->older;
        base_free(arena->ctx, page);
    }
    arena->page = NULL;
}
