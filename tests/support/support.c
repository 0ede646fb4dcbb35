#include "support/support.h"

#include "base/file.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

psi_ctx *test_ctx(int threads)
{
    psi_ctx *ctx;
    assert_int_equal(
        psi_ctx_new(&(psi_options){.size = sizeof(psi_options), .threads = threads}, &ctx), PSI_OK);
    return ctx;
}

static void *faulty_resize(void *user, void *ptr, size_t size)
{
    test_faults *faults = user;
    const long number = __atomic_add_fetch(&faults->count, 1, __ATOMIC_SEQ_CST);
    if (number == faults->fail_at) return NULL;
    if (!ptr) __atomic_add_fetch(&faults->live, 1, __ATOMIC_SEQ_CST);
    return realloc(ptr, size);
}

static void faulty_release(void *user, void *ptr)
{
    test_faults *faults = user;
    if (ptr) __atomic_sub_fetch(&faults->live, 1, __ATOMIC_SEQ_CST);
    free(ptr);
}

psi_ctx *test_faulty_ctx(test_faults *faults, int threads)
{
    psi_ctx *ctx;
    const psi_options options = {.size = sizeof options,
                                 .allocator = {faulty_resize, faulty_release, faults},
                                 .threads = threads};
    return psi_ctx_new(&options, &ctx) == PSI_OK ? ctx : NULL;
}

long test_fault_sweep(psi_status (*work)(psi_ctx *ctx, void *argument), void *argument)
{
    for (long n = 1;; n++) {
        test_faults faults = {.fail_at = n};
        psi_ctx *ctx = test_faulty_ctx(&faults, 2);
        if (ctx) {
            const psi_status status = work(ctx, argument);
            const bool reached = faults.count >= n;
            if (status != (reached ? PSI_ENOMEM : PSI_OK)) {
                fail_msg("allocation %ld %s, yet the result is %s: %s", n,
                         reached ? "failed" : "was never asked for", psi_status_name(status),
                         psi_error(ctx)->message);
            }
            psi_ctx_free(ctx);
            if (faults.live != 0)
                fail_msg("allocation %ld failed: %ld blocks leak", n, faults.live);
            if (!reached) return n - 1;
        } else if (faults.live != 0) {
            fail_msg("allocation %ld failed in psi_ctx_new: %ld blocks leak", n, faults.live);
        }
    }
}

size_t test_repetitions(size_t n)
{
#if defined(__SANITIZE_ADDRESS__)
    if (!getenv("PSIFOLD_FULL_SWEEPS")) return (n + 3) / 4;
#endif
    return n;
}

void test_assert_status(psi_ctx *ctx, psi_status got, psi_status expected, const char *expression,
                        const char *file, int line)
{
    if (got == expected) return;
    print_error("%s gave %s, not %s: %s (%s)\n", expression, psi_status_name(got),
                psi_status_name(expected), ctx && got ? psi_error(ctx)->message : "",
                ctx && got ? psi_error(ctx)->where : "");
    _fail(file, line);
}

void test_assert_error_says(psi_ctx *ctx, const char *text)
{
    if (strstr(psi_error(ctx)->message, text)) return;
    fail_msg("the error is \"%s\" and does not say \"%s\"", psi_error(ctx)->message, text);
}

char *test_folder(void)
{
    const char *parent = getenv("TMPDIR");
    char pattern[1024];
    snprintf(pattern, sizeof pattern, "%s/psifold-test-XXXXXX", parent ? parent : "/tmp");
    char *folder = strdup(pattern);
    assert_non_null(folder);
    assert_non_null(mkdtemp(folder));
    return folder;
}

void test_folder_free(char *folder)
{
    base_remove(folder);
    free(folder);
}

const char *test_path(const char *folder, const char *name)
{
    static _Thread_local char paths[4][2048];
    static _Thread_local unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

void test_put(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

void test_put_text(const char *path, const char *text)
{
    test_put(path, text, strlen(text));
}
