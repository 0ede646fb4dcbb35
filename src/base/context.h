// The inside of the context: how a room fails, allocates, warns, reports and notices a cancel.
#ifndef PSI_BASE_CONTEXT_H
#define PSI_BASE_CONTEXT_H

#include <psifold/base.h>

#define PRINTF_LIKE(text, first) __attribute__((format(printf, text, first)))

// Records one sentence and returns the status, so that a failing line reads
//     return FAIL(ctx, PSI_ESHAPE, "%s: actions has %zu rows, rewards %zu", path, n, m);
// May be called from worker threads; the record keeps the latest failure.
#ifndef __clang_analyzer__
#define FAIL(ctx, status, ...) base_fail((ctx), (status), __FILE__, __LINE__, __VA_ARGS__)
#else // which reads one file at a time, and has to see here that a failure is never PSI_OK
#define FAIL(ctx, status, ...)                                                                     \
    ((void)base_fail((ctx), (status), __FILE__, __LINE__, __VA_ARGS__), (status))
#endif

psi_status base_fail(psi_ctx *ctx, psi_status status, const char *file, int line,
                     const char *format, ...) PRINTF_LIKE(5, 6);

// Inside a function with `psi_status status = PSI_OK;` and a `done:` label that cleans up.
#define TRY(expression)                                                                            \
    do {                                                                                           \
        status = (expression);                                                                     \
        if (status != PSI_OK) goto done;                                                           \
    } while (0)

// count · size bytes, aligned to a cache line (64 bytes), into the pointer at out (&pointer, of any
// object type). It belongs to the caller and is NULL on PSI_ENOMEM. A count of 0 gives a valid
// pointer to nothing.
psi_status base_alloc(psi_ctx *ctx, size_t count, size_t size, void *out);
psi_status base_alloc_zero(psi_ctx *ctx, size_t count, size_t size, void *out);

// Changes the length of the block whose pointer is at inout (may be NULL); on failure it stays
// valid.
psi_status base_resize(psi_ctx *ctx, size_t count, size_t size, void *inout);
psi_status base_copy_text(psi_ctx *ctx, const char *text, char **out);
void base_free(psi_ctx *ctx, void *ptr); // NULL is fine

// Handles that were freed and are used all the same are found in builds with PSI_DEBUG_HANDLES.
// base_retire frees a handle; there, its block is kept until the context has freed many more, or
// ends. FREED(ctx, handle, …) is true, with a sentence, if one of these was freed with this
// context; FREED(NULL, handle) asks the handle itself, which must come from base_alloc: opaque ones
// do, psi_run and the like may be the caller's own.
#if defined(PSI_DEBUG_HANDLES)
void base_retire(psi_ctx *ctx, void *handle);
bool base_freed(psi_ctx *ctx, size_t n, const void *const handles[]);
#define FREED(ctx, ...)                                                                            \
    base_freed((ctx), sizeof((const void *[]){__VA_ARGS__}) / sizeof(void *),                      \
               (const void *const[]){__VA_ARGS__})
#else
#define base_retire     base_free
#define FREED(ctx, ...) false
#endif

void base_note(psi_ctx *ctx, const char *format, ...) PRINTF_LIKE(2, 3);
void base_warn(psi_ctx *ctx, const char *format, ...) PRINTF_LIKE(2, 3);

// PSI_ECANCELLED once psi_cancel was called, or the deadline has passed: long loops ask this at
// every step.
psi_status base_cancelled(psi_ctx *ctx);

// A time of base_seconds (progress.h) by which work is to stop; 0: none. Whoever has set it asks
// whether that is why something stopped, and sets another one for what comes next.
void base_set_deadline(psi_ctx *ctx, double when);
bool base_time_is_up(const psi_ctx *ctx); // and nobody has asked to stop

// A context for one thread of the parent's team: the same allocator and cancel, no callbacks, a
// thread count and an error record of its own. The parent must outlive it.
psi_status base_ctx_child(psi_ctx *parent, int threads, psi_ctx **out);

struct base_team *base_ctx_team(psi_ctx *ctx); // the context's threads (threads.h)
void base_report(psi_ctx *ctx, const psi_progress *progress);

#endif
