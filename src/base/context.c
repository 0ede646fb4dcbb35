// The context: allocator, callbacks, the error record and the team of threads. All memory of the
// library passes through base_alloc, which is why a test can make any one of them fail.
#include "base/context.h"

#include "base/blas.h"
#include "base/checked.h"
#include "base/comm_part.h"
#include "base/progress.h"
#include "base/threads.h"

#include <cblas.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RETIRED = 1024 }; // handles of a context that are kept after they were freed

struct psi_ctx {
    psi_options options;
    psi_error_record error;
    pthread_mutex_t error_lock; // worker threads may fail, too
    pthread_mutex_t blas_lock;
    bool blas_ready; // of a root: OpenBLAS has its memory
    atomic_bool cancelled;
    _Atomic double deadline; // 0: none
    base_team *team;
    psi_ctx *parent;     // whose cancel is this one's, too; NULL
    psi_ctx *root;       // the parent's parent's …, or this one: whose bound on memory counts
    atomic_size_t taken; // bytes, by all below the root
    base_comm comm;
#if defined(PSI_DEBUG_HANDLES)
    void *retired[RETIRED]; // the latest, in turns
    size_t n_retired;
#endif
};

// Every block is preceded by this record; the block itself starts on a cache line. A block goes
// back where it came from, whichever context it is freed with.
typedef struct block_head {
    void *raw;   // what the allocator returned
    size_t size; // bytes the caller asked for
    void (*release)(void *user, void *ptr);
    void *user;
#if defined(PSI_DEBUG_HANDLES)
    psi_ctx *retired_by; // NULL: it lives
#endif
} block_head;

enum { ALIGNMENT = 64 };

// Heads and padding are nobody's to touch: the address sanitizer, which sees a block and its head
// as one, has to be told.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ADDRESS_SANITIZER
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define HAS_ADDRESS_SANITIZER
#endif
#if defined(HAS_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(first, size)   ((void)(first), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(first, size) ((void)(first), (void)(size))
#endif

static void *default_resize(void *user, void *ptr, size_t size)
{
    (void)user;
    return realloc(ptr, size);
}

static void release_retired(psi_ctx *ctx);

static void default_release(void *user, void *ptr)
{
    (void)user;
    free(ptr);
}

psi_status psi_ctx_new(const psi_options *options, psi_ctx **out)
{
    *out = NULL;
    if (options && options->size != sizeof *options) return PSI_EUSAGE; // nobody to tell more to
    psi_options chosen = options ? *options : (psi_options){.size = sizeof(psi_options)};
    if (!chosen.allocator.resize || !chosen.allocator.release) {
        chosen.allocator = (psi_allocator){default_resize, default_release, NULL};
    }
    if (chosen.threads < 0 || chosen.threads > 1024) return PSI_EUSAGE;
    if (chosen.threads == 0) {
        cpu_set_t own; // processes that share a machine may have been given some of them each
        const bool known = sched_getaffinity(0, sizeof own, &own) == 0;
        const long processors = known ? CPU_COUNT(&own) : sysconf(_SC_NPROCESSORS_ONLN);
        chosen.threads = processors < 1 ? 1 : processors > 1024 ? 1024 : (int)processors;
    }
    psi_ctx *ctx = chosen.allocator.resize(chosen.allocator.user, NULL, sizeof *ctx);
    if (!ctx) return PSI_ENOMEM;
    memset(ctx, 0, sizeof *ctx);
    ctx->options = chosen;
    pthread_mutex_init(&ctx->error_lock, NULL);
    pthread_mutex_init(&ctx->blas_lock, NULL);
    atomic_init(&ctx->cancelled, false);
    atomic_init(&ctx->deadline, 0.0);
    atomic_init(&ctx->taken, 0);
    ctx->root = ctx;
    ctx->comm.ranks = 1;
    // the team is the only pool of threads: OpenBLAS's own would fight with it for the cores
    openblas_set_num_threads(1);
    const psi_status status = base_team_new(ctx, chosen.threads, &ctx->team);
    if (status != PSI_OK) {
        psi_ctx_free(ctx);
        return status;
    }
    *out = ctx;
    return PSI_OK;
}

void psi_ctx_free(psi_ctx *ctx)
{
    if (!ctx) return;
    base_comm_finish(&ctx->comm);
    base_team_free(ctx, ctx->team);
    release_retired(ctx);
    pthread_mutex_destroy(&ctx->blas_lock);
    pthread_mutex_destroy(&ctx->error_lock);
    ctx->options.allocator.release(ctx->options.allocator.user, ctx);
}

psi_status base_ctx_child(psi_ctx *parent, int threads, psi_ctx **out)
{
    const psi_options options = {
        .size = sizeof options, .allocator = parent->options.allocator, .threads = threads};
    const psi_status status = psi_ctx_new(&options, out);
    if (status != PSI_OK) return FAIL(parent, status, "no memory for another context");
    (*out)->parent = parent;
    (*out)->root = parent->root;
    return PSI_OK;
}

const psi_error_record *psi_error(const psi_ctx *ctx)
{
    return &ctx->error;
}
int psi_threads(const psi_ctx *ctx)
{
    return ctx->options.threads;
}
void psi_cancel(psi_ctx *ctx)
{
    atomic_store(&ctx->cancelled, true);
}
struct base_team *base_ctx_team(psi_ctx *ctx)
{
    return ctx->team;
}

base_comm *base_ctx_comm(psi_ctx *ctx)
{
    return &ctx->comm;
}

psi_status base_blas_ready(psi_ctx *ctx)
{
    psi_ctx *root = ctx->root; // its children run on its threads
    pthread_mutex_lock(&root->blas_lock);
    if (!root->blas_ready) root->blas_ready = base_blas_take(root->options.threads);
    const bool ready = root->blas_ready;
    pthread_mutex_unlock(&root->blas_lock);
    if (ready) return PSI_OK;
    return FAIL(ctx, PSI_ENOMEM,
                "no memory for matrices: OpenBLAS wants 128 MiB of address space for each of %d "
                "threads; --threads 1, or a higher limit (ulimit -v), may help",
                root->options.threads);
}

void base_set_deadline(psi_ctx *ctx, double when)
{
    atomic_store_explicit(&ctx->deadline, when, memory_order_relaxed);
}

static bool is_cancelled(const psi_ctx *ctx)
{
    bool cancelled = false;
    for (const psi_ctx *at = ctx; at && !cancelled; at = at->parent) {
        cancelled = atomic_load_explicit(&at->cancelled, memory_order_relaxed);
    }
    return cancelled;
}

static bool is_late(const psi_ctx *ctx)
{
    double first = 0.0;
    for (const psi_ctx *at = ctx; at; at = at->parent) {
        const double when = atomic_load_explicit(&at->deadline, memory_order_relaxed);
        if (when > 0.0 && (first <= 0.0 || when < first)) first = when;
    }
    return first > 0.0 && base_seconds() >= first;
}

bool base_time_is_up(const psi_ctx *ctx)
{
    return !is_cancelled(ctx) && is_late(ctx);
}

psi_status base_cancelled(psi_ctx *ctx)
{
    if (is_cancelled(ctx)) return FAIL(ctx, PSI_ECANCELLED, "stopped on request");
    if (is_late(ctx)) return FAIL(ctx, PSI_ECANCELLED, "stopped: the time is up");
    return PSI_OK;
}

psi_status base_fail(psi_ctx *ctx, psi_status status, const char *file, int line,
                     const char *format, ...)
{
    pthread_mutex_lock(&ctx->error_lock);
    ctx->error.status = status;
    va_list arguments;
    va_start(arguments, format);
    // NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_start is the line above
    vsnprintf(ctx->error.message, sizeof ctx->error.message, format, arguments);
    va_end(arguments);
    const char *name = strrchr(file, '/');
    snprintf(ctx->error.where, sizeof ctx->error.where, "%s:%d", name ? name + 1 : file, line);
    pthread_mutex_unlock(&ctx->error_lock);
    return status;
}

// Heads are poisoned for everybody else. They are read as they are, without lifting that for a
// moment: another thread may read the same one.
__attribute__((no_sanitize("address"), noinline)) static block_head head_of(void *block)
{
    return *((const block_head *)block - 1);
}

// Pointers of every type are stored and loaded as bytes: the caller's variable is a float *, a
// char *, …, and writing it through a void ** would break the aliasing rules.
static void store_pointer(void *variable, void *value)
{
    memcpy(variable, &value, sizeof value);
}

static void *load_pointer(const void *variable)
{
    void *value;
    memcpy(&value, variable, sizeof value);
    return value;
}

// What a block of this many bytes takes, with its head and the room to align it.
static bool padded_size(size_t bytes, size_t *out)
{
    return base_add(bytes, sizeof(block_head) + ALIGNMENT, out);
}

// Keeps the books of a context with a bound; others pay nothing for it.
static bool take(psi_ctx *ctx, size_t bytes)
{
    psi_ctx *root = ctx->root;
    if (root->options.max_memory == 0) return true;
    const size_t before = atomic_fetch_add_explicit(&root->taken, bytes, memory_order_relaxed);
    if (before <= root->options.max_memory && bytes <= root->options.max_memory - before) {
        return true;
    }
    atomic_fetch_sub_explicit(&root->taken, bytes, memory_order_relaxed);
    return false;
}

static void give_back(psi_ctx *ctx, size_t bytes)
{
    psi_ctx *root = ctx->root;
    if (root->options.max_memory == 0) return;
    // a block may come from a context without a bound: what was never taken is not given back
    size_t before = atomic_load_explicit(&root->taken, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&root->taken, &before,
                                                  before > bytes ? before - bytes : 0,
                                                  memory_order_relaxed, memory_order_relaxed)) {
    }
}

psi_status base_alloc(psi_ctx *ctx, size_t count, size_t size, void *out)
{
    store_pointer(out, NULL);
    size_t bytes, padded;
    if (!base_mul(count, size, &bytes) || !padded_size(bytes, &padded)) {
        return FAIL(ctx, PSI_ENOMEM, "%zu elements of %zu bytes are more than can be addressed",
                    count, size);
    }
    if (!take(ctx, padded)) {
        return FAIL(ctx, PSI_ENOMEM,
                    "%zu more bytes would take the memory above the %zu bytes of --max-memory",
                    bytes, ctx->root->options.max_memory);
    }
    char *raw = ctx->options.allocator.resize(ctx->options.allocator.user, NULL, padded);
    if (!raw) {
        give_back(ctx, padded);
        return FAIL(ctx, PSI_ENOMEM, "no memory for %zu bytes", bytes);
    }
    const uintptr_t first = (uintptr_t)raw + sizeof(block_head);
    void *block = raw + (base_round_up(first, ALIGNMENT) - (uintptr_t)raw);
    const psi_allocator *from = &ctx->options.allocator;
    ((block_head *)block)[-1] =
        (block_head){.raw = raw, .size = bytes, .release = from->release, .user = from->user};
    ASAN_POISON_MEMORY_REGION(raw, padded);
    ASAN_UNPOISON_MEMORY_REGION(block, bytes);
    store_pointer(out, block);
    return PSI_OK;
}

psi_status base_alloc_zero(psi_ctx *ctx, size_t count, size_t size, void *out)
{
    const psi_status status = base_alloc(ctx, count, size, out);
    if (status == PSI_OK) memset(load_pointer(out), 0, count * size);
    return status;
}

psi_status base_resize(psi_ctx *ctx, size_t count, size_t size, void *inout)
{
    void *old = load_pointer(inout), *fresh;
    const psi_status status = base_alloc(ctx, count, size, &fresh);
    if (status != PSI_OK) return status;
    if (old) memcpy(fresh, old, base_min(head_of(old).size, count * size));
    base_free(ctx, old);
    store_pointer(inout, fresh);
    return PSI_OK;
}

psi_status base_copy_text(psi_ctx *ctx, const char *text, char **out)
{
    *out = NULL;
    if (!text) return FAIL(ctx, PSI_EUSAGE, "a name or a text is NULL");
    const size_t size = strlen(text) + 1;
    const psi_status status = base_alloc(ctx, size, 1, out);
    if (status == PSI_OK) memcpy(*out, text, size);
    return status;
}

void base_free(psi_ctx *ctx, void *ptr)
{
    if (!ptr) return;
    const block_head head = head_of(ptr);
    size_t padded = 0;
    (void)padded_size(head.size, &padded); // it was, when the block was taken
    give_back(ctx, padded);
    ASAN_UNPOISON_MEMORY_REGION(head.raw, padded);
    head.release(head.user, head.raw);
}

#if defined(PSI_DEBUG_HANDLES)
static void release_block(void *block)
{
    const block_head head = head_of(block);
    ASAN_UNPOISON_MEMORY_REGION(head.raw, head.size + sizeof(block_head) + ALIGNMENT);
    head.release(head.user, head.raw);
}

void base_retire(psi_ctx *ctx, void *handle)
{
    const psi_allocator *own = &ctx->options.allocator;
    const block_head was = head_of(handle);
    if (was.release != own->release || was.user != own->user) { // which may not live as long
        base_free(ctx, handle);
        return;
    }
    block_head *head = (block_head *)handle - 1;
    ASAN_UNPOISON_MEMORY_REGION(head, sizeof *head);
    head->retired_by = ctx;
    ASAN_POISON_MEMORY_REGION(head, sizeof *head + was.size);
    give_back(ctx, was.size + sizeof(block_head) + ALIGNMENT);
    pthread_mutex_lock(&ctx->error_lock);
    void **place = &ctx->retired[ctx->n_retired++ % RETIRED];
    void *oldest = *place;
    *place = handle;
    pthread_mutex_unlock(&ctx->error_lock);
    if (oldest) release_block(oldest);
}

static void release_retired(psi_ctx *ctx)
{
    for (size_t i = 0; i < base_min(ctx->n_retired, RETIRED); i++) release_block(ctx->retired[i]);
}

static bool was_retired(psi_ctx *ctx, const void *handle)
{
    bool found = false;
    pthread_mutex_lock(&ctx->error_lock);
    for (size_t i = 0; i < base_min(ctx->n_retired, RETIRED) && !found; i++)
        found = ctx->retired[i] == handle;
    pthread_mutex_unlock(&ctx->error_lock);
    return found;
}

bool base_freed(psi_ctx *ctx, size_t n, const void *const handles[])
{
    for (size_t i = 0; i < n; i++) {
        if (!handles[i]) continue;
        psi_ctx *by = ctx ? ctx : head_of((void *)(uintptr_t)handles[i]).retired_by;
        if (!by || (ctx && !was_retired(ctx, handles[i]))) continue;
        (void)FAIL(by, PSI_EUSAGE, "a handle is used that was freed before");
        return true;
    }
    return false;
}
#else
static void release_retired(psi_ctx *ctx)
{
    (void)ctx;
}
#endif

static void log_sentence(psi_ctx *ctx, psi_log_level level, const char *format, va_list arguments)
{
    if (!ctx->options.log) return;
    char sentence[512];
    // NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): the callers have just begun the list
    vsnprintf(sentence, sizeof sentence, format, arguments);
    ctx->options.log(ctx->options.user, level, sentence);
}

void base_note(psi_ctx *ctx, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    log_sentence(ctx, PSI_LOG_NOTE, format, arguments);
    va_end(arguments);
}

void base_warn(psi_ctx *ctx, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    log_sentence(ctx, PSI_LOG_WARNING, format, arguments);
    va_end(arguments);
}

void base_report(psi_ctx *ctx, const psi_progress *progress)
{
    if (ctx->options.progress) ctx->options.progress(ctx->options.user, progress);
}
