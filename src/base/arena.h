// Many small things that live and die together: taken one by one, given back all at once.
#ifndef PSI_BASE_ARENA_H
#define PSI_BASE_ARENA_H

#include <psifold/base.h>

typedef struct base_arena {
    psi_ctx *ctx;
    struct base_arena_page *page; // the newest; older ones hang behind it
} base_arena;

// An arena holds nothing until it is asked: base_arena arena = {.ctx = ctx};
psi_status base_arena_take(base_arena *arena, size_t count, size_t size, void *out); // zeroed
psi_status base_arena_text(base_arena *arena, const char *text, const char **out);   // a copy
void base_arena_free(base_arena *arena);

#endif
